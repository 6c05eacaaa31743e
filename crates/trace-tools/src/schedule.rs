//! Schedules in GOAL of programs: the graph of each rank, with collective operations as the messages of [fixed algorithms](messages).
//!
//! An operation starts when the one before it has ended; after a nonblocking one, when that has started. A wait joins the operations of
//! its requests. Tests, `MPI_Waitany` and `MPI_Waitsome` complete what they completed in the recorded run.

mod messages;

use std::collections::BTreeMap;

use ::goal::{After, Operation, RankBuilder, Schedule, ScheduleBuilder, ScheduleError};
use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, Collective, CommId, CommIdx, CommunicatorCall, OutIdx, RankTrace, SendRecv, Slot, Source,
    Tag, Trace,
};

use messages::{Message, rounds};

/// A schedule of a program.
#[derive(Debug)]
pub struct Scheduled {
    /// The schedule.
    pub schedule: Schedule,
    /// Calls that the schedule does not have, with their numbers.
    pub left_out: BTreeMap<String, u64>,
}

/// A trace has no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleOfTraceError {
    /// The trace is a schedule already.
    #[error("rank {rank} is a graph already, not a list of calls")]
    Graph {
        /// The rank.
        rank: Rank,
    },
    /// The amounts of computation have no rate.
    #[error("computations have no unit; give the flops per second that make times of them (--speed)")]
    NoSpeed,
    /// The schedule is not valid, such as one that is too large.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}

/// Makes the schedule of a trace. `speed` is the rate at which amounts become times \[flop/s\], by default that at which times became the
/// amounts. Cost: O(actions + messages) in time and memory, where collective operations have messages, too.
///
/// ```
/// let trace = trace_tools::from_text("0 init\n0 compute 5e9\n0 bcast 12 0 6\n1 init\n1 bcast 12 0 6\n")?;
/// let scheduled = trace_tools::schedule(&trace, Some(1e9))?;
/// let mut text = Vec::new();
/// goal::write_text(&scheduled.schedule, &mut text)?;
/// assert!(String::from_utf8(text)?.contains("calc 5000000000"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if there are computations and no speed, or if the schedule is too large.
pub fn schedule(trace: &Trace, speed: Option<f64>) -> Result<Scheduled, ScheduleOfTraceError> {
    let speed = speed.or_else(|| trace.provenance().work_metric?.rate());
    let mut schedule = ScheduleBuilder::new(trace.ranks());
    let (mut tags, mut left_out) = (Tags::default(), BTreeMap::new());
    for rank in (0..trace.ranks()).map(Rank::new) {
        let program = trace.rank(rank);
        if program.graph().is_some() {
            return Err(ScheduleOfTraceError::Graph { rank });
        }
        let mut graph = Graph {
            rank: program,
            builder: RankBuilder::default(),
            last: Vec::new(),
            pending: BTreeMap::new(),
            persistent: FxHashMap::default(),
            tags: &mut tags,
            left_out: &mut left_out,
        };
        for action in program.cursor() {
            graph.action(action, speed)?;
        }
        schedule.push(&graph.builder)?;
    }
    Ok(Scheduled { schedule: schedule.finish()?, left_out })
}

/// Tags of messages: those on the world stay, all others get numbers from [`FIRST_TAG`] on.
#[derive(Default)]
struct Tags(FxHashMap<(CommId, Option<Tag>), u32>);

/// The first tag that no message on the world has.
const FIRST_TAG: u32 = 1 << 31;

impl Tags {
    /// Returns the tag of messages of a program.
    fn of(&mut self, communicator: CommId, tag: Tag) -> u32 {
        if communicator == CommId::WORLD { tag.get() as u32 } else { self.number(communicator, Some(tag)) }
    }

    /// Returns the tag of the messages of collective operations if there is none.
    fn number(&mut self, communicator: CommId, tag: Option<Tag>) -> u32 {
        let next = FIRST_TAG + self.0.len() as u32;
        *self.0.entry((communicator, tag)).or_insert(next)
    }
}

/// A message of a persistent request.
#[derive(Clone, Copy)]
enum Transfer {
    Send(OutIdx, Bytes),
    Receive(Source, Bytes),
}

/// The graph of a rank.
struct Graph<'a> {
    rank: &'a RankTrace,
    builder: RankBuilder,
    /// What the next operation depends on.
    last: Vec<(u32, After)>,
    /// The last operations of each pending request.
    pending: BTreeMap<Slot, Vec<u32>>,
    persistent: FxHashMap<Slot, Option<Transfer>>,
    tags: &'a mut Tags,
    left_out: &'a mut BTreeMap<String, u64>,
}

