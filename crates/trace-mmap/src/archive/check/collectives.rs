//! Comparison of the collective operations of ranks, at a cost that does not depend on iteration counts but by a logarithm.

use std::collections::BTreeMap;
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::Finding;
use super::digest::Digest;
use super::loops::{LoopSums, Summary};
use crate::archive::ArchiveError;
use crate::archive::operations::{Operation, Part, Side, operations};
use crate::communicator::{CommId, CommIdx, Communicator};
use crate::record::{LOOP_BEGIN, LOOP_END, Record};
use crate::side_tables::SideTables;
use crate::trace::{ActionStorage, RankTrace, Trace};

/// The operations of a rank on a communicator.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// Digest of the properties in which all ranks must agree.
    signatures: Digest,
    /// Amounts that the rank sends minus those that it receives; zero in the sum over all ranks.
    balance: Digest,
}

impl Summary for Sequence {
    fn then(&self, next: &Self) -> Self {
        Self { signatures: self.signatures.then(&next.signatures), balance: self.balance.then(&next.balance) }
    }
}

impl Sequence {
    const EMPTY: Self = Self { signatures: Digest::EMPTY, balance: Digest::EMPTY };

    fn of(operation: &Operation<'_>, me: u32) -> Self {
        let (mut sent, mut received) = (Digest::of(0), Digest::of(0));
        operation.sides(me, |Side { part: Part { from, to }, is_send, bytes }| {
            if bytes > 0 {
                let words = [from.into(), to.into(), bytes].map(u64::to_le_bytes);
                let sum = if is_send { &mut sent } else { &mut received };
                *sum = sum.plus(Digest::of(xxh3_64(words.as_flattened())));
            }
        });
        Self { signatures: Digest::of(operation.signature(me)), balance: sent.minus(received) }
    }
}

/// Programs without everything but loops and collective operations, by the addresses of programs and side tables in an archive.
type Programs = FxHashMap<(usize, usize), Arc<[Record]>>;

/// Compares the collective operations of all ranks of each communicator: their order, roots, amounts and files. Returns the first
/// difference. Ranks without actions are skipped, and so are the ranks after a damaged record.
///
/// The cost is linear in the length of programs, not in the number of actions, and ranks of an archive that share a program share the
/// most of it.
///
/// # Errors
/// Fails if the tables of a rank are malformed.
pub fn check_collectives(trace: &Trace) -> Result<Option<Finding>, ArchiveError> {
    let mut programs = Programs::default();
    let mut first: BTreeMap<CommId, (Rank, CommIdx, Digest)> = BTreeMap::new();
    let mut sums: BTreeMap<CommId, Option<Digest>> = BTreeMap::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        let sequences = trace.with_rank(rank, |ranked| {
            let found = sequences(ranked, &mut programs);
            let ids = ranked.communicators().iter().map(|communicator| communicator.id);
            let sequence = |on| found.get(&on).copied().unwrap_or(Sequence::EMPTY);
            let all = (0..).map(CommIdx::new).zip(ids).map(|(on, id)| (on, id, sequence(on)));
            (all.collect::<Vec<_>>(), ranked.is_empty() || ranked.graph().is_some())
        })?;
        let (sequences, is_skipped) = sequences;
        for (on, id, Sequence { signatures, balance }) in sequences {
            let sum = sums.entry(id).or_insert(Some(Digest::EMPTY));
            if is_skipped {
                *sum = None;
                continue;
            }
            *sum = sum.map(|sum| sum.plus(balance));
            let (first, first_on, expected) = *first.entry(id).or_insert((rank, on, signatures));
            if signatures != expected
                && let Some(finding) = difference(trace, id, (first, first_on), (rank, on))?
            {
                return Ok(Some(finding));
            }
        }
    }
    for (id, sum) in sums {
        if sum.is_some_and(|sum| !sum.is_zero())
            && let Some(finding) = imbalance(trace, id)?
        {
            return Ok(Some(finding));
        }
    }
    Ok(None)
}

/// Sums the operations of a rank by communicators.
fn sequences(rank: &RankTrace, programs: &mut Programs) -> BTreeMap<CommIdx, Sequence> {
    let side = &*rank.side_tables;
    if side.collectives.is_empty() && side.calls.is_empty() {
        return BTreeMap::new();
    }
    match &rank.storage {
        ActionStorage::Archive(body) => {
            let key = (Arc::as_ptr(&body.class.program).addr(), Arc::as_ptr(&rank.side_tables).addr());
            let program = programs.entry(key).or_insert_with(|| {
                let is_used = uses(side);
                body.records().map_while(Result::ok).filter(|record| is_used(*record)).collect()
            });
            sum(program.iter().copied(), rank)
        }
        ActionStorage::Memory(records) => {
            let is_used = uses(side);
            let chunks = (0..).map_while(|chunk| records.chunk(chunk));
            sum(chunks.flatten().copied().filter(|record| is_used(*record)), rank)
        }
    }
}

