//! The program of a rank: its calls, and the time between them.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{
    CallOp, CommId, CommunicatorCall, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Tag, Unmodelled,
};

use super::call::{Call, Function, Requests};
use super::collectives::{Rounds, communicator_of};
use super::messages::Assigned;
use super::recording::{Recording, Task};
use super::{LineError, ParaverError};

/// An operation of a rank.
pub(super) struct Step {
    pub(super) op: Op,
    /// Measured time \[ns\].
    pub(super) nanos: u64,
    /// Line of its record.
    pub(super) line: u64,
}

/// Nanoseconds per second.
pub(super) const NANOS: f64 = 1e9;

/// Makes the program of a rank.
pub(super) fn steps(recording: &Recording, rounds: &Rounds, rank: Rank) -> Result<Vec<Step>, LineError> {
    let task = &recording.tasks[rank.index()];
    let (sent, received) = (&task.sent[..], &task.received[..]);
    let (steps, pending, used) = (Vec::new(), Vec::new(), FxHashMap::default());
    let mut program = Program {
        recording,
        rounds,
        rank,
        task,
        steps,
        now: 0,
        next_state: 0,
        sent,
        received,
        pending,
        next_request: 0,
        used,
    };
    for (index, call) in task.calls.iter().enumerate() {
        program.pass_time(call.begin, call.line);
        program.call(index, call).map_err(|kind| kind.at(call.line))?;
        program.now = call.end;
    }
    program.pass_time(task.end(), task.states.last().map_or(0, |state| state.line));
    Ok(program.steps)
}

struct Program<'a> {
    recording: &'a Recording,
    rounds: &'a Rounds,
    rank: Rank,
    task: &'a Task,
    steps: Vec<Step>,
    /// End of the last step \[ns\].
    now: u64,
    /// Index of the first state that may end later than now.
    next_state: usize,
    /// Messages of the calls from the current one on.
    sent: &'a [Assigned],
    received: &'a [Assigned],
    /// Requests that are not complete, in the order of their posting.
    pending: Vec<Pending>,
    next_request: u32,
    /// Number of collective calls so far on each communicator.
    used: FxHashMap<usize, usize>,
}

/// A request that is not complete.
#[derive(Clone, Copy)]
struct Pending {
    request: RequestName,
    /// Time at which the message is received \[ns\]; unknown for all but receives.
    arrival: Option<u64>,
}

