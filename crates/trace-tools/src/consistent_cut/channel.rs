//! Matching of the messages between two ranks.

use pdes_core::Rank;

use super::{KeptLengths, PostedAction, RankCut};
use trace_mmap::Tag;

/// Index that stands for no action.
pub(super) const NO_ACTION: u64 = u64::MAX;

/// A send.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendEvent {
    pub(super) posted: PostedAction,
    pub(super) tag: Tag,
    /// First action that depends on its completion; [`NO_ACTION`] if there is none.
    pub(super) needed_by: u64,
    /// True if it cannot complete without a receive.
    pub(super) is_synchronous: bool,
    /// True if it is a start of a persistent request, which cannot be made buffered: all starts have one mode.
    pub(super) is_persistent: bool,
}

/// A receive or a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveEvent {
    pub(super) posted: PostedAction,
    pub(super) tag: Option<Tag>,
    /// First action that depends on its message; [`NO_ACTION`] if there is none.
    pub(super) needed_by: u64,
    /// Action that cancels it; [`NO_ACTION`] if there is none.
    pub(super) cancelled: u64,
    /// True if it is a probe, which leaves the message.
    pub(super) is_probe: bool,
}

/// All sends from one rank to another on a communicator, and all receives for them, each in the order of posting.
#[derive(Debug, Default)]
pub(super) struct Channel {
    pub(super) sends: Vec<SendEvent>,
    pub(super) receives: Vec<ReceiveEvent>,
}

/// Unmatched sends and receives of a channel.
pub(super) struct Unmatched<'a> {
    pub(super) sends: Vec<&'a SendEvent>,
    pub(super) receives: Vec<&'a ReceiveEvent>,
}

impl Channel {
    /// Matches receives, in the order of posting, with the first messages that fit. This is the matching of MPI, where messages
    /// do not overtake each other.
    pub(super) fn unmatched(&self, sender_end: u64, receiver_end: u64) -> Unmatched<'_> {
        let sends = &self.sends[..self.sends.partition_point(|sent| sent.posted.0 < sender_end)];
        let takes = &self.receives[..self.receives.partition_point(|taken| taken.posted.0 < receiver_end)];
        let (mut is_taken, mut first) = (vec![false; sends.len()], 0);
        let mut lacking = Vec::new();
        for taken in takes.iter().filter(|taken| taken.cancelled >= receiver_end) {
            while first < sends.len() && is_taken[first] {
                first += 1;
            }
            let fits =
                |&place: &usize| !is_taken[place] && taken.tag.is_none_or(|tag| tag == sends[place].tag);
            match (first..sends.len()).find(fits) {
                Some(place) => is_taken[place] |= !taken.is_probe,
                None => lacking.push(taken),
            }
        }
        let left = sends.iter().zip(is_taken).filter_map(|(sent, is_taken)| (!is_taken).then_some(sent));
        Unmatched { sends: left.collect(), receives: lacking }
    }

    /// Cuts both ranks before actions that depend on missing sends or receives.
    pub(super) fn lower_ends(&self, (from, to): (Rank, Rank), ends: &KeptLengths, next: &mut KeptLengths) {
        let (sender_end, receiver_end) = (ends[from.index()], ends[to.index()]);
        let Unmatched { sends, receives } = self.unmatched(sender_end, receiver_end);
        let persistent = sends.iter().filter(|sent| sent.is_persistent).map(|sent| sent.needed_by).min();
        let lacking = receives.iter().map(|taken| taken.needed_by).min();
        for (rank, end) in [(from, persistent), (to, lacking)] {
            let next = &mut next[rank.index()];
            *next = end.map_or(*next, |end| end.min(*next));
        }
    }

    /// Marks the unmatched sends and receives in the results.
    pub(super) fn mark_unmatched(&self, (from, to): (Rank, Rank), ends: &KeptLengths, rests: &mut [RankCut]) {
        let sender_end = ends[from.index()];
        let Unmatched { sends, receives } = self.unmatched(sender_end, ends[to.index()]);
        let (persistent, others): (Vec<&SendEvent>, Vec<&SendEvent>) =
            sends.into_iter().partition(|sent| sent.is_persistent);
        rests[from.index()].dropped.extend(persistent.iter().map(|sent| sent.posted));
        let last = sender_end.checked_sub(1);
        rests[from.index()].is_stuck |=
            others.iter().any(|sent| sent.is_synchronous && Some(sent.needed_by) == last);
        rests[from.index()].unreceived.extend(others.iter().map(|sent| sent.posted.0));
        rests[to.index()].dropped.extend(receives.iter().map(|taken| taken.posted));
    }
}
