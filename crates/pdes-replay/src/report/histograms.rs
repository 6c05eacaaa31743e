//! How messages and waits were distributed, as the report tells it.

use mpi_model::Distributions;
use serde::{Deserialize, Serialize};

use super::column::Column;

/// How messages and waits were distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// The payload of messages that were received, those of collectives included \[B\].
    pub message_bytes: Histogram,
    /// The time of these from the send to the arrival \[ps\].
    pub latency_ps: Histogram,
    /// The time that a blocked call waited for another rank, where it did \[ps\].
    pub waiting_ps: Histogram,
}

/// A distribution of values that are known to three decimal digits: an HDR histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// How many values there are.
    pub count: u64,
    /// Their mean; 0 where there are none, and so on.
    pub mean: f64,
    /// The smallest one.
    pub min: u64,
    /// Half of all are not above this one.
    pub p50: u64,
    /// Nine in ten are not.
    pub p90: u64,
    /// 99 in 100 are not.
    pub p99: u64,
    /// 999 in 1000 are not.
    pub p999: u64,
    /// The largest one.
    pub max: u64,
    /// The values that occur, in their order.
    pub values: Column,
    /// How often each of them does.
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

/// All values are the lowest ones that count as the same.
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
