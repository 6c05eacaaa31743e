//! The calls of a rank by the names of its recording: communicators, requests and ranks of communicators.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    CallOp, Collective, CommId, CommunicatorCall, FileCall, FileName, Group, Op, Peer, RecvFrom, RequestName,
    SendMode, SendTo, Tag, TraceError, Unmodelled,
};

use super::communicators::{Communicators, Given, Handle, Resolved, Split};
use super::{Between, Requests, StepNumber, TimedProgram};

/// A call does not fit the calls before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallsError {
    /// A communicator is used that no recorded call has made.
    #[error("{name} is on the communicator {communicator}, which no recorded call has made")]
    UnknownCommunicator {
        /// The function.
        name: String,
        /// Name of the communicator in the recording.
        communicator: u64,
    },
    /// A peer or root is not in the communicator.
    #[error("{name} has the peer or root {found} in a communicator of {ranks} ranks")]
    Peer {
        /// The function.
        name: String,
        /// The rank found.
        found: i64,
        /// Number of ranks of the communicator.
        ranks: u32,
    },
    /// The tag of a message is negative, or too large.
    #[error("{name} has the tag {found}, expected 0 to 2147483647")]
    Tag {
        /// The function.
        name: String,
        /// The tag found.
        found: i64,
    },
    /// A call or the time before it is too long.
    #[error("a call, or the time before it, takes {found} ns, expected at most {limit}")]
    Time {
        /// The time found \[ns\].
        found: u64,
        /// The longest time \[ns\].
        limit: u64,
    },
    /// A rank of a communicator is another one than the calls that made it say.
    #[error("rank {found} of the communicator by MPI_Comm_rank is rank {expected} by the calls that made it")]
    Reordered {
        /// The rank in the recording.
        found: i64,
        /// The rank by the calls.
        expected: u32,
    },
}

/// A peer in a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommPeer {
    ProcNull,
    Rank(i64),
    /// Any source, with the rank whose message was received if it is known.
    Any {
        recorded: Option<i64>,
    },
}

/// The envelope of a message by the names of the recording. A negative tag is any tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) peer: CommPeer,
    pub(crate) tag: i64,
    pub(crate) communicator: Handle,
}

/// What a wait or a test has completed.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    All,
    Nothing,
    /// The requests with these indices, in ascending order.
    Some(Vec<usize>),
}

/// The calls of a rank up to the current one, and the communicators and requests that it has by then.
pub(crate) struct Calls<'c, 'p, 'a> {
    communicators: &'c Communicators,
    program: &'p mut TimedProgram<'a>,
    /// The function of the current call, and the number of its line or record.
    name: String,
    line: u64,
    /// Number of calls so far that make communicators.
    created: usize,
    live: FxHashMap<Handle, Resolved>,
    has_own: bool,
    requests: FxHashMap<Handle, Posted>,
    unused: BinaryHeap<Reverse<u32>>,
    /// Number of names of requests so far.
    names: u32,
}

#[derive(Clone, Copy)]
struct Posted {
    name: RequestName,
    is_persistent: bool,
    /// The step of its receive, which is held until the message is known, and what is known of it.
    receive: Option<(StepNumber, Option<(RecvFrom, Bytes)>)>,
}

const BACKWARDS: &str = "a call begins before the end of the one before, which the replay puts after that";
const UNKNOWN_REQUEST: &str =
    "requests of no recorded call are completed, started or freed, which the replay does not do";
const POSTED_AGAIN: &str = "a request is posted again, though no recorded call has completed the one before, which the replay completes \
                            at the end of the rank";

impl<'c, 'p, 'a> Calls<'c, 'p, 'a> {
    /// Starts the calls of a rank.
    pub(crate) fn new(communicators: &'c Communicators, program: &'p mut TimedProgram<'a>) -> Self {
        Self {
            communicators,
            program,
            name: String::new(),
            line: 0,
            created: 0,
            live: FxHashMap::default(),
            has_own: false,
            requests: FxHashMap::default(),
            unused: BinaryHeap::new(),
            names: 0,
        }
    }

