//! Critical paths, computed forward along with the clocks of ranks.

mod rank_history;
mod saved;

use std::sync::Arc;

use pdes_core::{Rank, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use crate::machine::UncontendedTransfer;
use crate::statistics::ActionKind;
use rank_history::RankHistory;
pub use rank_history::Segment;
pub(crate) use saved::{PathRestorer, PathSaver, SavedPath};

/// Critical path to an instant of a rank: the composition of the time along the chain of causes that ends there.
///
/// A rank that waits resumes after the last of several events; before that, the path is on the rank that caused that event. A
/// rank that resumes because of another one copies the sums of its path. The path is that of Yang and Miller ("Critical Path
/// Analysis for the Execution of Parallel and Distributed Programs", ICDCS 1988), computed
/// without a graph of the program; `docs/critical-path.md` has the rules.
///
/// # Laws
/// The times of all kinds of actions add up to [`end`](CriticalPath::end), and so do the [`parts`](CriticalPath::parts), to the
/// picosecond.
///
/// # Cost
/// Paths fork with nearly every message, so copies are small: older sums are shared by all paths that descend from them
/// (copy on write). The shared part changes when a path holds more kinds of actions than fit inline, or when a bin of time ends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(into = "EncodedPath", from = "EncodedPath")]
pub struct CriticalPath {
    inline: InlineSums,
    /// End of the current bin of the rank history in `shared`.
    bin_end: SimTime,
    shared: Arc<SharedSums>,
}

// It is copied with every message.
const _: () = assert!(size_of::<InlineSums>() == 80);

/// Number of kinds of actions whose times are stored inline: most programs alternate between few.
const INLINE_KINDS: usize = 4;

/// Inline sums of a path. No sum exceeds its end, so that none overflows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InlineSums {
    end: SimTime,
    /// Number of changes from one rank to another.
    hops: u64,
    /// Time of messages \[ps\], part of the times of actions: latency, bandwidth, waiting for shared links.
    latency: u64,
    bandwidth: u64,
    waiting: u64,
    /// Times of kinds of actions \[ps\] that are not in the shared sums yet.
    times: [u64; INLINE_KINDS],
    /// Kind of each of `times`, as an index of [`ActionKind::ALL`].
    kinds: [u8; INLINE_KINDS],
    rank: Rank,
}

impl InlineSums {
    /// Size in words of 64 bits.
    pub(crate) const WORDS: usize = 6 + INLINE_KINDS;

    fn new(rank: Rank) -> Self {
        Self {
            end: SimTime::ZERO,
            hops: 0,
            latency: 0,
            bandwidth: 0,
            waiting: 0,
            times: [0; INLINE_KINDS],
            kinds: std::array::from_fn(|index| index as u8),
            rank,
        }
    }

    #[inline(always)]
    fn kind_index(&self, kind: ActionKind) -> Option<usize> {
        self.kinds.iter().position(|&known| known == kind as u8)
    }

    /// Writes the sums as numbered words, each as soon as it is loaded: there are more of them than registers.
    #[inline(always)]
    pub(crate) fn write_words(&self, mut write: impl FnMut(usize, u64)) {
        write(0, self.end.as_picos());
        write(1, self.hops);
        write(2, self.latency);
        write(3, self.bandwidth);
        write(4, self.waiting);
        for (index, &time) in self.times.iter().enumerate() {
            write(5 + index, time);
        }
        write(5 + INLINE_KINDS, u64::from(u32::from_le_bytes(self.kinds)) << 32 | u64::from(self.rank.get()));
    }

    /// Reads the words that [`write_words`](InlineSums::write_words) wrote.
    #[inline(always)]
    fn read_words(&mut self, read: impl Fn(usize) -> u64) {
        self.end = SimTime::from_picos(read(0));
        self.hops = read(1);
        self.latency = read(2);
        self.bandwidth = read(3);
        self.waiting = read(4);
        for (index, time) in self.times.iter_mut().enumerate() {
            *time = read(5 + index);
        }
        let last = read(5 + INLINE_KINDS);
        self.kinds = ((last >> 32) as u32).to_le_bytes();
        self.rank = Rank::new(last as u32);
    }
}

/// Older sums of a path, shared with the paths that descend from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "EncodedSums", from = "EncodedSums")]
pub(crate) struct SharedSums {
    /// Times by kind of action.
    times: [SimDuration; ActionKind::ALL.len()],
    history: RankHistory,
}

