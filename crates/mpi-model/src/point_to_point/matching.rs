//! Message matching with named sources: posted-receive and unexpected-message queues.
//!
//! A port is the pair of queues of one source and one tag or, where the program receives any tag from that source, of
//! all messages of the source, with a tag filter. Messages and receives match in the order in which the two programs
//! issued them (MPI's non-overtaking rule), whatever their times: neither the schedule of the engine nor simulated time
//! matters. A rank with receives from any source matches all its messages in its mailbox instead.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use pdes_core::{Bytes, LpId, Rank, SimTime, StateVisitor};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_mmap::CommId;

use super::request::RequestId;
use super::slab_queue::{Queue, Slab};
use crate::token::{EagerMessageId, Message};

/// An entry of the posted-receive queue.
///
/// Packed, because most queued items of a rank are receives.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, packed(4))]
pub(crate) struct Receive {
    pub(crate) posted: SimTime,
    pub(crate) request: RequestId,
    /// Number of this post among those of the rank at this instant, from 1.
    pub(crate) round: u32,
    /// Index of the action that posted it.
    pub(crate) action: u64,
    /// Size of the buffer.
    pub(crate) capacity: Bytes,
    pub(crate) wanted: TagFilter,
}

const _: () = assert!(size_of::<Receive>() == 36);

/// Tag of a receive, or any.
///
/// Stored inverted, so that `None` costs no space: tags of programs are below 2^31, and those of operations end in
/// the number of a kind, so that no tag has all bits set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TagFilter(Option<NonZeroU32>);

/// An entry of the unexpected-message queue, or a message on its way there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct UnexpectedMessage {
    pub(crate) message: Message,
    pub(crate) departure: Departure,
}

/// Begin of the transfer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Departure {
    /// At the later of the two posts (rendezvous, and detached messages that are not eager).
    OnMatch,
    /// At the send; the machine answers at once.
    OnSend,
    /// At the send; the machine is simulating the transfer.
    InFlight(EagerMessageId),
}

impl UnexpectedMessage {
    /// Visits a message to a rank, with its tag as it is compared. A post before `past` makes no difference to a message that moves when
    /// it is matched.
    pub(super) fn visit(&mut self, lp: LpId, (past, tag): (SimTime, u32), visitor: &mut StateVisitor<'_>) {
        let Self { message, departure } = self;
        let Message { posted, bytes, tag: _, communicator, reply, round, cause } = message;
        let past = match *departure {
            Departure::OnMatch => {
                visitor.variant(0);
                past
            }
            Departure::OnSend => {
                visitor.variant(1);
                SimTime::ZERO
            }
            Departure::InFlight(id) => {
                visitor.variant(2);
                id.compare(lp, visitor);
                past
            }
        };
        visitor.compare(&(tag, bytes, communicator, reply, cause));
        // Posts of one instant have an order.
        if visitor.time_from(past, posted) {
            visitor.compare(round);
        }
    }
}

impl Receive {
    /// Visits a posted receive, with the tag that it wants as it is compared.
    pub(super) fn visit(&mut self, wanted: Option<u32>, visitor: &mut StateVisitor<'_>) {
        let Self { mut posted, request, round, mut action, capacity, wanted: _ } = *self;
        visitor.compare(&(request, round, capacity, wanted));
        visitor.time(&mut posted);
        // Only messages to the user name the action.
        visitor.counter(&mut action);
        (self.posted, self.action) = (posted, action);
    }
}

impl TagFilter {
    /// Creates the filter of a tag; `None` accepts any.
    #[inline]
    pub(crate) fn new(tag: Option<u32>) -> Self {
        Self(tag.and_then(|tag| NonZeroU32::new(!tag)))
    }

    #[inline]
    pub(crate) fn tag(self) -> Option<u32> {
        self.0.map(|inverted| !inverted.get())
    }
}

impl Receive {
    #[inline]
    pub(crate) fn accepts(&self, message: &Message) -> bool {
        self.wanted.tag().is_none_or(|tag| tag == message.tag)
    }
}

