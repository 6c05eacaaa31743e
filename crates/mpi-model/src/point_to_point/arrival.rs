//! Arrival of envelopes and of data.

use pdes_core::{Rank, SimTime};

use super::matching::{Context, Departure};
use super::protocol::Protocol;
use super::tag::{MessageClass, kind_of, mismatched};
use super::transfer::match_failure;
use super::{
    CollectiveMessage, PointToPoint, Receive, Request, RequestCompletion, RequestId, UnexpectedMessage,
};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::error::ReplayErrorKind;
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::{Message, ReceiveQueue, Side};

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Handles the arrival of an envelope; returns the request that it completes.
    pub(crate) fn message_arrived(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        queue: ReceiveQueue,
        message: Message,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let mut eager = self.protocol(&message) == Protocol::Eager;
        let port = match queue {
            ReceiveQueue::Port(port) => port.index(),
            ReceiveQueue::Collective(from) => {
                let port = self.ports.port_of(Context::Collective(message.communicator), Rank::new(from));
                if MessageClass::Put.has_tag(message.tag) {
                    if let Some(send) = message.reply {
                        return self.start_put(context, port, (message, send), outbox).map(|()| None);
                    }
                    eager = true;
                }
                port
            }
            ReceiveQueue::Mailbox(from) => self.mailbox_port(context, Rank::new(from))?,
            ReceiveQueue::Time(from) => return self.time_arrived(context, Rank::new(from), message),
        };
        let departure =
            if eager { self.start_eager(context, port, message, outbox)? } else { Departure::OnMatch };
        let arrived = UnexpectedMessage { message, departure };
        if let ReceiveQueue::Mailbox(from) = queue {
            let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.arrive(Rank::new(from), arrived));
            return pair.map_or(Ok(None), |pair| self.start_pair(context, pair, outbox));
        }
        match self.ports.arrive(port, arrived) {
            Some(receive) => {
                let complete = self.start_transfer(context, port, &arrived, receive, outbox)?;
                Ok(complete.then_some(receive.request))
            }
            None => {
                if matches!(queue, ReceiveQueue::Collective(_)) {
                    if self.cold.as_ref().is_some_and(|cold| !cold.ignored_announcements.is_empty()) {
                        self.drop_if_ignored(context, port, message.tag);
                    }
                    self.check_operations(context, port)?;
                }
                Ok(None)
            }
        }
    }

    /// Handles the arrival of the data of a matched message, on either side.
    #[inline]
    pub(crate) fn data_arrived(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        request: RequestId,
        at: SimTime,
        side: Side,
    ) {
        let received = match side {
            Side::Receiver { detached } => {
                context.observers.data_arrived(request, at);
                detached
            }
            Side::Sender { received, cause } => {
                context.observers.send_completed(request, received, cause);
                None
            }
        };
        self.requests.set(request, Request::Complete(RequestCompletion { at, received }));
    }

    /// Checks for a message and a receive whose operations have one number but different kinds.
    #[inline]
    pub(super) fn check_operations(
        &self,
        context: &RankContext<'t, M, A>,
        port: usize,
    ) -> Result<(), Failure<M::Error>> {
        match self.ports.find_mismatch(port, mismatched) {
            Some((message, receive)) => Err(self.mismatch(context, port, message, receive)),
            None => Ok(()),
        }
    }

    #[cold]
    fn mismatch(
        &self,
        context: &RankContext<'t, M, A>,
        port: usize,
        message: Message,
        receive: Receive,
    ) -> Failure<M::Error> {
        let peer = self.ports.get(port).peer;
        let (expected, found) = (kind_of(receive.wanted.tag().unwrap_or_default()), kind_of(message.tag));
        match_failure(
            context,
            message,
            receive,
            ReplayErrorKind::CollectiveMismatch { peer, expected, found },
        )
    }

    /// Returns whether a message of a collective operation has been sent by now.
    ///
    /// # Errors
    /// It has not, but a message of another operation has, which is returned.
    pub(crate) fn poll_collective(
        &mut self,
        CollectiveMessage { peer, communicator, tag, .. }: CollectiveMessage,
        now: SimTime,
    ) -> Result<bool, Message> {
        let port = self.ports.port_of(Context::Collective(communicator), peer);
        let is_sent = |message: &&Message| message.posted <= now;
        if self.ports.first_unexpected(port, Some(tag)).filter(is_sent).is_some() {
            return Ok(true);
        }
        let other = self.ports.first_mismatched(port, tag, mismatched).filter(is_sent);
        other.map_or(Ok(false), |&other| Err(other))
    }

    /// Drops the message of a collective operation, now or on arrival.
    pub(crate) fn ignore(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, tag, .. }: CollectiveMessage,
    ) {
        let port = self.ports.port_of(Context::Collective(communicator), peer);
        if !self.drop_message(context, port, tag) {
            self.cold().ignored_announcements.push((port, tag));
        }
    }

    /// Drops a message that has just arrived if it is to be ignored.
    fn drop_if_ignored(&mut self, context: &mut RankContext<'t, M, A>, port: usize, tag: u32) {
        let ignored = &mut self.cold().ignored_announcements;
        let Some(index) = ignored.iter().position(|&ignored| ignored == (port, tag)) else { return };
        ignored.swap_remove(index);
        self.drop_message(context, port, tag);
    }

    fn drop_message(&mut self, context: &mut RankContext<'t, M, A>, port: usize, tag: u32) -> bool {
        let dropped = self.ports.take_unexpected(port, tag);
        if let Some(dropped) = &dropped {
            let from = self.ports.get(port).peer;
            context.observers.message_dropped(port, from, &dropped.message);
        }
        if let Some(UnexpectedMessage { departure: Departure::InFlight(id), .. }) = dropped {
            self.cold().eager_messages.discard(id);
        }
        dropped.is_some()
    }
}
