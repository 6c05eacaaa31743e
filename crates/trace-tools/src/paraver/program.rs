//! The program of a rank: its calls, and the time between them.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{
    CallOp, CommId, CommunicatorCall, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Tag, TraceError,
    Unmodelled,
};

use super::ParaverError;
use super::call::Call;
use super::collectives::{Rounds, communicator_of};
use super::messages::Assigned;
use super::recording::{Recording, Task};
use crate::timed::{Between, Function, Requests, TimedProgram};

/// Writes the program of a rank.
pub(super) fn write(
    recording: &Recording,
    rounds: &Rounds,
    program: &mut TimedProgram<'_>,
) -> Result<(), TraceError> {
    let rank = program.rank();
    let task = &recording.tasks[rank.index()];
    let (sent, received, pending, used) =
        (&task.sent[..], &task.received[..], Vec::new(), FxHashMap::default());
    let mut states = States { task, next: 0 };
    let mut calls = Calls { recording, rounds, rank, sent, received, pending, next_request: 0, used };
    for (index, call) in task.calls.iter().enumerate() {
        states.pass_time(program, call.begin, call.line)?;
        calls.call(program, index, call).map_err(|kind| program.error(call.line, kind))?;
        program.leave(call.end, call.line)?;
    }
    states.pass_time(program, task.end(), task.states.last().map_or(0, |state| state.line))
}

/// The states of a rank from the current one on.
struct States<'a> {
    task: &'a Task,
    /// Index of the first state that may end later than now.
    next: usize,
}

impl States<'_> {
    /// Computes and sleeps until a call. `line` is that of a time without a state.
    fn pass_time(&mut self, program: &mut TimedProgram<'_>, until: u64, line: u64) -> Result<(), TraceError> {
        while program.now() < until {
            let states = &self.task.states;
            while states.get(self.next).is_some_and(|state| state.end <= program.now()) {
                self.next += 1;
            }
            let (end, between, line) = match states.get(self.next) {
                Some(state) if state.begin <= program.now() => (state.end, state.between, state.line),
                Some(state) => (state.begin, Between::Idleness, line),
                None => (until, Between::Idleness, line),
            };
            program.pass(end.min(until), between, line)?;
        }
        Ok(())
    }
}

/// The calls of a rank.
struct Calls<'a> {
    recording: &'a Recording,
    rounds: &'a Rounds,
    rank: Rank,
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

impl Calls<'_> {
    /// Adds the operations of a call.
    fn call(
        &mut self,
        program: &mut TimedProgram<'_>,
        index: usize,
        call: &Call,
    ) -> Result<(), ParaverError> {
        let (sent, received) = (take(&mut self.sent, index), take(&mut self.received, index));
        let name = self.recording.labels.name(call.label);
        match self.recording.labels.function(call.label) {
            Function::Init => program.push(Op::Init),
            Function::Finalize => program.push(Op::Finalize),
            Function::Local | Function::SendInit(_) | Function::RecvInit | Function::Free => {
                program.push(Op::Communicator)
            }
            Function::Send(mode) => {
                let (to, bytes) = send_to(only(sent, name, "sends")?);
                program.push(Op::Call(CallOp::Send { to, mode, bytes }));
            }
            Function::Recv => {
                let (from, bytes) = recv_from(only(received, name, "receives")?);
                program.push(Op::Call(CallOp::Recv { from, bytes }));
            }
            Function::SendRecv => {
                let (to, send_bytes) = send_to(only(sent, name, "sends")?);
                let (from, recv_bytes) = recv_from(only(received, name, "receives")?);
                program.push(Op::Call(CallOp::SendRecv { to, from, send_bytes, recv_bytes }));
            }
            Function::Isend(mode) => self.isend(program, only(sent, name, "sends")?, mode),
            Function::Irecv => self.irecv(program, only(received, name, "receives")?),
            Function::Start => {
                received.iter().for_each(|message| self.irecv(program, Some(message)));
                sent.iter().for_each(|message| self.isend(program, Some(message), SendMode::Standard));
                if received.is_empty() && sent.is_empty() {
                    program.push(Op::Communicator);
                }
            }
            Function::Wait(requests) => self.wait(program, call.end, requests),
            Function::Test(requests) => self.test(program, call.end, requests, name)?,
            Function::Collective { kind, is_nonblocking } => {
                self.collective(program, call, kind, is_nonblocking)?
            }
            Function::Other => program.push(unmodelled(name)?),
        }
        Ok(())
    }

    fn isend(&mut self, program: &mut TimedProgram<'_>, message: Option<&Assigned>, mode: SendMode) {
        let ((to, bytes), request) = (send_to(message), Some(self.post(None)));
        program.push(Op::Call(CallOp::Isend { to, request, mode, bytes }));
    }

    fn irecv(&mut self, program: &mut TimedProgram<'_>, message: Option<&Assigned>) {
        let arrival = message.map(|message| message.arrival);
        let ((from, bytes), request) = (recv_from(message), Some(self.post(arrival)));
        program.push(Op::Call(CallOp::Irecv { from, request, bytes }));
    }

    fn post(&mut self, arrival: Option<u64>) -> RequestName {
        let request = RequestName::new(self.next_request);
        self.next_request += 1;
        self.pending.push(Pending { request, arrival });
        request
    }

    fn wait(&mut self, program: &mut TimedProgram<'_>, end: u64, requests: Requests) {
        let mut done = self.arrived(end, requests);
        if requests == Requests::All || done.is_empty() {
            done.extend(self.without_arrival(requests));
        }
        let op = match (requests, &done[..]) {
            (Requests::One, &[request]) => CallOp::Wait { request },
            _ => CallOp::Waitall { requests: done.clone() },
        };
        self.complete(done);
        program.push(Op::Call(op));
    }

    fn test(
        &mut self,
        program: &mut TimedProgram<'_>,
        end: u64,
        requests: Requests,
        name: &str,
    ) -> Result<(), ParaverError> {
        let mut done = self.arrived(end, requests);
        if done.is_empty() {
            program.push(unmodelled(name)?);
            return Ok(());
        }
        if requests == Requests::All {
            done.extend(self.without_arrival(requests));
        }
        program.push(Op::Call(CallOp::Testsome { requests: done.clone(), done: done.clone() }));
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
        program: &mut TimedProgram<'_>,
        call: &Call,
        kind: CollectiveKind,
        is_nonblocking: bool,
    ) -> Result<(), ParaverError> {
        let Recording { communicators, labels, .. } = self.recording;
        let (index, position) =
            communicator_of(communicators, labels, self.rank, call.label, &call.collective)?;
        let communicator = &communicators.list[index];
        let used = self.used.entry(index).or_default();
        let round = *used;
        *used += 1;
        if round >= self.rounds.complete(index) {
            program.push(Op::Communicator);
            return Ok(());
        }
        let operation = self.rounds.operation(index, round, position, kind);
        let id = communicator.id;
        if round == 0 && id != CommId::WORLD {
            let new = Some((id, Arc::clone(&communicator.group)));
            let (parent, kind) = (CommId::WORLD, CommunicatorCall::CreateGroup);
            program.push(Op::Call(CallOp::NewCommunicator { parent, new, kind }));
        }
        let request = is_nonblocking.then(|| self.post(None));
        program.push(Op::Call(CallOp::Collective { operation, communicator: id, request }));
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
