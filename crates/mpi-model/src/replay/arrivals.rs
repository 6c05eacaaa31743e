//! Collective operations that adapt to the order of arrival: announcements, polls for them, and their consequences.
//!
//! A poll is decided by two conditional events, like `MPI_Iprobe` of the program: one in which the member pays, because the
//! price depends on the failed polls of all ranks, and one in which it polls, because the outcome depends on what was sent
//! before then. A member learns its position at its own time, before the time of the message that brings it in the program.

use pdes_core::{Bytes, Outbox, Rank, SimDuration, SimTime};

use super::operation::{Operation, Wait};
use super::tag::{MessageClass, kind_of, mismatched};
use super::{Failure, RankProcess};
use crate::collective::Answer;
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::matching::{Context, Departure, Receive, TagFilter, UnexpectedMessage};
use crate::observer::Analysis;
use crate::request::{OperationIndex, RequestId};
use crate::token::{Message, ReceiveQueue, Token};

/// Minimum price of a poll, so that time passes.
const MIN_PRICE: SimDuration = SimDuration::from_picos(1000);
/// Number of failed polls after which the price doubles: where nobody arrives, simulated time ends soon.
const POLLS_PER_DOUBLING: u32 = 1 << 16;

impl<'t, M: Machine, A: Analysis> RankProcess<'t, M, A> {
    /// Lets an operation poll for the announcement of a member.
    pub(super) fn begin_poll(&mut self, operation: &mut Operation<'t>, from: Rank) {
        let from = operation.communicator.group.member(from.get());
        operation.wait = Wait::Poll { from, paid: false };
        self.conditional_waits += 1;
    }

    /// Returns the time of the first due poll of an operation, and the operation.
    fn first_poll(&self) -> Option<(SimTime, OperationIndex)> {
        if self.conditional_waits == u32::from(self.mailbox.is_some()) {
            return None;
        }
        let polls = self.operations.iter().enumerate().filter_map(|(index, operation)| {
            let operation = operation.as_deref()?;
            let polls = matches!(operation.wait, Wait::Poll { .. });
            polls.then_some((operation.thread.clock, OperationIndex(index as u32)))
        });
        polls.min_by_key(|&(at, _)| at)
    }

    /// Returns the time of the first due poll of an operation.
    #[cold]
    pub(super) fn poll_due(&self) -> Option<SimTime> {
        self.first_poll().map(|(at, _)| at)
    }

