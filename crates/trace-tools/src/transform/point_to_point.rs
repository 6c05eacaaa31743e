//! `point_to_point`: collective operations become messages between two ranks.

mod phases;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use pdes_core::{Bytes, Rank};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_mmap::{CallOp, CommId, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Slot, Tag};

use self::phases::{Phase, is_one_exchange, phases};
use super::communicators::Communicators;
use super::keys::Keys;
use super::messages::{Endpoints, Event, Received, received_from};
use super::remove::check_selected_collectives;
use super::requests::{NewRequests, PerRequest, RemovedRequests, wait_for};
use super::selector::{Tracker, collective};
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "point_to_point",
    subject: Subject::Collectives,
    keys: &[],
    semantics: "Collective operations become messages in the linear form: each rank posts an `irecv` for all that it receives, an `isend` for all that it \
                sends, in the order of ranks, and a `waitall`; blocks without bytes, and those for the rank itself, are no messages. The root sends to all \
                (`bcast`, `scatter`, `scatterv`) or receives from all (`reduce`, `gather`, `gatherv`), all ranks send to all (`alltoall`, `allgather`, their \
                `v` forms), to their neighbours (`neighbor_alltoall`) or to those of higher number (`scan`, `exscan`). In `barrier`, `allreduce` and \
                `reducescatter` all send to rank 0, which waits, and then sends to all. Ranks compute reductions after the (first) `waitall`. Nonblocking \
                operations without a computation, other than these three, have the request of the first message, and a `waitall` for the others after what \
                completes it. Messages have the largest tag that the program does not use; receives and probes of any tag on the communicator must not be able \
                to take them.",
    read,
};

#[derive(Debug)]
struct PointToPoint {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(PointToPoint { selector }))
}

/// Source, destination and communicator of messages.
type Pair = (Rank, Rank, CommId);

/// The messages that replace collective operations: for each pair of ranks the sum over messages of a value of the operation's
/// number, those sent less those received; it is 0 if the same operations send and receive them.
type Balance = FxHashMap<Pair, u64>;

/// Follows the selected operations of a rank, as messages.
#[derive(Debug)]
struct Operations<'s> {
    rank: Rank,
    selector: &'s Selector,
    tracker: Tracker<'s>,
    communicators: Communicators,
    /// Number of collective operations on each communicator.
    numbers: FxHashMap<CommId, u64>,
}

/// A selected operation.
struct Operation {
    communicator: CommId,
    number: u64,
    /// The phases, in ranks of the world.
    phases: Vec<Phase>,
}

impl<'s> Operations<'s> {
    fn new(selector: &'s Selector, program: &Program<'_>, rank: Rank) -> Self {
        let (tracker, communicators) = (Tracker::new(selector, rank), Communicators::new(program, rank));
        Self { rank, selector, tracker, communicators, numbers: FxHashMap::default() }
    }

    /// Follows an operation; returns it if it is selected.
    ///
    /// # Errors
    /// Fails if it does not block, but would as messages.
    fn follow(&mut self, step: &Step) -> Result<Option<Operation>, Refusal> {
        self.tracker.follow(&step.op);
        self.communicators.follow(&step.op);
        let Some((name, communicator)) = collective(&step.op) else { return Ok(None) };
        let number = self.numbers.entry(communicator).or_default();
        *number += 1;
        if !self.tracker.is_here() || !self.selector.accepts_call(&step.op) {
            return Ok(None);
        }
        let Some((group, me)) = self.communicators.group(communicator) else {
            let reason = format!("{name} on communicator {communicator}, which the rank has not made");
            return Err(Refusal::at(self.rank, step.action, reason));
        };
        let mut phases = phases(&step.op, me, group.len()).unwrap_or_default();
        if step.posted.is_some() && !is_one_exchange(&step.op) {
            let reason = format!(
                "{name} does not block, but its messages depend on each other, or it computes: select others (call)"
            );
            return Err(Refusal::at(self.rank, step.action, reason));
        }
        for (rank, _) in phases.iter_mut().flat_map(|phase| phase.receives.iter_mut().chain(&mut phase.sends))
        {
            *rank = group.member(*rank).get();
        }
        Ok(Some(Operation { communicator, number: *number - 1, phases }))
    }
}