    /// Starts at an instant \[ns\]: no time passes before it.
    pub(crate) fn start_at(&mut self, at: u64) {
        self.program.start_at(at);
    }

    /// Enters a call at an instant \[ns\], after a computation.
    pub(crate) fn enter(&mut self, name: &str, line: u64, at: u64) -> Result<(), TraceError> {
        self.enter_after(Between::Computation, name, line, at)
    }

    /// Enters a call at an instant \[ns\], after a computation or something else.
    pub(crate) fn enter_after(
        &mut self,
        before: Between,
        name: &str,
        line: u64,
        at: u64,
    ) -> Result<(), TraceError> {
        self.name.clear();
        self.name.push_str(name);
        self.line = line;
        if at < self.program.now() {
            self.program.leave_out(line, 1, BACKWARDS);
        }
        self.program.pass(at, before, line)
    }

    /// Leaves the call at an instant \[ns\].
    pub(crate) fn leave(&mut self, at: u64) -> Result<(), TraceError> {
        self.program.leave(at, self.line)
    }

    /// Adds an operation to the call.
    pub(crate) fn push(&mut self, op: Op) {
        self.program.push(op);
    }

    /// Adds the call as one that no replay models.
    pub(crate) fn unmodelled(&mut self) -> Result<(), TraceError> {
        self.unmodelled_with("")
    }

    /// Adds the call as one that no replay models, with its arguments.
    pub(crate) fn unmodelled_with(&mut self, arguments: &str) -> Result<(), TraceError> {
        let text = format!("{} {arguments}", self.name);
        let call = Unmodelled::new(text.trim_end()).map_err(|kind| self.program.error(self.line, kind))?;
        self.push(Op::Call(CallOp::Unmodelled(call)));
        Ok(())
    }

    /// Notes that something is not in the program, so many times from a line or record on.
    pub(crate) fn leave_out(&mut self, line: u64, count: u64, what: &str) {
        self.program.leave_out(line, count, what);
    }

    /// Makes an error of the call.
    pub(crate) fn error(&self, kind: impl Into<Box<dyn Error + Send + Sync>>) -> TraceError {
        self.program.error(self.line, kind)
    }

    /// Returns a communicator, which is created before its first use if no call of the trace does that.
    pub(crate) fn communicator(&mut self, communicator: Handle) -> Result<Resolved, TraceError> {
        if let Some(live) = self.live.get(&communicator) {
            return Ok(live.clone());
        }
        let found = match self.communicators.given.get(&communicator) {
            None => {
                let name = self.name.clone();
                return Err(self.error(CallsError::UnknownCommunicator { name, communicator }));
            }
            Some(Given::World) => (CommId::WORLD, Arc::clone(&self.communicators.all)),
            Some(Given::Own) => {
                let own = self.communicators.own_of(self.program.rank());
                self.make_own(&own);
                own
            }
            Some(Given::Group(group)) => {
                self.make(group);
                group.clone()
            }
        };
        self.live.insert(communicator, found.clone());
        Ok(found)
    }

    /// Adds the creation of a communicator by its members alone.
    fn make(&mut self, communicator: &Resolved) {
        let (kind, parent, new) = (CommunicatorCall::CreateGroup, CommId::WORLD, Some(communicator.clone()));
        self.program.push(Op::Call(CallOp::NewCommunicator { kind, parent, new }));
    }

    fn make_own(&mut self, own: &Resolved) {
        if !std::mem::replace(&mut self.has_own, true) {
            self.make(own);
        }
    }

    /// Adds a call that makes a communicator.
    pub(crate) fn create(
        &mut self,
        parent: Handle,
        new: Option<Handle>,
        by: &Split,
    ) -> Result<(), TraceError> {
        let of_rank = self.communicators.created.get(self.program.rank().index());
        // A trace may count no such calls, and have one.
        let Some(made) = of_rank.and_then(|made| made.get(self.created)).cloned() else {
            let (name, communicator) = (self.name.clone(), new.unwrap_or(parent));
            return Err(self.error(CallsError::UnknownCommunicator { name, communicator }));
        };
        let (parent, _) = self.communicator(parent)?;
        self.created += 1;
        match &made {
            // Duplicates of MPI_COMM_SELF are the same one.
            Some(own) if own.0 == self.communicators.own_of(self.program.rank()).0 => {
                self.make_own(own);
                self.program.push(Op::Communicator);
            }
            made => {
                let new = made.clone();
                self.program.push(Op::Call(CallOp::NewCommunicator { kind: by.call(), parent, new }));
            }
        }
        self.live.extend(new.zip(made));
        Ok(())
    }

