//! The program of a rank: its records, together where they belong to one call.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    CallOp, CommId, CommunicatorCall, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Tag, Unmodelled,
};

use super::super::collectives::communicator_of;
use super::super::labels::LabelId;
use super::super::{LineError, ParaverError};
use super::Shared;
use super::record::{CollectiveKindOfCall, CollectiveRecord, Content, Message, MessageKind};
use crate::timed::{Function, Requests};

/// Operations with the numbers of their lines.
type Ops = Vec<(Op, u64)>;

/// The program of a rank up to the current record.
pub(super) struct Task {
    rank: Rank,
    /// The call that has begun, with its records so far.
    call: Option<Call>,
    /// True if the communicators are made.
    has_communicators: bool,
    /// Requests that are not complete, in the order of their posting.
    pending: Vec<Pending>,
    next_request: u32,
    /// Number of collective calls so far on each communicator.
    used: FxHashMap<usize, usize>,
}

struct Call {
    label: LabelId,
    event: u64,
    line: u64,
    records: Vec<(Content, u64)>,
}

/// A request that is not complete.
struct Pending {
    request: RequestName,
    key: Key,
}

/// What a wait says of its request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    /// No record tells when it is complete.
    Unknown,
    Receive(Option<Rank>, Option<Tag>, u64),
    Collective(u64, LabelId),
}

