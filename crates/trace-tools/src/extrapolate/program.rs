//! Programs of ranks apart from their peers and values.

use std::path::Path;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::folded::Folded;
use trace_mmap::{CallOp, Collective, CommId, Item, Op, OpDecoder, Peer, RankTrace, Trace};

use super::ExtrapolationError;
use crate::TextLine;

/// A number in a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Bytes, elements or iterations.
    Whole(u64),
    /// Flops or seconds.
    Amount(f64),
}

impl Value {
    pub(super) fn get(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Amount(value) => value,
        }
    }

    pub(super) fn whole(self) -> Option<u64> {
        if let Self::Whole(value) = self { Some(value) } else { None }
    }
}

/// Meaning of a number in a program, which decides how it changes with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Iterations, seconds of sleep, counts and computations of operations in which each rank has the whole.
    Fixed,
    /// Flops of a computation.
    Work,
    /// Bytes of a message; its place among the peers of the program, if it has one.
    Message(Option<usize>),
    /// The part of a rank in a collective operation.
    PerRank,
    /// The part of a pair of ranks in a collective operation.
    PerPair,
}

/// The program of a rank: its pattern, and what the pattern has not, each in the order of the program.
#[derive(Clone, Debug)]
pub(super) struct RankProgram {
    pub(super) pattern: u32,
    pub(super) peers: Vec<Rank>,
    pub(super) values: Vec<Value>,
}

/// Programs without their peers and values, each once.
#[derive(Default)]
pub(super) struct Patterns {
    patterns: Vec<Vec<Item>>,
    by_text: FxHashMap<String, u32>,
}

impl Patterns {
    /// Reads the programs of all ranks.
    ///
    /// # Errors
    /// Fails if a rank has no folded form, or a call that has no rule.
    pub(super) fn programs(
        &mut self,
        trace: &Trace,
        path: &Path,
    ) -> Result<Vec<RankProgram>, ExtrapolationError> {
        let ranks = (0..trace.ranks()).map(Rank::new);
        let program = |rank| {
            let path = || path.to_path_buf();
            let mut items =
                items(trace.rank(rank)).ok_or_else(|| ExtrapolationError::Unfolded { path: path(), rank })?;
            let mut taker = Taker::default();
            visit(&mut items, &mut taker).map_err(|call| ExtrapolationError::Call {
                path: path(),
                rank,
                call,
            })?;
            let Taker { peers, values } = taker;
            Ok(RankProgram { pattern: self.intern(items), peers, values })
        };
        ranks.map(program).collect()
    }

    fn intern(&mut self, items: Vec<Item>) -> u32 {
        // Amounts have no hash: the text stands for the pattern.
        let text = format!("{items:?}");
        *self.by_text.entry(text).or_insert_with(|| {
            self.patterns.push(items);
            self.patterns.len() as u32 - 1
        })
    }

    /// Returns a program with other peers and values, for a number of ranks.
    ///
    /// # Errors
    /// Fails if a size or a count is no whole number, or a value is negative.
    pub(super) fn instantiate(
        &self,
        program: &RankProgram,
        values: &[f64],
        peers: &[Rank],
        ranks: u32,
    ) -> Result<Vec<Item>, ExtrapolationError> {
        let mut items = self.patterns[program.pattern as usize].clone();
        let mut giver = Giver { values: values.iter(), peers: peers.iter(), ranks };
        visit(&mut items, &mut giver).map_err(|value| {
            let slot = values.len() - giver.values.len() - 1;
            ExtrapolationError::Value { what: self.describe(program, slot), value }
        })?;
        Ok(items)
    }

    /// Returns the meaning of each value of a program.
    pub(super) fn kinds(&self, program: &RankProgram) -> Vec<Kind> {
        let mut items = self.patterns[program.pattern as usize].clone();
        let mut finder = KindFinder { kind: Kind::Fixed, peers: 0, kinds: Vec::new() };
        // All was visited before, without an error.
        let _ = visit(&mut items, &mut finder);
        finder.kinds
    }

