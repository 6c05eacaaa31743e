//! Noise by a distribution.

use std::ops::Range;

use netmodel::HostId;
use pdes_core::{SimDuration, SimTime};
use replay::{ComputationNoise, HostNoise};

use super::{PHASE, random};

/// Number of periods after a computation in which the next event is looked for.
const CELLS_AHEAD: i64 = 8;

/// Noise that is generated while a run asks for it.
///
/// Periodic events of one length cost the same for a computation of any length, others its length over the period.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedNoise {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Time from the begin of one event to that of the next, or its mean; not zero.
    pub period: SimDuration,
    /// The events are those of a Poisson process; otherwise they are periodic.
    pub is_random: bool,
    /// Lengths of events.
    pub lengths: EventLengths,
    /// All hosts have the same noise at the same time; otherwise each has its own.
    pub is_synchronised: bool,
}

/// Lengths of the events of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventLengths {
    /// All are equal.
    Constant(SimDuration),
    /// They are distributed exponentially, with this mean.
    Exponential(SimDuration),
    /// They have a Pareto distribution, cut at the longest.
    Pareto {
        /// The shortest length.
        shortest: SimDuration,
        /// The exponent, above 0: the probability of more than `k` times the shortest length is `k` to its negative.
        exponent: f64,
        /// The longest length.
        longest: SimDuration,
    },
}

impl EventLengths {
    /// Draws a length \[ps\].
    fn draw(self, random: &mut fastrand::Rng) -> u64 {
        // In (0, 1].
        let mut uniform = || 1.0 - random.f64();
        match self {
            Self::Constant(length) => length.as_picos(),
            Self::Exponential(mean) => (-uniform().ln() * mean.as_picos() as f64) as u64,
            Self::Pareto { shortest, exponent, longest } => {
                let length = shortest.as_picos() as f64 * uniform().powf(-exponent.recip());
                (length as u64).min(longest.as_picos())
            }
        }
    }
}

impl GeneratedNoise {
    /// Adds the events that begin in a cell of time, of the length of a period, in their order: begins and lengths \[ps\].
    fn add_events(&self, events: &mut Vec<(i128, u64)>, host: Option<HostId>, cell: i64, phase: i128) {
        let mut random = random(self.seed, host, cell);
        let period = self.period.as_picos();
        let begin = i128::from(cell) * i128::from(period) + phase;
        if !self.is_random {
            events.push((begin, self.lengths.draw(&mut random)));
            return;
        }
        // As many as a Poisson distribution of mean 1 has (Knuth).
        let (mut count, mut product) = (0, random.f64());
        while product > (-1.0_f64).exp() {
            (count, product) = (count + 1, product * random.f64());
        }
        let first = events.len();
        let event = |_| (begin + i128::from(random.u64(..period)), self.lengths.draw(&mut random));
        events.extend((0..count).map(event));
        events[first..].sort_unstable();
    }

    /// Returns the noise of periodic events of one length in an interval \[ps\], and when there is none after it.
    fn of_equal_events(&self, length: u64, (begin, end): (i128, i128), phase: i128) -> (u64, [i128; 2]) {
        let period = i128::from(self.period.as_picos());
        let last = (begin - phase).div_euclid(period);
        let running = (last * period + phase + i128::from(length) - begin).max(0);
        let last_begin = (end - 1 - phase).div_euclid(period);
        let whole = last_begin - last;
        let quiet = [last_begin * period + phase + i128::from(length), (last_begin + 1) * period + phase];
        (running as u64 + (whole as u64).saturating_mul(length), quiet)
    }

    /// Returns the noise of events in an interval \[ps\], and when there is none after it; none of them has begun, or runs, before
    /// `quiet_until`, if that is known.
    fn of_events(
        &self,
        host: Option<HostId>,
        (begin, end): (i128, i128),
        quiet_until: Option<i128>,
        phase: i128,
    ) -> (u64, [i128; 2]) {
        let period = i128::from(self.period.as_picos());
        let cell = |at: i128| (at - phase).div_euclid(period) as i64;
        let from = quiet_until.map_or(begin, |until| until.min(end - 1));
        let (mut first, mut next) = (cell(from), cell(end - 1) + 1);
        let mut events = Vec::with_capacity(8);
        (first..next).for_each(|cell| self.add_events(&mut events, host, cell, phase));
        match quiet_until {
            Some(_) => events.retain(|&(at, _)| at >= from),
            // The last event that has begun, however long ago.
            None => {
                while events.first().is_none_or(|&(at, _)| at > begin) {
                    first -= 1;
                    let later = events.len();
                    self.add_events(&mut events, host, first, phase);
                    events.rotate_left(later);
                }
            }
        }
        // The next event, if it comes soon.
        while next < cell(end - 1) + CELLS_AHEAD && events.last().is_none_or(|&(at, _)| at < end) {
            self.add_events(&mut events, host, next, phase);
            next += 1;
        }
        let (mut running, mut whole) = (0, 0_u64);
        let mut quiet = [begin, i128::from(next) * period + phase];
        for (at, length) in events {
            if at >= end {
                quiet[1] = at;
                break;
            }
            quiet[0] = at + i128::from(length);
            if at <= begin {
                running = (at + i128::from(length) - begin).max(0) as u64;
            } else {
                whole = whole.saturating_add(length);
            }
        }
        (whole.saturating_add(running), quiet)
    }
}