/// Queues of one source and tag, with the route of their messages. One of them is always empty unless tags are filtered.
#[derive(Debug)]
pub(crate) struct Port<Route> {
    pub(crate) peer: Rank,
    /// Route, looked up before the first receive is posted.
    pub(crate) route: Option<Route>,
    unexpected: Queue,
    posted: Queue,
}

impl<Route: Copy> Port<Route> {
    pub(crate) fn new(peer: Rank, path: Option<Route>) -> Self {
        Self { peer, route: path, unexpected: Queue::new(), posted: Queue::new() }
    }
}

/// Slabs of the queues of all ports of a rank.
#[derive(Debug, Default)]
struct Slabs {
    unexpected: Slab<UnexpectedMessage>,
    posted: Slab<Receive>,
}

/// The ports of a rank: those of its trace, then those of collective operations and of its mailbox, which are created
/// on first use.
#[derive(Debug)]
pub(crate) struct Ports<Route> {
    table: Vec<Port<Route>>,
    slabs: Slabs,
    by_context: Option<Box<FxHashMap<(Context, Rank), u32>>>,
}

impl<Route: Copy> Ports<Route> {
    pub(crate) fn new(of_trace: Vec<Port<Route>>) -> Self {
        Self { table: of_trace, slabs: Slabs::default(), by_context: None }
    }