/// Returns a function that says whether a record is a loop or a collective operation.
fn uses(side: &SideTables) -> impl Fn(Record) -> bool {
    use crate::record::{CALL, COLLECTIVE};
    let numbers = (0..).map(|number| Record::from_words(CALL.into(), 0).with_index(number));
    let calls: Vec<bool> =
        numbers.take(side.calls.len()).map(|call| Operation::of_record(call, side).is_some()).collect();
    move |record| match record.kind() {
        COLLECTIVE | LOOP_BEGIN | LOOP_END => true,
        CALL => calls.get(record.index() as usize) == Some(&true),
        _ => false,
    }
}

fn sum(records: impl Iterator<Item = Record>, rank: &RankTrace) -> BTreeMap<CommIdx, Sequence> {
    let mut sums = LoopSums::default();
    let mut known: FxHashMap<(u8, u32), Option<(CommIdx, Sequence)>> = FxHashMap::default();
    for record in records {
        match record.kind() {
            LOOP_BEGIN => sums.begin(record.amount()),
            LOOP_END => sums.end(),
            kind => {
                let operation = *known.entry((kind, record.index())).or_insert_with(|| {
                    let operation = Operation::of_record(record, &rank.side_tables)?;
                    let me = rank.communicators().get(operation.on.index())?.rank;
                    Some((operation.on, Sequence::of(&operation, me)))
                });
                operation.iter().for_each(|(on, operation)| sums.add(*on, operation));
            }
        }
    }
    sums.finish()
}

/// Finds the first operation in which two ranks differ on a communicator.
fn difference(
    trace: &Trace,
    communicator: CommId,
    (first, first_on): (Rank, CommIdx),
    (rank, on): (Rank, CommIdx),
) -> Result<Option<Finding>, ArchiveError> {
    trace.with_rank(first, |one| {
        trace.with_rank(rank, |other| {
            let me = |rank: &RankTrace, on: CommIdx| rank.communicators()[on.index()].rank;
            let (mut lefts, mut rights) = (operations(one, first_on), operations(other, on));
            (0..).find_map(|index| {
                let described = match (lefts.next(), rights.next()) {
                    (None, None) => return Some(None),
                    (Some((at, left)), Some((right_at, right))) => {
                        let [left, right] =
                            Operation::difference((&left, me(one, first_on)), (&right, me(other, on)))?;
                        [Some(place(&left, at)), Some(place(&right, right_at))]
                    }
                    (left, right) => [left, right].map(|one| one.map(|(at, one)| place(one.name, at))),
                };
                let [expected, found] = described;
                Some(Some(Finding::Collective { communicator, first, rank, index, found, expected }))
            })?
        })
    })?
}

fn place(operation: &str, action: u64) -> String {
    format!("{operation} (action {action})")
}

/// Finds the first operation on a communicator of which some part has other amounts on both sides.
fn imbalance(trace: &Trace, id: CommId) -> Result<Option<Finding>, ArchiveError> {
    let (mut read, mut members) = (Vec::new(), Vec::new());
    for rank in (0..trace.ranks()).map(Rank::new) {
        let is_it = |one: &Communicator| one.id == id;
        let on = trace.with_rank(rank, |ranked| ranked.communicators().iter().position(is_it))?;
        if let Some(on) = on {
            members.push((rank, CommIdx::new(on as u32)));
            read.push(trace.read_rank(rank)?);
        }
    }
    let ranks =
        read.iter().zip(&members).map(|(read, (rank, _))| read.as_ref().unwrap_or_else(|| trace.rank(*rank)));
    let ranks: Vec<&RankTrace> = ranks.collect();
    let mut programs: Vec<_> =
        ranks.iter().zip(&members).map(|(rank, (_, on))| operations(rank, *on)).collect();
    for index in 0.. {
        let mut parts: BTreeMap<Part, [u64; 2]> = BTreeMap::new();
        let mut name = None;
        for ((program, rank), (_, on)) in programs.iter_mut().zip(&ranks).zip(&members) {
            let Some((_, operation)) = program.next() else { continue };
            name.get_or_insert(operation.name);
            operation.sides(rank.communicators()[on.index()].rank, |Side { part, is_send, bytes }| {
                let amount = &mut parts.entry(part).or_default()[usize::from(!is_send)];
                *amount = amount.saturating_add(bytes);
            });
        }
        let Some(operation) = name else { return Ok(None) };
        if let Some((part, [sent, received])) =
            parts.into_iter().find(|(_, [sent, received])| sent != received)
        {
            let group = &ranks[0].communicators()[members[0].1.index()].group;
            let (from, to) = (group.member(part.from), group.member(part.to));
            let (communicator, amounts) = (id, [sent, received]);
            return Ok(Some(Finding::CollectiveAmounts {
                communicator,
                index,
                operation,
                from,
                to,
                amounts,
            }));
        }
    }
    Ok(None)
}
