//! Tracking of the critical paths of a rank: to its clock, and to the completions of its requests.
//!
//! The path to the clock of the current thread of control grows with it. An event that may become the cause of a later instant
//! keeps a copy of the path: a message, for its receiver; a post of this rank, for the request and, where the other side waits,
//! for that.

mod channel;
mod store;
mod tracker;
mod transfer_times;

use pdes_core::{Bytes, Rank, SimTime, StateVisitor};
use trace_mmap::PortId;

use super::{ActionSpan, Carrier, Match, Network, Observer, Sent, SentTime, UncontendedMessages, Wait};
use crate::critical_path::CriticalPath;
use crate::machine::UncontendedTransfer;
use crate::point_to_point::{OperationIndex, RequestId};
use crate::statistics::ActionKind;
use crate::token::{Fragment, Message, ReceiveQueue};
pub(crate) use store::PathStores;
use store::{PathKey, join, split};
pub(super) use tracker::CriticalPathTracker;
use tracker::DataFlow;

impl UncontendedMessages {
    /// Adds the time of the data to a path.
    fn extend(&self, path: &mut CriticalPath, kind: ActionKind) {
        let end = path.end() + self.time;
        path.spend(kind, path.end() + self.overhead);
        path.add_transfer(kind, self.transfer, end);
    }
}