    pub(crate) fn get(&self, index: usize) -> &Port<Route> {
        &self.table[index]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Port<Route> {
        &mut self.table[index]
    }

    /// Matches a message with the first posted receive that accepts it, or queues it as unexpected. O(1) unless tags are filtered.
    #[inline]
    pub(crate) fn arrive(&mut self, port: usize, unexpected: UnexpectedMessage) -> Option<Receive> {
        let port = &mut self.table[port];
        let accepts = |receive: &Receive| receive.accepts(&unexpected.message);
        let found = port.posted.take_first(&mut self.slabs.posted, accepts);
        if found.is_none() {
            port.unexpected.push(&mut self.slabs.unexpected, unexpected);
        }
        found
    }

    /// Matches a receive with the first unexpected message that it accepts, or queues it as posted. O(1) unless tags are filtered.
    #[inline]
    pub(crate) fn post(&mut self, port: usize, receive: Receive) -> Option<UnexpectedMessage> {
        let port = &mut self.table[port];
        let accepts = |unexpected: &UnexpectedMessage| receive.accepts(&unexpected.message);
        let found = port.unexpected.take_first(&mut self.slabs.unexpected, accepts);
        if found.is_none() {
            port.posted.push(&mut self.slabs.posted, receive);
        } else if self.slabs.unexpected.is_sparse() {
            self.compact_unexpected();
        }
        found
    }

    /// Moves the unexpected messages, which are few now, to less memory. O(ports): with more of these than that saves nodes, it is not worth it.
    #[cold]
    fn compact_unexpected(&mut self) {
        let Self { table, slabs: Slabs { unexpected, .. }, .. } = self;
        if table.len() < unexpected.capacity() {
            unexpected.compact(table.iter_mut().map(|port| &mut port.unexpected));
        }
    }

    /// Removes and returns the first unexpected message with this tag.
    pub(crate) fn take_unexpected(&mut self, port: usize, tag: u32) -> Option<UnexpectedMessage> {
        self.table[port]
            .unexpected
            .take_first(&mut self.slabs.unexpected, |unexpected| unexpected.message.tag == tag)
    }

    /// Removes an unmatched posted receive; returns whether there was one. O(ports).
    pub(crate) fn cancel_receive(&mut self, request: RequestId) -> bool {
        let receives = &mut self.slabs.posted;
        let is_it = |receive: &Receive| receive.request == request;
        self.table.iter_mut().any(|port| port.posted.take_first(receives, is_it).is_some())
    }

    /// Returns the first unexpected message with this tag, or with any tag.
    pub(crate) fn first_unexpected(&self, port: usize, tag: Option<u32>) -> Option<&Message> {
        self.messages(port).find(|message| tag.is_none_or(|tag| tag == message.tag))
    }

    /// Returns a message and a receive that are queued at a port although their tags belong to different operations.
    #[inline]
    pub(crate) fn find_mismatch(
        &self,
        port: usize,
        contradict: impl Fn(u32, u32) -> bool,
    ) -> Option<(Message, Receive)> {
        if self.table[port].unexpected.is_empty() {
            return None;
        }
        self.table[port].posted.iter(&self.slabs.posted).find_map(|receive| {
            let message = self.first_mismatched(port, receive.wanted.tag()?, &contradict)?;
            Some((*message, *receive))
        })
    }

    /// Returns an unexpected message at a port whose tag contradicts `tag`.
    pub(crate) fn first_mismatched(
        &self,
        port: usize,
        tag: u32,
        contradict: impl Fn(u32, u32) -> bool,
    ) -> Option<&Message> {
        self.messages(port).find(|message| contradict(tag, message.tag))
    }

    /// Returns all unexpected messages, with their ports.
    pub(crate) fn unexpected_messages(&self) -> impl Iterator<Item = (usize, &UnexpectedMessage)> {
        let ports = if self.slabs.unexpected.is_empty() { &[] } else { &*self.table };
        ports.iter().enumerate().flat_map(|(index, port)| {
            port.unexpected.iter(&self.slabs.unexpected).map(move |unexpected| (index, unexpected))
        })
    }

    /// Returns all posted receives, with their ports.
    pub(crate) fn posted_receives(&self) -> impl Iterator<Item = (usize, &Receive)> {
        let ports = if self.slabs.posted.is_empty() { &[] } else { &*self.table };
        ports.iter().enumerate().flat_map(|(index, port)| {
            port.posted.iter(&self.slabs.posted).map(move |receive| (index, receive))
        })
    }

    /// Visits all queued items of a rank, port by port; the first `of_trace` ones are those of the trace. `relative_tag` returns a tag of
    /// the operations of a communicator as it is compared.
    pub(super) fn visit<E>(
        &mut self,
        (lp, of_trace, past): (LpId, u32, SimTime),
        relative_tag: impl Fn(u32, CommId, &mut StateVisitor<'_>) -> u32,
        path: impl Fn(Rank) -> Result<Route, E>,
        visitor: &mut StateVisitor<'_>,
    ) {
        if visitor.is_saving() {
            visitor.saved(&mut self.save(of_trace));
            return;
        }
        if visitor.is_loading() {
            let mut queued = QueuedItems::default();
            visitor.saved(&mut queued);
            if !matches!(self.restore(&queued, path), Ok(true)) {
                visitor.refuse();
            }
            return;
        }
        visitor.compare(&self.are_empty());
        if self.are_empty() {
            return;
        }
        let by_index = self.contexts();
        let Self { table, slabs: Slabs { unexpected: messages, posted: receives }, by_context: _ } = self;
        for (index, Port { peer: _, route: _, unexpected, posted }) in (0_u32..).zip(table) {
            let relative = |tag, visitor: &mut StateVisitor<'_>| match by_index.get(&index) {
                Some(Context::Collective(id) | Context::Times(id)) => relative_tag(tag, *id, visitor),
                Some(Context::Mailbox) | None => tag,
            };
            unexpected.for_each(messages, |message| {
                visitor.compare(&(1_u8, index));
                let tag = relative(message.message.tag, visitor);
                message.visit(lp, (past, tag), visitor);
            });
            posted.for_each(receives, |receive| {
                visitor.compare(&(2_u8, index));
                let wanted = { receive.wanted }.tag().map(|tag| relative(tag, visitor));
                receive.visit(wanted, visitor);
            });
        }
    }

    /// Returns the communicator of a port for operations.
    pub(super) fn collective_of(&self, port: usize) -> Option<CommId> {
        match self.contexts().get(&(port as u32)) {
            Some(Context::Collective(id) | Context::Times(id)) => Some(*id),
            Some(Context::Mailbox) | None => None,
        }
    }

    /// Returns the contexts of ports that are not of the trace.
    fn contexts(&self) -> BTreeMap<u32, Context> {
        let contexts = self.by_context.iter().flat_map(|contexts| contexts.iter());
        contexts.map(|(&(context, _), &index)| (index, context)).collect()
    }

    /// Returns whether a posted receive is queued.
    pub(crate) fn has_receives(&self) -> bool {
        !self.slabs.posted.is_empty()
    }

    /// Returns whether nothing is queued.
    pub(crate) fn are_empty(&self) -> bool {
        self.slabs.unexpected.is_empty() && self.slabs.posted.is_empty()
    }

    /// Returns all queued items, and the ports after the first `of_trace` ones, which are those of the trace.
    fn save(&self, of_trace: u32) -> QueuedItems {
        let by_index = self.contexts();
        let further = self.table.iter().enumerate().skip(of_trace as usize);
        let further = further.filter_map(|(index, port)| {
            Some((*by_index.get(&(index as u32))?, port.peer, port.route.is_some()))
        });
        QueuedItems {
            other_ports: further.collect(),
            unexpected: self
                .unexpected_messages()
                .map(|(port, unexpected)| (port as u32, *unexpected))
                .collect(),
            posted: self.posted_receives().map(|(port, receive)| (port as u32, *receive)).collect(),
        }
    }

    /// Restores queued items into empty queues; returns whether they fit the ports.
    fn restore<E>(
        &mut self,
        queued: &QueuedItems,
        path: impl Fn(Rank) -> Result<Route, E>,
    ) -> Result<bool, E> {
        for &(context, peer, has_path) in &queued.other_ports {
            let index = self.port_of(context, peer);
            self.table[index].route = has_path.then(|| path(peer)).transpose()?;
        }
        let (table, Slabs { unexpected: messages, posted: receives }) = (&mut self.table, &mut self.slabs);
        let ports = || {
            queued.unexpected.iter().map(|(port, _)| port).chain(queued.posted.iter().map(|(port, _)| port))
        };
        if !ports().all(|&port| (port as usize) < table.len()) {
            return Ok(false);
        }
        queued
            .unexpected
            .iter()
            .for_each(|&(port, unexpected)| table[port as usize].unexpected.push(messages, unexpected));
        queued.posted.iter().for_each(|&(port, receive)| table[port as usize].posted.push(receives, receive));
        Ok(true)
    }

    fn messages(&self, port: usize) -> impl Iterator<Item = &Message> {
        self.table[port].unexpected.iter(&self.slabs.unexpected).map(|unexpected| &unexpected.message)
    }

    /// Returns the index of the port for messages from a rank; creates it on first use.
    pub(crate) fn port_of(&mut self, context: Context, peer: Rank) -> usize {
        let by_context = self.by_context.get_or_insert_default();
        // Looked up first: an entry would make room for another port each time.
        if let Some(&index) = by_context.get(&(context, peer)) {
            return index as usize;
        }
        let index = self.table.len();
        if self.table.capacity() == 0 {
            // Many ranks have but one.
            self.table.reserve_exact(1);
        }
        self.table.push(Port::new(peer, None));
        by_context.insert((context, peer), index as u32);
        index
    }
}

/// Queued items of all ports, by the index of their port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct QueuedItems {
    /// Ports after those of the trace, in their order; and whether their routes were looked up.
    other_ports: Vec<(Context, Rank, bool)>,
    unexpected: Vec<(u32, UnexpectedMessage)>,
    posted: Vec<(u32, Receive)>,
}

