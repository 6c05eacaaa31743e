//! Dispatch of the calls of a trace.

use pdes_core::Bytes;
use trace_mmap::{Call, CallId, OutIdx, SendMode};

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::collective::runner::Origin;
use crate::context::RankOutbox;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::Persistent;
use crate::statistics::ActionKind;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    #[inline(never)]
    pub(super) fn call(&mut self, id: CallId, outbox: &mut RankOutbox<M>) -> Outcome<M::Error> {
        let Self { context, point_to_point: messages, .. } = self;
        match *context.trace.call(id) {
            Call::Send { mode, to, bytes } => self.send_call(mode, to, bytes, outbox),
            Call::Isend { mode, to, bytes, slot } => {
                let request = (messages.request(slot), ActionKind::Isend);
                messages.isend_in(context, mode, to, bytes, request, outbox);
                Ok(self.end(ActionKind::Isend))
            }
            Call::Recv { from, bytes } => {
                let request = messages.requests.blocking_receive();
                messages.receive_from(context, from, bytes, request, outbox);
                self.complete(Pending::One { request, kind: ActionKind::Recv })
            }
            Call::Irecv { from, bytes, slot } => {
                messages.pay_for_irecv(context, ActionKind::Irecv);
                messages.receive_from(context, from, bytes, messages.request(slot), outbox);
                Ok(self.end(ActionKind::Irecv))
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                let request = (messages.requests.blocking_send(), ActionKind::SendRecv);
                messages.isend_in(context, SendMode::Standard, to, send_bytes, request, outbox);
                let request = messages.requests.blocking_receive();
                messages.receive_from(context, from, recv_bytes, request, outbox);
                self.complete(self.pending_send_recv())
            }
            Call::SendInit { mode, to, bytes, slot } => {
                messages.make_persistent(slot, Persistent::Send { mode, to, bytes });
                Ok(self.end(ActionKind::Marker))
            }
            Call::RecvInit { from, bytes, slot } => {
                messages.make_persistent(slot, Persistent::Receive { from, bytes });
                Ok(self.end(ActionKind::Marker))
            }
            Call::Start { ref slots } => {
                slots.iter().for_each(|&slot| messages.start_persistent(context, slot, outbox));
                Ok(self.end(ActionKind::Start))
            }
            Call::Free { slot } => {
                messages.free_persistent(slot);
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
            Call::NewCommunicator { .. } if !context.replay.parameters.communicators_cost => {
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
        outbox: &mut RankOutbox<M>,
    ) -> Outcome<M::Error> {
        let Self { context, point_to_point: messages, .. } = self;
        let send = |to| messages.send(context, to, bytes, messages.is_detached_in(mode, bytes), outbox);
        match to.and_then(send) {
            Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
            None => Ok(self.end(ActionKind::Send)),
        }
    }
}
