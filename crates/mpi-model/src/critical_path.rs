//! Critical paths, computed forward along with the clocks of ranks.

mod course;

use std::sync::Arc;

use pdes_core::{Rank, SimDuration, SimTime, Wire};

use crate::machine::Passage;
use crate::statistics::ActionKind;
use course::Course;
pub use course::Segment;

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
#[derive(Debug)]
pub struct CriticalPath {
    recent: Recent,
    /// End of the current bin of the rank history in `past`.
    next: SimTime,
    past: Arc<Past>,
}

// It is copied with every message.
const _: () = assert!(size_of::<Recent>() == 80);

/// Number of kinds of actions whose times are stored inline: most programs alternate between few.
const RECENT: usize = 4;

/// Inline sums of a path. No sum exceeds its end, so that none overflows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    end: SimTime,
    /// Number of changes from one rank to another.
    hops: u64,
    /// Time of messages \[ps\], part of the times of actions: latency, bandwidth, waiting for shared links.
    latency: u64,
    bandwidth: u64,
    waiting: u64,
    /// Times of kinds of actions \[ps\] that are not in the shared sums yet.
    times: [u64; RECENT],
    /// Kind of each of `times`, as an index of [`ActionKind::ALL`].
    kinds: [u8; RECENT],
    rank: Rank,
}

impl Recent {
    /// Size in words of 64 bits.
    pub(crate) const WORDS: usize = 6 + RECENT;

    fn begin(rank: Rank) -> Self {
        Self {
            end: SimTime::ZERO,
            hops: 0,
            latency: 0,
            bandwidth: 0,
            waiting: 0,
            times: [0; RECENT],
            kinds: std::array::from_fn(|place| place as u8),
            rank,
        }
    }

    #[inline(always)]
    fn place(&self, kind: ActionKind) -> Option<usize> {
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
        for (place, &time) in self.times.iter().enumerate() {
            write(5 + place, time);
        }
        write(5 + RECENT, u64::from(u32::from_le_bytes(self.kinds)) << 32 | u64::from(self.rank.get()));
    }

    /// Reads the words that [`write_words`](InlineSums::write_words) wrote.
    #[inline(always)]
    fn read_words(&mut self, read: impl Fn(usize) -> u64) {
        self.end = SimTime::from_picos(read(0));
        self.hops = read(1);
        self.latency = read(2);
        self.bandwidth = read(3);
        self.waiting = read(4);
        for (place, time) in self.times.iter_mut().enumerate() {
            *time = read(5 + place);
        }
        let last = read(5 + RECENT);
        self.kinds = ((last >> 32) as u32).to_le_bytes();
        self.rank = Rank::new(last as u32);
    }
}

/// Older sums of a path, shared with the paths that descend from it.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    /// Times by kind of action.
    times: [SimDuration; ActionKind::ALL.len()],
    course: Course,
}

impl Clone for CriticalPath {
    #[inline]
    fn clone(&self) -> Self {
        Self::of(self.recent, &self.past)
    }

    #[inline(always)]
    fn clone_from(&mut self, other: &Self) {
        self.recent = other.recent;
        self.go_over(&other.past);
    }
}

/// Compares the sums, wherever they are stored.
impl PartialEq for CriticalPath {
    fn eq(&self, other: &Self) -> bool {
        let ends = |path: &Self| (path.rank(), path.end(), path.hops());
        let of_messages = |path: &Self| (path.recent.latency, path.recent.bandwidth, path.recent.waiting);
        ends(self) == ends(other)
            && of_messages(self) == of_messages(other)
            && self.times() == other.times()
            && self.past.course == other.past.course
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
        let past = Past { times: [SimDuration::ZERO; ActionKind::ALL.len()], course: Course::default() };
        Self::of(Recent::begin(rank), &Arc::new(past))
    }

    fn of(recent: Recent, past: &Arc<Past>) -> Self {
        Self { recent, next: past.course.next(), past: Arc::clone(past) }
    }

