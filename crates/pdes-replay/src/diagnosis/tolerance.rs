//! Tolerance of a run: how much slower the network could be.

use answers::{Limit, LinkGroup, Parameter};
use netmodel::{LinkClass, Platform};
use pdes_core::Progress;
use replay::{RunError, RunSpec, Simulation};
use serde::{Deserialize, Serialize};

use super::{Diagnosis, DiagnosisError};

/// Change of a property of the network from which the derivative is taken.
const STEP: f64 = 0.01;
/// Largest factor that is tried.
const MAX_FACTOR: f64 = 1e6;

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
        let time = replay(1.0 + STEP)?;
        let time_s = (time - self.time) / STEP;
        let limits = Limit::search([(1.0, self.time), (1.0 + STEP, time)], MAX_FACTOR, replay)?;
        let limit = |Limit { more_time, factor }| ToleranceLimit {
            more_time,
            factor,
            value: value.and_then(|value| Some(value * factor?)),
        };
        let limits = limits.into_iter().map(limit).collect();
        // Links without latency stay so with any factor.
        let derivative = value.filter(|value| *value > 0.0).map(|value| time_s / value);
        Ok(Sensitivity { value, time_s, derivative, limits })
    }
}
