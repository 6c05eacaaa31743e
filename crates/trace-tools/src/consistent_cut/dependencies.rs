//! Sends, receives and collective operations of all ranks, with the actions that depend on their completion.

use std::sync::Arc;

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashMap;
use trace_mmap::{
    Action, Call, CommId, CommIdx, CommunicatorCall, Group, InIdx, OutIdx, RankTrace, SendMode, Slot, Source,
    Tag,
};

use super::channel::{Channel, NO_ACTION, ReceiveEvent, SendEvent};
use super::{KeptLengths, PostedAction, RankCut};

/// Key of a channel: sender, receiver, communicator.
type ChannelKey = (Rank, Rank, CommId);

/// Key of a sequence of operations that the members of a group enter in the same order: the operations on a communicator, or
/// (flag set) the `comm_create_group` that creates it.
type SequenceKey = (CommId, bool);

/// Operations of a group: for each rank, the action that enters each operation and the first that depends on its completion.
#[derive(Debug)]
struct CollectiveSequence {
    group: Arc<Group>,
    entered: FxHashMap<Rank, Vec<(PostedAction, u64)>>,
}

/// Communication of all ranks.
///
/// The maps are iterated, but the results (minima and sets) do not depend on the order.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    channels: FxHashMap<ChannelKey, Channel>,
    sequences: FxHashMap<SequenceKey, CollectiveSequence>,
    /// Receives of a rank from an unrecorded source: those that had not completed, and starts of persistent ones.
    unknown_sources: FxHashMap<(Rank, CommId), Vec<ReceiveEvent>>,
}

/// Reference to the operation of a request.
#[derive(Clone, Copy)]
enum OperationRef {
    Sent(ChannelKey, usize),
    Received(ChannelKey, usize),
    Unknown((Rank, CommId), usize),
    Entered(SequenceKey, usize),
}

/// Operation that the start of a persistent request performs.
#[derive(Clone, Copy)]
enum PersistentOperation {
    Send(OutIdx),
    Receive(Source),
    Nothing,
}

/// Size from which a standard send is taken to wait for its receive \[B\], the default of `mpi.detached_below_bytes`.
const SYNCHRONOUS_FROM: Bytes = Bytes::new(65536);

/// How a message is sent.
#[derive(Clone, Copy)]
struct Sending {
    is_synchronous: bool,
    is_persistent: bool,
}

impl Sending {
    const PERSISTENT: Self = Self { is_synchronous: false, is_persistent: true };

    fn new(mode: SendMode, bytes: Bytes) -> Self {
        let is_synchronous = match mode {
            SendMode::Standard => bytes >= SYNCHRONOUS_FROM,
            SendMode::Synchronous => true,
            SendMode::Buffered | SendMode::Ready => false,
        };
        Self { is_synchronous, is_persistent: false }
    }
}

/// Collector of the communication of one rank.
struct Collector<'a> {
    events: &'a mut Dependencies,
    rank: Rank,
    trace: &'a RankTrace,
    /// Index of the current action.
    at: u64,
    begun: Option<u64>,
    pending: FxHashMap<Slot, OperationRef>,
    persistent: FxHashMap<Slot, PersistentOperation>,
}

impl Dependencies {
    /// Adds the communication of a rank, of which the action at `begun` had begun and not completed.
    pub(super) fn add(&mut self, rank: Rank, trace: &RankTrace, begun: Option<u64>) {
        let (pending, persistent) = (FxHashMap::default(), FxHashMap::default());
        let mut follower = Collector { events: self, rank, trace, at: 0, begun, pending, persistent };
        for action in trace.cursor() {
            follower.add_action(action);
            follower.at += 1;
        }
    }

    /// Lowers the ends of ranks to before actions that depend on actions beyond the ends of others. Only channels and groups with a
    /// rank whose end has changed are examined, and receives from unrecorded sources.
    pub(super) fn lower_ends(&self, ends: &KeptLengths, is_changed: &[bool], next: &mut KeptLengths) {
        for (&(from, to, _), channel) in &self.channels {
            if is_changed[from.index()] || is_changed[to.index()] {
                channel.lower_ends((from, to), ends, next);
            }
        }
        for (&(rank, communicator), takes) in &self.unknown_sources {
            for taken in self.unmatched(rank, communicator, takes, ends) {
                next[rank.index()] = next[rank.index()].min(taken.needed_by);
            }
        }
        for sequence in self.sequences.values() {
            if sequence.group.members().any(|rank| is_changed[rank.index()]) {
                for (rank, (_, ended)) in sequence.unmatched(ends) {
                    next[rank.index()] = next[rank.index()].min(ended);
                }
            }
        }
    }