impl Observer for CriticalPathTracker<'_> {
    /// The sums that paths share are saved once. Paths are no sums: they are not compared.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if !(visitor.is_saving() || visitor.is_loading()) {
            return;
        }
        let mut saved = self.saved();
        visitor.saved(&mut saved);
        if visitor.is_loading() && self.continue_from(saved).is_none() {
            visitor.refuse();
        }
    }

    #[inline(always)]
    fn action_ended(&mut self, action: &ActionSpan) {
        self.worked(action.kind, action.end);
    }

    fn rank_ended(&mut self, last: &ActionSpan) {
        self.worked(last.kind, last.end);
    }

    #[inline(always)]
    fn worked(&mut self, kind: ActionKind, now: SimTime) {
        if self.path.end() < now {
            self.path_to_extend().spend(kind, now);
        }
    }

    fn completing(&mut self, later: impl Iterator<Item = (SimTime, RequestId)> + Clone) {
        self.due.clear();
        self.due.extend(later);
    }

    #[inline(always)]
    fn waited(&mut self, wait: &Wait, network: &mut dyn Network) {
        match wait.request {
            Some(request) => self.follow_request(request, wait.end, wait.kind, network),
            None => self.follow_due(wait.end, wait.kind, network),
        }
    }

    /// Sends the path to the post of a message along with the message.
    #[inline(always)]
    fn message_sent(&mut self, sent: &Sent, carrier: &mut dyn Carrier) {
        let &Sent { to, queue: Some(queue), channel, ref message, request } = sent else { return };
        let in_order = match (queue, channel) {
            (ReceiveQueue::Port(port), Some(channel)) => {
                self.channels.send(channel, (to, port), &self.path, self.stores)
            }
            _ => false,
        };
        if message.reply.is_some() {
            let bytes = message.bytes + self.envelope;
            self.post(request, Some(DataFlow::Out { to, bytes }));
        }
        debug_assert_eq!(self.path.end(), message.posted, "a path leads to the post of its message");
        if !in_order {
            self.store_own_path(to, PathKey::of(queue, message), carrier);
        }
    }

    /// Remembers the path to a post of this rank.
    #[inline(always)]
    fn receive_posted(&mut self, request: RequestId, now: SimTime) {
        debug_assert_eq!(self.path.end(), now, "rank {}: path behind clock", self.me);
        self.post(request, None);
    }

    /// Records the cause of the arrival of a matched message: the side that posts last, or the sender of an eager message.
    #[inline(always)]
    fn message_matched(&mut self, matched: &Match<'_>, carrier: &mut dyn Carrier) {
        let &Match { port, from, message, request, posted, is_eager } = matched;
        debug_assert!(self.has_path(port, from, message), "every message has a path");
        let bytes = message.bytes + self.envelope;
        let flow = DataFlow::In { port: port as u32, bytes };
        if is_eager || message.posted > posted {
            if !self.set_late_flow(request, port, flow) {
                self.track_message((port, from), *message, (request, flow));
            }
            return;
        }
        self.set_flow(request, flow);
        self.message_dropped(port, from, message);
        if let Some(send) = message.reply
            && message.posted < posted
        {
            self.send_path_to_sender(from, request, send, carrier);
        }
    }

    #[inline(always)]
    fn message_dropped(&mut self, port: usize, from: Rank, message: &Message) {
        match self.channels.receiver(port) {
            Some(channel) => channel.skip(),
            None => self.discard_stored_path(port, from, *message),
        }
    }

    /// Makes the path to the message that a probe finds the cause of its end.
    fn message_probed(&mut self, request: RequestId, _: Rank, queue: ReceiveQueue, message: &Message) {
        let path = self.peek_path(PathKey::of(queue, message));
        debug_assert!(path.is_some(), "every message has a path");
        self.set(request, path, None);
    }

    /// Records the cause of the arrival of a sent message: the post of the receive, if that was later.
    #[inline(never)]
    fn send_completed(&mut self, request: RequestId, _: SimTime, _: crate::Cause) {
        let path = self.take_path(PathKey::Arrival(request));
        if path.is_some() {
            self.cause(request).path = path;
        }
    }

    /// Sends the path to a time along with the time; the path includes the transfer of the data that the time stands for.
    fn time_sent(&mut self, sent: &SentTime<'_>, carrier: &mut dyn Carrier) {
        let mut path = self.path.clone();
        sent.stands_for.extend(&mut path, sent.kind);
        let key = PathKey::of(ReceiveQueue::Time(self.me.get()), sent.message);
        self.store_path(sent.to, key, &path, carrier);
    }

    /// Makes the path that came with a time the cause of its receive.
    fn time_received(&mut self, from: Rank, message: &Message, request: RequestId) {
        // Numbers, which are sent likewise, come without a path.
        if let Some(path) = self.take_path(PathKey::of(ReceiveQueue::Time(from.get()), message)) {
            self.set(request, Some(path), None);
        }
    }

    fn messages_charged(&mut self, kind: ActionKind, messages: &UncontendedMessages) {
        messages.extend(self.path_to_extend(), kind);
    }

    fn operation_started(&mut self, operation: OperationIndex) {
        if self.of_operations.len() <= operation.index() {
            self.of_operations.resize(operation.index() + 1, None);
        }
        self.of_operations[operation.index()] = Some(self.path.clone());
    }

    fn operation_resumed(&mut self, operation: OperationIndex) {
        self.path_to_extend();
        if let Some(path) = &mut self.of_operations[operation.index()] {
            std::mem::swap(&mut self.path, path);
        }
    }

    fn operation_paused(&mut self, operation: OperationIndex) {
        self.operation_resumed(operation);
    }

    /// Makes the path to the end of a non-blocking operation the cause of its request.
    fn operation_ended(&mut self, operation: OperationIndex, request: RequestId) {
        let path = self.of_operations[operation.index()].take();
        self.set(request, path, None);
    }

    fn operation_dropped(&mut self, operation: OperationIndex) {
        self.of_operations[operation.index()] = None;
    }

    /// Handles a fragment of a path from another process.
    fn data_received(&mut self, from: Rank, fragment: Fragment) {
        if let Some((key, path)) = join(self.fragments.entry(from).or_default(), fragment)
            && !self.channels.store(self.me, key, &path, self.stores)
        {
            self.store.insert(key, &path);
        }
    }
}

