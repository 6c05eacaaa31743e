//! Sends: their costs and their envelopes.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Arrival, CommId, OutIdx, SendMode};

use super::tag::MessageClass;
use super::{Awaited, CollectiveMessage, PointToPoint, Request, RequestCompletion, RequestId};
use crate::cause::Cause;
use crate::context::{RankContext, RankOutbox};
use crate::machine::Machine;
use crate::observer::{Analysis, Sent};
use crate::statistics::ActionKind;
use crate::token::{Message, ReceiveQueue, Token};

/// Destination of a message.
#[derive(Clone, Copy, Debug)]
struct Address {
    to: Rank,
    /// Queue of the receiver; `None` where nobody receives the message.
    queue: Option<ReceiveQueue>,
    /// Outgoing channel of the trace, for messages of the program.
    channel: Option<OutIdx>,
    tag: u32,
    communicator: CommId,
}

impl<'t, M: Machine, A: Analysis> PointToPoint<'t, M, A> {
    /// Issues a blocking send; returns the request to wait for, where the message is not detached.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        outbox: &mut RankOutbox<'_, M>,
    ) -> Option<RequestId> {
        let request = self.requests.blocking_send();
        if detached {
            context.spend(self.parameters().send.cost(bytes));
        }
        context.worked(ActionKind::Send);
        self.send_envelope(context, address(context, to), bytes, detached, request, outbox);
        (!detached).then_some(request)
    }

    #[inline]
    pub(crate) fn isend(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        (request, kind): (RequestId, ActionKind),
        outbox: &mut RankOutbox<'_, M>,
    ) {
        context.spend(self.parameters().isend.cost(bytes));
        context.worked(kind);
        self.send_envelope(context, address(context, to), bytes, detached, request, outbox);
    }

    /// Issues a non-blocking send in a mode; without a destination (`MPI_PROC_NULL`), it is complete at once.
    pub(crate) fn isend_in(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        mode: SendMode,
        to: Option<OutIdx>,
        bytes: Bytes,
        request: (RequestId, ActionKind),
        outbox: &mut RankOutbox<'_, M>,
    ) {
        match to {
            Some(to) => self.isend(context, to, bytes, self.is_detached_in(mode, bytes), request, outbox),
            None => self.complete_at_once(context, request.0),
        }
    }

    pub(crate) fn complete_at_once(&mut self, context: &RankContext<'t, M, A>, request: RequestId) {
        let completion = RequestCompletion { at: context.thread.clock, received: None };
        self.requests.set(request, Request::Complete(completion));
    }

    /// Sends a message to a rank whose messages all match in its mailbox, outside the channels of the trace.
    pub(crate) fn send_to_mailbox(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        (to, tag, bytes): (Rank, u32, Bytes),
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let queue = Some(ReceiveQueue::Mailbox(self.me.get()));
        let address = Address { to, queue, channel: None, tag, communicator: CommId::WORLD };
        self.send_envelope(context, address, bytes, self.is_detached(bytes), request, outbox);
    }

    pub(crate) fn send_collective(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, tag, bytes }: CollectiveMessage,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let queue = Some(ReceiveQueue::Collective(self.me.get()));
        let address = Address { to: peer, queue, channel: None, tag, communicator };
        let detached = self.is_detached(bytes) || !MessageClass::Data.has_tag(tag);
        self.send_envelope(context, address, bytes, detached, request, outbox);
    }

    /// Writes into the memory of a rank; the arrival of the data completes a request, if there is one.
    pub(crate) fn put(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        CollectiveMessage { peer, communicator, tag, bytes }: CollectiveMessage,
        acknowledged: Option<RequestId>,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let queue = Some(ReceiveQueue::Collective(self.me.get()));
        let address =
            Address { to: peer, queue, channel: None, tag: MessageClass::Put.tag_of(tag), communicator };
        let request = acknowledged.unwrap_or_else(|| self.requests.blocking_send());
        self.send_envelope(context, address, bytes, acknowledged.is_none(), request, outbox);
        if acknowledged.is_none() {
            self.requests.set(request, Request::Inactive);
        }
    }

    /// Sends the envelope of a message and sets the state of its request. A message to a queue that the receiver lacks is never
    /// received.
    #[inline(always)]
    fn send_envelope(
        &mut self,
        context: &mut RankContext<'t, M, A>,
        address: Address,
        bytes: Bytes,
        detached: bool,
        request: RequestId,
        outbox: &mut RankOutbox<'_, M>,
    ) {
        let Address { to, queue, channel, tag, communicator } = address;
        let posted = context.thread.clock;
        let (state, reply) = if detached {
            (Request::Complete(RequestCompletion { at: posted, received: None }), None)
        } else {
            (Request::Pending(Awaited::Receiver(to)), Some(request))
        };
        self.requests.set(request, state);
        let round = if queue.is_some() { context.thread.next_round() } else { 0 };
        let cause = if context.repeats() { Cause::REPEATED } else { context.observers.cause() };
        let message = Message { posted, bytes, tag, communicator, reply, round, cause };
        context.observers.message_sent(&Sent { to, queue, channel, message, request }, outbox);
        if let Some(queue) = queue {
            outbox.send(to, Token::Message { queue, message });
        }
    }
}

/// Returns the address of messages of an outgoing channel.
#[inline(always)]
fn address<M: Machine, A: Analysis>(context: &RankContext<'_, M, A>, to: OutIdx) -> Address {
    let channel = context.trace.outgoing_channel(to);
    let queue = match channel.arrival() {
        Arrival::Port(port) => Some(ReceiveQueue::Port(port)),
        Arrival::AnySource => Some(ReceiveQueue::Mailbox(context.me.get())),
        Arrival::Unmatched => None,
    };
    let communicator = context.communicator(channel.communicator);
    Address { to: channel.peer, queue, channel: Some(to), tag: channel.tag.get() as u32, communicator }
}
