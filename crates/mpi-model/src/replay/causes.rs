//! Tracking of the critical paths of a rank: to its clock, and to the completions of its requests.
//!
//! The path to the clock of the current thread of control grows with it. An event that may become the cause of a later instant
//! keeps a copy of the path: a message, for its receiver; a post of this rank, for the request and, where the other side waits,
//! for that.

mod ledger;

use pdes_core::{Bytes, Outbox, Rank, SimTime};
use trace_mmap::{CallId, OutIdx, PortId};

use super::RankProcess;
use super::shelf::{Key, Shelves, cut, join};
use super::times::Alone;
use crate::critical_path::CriticalPath;
use crate::machine::{Machine, Passage};
use crate::matching::{Departure, Port};
use crate::request::{Completion, Request, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Lane, Message, Piece, Token};
pub(super) use ledger::Causes;
use ledger::Flow;

/// Calls a method if critical paths are followed, out of line of replays in which they are not.
macro_rules! if_followed {
    ($process:expr, $name:ident($($argument:expr),*)) => {
        if $process.causes.is_some() {
            $process.$name($($argument),*);
        }
    };
}

impl Alone {
    /// Adds the time of the data to a path.
    fn lengthen(self, path: &mut CriticalPath, kind: ActionKind) {
        let end = path.end() + self.time;
        path.spend(kind, path.end() + self.overhead);
        path.pass(kind, self.passage, end);
    }
}

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Returns the critical path to the end of the rank, where [requested](crate::Replay::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.causes.as_deref().map(|causes| &causes.path)
    }

    #[inline]
    fn causes(&mut self) -> &mut Causes<'t> {
        self.causes.as_mut().expect("critical paths are followed")
    }

    /// Extends the path to the clock by an action of this kind.
    #[inline(always)]
    pub(super) fn spend(&mut self, kind: ActionKind) {
        let now = self.strand.clock;
        if let Some(causes) = &mut self.causes
            && causes.path.end() < now
        {
            causes.path_mut().spend(kind, now);
        }
    }

    /// Remembers the path to a post of this rank.
    #[inline(always)]
    pub(super) fn keep_post(&mut self, request: RequestId) {
        if let Some(causes) = &mut self.causes {
            debug_assert_eq!(causes.path.end(), self.strand.clock, "rank {}: path behind clock", self.me);
            causes.post(request, None);
        }
    }

    #[inline]
    fn path_to_now(&self) -> &CriticalPath {
        let path = &self.causes.as_ref().expect("critical paths are followed").path;
        debug_assert_eq!(path.end(), self.strand.clock, "rank {}: path behind clock", self.me);
        path
    }

    /// Sends the path to the post of a message along with the message.
    #[inline(always)]
    pub(super) fn send_path(
        &mut self,
        (to, lane, channel): (Rank, Lane, Option<OutIdx>),
        message: &Message,
        request: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let Some(causes) = &mut self.causes else { return };
        let in_order = match (lane, channel) {
            (Lane::Port(port), Some(channel)) => {
                causes.lines.put(channel, (to, port), &causes.path, causes.shelves)
            }
            _ => false,
        };
        if message.reply.is_some() {
            let bytes = message.bytes + self.world.parameters.envelope;
            causes.post(request, Some(Flow::Out { to, bytes }));
        }
        debug_assert_eq!(self.path_to_now().end(), message.posted, "a path leads to the post of its message");
        if !in_order {
            self.put_path_to_now(to, Key::of(lane, message), outbox);
        }
    }

    #[inline(never)]
    fn put_path_to_now(&self, to: Rank, key: Key, outbox: &mut Outbox<Token, M::Order>) {
        self.put(to, key, self.path_to_now(), outbox);
    }

    fn put(&self, to: Rank, key: Key, path: &CriticalPath, outbox: &mut Outbox<Token, M::Order>) {
        let shelves = self.causes.as_ref().expect("critical paths are followed").shelves;
        if !shelves.put(to, key, path) {
            self.send_pieces(shelves, (to, key), path, outbox);
        }
    }

    #[cold]
    fn send_pieces(
        &self,
        shelves: &Shelves,
        (to, key): (Rank, Key),
        path: &CriticalPath,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let (from, pieces) = (self.me, cut(key, path));
        shelves.count_pieces(pieces.len());
        pieces.into_iter().for_each(|piece| outbox.send(to, Token::Piece { from, piece }));
    }

    /// Handles a fragment of a path from another process.
    pub(super) fn take_piece(&mut self, from: Rank, piece: Piece) {
        let bytes = self.causes().incoming.entry(from).or_default();
        if let Some((key, path)) = join(bytes, piece) {
            let me = self.me;
            let causes = self.causes();
            if !causes.lines.take_in(me, key, &path, causes.shelves) {
                causes.shelf.put(key, &path);
            }
        }
    }

    /// Records the cause of the arrival of a matched message: the side that posts last, or the sender of an eager message.
    #[inline(always)]
    pub(super) fn meet_cause(
        &mut self,
        port: usize,
        (message, departure): (&Message, Departure),
        (request, ready): (RequestId, SimTime),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        debug_assert!(self.has_path(port, message), "every message has a path");
        let Some(causes) = &mut self.causes else { return };
        let bytes = message.bytes + self.world.parameters.envelope;
        let flow = Flow::In { port: port as u32, bytes };
        if !matches!(departure, Departure::Received) || message.posted > ready {
            if !causes.meet_late(request, port, flow) {
                self.take_path(port, message, (request, flow));
            }
            return;
        }
        causes.meet(request, flow);
        self.pass_over(port, message);
        if let Some(send) = message.reply
            && message.posted < ready
        {
            self.tell_sender(port, request, send, outbox);
        }
    }

    /// Makes the path that came with a message the cause of its receive.
    #[inline(never)]
    fn take_path(&mut self, port: usize, message: &Message, (request, flow): (RequestId, Flow)) {
        let key = self.key_at(port, message);
        let causes = self.causes();
        let path = causes.take(key);
        causes.set(request, path, Some(flow));
    }

    /// Sends the path to the post of a receive to the sender that has waited for it.
    #[inline(never)]
    fn tell_sender(
        &mut self,
        port: usize,
        receive: RequestId,
        send: RequestId,
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        let causes = self.causes();
        let posted = causes.path_to_post(receive).clone();
        let Port { peer, .. } = *self.ports.get(port);
        self.put(peer, Key::Arrival(send), &posted, outbox);
    }

    #[inline(always)]
    fn pass_over(&mut self, port: usize, message: &Message) {
        match self.causes().lines.to(port) {
            Some(line) => line.pass_over(),
            None => self.leave_path(port, message),
        }
    }

    #[inline(never)]
    fn leave_path(&mut self, port: usize, message: &Message) {
        let key = self.key_at(port, message);
        let path = self.causes().take(key);
        debug_assert!(path.is_some(), "every message has a path");
    }

    fn has_path(&mut self, port: usize, message: &Message) -> bool {
        let key = self.key_at(port, message);
        self.causes.as_mut().is_none_or(|causes| causes.get(key).is_some())
    }

    fn key_at(&self, port: usize, message: &Message) -> Key {
        let lane = if port < self.trace.ports() as usize {
            Lane::Port(PortId::new(port as u32))
        } else {
            Lane::Collective(self.ports.get(port).peer.get())
        };
        Key::of(lane, message)
    }

    /// Drops the path of a message that is never received.
    pub(super) fn drop_path(&mut self, port: usize, message: &Message) {
        if_followed!(self, pass_over(port, message));
    }

    /// Records the cause of the arrival of a sent message: the post of the receive, if that was later.
    #[inline(always)]
    pub(super) fn hear_of_receive(&mut self, request: RequestId) {
        if_followed!(self, take_path_of_receive(request));
    }

    #[inline(never)]
    fn take_path_of_receive(&mut self, request: RequestId) {
        let causes = self.causes();
        let path = causes.take(Key::Arrival(request));
        if path.is_some() {
            causes.cause(request).path = path;
        }
    }

    /// Sends the path to a time along with the time; the path includes the transfer of the data that the time stands for.
    pub(super) fn tell_path(
        &mut self,
        to: Rank,
        message: &Message,
        (kind, data): (ActionKind, Alone),
        outbox: &mut Outbox<Token, M::Order>,
    ) {
        if self.causes.is_none() {
            return;
        }
        let mut path = self.path_to_now().clone();
        data.lengthen(&mut path, kind);
        self.put(to, Key::of(Lane::Time(self.me.get()), message), &path, outbox);
    }

    /// Makes the path that came with a time the cause of its receive.
    pub(super) fn hear_path(&mut self, from: Rank, message: &Message, request: RequestId) {
        if let Some(causes) = &mut self.causes {
            // Numbers, which are sent likewise, come without a path.
            if let Some(path) = causes.take(Key::of(Lane::Time(from.get()), message)) {
                causes.set(request, Some(path), None);
            }
        }
    }

    /// Extends the path to now by the transfer of data in an operation of this kind.
    pub(super) fn pass_until_now(&mut self, kind: ActionKind, data: Alone) {
        if let Some(causes) = &mut self.causes {
            data.lengthen(causes.path_mut(), kind);
        }
    }

    /// Returns the path with which a non-blocking operation begins.
    pub(super) fn branch_path(&self) -> Option<CriticalPath> {
        self.causes.is_some().then(|| self.path_to_now().clone())
    }

    /// Swaps the path to the clock with that of a non-blocking operation; a second call undoes the first.
    pub(super) fn swap_path(&mut self, path: &mut Option<CriticalPath>) {
        if let (Some(causes), Some(path)) = (&mut self.causes, path) {
            std::mem::swap(causes.path_mut(), path);
        }
    }

    /// Makes the path to the end of a non-blocking operation the cause of its request.
    pub(super) fn end_path(&mut self, request: RequestId, path: Option<CriticalPath>) {
        if let (Some(causes), Some(path)) = (&mut self.causes, path) {
            causes.set(request, Some(path), None);
        }
    }

    /// Collects, of requests that are about to be completed together, those whose completion is after now.
    pub(super) fn gather_causes(&mut self, gather: impl FnOnce(&Self, &mut Vec<(SimTime, RequestId)>)) {
        let Some(causes) = &mut self.causes else { return };
        let mut due = std::mem::take(&mut causes.due);
        due.clear();
        gather(self, &mut due);
        self.causes().due = due;
    }

    /// Returns those requests that are complete after now, with the time of completion.
    pub(super) fn complete_later(
        &self,
        requests: impl Iterator<Item = RequestId>,
    ) -> impl Iterator<Item = (SimTime, RequestId)> {
        requests.filter_map(|request| match self.requests.get(request) {
            Request::Complete(Completion { at, .. }) if at > self.strand.clock => Some((at, request)),
            _ => None,
        })
    }

    /// Makes the path to the message that a probe finds the cause of its end.
    pub(super) fn gather_probed(&mut self, call: CallId) {
        if self.causes.is_some()
            && let Some((lane, message)) = self.first_message(call)
        {
            let (at, key) = (message.posted, Key::of(lane, message));
            // A probe blocks: no receive does so.
            let request = self.requests.receive();
            let causes = self.causes();
            let path = causes.get(key);
            debug_assert!(path.is_some(), "every message has a path");
            causes.set(request, path, None);
            causes.due = vec![(at, request)];
        }
    }

    /// Switches to the path that caused the completion of a request at a later instant.
    #[inline(never)]
    pub(super) fn follow_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if !self.causes().stay(request, at, kind) {
            self.follow_cause(request, at, kind);
        }
    }

    #[inline(never)]
    fn follow_cause(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        let me = self.me;
        let causes = self.causes();
        let alone = match causes.follow(request, me) {
            None => Passage::default(),
            Some(Flow::In { port, bytes }) => match causes.alone_again(port, bytes) {
                Some(known) => known,
                None => self.alone_from(port, bytes),
            },
            Some(Flow::Out { to, bytes }) => self.alone_to(to, bytes),
        };
        self.causes().path.pass(kind, alone, at);
    }

    /// Returns the transfer time of a message to a port without contention.
    #[inline(never)]
    fn alone_from(&mut self, port: u32, bytes: Bytes) -> Passage {
        let (machine, way) = (self.world.machine, self.ports.get(port as usize).path);
        self.causes().passages(port).of(bytes, || alone(machine, way, bytes))
    }

    /// Returns the transfer time of a message to another rank without contention. There is a route: the receiver has looked it up.
    #[inline(never)]
    fn alone_to(&mut self, to: Rank, bytes: Bytes) -> Passage {
        let (machine, way) = (self.world.machine, self.way(to).ok());
        self.causes().to_ranks.entry(to).or_default().of(bytes, || alone(machine, way, bytes))
    }

    /// Switches to the path that caused the completion, at a later instant, of one of the requests that are completed together: the
    /// first of several.
    #[inline(never)]
    pub(super) fn follow_due(&mut self, at: SimTime, kind: ActionKind) {
        let first = self.causes().due.iter().find(|&&(complete, _)| complete == at);
        let &(_, request) = first.expect("a later completion has a cause");
        self.follow_request(request, at, kind);
    }
}

/// Returns the transfer time of a message without contention; zero without a route.
fn alone<M: Machine>(machine: &M, way: Option<M::Path>, bytes: Bytes) -> Passage {
    way.map_or(Passage::default(), |way| machine.alone(way, bytes))
}