    /// Describes the place of a value in a program.
    pub(super) fn describe(&self, program: &RankProgram, slot: usize) -> String {
        let mut items = self.patterns[program.pattern as usize].clone();
        let mut finder = Finder { left: slot, name: String::new() };
        let found = visit(&mut items, &mut finder);
        // All was visited before, without an error.
        found.err().unwrap_or_default()
    }
}

/// Returns the operations of a rank with their loops.
fn items(rank: &RankTrace) -> Option<Vec<Item>> {
    fn items(parts: Vec<Folded<trace_mmap::Action>>, decoder: &mut OpDecoder<'_>) -> Vec<Item> {
        let mut all = Vec::new();
        for part in parts {
            match part {
                Folded::Items(actions) => {
                    all.extend(actions.into_iter().map(|action| Item::Op(decoder.decode(action))));
                }
                Folded::Loop(count, body) => all.push(Item::Loop { count, body: items(body, decoder) }),
            }
        }
        all
    }
    Some(items(rank.folded_actions()?, &mut OpDecoder::new(rank)))
}

/// Takes the peers and values of a program, in its order.
trait Visitor {
    type Stop;

    /// Begins an operation; `None` is a loop.
    fn begin(&mut self, _: Option<&Op>) {}
    fn peer(&mut self, peer: &mut Rank);
    fn whole(&mut self, value: &mut u64) -> Result<(), Self::Stop>;
    fn amount(&mut self, value: &mut f64) -> Result<(), Self::Stop>;
    /// Takes counts for each rank.
    fn counts(&mut self, counts: &mut Box<[u64]>) -> Result<(), Self::Stop>;
    /// Stops at a call without a rule.
    fn refuse(&mut self, call: &Op) -> Self::Stop;
}

fn visit<V: Visitor>(items: &mut [Item], visitor: &mut V) -> Result<(), V::Stop> {
    for item in items {
        match item {
            Item::Loop { count, body } => {
                visitor.begin(None);
                visitor.whole(count)?;
                visit(body, visitor)?;
            }
            Item::Op(op) => {
                visitor.begin(Some(op));
                visit_op(op, visitor)?;
            }
        }
    }
    Ok(())
}

fn visit_op<V: Visitor>(op: &mut Op, visitor: &mut V) -> Result<(), V::Stop> {
    let visit_peer =
        |visitor: &mut V, peer: &mut Option<Rank>| peer.iter_mut().for_each(|peer| visitor.peer(peer));
    match op {
        Op::Init | Op::Finalize | Op::Communicator | Op::Location { .. } | Op::WaitAll => {}
        Op::Compute { flops: amount } | Op::Sleep { seconds: amount } => visitor.amount(amount)?,
        Op::Send { peer, bytes, .. }
        | Op::Isend { peer, bytes, .. }
        | Op::Recv { peer, bytes, .. }
        | Op::Irecv { peer, bytes, .. } => {
            visit_peer(visitor, peer);
            visit_bytes(bytes, visitor)?;
        }
        Op::SendRecv { to, send_bytes, from, recv_bytes } => {
            visit_peer(visitor, to);
            visit_bytes(send_bytes, visitor)?;
            visit_peer(visitor, from);
            visit_bytes(recv_bytes, visitor)?;
        }
        Op::Wait(request) | Op::Test(request) => visit_peer(visitor, &mut request.peer),
        Op::Collective(operation) => visit_collective(operation, visitor)?,
        Op::Call(
            CallOp::Send { to, bytes, .. }
            | CallOp::Isend { to, bytes, .. }
            | CallOp::SendInit { to, bytes, .. },
        ) if to.communicator == CommId::WORLD => {
            visit_peer(visitor, &mut to.peer);
            visit_bytes(bytes, visitor)?;
        }
        Op::Call(
            CallOp::Recv { from, bytes }
            | CallOp::Irecv { from, bytes, .. }
            | CallOp::RecvInit { from, bytes, .. },
        ) if from.communicator == CommId::WORLD => {
            visit_source(&mut from.peer, visitor);
            visit_bytes(bytes, visitor)?;
        }
        Op::Call(CallOp::SendRecv { to, from, send_bytes, recv_bytes })
            if to.communicator == CommId::WORLD && from.communicator == CommId::WORLD =>
        {
            visit_peer(visitor, &mut to.peer);
            visit_bytes(send_bytes, visitor)?;
            visit_source(&mut from.peer, visitor);
            visit_bytes(recv_bytes, visitor)?;
        }
        Op::Call(CallOp::Collective { communicator: CommId::WORLD, operation, .. }) => {
            visit_collective(operation, visitor)?;
        }
        Op::Call(CallOp::Waitall { .. } | CallOp::Start { .. } | CallOp::Free { .. }) => {}
        Op::Call(call) => return Err(visitor.refuse(&Op::Call(call.clone()))),
    }
    Ok(())
}