impl CriticalPathTracker<'_> {
    /// Returns the path to the clock.
    pub(super) fn path(&self) -> &CriticalPath {
        &self.path
    }

    #[inline(never)]
    fn store_own_path(&self, to: Rank, key: PathKey, carrier: &mut dyn Carrier) {
        self.store_path(to, key, &self.path, carrier);
    }

    fn store_path(&self, to: Rank, key: PathKey, path: &CriticalPath, carrier: &mut dyn Carrier) {
        if !self.stores.insert(to, key, path) {
            self.send_fragments((to, key), path, carrier);
        }
    }

    #[cold]
    fn send_fragments(&self, (to, key): (Rank, PathKey), path: &CriticalPath, carrier: &mut dyn Carrier) {
        let fragments = split(key, path);
        self.stores.count_fragments(fragments.len());
        fragments.into_iter().for_each(|fragment| carrier.carry(self.me, to, fragment));
    }

    /// Makes the path that came with a message the cause of its receive.
    #[inline(never)]
    fn track_message(
        &mut self,
        (port, from): (usize, Rank),
        message: Message,
        (request, flow): (RequestId, DataFlow),
    ) {
        let path = self.take_path(self.key_at(port, from, &message));
        self.set(request, path, Some(flow));
    }

    /// Sends the path to the post of a receive to the sender that has waited for it.
    #[inline(never)]
    fn send_path_to_sender(
        &mut self,
        sender: Rank,
        receive: RequestId,
        send: RequestId,
        carrier: &mut dyn Carrier,
    ) {
        let posted = self.path_to_post(receive).clone();
        self.store_path(sender, PathKey::Arrival(send), &posted, carrier);
    }

    #[inline(never)]
    fn discard_stored_path(&mut self, port: usize, from: Rank, message: Message) {
        let path = self.take_path(self.key_at(port, from, &message));
        debug_assert!(path.is_some(), "every message has a path");
    }

    fn has_path(&mut self, port: usize, from: Rank, message: &Message) -> bool {
        self.peek_path(self.key_at(port, from, message)).is_some()
    }

    fn key_at(&self, port: usize, from: Rank, message: &Message) -> PathKey {
        let queue = if port < self.trace_ports {
            ReceiveQueue::Port(PortId::new(port as u32))
        } else {
            ReceiveQueue::Collective(from.get())
        };
        PathKey::of(queue, message)
    }

    /// Switches to the path that caused the completion of a request at a later instant.
    #[inline(never)]
    fn follow_request(
        &mut self,
        request: RequestId,
        at: SimTime,
        kind: ActionKind,
        network: &mut dyn Network,
    ) {
        if !self.try_extend_in_place(request, at, kind) {
            self.follow_cause(request, at, kind, network);
        }
    }

    #[inline(never)]
    fn follow_cause(&mut self, request: RequestId, at: SimTime, kind: ActionKind, network: &mut dyn Network) {
        let alone = match self.switch_path(request) {
            None => UncontendedTransfer::default(),
            Some(DataFlow::In { port, bytes }) => match self.last_uncontended(port, bytes) {
                Some(known) => known,
                None => self.uncontended_from(port, bytes, network),
            },
            Some(DataFlow::Out { to, bytes }) => {
                let times = self.to_ranks.entry(to).or_default();
                times.get_or_compute(bytes, || network.uncontended_to(to, bytes))
            }
        };
        self.path.add_transfer(kind, alone, at);
    }

    #[inline(never)]
    fn uncontended_from(
        &mut self,
        port: u32,
        bytes: Bytes,
        network: &mut dyn Network,
    ) -> UncontendedTransfer {
        let compute = || network.uncontended_from(port as usize, bytes);
        self.transfer_times(port).get_or_compute(bytes, compute)
    }

    /// Switches to the path that caused the completion, at a later instant, of one of the requests that are completed together: the
    /// first of several.
    #[inline(never)]
    fn follow_due(&mut self, at: SimTime, kind: ActionKind, network: &mut dyn Network) {
        let first = self.due.iter().find(|&&(complete, _)| complete == at);
        let &(_, request) = first.expect("a later completion has a cause");
        self.follow_request(request, at, kind, network);
    }
}