    /// Carries out a poll if the granted event belongs to it; returns whether it did.
    // Cold: most ranks never poll.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_for_member(
        &mut self,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some((at, index)) = self.first_poll() else { return Ok(false) };
        if self.outcome_due().is_some_and(|outcome| outcome <= at) {
            return Ok(false);
        }
        let Some(mut operation) = self.operations[index.index()].take() else { return Ok(false) };
        let polled = self.poll_once(&mut operation);
        let beside = operation.request.is_some() && matches!(operation.wait, Wait::Nothing);
        self.operations[index.index()] = Some(operation);
        polled?;
        if beside {
            self.run_operation(index, outbox)?;
        }
        Ok(true)
    }

    /// Pays for a poll, or carries out one that has been paid for.
    fn poll_once(&mut self, operation: &mut Operation<'t>) -> Result<(), Failure<M::Error>> {
        let Wait::Poll { from, paid } = operation.wait else { return Ok(()) };
        if !paid {
            operation.thread.clock = self.poll_end(operation, from)?;
            operation.wait = Wait::Poll { from, paid: true };
            return Ok(());
        }
        let now = operation.thread.clock;
        let tag = MessageClass::Announcement.tag_of(operation.tag);
        let port = self.point_to_point.ports.port_of(Context::Collective(operation.communicator.id), from);
        let found = self
            .point_to_point
            .ports
            .first_unexpected(port, Some(tag))
            .is_some_and(|message| message.posted <= now);
        if found {
            self.replay.probes.record_success();
            operation.failed_polls = 0;
        } else {
            let other = self
                .point_to_point
                .ports
                .first_mismatched(port, tag, mismatched)
                .filter(|message| message.posted <= now);
            if let Some(message) = other {
                let (expected, found) = (operation.kind, kind_of(message.tag));
                let kind = ReplayErrorKind::CollectiveMismatch { peer: from, expected, found };
                return Err(self.failure(now, operation.thread.action, kind));
            }
            operation.failed_polls += 1;
            if self.replay.parameters.test_grows {
                self.replay.probes.record_failure();
            }
        }
        operation.answer = Answer::Found(found);
        operation.wait = Wait::Nothing;
        self.conditional_waits -= 1;
        Ok(())
    }

    /// Returns the time after the payment of a poll.
    ///
    /// # Errors
    /// Simulated time ends before the member arrives.
    fn poll_end(&self, operation: &Operation<'t>, from: Rank) -> Result<SimTime, Failure<M::Error>> {
        let least = self.replay.parameters.iprobe.max(MIN_PRICE);
        let growth = 1_u64.checked_shl(operation.failed_polls / POLLS_PER_DOUBLING);
        let price = growth
            .and_then(|growth| least.checked_mul(self.replay.probes.price_factor())?.checked_mul(growth));
        price.and_then(|price| operation.thread.clock.checked_add(price)).ok_or_else(|| {
            let kind = ReplayErrorKind::PeerNeverArrived { peer: from, operation: operation.kind };
            self.failure(operation.thread.clock, operation.thread.action, kind)
        })
    }

    /// Drops the next announcement of a member, now or on arrival.
    pub(super) fn ignore_announcement(&mut self, operation: &Operation<'t>, from: Rank) {
        let from = operation.communicator.group.member(from.get());
        let port = self.point_to_point.ports.port_of(Context::Collective(operation.communicator.id), from);
        let tag = MessageClass::Announcement.tag_of(operation.tag);
        if !self.drop_message(port, tag) {
            self.cold().ignored_announcements.push((port, tag));
        }
    }

    fn drop_message(&mut self, port: usize, tag: u32) -> bool {
        let dropped = self.point_to_point.ports.take_unexpected(port, tag);
        if let Some(dropped) = &dropped {
            let from = self.point_to_point.ports.get(port).peer;
            self.observers.message_dropped(port, from, &dropped.message);
        }
        if let Some(UnexpectedMessage { departure: Departure::InFlight(id), .. }) = dropped {
            self.cold().eager_messages.discard(id);
        }
        dropped.is_some()
    }

    /// Drops a message that has just arrived if it is to be ignored.
    pub(super) fn drop_if_ignored(&mut self, port: usize, tag: u32) {
        let Some(cold) = &mut self.cold else { return };
        let Some(index) = cold.ignored_announcements.iter().position(|&ignored| ignored == (port, tag))
        else {
            return;
        };
        cold.ignored_announcements.swap_remove(index);
        self.drop_message(port, tag);
    }

    /// Sends two numbers to a member, at no cost.
    pub(super) fn send_numbers(
        &mut self,
        operation: &Operation<'t>,
        to: Rank,
        [one, other]: [u32; 2],
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let to = operation.communicator.group.member(to.get());
        let bytes = Bytes::new(u64::from(one) << 32 | u64::from(other));
        let (posted, communicator) = (self.thread.clock, operation.communicator.id);
        let message = Message { posted, bytes, tag: operation.tag, communicator, reply: None, round: 0 };
        outbox.send(to, Token::Message { queue: ReceiveQueue::Time(self.me.get()), message });
    }

    /// Posts the receive of two numbers, which does not count as a post of the program.
    pub(super) fn post_numbers(
        &mut self,
        operation: &Operation<'t>,
        from: Rank,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let from = operation.communicator.group.member(from.get());
        let (posted, action) = (self.thread.clock, self.thread.action);
        let wanted = TagFilter::new(Some(operation.tag));
        let receive = Receive { posted, round: 0, request, action, capacity: Bytes::ZERO, wanted };
        self.post_time(from, operation.communicator.id, receive, outbox);
    }

    /// Returns the numbers that have been received.
    pub(super) fn received_numbers(&mut self, request: RequestId) -> Answer {
        let numbers = self.take_part(request).and_then(|completion| completion.received).unwrap_or_default();
        Answer::Numbers([(numbers.get() >> 32) as u32, numbers.get() as u32])
    }
}