impl HostNoise for GeneratedNoise {
    fn in_computation(
        &self,
        host: HostId,
        begin: SimTime,
        length: SimDuration,
        known: &Range<SimTime>,
    ) -> ComputationNoise {
        let host = (!self.is_synchronised).then_some(host);
        let phase = match self.is_random {
            true => 0,
            false => i128::from(random(self.seed, host, PHASE).u64(..self.period.as_picos())),
        };
        let is_known = !known.is_empty() && known.start <= begin && begin <= known.end;
        let quiet_until = is_known.then(|| i128::from(known.end.as_picos()));
        let begin = i128::from(begin.as_picos());
        let interval = (begin, begin + i128::from(length.as_picos()));
        let (delay, quiet) = match self.lengths {
            EventLengths::Constant(length) if !self.is_random => {
                self.of_equal_events(length.as_picos(), interval, phase)
            }
            _ => self.of_events(host, interval, quiet_until, phase),
        };
        let [from, until] = quiet.map(|at| SimTime::from_picos(u64::try_from(at.max(0)).unwrap_or(u64::MAX)));
        ComputationNoise { delay: SimDuration::from_picos(delay), quiet: from..until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANOSECOND: u64 = 1000;
    const UNKNOWN: Range<SimTime> = SimTime::ZERO..SimTime::ZERO;

    fn nanos(nanos: u64) -> SimDuration {
        SimDuration::from_picos(nanos * NANOSECOND)
    }

    fn noise(is_random: bool, period: u64, lengths: EventLengths) -> GeneratedNoise {
        GeneratedNoise { seed: 7, period: nanos(period), is_random, lengths, is_synchronised: false }
    }

    /// Returns the noise in a computation on each of some hosts \[ns\].
    fn delays(noise: &GeneratedNoise, hosts: u32, begin: u64, length: u64) -> impl Iterator<Item = f64> {
        let begin = SimTime::from_picos(begin * NANOSECOND);
        (0..hosts).map(move |host| {
            noise.delay(HostId::new(host), begin, nanos(length)).as_picos() as f64 / NANOSECOND as f64
        })
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    }

    /// Checks a mean of independent values of this standard deviation at five times its error.
    fn assert_mean(found: f64, expected: f64, deviation: f64, count: u32) {
        let error = deviation / f64::from(count).sqrt();
        assert!(
            (found - expected).abs() < 5.0 * error,
            "{found}, expected {expected} with an error of {error}"
        );
    }

    /// d (w + d / 2) / T: whole events that begin in an operation, and the rest of one that is running.
    #[test]
    fn the_mean_of_periodic_noise_is_the_closed_form() {
        let hosts = 20_000;
        for (period, event, length, expected, deviation) in [
            (10_000, 250, 7_000, 178.125, 120.0),
            (10_000, 250, 20_000, 503.125, 40.0),
            (100_000, 30_000, 20_000, 10_500.0, 13_000.0),
        ] {
            let noise = noise(false, period, EventLengths::Constant(nanos(event)));
            assert_mean(mean(delays(&noise, hosts, 12_345_678, length)), expected, deviation, hosts);
        }
    }

    /// The maximum over P ranks of the noise in k whole periods: k d + d - T / (P + 1) (1 - (1 - d / T)^(P + 1)).
    #[test]
    fn a_barrier_waits_for_the_largest_noise() {
        for (period, event, periods, ranks, expected) in
            [(10_000, 250, 2, 16, 544.263_038), (100_000, 30_000, 1, 8, 49_337.262_3)]
        {
            let noise = noise(false, period, EventLengths::Constant(nanos(event)));
            let (trials, length) = (4_000, periods * period);
            let largest = |trial: u64| {
                let noise = GeneratedNoise { seed: trial, ..noise.clone() };
                delays(&noise, ranks, 1_000_000, length).fold(0.0, f64::max)
            };
            let deviation = event as f64 / 2.0;
            assert_mean(mean((0..trials).map(largest)), expected, deviation, trials as u32);
        }
    }

    /// Some rank of P is inside an event with the probability 1 - (1 - f)^P, where f is its share of the time.
    #[test]
    fn hits_have_the_probability_of_independent_phases() {
        let noise = noise(false, 10_000, EventLengths::Constant(nanos(250)));
        let trials = 4_000;
        let is_hit = |trial: u64| {
            let noise = GeneratedNoise { seed: trial, ..noise.clone() };
            // Of a picosecond: nothing begins in it.
            let at = SimTime::from_picos(5_000_000_000);
            let picosecond = SimDuration::from_picos(1);
            let delay = |host| noise.delay(HostId::new(host), at, picosecond);
            f64::from((0..16).any(|host| delay(host) > SimDuration::ZERO))
        };
        assert_mean(mean((0..trials).map(is_hit)), 0.333_079_832, 0.5, trials as u32);
    }

    /// The longest of P exponential times of mean m is m H_P: one event, which begins in each computation.
    #[test]
    fn the_longest_exponential_event_is_that_of_the_harmonic_number() {
        let noise = noise(false, 1_000_000, EventLengths::Exponential(nanos(1_000)));
        let trials = 4_000;
        let longest = |trial: u64| {
            let noise = GeneratedNoise { seed: trial, ..noise.clone() };
            delays(&noise, 16, 40_000_000, 1_000_000).fold(0.0, f64::max)
        };
        // A thousandth of the events is still running: a mean of 1 ns for each rank.
        assert_mean(mean((0..trials).map(longest)), 3_380.728_993, 1_260.0, trials as u32);
    }

    /// Events of a Poisson process take their share of the time, and only the last of several is running.
    #[test]
    fn random_noise_takes_its_share_of_the_time() {
        let hosts = 4_000;
        for (lengths, event) in [
            (EventLengths::Exponential(nanos(500)), 500.0),
            // The mean of a Pareto distribution of exponent 2 that is cut at L times the shortest is 2 - 1 / L times that.
            (EventLengths::Pareto { shortest: nanos(200), exponent: 2.0, longest: nanos(20_000) }, 398.0),
        ] {
            let noise = noise(true, 20_000, lengths);
            let found = mean(delays(&noise, hosts, 3_000_000, 2_000_000));
            assert_mean(found, 100.0 * event, 10.0 * event * 3.0, hosts);
        }
    }

    /// Computations in the time that is said to be quiet have no noise, those that end a picosecond after it may; ranks that remember
    /// that time get the same noise.
    #[test]
    fn quiet_times_have_no_noise() {
        let equal = EventLengths::Constant(nanos(2_500));
        let other = EventLengths::Exponential(nanos(2_500));
        let (mut empty, mut reached) = (0, 0);
        for noise in [noise(true, 20_000, other), noise(false, 20_000, equal), noise(false, 20_000, other)] {
            for (begin, length) in (0..4_000_000).step_by(7_919).zip((1..90_000).step_by(457).cycle()) {
                let host = HostId::new(begin % 5);
                let [begin, length] = [u64::from(begin), length].map(|nanos| nanos * NANOSECOND);
                let length = SimDuration::from_picos(length);
                let ComputationNoise { quiet, .. } =
                    noise.in_computation(host, SimTime::from_picos(begin), length, &UNKNOWN);
                let Some(time) =
                    quiet.end.checked_since(quiet.start).filter(|time| *time > SimDuration::ZERO)
                else {
                    empty += 1;
                    continue;
                };
                let longer = time.checked_add(SimDuration::from_picos(1)).unwrap();
                for (part, is_quiet) in [(time, true), (SimDuration::from_picos(1), true), (longer, false)] {
                    let delay = noise.delay(host, quiet.start, part);
                    assert!(!is_quiet || delay == SimDuration::ZERO, "{quiet:?} {part}");
                    reached += u32::from(!is_quiet && delay > SimDuration::ZERO);
                }
                for at in [quiet.start, quiet.start + SimDuration::from_picos(time.as_picos() / 2), quiet.end]
                {
                    let remembered = noise.in_computation(host, at, length + time, &quiet);
                    let asked = noise.in_computation(host, at, length + time, &UNKNOWN);
                    assert_eq!(
                        (remembered.delay, remembered.quiet.end),
                        (asked.delay, asked.quiet.end),
                        "{quiet:?} {at}"
                    );
                }
            }
        }
        assert!(empty < 300 && reached > 1_000, "{empty} are empty, {reached} end with an event");
    }

    #[test]
    fn noise_is_a_function_of_host_and_time() {
        let own = noise(true, 20_000, EventLengths::Exponential(nanos(500)));
        let common = GeneratedNoise { is_synchronised: true, ..own.clone() };
        let all = |noise: &GeneratedNoise| delays(noise, 8, 777, 300_000).collect::<Vec<_>>();
        assert_eq!(all(&own), all(&own));
        assert!(all(&own).windows(2).any(|pair| pair[0] != pair[1]));
        assert!(all(&common).windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(own.delay(HostId::new(0), SimTime::ZERO, SimDuration::ZERO), SimDuration::ZERO);
    }
}