/// Shared sums as they are encoded.
#[derive(Serialize, Deserialize)]
struct EncodedSums {
    /// Times of the kinds of actions that take any.
    calls: Vec<(ActionKind, SimDuration)>,
    history: RankHistory,
}

/// A path as it is encoded for another process: with all sums in one place.
#[derive(Serialize, Deserialize)]
struct EncodedPath {
    rank: Rank,
    end: SimTime,
    hops: u64,
    latency: u64,
    bandwidth: u64,
    waiting: u64,
    /// Times of the kinds of actions that take any.
    calls: Vec<(ActionKind, SimDuration)>,
    history: RankHistory,
}

impl Clone for CriticalPath {
    #[inline]
    fn clone(&self) -> Self {
        Self::from_sums(self.inline, &self.shared)
    }

    #[inline(always)]
    fn clone_from(&mut self, other: &Self) {
        self.inline = other.inline;
        self.share(&other.shared);
    }
}

/// Compares the sums, wherever they are stored.
impl PartialEq for CriticalPath {
    fn eq(&self, other: &Self) -> bool {
        let ends = |path: &Self| (path.rank(), path.end(), path.hops());
        let of_messages = |path: &Self| (path.inline.latency, path.inline.bandwidth, path.inline.waiting);
        ends(self) == ends(other)
            && of_messages(self) == of_messages(other)
            && self.times() == other.times()
            && self.shared.history == other.shared.history
    }
}

impl Eq for CriticalPath {}

/// Composition of the time on a critical path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathParts {
    /// Computation of the program.
    pub compute: SimDuration,
    /// Sleep of the program.
    pub sleep: SimDuration,
    /// Work of the MPI library in calls.
    pub library: SimDuration,
    /// Part of the time of messages that does not depend on bandwidths.
    pub latency: SimDuration,
    /// Rest of the time that messages would take without contention.
    pub bandwidth: SimDuration,
    /// Time that messages lose to contention.
    pub waiting: SimDuration,
}

impl CriticalPath {
    /// Creates the empty path of a rank.
    pub(crate) fn new(rank: Rank) -> Self {
        let shared =
            SharedSums { times: [SimDuration::ZERO; ActionKind::ALL.len()], history: RankHistory::default() };
        Self::from_sums(InlineSums::new(rank), &Arc::new(shared))
    }

    fn from_sums(recent: InlineSums, shared: &Arc<SharedSums>) -> Self {
        Self { inline: recent, bin_end: shared.history.bin_end(), shared: Arc::clone(shared) }
    }

    #[inline(always)]
    pub(crate) fn inline_sums(&self) -> &InlineSums {
        &self.inline
    }

    #[inline(always)]
    pub(crate) fn shared_sums(&self) -> &Arc<SharedSums> {
        &self.shared
    }

    /// Becomes the path with these [words](InlineSums::write_words) and shared sums.
    #[inline(always)]
    pub(crate) fn assign_words(&mut self, words: impl Fn(usize) -> u64, shared: &Arc<SharedSums>) {
        self.inline.read_words(words);
        self.share(shared);
    }

    /// Returns the path with these words and shared sums.
    pub(crate) fn from_words(words: impl Fn(usize) -> u64, shared: &Arc<SharedSums>) -> Self {
        let mut recent = InlineSums::new(Rank::new(0));
        recent.read_words(words);
        Self::from_sums(recent, shared)
    }

    /// Replaces the shared sums, without touching the reference count where they are the same already.
    #[inline(always)]
    fn share(&mut self, shared: &Arc<SharedSums>) {
        if !Arc::ptr_eq(&self.shared, shared) {
            self.bin_end = shared.history.bin_end();
            self.shared = Arc::clone(shared);
        }
    }

    fn times(&self) -> [SimDuration; ActionKind::ALL.len()] {
        let mut times = self.shared.times;
        let InlineSums { kinds, times: recent, .. } = self.inline;
        kinds
            .iter()
            .zip(recent)
            .for_each(|(&kind, time)| times[usize::from(kind)] += SimDuration::from_picos(time));
        times
    }

    /// Returns the rank at which the path ends.
    pub fn rank(&self) -> Rank {
        self.inline.rank
    }

