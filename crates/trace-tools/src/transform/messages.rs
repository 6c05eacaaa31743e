//! Messages between two ranks: their selection by the send, and the receives that match.

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, Op, Peer, RecvFrom, RequestName, SendMode, SendTo, Tag};

use super::selector::{Selector, Tracker};
use super::{Program, Refusal};

/// A message as its sender posts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) call: &'static str,
    pub(super) to: Rank,
    pub(super) tag: Tag,
    pub(super) communicator: CommId,
    pub(super) bytes: Bytes,
}

/// A receive as it is posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The source; `None` for any.
    from: Option<Rank>,
    /// The tag; `None` for any.
    tag: Option<Tag>,
    communicator: CommId,
}

impl Received {
    /// Returns source, tag and communicator; `None` if it takes any source or tag.
    pub(super) fn named(&self) -> Option<(Rank, Tag, CommId)> {
        Some((self.from?, self.tag?, self.communicator))
    }

    /// Returns whether a message could fit both receives if they were on one communicator.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        fn fit<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        fit(self.from, other.from) && fit(self.tag, other.tag)
    }
}

/// A part of an operation that concerns messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A send, and whether its request is persistent.
    Send(Sent, bool),
    /// A receive, and whether its request is persistent.
    Receive(Received, bool),
    /// A probe that found, or waited for, a message.
    Probe(Received),
    /// The cancellation of a receive.
    Cancel,
}

/// The persistent requests of a rank, which give the meaning of their starts.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    persistent: FxHashMap<RequestName, Event>,
}

impl Endpoints {
    /// Calls a function with the events of an operation: at most one send, then one receive, except for starts.
    pub(super) fn events(&mut self, op: &Op, mut f: impl FnMut(Event)) {
        match op {
            Op::Call(CallOp::SendInit { to, bytes, request, .. }) => {
                self.create(*request, sent_to(to, *bytes, "start").map(|sent| Event::Send(sent, true)));
            }
            Op::Call(CallOp::RecvInit { from, request, .. }) => {
                self.create(*request, received_from(from).map(|received| Event::Receive(received, true)));
            }
            Op::Call(CallOp::Start { requests }) => {
                requests.iter().filter_map(|name| self.persistent.get(name)).copied().for_each(f);
            }
            Op::Call(CallOp::Probe { from } | CallOp::Iprobe { from, found: true }) => {
                received_from(from).map(Event::Probe).into_iter().for_each(f);
            }
            Op::Call(CallOp::Cancel { cancelled: true, .. }) => f(Event::Cancel),
            op => {
                sent(op).into_iter().for_each(|sent| f(Event::Send(sent, false)));
                received(op).into_iter().for_each(|received| f(Event::Receive(received, false)));
            }
        }
    }

    fn create(&mut self, request: RequestName, event: Option<Event>) {
        match event {
            Some(event) => self.persistent.insert(request, event),
            None => self.persistent.remove(&request),
        };
    }
}

fn sent_to(to: &SendTo, bytes: Bytes, call: &'static str) -> Option<Sent> {
    Some(Sent { call, to: to.peer?, tag: to.tag, communicator: to.communicator, bytes })
}

fn received_from(from: &RecvFrom) -> Option<Received> {
    let source = match from.peer {
        Peer::ProcNull => return None,
        Peer::Rank(rank) => Some(rank),
        Peer::Any { .. } => None,
    };
    Some(Received { from: source, tag: from.tag, communicator: from.communicator })
}

/// Returns the message that an operation sends.
pub(super) fn sent(op: &Op) -> Option<Sent> {
    let on_world = |to: &Option<Rank>, tag: Tag, bytes: &Bytes, call| {
        Some(Sent { call, to: (*to)?, tag, communicator: CommId::WORLD, bytes: *bytes })
    };
    match op {
        Op::Send { peer, tag, bytes } => on_world(peer, *tag, bytes, "send"),
        Op::Isend { peer, tag, bytes } => on_world(peer, *tag, bytes, "isend"),
        Op::SendRecv { to, send_bytes, .. } => on_world(to, Tag::new(0), send_bytes, "sendRecv"),
        Op::Call(
            call @ (CallOp::Send { to, bytes, .. }
            | CallOp::Isend { to, bytes, .. }
            | CallOp::SendRecv { to, send_bytes: bytes, .. }),
        ) => sent_to(to, *bytes, call.name()),
        _ => None,
    }
}

