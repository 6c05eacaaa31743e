//! Dispatch of the calls of a trace, and their kinds.

use pdes_core::Bytes;
use trace_mmap::{
    Call, CallId, CommunicatorCall, FileCall, FileDirection, OutIdx, RankTrace, SendMode, WindowAccess,
    WindowCall, WindowSync,
};

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
    pub(super) fn call(&mut self, id: CallId, outbox: &mut RankOutbox<'_, M>) -> Outcome<M::Error> {
        let Self { context, point_to_point, .. } = self;
        let call = context.trace.call(id);
        let kind = ActionKind::of_call(call, context.trace);
        match *call {
            Call::Send { mode, to, bytes } => self.send_call(mode, to, bytes, outbox),
            Call::Isend { mode, to, bytes, slot } => {
                let request = (point_to_point.request(slot), kind);
                point_to_point.isend_in(context, mode, to, bytes, request, outbox);
                Ok(self.end(kind))
            }
            Call::Recv { from, bytes } => {
                let request = point_to_point.requests.blocking_receive();
                point_to_point.receive_from(context, from, bytes, request, outbox);
                self.complete(Pending::One { request, kind })
            }
            Call::Irecv { from, bytes, slot } => {
                self.foresee_cancellation(slot);
                let Self { context, point_to_point, .. } = self;
                point_to_point.pay_for_irecv(context, kind);
                point_to_point.receive_from(context, from, bytes, point_to_point.request(slot), outbox);
                Ok(self.end(kind))
            }
            Call::SendRecv { to, send_bytes, from, recv_bytes } => {
                let request = (point_to_point.requests.blocking_send(), kind);
                point_to_point.isend_in(context, SendMode::Standard, to, send_bytes, request, outbox);
                let request = point_to_point.requests.blocking_receive();
                point_to_point.receive_from(context, from, recv_bytes, request, outbox);
                self.complete(self.pending_send_recv())
            }
            Call::SendInit { mode, to, bytes, slot } => {
                point_to_point.make_persistent(slot, Persistent::Send { mode, to, bytes });
                Ok(self.end(kind))
            }
            Call::RecvInit { from, bytes, slot } => {
                point_to_point.make_persistent(slot, Persistent::Receive { from, bytes });
                Ok(self.end(kind))
            }
            Call::Start { ref slots } => {
                for &slot in slots {
                    self.foresee_cancellation(slot);
                    let Self { context, point_to_point, .. } = self;
                    point_to_point.start_persistent(context, slot, outbox);
                }
                Ok(self.end(kind))
            }
            Call::Free { slot } => {
                point_to_point.free_persistent(slot);
                Ok(self.end(kind))
            }
            Call::Waitall { .. } => self.complete(Pending::RequestList { call: id, scanned: 0, kind }),
            Call::Waitany { .. } | Call::Waitsome { .. } => self.begin_wait_for_first(id, kind),
            Call::Test { .. }
            | Call::Testall { .. }
            | Call::Testany { .. }
            | Call::Testsome { .. }
            | Call::GetStatus { .. } => self.begin_test(id),
            Call::Probe { .. } => self.probe(id, kind),
            Call::Iprobe { .. } => self.iprobe(id),
            Call::Cancel { .. } => self.cancel(id),
            Call::NewCommunicator { kind: CommunicatorCall::Define, .. } => Ok(self.end(kind)),
            // Ranks of a program that runs learn from each other who is in the communicator.
            Call::NewCommunicator { kind: new, .. }
                if new != CommunicatorCall::Window
                    && !context.replay.parameters.communicators_cost
                    && !context.trace.grows() =>
            {
                Ok(self.end(kind))
            }
            Call::Collective { .. } | Call::NeighborAlltoall { .. } | Call::NewCommunicator { .. } => {
                self.start_operation(Origin::Call(id), outbox)
            }
            Call::File { .. } => self.file_call(id, outbox),
            Call::SetView { .. } => self.set_view(id, outbox),
            Call::Window { .. } => self.window_call(id, kind, outbox),
            Call::FreeCommunicator { .. } | Call::Unmodelled(_) => Ok(self.end(kind)),
        }
    }

    fn send_call(
        &mut self,
        mode: SendMode,
        to: Option<OutIdx>,
        bytes: Bytes,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let Self { context, point_to_point, .. } = self;
        let send =
            |to| point_to_point.send(context, to, bytes, point_to_point.is_detached_in(mode, bytes), outbox);
        match to.and_then(send) {
            Some(request) => self.complete(Pending::One { request, kind: ActionKind::Send }),
            None => Ok(self.end(ActionKind::Send)),
        }
    }
}