    /// Returns the end of the path.
    #[inline]
    pub fn end(&self) -> SimTime {
        self.inline.end
    }

    /// Returns the number of changes from one rank to another.
    pub fn hops(&self) -> u64 {
        self.inline.hops
    }

    /// Returns the time spent in each kind of action that takes any, in the order of the kinds.
    pub fn calls(&self) -> impl Iterator<Item = (ActionKind, SimDuration)> + '_ {
        nonzero(self.times())
    }

    /// Returns the composition of the time.
    pub fn parts(&self) -> PathParts {
        let times = self.times();
        let of = |kind: ActionKind| times[kind as usize];
        let (compute, sleep) = (of(ActionKind::Compute), of(ActionKind::Sleep));
        let InlineSums { end, latency, bandwidth, waiting, .. } = self.inline;
        let [latency, bandwidth, waiting] = [latency, bandwidth, waiting].map(SimDuration::from_picos);
        let others = compute + sleep + latency + bandwidth + waiting;
        let library = SimDuration::from_picos(end.as_picos() - others.as_picos());
        PathParts { compute, sleep, library, latency, bandwidth, waiting }
    }

    /// Returns the rank of the path over time, as at most 129 segments. A segment has the rank at its end; shorter stays on other
    /// ranks are left out.
    pub fn segments(&self) -> Vec<Segment> {
        self.shared.history.segments(self.end(), self.rank())
    }

    /// Extends the path to `now` by an action of this kind.
    #[inline(never)]
    pub(crate) fn spend(&mut self, kind: ActionKind, now: SimTime) {
        let index = self.inline.kind_index(kind).unwrap_or_else(|| self.add_kind(kind));
        self.add(index, now - self.inline.end, now);
    }

    #[inline(always)]
    fn add(&mut self, index: usize, time: SimDuration, now: SimTime) {
        self.inline.times[index] += time.as_picos();
        self.inline.end = now;
        if now >= self.bin_end {
            self.end_bin();
        }
    }

    /// Assigns an inline sum to another kind: one that is zero, or after all have moved to the shared sums.
    #[cold]
    fn add_kind(&mut self, kind: ActionKind) -> usize {
        let free = self.inline.times.iter().position(|&time| time == 0);
        let index = free.unwrap_or_else(|| self.spill());
        self.inline.kinds[index] = kind as u8;
        index
    }

    /// Moves the inline times to the shared sums; returns a free index.
    #[cold]
    fn spill(&mut self) -> usize {
        let shared = Arc::make_mut(&mut self.shared);
        for (kind, time) in self.inline.kinds.iter().zip(&mut self.inline.times) {
            shared.times[usize::from(*kind)] += SimDuration::from_picos(std::mem::take(time));
        }
        0
    }

    #[cold]
    fn end_bin(&mut self) {
        let shared = Arc::make_mut(&mut self.shared);
        shared.history.advance(self.inline.end, self.inline.rank);
        self.bin_end = shared.history.bin_end();
    }

    /// Extends the path to `now` by a message in an action of this kind, whose transfer would take `uncontended` without contention.
    #[inline(always)]
    pub(crate) fn add_transfer(&mut self, kind: ActionKind, uncontended: UncontendedTransfer, now: SimTime) {
        if !self.try_add_transfer(kind, uncontended, now) {
            self.add_kind(kind);
            self.try_add_transfer(kind, uncontended, now);
        }
    }

    /// Does so if the kind has an inline sum; returns whether it has.
    #[inline(always)]
    pub(crate) fn try_add_transfer(
        &mut self,
        kind: ActionKind,
        uncontended: UncontendedTransfer,
        now: SimTime,
    ) -> bool {
        let Some(index) = self.inline.kind_index(kind) else { return false };
        let time = now - self.inline.end;
        let all = time.as_picos();
        // Messages that end together may take less time than without contention: no part exceeds the elapsed time.
        let latency = uncontended.latency.as_picos().min(all);
        let bandwidth = uncontended.bandwidth.as_picos().min(all - latency);
        self.inline.latency += latency;
        self.inline.bandwidth += bandwidth;
        self.inline.waiting += all - latency - bandwidth;
        self.add(index, time, now);
        true
    }

    /// Moves the end of the path to a rank.
    #[inline]
    pub(crate) fn move_to(&mut self, rank: Rank) {
        self.inline.hops += u64::from(self.inline.rank != rank);
        self.inline.rank = rank;
    }
}