    /// Marks the unmatched operations in the results.
    pub(super) fn mark_unmatched(&self, ends: &KeptLengths, rests: &mut [RankCut]) {
        for (&(from, to, _), channel) in &self.channels {
            channel.mark_unmatched((from, to), ends, rests);
        }
        for (&(rank, communicator), takes) in &self.unknown_sources {
            let lacking = self.unmatched(rank, communicator, takes, ends);
            rests[rank.index()].dropped.extend(lacking.iter().map(|taken| taken.posted));
        }
        for sequence in self.sequences.values() {
            for (rank, (posted, _)) in sequence.unmatched(ends) {
                rests[rank.index()].dropped.insert(posted);
            }
        }
    }

    /// Returns the receives from an unrecorded source for which no message is left. Messages are given only to receives on which
    /// kept actions depend; the others are all returned.
    fn unmatched<'a>(
        &self,
        rank: Rank,
        communicator: CommId,
        takes: &'a [ReceiveEvent],
        ends: &KeptLengths,
    ) -> Vec<&'a ReceiveEvent> {
        let end = ends[rank.index()];
        let of_rank = self.channels.iter().filter(|((_, to, on), _)| (*to, *on) == (rank, communicator));
        let left = of_rank.flat_map(|((from, to, _), channel)| {
            channel.unmatched(ends[from.index()], ends[to.index()]).sends
        });
        let mut left: Vec<Tag> = left.map(|sent| sent.tag).collect();
        let alive = || takes.iter().filter(|taken| taken.posted.0 < end && taken.cancelled >= end);
        let (relied, idle): (Vec<&ReceiveEvent>, Vec<&ReceiveEvent>) =
            alive().partition(|taken| taken.needed_by < end);
        // Receives with a tag come before those with any tag, which must not take the only message that fits the former.
        let (tagged, any): (Vec<&ReceiveEvent>, Vec<&ReceiveEvent>) =
            relied.into_iter().partition(|taken| taken.tag.is_some());
        let lacks = |taken: &&ReceiveEvent| {
            let fits = left.iter().position(|tag| taken.tag.is_none_or(|wanted| wanted == *tag));
            fits.map(|place| left.swap_remove(place)).is_none()
        };
        let mut lacking: Vec<&ReceiveEvent> = tagged.into_iter().chain(any).filter(lacks).collect();
        lacking.extend(idle);
        lacking
    }
}

impl CollectiveSequence {
    /// Returns the operations that some member does not enter before its end.
    fn unmatched(&self, ends: &KeptLengths) -> Vec<(Rank, (PostedAction, u64))> {
        let alive = |rank: Rank| {
            let entered = self.entered.get(&rank).map_or(&[][..], Vec::as_slice);
            &entered[..entered.partition_point(|(posted, _)| posted.0 < ends[rank.index()])]
        };
        let common = self.group.members().map(|rank| alive(rank).len()).min().unwrap_or(0);
        let rest = |rank: Rank| alive(rank)[common..].iter().map(move |entered| (rank, *entered));
        self.group.members().flat_map(rest).collect()
    }
}

