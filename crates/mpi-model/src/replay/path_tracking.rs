//! Tracking of the critical paths of a rank: to its clock, and to the completions of its requests.
//!
//! The path to the clock of the current thread of control grows with it. An event that may become the cause of a later instant
//! keeps a copy of the path: a message, for its receiver; a post of this rank, for the request and, where the other side waits,
//! for that.

mod tracker;

use pdes_core::{Bytes, Outbox, Rank, SimTime};
use trace_mmap::{CallId, OutIdx, PortId};

use super::RankProcess;
use super::closed_form::UncontendedMessages;
use super::path_store::{PathKey, PathStores, join, split};
use crate::critical_path::CriticalPath;
use crate::machine::{Machine, UncontendedTransfer};
use crate::matching::{Departure, Port};
use crate::request::{Request, RequestCompletion, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Fragment, Message, ReceiveQueue, Token};
pub(super) use tracker::CriticalPathTracker;
use tracker::DataFlow;

/// Calls a method if critical paths are followed, out of line of replays in which they are not.
macro_rules! if_followed {
    ($process:expr, $name:ident($($argument:expr),*)) => {
        if $process.path_tracker.is_some() {
            $process.$name($($argument),*);
        }
    };
}

impl UncontendedMessages {
    /// Adds the time of the data to a path.
    fn extend(self, path: &mut CriticalPath, kind: ActionKind) {
        let end = path.end() + self.time;
        path.spend(kind, path.end() + self.overhead);
        path.add_transfer(kind, self.transfer, end);
    }
}

impl<'t, M: Machine> RankProcess<'t, M> {
    /// Returns the critical path to the end of the rank, where [requested](crate::Replay::with_critical_paths).
    pub fn critical_path(&self) -> Option<&CriticalPath> {
        self.path_tracker.as_deref().map(|path_tracker| &path_tracker.path)
    }