/// Returns the receive that an operation posts.
pub(super) fn received(op: &Op) -> Option<Received> {
    let on_world = |from: &Option<Rank>, tag: Option<Tag>| {
        Some(Received { from: Some((*from)?), tag, communicator: CommId::WORLD })
    };
    match op {
        Op::Recv { peer, tag, .. } | Op::Irecv { peer, tag, .. } => on_world(peer, *tag),
        Op::SendRecv { from, .. } => on_world(from, Some(Tag::new(0))),
        Op::Call(CallOp::Recv { from, .. } | CallOp::Irecv { from, .. } | CallOp::SendRecv { from, .. }) => {
            received_from(from)
        }
        _ => None,
    }
}

/// Returns the size of the message that an operation sends.
pub(super) fn sent_bytes_mut(op: &mut Op) -> Option<&mut Bytes> {
    match op {
        Op::Send { bytes, .. }
        | Op::Isend { bytes, .. }
        | Op::SendRecv { send_bytes: bytes, .. }
        | Op::Call(
            CallOp::Send { bytes, .. }
            | CallOp::Isend { bytes, .. }
            | CallOp::SendRecv { send_bytes: bytes, .. },
        ) => Some(bytes),
        _ => None,
    }
}

/// Returns the size of the buffer of the receive that an operation posts.
pub(super) fn buffer_mut(op: &mut Op) -> Option<&mut Bytes> {
    match op {
        Op::Recv { bytes, .. }
        | Op::Irecv { bytes, .. }
        | Op::SendRecv { recv_bytes: bytes, .. }
        | Op::Call(
            CallOp::Recv { bytes, .. }
            | CallOp::Irecv { bytes, .. }
            | CallOp::SendRecv { recv_bytes: bytes, .. },
        ) => Some(bytes),
        _ => None,
    }
}

/// Returns the send of an operation as an `isend` with this request.
pub(super) fn as_isend(op: &Op, request: RequestName) -> Option<Op> {
    let on_world = |peer: &Option<Rank>, tag| SendTo { peer: *peer, tag, communicator: CommId::WORLD };
    let (to, mode, bytes) = match op {
        Op::Send { peer, tag, bytes } | Op::Isend { peer, tag, bytes } => {
            (on_world(peer, *tag), SendMode::Standard, *bytes)
        }
        Op::SendRecv { to, send_bytes, .. } => (on_world(to, Tag::new(0)), SendMode::Standard, *send_bytes),
        Op::Call(CallOp::Send { to, mode, bytes } | CallOp::Isend { to, mode, bytes, .. }) => {
            (*to, *mode, *bytes)
        }
        Op::Call(CallOp::SendRecv { to, send_bytes, .. }) => (*to, SendMode::Standard, *send_bytes),
        _ => return None,
    };
    Some(Op::Call(CallOp::Isend { to, request: Some(request), mode, bytes }))
}

/// Returns the receive of an operation as an `irecv` with this request.
pub(super) fn as_irecv(op: &Op, request: RequestName) -> Option<Op> {
    let on_world =
        |peer: &Option<Rank>, tag| RecvFrom::on_world(peer.map_or(Peer::ProcNull, Peer::Rank), tag);
    let (from, bytes) = match op {
        Op::Recv { peer, tag, bytes } | Op::Irecv { peer, tag, bytes } => (on_world(peer, *tag), *bytes),
        Op::SendRecv { from, recv_bytes, .. } => (on_world(from, Some(Tag::new(0))), *recv_bytes),
        Op::Call(
            CallOp::Recv { from, bytes }
            | CallOp::Irecv { from, bytes, .. }
            | CallOp::SendRecv { from, recv_bytes: bytes, .. },
        ) => (*from, *bytes),
        _ => return None,
    };
    Some(Op::Call(CallOp::Irecv { from, request: Some(request), bytes }))
}