impl Operation {
    /// Calls a function with the messages: their ranks, and true for those that the rank sends.
    fn messages(&self, me: Rank, mut f: impl FnMut(Pair, bool)) {
        for phase in &self.phases {
            phase.receives.iter().for_each(|(from, _)| f((Rank::new(*from), me, self.communicator), false));
            phase.sends.iter().for_each(|(to, _)| f((me, Rank::new(*to), self.communicator), true));
        }
    }

    /// Returns a value that differs between operations.
    fn value(&self) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(self.number)
    }
}

impl PointToPoint {
    fn balance(&self, program: &Program<'_>) -> Result<Balance, Refusal> {
        let mut balance = Balance::default();
        for rank in program.ranks() {
            let mut operations = Operations::new(&self.selector, program, rank);
            for step in program.steps(rank) {
                let Some(operation) = operations.follow(&step)? else { continue };
                let value = operation.value();
                operation.messages(rank, |pair, is_sent| {
                    let sum = balance.entry(pair).or_default();
                    *sum = if is_sent { sum.wrapping_add(value) } else { sum.wrapping_sub(value) };
                });
            }
        }
        Ok(balance)
    }

    /// Checks that what a rank sends in an operation is received there.
    fn check_counts(&self, program: &Program<'_>, balance: &Balance) -> Result<(), Refusal> {
        let uneven = balance.iter().filter(|(_, sum)| **sum != 0).map(|(pair, _)| *pair).min();
        let Some((from, to, communicator)) = uneven else { return Ok(()) };
        let operations = |rank: Rank| -> Result<Vec<(u64, u64, &str)>, Refusal> {
            let mut operations = Operations::new(&self.selector, program, rank);
            let mut found = Vec::new();
            for step in program.steps(rank) {
                let Some(operation) = operations.follow(&step)? else { continue };
                operation.messages(rank, |pair, _| {
                    if pair == (from, to, communicator) {
                        let name = collective(&step.op).map_or("", |(name, _)| name);
                        found.push((operation.number, step.action, name));
                    }
                });
            }
            Ok(found)
        };
        let (sent, received) = (operations(from)?, operations(to)?);
        let lacks = |list: &[(u64, u64, &str)], number: u64| list.iter().all(|(other, ..)| *other != number);
        let only_sent = sent.iter().find(|(number, ..)| lacks(&received, *number));
        let only_received = received.iter().find(|(number, ..)| lacks(&sent, *number));
        Err(match (only_sent, only_received) {
            (Some((number, action, name)), None) => {
                let reason = format!(
                    "{name}, operation {number} on communicator {communicator}, sends data to rank {to}, which expects none there"
                );
                Refusal::at(from, *action, reason)
            }
            (_, Some((number, action, name))) => {
                let reason = format!(
                    "{name}, operation {number} on communicator {communicator}, expects data of rank {from}, which sends none there"
                );
                Refusal::at(to, *action, reason)
            }
            (None, None) => {
                let reason = format!("the numbers of messages to rank {to} differ on both sides");
                Refusal::Place { rank: from, action: None, reason }
            }
        })
    }

    /// Returns the largest tag that the program does not use.
    ///
    /// # Errors
    /// Fails at a receive or a probe of any tag that could take one of the messages.
    fn free_tag(program: &Program<'_>, balance: &Balance) -> Result<Tag, Refusal> {
        let any_source: FxHashSet<(Rank, CommId)> =
            balance.keys().map(|(_, to, communicator)| (*to, *communicator)).collect();
        let mut used = FxHashSet::default();
        for rank in program.ranks() {
            let mut endpoints = Endpoints::default();
            for step in program.steps(rank) {
                let mut takes_any = false;
                let mut use_tag = |received: Received| match received.tag {
                    Some(tag) => {
                        used.insert(tag.get());
                    }
                    None => {
                        let communicator = received.communicator;
                        takes_any |= match received.from {
                            Some(from) => balance.contains_key(&(from, rank, communicator)),
                            None => any_source.contains(&(rank, communicator)),
                        };
                    }
                };
                if let Op::Call(CallOp::Iprobe { from, found: false }) = &step.op {
                    received_from(from).into_iter().for_each(&mut use_tag);
                }
                let mut sent_tag = None;
                endpoints.events(&step.op, |event| match event {
                    Event::Receive(received, _) | Event::Probe(received) => use_tag(received),
                    Event::Send(sent, _) => sent_tag = Some(sent.tag.get()),
                    Event::Cancel => {}
                });
                used.extend(sent_tag);
                if takes_any {
                    let reason = "a receive or a probe of any tag could take messages of the collective operations; select operations on other communicators";
                    return Err(Refusal::at(rank, step.action, reason));
                }
            }
        }
        // Fewer tags are in use than there are.
        let free = (0..=i32::MAX).rev().find(|tag| !used.contains(tag));
        Ok(Tag::new(free.unwrap_or_default()))
    }
}

