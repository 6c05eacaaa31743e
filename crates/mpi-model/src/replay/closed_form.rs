//! Exchange of times and numbers between the members of collective operations, without the machine; closed forms use times.

use pdes_core::{Bytes, Outbox, Rank};
use trace_mmap::CommId;

use super::{Failure, RankProcess};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, UncontendedTransfer};
use crate::matching::{Context, Departure, Receive, UnexpectedMessage};
use crate::observer::{Analysis, SentTime, UncontendedMessages};
use crate::request::{Awaited, Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Message, ReceiveQueue, Token};

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    /// Returns the duration of `times` messages to a rank, one after the other, without contention, with the overheads of both
    /// sides.
    pub(super) fn uncontended(
        &mut self,
        to: Rank,
        bytes: Bytes,
        times: u64,
    ) -> Result<UncontendedMessages, Failure<M::Error>> {
        let route = self.point_to_point.route_to(to).map_err(|kind| self.fail(kind))?;
        let (parameters, machine) = (self.replay.parameters, self.replay.machine);
        let mut each = parameters.isend.cost(bytes);
        if self.is_detached(bytes) {
            each += parameters.receive.cost(bytes);
        }
        let wire = bytes + parameters.envelope;
        let transfer = machine.transfer(route, wire);
        let total = transfer.and_then(|transfer| each.checked_add(transfer)?.checked_mul(times));
        let amount = || format!("{times} messages of {bytes}");
        let time = total.ok_or_else(|| {
            self.fail(ReplayErrorKind::TimeOverflow { what: "a collective operation", amount: amount() })
        })?;
        let UncontendedTransfer { latency, bandwidth } = machine.uncontended(route, wire);
        let transfer = UncontendedTransfer { latency: latency * times, bandwidth: bandwidth * times };
        Ok(UncontendedMessages { time, overhead: each * times, transfer })
    }

    pub(super) fn send_time(
        &mut self,
        to: Rank,
        communicator: CommId,
        (tag, kind): (u32, ActionKind),
        data: UncontendedMessages,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(posted) = self.thread.clock.checked_add(data.time) else {
            let amount = format!("{}", data.time);
            return Err(self.fail(ReplayErrorKind::TimeOverflow { what: "a collective operation", amount }));
        };
        // The receiver subtracts the time of the data from its waiting.
        let bytes = Bytes::new(data.time.as_picos());
        let message = Message { posted, bytes, tag, communicator, reply: None, round: 0 };
        self.observers.time_sent(&SentTime { to, kind, message: &message, stands_for: &data }, outbox);
        outbox.send(to, Token::Message { queue: ReceiveQueue::Time(self.me.get()), message });
        Ok(())
    }

    pub(super) fn post_time(
        &mut self,
        from: Rank,
        communicator: CommId,
        receive: Receive,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let port = self.point_to_point.ports.port_of(Context::Times(communicator), from);
        self.requests.set(receive.request, Request::Pending(Awaited::Sender(from)));
        if let Some(arrived) = self.point_to_point.ports.post(port, receive) {
            self.complete_time(from, arrived.message, receive.request);
        }
        if let Err(failure) = self.check_operations(port) {
            self.defer_failure(failure, outbox);
        }
    }

    /// Handles a time from another member; returns the request that it completes.
    pub(super) fn time_arrived(
        &mut self,
        from: Rank,
        message: Message,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let port = self.point_to_point.ports.port_of(Context::Times(message.communicator), from);
        let found = self
            .point_to_point
            .ports
            .arrive(port, UnexpectedMessage { message, departure: Departure::OnMatch });
        let request = found.map(|receive| receive.request);
        match request {
            Some(request) => self.complete_time(from, message, request),
            None => self.check_operations(port)?,
        }
        Ok(request)
    }

    /// Completes the receive of a time. The number beside the time is carried in the size of the message.
    fn complete_time(&mut self, from: Rank, message: Message, request: RequestId) {
        self.observers.time_received(from, &message, request);
        let completion = RequestCompletion { at: message.posted, received: Some(message.bytes) };
        self.requests.set(request, Request::Complete(completion));
    }
}
