//! Noise of the operating systems of hosts.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use netmodel::HostId;
use pdes_core::{Rank, SimDuration, SimTime};

/// Noise of the operating systems of hosts, which makes computations longer.
///
/// # Laws
/// The answer depends on the arguments alone. Equal texts of [`Debug`] are equal noise: processes compare their specifications by
/// them, and checkpoints those of their runs.
pub trait HostNoise: Debug + Send + Sync {
    /// Returns the noise in a computation on a host that begins at an instant and takes a time without noise, which is not zero.
    fn in_computation(&self, host: HostId, begin: SimTime, length: SimDuration) -> ComputationNoise;

    /// Returns by how much such a computation is longer; one that takes no time is not.
    fn delay(&self, host: HostId, begin: SimTime, length: SimDuration) -> SimDuration {
        match length {
            SimDuration::ZERO => SimDuration::ZERO,
            _ => self.in_computation(host, begin, length).delay,
        }
    }
}

/// Noise in a computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputationNoise {
    /// Time by which it is longer.
    pub delay: SimDuration,
    /// Time near its end without any event: a computation within it has no noise. It may be empty, or shorter than it could be.
    pub quiet: Range<SimTime>,
}

/// Noise of the hosts of some ranks, which remembers for each rank when its host is quiet: most computations are shorter than the time
/// between two events.
#[derive(Debug)]
pub(crate) struct RankNoise<'a> {
    noise: &'a dyn HostNoise,
    /// Host of each rank, and when it is quiet \[ps\]. One rank is of one thread.
    quiet: Box<[[AtomicU64; 3]]>,
}

impl<'a> RankNoise<'a> {
    /// Makes the noise of so many ranks.
    pub(crate) fn new(noise: &'a dyn HostNoise, ranks: usize) -> Self {
        Self { noise, quiet: (0..ranks).map(|_| [0, 0, 0].map(AtomicU64::new)).collect() }
    }

    /// Returns by how much a computation of a rank on a host is longer.
    #[inline]
    pub(crate) fn delay(
        &self,
        (rank, host): (Rank, HostId),
        begin: SimTime,
        length: SimDuration,
    ) -> SimDuration {
        // Relaxed: another thread gets the rank between two runs only.
        let [of, from, until] =
            self.quiet[rank.index()].each_ref().map(|known| known.load(Ordering::Relaxed));
        let is_quiet = of == u64::from(host.get())
            && from <= begin.as_picos()
            && begin.as_picos().saturating_add(length.as_picos()) <= until;
        if is_quiet { SimDuration::ZERO } else { self.delay_anew((rank, host), begin, length) }
    }

    #[cold]
    fn delay_anew(&self, (rank, host): (Rank, HostId), begin: SimTime, length: SimDuration) -> SimDuration {
        if length == SimDuration::ZERO {
            return SimDuration::ZERO;
        }
        let ComputationNoise { delay, quiet } = self.noise.in_computation(host, begin, length);
        let known = [u64::from(host.get()), quiet.start.as_picos(), quiet.end.as_picos()];
        self.quiet[rank.index()]
            .iter()
            .zip(known)
            .for_each(|(own, known)| own.store(known, Ordering::Relaxed));
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event of 30 ps at the begin of each 100 ps, shifted by the number of the host.
    #[derive(Debug)]
    struct Ticks;

    impl HostNoise for Ticks {
        fn in_computation(&self, host: HostId, begin: SimTime, length: SimDuration) -> ComputationNoise {
            let begin = begin.as_picos() + 100 - u64::from(host.get());
            let last = (begin + length.as_picos() - 1) / 100;
            let running = (begin / 100 * 100 + 30).saturating_sub(begin);
            let shift = |at: u64| SimTime::from_picos((at + u64::from(host.get())).saturating_sub(100));
            ComputationNoise {
                delay: SimDuration::from_picos(running + 30 * (last - begin / 100)),
                quiet: shift(last * 100 + 30)..shift(last * 100 + 100),
            }
        }
    }

    /// Ranks that remember quiet times have the noise of their hosts, also if they move to others, or begin anew.
    #[test]
    fn ranks_that_remember_have_the_same_noise() {
        let noise = RankNoise::new(&Ticks, 2);
        let mut begin = 0;
        for step in 0..10_000 {
            begin = if step % 1_000 == 999 { 0 } else { begin + u64::from(step * 7_919 % 41) };
            let (rank, host) = (Rank::new(step % 2), HostId::new(step / 100 % 7));
            let (at, length) =
                (SimTime::from_picos(begin), SimDuration::from_picos(u64::from(step * 457 % 61)));
            assert_eq!(noise.delay((rank, host), at, length), Ticks.delay(host, at, length), "{step}");
        }
    }
}
