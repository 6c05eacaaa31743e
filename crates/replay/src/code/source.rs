//! The source of the actions of a rank that runs a program in code.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use mpi_model::{ActionSource, Reply, Selection, Status};
use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, CommIdx, CommunicatorCall, RankTrace, SendMode, Slot, Source, TableWriter, Tag,
    check_amount, check_size,
};

use super::communicator::{Division, Membership, divide};
use super::data::{Data, Message, Values};
use super::exchange::Exchange;
use super::mpi::{Mpi, lock};
use super::operation::{Answer, Dialogue, Filter, Operation, Receive, Send};
use super::{CodeProgram, RankFuture};

/// The source of the actions of a rank: its program, and what is kept to answer it.
pub(super) struct RankSource<'t> {
    me: Rank,
    trace: &'t RankTrace,
    writer: TableWriter<'t>,
    selection: Arc<Selection>,
    exchange: Arc<Exchange>,
    dialogue: Arc<Mutex<Dialogue>>,
    /// `None` after its end.
    program: Option<RankFuture>,
    /// Call in progress, with its communicator.
    awaited: Option<(CommIdx, Awaited)>,
    /// Requests that are not complete, each with the communicator of its receive.
    requests: FxHashMap<Slot, Option<CommIdx>>,
    /// Number of messages sent so far in each channel.
    sent: Vec<u64>,
    /// Number of operations with data so far on each communicator.
    operations: FxHashMap<CommIdx, u64>,
    /// Number of communicators of which the rank is the first member.
    led: u32,
}

/// What is to be told at the end of a call.
enum Awaited {
    Nothing,
    /// The message of a blocking receive.
    Message,
    /// The message that a probe has found.
    Found,
    /// Those of these requests that are complete.
    Completed(Vec<Slot>),
    /// The data of one member, or of all.
    Values {
        values: Values,
        root: Option<u32>,
        name: &'static str,
    },
    Membership {
        divisions: Values,
    },
}

impl<'t> RankSource<'t> {
    pub(super) fn new(
        me: Rank,
        trace: &'t RankTrace,
        program: &CodeProgram,
        selection: Arc<Selection>,
        exchange: Arc<Exchange>,
    ) -> Self {
        let dialogue: Arc<Mutex<Dialogue>> = Arc::default();
        let world = trace.communicator(CommIdx::WORLD);
        let membership =
            Membership { index: CommIdx::WORLD, rank: world.rank, group: Arc::clone(&world.group) };
        let writer = TableWriter::new(trace).expect("the trace of a program grows");
        let future = (program.rank)(Mpi::new(Arc::clone(&dialogue), membership));
        Self {
            me,
            trace,
            writer,
            selection,
            exchange,
            dialogue,
            program: Some(future),
            awaited: None,
            requests: FxHashMap::default(),
            sent: Vec::new(),
            operations: FxHashMap::default(),
            led: 0,
        }
    }

    /// Returns what the program is told of its last call.
    fn answer(&mut self, reply: Reply<'_>) -> Result<Option<Answer>, Box<str>> {
        let Some((on, awaited)) = self.awaited.take() else { return Ok(None) };
        let mut answer = Answer::default();
        match awaited {
            Awaited::Nothing => {}
            Awaited::Message => {
                answer.message = reply.received().map(|status| self.take_message(status, on));
            }
            Awaited::Found => {
                answer.message =
                    reply.found().map(|status| self.message(status, on, status.bytes.get().into()));
            }
            Awaited::Completed(slots) => {
                let completed = slots.into_iter().filter(|&slot| reply.is_completed(slot));
                answer.completed = completed.map(|slot| (slot, self.complete(slot, reply))).collect();
            }
            Awaited::Values { values, root, name } => {
                let is_there = match root {
                    Some(root) => values.0[root as usize].get().is_some(),
                    None => values.iter().count() == values.0.len(),
                };
                if !is_there {
                    return Err(format!("{name}: it has ended before all values were there, because operations of 0 B exchange no messages: give the data a size").into());
                }
                answer.values = Some(values);
            }
            Awaited::Membership { divisions } => answer.membership = self.join(on, &divisions)?,
        }
        Ok(Some(answer))
    }

