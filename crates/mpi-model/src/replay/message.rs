//! Sends and receives: their costs, and the transfer that starts when a message matches its receive.

use pdes_core::{Bytes, Outbox, Rank};
use trace_mmap::{Arrival, CommId, CommIdx, OutIdx, Source};

use super::mailbox::Posted;
use super::tag::{Side, contradict, kind_of};
use super::{Failure, RankProcess, path};
use crate::distribution::Quantity;
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, Work};
use crate::matching::{Context, Departure, Letter, Port, Receive, TagFilter};
use crate::notice::Notice;
use crate::request::{Awaited, Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Party, Token};
use crate::wait_state::WaitState;

impl<M: Machine> RankProcess<'_, M> {
    pub(super) fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.world.parameters.detached_below
    }

    /// Returns whether a message is eager: its data flow before the receive is posted. Never where the sender waits (rendezvous).
    pub(super) fn is_eager(&self, message: &Message) -> bool {
        message.reply.is_none() && message.bytes < self.world.parameters.eager_below
    }

    /// Returns the route of a port, looked up on first use.
    pub(super) fn path(&mut self, port: usize) -> Result<M::Path, Failure<M::Error>> {
        let Port { peer, path: known, .. } = *self.ports.get(port);
        if let Some(path) = known {
            return Ok(path);
        }
        let path = path(self.world, peer, self.me).map_err(|kind| self.fail(kind))?;
        self.ports.get_mut(port).path = Some(path);
        Ok(path)
    }

    /// Issues a blocking send; returns the request to wait for, where the message is not detached.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Option<RequestId> {
        let request = self.requests.send();
        if detached {
            self.strand.clock += self.world.parameters.send.cost(bytes);
        }
        self.spend(ActionKind::Send);
        self.issue(self.address(to), bytes, detached, request, outbox);
        (!detached).then_some(request)
    }

    #[inline]
    pub(super) fn isend(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        detached: bool,
        (request, kind): (RequestId, ActionKind),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        self.strand.clock += self.world.parameters.isend.cost(bytes);
        self.spend(kind);
        self.issue(self.address(to), bytes, detached, request, outbox);
    }

    /// Returns the address of messages of an outgoing channel.
    #[inline(always)]
    fn address(&self, to: OutIdx) -> Address {
        let channel = &self.trace.outgoing()[to.index()];
        let lane = match channel.arrival() {
            Arrival::Port(port) => Some(Lane::Port(port)),
            Arrival::Mailbox => Some(Lane::Mailbox(self.me.get())),
            Arrival::Nowhere => None,
        };
        let communicator = self.communicator(channel.communicator);
        Address { to: channel.peer, lane, channel: Some(to), tag: channel.tag.get() as u32, communicator }
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
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let lane = Some(Lane::Collective(self.me.get()));
        let address = Address { to, lane, channel: None, tag, communicator };
        let detached = self.is_detached(bytes) || !Side::Data.is(tag);
        self.issue(address, bytes, detached, request, outbox);
    }

    /// Sends the envelope of a message and sets the state of its request. A message to a queue that the receiver lacks is never
    /// received.
    #[inline(always)]
    fn issue(
        &mut self,
        address: Address,
        bytes: Bytes,
        detached: bool,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let Address { to, lane, channel, tag, communicator } = address;
        let (state, reply) = if detached {
            (Request::Complete(Completion { at: self.strand.clock, received: None }), None)
        } else {
            (Request::Pending(Awaited::Receiver(to)), Some(request))
        };
        self.requests.set(request, state);
        self.statistics.add_message(bytes);
        if let Some(lane) = lane {
            let round = self.strand.next_round();
            let message = Message { posted: self.strand.clock, bytes, tag, communicator, reply, round };
            self.send_path((to, lane, channel), &message, request, outbox);
            outbox.send(to, Token::Message { lane, message });
        }
    }

    /// Posts a receive on an incoming channel of the trace.
    #[inline(always)]
    pub(super) fn receive(
        &mut self,
        channel: usize,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let incoming = &self.trace.incoming()[channel];
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        let receive = self.new_receive(capacity, tag, request);
        if self.mailbox.is_none() {
            self.post(incoming.port.index(), receive, outbox);
            return Ok(());
        }
        let wanted = self.wanted_from(incoming);
        self.post_to_mailbox(Posted { receive, wanted, recorded: None }, outbox)
    }

    /// Charges a non-blocking receive, before it is posted.
    #[inline]
    pub(super) fn pay_for_irecv(&mut self, kind: ActionKind) {
        self.strand.clock += self.world.parameters.irecv;
        self.spend(kind);
    }

    /// Posts a receive from any source.
    pub(super) fn receive_any(
        &mut self,
        from: Source,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let Some(mut wanted) = self.wanted(from) else { return Ok(()) };
        let recorded = if self.is_reenacted() { wanted.source.take() } else { None };
        let receive = self.new_receive(capacity, wanted.tag, request);
        self.post_to_mailbox(Posted { receive, wanted, recorded }, outbox)
    }

    #[inline]
    pub(super) fn new_receive(&mut self, capacity: Bytes, tag: Option<u32>, request: RequestId) -> Receive {
        let (round, posted) = (self.strand.next_round(), self.strand.clock);
        self.keep_post(request);
        let wanted = TagFilter::new(tag);
        Receive { posted, round, request, action: self.strand.action, capacity, wanted }
    }

    #[cold]
    fn post_to_mailbox(
        &mut self,
        posted: Posted,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let awaited = posted.wanted.source.map_or(Awaited::AnySender, Awaited::Sender);
        self.requests.set(posted.receive.request, Request::Pending(awaited));
        let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.post(posted));
        if let Some(pair) = pair
            && let Err(failure) = self.pair(pair, outbox)
        {
            self.tell_itself(failure, outbox);
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
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let port = self.ports.of(Context::Collective(communicator), from);
        self.path(port)?;
        let receive = self.new_receive(capacity, Some(tag), request);
        self.post(port, receive, outbox);
        if let Err(failure) = self.check_operation(port) {
            self.tell_itself(failure, outbox);
        }
        Ok(())
    }

    /// Posts a receive.
    #[inline(always)]
    fn post(&mut self, port: usize, receive: Receive, outbox: &mut Outbox<Token, M::Order>) {
        let awaited = Awaited::Sender(self.ports.get(port).peer);
        let found = self.ports.post(port, receive);
        // Pending until a match completes it: it may fail, or take until the data has arrived.
        self.requests.set(receive.request, Request::Pending(awaited));
        if let Some(letter) = found
            && let Err(failure) = self.matched(port, &letter, receive, outbox)
        {
            self.tell_itself(failure, outbox);
        }
    }

    /// Defers a failure that may lie after the clock; see [`Token::MatchError`].
    #[cold]
    pub(super) fn tell_itself(&mut self, failure: Failure<M::Error>, outbox: &mut Outbox<Token, M::Order>) {
        self.rare().clashes.push_back(failure);
        outbox.send(self.me, Token::Clash);
    }

    /// Starts the transfer of a matched message: at the later of the two posts, that of eager data at the send. Returns whether
    /// the receive is complete.
    #[inline]
    pub(super) fn matched(
        &mut self,
        port: usize,
        letter: &Letter,
        receive: Receive,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let &Letter { ref message, departure } = letter;
        let &Message { posted, bytes, reply, .. } = message;
        let Port { peer, path, .. } = *self.ports.get(port);
        let room = receive.capacity;
        if bytes > room {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room };
            return Err(self.clash(*message, receive, kind));
        }
        self.meet(receive.request, WaitState::LateSender, posted);
        let ready = (receive.request, receive.posted);
        self.meet_cause(port, (message, departure), ready, outbox);
        self.sample(Quantity::Bytes, bytes.get());
        self.record_match(receive.request, peer, message);
        let received = reply.is_none().then_some(bytes);
        if let Departure::Flying(flight) = departure {
            return Ok(self.await_flight(flight, receive.request, received));
        }
        let path = path.expect("the route is looked up before a receive is posted");
        let wire = bytes + self.world.parameters.envelope;
        // A detached message that is not eager also waits for its receive, although its sender does not wait.
        let start = if departure == Departure::Sent { posted } else { posted.max(receive.posted) };
        let notice = match reply {
            None => Notice::detached(self.me, receive.request, bytes),
            Some(send) => Notice::rendezvous((self.me, receive.request), receive.posted, (peer, send)),
        };
        if let Some(order) = self.world.machine.order(Work::Transfer { path, bytes: wire }, notice) {
            // The side that posts last starts the flow; flows of one instant start in the order of posts: see `next_round`.
            let place = if (posted, message.round, peer) > (receive.posted, receive.round, self.me) {
                place(message.round, peer)
            } else {
                place(receive.round, self.me)
            };
            outbox.file(start, place, order);
            return Ok(false);
        }
        let arrival = self.world.machine.transfer(path, wire).and_then(|time| start.checked_add(time));
        let Some(at) = arrival else {
            let kind = ReplayErrorKind::TooLong { what: "a message", amount: bytes.to_string() };
            return Err(self.clash(*message, receive, kind));
        };
        if let Some(request) = reply {
            let party = Party::Sender { received: receive.posted };
            outbox.send(peer, Token::Arrived { request, at, party });
        }
        self.take_arrival(receive.request, at);
        self.requests.set(receive.request, Request::Complete(Completion { at, received }));
        Ok(true)
    }

    /// Checks for a message and a receive whose operations have one number but different kinds.
    #[inline]
    pub(super) fn check_operation(&mut self, port: usize) -> Result<(), Failure<M::Error>> {
        match self.ports.clash(port, contradict) {
            Some((message, receive)) => Err(self.mismatch(self.ports.get(port).peer, message, receive)),
            None => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, peer: Rank, message: Message, receive: Receive) -> Failure<M::Error> {
        let (expected, found) = (kind_of(receive.wanted.tag().unwrap_or_default()), kind_of(message.tag));
        self.clash(message, receive, ReplayErrorKind::CollectiveMismatch { peer, expected, found })
    }

    pub(super) fn arrive(
        &mut self,
        lane: Lane,
        message: Message,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let mut eager = self.is_eager(&message);
        let port = match lane {
            Lane::Port(port) => port.index(),
            Lane::Collective(from) => {
                eager |= Side::Put.is(message.tag);
                self.ports.of(Context::Collective(message.communicator), Rank::new(from))
            }
            Lane::Mailbox(from) => self.mail_port(Rank::new(from))?,
            Lane::Time(from) => return self.learn(Rank::new(from), message),
        };
        let departure = if eager { self.launch(port, message, outbox)? } else { Departure::Received };
        let letter = Letter { message, departure };
        if let Lane::Mailbox(from) = lane {
            let pair = self.mailbox.as_mut().and_then(|mailbox| mailbox.arrive(Rank::new(from), letter));
            return pair.map_or(Ok(None), |pair| self.pair(pair, outbox));
        }
        match self.ports.arrive(port, letter) {
            Some(receive) => {
                let complete = self.matched(port, &letter, receive, outbox)?;
                Ok(complete.then_some(receive.request))
            }
            None => {
                if matches!(lane, Lane::Collective(_)) {
                    if self.rare.as_ref().is_some_and(|rare| !rare.ignored.is_empty()) {
                        self.turn_away(port, message.tag);
                    }
                    self.check_operation(port)?;
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
    lane: Option<Lane>,
    /// Outgoing channel of the trace, for messages of the program.
    channel: Option<OutIdx>,
    tag: u32,
    communicator: CommId,
}

/// Returns the order number of a flow among those that start at one instant.
pub(super) fn place(round: u32, rank: Rank) -> u64 {
    u64::from(round) << 32 | u64::from(rank.get())
}