    /// Adds `MPI_Comm_free`.
    pub(crate) fn free_communicator(&mut self, communicator: Handle) {
        let freed = self.live.remove(&communicator).filter(|(id, _)| {
            *id != CommId::WORLD && *id != self.communicators.own_of(self.program.rank()).0
        });
        self.program.push(match freed {
            Some((communicator, _)) => Op::Call(CallOp::FreeCommunicator { communicator }),
            None => Op::Communicator,
        });
    }

    /// Checks the rank of the process in a communicator.
    pub(crate) fn check_rank(&mut self, communicator: Handle, found: i64) -> Result<(), TraceError> {
        let is_known =
            self.live.contains_key(&communicator) || self.communicators.given.contains_key(&communicator);
        let group = is_known.then(|| self.communicator(communicator)).transpose()?;
        self.program.push(Op::Communicator);
        let Some((_, group)) = group else { return Ok(()) };
        match group.position(self.program.rank()) {
            Some(expected) if i64::from(expected) != found => {
                Err(self.error(CallsError::Reordered { found, expected }))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn send(
        &mut self,
        envelope: Envelope,
        mode: SendMode,
        bytes: Bytes,
    ) -> Result<(), TraceError> {
        let to = self.send_to(envelope)?;
        self.program.push(Op::Call(CallOp::Send { to, mode, bytes }));
        Ok(())
    }

    pub(crate) fn isend(
        &mut self,
        envelope: Envelope,
        mode: SendMode,
        bytes: Bytes,
        request: Handle,
    ) -> Result<(), TraceError> {
        let to = self.send_to(envelope)?;
        let request = Some(self.post(request, false)?);
        self.program.push(Op::Call(CallOp::Isend { to, request, mode, bytes }));
        Ok(())
    }

    pub(crate) fn recv(&mut self, envelope: Envelope, bytes: Bytes) -> Result<(), TraceError> {
        let from = self.recv_from(envelope)?;
        self.program.push(Op::Call(CallOp::Recv { from, bytes }));
        Ok(())
    }

    pub(crate) fn irecv(
        &mut self,
        envelope: Envelope,
        bytes: Bytes,
        request: Handle,
    ) -> Result<(), TraceError> {
        let from = self.recv_from(envelope)?;
        let name = self.post(request, false)?;
        let op = Op::Call(CallOp::Irecv { from, request: Some(name), bytes });
        if from.peer == (Peer::Any { recorded: None }) {
            let step = self.program.hold(op, true);
            self.hold(request, (step, Some((from, bytes))));
        } else {
            self.program.push(op);
        }
        Ok(())
    }

    /// Adds a nonblocking receive or collective operation of which nothing is known before it is complete.
    #[cfg(feature = "otf2")]
    pub(crate) fn post_unknown(&mut self, request: Handle) -> Result<(), TraceError> {
        self.post(request, false)?;
        let step = self.program.hold(Op::Communicator, false);
        self.hold(request, (step, None));
        Ok(())
    }

    fn hold(&mut self, request: Handle, receive: (StepNumber, Option<(RecvFrom, Bytes)>)) {
        if let Some(posted) = self.requests.get_mut(&request) {
            posted.receive = Some(receive);
        }
    }

    /// Notes the source of the message of a receive from any source, which a status may have wrong.
    pub(crate) fn heard(&mut self, request: Handle, source: i64) -> Result<(), TraceError> {
        let Some(Posted { name, receive, .. }) = self.requests.get_mut(&request) else { return Ok(()) };
        let Some((step, Some((from, bytes)))) = *receive else { return Ok(()) };
        let (name, group) = (*name, self.live.values().find(|(id, _)| *id == from.communicator));
        let index = u32::try_from(source).ok();
        let recorded = group
            .zip(index)
            .and_then(|((_, group), index)| (index < group.len()).then(|| group.member(index)));
        *receive = None;
        let from = RecvFrom { peer: Peer::Any { recorded }, ..from };
        self.program.complete(step, Some(Op::Call(CallOp::Irecv { from, request: Some(name), bytes })))
    }

    /// Notes the message of a receive that was posted [without knowing it](Self::post_unknown).
    #[cfg(feature = "otf2")]
    pub(crate) fn received(
        &mut self,
        request: Handle,
        envelope: Envelope,
        bytes: Bytes,
    ) -> Result<(), TraceError> {
        let from = self.recv_from(envelope)?;
        let Some(Posted { name, receive, .. }) = self.requests.get_mut(&request) else { return Ok(()) };
        let (name, Some((step, _))) = (*name, receive.take()) else { return Ok(()) };
        self.program.complete(step, Some(Op::Call(CallOp::Irecv { from, request: Some(name), bytes })))
    }

    /// Forgets a request, which no call completes.
    #[cfg(feature = "otf2")]
    pub(crate) fn forget(&mut self, request: Handle) -> Result<(), TraceError> {
        match self.requests.remove(&request) {
            Some(posted) => self.release(posted),
            None => Ok(()),
        }
    }

    /// Returns the rank.
    #[cfg(feature = "otf2")]
    pub(crate) fn rank(&self) -> Rank {
        self.program.rank()
    }

    /// Passes the time until an instant \[ns\].
    #[cfg(feature = "otf2")]
    pub(crate) fn pass(&mut self, until: u64, between: Between, line: u64) -> Result<(), TraceError> {
        self.program.pass(until, between, line)
    }

    /// Notes the collective operation that was posted [without knowing it](Self::post_unknown).
    #[cfg(feature = "otf2")]
    pub(crate) fn completed(
        &mut self,
        request: Handle,
        communicator: Handle,
        operation: Collective,
    ) -> Result<(), TraceError> {
        let (communicator, _) = self.communicator(communicator)?;
        let Some(Posted { name, receive, .. }) = self.requests.get_mut(&request) else { return Ok(()) };
        let (request, Some((step, _))) = (Some(*name), receive.take()) else { return Ok(()) };
        self.program.complete(step, Some(Op::Call(CallOp::Collective { operation, communicator, request })))
    }

    /// Adds `MPI_Sendrecv`, with the sizes of the two messages.
    pub(crate) fn send_recv(
        &mut self,
        [to, from]: [Envelope; 2],
        [send_bytes, recv_bytes]: [Bytes; 2],
    ) -> Result<(), TraceError> {
        let (to, from) = (self.send_to(to)?, self.recv_from(from)?);
        self.program.push(Op::Call(CallOp::SendRecv { to, from, send_bytes, recv_bytes }));
        Ok(())
    }

    pub(crate) fn send_init(
        &mut self,
        envelope: Envelope,
        mode: SendMode,
        bytes: Bytes,
        request: Handle,
    ) -> Result<(), TraceError> {
        let to = self.send_to(envelope)?;
        let request = self.post(request, true)?;
        self.program.push(Op::Call(CallOp::SendInit { to, request, mode, bytes }));
        Ok(())
    }

    pub(crate) fn recv_init(
        &mut self,
        envelope: Envelope,
        bytes: Bytes,
        request: Handle,
    ) -> Result<(), TraceError> {
        let from = self.recv_from(envelope)?;
        let request = self.post(request, true)?;
        self.program.push(Op::Call(CallOp::RecvInit { from, request, bytes }));
        Ok(())
    }

    pub(crate) fn start(&mut self, requests: impl Iterator<Item = Option<Handle>>) {
        let requests = self.known(requests).into_iter().map(|(_, _, posted)| posted.name).collect();
        self.program.push(Op::Call(CallOp::Start { requests }));
    }

    pub(crate) fn free(&mut self, request: Handle) -> Result<(), TraceError> {
        match self.requests.remove(&request) {
            Some(posted) => {
                self.unused.push(Reverse(posted.name.get()));
                self.program.push(Op::Call(CallOp::Free { request: posted.name }));
                return self.release(posted);
            }
            None => {
                self.program.leave_out(self.line, 1, UNKNOWN_REQUEST);
                self.program.push(Op::Communicator);
            }
        }
        Ok(())
    }

    pub(crate) fn wait(
        &mut self,
        which: Requests,
        requests: impl Iterator<Item = Option<Handle>>,
        done: &Done,
    ) -> Result<(), TraceError> {
        let known = self.known(requests);
        let (requests, completed) = (names(&known), self.complete(&known, done)?);
        let first = completed.first().copied();
        self.program.push(match (which, &requests[..]) {
            (_, []) => Op::Communicator,
            (Requests::One, &[request]) if first.is_some() => Op::Call(CallOp::Wait { request }),
            (Requests::One, _) => Op::Call(CallOp::Waitany { requests, done: first }),
            (Requests::Some, _) => Op::Call(CallOp::Waitsome { requests, done: completed }),
            (Requests::All, _) => Op::Call(CallOp::Waitall { requests }),
        });
        Ok(())
    }

    pub(crate) fn test(
        &mut self,
        which: Requests,
        requests: impl Iterator<Item = Option<Handle>>,
        done: &Done,
    ) -> Result<(), TraceError> {
        let known = self.known(requests);
        let (requests, completed) = (names(&known), self.complete(&known, done)?);
        let first = completed.first().copied();
        self.program.push(match (which, &requests[..]) {
            (_, []) => Op::Communicator,
            (Requests::One, &[request]) => {
                Op::Call(CallOp::Test { request, done: Some(!completed.is_empty()) })
            }
            (Requests::One, _) => Op::Call(CallOp::Testany { requests, done: first }),
            (Requests::Some, _) => Op::Call(CallOp::Testsome { requests, done: completed }),
            (Requests::All, _) => {
                Op::Call(CallOp::Testall { done: completed.len() == requests.len(), requests })
            }
        });
        Ok(())
    }

    /// Adds a test whose outcome is not known.
    pub(crate) fn test_unknown(&mut self, request: Handle) {
        let known = self.known([Some(request)].into_iter());
        self.program.push(match known.first() {
            Some((_, _, Posted { name, .. })) => Op::Call(CallOp::Test { request: *name, done: None }),
            None => Op::Communicator,
        });
    }

    /// Returns the requests that are posted, of an array of some elements from an address on, in its order.
    pub(crate) fn posted(&self, first: Handle, elements: u64, stride: u64) -> Vec<Handle> {
        let is_element = |handle: &Handle| {
            let offset = handle.checked_sub(first);
            offset.is_some_and(|offset| offset % stride == 0 && offset / stride < elements)
        };
        let mut posted: Vec<_> = self.requests.keys().copied().filter(is_element).collect();
        posted.sort_unstable();
        posted
    }

    /// Adds a collective operation; `request` is that of a nonblocking one.
    pub(crate) fn collective(
        &mut self,
        communicator: Handle,
        request: Option<Handle>,
        operation: Collective,
    ) -> Result<(), TraceError> {
        let (id, _) = self.communicator(communicator)?;
        let request = request.map(|request| self.post(request, false)).transpose()?;
        self.program.push(Op::Call(CallOp::Collective { operation, communicator: id, request }));
        Ok(())
    }

    /// Adds a call on a file of a communicator; `request` is that of a nonblocking access.
    pub(crate) fn file(
        &mut self,
        communicator: Handle,
        request: Option<Handle>,
        file: FileName,
        call: FileCall,
    ) -> Result<(), TraceError> {
        let (communicator, _) = self.communicator(communicator)?;
        let request = request.map(|request| self.post(request, false)).transpose()?;
        self.program.push(Op::Call(CallOp::File { communicator, file, request, call }));
        Ok(())
    }

    pub(crate) fn probe(&mut self, envelope: Envelope, found: Option<bool>) -> Result<(), TraceError> {
        let from = self.recv_from(envelope)?;
        self.program.push(Op::Call(match found {
            Some(found) => CallOp::Iprobe { from, found },
            None => CallOp::Probe { from },
        }));
        Ok(())
    }

    fn send_to(&mut self, Envelope { peer, tag, communicator }: Envelope) -> Result<SendTo, TraceError> {
        let (communicator, group) = self.communicator(communicator)?;
        let peer = match peer {
            CommPeer::Rank(peer) => Some(self.member(&group, peer)?),
            CommPeer::ProcNull | CommPeer::Any { .. } => {
                return Ok(SendTo { peer: None, tag: Tag::new(0), communicator });
            }
        };
        let wrong = || self.error(CallsError::Tag { name: self.name.clone(), found: tag });
        let tag = i32::try_from(tag).ok().filter(|tag| *tag >= 0).ok_or_else(wrong)?;
        Ok(SendTo { peer, tag: Tag::new(tag), communicator })
    }

    fn recv_from(&mut self, Envelope { peer, tag, communicator }: Envelope) -> Result<RecvFrom, TraceError> {
        let (communicator, group) = self.communicator(communicator)?;
        let peer = match peer {
            CommPeer::ProcNull => Peer::ProcNull,
            CommPeer::Rank(peer) => Peer::Rank(self.member(&group, peer)?),
            CommPeer::Any { recorded } => {
                // A status may have garbage.
                Peer::Any { recorded: recorded.and_then(|peer| self.member(&group, peer).ok()) }
            }
        };
        let wrong = |_| self.error(CallsError::Tag { name: self.name.clone(), found: tag });
        let tag = (tag >= 0).then(|| i32::try_from(tag).map(Tag::new).map_err(wrong)).transpose()?;
        Ok(RecvFrom { peer, tag, communicator })
    }

    /// Returns the rank of the world of a member of a communicator.
    fn member(&self, group: &Group, found: i64) -> Result<Rank, TraceError> {
        let index = u32::try_from(found).ok().filter(|index| *index < group.len());
        let wrong = || self.error(CallsError::Peer { name: self.name.clone(), found, ranks: group.len() });
        Ok(group.member(index.ok_or_else(wrong)?))
    }

    fn post(&mut self, request: Handle, is_persistent: bool) -> Result<RequestName, TraceError> {
        let number = self.unused.pop().map_or(self.names, |Reverse(number)| number);
        self.names = self.names.max(number + 1);
        let name = RequestName::new(number);
        if let Some(before) = self.requests.insert(request, Posted { name, is_persistent, receive: None }) {
            self.program.leave_out(self.line, 1, POSTED_AGAIN);
            self.release(before)?;
        }
        Ok(name)
    }

    /// Gives up waiting for what is not known of a receive.
    fn release(&mut self, posted: Posted) -> Result<(), TraceError> {
        posted.receive.map_or(Ok(()), |(step, _)| self.program.complete(step, None))
    }

    /// Returns the requests of a list that recorded calls have posted, with their indices in the list; `None` is no request.
    fn known(&mut self, requests: impl Iterator<Item = Option<Handle>>) -> Vec<(usize, Handle, Posted)> {
        let mut known: Vec<(usize, Handle, Posted)> = Vec::new();
        let requests = requests.enumerate().filter_map(|(index, handle)| Some((index, handle?)));
        for (index, handle) in requests {
            match self.requests.get(&handle) {
                Some(&posted) => known.push((index, handle, posted)),
                None => self.program.leave_out(self.line, 1, UNKNOWN_REQUEST),
            }
        }
        known
    }

    fn complete(
        &mut self,
        known: &[(usize, Handle, Posted)],
        done: &Done,
    ) -> Result<Vec<RequestName>, TraceError> {
        let mut completed = Vec::new();
        for &(index, handle, posted) in known {
            let is_done = match done {
                Done::All => true,
                Done::Nothing => false,
                Done::Some(indices) => indices.binary_search(&index).is_ok(),
            };
            if is_done {
                completed.push(posted.name);
            }
            if is_done && !posted.is_persistent && self.requests.remove(&handle).is_some() {
                self.unused.push(Reverse(posted.name.get()));
                self.release(posted)?;
            }
        }
        Ok(completed)
    }
}

fn names(known: &[(usize, Handle, Posted)]) -> Vec<RequestName> {
    known.iter().map(|(_, _, posted)| posted.name).collect()
}