fn visit_bytes<V: Visitor>(bytes: &mut Bytes, visitor: &mut V) -> Result<(), V::Stop> {
    let mut value = bytes.get();
    visitor.whole(&mut value)?;
    *bytes = Bytes::new(value);
    Ok(())
}

fn visit_source(source: &mut Peer, visitor: &mut impl Visitor) {
    match source {
        Peer::Rank(rank) => visitor.peer(rank),
        // What came first on fewer ranks says nothing.
        Peer::Any { recorded } => *recorded = None,
        Peer::ProcNull => {}
    }
}

fn visit_collective<V: Visitor>(operation: &mut Collective, visitor: &mut V) -> Result<(), V::Stop> {
    match operation {
        Collective::Barrier => Ok(()),
        Collective::Bcast { count, .. } => visitor.whole(count),
        Collective::Reduce { count, flops, .. }
        | Collective::Allreduce { count, flops, .. }
        | Collective::Scan { count, flops, .. }
        | Collective::Exscan { count, flops, .. } => {
            visitor.whole(count)?;
            visitor.amount(flops)
        }
        Collective::Alltoall { send_count, recv_count, .. }
        | Collective::Gather { send_count, recv_count, .. }
        | Collective::Scatter { send_count, recv_count, .. }
        | Collective::Allgather { send_count, recv_count, .. } => {
            visitor.whole(send_count)?;
            visitor.whole(recv_count)
        }
        Collective::Alltoallv { send_counts, recv_counts, .. } => {
            visitor.counts(send_counts)?;
            visitor.counts(recv_counts)
        }
        Collective::Gatherv { send_count: count, recv_counts: counts, .. }
        | Collective::Allgatherv { send_count: count, recv_counts: counts, .. }
        | Collective::Scatterv { send_counts: counts, recv_count: count, .. } => {
            visitor.whole(count)?;
            visitor.counts(counts)
        }
        Collective::ReduceScatter { recv_counts, flops, .. } => {
            visitor.counts(recv_counts)?;
            visitor.amount(flops)
        }
    }
}

/// Takes peers and values out; a rank 0, zeros, and a single count remain.
#[derive(Default)]
struct Taker {
    peers: Vec<Rank>,
    values: Vec<Value>,
}

impl Visitor for Taker {
    type Stop = String;

    fn peer(&mut self, peer: &mut Rank) {
        self.peers.push(std::mem::replace(peer, Rank::new(0)));
    }

    fn whole(&mut self, value: &mut u64) -> Result<(), String> {
        self.values.push(Value::Whole(std::mem::take(value)));
        Ok(())
    }

    fn amount(&mut self, value: &mut f64) -> Result<(), String> {
        self.values.push(Value::Amount(std::mem::take(value)));
        Ok(())
    }

    fn counts(&mut self, counts: &mut Box<[u64]>) -> Result<(), String> {
        if let [first, rest @ ..] = &**counts {
            if rest.iter().any(|count| count != first) {
                return Err("a collective operation whose counts differ between ranks".to_owned());
            }
            self.values.push(Value::Whole(*first));
            *counts = Box::new([0]);
        }
        Ok(())
    }

    fn refuse(&mut self, call: &Op) -> String {
        name(call)
    }
}

/// Puts peers and values into a pattern; stops at a value that is impossible.
struct Giver<'a> {
    values: std::slice::Iter<'a, f64>,
    peers: std::slice::Iter<'a, Rank>,
    ranks: u32,
}