    #[inline(always)]
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    #[inline(always)]
    pub(crate) fn past(&self) -> &Arc<Past> {
        &self.past
    }

    /// Becomes the path with these [words](InlineSums::write_words) and shared sums.
    #[inline(always)]
    pub(crate) fn take_over(&mut self, words: impl Fn(usize) -> u64, past: &Arc<Past>) {
        self.recent.read_words(words);
        self.go_over(past);
    }

    /// Returns the path with these words and shared sums.
    pub(crate) fn from_words(words: impl Fn(usize) -> u64, past: &Arc<Past>) -> Self {
        let mut recent = Recent::begin(Rank::new(0));
        recent.read_words(words);
        Self::of(recent, past)
    }

    /// Replaces the shared sums, without touching the reference count where they are the same already.
    #[inline(always)]
    fn go_over(&mut self, past: &Arc<Past>) {
        if !Arc::ptr_eq(&self.past, past) {
            self.next = past.course.next();
            self.past = Arc::clone(past);
        }
    }

    fn times(&self) -> [SimDuration; ActionKind::ALL.len()] {
        let mut times = self.past.times;
        let Recent { kinds, times: recent, .. } = self.recent;
        kinds
            .iter()
            .zip(recent)
            .for_each(|(&kind, time)| times[usize::from(kind)] += SimDuration::from_picos(time));
        times
    }

    /// Returns the rank at which the path ends.
    pub fn rank(&self) -> Rank {
        self.recent.rank
    }

    /// Returns the end of the path.
    #[inline]
    pub fn end(&self) -> SimTime {
        self.recent.end
    }

    /// Returns the number of changes from one rank to another.
    pub fn hops(&self) -> u64 {
        self.recent.hops
    }

