//! Calls on windows: one-sided communication as SMPI does it (`smpi_win.cpp`).
//!
//! The origin of an access starts both sides of its message; the program of the target takes no part. A put to a rank that is not locked is
//! waited for by the target, at its fence or its `MPI_Win_wait`, which learns of it out of band. The origin itself waits for a get, for an
//! accumulate, and for a put to a locked rank, in the call that completes it. An access that fetches is an operation with a lock of its own,
//! and so are calls on locks, where some are exclusive.

use trace_mmap::{Call, CallId, WindowAccess, WindowCall, WindowSync};

use super::pending::Pending;
use super::{Outcome, RankProcess};
use crate::collective::runner::Origin;
use crate::context::{RankContext, RankOutbox};
use crate::locks::LockMessage;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{CollectiveMessage, ONE_SIDED};
use crate::statistics::ActionKind;
use crate::token::Token;

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    pub(super) fn window_call(
        &mut self,
        id: CallId,
        kind: ActionKind,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Outcome<M::Error> {
        let Call::Window { communicator, call, slot, access, .. } = self.context.trace.call(id) else {
            unreachable!("the call is one on a window")
        };
        let (access_kind, target, bytes) = match *call {
            WindowCall::Access { kind, target, bytes } => (kind, target, bytes),
            WindowCall::Sync { kind: WindowSync::Fence | WindowSync::Free, .. } => {
                return self.start_operation(Origin::Call(id), outbox);
            }
            WindowCall::Sync {
                kind: WindowSync::Post | WindowSync::Start | WindowSync::Complete | WindowSync::Wait,
                ..
            } => return self.start_operation(Origin::Epoch(id), outbox),
            WindowCall::Sync { kind, .. } if kind.locks_or_unlocks() && self.context.orders_locks() => {
                return self.start_operation(Origin::Epoch(id), outbox);
            }
            WindowCall::Fetch { .. } => {
                let named = slot.map(|slot| self.point_to_point.request(slot));
                named
                    .into_iter()
                    .for_each(|named| self.point_to_point.complete_at_once(&self.context, named));
                return self.start_operation(Origin::Epoch(id), outbox);
            }
            WindowCall::Sync { .. } => {
                return self.complete(Pending::RequestList { call: id, scanned: 0, kind });
            }
        };
        let communicator = self.context.trace.communicator(*communicator);
        let Self { context, point_to_point, .. } = self;
        let (named, unnamed) =
            (slot.map(|slot| point_to_point.request(slot)), access.map(|slot| point_to_point.request(slot)));
        let peer = communicator.group.member(target);
        let is_own = target == communicator.rank;
        let message = CollectiveMessage { peer, communicator: communicator.id, tag: ONE_SIDED, bytes };
        match (access_kind, named.or(unnamed)) {
            (WindowAccess::Get, Some(request)) if !is_own => {
                point_to_point.get(context, message, request, outbox)?
            }
            (WindowAccess::Accumulate, _) => {
                let request = point_to_point.requests.blocking_send();
                point_to_point.put(context, message, Some(request), outbox);
                named.into_iter().for_each(|named| point_to_point.complete_at_once(context, named));
                return self.complete(Pending::One { request, kind });
            }
            (access_kind, _) => {
                if access_kind == WindowAccess::Put && !is_own {
                    point_to_point.put(context, message, unnamed, outbox);
                }
                // Of a put, the buffer is free; of a copy in memory, the data are there.
                named.into_iter().for_each(|named| point_to_point.complete_at_once(context, named));
            }
        }
        Ok(self.end(kind))
    }

    /// Carries out a call on a lock of the memory of this rank.
    pub(super) fn lock_called(&mut self, message: &LockMessage, outbox: &mut RankOutbox<'_, M>) {
        let locks = self.locks.get_or_insert_default();
        let (at, from, cause) = (message.at, message.from, message.cause);
        for (rank, request) in locks.called(message) {
            outbox.send(rank, Token::Locked { request, at, from, cause });
        }
        self.locks.take_if(|locks| locks.is_empty());
    }
}

impl<M: Machine, A: Analysis> RankContext<'_, M, A> {
    /// Returns whether locks exclude others: where all are shared, they wait for nobody.
    fn orders_locks(&self) -> bool {
        self.trace.grows() || self.replay.has_exclusive_locks()
    }
}