impl Collector<'_> {
    fn add_action(&mut self, action: Action) {
        match action {
            Action::Send { to, bytes } => {
                self.send(to, None, self.at, Sending::new(SendMode::Standard, bytes))
            }
            Action::Isend { to, slot, bytes } => {
                self.send(to, Some(slot), NO_ACTION, Sending::new(SendMode::Standard, bytes));
            }
            Action::Recv { from, .. } => self.receive(Source::Rank(from), None, self.at, false),
            Action::Irecv { from, slot, .. } => {
                self.receive(Source::Rank(from), Some(slot), NO_ACTION, false)
            }
            Action::SendRecv(id) => {
                let both = *self.trace.send_recv(id);
                let from = both.from.map_or(Source::ProcNull, Source::Rank);
                self.exchange(both.to, both.send_bytes, from);
            }
            Action::Wait { slot } => self.complete(slot),
            Action::WaitAll => {
                let pending: Vec<Slot> = self.pending.keys().copied().collect();
                pending.into_iter().for_each(|slot| self.complete(slot));
            }
            Action::Collective(_) => self.enter((CommId::WORLD, false), CommIdx::WORLD, None),
            Action::Call(id) => self.call(self.trace.call(id)),
            Action::Init
            | Action::Finalize
            | Action::Communicator
            | Action::Location(_)
            | Action::Compute { .. }
            | Action::Sleep { .. }
            | Action::ProcNull { .. }
            | Action::Test { .. } => {}
        }
    }

    fn call(&mut self, call: &Call) {
        match *call {
            Call::Send { mode, to: Some(to), bytes } => {
                self.send(to, None, self.at, Sending::new(mode, bytes));
            }
            Call::Isend { mode, to: Some(to), slot, bytes } => {
                self.send(to, Some(slot), NO_ACTION, Sending::new(mode, bytes));
            }
            Call::Recv { from, .. } => self.receive(from, None, self.at, false),
            Call::Irecv { from, slot, .. } => self.receive(from, Some(slot), NO_ACTION, false),
            Call::SendRecv { to, from, send_bytes, .. } => self.exchange(to, send_bytes, from),
            Call::Probe { from } | Call::Iprobe { from, found: true } => {
                self.receive(from, None, self.at, true);
            }
            Call::SendInit { to, slot, .. } => {
                self.persistent
                    .insert(slot, to.map_or(PersistentOperation::Nothing, PersistentOperation::Send));
            }
            Call::RecvInit { from, slot, .. } => {
                self.persistent.insert(slot, PersistentOperation::Receive(from));
            }
            Call::Start { ref slots } => slots.iter().for_each(|slot| self.start(*slot)),
            Call::Free { slot } => {
                self.persistent.remove(&slot);
            }
            Call::Cancel { slot, cancelled: true, .. } => self.cancel(slot),
            Call::GetStatus { slot, done: true } => self.complete(slot),
            Call::Collective { communicator, slot, .. }
            | Call::NeighborAlltoall { communicator, slot, .. } => {
                self.enter((self.trace.communicator_id(communicator), false), communicator, slot);
            }
            Call::NewCommunicator { kind: CommunicatorCall::CreateGroup, new: Some(new), .. } => {
                self.enter((self.trace.communicator_id(new), true), new, None);
            }
            Call::NewCommunicator { kind: CommunicatorCall::Define, .. } => {}
            Call::NewCommunicator { parent, .. } => {
                self.enter((self.trace.communicator_id(parent), false), parent, None);
            }
            Call::File { communicator, call, slot, .. } if call.is_collective() => {
                self.enter((self.trace.communicator_id(communicator), false), communicator, slot);
            }
            Call::Window { communicator, call, .. } if call.is_collective() => {
                self.enter((self.trace.communicator_id(communicator), false), communicator, None);
            }
            Call::SetView { communicator, .. } => {
                self.enter((self.trace.communicator_id(communicator), false), communicator, None);
            }
            // Waits and tests, sends to nobody, and calls that concern this rank only.
            _ => {
                let done = call.completion().map_or(&[][..], |completion| completion.done());
                done.iter().for_each(|slot| self.complete(*slot));
            }
        }
    }

    fn send(&mut self, to: OutIdx, slot: Option<Slot>, ended: u64, sending: Sending) {
        let channel = self.trace.outgoing()[to.index()];
        let key = (self.rank, channel.peer, self.trace.communicator_id(channel.communicator));
        let sends = &mut self.events.channels.entry(key).or_default().sends;
        let Sending { is_synchronous, is_persistent } = sending;
        let posted = (self.at, slot);
        sends.push(SendEvent { posted, tag: channel.tag, needed_by: ended, is_synchronous, is_persistent });
        let place = OperationRef::Sent(key, sends.len() - 1);
        self.add_pending(slot, place);
    }

    fn receive(&mut self, from: Source, slot: Option<Slot>, ended: u64, peeks: bool) {
        let (peer, tag, communicator) = match from {
            Source::ProcNull => return,
            Source::Rank(from) => self.receive_channel(from),
            Source::Any { tag, communicator, recorded } => {
                (recorded, tag, self.trace.communicator_id(communicator))
            }
        };
        let taken = ReceiveEvent {
            posted: (self.at, slot),
            tag,
            needed_by: ended,
            cancelled: NO_ACTION,
            is_probe: peeks,
        };
        let place = match peer {
            Some(peer) => {
                let key = (peer, self.rank, communicator);
                let takes = &mut self.events.channels.entry(key).or_default().receives;
                takes.push(taken);
                OperationRef::Received(key, takes.len() - 1)
            }
            // A probe without a recorded source requires no particular message.
            None if peeks => return,
            None => {
                let key = (self.rank, communicator);
                let takes = self.events.unknown_sources.entry(key).or_default();
                takes.push(taken);
                OperationRef::Unknown(key, takes.len() - 1)
            }
        };
        self.add_pending(slot, place);
    }

    fn receive_channel(&self, from: InIdx) -> (Option<Rank>, Option<Tag>, CommId) {
        let channel = self.trace.incoming()[from.index()];
        (Some(channel.peer), channel.tag, self.trace.communicator_id(channel.communicator))
    }

    fn exchange(&mut self, to: Option<OutIdx>, bytes: Bytes, from: Source) {
        if let Some(to) = to {
            let at = self.at;
            // One that has begun has sent its message, whether it gets one or not.
            self.at -= u64::from(self.begun == Some(at) && at > 0);
            self.send(to, None, at, Sending::new(SendMode::Standard, bytes));
            self.at = at;
        }
        self.receive(from, None, self.at, false);
    }

    fn enter(&mut self, key: SequenceKey, communicator: CommIdx, slot: Option<Slot>) {
        let group = &self.trace.communicators()[communicator.index()].group;
        let new = || CollectiveSequence { group: Arc::clone(group), entered: FxHashMap::default() };
        let entered = self.events.sequences.entry(key).or_insert_with(new).entered.entry(self.rank);
        let entered = entered.or_default();
        let ended = if slot.is_some() { NO_ACTION } else { self.at };
        entered.push(((self.at, slot), ended));
        let place = OperationRef::Entered(key, entered.len() - 1);
        self.add_pending(slot, place);
    }

    fn add_pending(&mut self, slot: Option<Slot>, place: OperationRef) {
        if let Some(slot) = slot {
            self.pending.insert(slot, place);
        }
    }

    fn start(&mut self, slot: Slot) {
        match self.persistent.get(&slot).copied() {
            Some(PersistentOperation::Send(to)) => self.send(to, Some(slot), NO_ACTION, Sending::PERSISTENT),
            Some(PersistentOperation::Receive(from)) => self.receive(from, Some(slot), NO_ACTION, false),
            Some(PersistentOperation::Nothing) | None => {}
        }
    }

    /// Records that the current action depends on the completion of a request; does nothing for an inactive one.
    fn complete(&mut self, slot: Slot) {
        let at = self.at;
        match self.pending.remove(&slot) {
            Some(OperationRef::Sent(key, index)) => self.channel(key).sends[index].needed_by = at,
            Some(OperationRef::Received(key, index)) => self.channel(key).receives[index].needed_by = at,
            Some(OperationRef::Unknown(key, index)) => self.unknown_receives(key)[index].needed_by = at,
            Some(OperationRef::Entered(key, index)) => {
                let sequence = self.events.sequences.get_mut(&key);
                let entered = sequence.and_then(|sequence| sequence.entered.get_mut(&self.rank));
                entered.expect("the rank has entered it")[index].1 = at;
            }
            None => {}
        }
    }

    fn cancel(&mut self, slot: Slot) {
        let at = self.at;
        match self.pending.get(&slot).copied() {
            Some(OperationRef::Received(key, index)) => self.channel(key).receives[index].cancelled = at,
            Some(OperationRef::Unknown(key, index)) => self.unknown_receives(key)[index].cancelled = at,
            Some(OperationRef::Sent(..) | OperationRef::Entered(..)) | None => {}
        }
    }

    fn channel(&mut self, key: ChannelKey) -> &mut Channel {
        self.events.channels.get_mut(&key).expect("a request is noted in its channel")
    }

    fn unknown_receives(&mut self, key: (Rank, CommId)) -> &mut [ReceiveEvent] {
        self.events.unknown_sources.get_mut(&key).expect("a request is noted with those of its rank")
    }
}
