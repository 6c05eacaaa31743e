//! Times and numbers that the members of collective operations exchange without the machine.

use pdes_core::{Bytes, Rank};

use super::UnexpectedMessage;
use super::matching::{Context, Departure, TagFilter};
use super::receive::new_receive;
use super::{Awaited, CollectiveMessage, PointToPoint, Receive, Request, RequestCompletion, RequestId};
use crate::context::{Failure, RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::Analysis;
use crate::token::{Message, ReceiveQueue, Token};

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Sends a time or numbers.
    pub(crate) fn send_time(&self, to: Rank, message: Message, outbox: &mut RankOutbox<'_, M>) {
        outbox.send(to, Token::Message { queue: ReceiveQueue::Time(self.me.get()), message });
    }

    /// Posts the receive of a time.
    pub(crate) fn receive_time(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        message: CollectiveMessage,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let receive = new_receive(context, Bytes::ZERO, Some(message.tag), request);
        self.post_time(context, message, receive, outbox);
    }

    /// Posts the receive of two numbers, which does not count as a post of the program.
    pub(crate) fn receive_numbers(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        message: CollectiveMessage,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let (posted, action) = (context.thread.clock, context.thread.action);
        let wanted = TagFilter::new(Some(message.tag));
        let receive = Receive { posted, round: 0, request, action, capacity: Bytes::ZERO, wanted };
        self.post_time(context, message, receive, outbox);
    }

    fn post_time(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, .. }: CollectiveMessage,
        receive: Receive,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let port = self.ports.port_of(Context::Times(communicator), peer);
        self.requests.set(receive.request, Request::Pending(Awaited::Sender(peer)));
        if let Some(arrived) = self.ports.post(port, receive) {
            self.complete_time(context, peer, arrived.message, receive.request);
        }
        if let Err(failure) = self.check_operations(context, port) {
            self.defer_failure(failure, outbox);
        }
    }

    /// Handles a time from another member; returns the request that it completes.
    pub(super) fn time_arrived(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        from: Rank,
        message: Message,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let port = self.ports.port_of(Context::Times(message.communicator), from);
        let found = self.ports.arrive(port, UnexpectedMessage { message, departure: Departure::OnMatch });
        let request = found.map(|receive| receive.request);
        match request {
            Some(request) => self.complete_time(context, from, message, request),
            None => self.check_operations(context, port)?,
        }
        Ok(request)
    }

    /// Completes the receive of a time. The number beside the time is carried in the size of the message.
    fn complete_time(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        from: Rank,
        message: Message,
        request: RequestId,
    ) {
        context.observers.time_received(from, &message, request);
        let completion = RequestCompletion { at: message.posted, received: Some(message.bytes) };
        self.requests.set(request, Request::Complete(completion));
    }
}