impl ActionKind {
    /// Returns the kind to which the time of a call is attributed.
    pub(crate) fn of_call(call: &Call, rank: &RankTrace) -> Self {
        match call {
            Call::Send { .. } => Self::Send,
            Call::Isend { .. } => Self::Isend,
            Call::Recv { .. } => Self::Recv,
            Call::Irecv { .. } => Self::Irecv,
            Call::SendRecv { .. } => Self::SendRecv,
            Call::SendInit { .. } | Call::RecvInit { .. } | Call::Free { .. } => Self::Marker,
            Call::FreeCommunicator { .. } | Call::Unmodelled(_) => Self::Marker,
            Call::NewCommunicator { kind: CommunicatorCall::Define, .. } => Self::Marker,
            Call::Start { .. } => Self::Start,
            Call::Waitall { .. } => Self::Waitall,
            Call::Waitany { .. } => Self::Waitany,
            Call::Waitsome { .. } => Self::Waitsome,
            Call::Test { .. }
            | Call::Testall { .. }
            | Call::Testany { .. }
            | Call::Testsome { .. }
            | Call::GetStatus { .. } => Self::Test,
            Call::Probe { .. } => Self::Probe,
            Call::Iprobe { .. } => Self::Iprobe,
            Call::Cancel { .. } => Self::Cancel,
            Call::Collective { slot: Some(_), .. } | Call::NeighborAlltoall { slot: Some(_), .. } => {
                Self::NonBlocking
            }
            Call::Collective { operation, slot: None, .. } => Self::from(rank.collective(*operation)),
            Call::NeighborAlltoall { slot: None, .. } => Self::NeighborAlltoall,
            Call::NewCommunicator { .. } => Self::NewCommunicator,
            Call::SetView { .. } => Self::FileSetView,
            Call::Window { call, .. } => match *call {
                WindowCall::Access { kind: WindowAccess::Put, .. } => Self::Put,
                WindowCall::Access { kind: WindowAccess::Get, .. } => Self::Get,
                WindowCall::Access { kind: WindowAccess::Accumulate, .. } => Self::Accumulate,
                WindowCall::Fetch { .. } => Self::Fetch,
                WindowCall::Sync { kind, .. } => match kind {
                    WindowSync::Fence => Self::WindowFence,
                    WindowSync::Post => Self::WindowPost,
                    WindowSync::Start => Self::WindowStart,
                    WindowSync::Complete => Self::WindowComplete,
                    WindowSync::Wait => Self::WindowWait,
                    WindowSync::Lock | WindowSync::LockExclusive | WindowSync::LockAll => Self::WindowLock,
                    WindowSync::Unlock | WindowSync::UnlockAll => Self::WindowUnlock,
                    WindowSync::Flush
                    | WindowSync::FlushLocal
                    | WindowSync::FlushAll
                    | WindowSync::FlushLocalAll => Self::WindowFlush,
                    WindowSync::Free => Self::WindowFree,
                },
            },
            Call::File { call, slot, .. } => match (call, Self::of_access(call)) {
                (_, Some(Self::FileRead | Self::FileReadAll)) if slot.is_some() => Self::FileReadStart,
                (_, Some(_)) if slot.is_some() => Self::FileWriteStart,
                (_, Some(kind)) => kind,
                (FileCall::Open { .. }, None) => Self::FileOpen,
                (FileCall::Close, None) => Self::FileClose,
                (FileCall::Sync, None) => Self::FileSync,
                (_, None) => Self::Marker,
            },
        }
    }

    /// Returns the kind to which the time of a blocking access to a file is attributed; `None` for other calls.
    pub(crate) fn of_access(call: &FileCall) -> Option<Self> {
        let (direction, _) = call.access()?;
        Some(match (direction, call.is_collective()) {
            (FileDirection::Read, false) => Self::FileRead,
            (FileDirection::Write, false) => Self::FileWrite,
            (FileDirection::Read, true) => Self::FileReadAll,
            (FileDirection::Write, true) => Self::FileWriteAll,
        })
    }
}