    /// Returns the time spent in each kind of action that takes any, in the order of the kinds.
    pub fn calls(&self) -> impl Iterator<Item = (ActionKind, SimDuration)> + '_ {
        let all = ActionKind::ALL.into_iter().zip(self.times());
        all.filter(|&(_, time)| time > SimDuration::ZERO)
    }

    /// Returns the composition of the time.
    pub fn parts(&self) -> PathParts {
        let times = self.times();
        let of = |kind: ActionKind| times[kind as usize];
        let (compute, sleep) = (of(ActionKind::Compute), of(ActionKind::Sleep));
        let Recent { end, latency, bandwidth, waiting, .. } = self.recent;
        let [latency, bandwidth, waiting] = [latency, bandwidth, waiting].map(SimDuration::from_picos);
        let others = compute + sleep + latency + bandwidth + waiting;
        let library = SimDuration::from_picos(end.as_picos() - others.as_picos());
        PathParts { compute, sleep, library, latency, bandwidth, waiting }
    }

    /// Returns the rank of the path over time, as at most 129 segments. A segment has the rank at its end; shorter stays on other
    /// ranks are left out.
    pub fn segments(&self) -> Vec<Segment> {
        self.past.course.segments(self.end(), self.rank())
    }

    /// Extends the path to `now` by an action of this kind.
    #[inline(never)]
    pub(crate) fn spend(&mut self, kind: ActionKind, now: SimTime) {
        let place = self.recent.place(kind).unwrap_or_else(|| self.make_room(kind));
        self.add(place, now - self.recent.end, now);
    }

    #[inline(always)]
    fn add(&mut self, place: usize, time: SimDuration, now: SimTime) {
        self.recent.times[place] += time.as_picos();
        self.recent.end = now;
        if now >= self.next {
            self.end_bin();
        }
    }

    /// Assigns an inline sum to another kind: one that is zero, or after all have moved to the shared sums.
    #[cold]
    fn make_room(&mut self, kind: ActionKind) -> usize {
        let free = self.recent.times.iter().position(|&time| time == 0);
        let place = free.unwrap_or_else(|| self.settle());
        self.recent.kinds[place] = kind as u8;
        place
    }

    /// Moves the inline times to the shared sums; returns a free index.
    #[cold]
    fn settle(&mut self) -> usize {
        let past = Arc::make_mut(&mut self.past);
        for (kind, time) in self.recent.kinds.iter().zip(&mut self.recent.times) {
            past.times[usize::from(*kind)] += SimDuration::from_picos(std::mem::take(time));
        }
        0
    }

    #[cold]
    fn end_bin(&mut self) {
        let past = Arc::make_mut(&mut self.past);
        past.course.reach(self.recent.end, self.recent.rank);
        self.next = past.course.next();
    }

    /// Extends the path to `now` by a message in an action of this kind, whose transfer would take `alone` without contention.
    #[inline(always)]
    pub(crate) fn pass(&mut self, kind: ActionKind, alone: Passage, now: SimTime) {
        if !self.pass_in_place(kind, alone, now) {
            self.make_room(kind);
            self.pass_in_place(kind, alone, now);
        }
    }

    /// Does so if the kind has an inline sum; returns whether it has.
    #[inline(always)]
    pub(crate) fn pass_in_place(&mut self, kind: ActionKind, alone: Passage, now: SimTime) -> bool {
        let Some(place) = self.recent.place(kind) else { return false };
        let time = now - self.recent.end;
        let all = time.as_picos();
        // Messages that end together may take less time than without contention: no part exceeds the elapsed time.
        let latency = alone.latency.as_picos().min(all);
        let bandwidth = alone.bandwidth.as_picos().min(all - latency);
        self.recent.latency += latency;
        self.recent.bandwidth += bandwidth;
        self.recent.waiting += all - latency - bandwidth;
        self.add(place, time, now);
        true
    }

    /// Moves the end of the path to a rank.
    #[inline]
    pub(crate) fn enter(&mut self, rank: Rank) {
        self.recent.hops += u64::from(self.recent.rank != rank);
        self.recent.rank = rank;
    }

    /// Writes the path for another process of the operating system.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let Recent { rank, end, hops, latency, bandwidth, waiting, .. } = self.recent;
        (rank, end, hops).write(bytes);
        (latency, bandwidth, waiting).write(bytes);
        (self.calls().count() as u8).write(bytes);
        self.calls().for_each(|(kind, time)| (kind, time.as_picos()).write(bytes));
        self.past.course.write(bytes);
    }

    /// Reads the output of [`write`](CriticalPath::write); `None` where the bytes are malformed.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (rank, end, hops) = Wire::read(bytes)?;
        let (latency, bandwidth, waiting) = Wire::read(bytes)?;
        let Self { recent, past, .. } = Self::new(rank);
        let mut past = (*past).clone();
        for _ in 0..u8::read(bytes)? {
            let (kind, time): (ActionKind, u64) = Wire::read(bytes)?;
            past.times[kind as usize] = SimDuration::from_picos(time);
        }
        past.course = Course::read(bytes)?;
        let recent = Recent { end, hops, latency, bandwidth, waiting, ..recent };
        Some(Self::of(recent, &Arc::new(past)))
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
        path.enter(Rank::new(5));
        path.pass(ActionKind::Recv, Passage { latency: picos(20), bandwidth: picos(30) }, at(170));
        path.enter(Rank::new(5));
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
    fn no_part_exceeds_what_there_is() {
        let mut path = CriticalPath::new(Rank::new(0));
        let alone = Passage { latency: picos(20), bandwidth: picos(30) };
        path.pass(ActionKind::Recv, alone, at(10));
        path.pass(ActionKind::Recv, alone, at(40));
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
    fn paths_come_back() {
        let mut bytes = Vec::new();
        path().write(&mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(CriticalPath::read(&mut &bytes[..length]), None, "too short");
        }
        let rest = &mut bytes.as_slice();
        assert_eq!(CriticalPath::read(rest), Some(path()));
        assert!(rest.is_empty());
    }
}
