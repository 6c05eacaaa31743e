//! Times and numbers that members send to each other, without the machine; closed forms use times.

use pdes_core::{Bytes, Rank};

use super::Means;
use super::operation::{RunningOperation, Wait};
use crate::cause::Cause;
use crate::context::Failure;
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, UncontendedTransfer};
use crate::observer::{Analysis, SentTime, UncontendedMessages};
use crate::point_to_point::MessageClass;
use crate::token::Message;

impl<'t, M: Machine, A: Analysis> Means<'_, '_, 't, M, A> {
    /// Returns the duration of `times` messages to a rank, one after the other, without contention, with the overheads of both
    /// sides; all take the time of one that begins now.
    fn uncontended(
        &mut self,
        to: Rank,
        bytes: Bytes,
        times: u64,
    ) -> Result<UncontendedMessages, Failure<M::Error>> {
        if self.context.repeats() {
            return Ok(UncontendedMessages::default());
        }
        let route = self.point_to_point.route_to(to).map_err(|kind| self.context.fail(kind))?;
        let (parameters, machine) = (self.point_to_point.parameters(), self.context.replay.machine);
        let mut each = parameters.isend.cost(bytes);
        if self.point_to_point.is_detached(bytes) {
            each += parameters.receive.cost(bytes);
        }
        let wire = bytes + parameters.envelope;
        let now = self.context.thread.clock;
        let transfer = machine.transfer(route, wire, now);
        let total = transfer.and_then(|transfer| each.checked_add(transfer)?.checked_mul(times));
        let time = total.ok_or_else(|| self.overflow(format!("{times} messages of {bytes}")))?;
        let UncontendedTransfer { latency, bandwidth } = machine.uncontended(route, wire, now);
        let transfer = UncontendedTransfer { latency: latency * times, bandwidth: bandwidth * times };
        Ok(UncontendedMessages { time, overhead: each * times, transfer })
    }

    fn overflow(&self, amount: String) -> Failure<M::Error> {
        self.context.fail(ReplayErrorKind::TimeOverflow { what: "a collective operation", amount })
    }
}

impl<'t> RunningOperation<'t> {
    /// Advances the clock by the duration of messages to or from a member.
    pub(super) fn charge_transfers<M: Machine, A: Analysis>(
        &self,
        peer: Rank,
        bytes: Bytes,
        times: u64,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        let data = means.uncontended(self.member(peer), bytes, times)?;
        let amount = || format!("{times} messages of {bytes}");
        means.context.advance(Some(data.time), "a collective operation", amount)?;
        means.context.observers.messages_charged(self.kind, &data);
        Ok(())
    }

    /// Sends the time at which a message of this size, if there is one, would arrive.
    pub(super) fn send_time<M: Machine, A: Analysis>(
        &self,
        to: Rank,
        bytes: Option<Bytes>,
        means: &mut Means<'_, '_, 't, M, A>,
    ) -> Result<(), Failure<M::Error>> {
        let to = self.member(to);
        let data = match bytes {
            Some(bytes) => means.uncontended(to, bytes, 1)?,
            None => UncontendedMessages::default(),
        };
        let clock = means.context.thread.clock;
        let posted = clock.checked_add(data.time).ok_or_else(|| means.overflow(data.time.to_string()))?;
        // The receiver subtracts the time of the data from its waiting.
        let message =
            self.out_of_band(posted, Bytes::new(data.time.as_picos()), means.context.observers.cause());
        let sent = SentTime { to, kind: self.kind, message: &message, stands_for: &data };
        means.context.observers.time_sent(&sent, means.outbox);
        means.point_to_point.send_time(to, message, means.outbox);
        if bytes.is_some_and(|bytes| !means.point_to_point.is_detached(bytes)) {
            means.context.spend(data.time);
            means.context.observers.messages_charged(self.kind, &data);
        }
        Ok(())
    }

    pub(super) fn receive_time<M: Machine, A: Analysis>(
        &mut self,
        from: Rank,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) {
        let request = point_to_point.requests.add_part(self.index);
        let message = self.message(from, Bytes::ZERO, MessageClass::Data);
        point_to_point.receive_time(context, message, request, outbox);
        self.wait = Wait::Time(request);
    }

    /// Sends two numbers to a member, at no cost.
    pub(super) fn send_numbers<M: Machine, A: Analysis>(
        &self,
        to: Rank,
        [one, other]: [u32; 2],
        means: &mut Means<'_, '_, 't, M, A>,
    ) {
        let bytes = Bytes::new(u64::from(one) << 32 | u64::from(other));
        let message = self.out_of_band(means.context.thread.clock, bytes, Cause::default());
        means.point_to_point.send_time(self.member(to), message, means.outbox);
    }

    pub(super) fn receive_numbers<M: Machine, A: Analysis>(
        &mut self,
        from: Rank,
        Means { context, point_to_point, outbox }: &mut Means<'_, '_, 't, M, A>,
    ) {
        let request = point_to_point.requests.add_part(self.index);
        let message = self.message(from, Bytes::ZERO, MessageClass::Data);
        point_to_point.receive_numbers(context, message, request, outbox);
        self.wait = Wait::Numbers(request);
    }

    fn out_of_band(&self, posted: pdes_core::SimTime, bytes: Bytes, cause: Cause) -> Message {
        let (tag, communicator) = (self.tag, self.communicator.id);
        Message { posted, bytes, tag, communicator, reply: None, round: 0, cause }
    }
}

/// Returns the two numbers that the size of a message carries.
pub(super) fn unpack(numbers: Bytes) -> [u32; 2] {
    [(numbers.get() >> 32) as u32, numbers.get() as u32]
}
