//! The chain of causes that ends at the clock of a rank.

mod course;

use std::sync::Arc;

use pdes_core::{Rank, SimDuration, SimTime, Wire};

use crate::machine::Passage;
use crate::statistics::ActionKind;
use course::Course;
pub use course::Segment;

/// The critical path to an instant of a rank: what the time before was spent on, along the chain of causes that ends there.
///
/// A rank that waits goes on when the last of several things has happened; before that, the path is on the rank that did it.
/// Sums are carried forward with the clocks of ranks: whoever goes on because of another one takes over its sums. The path is
/// that of Yang and Miller ("Critical Path Analysis for the Execution of Parallel and Distributed Programs", ICDCS 1988),
/// without a graph of the program; `docs/critical-path.md` has the rules.
///
/// # Laws
/// The times of all kinds of actions add up to [`end`](CriticalPath::end), and so do the [`parts`](CriticalPath::parts), to the
/// picosecond.
///
/// # Cost
/// Paths fork with nearly each message. What is copied then is small: where the path was long ago is shared by all that come from
/// there, and changes where a path has been in more kinds of actions since than it keeps itself, or a bin of time ends.
#[derive(Clone, Debug)]
pub struct CriticalPath {
    end: SimTime,
    /// When the present bin of time ends.
    next: SimTime,
    /// How often it has gone from one rank to another.
    hops: u64,
    /// Of the times of actions, what messages took.
    latency: SimDuration,
    bandwidth: SimDuration,
    waiting: SimDuration,
    /// Times of kinds of actions that are not in the past yet; a place whose time is zero is free.
    times: [SimDuration; RECENT],
    kinds: [ActionKind; RECENT],
    rank: Rank,
    past: Arc<Past>,
}

// It is copied with each message.
const _: () = assert!(size_of::<CriticalPath>() == 96);

/// Kinds of actions whose times a path keeps itself: most programs take turns between few.
const RECENT: usize = 4;

/// What paths have in common.
#[derive(Clone, Debug)]
struct Past {
    /// By kind of action.
    times: [SimDuration; ActionKind::ALL.len()],
    course: Course,
}

/// Equal paths are of the same times, however much of these is past.
impl PartialEq for CriticalPath {
    fn eq(&self, other: &Self) -> bool {
        let ends = |path: &Self| (path.rank, path.end, path.hops);
        let of_messages = |path: &Self| (path.latency, path.bandwidth, path.waiting);
        ends(self) == ends(other)
            && of_messages(self) == of_messages(other)
            && self.times() == other.times()
            && self.past.course == other.past.course
    }
}

impl Eq for CriticalPath {}

/// What the time on a critical path is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathParts {
    /// Computation of the program.
    pub compute: SimDuration,
    /// Sleep of the program.
    pub sleep: SimDuration,
    /// What the MPI library does in calls.
    pub library: SimDuration,
    /// The part of the time of messages that does not depend on bandwidths.
    pub latency: SimDuration,
    /// What they take beyond, alone on their way.
    pub bandwidth: SimDuration,
    /// What they take beyond that, because they share their way with others.
    pub waiting: SimDuration,
}

impl CriticalPath {
    /// Begins the path of a rank.
    pub(crate) fn new(rank: Rank) -> Self {
        let past = Past { times: [SimDuration::ZERO; ActionKind::ALL.len()], course: Course::default() };
        Self {
            end: SimTime::ZERO,
            next: past.course.next(),
            hops: 0,
            latency: SimDuration::ZERO,
            bandwidth: SimDuration::ZERO,
            waiting: SimDuration::ZERO,
            times: [SimDuration::ZERO; RECENT],
            kinds: [ActionKind::Marker; RECENT],
            rank,
            past: Arc::new(past),
        }
    }

    fn times(&self) -> [SimDuration; ActionKind::ALL.len()] {
        let mut times = self.past.times;
        self.kinds.iter().zip(self.times).for_each(|(&kind, time)| times[kind as usize] += time);
        times
    }

    /// Returns the rank at which the path ends.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns when it ends.
    pub fn end(&self) -> SimTime {
        self.end
    }

