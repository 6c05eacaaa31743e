//! Limits of parameters, within which a run takes little more time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::curve::{CurvePoint, reaches};

/// Parts of the run time by which it may grow.
const MORE_TIME: [f64; 3] = [0.01, 0.05, 0.1];
/// Ratio of the bounds between which a factor is found.
const PRECISION: f64 = 1.001;
/// Factor by which a bound grows while the limit is not reached.
const GROWTH: f64 = 32.0;

/// Largest factor of a parameter with which a run takes little more time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// More time, as a part of the run time.
    pub more_time: f64,
    /// The factor, exact if the curve is, else within 0.1 %; null if it is beyond the range.
    pub factor: Option<f64>,
}

impl Limit {
    /// Returns the limits of a run that takes `time_s` \[s\] with a factor of 1, on an exact curve.
    pub(crate) fn on_curve(time_s: f64, curve: &[CurvePoint]) -> Vec<Self> {
        let limit = |more_time: f64| Self { more_time, factor: reaches(curve, time_s * (1.0 + more_time)) };
        MORE_TIME.map(limit).to_vec()
    }

    /// Finds the limits of a run up to a factor, by about ten replays. `known` has run times \[s\] by factor, that of 1 among them; `replay`
    /// returns others.
    ///
    /// # Errors
    /// The first error of a replay.
    pub fn search<E>(
        known: impl IntoIterator<Item = (f64, f64)>,
        most: f64,
        mut replay: impl FnMut(f64) -> Result<f64, E>,
    ) -> Result<Vec<Self>, E> {
        let mut times = KnownTimes(BTreeMap::new());
        known.into_iter().for_each(|(factor, time)| times.insert(factor, time));
        let time = times.0[&1.0_f64.to_bits()];
        let limit = |more_time: f64| {
            let factor = times.largest_factor(time * (1.0 + more_time), most, &mut replay)?;
            Ok(Self { more_time, factor })
        };
        MORE_TIME.into_iter().map(limit).collect()
    }
}

/// Run times by factor, whose bits are in its order.
struct KnownTimes(BTreeMap<u64, f64>);

impl KnownTimes {
    fn insert(&mut self, factor: f64, time: f64) {
        self.0.insert(factor.to_bits(), time);
    }

    /// Finds the largest factor with which the time is within a limit, which the time with factor 1 is; `None` if it is above `most`. The
    /// time is nearly a line between two factors that are near each other, so a few replays are enough.
    fn largest_factor<E>(
        &mut self,
        limit: f64,
        most: f64,
        mut replay: impl FnMut(f64) -> Result<f64, E>,
    ) -> Result<Option<f64>, E> {
        // Shrinks the interval from the side on which the line has not hit, then in the middle.
        let mut number = 0;
        loop {
            let exceeds = self.0.iter().find(|(_, time)| **time > limit).map(|(&bits, &time)| (bits, time));
            let end = exceeds.map_or(u64::MAX, |(bits, _)| bits);
            let mut below = self.0.range(..end).rev().map(|(&bits, &time)| (f64::from_bits(bits), time));
            let (low, low_time) = below.next().expect("the time with factor 1 is within the limit");
            let Some((high, high_time)) = exceeds.map(|(bits, time)| (f64::from_bits(bits), time)) else {
                if low >= most {
                    return Ok(None);
                }
                let slope = below.next().map_or(0.0, |(lower, time)| (low_time - time) / (low - lower));
                let reached = low + 1.01 * (limit - low_time) / slope;
                let next =
                    if slope > 0.0 { reached.clamp(low * PRECISION, low * GROWTH) } else { low * GROWTH };
                let next = next.min(most);
                self.insert(next, replay(next)?);
                continue;
            };
            if high / low < PRECISION {
                return Ok(Some(low));
            }
            let on_line = low + (limit - low_time) / (high_time - low_time) * (high - low);
            let next = match number % 3 {
                0 => on_line,
                1 if on_line - low < high - on_line => low * (1.0 + 0.9 * (PRECISION - 1.0)),
                1 => high / (1.0 + 0.9 * (PRECISION - 1.0)),
                _ => (low * high).sqrt(),
            };
            // A step that is lost in rounding would go on forever.
            let next = if next > low && next < high { next } else { (low * high).sqrt() };
            self.insert(next, replay(next)?);
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Searches where the time is a function of the factor; returns the factor and the number of replays.
    fn search(time: impl Fn(f64) -> f64, limit: f64) -> (Option<f64>, usize) {
        let (mut known, mut replays) = (KnownTimes(BTreeMap::new()), 0);
        known.insert(1.0, time(1.0));
        known.insert(1.01, time(1.01));
        let found = known.largest_factor::<Infallible>(limit, 1e6, |factor| {
            replays += 1;
            Ok(time(factor))
        });
        (found.unwrap(), replays)
    }

    #[test]
    fn a_factor_is_found_within_its_precision() {
        let close = |found: Option<f64>, expected: f64| {
            let ratio = found.unwrap() / expected;
            assert!(ratio <= 1.0 && ratio > 1.0 / PRECISION, "{found:?}, expected {expected}");
        };
        let (factor, replays) = search(|factor| 10.0 + factor, 12.0);
        close(factor, 2.0);
        assert!(replays < 6, "{replays}");
        // Hidden behind computation up to a factor of 40, then steep.
        let (factor, replays) = search(|factor| 10.0 + (factor - 40.0).max(0.0), 11.0);
        close(factor, 41.0);
        assert!(replays < 25, "{replays}");
        // A step.
        close(search(|factor| if factor > 7.0 { 20.0 } else { 10.0 }, 11.0).0, 7.0);
        assert_eq!(search(|_| 10.0, 11.0).0, None);
    }
}
