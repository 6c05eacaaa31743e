//! Messages that are selected by the send, and the receives that match.

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::folded::{FoldedCursor, FoldedSequence, State};
use trace_mmap::{CommId, Op, RequestName, Tag};

use super::{Endpoints, Event, PersistentRequests, Received, Sent};
use crate::transform::selector::{Select, Selector, Tracker};
use crate::transform::state::Stateful;
use crate::transform::{Program, Refusal};

/// A channel at one of its ends: the peer, the communicator and the tag.
type ChannelKey = (Rank, CommId, Tag);

/// The selected messages of a program. Sends and receives of a channel match in the order of posting. Where a receive could take one
/// of several messages, by any tag or from any source, all of these are selected, or none.
#[derive(Debug)]
pub(in crate::transform) struct SelectedMessages {
    /// A flag for each message that a rank sends, by channel: true if it is selected.
    sent: Vec<FxHashMap<ChannelKey, FoldedSequence<bool>>>,
    /// The messages to each rank.
    arrivals: Vec<Arrivals>,
}

/// Numbers of messages to a rank.
#[derive(Debug, Default)]
struct Arrivals {
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
    fn add(&mut self, flags: &FoldedSequence<bool>) {
        self.all += flags.len();
        self.selected += flags.count(|flag| *flag);
    }

    fn is_mixed(self) -> bool {
        self.selected > 0 && self.selected < self.all
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
        let messages = Self::collect(program, |rank, channels| {
            let values = &mut (channels, (Tracker::new(selector, rank), Endpoints::default()));
            program.walk(rank, values, |(channels, (tracker, endpoints)), step| {
                tracker.follow(&step.op);
                let mut refused = false;
                endpoints.events(&step.op, |event| {
                    let Event::Send(sent, is_persistent) = event else { return };
                    let is_selected = tracker.is_here() && selector.accepts_message(&sent);
                    refused |= is_selected && is_persistent && !takes_persistent;
                    push(channels, &sent, is_selected);
                });
                if refused { Err(persistent(rank, step.action)) } else { Ok(()) }
            })
        })?;
        for rank in program.ranks() {
            messages.check_receives(program, rank, takes_persistent)?;
        }
        Ok(messages)
    }

    /// Collects messages: `collect` appends the flags of a rank.
    fn collect(
        program: &Program<'_>,
        collect: impl Fn(Rank, &mut FxHashMap<ChannelKey, FoldedSequence<bool>>) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        let mut arrivals: Vec<_> = program.ranks().map(|_| Arrivals::default()).collect();
        let mut sent = Vec::with_capacity(arrivals.len());
        for rank in program.ranks() {
            let mut channels = FxHashMap::default();
            collect(rank, &mut channels)?;
            for ((to, communicator, _), flags) in &mut channels {
                flags.merge_equal();
                arrivals[to.index()].add(rank, *communicator, flags);
            }
            sent.push(channels);
        }
        Ok(Self { sent, arrivals })
    }