/// Returns an operation without its send, its receive, or both; `None` if nothing is left.
pub(super) fn without(mut op: Op, sides: Sides) -> Option<Op> {
    match &mut op {
        Op::SendRecv { to, from, .. } => {
            *to = to.filter(|_| !sides.send);
            *from = from.filter(|_| !sides.receive);
        }
        Op::Call(CallOp::SendRecv { to, from, .. }) => {
            if sides.send {
                to.peer = None;
            }
            if sides.receive {
                *from = RecvFrom::on_world(Peer::ProcNull, None);
            }
        }
        _ => return None,
    }
    (sent(&op).is_some() || received(&op).is_some()).then_some(op)
}

/// A channel at its receiver.
type ChannelKey = (Rank, CommId, Tag);

/// The selected messages of a program. Sends and receives of a channel match in the order of posting. Where a receive could take one
/// of several messages, by any tag or from any source, all of these are selected, or none.
#[derive(Debug)]
pub(super) struct SelectedMessages {
    arrivals: Vec<Arrivals>,
}

/// The messages to a rank.
#[derive(Debug, Default)]
struct Arrivals {
    channels: FxHashMap<ChannelKey, Flags>,
    by_source: FxHashMap<(Rank, CommId), Counts>,
    by_communicator: FxHashMap<CommId, Counts>,
    selected: u64,
}

/// Numbers of messages.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u64,
    selected: u64,
}

impl Counts {
    fn add(&mut self, is_selected: bool) {
        self.all += 1;
        self.selected += u64::from(is_selected);
    }

    fn is_mixed(self) -> bool {
        self.selected > 0 && self.selected < self.all
    }
}

/// A bit for each message of a channel.
#[derive(Debug, Default)]
struct Flags {
    bits: Vec<u64>,
    len: u64,
}

impl Flags {
    fn push(&mut self, flag: bool) {
        if self.len.is_multiple_of(64) {
            self.bits.push(0);
        }
        if let Some(last) = self.bits.last_mut() {
            *last |= u64::from(flag) << (self.len % 64);
        }
        self.len += 1;
    }

    fn get(&self, index: u64) -> bool {
        self.bits.get((index / 64) as usize).is_some_and(|bits| bits >> (index % 64) & 1 == 1)
    }
}

impl SelectedMessages {
    /// Selects messages by their sends.
    ///
    /// # Errors
    /// Fails if it is not certain which receives take the selected messages, or if their requests are persistent.
    pub(super) fn new(selector: &Selector, program: &Program<'_>) -> Result<Self, Refusal> {
        let mut messages = Self { arrivals: program.ranks().map(|_| Arrivals::default()).collect() };
        for rank in program.ranks() {
            messages.add_sends(selector, program, rank)?;
        }
        for rank in program.ranks() {
            messages.check_receives(program, rank)?;
        }
        Ok(messages)
    }

    /// Checks that whoever selects the send of a message selects its receive, too: `select` begins the selection of the operations of
    /// a rank, in order.
    ///
    /// # Errors
    /// Fails at a receive of which this is not so, or not certain.
    pub(super) fn check_sides<F: FnMut(&Op) -> bool>(
        program: &Program<'_>,
        select: impl Fn(Rank) -> F,
    ) -> Result<(), Refusal> {
        let mut arrivals: Vec<_> = program.ranks().map(|_| Arrivals::default()).collect();
        for rank in program.ranks() {
            let (mut selects, mut endpoints) = (select(rank), Endpoints::default());
            for step in program.steps(rank) {
                let is_selected = selects(&step.op);
                endpoints.events(&step.op, |event| {
                    if let Event::Send(sent, _) = event {
                        arrivals[sent.to.index()].add(rank, &sent, is_selected);
                    }
                });
            }
        }
        for (rank, arrivals) in program.ranks().zip(&arrivals) {
            let (mut selects, mut endpoints) = (select(rank), Endpoints::default());
            let mut positions = Positions::default();
            for step in program.steps(rank) {
                let is_selected = selects(&step.op);
                let mut refusal = None;
                endpoints.events(&step.op, |event| {
                    let found = match event {
                        Event::Receive(received, _) => {
                            let is_sent = positions.receive(arrivals, &received);
                            let is_mixed = arrivals.ambiguous(&received).is_some_and(Counts::is_mixed);
                            let one_side =
                                (is_sent != is_selected).then(|| one_side(rank, step.action, is_sent));
                            is_mixed.then(|| ambiguous(rank, step.action, &received)).or(one_side)
                        }
                        Event::Cancel if arrivals.selected > 0 => Some(cancelled(rank, step.action)),
                        Event::Cancel | Event::Send(..) | Event::Probe(_) => None,
                    };
                    refusal = refusal.take().or(found);
                });
                refusal.map_or(Ok(()), Err)?;
            }
        }
        Ok(())
    }

