//! Tolerance of a run: how much slower the network could be.

use std::collections::BTreeMap;

use netmodel::NetworkParameters;
use serde::Serialize;

use super::{Diagnosis, DiagnosisError};
use crate::job::Job;

/// Parts of the run time by which it may grow.
const LIMITS: [f64; 3] = [0.01, 0.05, 0.1];
/// Change of a property of the network from which the derivative is taken.
const STEP: f64 = 0.01;
/// Largest factor that is tried.
const MAX_FACTOR: f64 = 1e6;
/// Ratio of the bounds between which a factor is found.
const PRECISION: f64 = 1.001;

/// Dependence of the run time on latencies and on times per byte.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tolerance {
    /// Latencies of all links are multiplied.
    pub latency: Sensitivity,
    /// Times per byte of all links are multiplied: bandwidths are divided.
    pub time_per_byte: Sensitivity,
}

/// Dependence of the run time `T` on a property `p` of the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// `p dT/dp` \[s\]: the part of the run time that is proportional to the property, from a change of 1 %.
    pub time_s: f64,
    /// Largest factors of the property.
    pub limits: Vec<ToleranceLimit>,
}

/// Largest factor of a property of the network with which a run takes little more time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ToleranceLimit {
    /// More time, as a part of the run time.
    pub more_time: f64,
    /// The factor, within 0.1 %; null if it is above a million.
    pub factor: Option<f64>,
}

impl Diagnosis {
    /// Finds how much slower the network could be, by about forty replays of the job.
    ///
    /// # Errors
    /// If a replay fails.
    pub fn find_tolerance(&mut self, job: &Job) -> Result<(), DiagnosisError> {
        let latency = |factor: f64, network: &mut NetworkParameters| {
            network.latency_factor = network.latency_factor.scaled(factor);
        };
        let time_per_byte = |factor: f64, network: &mut NetworkParameters| {
            network.bandwidth_factor = network.bandwidth_factor.scaled(1.0 / factor);
        };
        self.tolerance = Some(Tolerance {
            latency: self.sensitivity(job, latency)?,
            time_per_byte: self.sensitivity(job, time_per_byte)?,
        });
        Ok(())
    }

    fn sensitivity(
        &self,
        job: &Job,
        scale: impl Fn(f64, &mut NetworkParameters),
    ) -> Result<Sensitivity, DiagnosisError> {
        let replay = |factor: f64| -> Result<f64, DiagnosisError> {
            let mut job =
                Job { checkpoints: None, timeline: None, report: None, profile: None, ..job.clone() };
            scale(factor, &mut job.network);
            Ok(job.replay()?.simulated_time_s)
        };
        let time = self.simulated_time_s;
        // Times by factor, whose bits are in its order.
        let mut known =
            BTreeMap::from([(1f64.to_bits(), time), ((1.0 + STEP).to_bits(), replay(1.0 + STEP)?)]);
        let time_s = (known[&(1.0 + STEP).to_bits()] - time) / STEP;
        let mut limits = Vec::new();
        for more_time in LIMITS {
            let limit = time * (1.0 + more_time);
            let factor = loop {
                let exceeds = known.iter().find(|(_, time)| **time > limit).map(|(&bits, _)| bits);
                let below = known.range(..exceeds.unwrap_or(u64::MAX)).next_back();
                let low = below.map_or(1.0, |(&bits, _)| f64::from_bits(bits));
                let next = match exceeds.map(f64::from_bits) {
                    Some(high) if high / low < PRECISION => break Some(low),
                    Some(high) => (low * high).sqrt(),
                    None if low >= MAX_FACTOR => break None,
                    None => 2.0 * low,
                };
                known.insert(next.to_bits(), replay(next)?);
            };
            limits.push(ToleranceLimit { more_time, factor });
        }
        Ok(Sensitivity { time_s, limits })
    }
}
