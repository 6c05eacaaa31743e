//! Collective operations that adapt to the order of arrival: announcements, polls for them, and their consequences.
//!
//! A poll is decided by two conditional events, like `MPI_Iprobe` of the program: one in which the member pays, because the
//! price depends on the failed polls of all ranks, and one in which it polls, because the outcome depends on what was sent
//! before then. A member learns its position at its own time, before the time of the message that brings it in the program.

use pdes_core::{Bytes, Outbox, Rank, SimDuration, SimTime};

use super::operation::{Operation, Wait};
use super::tag::{Side, contradict, kind_of};
use super::{Failure, RankProcess};
use crate::collective::Answer;
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::matching::{Context, Departure, Letter, Receive, TagFilter};
use crate::request::{OperationIndex, RequestId};
use crate::token::{Lane, Message, Token};

/// Minimum price of a poll, so that time passes.
const LEAST: SimDuration = SimDuration::from_picos(1000);
/// Number of failed polls after which the price doubles: where nobody arrives, simulated time ends soon.
const PATIENCE: u32 = 1 << 16;

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Lets an operation poll for the announcement of a member.
    pub(super) fn begin_look(&mut self, operation: &mut Operation<'t>, from: Rank) {
        let from = operation.communicator.group.member(from.get());
        operation.wait = Wait::Look { from, paid: false };
        self.bound += 1;
    }

    /// Returns the time of the first due poll of an operation, and the operation.
    fn first_look(&self) -> Option<(SimTime, OperationIndex)> {
        if self.bound == u32::from(self.mailbox.is_some()) {
            return None;
        }
        let looks = self.operations.iter().enumerate().filter_map(|(index, operation)| {
            let operation = operation.as_deref()?;
            let looks = matches!(operation.wait, Wait::Look { .. });
            looks.then_some((operation.strand.clock, OperationIndex(index as u32)))
        });
        looks.min_by_key(|&(at, _)| at)
    }

    /// Returns the time of the first due poll of an operation.
    #[cold]
    pub(super) fn look_due(&self) -> Option<SimTime> {
        self.first_look().map(|(at, _)| at)
    }

    /// Carries out a poll if the granted event belongs to it; returns whether it did.
    // Cold: most ranks never poll.
    #[cold]
    #[inline(never)]
    pub(super) fn look_for_member(
        &mut self,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let Some((at, index)) = self.first_look() else { return Ok(false) };
        if self.outcome_due().is_some_and(|outcome| outcome <= at) {
            return Ok(false);
        }
        let Some(mut operation) = self.operations[index.index()].take() else { return Ok(false) };
        let looked = self.look_once(&mut operation);
        let beside = operation.request.is_some() && matches!(operation.wait, Wait::Nothing);
        self.operations[index.index()] = Some(operation);
        looked?;
        if beside {
            self.run_operation(index, outbox)?;
        }
        Ok(true)
    }

    /// Pays for a poll, or carries out one that has been paid for.
    fn look_once(&mut self, operation: &mut Operation<'t>) -> Result<(), Failure<M::Error>> {
        let Wait::Look { from, paid } = operation.wait else { return Ok(()) };
        if !paid {
            operation.strand.clock = self.after_look(operation, from)?;
            operation.wait = Wait::Look { from, paid: true };
            return Ok(());
        }
        let now = operation.strand.clock;
        let tag = Side::Announcement.of(operation.tag);
        let port = self.ports.of(Context::Collective(operation.communicator.id), from);
        let found = self.ports.first(port, Some(tag)).is_some_and(|message| message.posted <= now);
        if found {
            self.world.probes.succeed();
            operation.vain = 0;
        } else {
            let other =
                self.ports.contradicting(port, tag, contradict).filter(|message| message.posted <= now);
            if let Some(message) = other {
                let (expected, found) = (operation.kind, kind_of(message.tag));
                let kind = ReplayErrorKind::CollectiveMismatch { peer: from, expected, found };
                return Err(self.failure(now, operation.strand.action, kind));
            }
            operation.vain += 1;
            if self.world.parameters.test_grows {
                self.world.probes.fail();
            }
        }
        operation.answer = Answer::Found(found);
        operation.wait = Wait::Nothing;
        self.bound -= 1;
        Ok(())
    }

    /// Returns the time after the payment of a poll.
    ///
    /// # Errors
    /// Simulated time ends before the member arrives.
    fn after_look(&self, operation: &Operation<'t>, from: Rank) -> Result<SimTime, Failure<M::Error>> {
        let least = self.world.parameters.iprobe.max(LEAST);
        let growth = 1_u64.checked_shl(operation.vain / PATIENCE);
        let price =
            growth.and_then(|growth| least.checked_mul(self.world.probes.factor())?.checked_mul(growth));
        price.and_then(|price| operation.strand.clock.checked_add(price)).ok_or_else(|| {
            let kind = ReplayErrorKind::NobodyCame { peer: from, operation: operation.kind };
            self.failure(operation.strand.clock, operation.strand.action, kind)
        })
    }

    /// Drops the next announcement of a member, now or on arrival.
    pub(super) fn ignore(&mut self, operation: &Operation<'t>, from: Rank) {
        let from = operation.communicator.group.member(from.get());
        let port = self.ports.of(Context::Collective(operation.communicator.id), from);
        let tag = Side::Announcement.of(operation.tag);
        if !self.drop_message(port, tag) {
            self.rare().ignored.push((port, tag));
        }
    }

    fn drop_message(&mut self, port: usize, tag: u32) -> bool {
        let letter = self.ports.take(port, tag);
        if let Some(letter) = &letter {
            self.drop_path(port, &letter.message);
        }
        if let Some(Letter { departure: Departure::Flying(flight), .. }) = letter {
            self.rare().flights.give_up(flight);
        }
        letter.is_some()
    }

    /// Drops a message that has just arrived if it is to be ignored.
    pub(super) fn turn_away(&mut self, port: usize, tag: u32) {
        let Some(rare) = &mut self.rare else { return };
        let Some(index) = rare.ignored.iter().position(|&ignored| ignored == (port, tag)) else { return };
        rare.ignored.swap_remove(index);
        self.drop_message(port, tag);
    }

    /// Sends two numbers to a member, at no cost.
    pub(super) fn assign(
        &mut self,
        operation: &Operation<'t>,
        to: Rank,
        [one, other]: [u32; 2],
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let to = operation.communicator.group.member(to.get());
        let bytes = Bytes::new(u64::from(one) << 32 | u64::from(other));
        let (posted, communicator) = (self.strand.clock, operation.communicator.id);
        let message = Message { posted, bytes, tag: operation.tag, communicator, reply: None, round: 0 };
        outbox.send(to, Token::Message { lane: Lane::Time(self.me.get()), message });
    }

    /// Posts the receive of two numbers, which does not count as a post of the program.
    pub(super) fn begin_learning(
        &mut self,
        operation: &Operation<'t>,
        from: Rank,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let from = operation.communicator.group.member(from.get());
        let (posted, action) = (self.strand.clock, self.strand.action);
        let wanted = TagFilter::new(Some(operation.tag));
        let receive = Receive { posted, round: 0, request, action, capacity: Bytes::ZERO, wanted };
        self.hear(from, operation.communicator.id, receive, outbox);
    }

    /// Returns the numbers that have been received.
    pub(super) fn learned(&mut self, request: RequestId) -> Answer {
        let told = self.take_part(request).and_then(|completion| completion.received).unwrap_or_default();
        Answer::Learned([(told.get() >> 32) as u32, told.get() as u32])
    }
}