    /// Returns how often it goes from one rank to another.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Returns the time spent in each kind of action that takes any, in the order of the kinds.
    pub fn calls(&self) -> impl Iterator<Item = (ActionKind, SimDuration)> + '_ {
        let all = ActionKind::ALL.into_iter().zip(self.times());
        all.filter(|&(_, time)| time > SimDuration::ZERO)
    }

    /// Returns what the time is made of.
    pub fn parts(&self) -> PathParts {
        let times = self.times();
        let of = |kind: ActionKind| times[kind as usize];
        let (compute, sleep) = (of(ActionKind::Compute), of(ActionKind::Sleep));
        let Self { latency, bandwidth, waiting, .. } = *self;
        let others = compute + sleep + latency + bandwidth + waiting;
        let library = SimDuration::from_picos(self.end.as_picos() - others.as_picos());
        PathParts { compute, sleep, library, latency, bandwidth, waiting }
    }

    /// Returns on which rank the path is, from its beginning to its end; at most 129 segments. Which rank stands for a segment
    /// is that on which the path is at its end: short stays on others are left out.
    pub fn segments(&self) -> Vec<Segment> {
        self.past.course.segments(self.end, self.rank)
    }

    /// Takes in that the rank has been busy with an action of this kind until now.
    #[inline(never)]
    pub(crate) fn spend(&mut self, kind: ActionKind, now: SimTime) {
        self.add(kind, now - self.end);
    }

    #[inline(always)]
    fn add(&mut self, kind: ActionKind, time: SimDuration) {
        let is_free = |place: &usize| self.kinds[*place] == kind || self.times[*place] == SimDuration::ZERO;
        let place = (0..RECENT).find(is_free).unwrap_or_else(|| self.settle());
        self.kinds[place] = kind;
        self.times[place] += time;
        self.end += time;
        if self.end >= self.next {
            self.end_bin();
        }
    }

    /// Puts the recent times to the past ones; returns a free place.
    #[cold]
    fn settle(&mut self) -> usize {
        let past = Arc::make_mut(&mut self.past);
        for (kind, time) in self.kinds.iter().zip(&mut self.times) {
            past.times[*kind as usize] += std::mem::take(time);
        }
        0
    }

    #[cold]
    fn end_bin(&mut self) {
        self.settle();
        let past = Arc::make_mut(&mut self.past);
        past.course.reach(self.end, self.rank);
        self.next = past.course.next();
    }

    /// Takes in that a message takes the time until now, in an action of this kind, of which alone on its way it would take
    /// these parts.
    #[inline(always)]
    pub(crate) fn pass(&mut self, kind: ActionKind, Passage { latency, bandwidth }: Passage, now: SimTime) {
        let time = now - self.end;
        let all = time.as_picos();
        let latency = latency.as_picos().min(all);
        let bandwidth = bandwidth.as_picos().min(all - latency);
        self.latency += SimDuration::from_picos(latency);
        self.bandwidth += SimDuration::from_picos(bandwidth);
        self.waiting += SimDuration::from_picos(all - latency - bandwidth);
        self.add(kind, time);
    }

    /// Goes over to a rank.
    #[inline]
    pub(crate) fn enter(&mut self, rank: Rank) {
        self.hops += u64::from(self.rank != rank);
        self.rank = rank;
    }

    /// Writes the path for another process of the operating system.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let Self { rank, end, hops, latency, bandwidth, waiting, .. } = *self;
        (rank, end, hops).write(bytes);
        [latency, bandwidth, waiting].iter().for_each(|part| part.as_picos().write(bytes));
        (self.calls().count() as u8).write(bytes);
        self.calls().for_each(|(kind, time)| (kind, time.as_picos()).write(bytes));
        self.past.course.write(bytes);
    }

    /// Reads what [`write`](CriticalPath::write) wrote; `None` where the bytes are something else.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (rank, end, hops) = Wire::read(bytes)?;
        let mut path = Self { end, hops, ..Self::new(rank) };
        let mut past = (*path.past).clone();
        for part in [&mut path.latency, &mut path.bandwidth, &mut path.waiting] {
            *part = SimDuration::from_picos(Wire::read(bytes)?);
        }
        for _ in 0..u8::read(bytes)? {
            let (kind, time): (ActionKind, u64) = Wire::read(bytes)?;
            past.times[kind as usize] = SimDuration::from_picos(time);
        }
        past.course = Course::read(bytes)?;
        Some(Self { next: past.course.next(), past: Arc::new(past), ..path })
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

    /// Messages that end at once with others may be faster than alone.
    #[test]
    fn no_part_exceeds_what_there_is() {
        let mut path = CriticalPath::new(Rank::new(0));
        let alone = Passage { latency: picos(20), bandwidth: picos(30) };
        path.pass(ActionKind::Recv, alone, at(10));
        path.pass(ActionKind::Recv, alone, at(40));
        let PathParts { latency, bandwidth, waiting, .. } = path.parts();
        assert_eq!((latency, bandwidth, waiting), (picos(30), picos(10), picos(0)));
    }

    /// All kinds, in turn, more than a path keeps itself.
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
