//! Noise of a trace.

use std::fmt;
use std::ops::Range;

use goal::NoiseTrace;
use netmodel::HostId;
use pdes_core::{SimDuration, SimTime};
use replay::{ComputationNoise, HostNoise};
use xxhash_rust::xxh3::xxh3_64;

use super::{PHASE, random};

/// Noise of a trace in LogGOPSim's format, which recurs after its length; each host begins elsewhere in it.
#[derive(Clone)]
pub struct RecordedNoise {
    seed: u64,
    is_synchronised: bool,
    period: u64,
    /// Begins \[ps\].
    begins: Vec<u64>,
    /// Lengths \[ps\].
    lengths: Vec<u64>,
    /// Sums of the lengths before each event, and of all \[ps\].
    sums: Vec<u64>,
}

impl RecordedNoise {
    /// Makes the noise of a trace; with a seed of the places at which hosts begin in it, or of the one at which all do.
    pub fn new(trace: &NoiseTrace, seed: u64, is_synchronised: bool) -> Self {
        let (begins, lengths): (Vec<u64>, Vec<u64>) = trace.events().unzip();
        let sum = |sum: &mut u64, length: &u64| {
            *sum += length;
            Some(*sum)
        };
        let sums = [0].into_iter().chain(lengths.iter().scan(0, sum)).collect();
        Self { seed, is_synchronised, period: trace.period(), begins, lengths, sums }
    }

    /// Returns the number of events that begin until an instant of the recurring trace, the instant included or not, and their sum.
    fn begun(&self, at: u64, is_included: bool) -> (u64, u128) {
        let (rounds, at) = (at / self.period, at % self.period);
        let here = self.begins.partition_point(|&begin| begin < at || is_included && begin == at);
        let (count, all) = (self.begins.len(), self.sums[self.begins.len()]);
        (
            rounds * count as u64 + here as u64,
            u128::from(rounds) * u128::from(all) + u128::from(self.sums[here]),
        )
    }

    /// Returns the begin of an event of the recurring trace \[ps\].
    fn begin_of(&self, event: u64) -> u64 {
        let count = self.begins.len() as u64;
        (event / count).saturating_mul(self.period).saturating_add(self.begins[(event % count) as usize])
    }

    /// Returns the length of an event of the recurring trace \[ps\].
    fn length_of(&self, event: u64) -> u64 {
        self.lengths[(event % self.lengths.len() as u64) as usize]
    }
}

/// Prints a hash of the events.
impl fmt::Debug for RecordedNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.begins.iter().chain(&self.lengths).flat_map(|picos| picos.to_le_bytes());
        f.debug_struct("RecordedNoise")
            .field("seed", &self.seed)
            .field("is_synchronised", &self.is_synchronised)
            .field("period", &self.period)
            .field("events", &xxh3_64(&events.collect::<Vec<u8>>()))
            .finish()
    }
}

impl HostNoise for RecordedNoise {
    fn in_computation(
        &self,
        host: HostId,
        begin: SimTime,
        length: SimDuration,
        _: &Range<SimTime>,
    ) -> ComputationNoise {
        if self.begins.is_empty() {
            return ComputationNoise { delay: SimDuration::ZERO, quiet: SimTime::ZERO..SimTime::MAX };
        }
        let host = (!self.is_synchronised).then_some(host);
        let phase = random(self.seed, host, PHASE).u64(..self.period);
        // The first round is the second: an event may be running when a run begins.
        let at = begin.as_picos() % self.period + phase + self.period;
        let (begun, before) = self.begun(at, true);
        let (ended, until) = self.begun(at.saturating_add(length.as_picos()), false);
        let end = self.begin_of(begun - 1) + self.length_of(begun - 1);
        let picos = until.saturating_sub(before) + u128::from(end.saturating_sub(at));
        let [from, to] = [self.begin_of(ended - 1) + self.length_of(ended - 1), self.begin_of(ended)];
        let instant =
            |of_trace: u64| begin.saturating_add(SimDuration::from_picos(of_trace.saturating_sub(at)));
        let delay = SimDuration::from_picos(u64::try_from(picos).unwrap_or(u64::MAX));
        ComputationNoise { delay, quiet: instant(from)..instant(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the events of many rounds, one by one.
    #[test]
    fn the_trace_recurs() {
        let trace = NoiseTrace::read("2 3\n10 5\n37 9\n40 0\n").unwrap();
        let noise = RecordedNoise::new(&trace, 3, false);
        let host = HostId::new(5);
        let phase = random(3, Some(host), PHASE).u64(..40_000);
        let rounds = (0..10).map(|round| 40_000 * round);
        let events: Vec<(u64, u64)> =
            rounds.flat_map(|at| trace.events().map(move |(begin, length)| (at + begin, length))).collect();
        for (begin, length) in (0..120_000).step_by(731).zip((1..100_000).step_by(457).cycle()) {
            let at = begin % 40_000 + phase + 40_000;
            let running = events
                .iter()
                .rfind(|(begin, _)| *begin <= at)
                .map_or(0, |(begin, length)| (begin + length).saturating_sub(at));
            let whole: u64 = events
                .iter()
                .filter(|(begin, _)| (at + 1..at + length).contains(begin))
                .map(|(_, length)| length)
                .sum();
            let found = noise.delay(host, SimTime::from_picos(begin), SimDuration::from_picos(length));
            assert_eq!(found.as_picos(), running + whole, "{begin} {length}");
        }
    }
}
