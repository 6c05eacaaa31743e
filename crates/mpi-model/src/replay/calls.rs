//! Dispatch of the calls of a trace.

use pdes_core::{Bytes, Outbox, Rank};
use trace_mmap::{Call, CallId, Collective, CollectiveId, CommIdx, Datatype, OutIdx, SendMode, Source};

use super::operation::{OperationPlan, Origin};
use super::pending::Pending;
use super::persistent::Persistent;
use super::{Failure, Outcome, RankProcess};
use crate::collective::{self, Member, Schedule, Step};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::request::{Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::token::Token;

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    #[inline(never)]
    pub(super) fn call(
        &mut self,
        id: CallId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        match *self.trace.call(id) {
            Call::Send { mode, to, bytes } => self.send_call(mode, to, bytes, outbox),
            Call::Isend { mode, to, bytes, slot } => {
                self.isend_call(mode, to, bytes, (self.request(slot), ActionKind::Isend), outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Call::Recv { from, bytes } => {
                let request = self.requests.blocking_receive();
                self.receive_call(from, bytes, request, outbox)?;
                self.complete(Pending::One { request, kind: ActionKind::Recv })
            }
            Call::Irecv { from, bytes, slot } => {
                self.pay_for_irecv(ActionKind::Irecv);
                self.receive_call(from, bytes, self.request(slot), outbox)?;
                Ok(self.end(ActionKind::Irecv))
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                let request = (self.requests.blocking_send(), ActionKind::SendRecv);
                self.isend_call(SendMode::Standard, to, send_bytes, request, outbox);
                self.receive_call(from, recv_bytes, self.requests.blocking_receive(), outbox)?;
                self.complete(self.pending_send_recv())
            }
            Call::SendInit { mode, to, bytes, slot } => {
                self.make_persistent(slot, Persistent::Send { mode, to, bytes });
                Ok(self.end(ActionKind::Marker))
            }
            Call::RecvInit { from, bytes, slot } => {
                self.make_persistent(slot, Persistent::Receive { from, bytes });
                Ok(self.end(ActionKind::Marker))
            }
            Call::Start { ref slots } => {
                slots.iter().try_for_each(|&slot| self.start_persistent(slot, outbox))?;
                Ok(self.end(ActionKind::Start))
            }
            Call::Free { slot } => {
                let request = self.request(slot);
                self.cold().persistent.remove(&request);
                Ok(self.end(ActionKind::Marker))
            }
            Call::Waitall { .. } => {
                self.complete(Pending::RequestList { call: id, scanned: 0, kind: ActionKind::Waitall })
            }
            Call::Waitany { .. } => self.begin_wait_for_first(id, ActionKind::Waitany),
            Call::Waitsome { .. } => self.begin_wait_for_first(id, ActionKind::Waitsome),
            Call::Test { .. } | Call::Testall { .. } | Call::Testany { .. } | Call::Testsome { .. } => {
                self.begin_test(id)
            }
            Call::Probe { .. } => self.probe(id, ActionKind::Probe),
            Call::Iprobe { .. } => self.iprobe(id),
            Call::Cancel { .. } => self.cancel(id),
            Call::NewCommunicator { .. } if !self.replay.parameters.communicators_cost => {
                Ok(self.end(ActionKind::NewCommunicator))
            }
            Call::Collective { .. } | Call::NeighborAlltoall { .. } | Call::NewCommunicator { .. } => {
                self.start_operation(Origin::Call(id), outbox)
            }
            Call::FreeCommunicator { .. } | Call::Unmodelled(_) => Ok(self.end(ActionKind::Marker)),
        }
    }

    fn send_call(
        &mut self,
        mode: SendMode,
        to: Option<OutIdx>,
        bytes: Bytes,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        let Some(to) = to else { return Ok(self.end(ActionKind::Send)) };
        match self.send(to, bytes, self.is_detached_in(mode, bytes), outbox) {
            Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
            None => Ok(self.end(ActionKind::Send)),
        }
    }

    pub(super) fn isend_call(
        &mut self,
        mode: SendMode,
        to: Option<OutIdx>,
        bytes: Bytes,
        request: (RequestId, ActionKind),
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        match to {
            Some(to) => self.isend(to, bytes, self.is_detached_in(mode, bytes), request, outbox),
            None => self.complete_at_once(request.0),
        }
    }

    pub(super) fn receive_call(
        &mut self,
        from: Source,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        match from {
            Source::ProcNull => {
                self.complete_at_once(request);
                Ok(())
            }
            Source::Rank(channel) => self.receive(channel.index(), bytes, request, outbox),
            Source::Any { .. } => self.receive_any(from, bytes, request, outbox),
        }
    }

    fn complete_at_once(&mut self, request: RequestId) {
        let completion = RequestCompletion { at: self.thread.clock, received: None };
        self.requests.set(request, Request::Complete(completion));
    }

    fn is_detached_in(&self, mode: SendMode, bytes: Bytes) -> bool {
        match mode {
            SendMode::Standard | SendMode::Ready => self.is_detached(bytes),
            SendMode::Synchronous => false,
            SendMode::Buffered => true,
        }
    }

    /// Begins a blocking collective operation on `MPI_COMM_WORLD`.
    pub(super) fn collective(
        &mut self,
        id: CollectiveId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        self.start_operation(Origin::Collective(id), outbox)
    }

    #[inline(never)]
    fn start_operation(
        &mut self,
        origin: Origin,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Outcome<M::Error> {
        let plan = self.plan(origin).expect("the action is an operation");
        self.begin_operation(origin, plan, outbox)
    }

    /// Returns the plan of the operation of an action; `None` where the action is no operation.
    pub(super) fn plan(&self, origin: Origin) -> Option<OperationPlan<'t>> {
        let trace = self.trace;
        let (kind, on, slot, operation) = match origin {
            Origin::Collective(id) => {
                (trace.collective(id).into(), CommIdx::WORLD, None, trace.collective(id))
            }
            Origin::Call(id) => match trace.call(id) {
                Call::Collective { operation, communicator, slot } => {
                    let operation = trace.collective(*operation);
                    (operation.into(), *communicator, *slot, operation)
                }
                // Its ranks agree on their arguments by an allgather.
                Call::NewCommunicator { kind, parent, new } => (
                    ActionKind::NewCommunicator,
                    kind.collective_on(*parent, *new),
                    None,
                    &COMMUNICATOR_EXCHANGE,
                ),
                Call::NeighborAlltoall { communicator, to, from, slot } => {
                    let communicator = &trace.communicators()[communicator.index()];
                    let (kind, schedule) = (ActionKind::NeighborAlltoall, neighbors(to, from));
                    return Some(OperationPlan { kind, communicator, schedule, slot: *slot });
                }
                _ => return None,
            },
        };
        let communicator = &trace.communicators()[on.index()];
        Some(OperationPlan {
            kind,
            communicator,
            schedule: collective::schedule(self.member(on), operation),
            slot,
        })
    }

    fn member(&self, communicator: CommIdx) -> Member<'t> {
        let replay = self.replay;
        let communicator = &self.trace.communicators()[communicator.index()];
        Member::new(communicator.rank, replay.layout(communicator), &replay.parameters.collectives)
    }
}

/// Exchange of the color and the key of `MPI_Comm_split`.
static COMMUNICATOR_EXCHANGE: Collective = Collective::Allgather {
    send_count: 8,
    recv_count: 8,
    send_type: Datatype::BYTE,
    recv_type: Datatype::BYTE,
};

/// Returns the steps of a neighbourhood alltoall: receives from all neighbours, then sends to all.
fn neighbors<'t>(to: &'t [(u32, Bytes)], from: &'t [(u32, Bytes)]) -> Schedule<'t> {
    let receives = from.iter().map(|&(from, bytes)| Step::Irecv { from: Rank::new(from), bytes });
    let sends = to.iter().map(|&(to, bytes)| Step::Isend { to: Rank::new(to), bytes });
    Box::new(receives.chain(sends).chain([Step::WaitAll]))
}
