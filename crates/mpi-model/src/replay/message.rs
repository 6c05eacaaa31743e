//! Sends and receives: their costs, and the transfer that starts when a message matches its receive.

use pdes_core::{Bytes, Outbox, Rank};
use trace_mmap::{Arrival, CommId, CommIdx, OutIdx, Source};

use super::mailbox::PostedReceive;
use super::tag::{MessageClass, kind_of, mismatched};
use super::{Failure, RankProcess};
use crate::completion::Completion;
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, Work};
use crate::matching::{Context, Departure, Port, Receive, TagFilter, UnexpectedMessage};
use crate::observer::{Analysis, Match, Sent};
use crate::request::{Awaited, Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Message, ReceiveQueue, Side, Token};

impl<M: Machine, A: Analysis> RankProcess<'_, M, A> {
    pub(super) fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.replay.parameters.detached_below
    }

    /// Returns whether a message is eager: its data flow before the receive is posted. Never where the sender waits (rendezvous).
    pub(super) fn is_eager(&self, message: &Message) -> bool {
        message.reply.is_none() && message.bytes < self.replay.parameters.eager_below
    }

    /// Issues a blocking send; returns the request to wait for, where the message is not detached.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Option<RequestId> {
        let request = self.requests.blocking_send();
        if detached {
            self.thread.clock += self.replay.parameters.send.cost(bytes);
        }
        self.worked(ActionKind::Send);
        self.send_envelope(self.address(to), bytes, detached, request, outbox);
        (!detached).then_some(request)
    }

    #[inline]
    pub(super) fn isend(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        (request, kind): (RequestId, ActionKind),
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        self.thread.clock += self.replay.parameters.isend.cost(bytes);
        self.worked(kind);
        self.send_envelope(self.address(to), bytes, detached, request, outbox);
    }

    /// Returns the address of messages of an outgoing channel.
    #[inline(always)]
    fn address(&self, to: OutIdx) -> Address {
        let channel = &self.trace.outgoing()[to.index()];
        let queue = match channel.arrival() {
            Arrival::Port(port) => Some(ReceiveQueue::Port(port)),
            Arrival::AnySource => Some(ReceiveQueue::Mailbox(self.me.get())),
            Arrival::Unmatched => None,
        };
        let communicator = self.communicator(channel.communicator);
        Address { to: channel.peer, queue, channel: Some(to), tag: channel.tag.get() as u32, communicator }
    }

    #[inline]
    pub(super) fn communicator(&self, index: CommIdx) -> CommId {
        if index == CommIdx::WORLD { CommId::WORLD } else { self.trace.communicators()[index.index()].id }
    }

    pub(super) fn send_collective(
        &mut self,
        to: Rank,
        communicator: CommId,
        tag: u32,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let queue = Some(ReceiveQueue::Collective(self.me.get()));
        let address = Address { to, queue, channel: None, tag, communicator };
        let detached = self.is_detached(bytes) || !MessageClass::Data.has_tag(tag);
        self.send_envelope(address, bytes, detached, request, outbox);
    }

    /// Sends the envelope of a message and sets the state of its request. A message to a queue that the receiver lacks is never
    /// received.
    #[inline(always)]
    fn send_envelope(
        &mut self,
        address: Address,
        bytes: Bytes,
        detached: bool,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let Address { to, queue, channel, tag, communicator } = address;
        let (state, reply) = if detached {
            (Request::Complete(RequestCompletion { at: self.thread.clock, received: None }), None)
        } else {
            (Request::Pending(Awaited::Receiver(to)), Some(request))
        };
        self.requests.set(request, state);
        let round = if queue.is_some() { self.thread.next_round() } else { 0 };
        let message = Message { posted: self.thread.clock, bytes, tag, communicator, reply, round };
        self.observers.message_sent(&Sent { to, queue, channel, message, request }, outbox);
        if let Some(queue) = queue {
            outbox.send(to, Token::Message { queue, message });
        }
    }

    /// Posts a receive on an incoming channel of the trace.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        channel: usize,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let incoming = &self.trace.incoming()[channel];
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        let receive = self.new_receive(capacity, tag, request);
        if self.mailbox.is_none() {
            self.post(incoming.port.index(), receive, outbox);
            return Ok(());
        }
        let wanted = self.channel_filter(incoming);
        self.post_to_mailbox(PostedReceive { receive, wanted, recorded: None }, outbox)
    }

    /// Charges a non-blocking receive, before it is posted.
    #[inline]
    pub(super) fn pay_for_irecv(&mut self, kind: ActionKind) {
        self.thread.clock += self.replay.parameters.irecv;
        self.worked(kind);
    }

    /// Posts a receive from any source.
    pub(super) fn receive_any(
        &mut self,
        from: Source,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(mut wanted) = self.filter_of(from) else { return Ok(()) };
        let recorded = if self.is_reenacted() { wanted.source.take() } else { None };
        let receive = self.new_receive(capacity, wanted.tag, request);
        self.post_to_mailbox(PostedReceive { receive, wanted, recorded }, outbox)
    }

    #[inline]
    pub(super) fn new_receive(&mut self, capacity: Bytes, tag: Option<u32>, request: RequestId) -> Receive {
        let (round, posted) = (self.thread.next_round(), self.thread.clock);
        self.observers.receive_posted(request, posted);
        let wanted = TagFilter::new(tag);
        Receive { posted, round, request, action: self.thread.action, capacity, wanted }
    }

    #[cold]
    fn post_to_mailbox(
        &mut self,
        posted: PostedReceive,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let awaited = posted.wanted.source.map_or(Awaited::AnySender, Awaited::Sender);
        self.requests.set(posted.receive.request, Request::Pending(awaited));
        let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.post(posted));
        if let Some(pair) = pair
            && let Err(failure) = self.start_pair(pair, outbox)
        {
            self.defer_failure(failure, outbox);
        }
        Ok(())
    }

    pub(super) fn receive_collective(
        &mut self,
        from: Rank,
        communicator: CommId,
        tag: u32,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<(), Failure<M::Error>> {
        let port = self.point_to_point.ports.port_of(Context::Collective(communicator), from);
        self.point_to_point.route_of_port(port).map_err(|kind| self.fail(kind))?;
        let receive = self.new_receive(capacity, Some(tag), request);
        self.post(port, receive, outbox);
        if let Err(failure) = self.check_operations(port) {
            self.defer_failure(failure, outbox);
        }
        Ok(())
    }

    /// Posts a receive.
    #[inline(always)]
    fn post(&mut self, port: usize, receive: Receive, outbox: &mut Outbox<Token, M::WorkRequest>) {
        let awaited = Awaited::Sender(self.point_to_point.ports.get(port).peer);
        let found = self.point_to_point.ports.post(port, receive);
        // Pending until a match completes it: it may fail, or take until the data has arrived.
        self.requests.set(receive.request, Request::Pending(awaited));
        if let Some(arrived) = found
            && let Err(failure) = self.start_transfer(port, &arrived, receive, outbox)
        {
            self.defer_failure(failure, outbox);
        }
    }

    /// Defers a failure that may lie after the clock; see [`Token::MatchError`].
    #[cold]
    pub(super) fn defer_failure(
        &mut self,
        failure: Failure<M::Error>,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        self.cold().match_errors.push_back(failure);
        outbox.send(self.me, Token::MatchError);
    }

    /// Starts the transfer of a matched message: at the later of the two posts, that of eager data at the send. Returns whether
    /// the receive is complete.
    #[inline]
    pub(super) fn start_transfer(
        &mut self,
        port: usize,
        arrived: &UnexpectedMessage,
        receive: Receive,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<bool, Failure<M::Error>> {
        let &UnexpectedMessage { ref message, departure } = arrived;
        let &Message { posted, bytes, reply, .. } = message;
        let Port { peer, route, .. } = *self.point_to_point.ports.get(port);
        let room = receive.capacity;
        if bytes > room {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room };
            return Err(self.match_failure(*message, receive, kind));
        }
        let is_eager = departure != Departure::OnMatch;
        let (request, ready) = (receive.request, receive.posted);
        let matched = Match { port, from: peer, message: *message, request, posted: ready, is_eager };
        self.observers.message_matched(&matched, outbox);
        let received = reply.is_none().then_some(bytes);
        if let Departure::InFlight(id) = departure {
            return Ok(self.match_eager(id, receive.request, received));
        }
        let route = route.expect("the route is looked up before a receive is posted");
        let wire = bytes + self.replay.parameters.envelope;
        // A detached message that is not eager also waits for its receive, although its sender does not wait.
        let start = if departure == Departure::OnSend { posted } else { posted.max(receive.posted) };
        let completion = match reply {
            None => Completion::detached(self.me, receive.request, bytes),
            Some(send) => Completion::rendezvous((self.me, receive.request), receive.posted, (peer, send)),
        };
        if let Some(order) =
            self.replay.machine.work_request(Work::Transfer { route, bytes: wire }, completion)
        {
            // The side that posts last starts the flow; flows of one instant start in the order of posts: see `next_round`.
            let place = if (posted, message.round, peer) > (receive.posted, receive.round, self.me) {
                order_number(message.round, peer)
            } else {
                order_number(receive.round, self.me)
            };
            outbox.submit(start, place, order);
            return Ok(false);
        }
        let arrival = self.replay.machine.transfer(route, wire).and_then(|time| start.checked_add(time));
        let Some(at) = arrival else {
            let kind = ReplayErrorKind::TimeOverflow { what: "a message", amount: bytes.to_string() };
            return Err(self.match_failure(*message, receive, kind));
        };
        if let Some(request) = reply {
            let side = Side::Sender { received: receive.posted };
            outbox.send(peer, Token::Arrived { request, at, side });
        }
        self.observers.data_arrived(receive.request, at);
        self.requests.set(receive.request, Request::Complete(RequestCompletion { at, received }));
        Ok(true)
    }

    /// Checks for a message and a receive whose operations have one number but different kinds.
    #[inline]
    pub(super) fn check_operations(&mut self, port: usize) -> Result<(), Failure<M::Error>> {
        match self.point_to_point.ports.find_mismatch(port, mismatched) {
            Some((message, receive)) => {
                Err(self.mismatch(self.point_to_point.ports.get(port).peer, message, receive))
            }
            None => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, peer: Rank, message: Message, receive: Receive) -> Failure<M::Error> {
        let (expected, found) = (kind_of(receive.wanted.tag().unwrap_or_default()), kind_of(message.tag));
        self.match_failure(message, receive, ReplayErrorKind::CollectiveMismatch { peer, expected, found })
    }

    pub(super) fn message_arrived(
        &mut self,
        queue: ReceiveQueue,
        message: Message,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let mut eager = self.is_eager(&message);
        let port = match queue {
            ReceiveQueue::Port(port) => port.index(),
            ReceiveQueue::Collective(from) => {
                eager |= MessageClass::Put.has_tag(message.tag);
                self.point_to_point.ports.port_of(Context::Collective(message.communicator), Rank::new(from))
            }
            ReceiveQueue::Mailbox(from) => self.mailbox_port(Rank::new(from))?,
            ReceiveQueue::Time(from) => return self.time_arrived(Rank::new(from), message),
        };
        let departure = if eager { self.start_eager(port, message, outbox)? } else { Departure::OnMatch };
        let arrived = UnexpectedMessage { message, departure };
        if let ReceiveQueue::Mailbox(from) = queue {
            let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.arrive(Rank::new(from), arrived));
            return pair.map_or(Ok(None), |pair| self.start_pair(pair, outbox));
        }
        match self.point_to_point.ports.arrive(port, arrived) {
            Some(receive) => {
                let complete = self.start_transfer(port, &arrived, receive, outbox)?;
                Ok(complete.then_some(receive.request))
            }
            None => {
                if matches!(queue, ReceiveQueue::Collective(_)) {
                    if self.cold.as_ref().is_some_and(|cold| !cold.ignored_announcements.is_empty()) {
                        self.drop_if_ignored(port, message.tag);
                    }
                    self.check_operations(port)?;
                }
                Ok(None)
            }
        }
    }
}

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

/// Returns the order number of a flow among those that start at one instant.
pub(super) fn order_number(round: u32, rank: Rank) -> u64 {
    u64::from(round) << 32 | u64::from(rank.get())
}
