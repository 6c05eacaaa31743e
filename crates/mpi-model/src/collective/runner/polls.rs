//! Steps of operations that are decided by conditional events: polls of collective operations that adapt to the order of arrival, and calls
//! on locks.
//!
//! A poll is decided by two conditional events, like `MPI_Iprobe` of the program: one in which the member pays, because the
//! price depends on the failed polls of all ranks, and one in which it polls, because the outcome depends on what was sent
//! before then. A member learns its position at its own time, before the time of the message that brings it in the program.

use pdes_core::{Rank, SimDuration, SimTime};

use super::operation::{RunningOperation, Wait};
use super::step::ANNOUNCEMENT;
use super::{CollectiveRunner, Means};
use crate::collective::Answer;
use crate::context::Failure;
use crate::error::ReplayErrorKind;
use crate::locks::{LockCall, LockMessage, LockName};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::point_to_point::{Awaited, MessageClass, OperationIndex, Request, kind_of};
use crate::token::Token;

/// Minimum price of a poll, so that time passes.
const MIN_PRICE: SimDuration = SimDuration::from_picos(1000);
/// Number of failed polls after which the price doubles: where nobody arrives, simulated time ends soon.
const POLLS_PER_DOUBLING: u32 = 1 << 16;

impl<'t> CollectiveRunner<'t> {
    /// Returns whether an operation polls.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.polls > 0
    }

    /// Returns the first poll of an operation that is due, with its time.
    pub(crate) fn first_poll(&self) -> Option<(SimTime, OperationIndex)> {
        if !self.is_polling() {
            return None;
        }
        let polling = self.operations.iter().flatten().filter(|operation| operation.is_polling());
        polling.map(|operation| (operation.thread.clock, operation.index)).min_by_key(|&(at, _)| at)
    }

    /// Carries out the poll of an operation, which has been granted.
    // Cold: most ranks never poll.
    #[cold]
    pub(crate) fn poll<M: Machine, A: Analysis>(
        &mut self,
        index: OperationIndex,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(operation) = &mut self.operations[index.index()] else { return Ok(()) };
        operation.poll(means)?;
        if !operation.is_polling() {
            self.polls -= 1;
            if operation.request.is_some() {
                self.run(index, means)?;
            }
        }
        Ok(())
    }
}

impl<'t> RunningOperation<'t> {
    pub(super) fn is_polling(&self) -> bool {
        matches!(self.wait, Wait::Poll { .. } | Wait::Lock { .. })
    }

    /// Pays for a poll, or carries out one that has been paid for.
    fn poll<M: Machine, A: Analysis>(
        &mut self,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        if let Wait::Lock { of, lock, call } = self.wait {
            self.call_lock(of, lock, call, means);
            return Ok(());
        }
        let Wait::Poll { from, paid } = self.wait else { return Ok(()) };
        let peer = self.member(from);
        if !paid {
            self.thread.clock = self.poll_end(peer, means)?;
            self.wait = Wait::Poll { from, paid: true };
            return Ok(());
        }
        let now = self.thread.clock;
        let replay = means.context.replay;
        let announcement = self.message(from, ANNOUNCEMENT, MessageClass::Announcement);
        let found = means.point_to_point.poll_collective(announcement, now).map_err(|other| {
            let (expected, found) = (self.kind, kind_of(other.tag));
            let kind = ReplayErrorKind::CollectiveMismatch { peer, expected, found };
            means.context.failure(now, self.thread.action, kind)
        })?;
        if found {
            replay.probes.record_success();
            self.failed_polls = 0;
        } else {
            self.failed_polls += 1;
            if replay.parameters.test_grows {
                replay.probes.record_failure();
            }
        }
        self.answer = Answer::Found(found);
        self.wait = Wait::Nothing;
        Ok(())
    }

    /// Calls a member for a lock of its memory, which is waited for.
    fn call_lock<M: Machine, A: Analysis>(
        &mut self,
        of: Rank,
        lock: LockName,
        call: LockCall,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) {
        let target = self.member(of);
        let request = match call {
            LockCall::Take { .. } => {
                let request = point_to_point.requests.add_part(self.index);
                point_to_point.requests.set(request, Request::Pending(Awaited::Receiver(target)));
                Some(request)
            }
            LockCall::GiveBack => None,
        };
        self.wait = request.map_or(Wait::Nothing, Wait::One);
        let (window, from, at, cause) =
            (self.communicator.id, context.me, self.thread.clock, context.observers.cause());
        outbox.send(target, Token::Lock(LockMessage { window, lock, call, from, request, at, cause }));
    }

    /// Returns the time after the payment of a poll.
    ///
    /// # Errors
    /// Simulated time ends before the member arrives.
    fn poll_end<M: Machine, A: Analysis>(
        &self,
        peer: Rank,
        means: &Means<'_, '_, 't, M, A>,
    ) -> Result<SimTime, Failure<M::Error>> {
        let replay = means.context.replay;
        let least = replay.parameters.iprobe.max(MIN_PRICE);
        let growth = 1_u64.checked_shl(self.failed_polls / POLLS_PER_DOUBLING);
        let price =
            growth.and_then(|growth| least.checked_mul(replay.probes.price_factor())?.checked_mul(growth));
        price.and_then(|price| self.thread.clock.checked_add(price)).ok_or_else(|| {
            let kind = ReplayErrorKind::PeerNeverArrived { peer, operation: self.kind };
            means.context.failure(self.thread.clock, self.thread.action, kind)
        })
    }
}