impl Giver<'_> {
    fn next(&mut self) -> f64 {
        *self.values.next().expect("there is a value for each of the pattern")
    }

    fn next_whole(&mut self) -> Result<u64, f64> {
        let value = self.next();
        let error = (value - value.round()).abs();
        // Coefficients are exact to some 12 digits.
        if value > -0.5 && error <= 1e-3 + 1e-9 * value { Ok(value.round() as u64) } else { Err(value) }
    }
}

impl Visitor for Giver<'_> {
    type Stop = f64;

    fn peer(&mut self, peer: &mut Rank) {
        *peer = *self.peers.next().expect("there is a peer for each of the pattern");
    }

    fn whole(&mut self, value: &mut u64) -> Result<(), f64> {
        *value = self.next_whole()?;
        Ok(())
    }

    fn amount(&mut self, value: &mut f64) -> Result<(), f64> {
        let found = self.next();
        *value = found.max(0.0);
        if found > -0.5 { Ok(()) } else { Err(found) }
    }

    fn counts(&mut self, counts: &mut Box<[u64]>) -> Result<(), f64> {
        if !counts.is_empty() {
            *counts = vec![self.next_whole()?; self.ranks as usize].into();
        }
        Ok(())
    }

    fn refuse(&mut self, _: &Op) -> f64 {
        unreachable!("a pattern has no such call")
    }
}

/// Stops at a value, with the name of its operation.
struct Finder {
    left: usize,
    name: String,
}

impl Finder {
    fn pass(&mut self) -> Result<(), String> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(std::mem::take(&mut self.name)),
        }
        Ok(())
    }
}

impl Visitor for Finder {
    type Stop = String;

    fn begin(&mut self, op: Option<&Op>) {
        self.name = op.map_or("the iterations of a loop".to_owned(), name);
    }

    fn peer(&mut self, _: &mut Rank) {}

    fn whole(&mut self, _: &mut u64) -> Result<(), String> {
        self.pass()
    }

    fn amount(&mut self, _: &mut f64) -> Result<(), String> {
        self.pass()
    }

    fn counts(&mut self, counts: &mut Box<[u64]>) -> Result<(), String> {
        if counts.is_empty() { Ok(()) } else { self.pass() }
    }

    fn refuse(&mut self, call: &Op) -> String {
        name(call)
    }
}

/// Collects the meanings of values.
struct KindFinder {
    kind: Kind,
    peers: usize,
    kinds: Vec<Kind>,
}

impl Visitor for KindFinder {
    type Stop = ();

    fn begin(&mut self, op: Option<&Op>) {
        let operation = match op {
            Some(Op::Collective(operation) | Op::Call(CallOp::Collective { operation, .. })) => operation,
            None | Some(Op::Sleep { .. }) => return self.kind = Kind::Fixed,
            Some(Op::Compute { .. }) => return self.kind = Kind::Work,
            Some(_) => return self.kind = Kind::Message(None),
        };
        self.kind = match operation {
            Collective::Barrier
            | Collective::Bcast { .. }
            | Collective::Reduce { .. }
            | Collective::Allreduce { .. }
            | Collective::Scan { .. }
            | Collective::Exscan { .. } => Kind::Fixed,
            Collective::Alltoall { .. } | Collective::Alltoallv { .. } => Kind::PerPair,
            _ => Kind::PerRank,
        };
    }

    fn peer(&mut self, _: &mut Rank) {
        self.kind = Kind::Message(Some(self.peers));
        self.peers += 1;
    }

    fn whole(&mut self, _: &mut u64) -> Result<(), ()> {
        self.kinds.push(self.kind);
        Ok(())
    }

    fn amount(&mut self, _: &mut f64) -> Result<(), ()> {
        self.kinds.push(self.kind);
        Ok(())
    }

    fn counts(&mut self, counts: &mut Box<[u64]>) -> Result<(), ()> {
        if !counts.is_empty() {
            self.kinds.push(self.kind);
        }
        Ok(())
    }

    fn refuse(&mut self, _: &Op) {}
}

/// Returns the name of an operation in text.
fn name(op: &Op) -> String {
    let line = TextLine { rank: Rank::new(0), op }.to_string();
    line.split_whitespace().nth(1).unwrap_or_default().to_owned()
}
