//! Exchange of times and numbers between the members of collective operations, without the machine; closed forms use times.

use pdes_core::{Bytes, Outbox, Rank, SimDuration};
use trace_mmap::CommId;

use super::{Failure, RankProcess, path};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, Passage};
use crate::matching::{Context, Departure, Letter, Receive};
use crate::request::{Awaited, Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Token};

/// Duration of messages without contention.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    /// Total.
    pub(super) time: SimDuration,
    /// Part spent in the libraries of both sides.
    pub(super) overhead: SimDuration,
    /// Rest: the transfer.
    pub(super) passage: Passage,
}

impl<M: Machine> RankProcess<'_, M> {
    /// Returns the route to a rank, looked up once.
    pub(super) fn way(&mut self, to: Rank) -> Result<M::Path, Failure<M::Error>> {
        if let Some(way) = self.rare().ways.get(&to) {
            return Ok(*way);
        }
        let way = path(self.world, self.me, to).map_err(|kind| self.fail(kind))?;
        self.rare().ways.insert(to, way);
        Ok(way)
    }

    /// Returns the duration of `times` messages to a rank, one after the other, without contention, with the overheads of both
    /// sides.
    pub(super) fn alone(&mut self, to: Rank, bytes: Bytes, times: u64) -> Result<Alone, Failure<M::Error>> {
        let way = self.way(to)?;
        let (parameters, machine) = (self.world.parameters, self.world.machine);
        let mut each = parameters.isend.cost(bytes);
        if self.is_detached(bytes) {
            each += parameters.receive.cost(bytes);
        }
        let wire = bytes + parameters.envelope;
        let transfer = machine.transfer(way, wire);
        let total = transfer.and_then(|transfer| each.checked_add(transfer)?.checked_mul(times));
        let amount = || format!("{times} messages of {bytes}");
        let time = total.ok_or_else(|| {
            self.fail(ReplayErrorKind::TooLong { what: "a collective operation", amount: amount() })
        })?;
        let Passage { latency, bandwidth } = machine.alone(way, wire);
        let passage = Passage { latency: latency * times, bandwidth: bandwidth * times };
        Ok(Alone { time, overhead: each * times, passage })
    }

    pub(super) fn tell(
        &mut self,
        to: Rank,
        communicator: CommId,
        (tag, kind): (u32, ActionKind),
        data: Alone,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(posted) = self.strand.clock.checked_add(data.time) else {
            let amount = format!("{}", data.time);
            return Err(self.fail(ReplayErrorKind::TooLong { what: "a collective operation", amount }));
        };
        // The receiver subtracts the time of the data from its waiting.
        let bytes = Bytes::new(data.time.as_picos());
        let message = Message { posted, bytes, tag, communicator, reply: None, round: 0 };
        self.tell_path(to, &message, (kind, data), outbox);
        outbox.send(to, Token::Message { lane: Lane::Time(self.me.get()), message });
        Ok(())
    }

    pub(super) fn hear(
        &mut self,
        from: Rank,
        communicator: CommId,
        receive: Receive,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let port = self.ports.of(Context::Times(communicator), from);
        self.requests.set(receive.request, Request::Pending(Awaited::Sender(from)));
        if let Some(letter) = self.ports.post(port, receive) {
            self.heard(from, letter.message, receive.request);
        }
        if let Err(failure) = self.check_operation(port) {
            self.tell_itself(failure, outbox);
        }
    }

    /// Handles a time from another member; returns the request that it completes.
    pub(super) fn learn(
        &mut self,
        from: Rank,
        message: Message,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let port = self.ports.of(Context::Times(message.communicator), from);
        let found = self.ports.arrive(port, Letter { message, departure: Departure::Received });
        let request = found.map(|receive| receive.request);
        match request {
            Some(request) => self.heard(from, message, request),
            None => self.check_operation(port)?,
        }
        Ok(request)
    }

    /// Completes the receive of a time. The number beside the time is carried in the size of the message.
    fn heard(&mut self, from: Rank, message: Message, request: RequestId) {
        self.hear_path(from, &message, request);
        let completion = Completion { at: message.posted, received: Some(message.bytes) };
        self.requests.set(request, Request::Complete(completion));
    }
}
