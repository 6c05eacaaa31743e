//! Sends and receives: what they cost the rank, and what happens when a message meets its receive.

use pdes_core::{Bytes, Outbox, Rank};
use trace_mmap::OutIdx;

use super::{Failure, RankProcess, path};
use crate::error::ReplayErrorKind;
use crate::machine::{Machine, Work};
use crate::matching::{Port, Receive};
use crate::notice::Notice;
use crate::request::{Awaited, Completion, Direction, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Token};

impl<M: Machine> RankProcess<'_, M> {
    pub(super) fn is_detached(&self, bytes: Bytes) -> bool {
        bytes < self.world.parameters.detached_below
    }

    /// Counts the posts of the rank at its present instant. SimGrid lets ranks take turns: each makes one call, then
    /// each that can makes its next one. Flows that start at one instant start in that order.
    #[inline]
    fn next_round(&mut self) -> u32 {
        if self.last_post != self.clock {
            (self.last_post, self.posts) = (self.clock, 0);
        }
        self.posts += 1;
        self.posts
    }

    pub(super) fn is_eager(&self, bytes: Bytes) -> bool {
        bytes < self.world.parameters.eager_below
    }

    /// Returns the path of a port, which is looked up where it is not known yet.
    pub(super) fn path(&mut self, port: usize) -> Result<M::Path, Failure<M::Error>> {
        let Port { peer, path: known, .. } = *self.ports.get_mut(port);
        if let Some(path) = known {
            return Ok(path);
        }
        let path = path(self.world, peer, self.me).map_err(|kind| self.fail(kind))?;
        self.ports.get_mut(port).path = Some(path);
        Ok(path)
    }

    /// Issues a blocking send; returns the request to wait for where the message is not detached.
    #[inline]
    pub(super) fn send(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Option<RequestId> {
        let channel = &self.trace.outgoing()[to.index()];
        let lane = channel.port.map(Lane::Port);
        let tag = channel.tag.get() as u32;
        let peer = channel.peer;
        let detached = self.is_detached(bytes);
        let request = self.requests.send();
        if detached {
            self.clock += self.world.parameters.send.cost(bytes);
        }
        self.issue(peer, lane, tag, bytes, request, outbox);
        (!detached).then_some(request)
    }

    #[inline]
    pub(super) fn isend(
        &mut self,
        to: OutIdx,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let channel = &self.trace.outgoing()[to.index()];
        let lane = channel.port.map(Lane::Port);
        let (peer, tag) = (channel.peer, channel.tag.get() as u32);
        self.clock += self.world.parameters.isend.cost(bytes);
        self.issue(peer, lane, tag, bytes, request, outbox);
    }

    pub(super) fn send_collective(
        &mut self,
        to: Rank,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let lane = Lane::Collective(self.me.get());
        self.issue(to, Some(lane), self.operation_tag(), bytes, request, outbox);
    }

    fn operation_tag(&self) -> u32 {
        self.program.operation().map_or(u32::MAX, |kind| kind as u32)
    }

    /// Puts a message on its way, and its request into the state that follows. A message for a lane that the receiver
    /// does not have is never received.
    #[inline]
    fn issue(
        &mut self,
        to: Rank,
        lane: Option<Lane>,
        tag: u32,
        bytes: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let (state, reply) = if self.is_detached(bytes) {
            (Request::Complete(Completion { at: self.clock, received: None }), None)
        } else {
            (Request::Pending(Awaited { direction: Direction::Send, peer: to }), Some(request))
        };
        self.requests.set(request, state);
        self.statistics.add_message(bytes);
        if let Some(lane) = lane {
            let round = self.next_round();
            let message = Message { posted: self.clock, bytes, tag, reply, round, flight: None };
            outbox.send(to, Token::Message { lane, message });
        }
    }

    /// Posts a receive on an incoming channel of the trace.
    #[inline]
    pub(super) fn receive(
        &mut self,
        channel: usize,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let incoming = &self.trace.incoming()[channel];
        let tag = incoming.tag.map(|tag| tag.get() as u32);
        let round = self.next_round();
        let receive = Receive { posted: self.clock, round, request, action: self.action(), capacity, tag };
        self.post(incoming.port.index(), receive, outbox);
    }

    pub(super) fn receive_collective(
        &mut self,
        from: Rank,
        capacity: Bytes,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<(), Failure<M::Error>> {
        let tag = Some(self.operation_tag());
        let port = self.ports.collective(from);
        self.path(port)?;
        let round = self.next_round();
        let receive = Receive { posted: self.clock, round, request, action: self.action(), capacity, tag };
        self.post(port, receive, outbox);
        if let Err(failure) = self.check_operation(port) {
            self.tell_itself(failure, outbox);
        }
        Ok(())
    }

    /// Posts a receive.
    #[inline]
    fn post(&mut self, port: usize, receive: Receive, outbox: &mut Outbox<Token, M::Order>) {
        let queue = self.ports.get_mut(port);
        let awaited = Awaited { direction: Direction::Receive, peer: queue.peer };
        match queue.post(receive) {
            Some(message) => {
                // Pending until the match completes it: it may fail, or take until the data has arrived.
                self.requests.set(receive.request, Request::Pending(awaited));
                if let Err(failure) = self.matched(port, message, receive, outbox) {
                    self.tell_itself(failure, outbox);
                }
            }
            None => self.requests.set(receive.request, Request::Pending(awaited)),
        }
    }

    /// Files a failure that may lie after the clock; see [`Token::Clash`].
    #[cold]
    fn tell_itself(&mut self, failure: Failure<M::Error>, outbox: &mut Outbox<Token, M::Order>) {
        self.clashes.push_back(failure);
        outbox.send(self.me, Token::Clash);
    }

    /// Lets the data of a message flow: it starts when both sides are there, eager data when it is sent. Returns whether
    /// the receive is complete.
    #[inline]
    fn matched(
        &mut self,
        port: usize,
        message: Message,
        receive: Receive,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<bool, Failure<M::Error>> {
        let Message { posted, bytes, reply, flight, .. } = message;
        let Port { peer, path, .. } = *self.ports.get_mut(port);
        if bytes > receive.capacity {
            let kind = ReplayErrorKind::Truncated { peer, sent: bytes, room: receive.capacity };
            return Err(self.clash(message, receive, kind));
        }
        let received = reply.is_none().then_some(bytes);
        if let Some(flight) = flight {
            return Ok(self.await_flight(flight, receive.request, received));
        }
        let path = path.expect("a receive is posted after its path is known");
        let wire = bytes + self.world.parameters.envelope;
        let start = if self.is_eager(bytes) { posted } else { posted.max(receive.posted) };
        let sender = reply.map(|request| (peer, request));
        let notice = Notice::message(self.me, receive.request, bytes, sender);
        if let Some(order) = self.world.machine.order(Work::Transfer { path, bytes: wire }, notice) {
            // The side that posts last starts the flow, in the order in which posts take turns: see `next_round`.
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
            return Err(self.clash(message, receive, kind));
        };
        if let Some(request) = reply {
            outbox.send(peer, Token::Arrived { request, at, received: None });
        }
        self.requests.set(receive.request, Request::Complete(Completion { at, received }));
        Ok(true)
    }

    /// Refuses a message and a receive that face each other in a collective port: their operations differ.
    fn check_operation(&mut self, port: usize) -> Result<(), Failure<M::Error>> {
        let queue = self.ports.get_mut(port);
        let (peer, clash) = (queue.peer, queue.clash());
        let Some((message, receive)) = clash else { return Ok(()) };
        let kind = |tag: Option<u32>| tag.and_then(ActionKind::from_number).unwrap_or(ActionKind::Marker);
        let (expected, found) = (kind(receive.tag), kind(Some(message.tag)));
        Err(self.clash(message, receive, ReplayErrorKind::CollectiveMismatch { peer, expected, found }))
    }

    pub(super) fn arrive(
        &mut self,
        lane: Lane,
        mut message: Message,
        outbox: &mut Outbox<Token, M::Order>,
    ) -> Result<Option<RequestId>, Failure<M::Error>> {
        let port = match lane {
            Lane::Port(port) => port.index(),
            Lane::Collective(from) => self.ports.collective(Rank::new(from)),
        };
        if self.is_eager(message.bytes) {
            message.flight = self.launch(port, message, outbox)?;
        }
        match self.ports.get_mut(port).arrive(message) {
            Some(receive) => {
                let complete = self.matched(port, message, receive, outbox)?;
                Ok(complete.then_some(receive.request))
            }
            None => {
                if matches!(lane, Lane::Collective(_)) {
                    self.check_operation(port)?;
                }
                Ok(None)
            }
        }
    }
}

/// Where a flow stands among those that start at one instant.
pub(super) fn place(round: u32, rank: Rank) -> u64 {
    u64::from(round) << 32 | u64::from(rank.get())
}
