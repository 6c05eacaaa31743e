//! The chain of causes that ends at the clock of a rank.

mod course;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    rank: Rank,
    end: SimTime,
    /// How often it has gone from one rank to another.
    hops: u64,
    /// By kind of action; of these times, what messages took.
    times: [SimDuration; ActionKind::ALL.len()],
    latency: SimDuration,
    bandwidth: SimDuration,
    waiting: SimDuration,
    course: Course,
}

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
        Self {
            rank,
            end: SimTime::ZERO,
            hops: 0,
            times: [SimDuration::ZERO; ActionKind::ALL.len()],
            latency: SimDuration::ZERO,
            bandwidth: SimDuration::ZERO,
            waiting: SimDuration::ZERO,
            course: Course::default(),
        }
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
        let all = ActionKind::ALL.into_iter().zip(self.times);
        all.filter(|&(_, time)| time > SimDuration::ZERO)
    }

    /// Returns what the time is made of.
    pub fn parts(&self) -> PathParts {
        let of = |kind: ActionKind| self.times[kind as usize];
        let (compute, sleep) = (of(ActionKind::Compute), of(ActionKind::Sleep));
        let Self { latency, bandwidth, waiting, .. } = *self;
        let others = compute + sleep + latency + bandwidth + waiting;
        let library = SimDuration::from_picos(self.end.as_picos() - others.as_picos());
        PathParts { compute, sleep, library, latency, bandwidth, waiting }
    }

    /// Returns on which rank the path is, from its beginning to its end; at most 129 segments. Which rank stands for a segment
    /// is that on which the path is at its end: short stays on others are left out.
    pub fn segments(&self) -> Vec<Segment> {
        self.course.segments(self.end, self.rank)
    }

    /// Takes in that the rank has been busy with an action of this kind until now.
    #[inline]
    pub(crate) fn spend(&mut self, kind: ActionKind, now: SimTime) {
        self.times[kind as usize] += now - self.end;
        self.go_to(now);
    }

    /// Takes in that a message takes the time until now, in an action of this kind: what alone it would take is known.
    pub(crate) fn pass(&mut self, kind: ActionKind, Passage { latency, bandwidth }: Passage, now: SimTime) {
        let all = now - self.end;
        let rest = |part| SimDuration::from_picos(all.as_picos() - SimDuration::as_picos(part));
        let latency = latency.min(all);
        let bandwidth = bandwidth.min(rest(latency));
        self.latency += latency;
        self.bandwidth += bandwidth;
        self.waiting += rest(latency + bandwidth);
        self.spend(kind, now);
    }

    /// Goes over to a rank.
    #[inline]
    pub(crate) fn enter(&mut self, rank: Rank) {
        self.hops += u64::from(self.rank != rank);
        self.rank = rank;
    }

    #[inline]
    fn go_to(&mut self, now: SimTime) {
        self.end = now;
        self.course.reach(now, self.rank);
    }

    /// Writes the path for another process of the operating system.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let Self { rank, end, hops, latency, bandwidth, waiting, .. } = *self;
        (rank, end, hops).write(bytes);
        [latency, bandwidth, waiting].iter().for_each(|part| part.as_picos().write(bytes));
        (self.calls().count() as u8).write(bytes);
        self.calls().for_each(|(kind, time)| (kind, time.as_picos()).write(bytes));
        self.course.write(bytes);
    }

    /// Reads what [`write`](CriticalPath::write) wrote; `None` where the bytes are something else.
    pub fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (rank, end, hops) = Wire::read(bytes)?;
        let mut path = Self { end, hops, ..Self::new(rank) };
        for part in [&mut path.latency, &mut path.bandwidth, &mut path.waiting] {
            *part = SimDuration::from_picos(Wire::read(bytes)?);
        }
        for _ in 0..u8::read(bytes)? {
            let (kind, time): (ActionKind, u64) = Wire::read(bytes)?;
            path.times[kind as usize] = SimDuration::from_picos(time);
        }
        path.course = Course::read(bytes)?;
        Some(path)
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