/// Returns the times of the kinds of actions that take any, in the order of the kinds.
fn nonzero(times: [SimDuration; ActionKind::ALL.len()]) -> impl Iterator<Item = (ActionKind, SimDuration)> {
    ActionKind::ALL.into_iter().zip(times).filter(|&(_, time)| time > SimDuration::ZERO)
}

impl From<SharedSums> for EncodedSums {
    fn from(SharedSums { times, history }: SharedSums) -> Self {
        Self { calls: nonzero(times).collect(), history }
    }
}

impl From<EncodedSums> for SharedSums {
    fn from(EncodedSums { calls, history }: EncodedSums) -> Self {
        let mut times = [SimDuration::ZERO; ActionKind::ALL.len()];
        calls.into_iter().for_each(|(kind, time)| times[kind as usize] = time);
        Self { times, history }
    }
}

impl From<CriticalPath> for EncodedPath {
    fn from(path: CriticalPath) -> Self {
        let InlineSums { rank, end, hops, latency, bandwidth, waiting, .. } = path.inline;
        let (calls, history) = (path.calls().collect(), path.shared.history.clone());
        Self { rank, end, hops, latency, bandwidth, waiting, calls, history }
    }
}

impl From<EncodedPath> for CriticalPath {
    fn from(encoded: EncodedPath) -> Self {
        let EncodedPath { rank, end, hops, latency, bandwidth, waiting, calls, history } = encoded;
        let inline = InlineSums { end, hops, latency, bandwidth, waiting, ..InlineSums::new(rank) };
        Self::from_sums(inline, &Arc::new(EncodedSums { calls, history }.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(picos: u64) -> SimTime {
        SimTime::from_picos(picos)
    }

    fn picos(picos: u64) -> SimDuration {
        SimDuration::from_picos(picos)
    }

    fn path() -> CriticalPath {
        let mut path = CriticalPath::new(Rank::new(3));
        path.spend(ActionKind::Compute, at(100));
        path.spend(ActionKind::Send, at(110));
        path.move_to(Rank::new(5));
        path.add_transfer(
            ActionKind::Recv,
            UncontendedTransfer { latency: picos(20), bandwidth: picos(30) },
            at(170),
        );
        path.move_to(Rank::new(5));
        path.spend(ActionKind::Sleep, at(175));
        path
    }

    #[test]
    fn parts_and_kinds_add_up_to_the_end() {
        let path = path();
        let expected = PathParts {
            compute: picos(100),
            sleep: picos(5),
            library: picos(10),
            latency: picos(20),
            bandwidth: picos(30),
            waiting: picos(10),
        };
        assert_eq!(path.parts(), expected);
        assert_eq!((path.rank(), path.end(), path.hops()), (Rank::new(5), at(175), 1));
        assert_eq!(path.calls().map(|(_, time)| time).sum::<SimDuration>(), picos(175));
    }

    /// Messages that end at the same instant as others may be faster than without contention.
    #[test]
    fn no_part_exceeds_the_time() {
        let mut path = CriticalPath::new(Rank::new(0));
        let uncontended = UncontendedTransfer { latency: picos(20), bandwidth: picos(30) };
        path.add_transfer(ActionKind::Recv, uncontended, at(10));
        path.add_transfer(ActionKind::Recv, uncontended, at(40));
        let PathParts { latency, bandwidth, waiting, .. } = path.parts();
        assert_eq!((latency, bandwidth, waiting), (picos(30), picos(10), picos(0)));
    }

    /// All kinds in turn: more than are stored inline.
    #[test]
    fn times_of_many_kinds_are_kept() {
        let mut path = CriticalPath::new(Rank::new(0));
        let all = ActionKind::ALL.len() as u64;
        for step in 0..3 * all {
            let fork = path.clone();
            path.spend(ActionKind::ALL[(step % all) as usize], at(step + 1));
            assert_eq!(fork.end(), at(step));
        }
        assert!(path.calls().map(|(_, time)| time).eq(ActionKind::ALL.map(|_| picos(3))));
        assert_eq!(path.parts().library, picos(3 * all - 6));
    }

    #[test]
    fn paths_survive_a_round_trip() {
        crate::round_trip::assert_round_trip(&path());
    }
}