    /// Makes the communicator of the rank after a division.
    fn join(&mut self, parent: CommIdx, divisions: &Values) -> Result<Option<Membership>, Box<str>> {
        let parent = &self.trace.communicator(parent).group;
        let Some(communicator) = divide((self.me, self.exchange.ranks()), parent, divisions)? else {
            return Ok(None);
        };
        self.selection.check(communicator.group.len()).map_err(|error| format!("split: {error}"))?;
        self.led += u32::from(communicator.rank == 0);
        let (rank, group) = (communicator.rank, Arc::clone(&communicator.group));
        let index = self.writer.communicator(communicator);
        Ok(Some(Membership { index, rank, group }))
    }

    /// Ends a request that is complete; returns its message if it is a receive.
    fn complete(&mut self, slot: Slot, reply: Reply<'_>) -> Option<Message> {
        lock(&self.dialogue).free_slot(slot);
        let on = self.requests.remove(&slot).flatten()?;
        reply.status(slot).map(|status| self.take_message(status, on))
    }

    /// Returns a message that has been received, with its data.
    fn take_message(&self, status: Status, on: CommIdx) -> Message {
        let Status { source, tag, bytes, number } = status;
        let key = (source, tag.get() as u32, self.trace.communicator(on).id, number);
        let data = self.exchange.take(self.me, key, bytes.get());
        self.message(status, on, data)
    }

    fn message(&self, Status { source, tag, .. }: Status, on: CommIdx, data: Data) -> Message {
        let source = self.trace.communicator(on).group.position(source);
        Message { source: source.expect("messages are from members"), tag: tag.get() as u32, data }
    }

    /// Returns the action of a call.
    fn begin(&mut self, on: CommIdx, operation: Operation) -> Result<Action, String> {
        let mut awaited = Awaited::Nothing;
        let action = match operation {
            Operation::Compute { flops } => Action::Compute { flops: check("compute", check_amount(flops))? },
            Operation::Sleep { seconds } => Action::Sleep { seconds: check("sleep", check_amount(seconds))? },
            Operation::Send(send) => self.send(on, send)?,
            Operation::Receive(Receive { filter, bytes, slot }) => {
                let from = self.source("receive", on, filter)?;
                let bytes = check("receive", check_size(Bytes::new(bytes)))?;
                match slot {
                    Some(slot) => {
                        self.requests.insert(slot, Some(on));
                        self.call(Call::Irecv { from, bytes, slot })
                    }
                    None => {
                        awaited = Awaited::Message;
                        self.call(Call::Recv { from, bytes })
                    }
                }
            }
            Operation::Wait { slot } => {
                awaited = Awaited::Completed(vec![slot]);
                Action::Wait { slot }
            }
            Operation::WaitAll { slots } => {
                let action = self.call(Call::Waitall { slots: slots.iter().copied().collect() });
                awaited = Awaited::Completed(slots);
                action
            }
            Operation::WaitAny { slots } => {
                // Which one is to be found: any of them stands for one.
                let done = slots.first().copied();
                let action = self.call(Call::Waitany { slots: slots.iter().copied().collect(), done });
                awaited = Awaited::Completed(slots);
                action
            }
            Operation::Test { slot } => {
                awaited = Awaited::Completed(vec![slot]);
                Action::Test { slot }
            }
            Operation::Probe { filter, waits } => {
                let from = self.source("probe", on, filter)?;
                awaited = Awaited::Found;
                self.call(if waits { Call::Probe { from } } else { Call::Iprobe { from, found: false } })
            }
            Operation::Collective { operation, slot, data } => {
                let (name, root) = (operation.name(), operation.root().map(Rank::get));
                let id = check(name, self.writer.collective(operation, on))?;
                if let Some(data) = data {
                    awaited = Awaited::Values { values: self.contribute(on, data), root, name };
                }
                if let Some(slot) = slot {
                    self.requests.insert(slot, None);
                }
                match (on, slot) {
                    (CommIdx::WORLD, None) => Action::Collective(id),
                    _ => self.call(Call::Collective { operation: id, communicator: on, slot }),
                }
            }
            Operation::Split { color, key } => {
                let division = Data::of(Division { color, key, led: self.led });
                awaited = Awaited::Membership { divisions: self.contribute(on, division) };
                self.call(Call::NewCommunicator { parent: on, new: None, kind: CommunicatorCall::Split })
            }
        };
        self.awaited = Some((on, awaited));
        Ok(action)
    }