impl Graph<'_> {
    fn action(&mut self, action: Action, speed: Option<f64>) -> Result<(), ScheduleOfTraceError> {
        match action {
            Action::Init
            | Action::Finalize
            | Action::Communicator
            | Action::Location(_)
            | Action::Test { .. } => {}
            Action::ProcNull { .. } => {}
            Action::Compute { flops } => {
                let speed = speed.ok_or(ScheduleOfTraceError::NoSpeed)?;
                self.compute(flops / speed);
            }
            Action::Sleep { seconds } => self.compute(seconds),
            Action::Send { to, bytes } => self.transfer(Transfer::Send(to, bytes)),
            Action::Recv { from, bytes } => self.transfer(Transfer::Receive(Source::Rank(from), bytes)),
            Action::Isend { to, bytes, slot } => self.post(slot, Transfer::Send(to, bytes)),
            Action::Irecv { from, bytes, slot } => {
                self.post(slot, Transfer::Receive(Source::Rank(from), bytes));
            }
            Action::SendRecv(id) => {
                let SendRecv { to, send_bytes, from, recv_bytes } = *self.rank.send_recv(id);
                self.send_recv(to.zip(Some(send_bytes)), from.map(Source::Rank), recv_bytes);
            }
            Action::Wait { slot } => self.wait(&[slot]),
            Action::WaitAll => {
                let slots: Vec<Slot> = self.pending.keys().copied().collect();
                self.wait(&slots);
            }
            Action::Collective(id) => self.collective(self.rank.collective(id), CommIdx::WORLD, None),
            Action::Call(id) => self.call(self.rank.call(id)),
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) {
        match call {
            Call::Send { to, bytes, .. } => {
                to.iter().for_each(|to| self.transfer(Transfer::Send(*to, *bytes)));
            }
            Call::Recv { from, bytes } => self.transfer(Transfer::Receive(*from, *bytes)),
            Call::Isend { to, bytes, slot, .. } => {
                to.iter().for_each(|to| self.post(*slot, Transfer::Send(*to, *bytes)));
            }
            Call::Irecv { from, bytes, slot } => self.post(*slot, Transfer::Receive(*from, *bytes)),
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                self.send_recv(to.zip(Some(*send_bytes)), Some(*from), *recv_bytes);
            }
            Call::SendInit { to, bytes, slot, .. } => {
                self.persistent.insert(*slot, to.map(|to| Transfer::Send(to, *bytes)));
            }
            Call::RecvInit { from, bytes, slot } => {
                self.persistent.insert(*slot, Some(Transfer::Receive(*from, *bytes)));
            }
            Call::Start { slots } => {
                for slot in slots {
                    if let Some(Some(transfer)) = self.persistent.get(slot).copied() {
                        self.post(*slot, transfer);
                    }
                }
            }
            Call::Free { slot } => {
                self.persistent.remove(slot);
            }
            Call::Waitall { slots } => self.wait(slots),
            Call::Waitany { done, .. } | Call::Testany { done, .. } => self.wait(done.as_slice()),
            Call::Waitsome { done, .. } | Call::Testsome { done, .. } => self.wait(done),
            Call::Test { slot, done: true } => self.wait(&[*slot]),
            Call::Testall { slots, done: true } => self.wait(slots),
            Call::Test { .. } | Call::Testall { .. } | Call::GetStatus { .. } => {}
            Call::Collective { operation, communicator, slot } => {
                self.collective(self.rank.collective(*operation), *communicator, *slot);
            }
            Call::NeighborAlltoall { communicator, to, from, slot } => {
                let send = to.iter().map(|(peer, bytes)| Message::Send(*peer, bytes.get()));
                let receive = from.iter().map(|(peer, bytes)| Message::Receive(*peer, bytes.get()));
                self.exchange(&[send.chain(receive).collect()], *communicator, *slot);
            }
            Call::Cancel { slot, cancelled, .. } => {
                if *cancelled {
                    self.pending.remove(slot);
                    self.leave_out("MPI_Cancel");
                }
            }
            Call::Probe { .. } | Call::Iprobe { .. } => self.leave_out("MPI_Probe"),
            Call::NewCommunicator { kind: CommunicatorCall::Define, .. } => {}
            Call::NewCommunicator { .. } => self.leave_out("creation of a communicator"),
            Call::FreeCommunicator { .. } => {}
            Call::Unmodelled(call) => self.leave_out(call.name()),
            Call::File { .. } | Call::SetView { .. } => self.leave_out("call on a file"),
            Call::Window { .. } => self.leave_out("one-sided communication"),
        }
    }

    fn leave_out(&mut self, name: &str) {
        *self.left_out.entry(name.to_owned()).or_default() += 1;
    }

    /// Adds an operation that starts after the last ones.
    fn begin(&mut self, operation: Operation) -> u32 {
        let number = self.builder.push(operation);
        self.last.iter().for_each(|(on, after)| self.builder.depend(number, *on, *after));
        number
    }

    fn compute(&mut self, seconds: f64) {
        let number = self.begin(Operation::calculate((seconds * 1e9).round() as u64));
        self.last = vec![(number, After::End)];
    }

    fn transfer(&mut self, transfer: Transfer) {
        if let Some(operation) = self.operation(transfer) {
            let number = self.begin(operation);
            self.last = vec![(number, After::End)];
        }
    }

    fn post(&mut self, slot: Slot, transfer: Transfer) {
        if let Some(operation) = self.operation(transfer) {
            let number = self.begin(operation);
            self.last = vec![(number, After::Start)];
            self.pending.insert(slot, vec![number]);
        }
    }

    /// Returns the operation of a message; `None` for `MPI_PROC_NULL`.
    fn operation(&mut self, transfer: Transfer) -> Option<Operation> {
        let communicators = self.rank.communicators();
        let id = |communicator: CommIdx| communicators[communicator.index()].id;
        Some(match transfer {
            Transfer::Send(to, bytes) => {
                let to = self.rank.outgoing()[to.index()];
                Operation::send(bytes.get(), to.peer.get(), self.tags.of(id(to.communicator), to.tag))
            }
            Transfer::Receive(source, bytes) => {
                let (peer, tag, communicator) = match source {
                    Source::ProcNull => return None,
                    Source::Rank(from) => {
                        let from = self.rank.incoming()[from.index()];
                        (Some(from.peer), from.tag, from.communicator)
                    }
                    Source::Any { tag, communicator, recorded } => (recorded, tag, communicator),
                };
                let tag = tag.map(|tag| self.tags.of(id(communicator), tag));
                Operation { peer: peer.map(Rank::get), tag, ..Operation::receive(bytes.get(), 0, 0) }
            }
        })
    }

    fn send_recv(&mut self, to: Option<(OutIdx, Bytes)>, from: Option<Source>, recv_bytes: Bytes) {
        let send = to.map(|(to, bytes)| Transfer::Send(to, bytes));
        let receive = from.map(|from| Transfer::Receive(from, recv_bytes));
        let both = [send, receive].map(|transfer| transfer.and_then(|transfer| self.operation(transfer)));
        let numbers: Vec<u32> = both.into_iter().flatten().map(|operation| self.begin(operation)).collect();
        if !numbers.is_empty() {
            self.last = numbers.into_iter().map(|number| (number, After::End)).collect();
        }
    }

    /// Joins the operations of requests.
    fn wait(&mut self, slots: &[Slot]) {
        let ends: Vec<u32> = slots.iter().filter_map(|slot| self.pending.remove(slot)).flatten().collect();
        match (&ends[..], &self.last[..]) {
            ([], _) => {}
            // Nothing came between.
            ([end], [(last, After::Start)]) if end == last => self.last = vec![(*end, After::End)],
            _ => {
                self.last.extend(ends.into_iter().map(|end| (end, After::End)));
                let number = self.begin(Operation::calculate(0));
                self.last = vec![(number, After::End)];
            }
        }
    }

    fn collective(&mut self, operation: &Collective, communicator: CommIdx, slot: Option<Slot>) {
        let members = &self.rank.communicators()[communicator.index()];
        let rounds = rounds(operation, members.rank, members.group.len());
        self.exchange(&rounds, communicator, slot);
    }

    /// Adds rounds of messages on a communicator, each after the one before; those of a nonblocking operation beside what follows.
    fn exchange(&mut self, rounds: &[Vec<Message>], communicator: CommIdx, slot: Option<Slot>) {
        let members = &self.rank.communicators()[communicator.index()];
        let tag = self.tags.number(members.id, None);
        let before = self.last.clone();
        let mut first = None;
        for round in rounds.iter().filter(|round| !round.is_empty()) {
            let begin = |message: &Message| {
                let (peer, bytes) = match *message {
                    Message::Send(peer, bytes) | Message::Receive(peer, bytes) => (peer, bytes),
                };
                let peer = members.group.member(peer).get();
                self.begin(match message {
                    Message::Send(..) => Operation::send(bytes, peer, tag),
                    Message::Receive(..) => Operation::receive(bytes, peer, tag),
                })
            };
            let numbers: Vec<u32> = round.iter().map(begin).collect();
            first.get_or_insert(numbers[0]);
            self.last = numbers.into_iter().map(|number| (number, After::End)).collect();
        }
        if let (Some(slot), Some(first)) = (slot, first) {
            let ends = self.last.iter().map(|(number, _)| *number).collect();
            self.pending.insert(slot, ends);
            // The first message starts when what is before it permits; so does what follows.
            self.last = before;
            self.last.push((first, After::Start));
        }
    }
}