impl Transform for PointToPoint {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        check_selected_collectives(program, &self.selector)?;
        let balance = self.balance(program)?;
        self.check_counts(program, &balance)?;
        let tag = Self::free_tag(program, &balance)?;
        Ok(Box::new(AsMessages { selector: self.selector.clone(), tag }))
    }
}

#[derive(Debug)]
struct AsMessages {
    selector: Selector,
    tag: Tag,
}

impl Plan for AsMessages {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Exchanges {
            operations: Operations::new(&self.selector, &program, rank),
            tag: self.tag,
            requests: program.new_requests(),
            others: PerRequest::default(),
            removed: RemovedRequests::default(),
        })
    }
}

/// Posts the messages of collective operations.
///
/// Messages of a pair of ranks match in the order of the operations, which is the same on all ranks of a communicator.
#[derive(Debug)]
struct Exchanges<'p> {
    operations: Operations<'p>,
    tag: Tag,
    requests: NewRequests,
    /// Requests of the messages after the first one of an operation that does not block, by the slot of that one.
    others: PerRequest<Vec<RequestName>>,
    /// Requests of such operations without messages.
    removed: RemovedRequests,
}

/// Returns an operation in place of another one.
fn in_place_of(step: &Step, op: Op, posted: Option<Slot>) -> Step {
    Step { op, posted, awaited: None, nanos: None, ..step.clone() }
}

impl Exchanges<'_> {
    /// Appends the messages of a phase; the first one has the request `first`, if there is one. Returns the requests.
    fn post(
        &mut self,
        step: &Step,
        (communicator, phase): (CommId, &Phase),
        mut first: Option<RequestName>,
        out: &mut Vec<Step>,
    ) -> Vec<RequestName> {
        let mut names = Vec::new();
        let mut post = |call: &dyn Fn(Option<RequestName>) -> CallOp| {
            let name = first.take().unwrap_or_else(|| self.requests.next());
            let posted = in_place_of(step, Op::Call(call(Some(name))), Some(Slot::new(name.get())));
            out.extend(self.removed.keep(posted));
            names.push(name);
        };
        for (from, bytes) in &phase.receives {
            let (peer, bytes) = (Peer::Rank(Rank::new(*from)), Bytes::new(*bytes));
            let from = RecvFrom { peer, tag: Some(self.tag), communicator };
            post(&|request| CallOp::Irecv { from, request, bytes });
        }
        for (to, bytes) in &phase.sends {
            let to = SendTo { peer: Some(Rank::new(*to)), tag: self.tag, communicator };
            let (mode, bytes) = (SendMode::Standard, Bytes::new(*bytes));
            post(&|request| CallOp::Isend { to, request, mode, bytes });
        }
        names
    }
}

impl Rewrite for Exchanges<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        // What cannot be a message has been refused.
        let Some(operation) = self.operations.follow(&step).ok().flatten() else {
            let wait = self.others.wait_after(&step);
            out.extend(self.removed.keep(step));
            out.extend(wait);
            return;
        };
        let request = step.posted.map(|slot| RequestName::new(slot.get()));
        for phase in &operation.phases {
            let mut names = self.post(&step, (operation.communicator, phase), request, out);
            if request.is_none() {
                out.extend(wait_for(&step, names));
            } else if names.is_empty() {
                self.removed.add(&step);
            } else {
                names.remove(0);
                self.others.add(&step, names);
            }
            if phase.flops > 0.0 {
                out.push(in_place_of(&step, Op::Compute { flops: phase.flops }, None));
            }
        }
    }
}