    /// Checks that whoever selects the send of a message selects its receive, too: `select` begins the selection of the operations of
    /// a rank, in order.
    ///
    /// # Errors
    /// Fails at a receive of which this is not so, or not certain.
    pub(in crate::transform) fn check_sides<S: Select>(
        program: &Program<'_>,
        select: impl Fn(Rank) -> S,
    ) -> Result<(), Refusal> {
        let messages = Self::collect(program, |rank, channels| {
            let values = &mut (channels, (select(rank), Endpoints::default()));
            program.walk(rank, values, |(channels, (select, endpoints)), step| {
                let is_selected = select.selects(&step.op);
                endpoints.events(&step.op, |event| {
                    if let Event::Send(sent, _) = event {
                        push(channels, &sent, is_selected);
                    }
                });
                Ok(())
            })
        })?;
        for (rank, arrivals) in program.ranks().zip(&messages.arrivals) {
            let values = &mut (select(rank), Endpoints::default(), Positions::new(&messages, rank));
            program.walk(rank, values, |(select, endpoints, positions), step| {
                let is_selected = select.selects(&step.op);
                let mut refusal = None;
                endpoints.events(&step.op, |event| {
                    let found = match event {
                        Event::Receive(received, _) => {
                            let is_sent = positions.receive(&received);
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
                refusal.map_or(Ok(()), Err)
            })?;
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
        let values = &mut (Positions::new(self, rank), Endpoints::default());
        program.walk(rank, values, |(positions, endpoints), step| {
            let mut refusal = None;
            endpoints.events(&step.op, |event| {
                let found = match event {
                    Event::Receive(received, is_persistent) => {
                        let is_selected = positions.receive(&received);
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
            refusal.map_or(Ok(()), Err)
        })
    }

    /// Finds a probe that expects a selected message, or may.
    ///
    /// # Errors
    /// Fails if there is one: without the message it would wait forever.
    pub(in crate::transform) fn check_probes(&self, program: &Program<'_>) -> Result<(), Refusal> {
        let reason = "a probe for selected messages, which would be left alone; select others";
        self.find(
            program,
            reason,
            |arrivals, event| matches!(event, Event::Probe(probed) if arrivals.counts(&probed).selected > 0),
        )
    }

    /// Finds a receive from any source that takes selected messages.
    ///
    /// # Errors
    /// Fails if there is one.
    pub(in crate::transform) fn check_sources(&self, program: &Program<'_>) -> Result<(), Refusal> {
        let reason =
            "a receive from any source: parts of several messages may mix; select messages to other ranks";
        self.find(program, reason, |arrivals, event| {
            matches!(event, Event::Receive(received, _) if received.from.is_none() && arrivals.counts(&received).selected > 0)
        })
    }

    /// Finds something at ranks that receive selected messages.
    ///
    /// # Errors
    /// Fails if there is something, with the reason.
    fn find(
        &self,
        program: &Program<'_>,
        reason: &str,
        is_it: impl Fn(&Arrivals, Event) -> bool,
    ) -> Result<(), Refusal> {
        let ranks = program.ranks().zip(&self.arrivals);
        for (rank, arrivals) in ranks.filter(|(_, arrivals)| arrivals.selected > 0) {
            program.walk(rank, &mut Endpoints::default(), |endpoints, step| {
                let mut is_found = false;
                endpoints.events(&step.op, |event| is_found |= is_it(arrivals, event));
                if is_found { Err(Refusal::at(rank, step.action, reason)) } else { Ok(()) }
            })?;
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
        PersistentRequests::new(
            program,
            |rank| self.follow(rank),
            |tracker, op| {
                let mut flags = Vec::new();
                tracker.follow_each(op, |sides| flags.push(sides != Sides::default()));
                flags
            },
        )
    }

    /// Starts following the messages of a rank.
    pub(in crate::transform) fn follow(&self, rank: Rank) -> MessageTracker<'_> {
        MessageTracker {
            messages: self,
            rank,
            endpoints: Endpoints::default(),
            sends: FxHashMap::default(),
            positions: Positions::new(self, rank),
        }
    }
}

/// Appends the flag of a message.
fn push(channels: &mut FxHashMap<ChannelKey, FoldedSequence<bool>>, sent: &Sent, is_selected: bool) {
    channels.entry((sent.to, sent.communicator, sent.tag)).or_default().push(is_selected);
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
    fn add(&mut self, from: Rank, communicator: CommId, flags: &FoldedSequence<bool>) {
        self.by_source.entry((from, communicator)).or_default().add(flags);
        let all = self.by_communicator.entry(communicator).or_default();
        all.add(flags);
        self.selected = self.by_communicator.values().map(|counts| counts.selected).sum();
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

/// Follows the receives of each channel of a rank.
#[derive(Debug)]
struct Positions<'p> {
    messages: &'p SelectedMessages,
    rank: Rank,
    channels: FxHashMap<ChannelKey, FoldedCursor<'p, bool>>,
}

impl<'p> Positions<'p> {
    fn new(messages: &'p SelectedMessages, rank: Rank) -> Self {
        Self { messages, rank, channels: FxHashMap::default() }
    }

    /// Counts a receive; returns whether it takes a selected message.
    fn receive(&mut self, received: &Received) -> bool {
        let Self { messages, rank, channels } = self;
        if let Some(counts) = messages.arrivals[rank.index()].ambiguous(received) {
            return counts.selected > 0;
        }
        let Some((from, tag, communicator)) = received.named() else { return false };
        let flags = messages.sent[from.index()].get(&(*rank, communicator, tag));
        next_flag(channels, (from, communicator, tag), flags)
    }
}

impl Stateful for Positions<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        self.channels.state(state);
    }
}

/// Returns the next flag of a channel; false if there is none.
fn next_flag<'p>(
    cursors: &mut FxHashMap<ChannelKey, FoldedCursor<'p, bool>>,
    channel: ChannelKey,
    flags: Option<&'p FoldedSequence<bool>>,
) -> bool {
    let Some(flags) = flags else { return false };
    cursors.entry(channel).or_insert_with(|| flags.cursor()).next().copied().unwrap_or_default()
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
    sends: FxHashMap<ChannelKey, FoldedCursor<'p, bool>>,
    positions: Positions<'p>,
}

impl Stateful for MessageTracker<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.endpoints, &mut self.sends, &mut self.positions).state(state);
    }
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
                    let channel = (sent.to, sent.communicator, sent.tag);
                    sides.send |= next_flag(sends, channel, messages.sent[rank.index()].get(&channel));
                }
                Event::Receive(received, _) => {
                    sides.receive |= positions.receive(&received);
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