    fn add_sends(&mut self, selector: &Selector, program: &Program<'_>, rank: Rank) -> Result<(), Refusal> {
        let (mut tracker, mut endpoints) = (Tracker::new(selector, rank), Endpoints::default());
        for step in program.steps(rank) {
            tracker.follow(&step.op);
            let mut refused = false;
            endpoints.events(&step.op, |event| {
                let Event::Send(sent, is_persistent) = event else { return };
                let is_selected = tracker.is_here() && selector.accepts_message(&sent);
                refused |= is_selected && is_persistent;
                self.arrivals[sent.to.index()].add(rank, &sent, is_selected);
            });
            if refused {
                return Err(persistent(rank, step.action));
            }
        }
        Ok(())
    }

    fn check_receives(&self, program: &Program<'_>, rank: Rank) -> Result<(), Refusal> {
        let arrivals = &self.arrivals[rank.index()];
        if arrivals.selected == 0 {
            return Ok(());
        }
        let mut positions = Positions::default();
        let mut endpoints = Endpoints::default();
        for step in program.steps(rank) {
            let mut refusal = None;
            endpoints.events(&step.op, |event| {
                let found = match event {
                    Event::Receive(received, is_persistent) => {
                        let is_selected = positions.receive(arrivals, &received);
                        let refused = is_selected && is_persistent;
                        let mixed = arrivals.ambiguous(&received).is_some_and(Counts::is_mixed);
                        mixed
                            .then(|| ambiguous(rank, step.action, &received))
                            .or(refused.then(|| persistent(rank, step.action)))
                    }
                    Event::Cancel => Some(cancelled(rank, step.action)),
                    Event::Send(..) | Event::Probe(_) => None,
                };
                refusal = refusal.take().or(found);
            });
            refusal.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Finds a probe that expects a selected message, or may.
    ///
    /// # Errors
    /// Fails if there is one: without the message it would wait forever.
    pub(super) fn check_probes(&self, program: &Program<'_>) -> Result<(), Refusal> {
        let is_concerned = |rank: &Rank| self.arrivals[rank.index()].selected > 0;
        for rank in program.ranks().filter(is_concerned) {
            let (arrivals, mut endpoints) = (&self.arrivals[rank.index()], Endpoints::default());
            for step in program.steps(rank) {
                let mut is_left_alone = false;
                endpoints.events(&step.op, |event| {
                    let Event::Probe(probed) = event else { return };
                    is_left_alone |= arrivals.counts(&probed).selected > 0;
                });
                if is_left_alone {
                    let reason = "a probe for selected messages, which would be left alone; select others";
                    return Err(Refusal::at(rank, step.action, reason));
                }
            }
        }
        Ok(())
    }

    /// Finds a receive from any source that takes selected messages.
    ///
    /// # Errors
    /// Fails if there is one.
    pub(super) fn check_sources(&self, program: &Program<'_>) -> Result<(), Refusal> {
        for (rank, arrivals) in
            program.ranks().zip(&self.arrivals).filter(|(_, arrivals)| arrivals.selected > 0)
        {
            let mut endpoints = Endpoints::default();
            for step in program.steps(rank) {
                let mut is_found = false;
                endpoints.events(&step.op, |event| {
                    let Event::Receive(received, _) = event else { return };
                    is_found |= received.from.is_none() && arrivals.counts(&received).selected > 0;
                });
                if is_found {
                    let reason = "a receive from any source: parts of several messages may mix; select messages to other ranks";
                    return Err(Refusal::at(rank, step.action, reason));
                }
            }
        }
        Ok(())
    }

    /// Starts following the messages of a rank.
    pub(super) fn follow(&self, rank: Rank) -> MessageTracker<'_> {
        MessageTracker {
            messages: self,
            rank,
            endpoints: Endpoints::default(),
            sends: FxHashMap::default(),
            positions: Positions::default(),
        }
    }
}

fn persistent(rank: Rank, action: u64) -> Refusal {
    let reason = "a start of a persistent request; only messages of other requests can be selected";
    Refusal::at(rank, action, reason)
}

fn cancelled(rank: Rank, action: u64) -> Refusal {
    let reason = "a cancelled receive: which receives take the selected messages is not certain; select messages to other ranks";
    Refusal::at(rank, action, reason)
}

fn one_side(rank: Rank, action: u64, is_sent: bool) -> Refusal {
    let (send, receive) = if is_sent { ("removed", "stays") } else { ("not removed", "is removed") };
    let reason = format!("the receive {receive}, but the message is {send}: select both, or none");
    Refusal::at(rank, action, reason)
}

fn ambiguous(rank: Rank, action: u64, received: &Received) -> Refusal {
    let (from, all) = match received.from {
        None => ("from any source", "all messages to this rank"),
        Some(_) => ("with any tag", "all messages between the two ranks"),
    };
    let communicator = received.communicator.get();
    let reason = format!(
        "a receive {from} may take a selected message or another one; select {all} on communicator {communicator}, or none"
    );
    Refusal::at(rank, action, reason)
}

impl Arrivals {
    fn add(&mut self, from: Rank, sent: &Sent, is_selected: bool) {
        let communicator = sent.communicator;
        self.channels.entry((from, communicator, sent.tag)).or_default().push(is_selected);
        self.by_source.entry((from, communicator)).or_default().add(is_selected);
        self.by_communicator.entry(communicator).or_default().add(is_selected);
        self.selected += u64::from(is_selected);
    }

