//! The section `[noise]` of a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use goal::{NoiseError, NoiseTrace};
use netmodel::quantity::Seconds;
use pdes_core::SimDuration;
use replay::{HostNoise, RunSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{EventLengths, GeneratedNoise, RecordedNoise};

/// Noise of the operating systems of hosts, which makes computations longer: of a file, or generated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "noise.md"))]
pub struct NoiseSection {
    /// Trace of noise in LogGOPSim's format, which recurs.
    #[schemars(extend("x-value" = "the name of a file", "x-default" = "this or `kind`"))]
    pub file: Option<PathBuf>,
    /// Noise that is generated.
    #[schemars(extend("x-default" = "this or `file`"))]
    pub kind: Option<NoiseKind>,
    /// Time from the begin of an event to the next one, or its mean.
    #[schemars(extend("x-default" = "required with `kind`"))]
    pub period_s: Option<Seconds>,
    /// Length of an event; with `poisson` its mean, with `long-tail` the shortest.
    #[schemars(extend("x-default" = "required with `kind`"))]
    pub length_s: Option<Seconds>,
    /// Exponent of the lengths of `long-tail`.
    #[schemars(extend("exclusiveMinimum" = 0, "x-default" = "2"))]
    pub exponent: Option<f64>,
    /// Longest event of `long-tail`.
    #[schemars(extend("x-default" = "100 times `length_s`"))]
    pub longest_s: Option<Seconds>,
    /// All hosts have the same noise at the same time.
    #[schemars(extend("default" = false))]
    pub synchronised: bool,
    /// Seed of the random numbers; with `loggops` that of LogGOPSim's.
    #[schemars(extend("default" = 1))]
    pub seed: Option<u32>,
}

/// Distribution of the events of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// Events of one length at equal distances.
    Periodic,
    /// A Poisson process of events with exponential lengths.
    Poisson,
    /// A Poisson process of events whose lengths have a Pareto distribution.
    LongTail,
}

/// Error in the section `[noise]`.
#[derive(Debug, thiserror::Error)]
pub enum NoiseSectionError {
    /// The file cannot be read.
    #[error("the file {}: {source}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is no trace of noise.
    #[error("the file {}: {source}", path.display())]
    Trace {
        /// Its path.
        path: PathBuf,
        /// Cause.
        source: NoiseError,
    },
    /// There are both a file and a kind, or neither.
    #[error("expected one of file and kind")]
    Source,
    /// A key is missing or out of range.
    #[error("{key}: expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// Expected values.
        expected: &'static str,
    },
}

impl NoiseSection {
    /// Name of the section.
    pub const NAME: &str = "noise";

    /// Adds the noise to a run.
    ///
    /// # Errors
    /// If the file is no trace of noise, or a value is out of range.
    pub fn apply(&self, spec: &mut RunSpec) -> Result<(), NoiseSectionError> {
        spec.noise = Some(match self.trace()? {
            Some(trace) => Arc::new(RecordedNoise::new(&trace, self.seed().into(), self.synchronised)),
            None => Arc::new(self.generated()?) as Arc<dyn HostNoise>,
        });
        Ok(())
    }

    /// Returns the seed.
    pub fn seed(&self) -> u32 {
        self.seed.unwrap_or(1)
    }

    /// Reads the trace of noise, if the section names one.
    ///
    /// # Errors
    /// If the file is no trace of noise, or there is a kind beside it.
    pub fn trace(&self) -> Result<Option<NoiseTrace>, NoiseSectionError> {
        let Some(path) = &self.file else { return Ok(None) };
        if self.kind.is_some() {
            return Err(NoiseSectionError::Source);
        }
        let path = || path.clone();
        let text = std::fs::read_to_string(path())
            .map_err(|source| NoiseSectionError::Read { path: path(), source })?;
        let trace = NoiseTrace::read(&text);
        trace.map(Some).map_err(|source| NoiseSectionError::Trace { path: path(), source })
    }

    /// Returns the noise that the section describes without a file.
    ///
    /// # Errors
    /// If a value is missing or out of range.
    pub fn generated(&self) -> Result<GeneratedNoise, NoiseSectionError> {
        let kind = self.kind.ok_or(NoiseSectionError::Source)?;
        let time = |key: &'static str, found: Option<Seconds>| {
            let time = found.and_then(|Seconds(seconds)| SimDuration::try_from_secs_f64(seconds));
            let time = time.filter(|time| *time > SimDuration::ZERO);
            time.ok_or(NoiseSectionError::Value { key, expected: "a time above 0, such as \"10us\"" })
        };
        let (period, length) = (time("period_s", self.period_s)?, time("length_s", self.length_s)?);
        let is_long_tail = kind == NoiseKind::LongTail;
        let set = [("exponent", self.exponent.is_some()), ("longest_s", self.longest_s.is_some())];
        if let Some(&(key, _)) = set.iter().find(|(_, is_set)| *is_set && !is_long_tail) {
            return Err(NoiseSectionError::Value { key, expected: "kind = \"long-tail\" beside it" });
        }
        let lengths = match kind {
            NoiseKind::Periodic => EventLengths::Constant(length),
            NoiseKind::Poisson => EventLengths::Exponential(length),
            NoiseKind::LongTail => {
                let exponent = self.exponent.unwrap_or(2.0);
                if !(exponent.is_finite() && exponent > 0.0) {
                    return Err(NoiseSectionError::Value { key: "exponent", expected: "a number above 0" });
                }
                let longest = match self.longest_s {
                    None => length.checked_mul(100).unwrap_or(length),
                    longest => time("longest_s", longest)?,
                };
                EventLengths::Pareto { shortest: length, exponent, longest: longest.max(length) }
            }
        };
        Ok(GeneratedNoise {
            seed: self.seed().into(),
            period,
            is_random: kind != NoiseKind::Periodic,
            lengths,
            is_synchronised: self.synchronised,
        })
    }
}
