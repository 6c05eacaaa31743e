//! Tolerance of a run: how much slower the network could be.

use std::collections::BTreeMap;

use answers::{LinkGroup, Parameter};
use netmodel::{LinkClass, Platform};
use pdes_core::Progress;
use replay::{RunError, RunSpec, Simulation};
use serde::{Deserialize, Serialize};

use super::{Diagnosis, DiagnosisError};

/// Parts of the run time by which it may grow.
const LIMITS: [f64; 3] = [0.01, 0.05, 0.1];
/// Change of a property of the network from which the derivative is taken.
const STEP: f64 = 0.01;
/// Largest factor that is tried.
const MAX_FACTOR: f64 = 1e6;
/// Ratio of the bounds between which a factor is found.
const PRECISION: f64 = 1.001;
/// Factor by which a bound grows while the limit is not reached.
const GROWTH: f64 = 32.0;

/// Dependence of the run time on latencies and on times per byte, which is the reciprocal of the bandwidth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// Latencies of all links are multiplied.
    pub latency: Sensitivity,
    /// Times per byte of all links are multiplied.
    pub time_per_byte: Sensitivity,
    /// The same of the links of a class each, where there are several.
    pub classes: Vec<ClassTolerance>,
}

/// Tolerance of slower links of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassTolerance {
    /// The class.
    pub class: LinkClass,
    /// Number of its links.
    pub links: usize,
    /// Their latencies are multiplied.
    pub latency: Sensitivity,
    /// Their times per byte are multiplied.
    pub time_per_byte: Sensitivity,
}

/// Dependence of the run time `T` on a property `p` of links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// The property \[s\] or \[s/B\]; null unless all links have the same.
    pub value: Option<f64>,
    /// `p dT/dp` \[s\]: the part of the run time that is proportional to the property, from a change of 1 %.
    pub time_s: f64,
    /// `dT/dp`: the number of latencies, or of bytes \[B\], for which the end of the run waits; null unless all links have the same `p`.
    pub derivative: Option<f64>,
    /// Largest factors of the property.
    pub limits: Vec<ToleranceLimit>,
}

/// Largest factor of a property of links with which a run takes little more time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToleranceLimit {
    /// More time, as a part of the run time.
    pub more_time: f64,
    /// The factor, within 0.1 %; null if it is above a million.
    pub factor: Option<f64>,
    /// The property with this factor \[s\] or \[s/B\]; null unless all links have the same.
    pub value: Option<f64>,
}

impl Diagnosis {
    /// Finds how much slower the network could be, by about ten replays of the run for each property, and as many for each property of
    /// each class of links.
    ///
    /// # Errors
    /// If a replay fails.
    pub fn find_tolerance(&mut self, spec: &RunSpec) -> Result<(), DiagnosisError> {
        let spec = spec.without_outputs();
        let platform = spec.platform().map_err(RunError::from)?;
        let run = Run { spec: &spec, platform: &platform, time: self.simulated_time_s };
        let of_class = |class| Some((class, LinkGroup::of_class(&platform, class)?));
        let present: Vec<(LinkClass, LinkGroup)> = LinkClass::ALL.into_iter().filter_map(of_class).collect();
        let mut tolerances = Vec::new();
        for (class, links) in present.iter().filter(|_| present.len() > 1) {
            let [latency, time_per_byte] = run.sensitivities(links)?;
            let links = links.of(&platform).count();
            tolerances.push(ClassTolerance { class: *class, links, latency, time_per_byte });
        }
        let [latency, time_per_byte] = run.sensitivities(&LinkGroup::all())?;
        self.tolerance = Some(Tolerance { latency, time_per_byte, classes: tolerances });
        Ok(())
    }
}

impl Tolerance {
    /// Returns the rows of a table: a name and the dependence.
    pub(super) fn rows(&self) -> Vec<(String, &Sensitivity)> {
        let mut rows =
            vec![("latency".to_owned(), &self.latency), ("time per byte".to_owned(), &self.time_per_byte)];
        for of in &self.classes {
            rows.push((format!("  latency {}", of.class.name()), &of.latency));
            rows.push((format!("  time per byte {}", of.class.name()), &of.time_per_byte));
        }
        rows
    }
}

impl ToleranceLimit {
    /// Returns the factor for a table.
    pub(super) fn shown(&self) -> String {
        self.factor.map_or("any".to_owned(), |factor| {
            if factor < 1e4 { format!("{factor:.3}") } else { format!("{factor:.3e}") }
        })
    }
}

/// A run that is replayed with slower links.
struct Run<'a> {
    spec: &'a RunSpec,
    platform: &'a Platform,
    /// Run time without a change \[s\].
    time: f64,
}

impl Run<'_> {
    fn sensitivities(&self, links: &LinkGroup) -> Result<[Sensitivity; 2], DiagnosisError> {
        Ok([
            self.sensitivity(&Parameter::Latency(links.clone()))?,
            self.sensitivity(&Parameter::TimePerByte(links.clone()))?,
        ])
    }

    fn sensitivity(&self, parameter: &Parameter) -> Result<Sensitivity, DiagnosisError> {
        let value = parameter.value(self.platform);
        let replay = |factor| -> Result<f64, DiagnosisError> {
            let simulation = Simulation::load(&*parameter.scaled(self.spec, factor)?)?;
            let outcome = simulation.replay(&Progress::new(self.spec.threads))?;
            Ok(outcome.simulated_time().as_secs_f64())
        };
        let mut known = KnownTimes(BTreeMap::new());
        known.insert(1.0, self.time);
        known.insert(1.0 + STEP, replay(1.0 + STEP)?);
        let time_s = (known.0[&(1.0 + STEP).to_bits()] - self.time) / STEP;
        let mut limits = Vec::new();
        for more_time in LIMITS {
            let factor = known.largest_factor(self.time * (1.0 + more_time), replay)?;
            limits.push(ToleranceLimit {
                more_time,
                factor,
                value: value.and_then(|value| Some(value * factor?)),
            });
        }
        // Links without latency stay so with any factor.
        let derivative = value.filter(|value| *value > 0.0).map(|value| time_s / value);
        Ok(Sensitivity { value, time_s, derivative, limits })
    }
}

/// Run times by factor, whose bits are in its order.
struct KnownTimes(BTreeMap<u64, f64>);

impl KnownTimes {
    fn insert(&mut self, factor: f64, time: f64) {
        self.0.insert(factor.to_bits(), time);
    }

    /// Finds the largest factor with which the time is within a limit, which the time with factor 1 is; `None` if it is above
    /// [`MAX_FACTOR`]. The time is nearly a line between two factors that are near each other, so a few replays are enough.
    fn largest_factor<E>(
        &mut self,
        limit: f64,
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
                if low >= MAX_FACTOR {
                    return Ok(None);
                }
                let slope = below.next().map_or(0.0, |(lower, time)| (low_time - time) / (low - lower));
                let reached = low + 1.01 * (limit - low_time) / slope;
                let next =
                    if slope > 0.0 { reached.clamp(low * PRECISION, low * GROWTH) } else { low * GROWTH };
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
        known.insert(1.0 + STEP, time(1.0 + STEP));
        let found = known.largest_factor::<Infallible>(limit, |factor| {
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