impl Program<'_> {
    /// Computes and sleeps until a call. `line` is that of a time without a state.
    fn pass_time(&mut self, until: u64, line: u64) {
        while self.now < until {
            let states = &self.task.states;
            while states.get(self.next_state).is_some_and(|state| state.end <= self.now) {
                self.next_state += 1;
            }
            let (end, is_running, line) = match states.get(self.next_state) {
                Some(state) if state.begin <= self.now => (state.end, state.is_running, state.line),
                Some(state) => (state.begin, false, line),
                None => (until, false, line),
            };
            let end = end.min(until);
            let nanos = end - self.now;
            let op = if is_running {
                Op::Compute { flops: nanos as f64 }
            } else {
                Op::Sleep { seconds: nanos as f64 / NANOS }
            };
            self.steps.push(Step { op, nanos, line });
            self.now = end;
        }
    }

    /// Adds the operations of a call; the last one takes its time, all others none.
    fn call(&mut self, index: usize, call: &Call) -> Result<(), ParaverError> {
        let (sent, received) = (take(&mut self.sent, index), take(&mut self.received, index));
        let (first, name) = (self.steps.len(), self.recording.labels.name(call.label));
        match self.recording.labels.function(call.label) {
            Function::Init => self.push(call, Op::Init),
            Function::Finalize => self.push(call, Op::Finalize),
            Function::Local => self.push(call, Op::Communicator),
            Function::Send(mode) => {
                let (to, bytes) = send_to(only(sent, name, "sends")?);
                self.push(call, Op::Call(CallOp::Send { to, mode, bytes }));
            }
            Function::Recv => {
                let (from, bytes) = recv_from(only(received, name, "receives")?);
                self.push(call, Op::Call(CallOp::Recv { from, bytes }));
            }
            Function::SendRecv => {
                let (to, send_bytes) = send_to(only(sent, name, "sends")?);
                let (from, recv_bytes) = recv_from(only(received, name, "receives")?);
                self.push(call, Op::Call(CallOp::SendRecv { to, from, send_bytes, recv_bytes }));
            }
            Function::Isend(mode) => self.isend(call, only(sent, name, "sends")?, mode),
            Function::Irecv => self.irecv(call, only(received, name, "receives")?),
            Function::Start => {
                received.iter().for_each(|message| self.irecv(call, Some(message)));
                sent.iter().for_each(|message| self.isend(call, Some(message), SendMode::Standard));
                if self.steps.len() == first {
                    self.push(call, Op::Communicator);
                }
            }
            Function::Wait(requests) => self.wait(call, requests),
            Function::Test(requests) => self.test(call, requests, name)?,
            Function::Collective { kind, is_nonblocking } => self.collective(call, kind, is_nonblocking)?,
            Function::Other => self.push(call, unmodelled(name)?),
        }
        if let Some(last) = self.steps.last_mut() {
            last.nanos = call.end - call.begin;
        }
        Ok(())
    }

    fn push(&mut self, call: &Call, op: Op) {
        self.steps.push(Step { op, nanos: 0, line: call.line });
    }

    fn isend(&mut self, call: &Call, message: Option<&Assigned>, mode: SendMode) {
        let ((to, bytes), request) = (send_to(message), Some(self.post(None)));
        self.push(call, Op::Call(CallOp::Isend { to, request, mode, bytes }));
    }

    fn irecv(&mut self, call: &Call, message: Option<&Assigned>) {
        let arrival = message.map(|message| message.arrival);
        let ((from, bytes), request) = (recv_from(message), Some(self.post(arrival)));
        self.push(call, Op::Call(CallOp::Irecv { from, request, bytes }));
    }

    fn post(&mut self, arrival: Option<u64>) -> RequestName {
        let request = RequestName::new(self.next_request);
        self.next_request += 1;
        self.pending.push(Pending { request, arrival });
        request
    }

    fn wait(&mut self, call: &Call, requests: Requests) {
        let mut done = self.arrived(call.end, requests);
        if requests == Requests::All || done.is_empty() {
            done.extend(self.without_arrival(requests));
        }
        let op = match (requests, &done[..]) {
            (Requests::One, &[request]) => CallOp::Wait { request },
            _ => CallOp::Waitall { requests: done.clone() },
        };
        self.complete(done);
        self.push(call, Op::Call(op));
    }

    fn test(&mut self, call: &Call, requests: Requests, name: &str) -> Result<(), ParaverError> {
        let mut done = self.arrived(call.end, requests);
        if done.is_empty() {
            self.push(call, unmodelled(name)?);
            return Ok(());
        }
        if requests == Requests::All {
            done.extend(self.without_arrival(requests));
        }
        self.push(call, Op::Call(CallOp::Testsome { requests: done.clone(), done: done.clone() }));
        self.complete(done);
        Ok(())
    }

    /// Returns the receives that are complete by a time, in the order of their completion.
    fn arrived(&self, time: u64, requests: Requests) -> Vec<RequestName> {
        let arrived =
            |pending: &Pending| Some((pending.arrival.filter(|arrival| *arrival <= time)?, pending.request));
        let mut arrived: Vec<_> = self.pending.iter().filter_map(arrived).collect();
        arrived.sort_unstable();
        let limit = if requests == Requests::One { 1 } else { arrived.len() };
        arrived.into_iter().map(|(_, request)| request).take(limit).collect()
    }

    /// Returns the oldest pending request other than of a receive, or all.
    fn without_arrival(&self, requests: Requests) -> Vec<RequestName> {
        let limit = if requests == Requests::All { self.pending.len() } else { 1 };
        let others = self.pending.iter().filter(|pending| pending.arrival.is_none());
        others.map(|pending| pending.request).take(limit).collect()
    }

    /// Removes requests from the pending ones.
    fn complete(&mut self, mut done: Vec<RequestName>) {
        done.sort_unstable();
        self.pending.retain(|pending| done.binary_search(&pending.request).is_err());
    }

    fn collective(
        &mut self,
        call: &Call,
        kind: CollectiveKind,
        is_nonblocking: bool,
    ) -> Result<(), ParaverError> {
        let (index, position) = communicator_of(self.recording, self.rank, call)?;
        let communicator = &self.recording.communicators.list[index];
        let used = self.used.entry(index).or_default();
        let round = *used;
        *used += 1;
        if round >= self.rounds.complete(index) {
            self.push(call, Op::Communicator);
            return Ok(());
        }
        let operation = self.rounds.operation(self.recording, index, round, position, kind);
        let id = communicator.id;
        if round == 0 && id != CommId::WORLD {
            let new = Some((id, Arc::clone(&communicator.group)));
            let (parent, kind) = (CommId::WORLD, CommunicatorCall::CreateGroup);
            self.push(call, Op::Call(CallOp::NewCommunicator { parent, new, kind }));
        }
        let request = is_nonblocking.then(|| self.post(None));
        self.push(call, Op::Call(CallOp::Collective { operation, communicator: id, request }));
        Ok(())
    }
}

/// Takes the messages of a call off the front of those of its rank.
fn take<'a>(messages: &mut &'a [Assigned], call: usize) -> &'a [Assigned] {
    let (taken, rest) = messages.split_at(messages.partition_point(|message| message.call <= call));
    *messages = rest;
    taken
}

/// Returns the message of a call that has at most one.
fn only<'a>(
    messages: &'a [Assigned],
    name: &str,
    verb: &'static str,
) -> Result<Option<&'a Assigned>, ParaverError> {
    match messages {
        [] => Ok(None),
        [message] => Ok(Some(message)),
        several => Err(ParaverError::SeveralMessages { name: name.to_owned(), verb, found: several.len() }),
    }
}

/// Returns the destination and the size of a message; without one the destination is `MPI_PROC_NULL`.
fn send_to(message: Option<&Assigned>) -> (SendTo, Bytes) {
    let (peer, tag, bytes) = message.map_or((None, Tag::new(0), Bytes::new(0)), |message| {
        (Some(message.peer), message.tag, message.bytes)
    });
    (SendTo { peer, tag, communicator: CommId::WORLD }, bytes)
}

/// Returns the source and the size of a message; without one the source is `MPI_PROC_NULL`.
fn recv_from(message: Option<&Assigned>) -> (RecvFrom, Bytes) {
    match message {
        Some(message) => (RecvFrom::on_world(Peer::Rank(message.peer), Some(message.tag)), message.bytes),
        None => (RecvFrom::on_world(Peer::ProcNull, Some(Tag::new(0))), Bytes::new(0)),
    }
}

fn unmodelled(name: &str) -> Result<Op, ParaverError> {
    Ok(Op::Call(CallOp::Unmodelled(Unmodelled::new(name)?)))
}