impl Task {
    pub(super) fn new(rank: Rank) -> Self {
        Self {
            rank,
            call: None,
            has_communicators: false,
            pending: Vec::new(),
            next_request: 0,
            used: FxHashMap::default(),
        }
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    /// Takes the next record.
    pub(super) fn record(
        &mut self,
        shared: &Shared,
        content: Content,
        line: u64,
        ops: &mut Ops,
    ) -> Result<(), LineError> {
        match (content, &mut self.call) {
            (Content::Nothing, _) => Ok(()),
            (Content::Begin { event, value }, None) => {
                let label = shared.labels.find(event, value).map_err(|kind| kind.at(line))?;
                self.call = Some(Call { label, event, line, records: Vec::new() });
                Ok(())
            }
            (Content::Begin { event, value }, Some(outer)) => {
                let label = shared.labels.find(event, value).map_err(|kind| kind.at(line))?;
                let name = |label| shared.labels.name(label).to_owned();
                let (rank, name, outer, begin) = (self.rank, name(label), name(outer.label), outer.line);
                Err(ParaverError::NestedCall { rank, name, outer, line: begin }.at(line))
            }
            (Content::End { event }, Some(call)) if call.event == event => self.finish(shared, ops),
            (Content::End { .. }, _) => Ok(()),
            (_, Some(call)) => {
                call.records.push((content, line));
                Ok(())
            }
            (_, None) => self.single(shared, content, None, line, ops).map_err(|kind| kind.at(line)),
        }
    }

    /// Ends the call that has begun.
    pub(super) fn finish(&mut self, shared: &Shared, ops: &mut Ops) -> Result<(), LineError> {
        let Some(call) = self.call.take() else { return Ok(()) };
        self.end(shared, &call, ops)
    }

    fn end(&mut self, shared: &Shared, call: &Call, ops: &mut Ops) -> Result<(), LineError> {
        let (function, line) = (shared.labels.function(call.label), call.line);
        let (mut mode, mut waits) = (None, None);
        match function {
            Function::Init => self.emit(shared, Op::Init, line, ops),
            Function::SendRecv => return self.send_recv(shared, call, ops),
            Function::Send(of) | Function::Isend(of) => mode = Some(of),
            Function::Wait(_) | Function::Test(_) => waits = Some(Vec::new()),
            _ => {}
        }
        for &(content, line) in &call.records {
            let key = self.awaited(shared, content).map_err(|kind| kind.at(line))?;
            let done = match (key, &mut waits) {
                (Some(key), Some(waits)) => self.complete(shared, key).map(|request| waits.push(request)),
                _ => self.single(shared, content, mode, line, ops),
            };
            done.map_err(|kind| kind.at(line))?;
        }
        let unmodelled = || {
            let call = Unmodelled::new(shared.labels.name(call.label)).map_err(ParaverError::from);
            call.map(|call| Op::Call(CallOp::Unmodelled(call))).map_err(|kind| kind.at(line))
        };
        match (function, waits) {
            (Function::Init, _) => {}
            (Function::Finalize, _) => self.emit(shared, Op::Finalize, line, ops),
            (Function::Wait(requests), Some(done)) => self.wait(shared, requests, done, line, ops),
            (Function::Test(_), Some(done)) if !done.is_empty() => {
                let op = CallOp::Testsome { requests: done.clone(), done };
                self.emit(shared, Op::Call(op), line, ops);
            }
            _ if !call.records.is_empty() => {}
            (Function::Local | Function::SendInit(_) | Function::RecvInit | Function::Free, _)
            | (Function::Start, _) => self.emit(shared, Op::Communicator, line, ops),
            (Function::Send(mode), _) => {
                let bytes = Bytes::ZERO;
                self.emit(shared, Op::Call(CallOp::Send { to: TO_NULL, mode, bytes }), line, ops);
            }
            (Function::Recv, _) => {
                let bytes = Bytes::ZERO;
                self.emit(shared, Op::Call(CallOp::Recv { from: FROM_NULL, bytes }), line, ops);
            }
            (Function::Isend(mode), _) => {
                let (request, bytes) = (Some(self.post(Key::Unknown)), Bytes::ZERO);
                let op = CallOp::Isend { to: TO_NULL, request, mode, bytes };
                self.emit(shared, Op::Call(op), line, ops);
            }
            (Function::Irecv, _) => {
                let (request, bytes) = (Some(self.post(Key::Unknown)), Bytes::ZERO);
                self.emit(shared, Op::Call(CallOp::Irecv { from: FROM_NULL, request, bytes }), line, ops);
            }
            _ => self.emit(shared, unmodelled()?, line, ops),
        }
        Ok(())
    }

    /// Joins a send and a receive; one that is missing has the peer `MPI_PROC_NULL`.
    fn send_recv(&mut self, shared: &Shared, call: &Call, ops: &mut Ops) -> Result<(), LineError> {
        let (mut send, mut receive) = (None, None);
        for &(content, line) in &call.records {
            match content {
                Content::Message { message, kind: MessageKind::Send { .. }, .. } if send.is_none() => {
                    send = Some(send_to(shared, message).map_err(|kind| kind.at(line))?);
                }
                Content::Message { message, kind: MessageKind::Recv | MessageKind::Irecv, .. }
                    if receive.is_none() =>
                {
                    receive = Some(recv_from(shared, message).map_err(|kind| kind.at(line))?);
                }
                // The wait for that receive.
                Content::Message { kind: MessageKind::Wait, .. } => {}
                _ => self.single(shared, content, None, line, ops).map_err(|kind| kind.at(line))?,
            }
        }
        let ((to, send_bytes), (from, recv_bytes)) =
            (send.unwrap_or((TO_NULL, Bytes::ZERO)), receive.unwrap_or((FROM_NULL, Bytes::ZERO)));
        let op = CallOp::SendRecv { to, from, send_bytes, recv_bytes };
        self.emit(shared, Op::Call(op), call.line, ops);
        Ok(())
    }

    /// Waits for the requests of records, and for those of which no record tells: for all, or else for the oldest one.
    fn wait(
        &mut self,
        shared: &Shared,
        requests: Requests,
        mut done: Vec<RequestName>,
        line: u64,
        ops: &mut Ops,
    ) {
        let limit = match requests {
            Requests::All => usize::MAX,
            Requests::One | Requests::Some => usize::from(done.is_empty()),
        };
        let mut left = limit;
        self.pending.retain(|pending| {
            let is_done = pending.key == Key::Unknown && left > 0;
            if is_done {
                left -= 1;
                done.push(pending.request);
            }
            !is_done
        });
        let op = match (requests, &done[..]) {
            (Requests::All, _) if self.pending.is_empty() => Op::WaitAll,
            (_, []) => return,
            (_, &[request]) if requests != Requests::All => Op::Call(CallOp::Wait { request }),
            _ => Op::Call(CallOp::Waitall { requests: done }),
        };
        self.emit(shared, op, line, ops);
    }

    /// Takes a record by itself.
    fn single(
        &mut self,
        shared: &Shared,
        content: Content,
        mode: Option<SendMode>,
        line: u64,
        ops: &mut Ops,
    ) -> Result<(), ParaverError> {
        let op = match content {
            Content::Computation { nanos } => Op::Compute { flops: nanos },
            Content::Message {
                message, kind: MessageKind::Send { is_synchronous, is_immediate }, ..
            } => {
                let (to, bytes) = send_to(shared, message)?;
                let recorded = if is_synchronous { SendMode::Synchronous } else { SendMode::Standard };
                let mode = mode.unwrap_or(recorded);
                if is_immediate {
                    let request = Some(self.post(Key::Unknown));
                    Op::Call(CallOp::Isend { to, request, mode, bytes })
                } else {
                    Op::Call(CallOp::Send { to, mode, bytes })
                }
            }
            Content::Message { message, kind: MessageKind::Recv, .. } => {
                let (from, bytes) = recv_from(shared, message)?;
                Op::Call(CallOp::Recv { from, bytes })
            }
            Content::Message { message, kind: MessageKind::Irecv, .. } => {
                let (from, bytes) = recv_from(shared, message)?;
                let request = Some(self.post(key(message)));
                Op::Call(CallOp::Irecv { from, request, bytes })
            }
            Content::Collective(record) if record.kind != CollectiveKindOfCall::Wait => {
                self.collective(shared, record)?
            }
            _ => match self.awaited(shared, content)? {
                Some(key) => {
                    let request = self.complete(shared, key)?;
                    Op::Call(CallOp::Wait { request })
                }
                None => return Ok(()),
            },
        };
        self.emit(shared, op, line, ops);
        Ok(())
    }

    fn collective(&mut self, shared: &Shared, record: CollectiveRecord) -> Result<Op, ParaverError> {
        let Shared { labels, communicators, rounds, .. } = shared;
        let (label, fields) = record.label(labels, self.rank)?;
        let (index, position) = communicator_of(communicators, labels, self.rank, label, &fields)?;
        let used = self.used.entry(index).or_default();
        let round = *used;
        *used += 1;
        let Function::Collective { kind, .. } = labels.function(label) else {
            unreachable!("all operations of records are collective");
        };
        let operation = rounds.operation(index, round, position, kind);
        let is_nonblocking = record.kind == CollectiveKindOfCall::Nonblocking;
        let request = is_nonblocking.then(|| self.post(Key::Collective(record.communicator, label)));
        let communicator = communicators.list[index].id;
        Ok(Op::Call(CallOp::Collective { operation, communicator, request }))
    }

    /// Returns the request for which a record waits.
    fn awaited(&self, shared: &Shared, content: Content) -> Result<Option<Key>, ParaverError> {
        Ok(match content {
            Content::Message { message, kind: MessageKind::Wait, .. } => Some(key(message)),
            Content::Collective(record) if record.kind == CollectiveKindOfCall::Wait => {
                let (label, _) = record.label(&shared.labels, self.rank)?;
                Some(Key::Collective(record.communicator, label))
            }
            _ => None,
        })
    }

    fn post(&mut self, key: Key) -> RequestName {
        let request = RequestName::new(self.next_request);
        self.next_request += 1;
        self.pending.push(Pending { request, key });
        request
    }

    /// Completes the oldest pending request with a key.
    fn complete(&mut self, shared: &Shared, key: Key) -> Result<RequestName, ParaverError> {
        match self.pending.iter().position(|pending| pending.key == key) {
            Some(index) => Ok(self.pending.remove(index).request),
            None => {
                let what = match key {
                    Key::Collective(communicator, label) => {
                        format!("{} on communicator {communicator}", shared.labels.name(label))
                    }
                    Key::Receive(peer, tag, communicator) => {
                        let peer = peer.map_or("any task".to_owned(), |peer| format!("task {peer}"));
                        let tag = tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"));
                        format!("a receive from {peer} with {tag} on communicator {communicator}")
                    }
                    Key::Unknown => "a send".to_owned(),
                };
                Err(ParaverError::NothingPending { what })
            }
        }
    }

    /// Adds an operation. Communicators are made before the first one that may use them, by all their members in the same order.
    fn emit(&mut self, shared: &Shared, op: Op, line: u64, ops: &mut Ops) {
        if !self.has_communicators && !matches!(op, Op::Init | Op::Compute { .. }) {
            self.has_communicators = true;
            for (communicator, is_used) in shared.communicators.list.iter().zip(&shared.are_used) {
                let is_own = communicator.group.position(self.rank).is_some();
                if *is_used && is_own && communicator.id != CommId::WORLD {
                    let new = Some((communicator.id, Arc::clone(&communicator.group)));
                    let (parent, kind) = (CommId::WORLD, CommunicatorCall::CreateGroup);
                    ops.push((Op::Call(CallOp::NewCommunicator { parent, new, kind }), line));
                }
            }
        }
        ops.push((op, line));
    }
}

const TO_NULL: SendTo = SendTo { peer: None, tag: Tag::new(0), communicator: CommId::WORLD };
const FROM_NULL: RecvFrom = RecvFrom::on_world(Peer::ProcNull, Some(Tag::new(0)));

fn key(message: Message) -> Key {
    Key::Receive(message.peer, message.tag, message.communicator)
}

fn send_to(shared: &Shared, message: Message) -> Result<(SendTo, Bytes), ParaverError> {
    let communicator = shared.communicator(message.communicator)?;
    // A send names its destination and its tag.
    let tag = message.tag.unwrap_or(Tag::new(0));
    Ok((SendTo { peer: message.peer, tag, communicator }, message.bytes))
}

fn recv_from(shared: &Shared, message: Message) -> Result<(RecvFrom, Bytes), ParaverError> {
    let communicator = shared.communicator(message.communicator)?;
    let peer = message.peer.map_or(Peer::Any { recorded: None }, Peer::Rank);
    Ok((RecvFrom { peer, tag: message.tag, communicator }, message.bytes))
}
