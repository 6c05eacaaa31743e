//! Histograms of messages and waits, for the report.

use mpi_model::Distributions;
use replay::{Outcome, Simulation};
use serde::{Deserialize, Serialize};

use super::column::Column;
use super::section::Section;

/// Histograms of messages and waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// Payload of received messages, including those of collectives \[B\].
    pub message_bytes: Histogram,
    /// Latency of these messages from send to arrival \[ps\].
    pub latency_ps: Histogram,
    /// Waiting time of calls that waited for another rank \[ps\].
    pub waiting_ps: Histogram,
}

/// A histogram of values with three significant decimal digits (HDR histogram).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of values.
    pub count: u64,
    /// Mean; all statistics are 0 if there are no values.
    pub mean: f64,
    /// Smallest value.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest value.
    pub max: u64,
    /// Values that occur, in ascending order.
    pub values: Column,
    /// Number of occurrences of each of these values.
    pub counts: Column,
}

impl From<&Distributions> for Histograms {
    fn from(found: &Distributions) -> Self {
        Self {
            message_bytes: (&found.bytes).into(),
            latency_ps: (&found.latency).into(),
            waiting_ps: (&found.waiting).into(),
        }
    }
}

/// Reports the lowest value of each HDR bucket.
impl From<&hdrhistogram::Histogram<u64>> for Histogram {
    fn from(histogram: &hdrhistogram::Histogram<u64>) -> Self {
        let lowest = |value| histogram.lowest_equivalent(value);
        let at = |quantile| lowest(histogram.value_at_quantile(quantile));
        Self {
            count: histogram.len(),
            mean: histogram.mean(),
            min: lowest(histogram.min()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: lowest(histogram.max()),
            values: Distributions::counts(histogram).map(|(value, _)| value).collect(),
            counts: Distributions::counts(histogram).map(|(_, count)| count).collect(),
        }
    }
}

impl Section for Histograms {
    fn new(_: &Simulation, outcome: &Outcome) -> Option<Self> {
        outcome.program().findings.distributions.as_ref().map(Self::from)
    }

    #[cfg(feature = "pictures")]
    fn figures(&self, _: &super::SavedReport) -> Vec<figures::Figure> {
        super::page::histograms::figures(self)
    }
}
