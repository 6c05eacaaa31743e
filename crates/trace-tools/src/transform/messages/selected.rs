//! Messages that are selected by the send, and the receives that match.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Op, RequestName, Tag};

use super::{Endpoints, Event, PersistentRequests, Received, Sent};
use crate::transform::selector::{Selector, Tracker};
use crate::transform::{Program, Refusal};

/// A channel at its receiver.
type ChannelKey = (Rank, CommId, Tag);

/// The selected messages of a program. Sends and receives of a channel match in the order of posting. Where a receive could take one
/// of several messages, by any tag or from any source, all of these are selected, or none.
#[derive(Debug)]
pub(in crate::transform) struct SelectedMessages {
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
    pub(in crate::transform) fn new(selector: &Selector, program: &Program<'_>) -> Result<Self, Refusal> {
        Self::select(selector, program, false)
    }

    /// Selects messages by their sends, also those of persistent requests.
    ///
    /// # Errors
    /// Fails if it is not certain which receives take the selected messages.
    pub(in crate::transform) fn with_persistent(
        selector: &Selector,
        program: &Program<'_>,
    ) -> Result<Self, Refusal> {
        Self::select(selector, program, true)
    }

    fn select(selector: &Selector, program: &Program<'_>, takes_persistent: bool) -> Result<Self, Refusal> {
        let mut messages = Self { arrivals: program.ranks().map(|_| Arrivals::default()).collect() };
        for rank in program.ranks() {
            messages.add_sends(selector, program, rank, takes_persistent)?;
        }
        for rank in program.ranks() {
            messages.check_receives(program, rank, takes_persistent)?;
        }
        Ok(messages)
    }

    /// Checks that whoever selects the send of a message selects its receive, too: `select` begins the selection of the operations of
    /// a rank, in order.
    ///
    /// # Errors
    /// Fails at a receive of which this is not so, or not certain.
    pub(in crate::transform) fn check_sides<F: FnMut(&Op) -> bool>(
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

    fn add_sends(
        &mut self,
        selector: &Selector,
        program: &Program<'_>,
        rank: Rank,
        takes_persistent: bool,
    ) -> Result<(), Refusal> {
        let (mut tracker, mut endpoints) = (Tracker::new(selector, rank), Endpoints::default());
        for step in program.steps(rank) {
            tracker.follow(&step.op);
            let mut refused = false;
            endpoints.events(&step.op, |event| {
                let Event::Send(sent, is_persistent) = event else { return };
                let is_selected = tracker.is_here() && selector.accepts_message(&sent);
                refused |= is_selected && is_persistent && !takes_persistent;
                self.arrivals[sent.to.index()].add(rank, &sent, is_selected);
            });
            if refused {
                return Err(persistent(rank, step.action));
            }
        }
        Ok(())
    }

    fn check_receives(
        &self,
        program: &Program<'_>,
        rank: Rank,
        takes_persistent: bool,
    ) -> Result<(), Refusal> {
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
                        let refused = is_selected && is_persistent && !takes_persistent;
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
    pub(in crate::transform) fn check_probes(&self, program: &Program<'_>) -> Result<(), Refusal> {
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
    pub(in crate::transform) fn check_sources(&self, program: &Program<'_>) -> Result<(), Refusal> {
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

    /// Finds the persistent requests of selected messages.
    ///
    /// # Errors
    /// Fails at a start whose message is selected where that of another start of the same request is not, or the reverse.
    pub(in crate::transform) fn persistent(
        &self,
        program: &Program<'_>,
    ) -> Result<PersistentRequests, Refusal> {
        PersistentRequests::new(program, |rank| {
            let mut tracker = self.follow(rank);
            move |op| {
                let mut flags = Vec::new();
                tracker.follow_each(op, |sides| flags.push(sides != Sides::default()));
                flags
            }
        })
    }

    /// Starts following the messages of a rank.
    pub(in crate::transform) fn follow(&self, rank: Rank) -> MessageTracker<'_> {
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
pub(in crate::transform) struct Sides {
    pub(in crate::transform) send: bool,
    pub(in crate::transform) receive: bool,
}

/// Follows the messages of a rank.
#[derive(Debug)]
pub(in crate::transform) struct MessageTracker<'p> {
    messages: &'p SelectedMessages,
    rank: Rank,
    endpoints: Endpoints,
    sends: FxHashMap<ChannelKey, u64>,
    positions: Positions,
}

impl MessageTracker<'_> {
    /// Returns the sides of the next operation that belong to selected messages.
    pub(in crate::transform) fn follow(&mut self, op: &Op) -> Sides {
        let mut all = Sides::default();
        self.follow_each(op, |sides| {
            all.send |= sides.send;
            all.receive |= sides.receive;
        });
        all
    }

    /// Calls a function with the sides of each message of the next operation that are selected: of a start one for each request that
    /// has a peer, in their order.
    pub(in crate::transform) fn follow_each(&mut self, op: &Op, mut f: impl FnMut(Sides)) {
        let Self { messages, rank, endpoints, sends, positions } = self;
        endpoints.events(op, |event| {
            let mut sides = Sides::default();
            match event {
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
            }
            f(sides);
        });
    }

    /// Returns whether a persistent request has a peer.
    pub(in crate::transform) fn has_peer(&self, request: RequestName) -> bool {
        self.endpoints.persistent.contains_key(&request)
    }
}
