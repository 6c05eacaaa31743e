//! Histograms of messages and waits, shared by all ranks of a process.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::{Histogram, RecordError};
use serde::{Deserialize, Serialize};

/// Number of significant decimal digits of a value.
const DIGITS: u8 = 3;

/// Quantity that is counted in a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Payload of a received message \[B\].
    Bytes,
    /// Time from the send of a message to its arrival \[ps\].
    Latency,
    /// Time that a blocked call waits for another rank \[ps\], where it is not zero.
    Waiting,
}

impl Quantity {
    pub(crate) const ALL: [Self; 3] = [Self::Bytes, Self::Latency, Self::Waiting];
}

/// Histograms of messages and waits, to three decimal digits.
///
/// Counts are sums, so that the result does not depend on the order of counting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Counts", try_from = "Counts")]
pub struct Distributions {
    /// Payload of received messages \[B\].
    pub bytes: Histogram<u64>,
    /// Time from the send of a message to its arrival \[ps\].
    pub latency: Histogram<u64>,
    /// Time that a blocked call waited for another rank \[ps\], where it was not zero.
    pub waiting: Histogram<u64>,
}

/// Distinct values in each histogram, and their counts.
type Counts = [Vec<(u64, u64)>; 3];

impl Default for Distributions {
    fn default() -> Self {
        let empty = || Histogram::new(DIGITS).expect("a histogram may keep three digits");
        Self { bytes: empty(), latency: empty(), waiting: empty() }
    }
}

impl Distributions {
    fn histogram_mut(&mut self, quantity: Quantity) -> &mut Histogram<u64> {
        match quantity {
            Quantity::Bytes => &mut self.bytes,
            Quantity::Latency => &mut self.latency,
            Quantity::Waiting => &mut self.waiting,
        }
    }

    fn histograms(&self) -> [&Histogram<u64>; 3] {
        [&self.bytes, &self.latency, &self.waiting]
    }

    /// Adds the counts of another process.
    pub fn add(&mut self, other: &Self) {
        for (quantity, more) in Quantity::ALL.into_iter().zip(other.histograms()) {
            self.histogram_mut(quantity).add(more).expect("histograms resize automatically");
        }
    }

    /// Returns the counts after `times` more repetitions of their growth since earlier ones; `None` where one overflows.
    pub(crate) fn repeated(&self, before: &Self, times: u64) -> Option<Self> {
        let mut sum = self.clone();
        for ((quantity, now), before) in
            Quantity::ALL.into_iter().zip(self.histograms()).zip(before.histograms())
        {
            // A histogram tells of a value that it cannot hold the count of the last one that it can.
            let earlier = |value| if value <= before.max() { before.count_at(value) } else { 0 };
            for (value, count) in Self::counts(now) {
                let more = count.checked_sub(earlier(value))?.checked_mul(times)?;
                sum.histogram_mut(quantity).record_n(value, more).ok()?;
            }
        }
        Some(sum)
    }

    /// Returns the distinct values in a histogram, each as the lowest of its equivalents, and their counts.
    pub fn counts(histogram: &Histogram<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
        let lowest = |value| histogram.lowest_equivalent(value);
        histogram
            .iter_recorded()
            .map(move |found| (lowest(found.value_iterated_to()), found.count_at_value()))
    }
}

/// Encodes the distinct values of each histogram, with their counts.
impl From<Distributions> for Counts {
    fn from(distributions: Distributions) -> Self {
        distributions.histograms().map(|histogram| Distributions::counts(histogram).collect())
    }
}

impl TryFrom<Counts> for Distributions {
    type Error = RecordError;

    fn try_from(counts: Counts) -> Result<Self, RecordError> {
        let mut distributions = Self::default();
        for (quantity, counts) in Quantity::ALL.into_iter().zip(counts) {
            let histogram = distributions.histogram_mut(quantity);
            counts.into_iter().try_for_each(|(value, count)| histogram.record_n(value, count))?;
        }
        Ok(distributions)
    }
}

/// Histograms of all ranks of a process.
#[derive(Debug, Default)]
pub(crate) struct SharedHistograms(Mutex<Distributions>);

impl SharedHistograms {
    /// Returns a copy of the counts so far.
    pub(crate) fn distributions(&self) -> Distributions {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the counts so far.
    pub(crate) fn replace(&self, distributions: Distributions) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = distributions;
    }

    pub(crate) fn record_all(&self, quantity: Quantity, values: &mut Vec<u64>) {
        let mut distributions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = distributions.histogram_mut(quantity);
        // Neighbouring values are often equal, such as the sizes of messages.
        for run in values.chunk_by(|one, other| one == other) {
            histogram.record_n(run[0], run.len() as u64).expect("histograms resize automatically");
        }
        values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(values: impl Iterator<Item = u64>) -> Distributions {
        let pool = SharedHistograms::default();
        pool.record_all(Quantity::Latency, &mut values.collect());
        pool.record_all(Quantity::Bytes, &mut vec![(1 << 62) + 77]);
        pool.distributions()
    }

    #[test]
    fn all_values_are_counted_in_any_order() {
        let found = pool(0..1000);
        assert_eq!((found.latency.len(), found.bytes.len(), found.waiting.len()), (1000, 1, 0));
        assert_eq!(found, pool((0..1000).rev()));
        assert_eq!(
            Distributions::counts(&found.latency).take(3).collect::<Vec<_>>(),
            [(0, 1), (1, 1), (2, 1)]
        );
        let mut sum = pool(0..300);
        let mut rest = pool(300..1000);
        rest.bytes.reset();
        sum.add(&rest);
        assert_eq!(sum, found);
    }

    #[test]
    fn values_beyond_those_before_are_repeated() {
        let [before, now] = [vec![2047], vec![2047, 100_000]].map(|values| pool(values.into_iter()));
        let repeated = now.repeated(&before, 3).unwrap();
        assert_eq!([2047, 100_000].map(|value| repeated.latency.count_at(value)), [1, 4]);
    }

    #[test]
    fn distributions_survive_a_round_trip() {
        crate::round_trip::assert_round_trip(&pool((0..2000).map(|value| value * value * value)));
    }
}