/// Context of matching (MPI's context id): messages of different contexts never match each other's receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Context {
    /// Collective operations on a communicator.
    Collective(CommId),
    /// Times and numbers that members of collective operations exchange.
    Times(CommId),
    /// The mailbox, which has queues of its own: the port only holds the route.
    Mailbox,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point_to_point::Requests;

    fn message(tag: u32) -> Message {
        Message {
            posted: SimTime::ZERO,
            bytes: Bytes::new(u64::from(tag)),
            tag,
            communicator: CommId::WORLD,
            reply: None,
            round: 0,
            cause: crate::Cause::default(),
        }
    }

    fn ports() -> Ports<()> {
        Ports::new(vec![Port::new(Rank::new(0), Some(()))])
    }

    fn unexpected(message: Message) -> UnexpectedMessage {
        UnexpectedMessage { message, departure: Departure::OnMatch }
    }

    fn receive(tag: Option<u32>) -> Receive {
        let request = Requests::new(0).blocking_send();
        let wanted = TagFilter::new(tag);
        Receive { posted: SimTime::ZERO, round: 0, request, action: 0, capacity: Bytes::ZERO, wanted }
    }

    #[test]
    fn filters_keep_tags() {
        for tag in [None, Some(0), Some(i32::MAX as u32), Some(u32::MAX - 1)] {
            assert_eq!(TagFilter::new(tag).tag(), tag);
        }
    }

    #[test]
    fn an_earlier_message_of_another_tag_is_passed_over_and_keeps_its_place() {
        let mut ports = ports();
        assert!(ports.arrive(0, unexpected(message(7))).is_none());
        assert!(ports.arrive(0, unexpected(message(5))).is_none());
        assert_eq!(ports.post(0, receive(Some(5))).map(|unexpected| unexpected.message.tag), Some(5));
        assert_eq!(ports.post(0, receive(None)).map(|unexpected| unexpected.message.tag), Some(7));
        assert!(ports.post(0, receive(None)).is_none());
    }

    #[test]
    fn a_wave_leaves_no_memory_although_some_message_always_waits() {
        let mut ports = Ports::new([0, 1].map(|peer| Port::new(Rank::new(peer), Some(()))).into());
        ports.arrive(1, unexpected(message(9)));
        assert!((0..1000).all(|tag| ports.arrive(0, unexpected(message(tag))).is_none()));
        assert!(ports.slabs.unexpected.capacity() > 1000);
        for tag in 0..1000 {
            assert_eq!(ports.post(0, receive(None)).map(|unexpected| unexpected.message.tag), Some(tag));
        }
        assert!(ports.slabs.unexpected.capacity() < 100);
        assert_eq!(ports.post(1, receive(None)).map(|unexpected| unexpected.message.tag), Some(9));
    }

    /// Returns the pairs (message, receive) of a sequence of tags and filters, of which step k is a message if `order[k]`.
    fn pairs(messages: &[u32], receives: &[Option<u32>], order: &[bool]) -> Vec<(usize, usize)> {
        let mut ports = ports();
        let (mut sent, mut posted, mut found) = (0, 0, Vec::new());
        let number = |bytes: Bytes| bytes.get() as usize;
        for &is_message in order {
            if is_message {
                let message = Message { bytes: Bytes::new(sent as u64), ..message(messages[sent]) };
                sent += 1;
                found.extend(
                    ports.arrive(0, unexpected(message)).map(|receive| (sent - 1, number(receive.capacity))),
                );
            } else {
                let receive = Receive { capacity: Bytes::new(posted as u64), ..receive(receives[posted]) };
                posted += 1;
                found.extend(
                    ports.post(0, receive).map(|unexpected| (number(unexpected.message.bytes), posted - 1)),
                );
            }
        }
        found.sort_unstable();
        found
    }

    proptest::proptest! {
        /// With one source, the order in which messages and receives meet does not change the pairs.
        #[test]
        fn matching_does_not_depend_on_the_schedule(
            messages in proptest::collection::vec(0_u32..3, 8),
            receives in proptest::collection::vec(proptest::option::of(0_u32..3), 8),
            order in proptest::sample::subsequence((0..16).collect::<Vec<usize>>(), 8),
        ) {
            let mixed: Vec<bool> = (0..16).map(|step| order.contains(&step)).collect();
            let messages_first: Vec<bool> = (0..16).map(|step| step < 8).collect();
            let expected = pairs(&messages, &receives, &messages_first);
            proptest::prop_assert_eq!(pairs(&messages, &receives, &mixed), expected);
        }
    }
}