    #[inline]
    fn path_tracker(&mut self) -> &mut CriticalPathTracker<'t> {
        self.path_tracker.as_mut().expect("critical paths are followed")
    }

    /// Extends the path to the clock by an action of this kind.
    #[inline(always)]
    pub(super) fn spend(&mut self, kind: ActionKind) {
        let now = self.thread.clock;
        if let Some(path_tracker) = &mut self.path_tracker
            && path_tracker.path.end() < now
        {
            path_tracker.path_to_extend().spend(kind, now);
        }
    }

    /// Remembers the path to a post of this rank.
    #[inline(always)]
    pub(super) fn track_post(&mut self, request: RequestId) {
        if let Some(path_tracker) = &mut self.path_tracker {
            debug_assert_eq!(
                path_tracker.path.end(),
                self.thread.clock,
                "rank {}: path behind clock",
                self.me
            );
            path_tracker.post(request, None);
        }
    }

    #[inline]
    fn path_to_now(&self) -> &CriticalPath {
        let path = &self.path_tracker.as_ref().expect("critical paths are followed").path;
        debug_assert_eq!(path.end(), self.thread.clock, "rank {}: path behind clock", self.me);
        path
    }

    /// Sends the path to the post of a message along with the message.
    #[inline(always)]
    pub(super) fn send_path(
        &mut self,
        (to, queue, channel): (Rank, ReceiveQueue, Option<OutIdx>),
        message: &Message,
        request: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let Some(path_tracker) = &mut self.path_tracker else { return };
        let in_order = match (queue, channel) {
            (ReceiveQueue::Port(port), Some(channel)) => {
                path_tracker.channels.send(channel, (to, port), &path_tracker.path, path_tracker.stores)
            }
            _ => false,
        };
        if message.reply.is_some() {
            let bytes = message.bytes + self.replay.parameters.envelope;
            path_tracker.post(request, Some(DataFlow::Out { to, bytes }));
        }
        debug_assert_eq!(self.path_to_now().end(), message.posted, "a path leads to the post of its message");
        if !in_order {
            self.store_path_to_now(to, PathKey::of(queue, message), outbox);
        }
    }

    #[inline(never)]
    fn store_path_to_now(&self, to: Rank, key: PathKey, outbox: &mut Outbox<Token, M::WorkRequest>) {
        self.store_path(to, key, self.path_to_now(), outbox);
    }

    fn store_path(
        &self,
        to: Rank,
        key: PathKey,
        path: &CriticalPath,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let stores = self.path_tracker.as_ref().expect("critical paths are followed").stores;
        if !stores.insert(to, key, path) {
            self.send_fragments(stores, (to, key), path, outbox);
        }
    }

    #[cold]
    fn send_fragments(
        &self,
        stores: &PathStores,
        (to, key): (Rank, PathKey),
        path: &CriticalPath,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let (from, fragments) = (self.me, split(key, path));
        stores.count_fragments(fragments.len());
        fragments.into_iter().for_each(|fragment| outbox.send(to, Token::PathFragment { from, fragment }));
    }

    /// Handles a fragment of a path from another process.
    pub(super) fn fragment_arrived(&mut self, from: Rank, fragment: Fragment) {
        let bytes = self.path_tracker().fragments.entry(from).or_default();
        if let Some((key, path)) = join(bytes, fragment) {
            let me = self.me;
            let path_tracker = self.path_tracker();
            if !path_tracker.channels.store(me, key, &path, path_tracker.stores) {
                path_tracker.store.insert(key, &path);
            }
        }
    }

    /// Records the cause of the arrival of a matched message: the side that posts last, or the sender of an eager message.
    #[inline(always)]
    pub(super) fn track_match(
        &mut self,
        port: usize,
        (message, departure): (&Message, Departure),
        (request, ready): (RequestId, SimTime),
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        debug_assert!(self.has_path(port, message), "every message has a path");
        let Some(path_tracker) = &mut self.path_tracker else { return };
        let bytes = message.bytes + self.replay.parameters.envelope;
        let flow = DataFlow::In { port: port as u32, bytes };
        if !matches!(departure, Departure::OnMatch) || message.posted > ready {
            if !path_tracker.set_late_flow(request, port, flow) {
                self.track_message(port, message, (request, flow));
            }
            return;
        }
        path_tracker.set_flow(request, flow);
        self.skip_path(port, message);
        if let Some(send) = message.reply
            && message.posted < ready
        {
            self.send_path_to_sender(port, request, send, outbox);
        }
    }

    /// Makes the path that came with a message the cause of its receive.
    #[inline(never)]
    fn track_message(&mut self, port: usize, message: &Message, (request, flow): (RequestId, DataFlow)) {
        let key = self.key_at(port, message);
        let path_tracker = self.path_tracker();
        let path = path_tracker.take_path(key);
        path_tracker.set(request, path, Some(flow));
    }

    /// Sends the path to the post of a receive to the sender that has waited for it.
    #[inline(never)]
    fn send_path_to_sender(
        &mut self,
        port: usize,
        receive: RequestId,
        send: RequestId,
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        let path_tracker = self.path_tracker();
        let posted = path_tracker.path_to_post(receive).clone();
        let Port { peer, .. } = *self.ports.get(port);
        self.store_path(peer, PathKey::Arrival(send), &posted, outbox);
    }

    #[inline(always)]
    fn skip_path(&mut self, port: usize, message: &Message) {
        match self.path_tracker().channels.receiver(port) {
            Some(line) => line.skip(),
            None => self.discard_stored_path(port, message),
        }
    }

    #[inline(never)]
    fn discard_stored_path(&mut self, port: usize, message: &Message) {
        let key = self.key_at(port, message);
        let path = self.path_tracker().take_path(key);
        debug_assert!(path.is_some(), "every message has a path");
    }

    fn has_path(&mut self, port: usize, message: &Message) -> bool {
        let key = self.key_at(port, message);
        self.path_tracker.as_mut().is_none_or(|path_tracker| path_tracker.peek_path(key).is_some())
    }

    fn key_at(&self, port: usize, message: &Message) -> PathKey {
        let queue = if port < self.trace.ports() as usize {
            ReceiveQueue::Port(PortId::new(port as u32))
        } else {
            ReceiveQueue::Collective(self.ports.get(port).peer.get())
        };
        PathKey::of(queue, message)
    }

    /// Drops the path of a message that is never received.
    pub(super) fn drop_path(&mut self, port: usize, message: &Message) {
        if_followed!(self, skip_path(port, message));
    }

    /// Records the cause of the arrival of a sent message: the post of the receive, if that was later.
    #[inline(always)]
    pub(super) fn track_send_arrival(&mut self, request: RequestId) {
        if_followed!(self, track_path_of_receive(request));
    }

    #[inline(never)]
    fn track_path_of_receive(&mut self, request: RequestId) {
        let path_tracker = self.path_tracker();
        let path = path_tracker.take_path(PathKey::Arrival(request));
        if path.is_some() {
            path_tracker.cause(request).path = path;
        }
    }

    /// Sends the path to a time along with the time; the path includes the transfer of the data that the time stands for.
    pub(super) fn send_path_of_time(
        &mut self,
        to: Rank,
        message: &Message,
        (kind, data): (ActionKind, UncontendedMessages),
        outbox: &mut Outbox<Token, M::WorkRequest>,
    ) {
        if self.path_tracker.is_none() {
            return;
        }
        let mut path = self.path_to_now().clone();
        data.extend(&mut path, kind);
        self.store_path(to, PathKey::of(ReceiveQueue::Time(self.me.get()), message), &path, outbox);
    }

    /// Makes the path that came with a time the cause of its receive.
    pub(super) fn track_time(&mut self, from: Rank, message: &Message, request: RequestId) {
        if let Some(path_tracker) = &mut self.path_tracker {
            // Numbers, which are sent likewise, come without a path.
            if let Some(path) = path_tracker.take_path(PathKey::of(ReceiveQueue::Time(from.get()), message)) {
                path_tracker.set(request, Some(path), None);
            }
        }
    }

    /// Extends the path to now by the transfer of data in an operation of this kind.
    pub(super) fn extend_by_transfer(&mut self, kind: ActionKind, data: UncontendedMessages) {
        if let Some(path_tracker) = &mut self.path_tracker {
            data.extend(path_tracker.path_to_extend(), kind);
        }
    }

    /// Returns the path with which a non-blocking operation begins.
    pub(super) fn fork_path(&self) -> Option<CriticalPath> {
        self.path_tracker.is_some().then(|| self.path_to_now().clone())
    }

    /// Swaps the path to the clock with that of a non-blocking operation; a second call undoes the first.
    pub(super) fn swap_path(&mut self, path: &mut Option<CriticalPath>) {
        if let (Some(path_tracker), Some(path)) = (&mut self.path_tracker, path) {
            std::mem::swap(path_tracker.path_to_extend(), path);
        }
    }

    /// Makes the path to the end of a non-blocking operation the cause of its request.
    pub(super) fn track_operation_end(&mut self, request: RequestId, path: Option<CriticalPath>) {
        if let (Some(path_tracker), Some(path)) = (&mut self.path_tracker, path) {
            path_tracker.set(request, Some(path), None);
        }
    }

    /// Collects, of requests that are about to be completed together, those whose completion is after now.
    pub(super) fn collect_due(&mut self, gather: impl FnOnce(&Self, &mut Vec<(SimTime, RequestId)>)) {
        let Some(path_tracker) = &mut self.path_tracker else { return };
        let mut due = std::mem::take(&mut path_tracker.due);
        due.clear();
        gather(self, &mut due);
        self.path_tracker().due = due;
    }

    /// Returns those requests that are complete after now, with the time of completion.
    pub(super) fn complete_later(
        &self,
        requests: impl Iterator<Item = RequestId>,
    ) -> impl Iterator<Item = (SimTime, RequestId)> {
        requests.filter_map(|request| match self.requests.get(request) {
            Request::Complete(RequestCompletion { at, .. }) if at > self.thread.clock => Some((at, request)),
            _ => None,
        })
    }

    /// Makes the path to the message that a probe finds the cause of its end.
    pub(super) fn track_probed(&mut self, call: CallId) {
        if self.path_tracker.is_some()
            && let Some((queue, message)) = self.first_message(call)
        {
            let (at, key) = (message.posted, PathKey::of(queue, message));
            // A probe blocks: no receive does so.
            let request = self.requests.blocking_receive();
            let path_tracker = self.path_tracker();
            let path = path_tracker.peek_path(key);
            debug_assert!(path.is_some(), "every message has a path");
            path_tracker.set(request, path, None);
            path_tracker.due = vec![(at, request)];
        }
    }

    /// Switches to the path that caused the completion of a request at a later instant.
    #[inline(never)]
    pub(super) fn follow_request(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        if !self.path_tracker().try_extend_in_place(request, at, kind) {
            self.follow_cause(request, at, kind);
        }
    }

    #[inline(never)]
    fn follow_cause(&mut self, request: RequestId, at: SimTime, kind: ActionKind) {
        let me = self.me;
        let path_tracker = self.path_tracker();
        let alone = match path_tracker.switch_path(request, me) {
            None => UncontendedTransfer::default(),
            Some(DataFlow::In { port, bytes }) => match path_tracker.last_uncontended(port, bytes) {
                Some(known) => known,
                None => self.uncontended_from(port, bytes),
            },
            Some(DataFlow::Out { to, bytes }) => self.uncontended_to(to, bytes),
        };
        self.path_tracker().path.add_transfer(kind, alone, at);
    }

    /// Returns the transfer time of a message to a port without contention.
    #[inline(never)]
    fn uncontended_from(&mut self, port: u32, bytes: Bytes) -> UncontendedTransfer {
        let (machine, route) = (self.replay.machine, self.ports.get(port as usize).route);
        self.path_tracker().transfer_times(port).get_or_compute(bytes, || uncontended(machine, route, bytes))
    }

    /// Returns the transfer time of a message to another rank without contention. There is a route: the receiver has looked it up.
    #[inline(never)]
    fn uncontended_to(&mut self, to: Rank, bytes: Bytes) -> UncontendedTransfer {
        let (machine, route) = (self.replay.machine, self.route_to(to).ok());
        self.path_tracker()
            .to_ranks
            .entry(to)
            .or_default()
            .get_or_compute(bytes, || uncontended(machine, route, bytes))
    }

    /// Switches to the path that caused the completion, at a later instant, of one of the requests that are completed together: the
    /// first of several.
    #[inline(never)]
    pub(super) fn follow_due(&mut self, at: SimTime, kind: ActionKind) {
        let first = self.path_tracker().due.iter().find(|&&(complete, _)| complete == at);
        let &(_, request) = first.expect("a later completion has a cause");
        self.follow_request(request, at, kind);
    }
}

/// Returns the transfer time of a message without contention; zero without a route.
fn uncontended<M: Machine>(machine: &M, route: Option<M::Route>, bytes: Bytes) -> UncontendedTransfer {
    route.map_or(UncontendedTransfer::default(), |route| machine.uncontended(route, bytes))
}