    fn call(&mut self, call: Call) -> Action {
        Action::Call(self.writer.call(call))
    }

    fn send(&mut self, on: CommIdx, Send { to, tag, data, mode, slot }: Send) -> Result<Action, String> {
        let peer = self.peer("send", on, to)?;
        let name = tag_of("send", tag)?;
        let bytes = check("send", check_size(Bytes::new(data.bytes())))?;
        let to = self.writer.outgoing(peer, name, on);
        if self.sent.len() <= to.index() {
            self.sent.resize(to.index() + 1, 0);
        }
        let number = &mut self.sent[to.index()];
        let key = (self.me, tag, self.trace.communicator(on).id, *number);
        *number += 1;
        self.exchange.put(peer, key, data);
        Ok(match (slot, mode) {
            (Some(slot), _) => {
                self.requests.insert(slot, None);
                match mode {
                    SendMode::Standard => Action::Isend { to, bytes, slot },
                    _ => self.call(Call::Isend { mode, to: Some(to), bytes, slot }),
                }
            }
            (None, SendMode::Standard) => Action::Send { to, bytes },
            (None, _) => self.call(Call::Send { mode, to: Some(to), bytes }),
        })
    }

    /// Contributes data to the next operation on a communicator; returns the places of the data of all members.
    fn contribute(&mut self, on: CommIdx, data: Data) -> Values {
        let number = self.operations.entry(on).or_default();
        let communicator = self.trace.communicator(on);
        let (key, member) = ((communicator.id, *number), (communicator.rank, communicator.group.len()));
        *number += 1;
        Values(self.exchange.contribute(key, member, data))
    }

    /// Returns the rank in the world of a rank of a communicator.
    fn peer(&self, call: &str, on: CommIdx, rank: u32) -> Result<Rank, String> {
        let group = &self.trace.communicator(on).group;
        match rank < group.len() {
            true => Ok(group.member(rank)),
            false => Err(format!("{call}: a peer is rank {rank}, expected one below {}", group.len())),
        }
    }

    fn source(&mut self, call: &str, on: CommIdx, Filter { source, tag }: Filter) -> Result<Source, String> {
        let tag = tag.map(|tag| tag_of(call, tag)).transpose()?;
        Ok(match source {
            Some(source) => Source::Rank(self.writer.incoming(self.peer(call, on, source)?, tag, on)),
            None => Source::Any { tag, communicator: on, recorded: None },
        })
    }

    /// Ends the program: waits for the requests that it has left.
    fn end(&mut self) -> Option<Action> {
        let left: BTreeSet<Slot> = std::mem::take(&mut self.requests).into_keys().collect();
        (!left.is_empty()).then(|| self.call(Call::Waitall { slots: left.into_iter().collect() }))
    }
}

impl ActionSource for RankSource<'_> {
    fn next(&mut self, reply: Reply<'_>) -> Result<Option<Action>, Box<str>> {
        let answer = self.answer(reply)?;
        let Some(program) = &mut self.program else { return Ok(self.end()) };
        {
            let mut dialogue = lock(&self.dialogue);
            dialogue.clock = reply.clock();
            dialogue.answer = answer;
        }
        let is_ended = program.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let mut dialogue = lock(&self.dialogue);
        let (mistake, operation) = (dialogue.mistake.take(), dialogue.operation.take());
        drop(dialogue);
        if let Some(mistake) = mistake {
            return Err(mistake);
        }
        if is_ended {
            self.program = None;
            return Ok(self.end());
        }
        let Some((on, operation)) = operation else {
            return Err(
                "the program awaits something else than a call of its Mpi: only these end in simulated time"
                    .into(),
            );
        };
        Ok(Some(self.begin(on, operation)?))
    }

    fn slots(&self) -> u32 {
        // Grows in few steps.
        lock(&self.dialogue).slots().next_power_of_two()
    }
}

/// Names the call in an error.
fn check<T>(call: &str, result: Result<T, impl std::fmt::Display>) -> Result<T, String> {
    result.map_err(|error| format!("{call}: {error}"))
}

fn tag_of(call: &str, tag: u32) -> Result<Tag, String> {
    let found = i32::try_from(tag);
    found.map(Tag::new).map_err(|_| format!("{call}: the tag is {tag}, expected at most {}", i32::MAX))
}