    /// Returns the numbers of messages of which a receive may take any one; `None` if it has a channel.
    fn ambiguous(&self, received: &Received) -> Option<Counts> {
        match (received.from, received.tag) {
            (None, _) => Some(self.by_communicator.get(&received.communicator).copied().unwrap_or_default()),
            (Some(from), None) => {
                Some(self.by_source.get(&(from, received.communicator)).copied().unwrap_or_default())
            }
            (Some(_), Some(_)) => None,
        }
    }

    /// Returns at least the numbers of messages that a probe may find.
    fn counts(&self, probed: &Received) -> Counts {
        let of_source = |from| self.by_source.get(&(from, probed.communicator)).copied();
        let all = || self.by_communicator.get(&probed.communicator).copied();
        probed.from.map_or_else(all, of_source).unwrap_or_default()
    }
}

/// Numbers of receives so far of each channel of a rank.
#[derive(Debug, Default)]
struct Positions(FxHashMap<ChannelKey, u64>);

impl Positions {
    /// Counts a receive; returns whether it takes a selected message.
    fn receive(&mut self, arrivals: &Arrivals, received: &Received) -> bool {
        if let Some(counts) = arrivals.ambiguous(received) {
            return counts.selected > 0;
        }
        let (Some(from), Some(tag)) = (received.from, received.tag) else { return false };
        let key = (from, received.communicator, tag);
        let position = self.0.entry(key).or_default();
        *position += 1;
        arrivals.channels.get(&key).is_some_and(|flags| flags.get(*position - 1))
    }
}

/// The sides of an operation that belong to selected messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) send: bool,
    pub(super) receive: bool,
}

/// Follows the messages of a rank.
#[derive(Debug)]
pub(super) struct MessageTracker<'p> {
    messages: &'p SelectedMessages,
    rank: Rank,
    endpoints: Endpoints,
    sends: FxHashMap<ChannelKey, u64>,
    positions: Positions,
}

impl MessageTracker<'_> {
    /// Returns the sides of the next operation that belong to selected messages.
    pub(super) fn follow(&mut self, op: &Op) -> Sides {
        let Self { messages, rank, endpoints, sends, positions } = self;
        let mut sides = Sides::default();
        endpoints.events(op, |event| match event {
            Event::Send(sent, _) => {
                let position = sends.entry((sent.to, sent.communicator, sent.tag)).or_default();
                *position += 1;
                let channel = (*rank, sent.communicator, sent.tag);
                let flags = messages.arrivals[sent.to.index()].channels.get(&channel);
                sides.send |= flags.is_some_and(|flags| flags.get(*position - 1));
            }
            Event::Receive(received, _) => {
                sides.receive |= positions.receive(&messages.arrivals[rank.index()], &received);
            }
            Event::Probe(_) | Event::Cancel => {}
        });
        sides
    }
}
