//! Sums over bins of time, in bounded memory.

use serde::{Deserialize, Serialize};

/// Maximum number of bins. When they do not reach an instant, bins are merged in pairs.
pub(crate) const MAX_BINS: usize = 128;

/// Returns the least binary logarithm of the bin length [ps] with which [`MAX_BINS`] bins reach an instant.
pub(crate) fn scale_of(now: u64) -> u32 {
    (0..u64::BITS).find(|&scale| now >> scale < MAX_BINS as u64).unwrap_or(u64::BITS - 1)
}

/// Sums over bins of `2^scale` picoseconds, from time zero. Takes a kilobyte once anything is added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EncodedBins")]
pub(crate) struct Bins {
    scale: u32,
    sums: Vec<f64>,
}

/// Bins that were not checked.
#[derive(Deserialize)]
struct EncodedBins {
    scale: u32,
    sums: Vec<f64>,
}

impl TryFrom<EncodedBins> for Bins {
    type Error = &'static str;

    fn try_from(EncodedBins { scale, sums }: EncodedBins) -> Result<Self, Self::Error> {
        let is_valid = scale < u64::BITS && matches!(sums.len(), 0 | MAX_BINS);
        is_valid.then_some(Self { scale, sums }).ok_or("no link has so many bins")
    }
}

impl Bins {
    /// Returns whether anything was added.
    pub(crate) fn is_used(&self) -> bool {
        !self.sums.is_empty()
    }

    pub(crate) fn scale(&self) -> u32 {
        self.scale
    }

    /// Returns the sum of all bins.
    pub(crate) fn total(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Adds an amount at an instant.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, amount: f64) {
        match self.sums.get_mut((at >> self.scale) as usize) {
            Some(sum) => *sum += amount,
            None => {
                self.grow(at);
                self.sums[(at >> self.scale) as usize] += amount;
            }
        }
    }

    /// Adds `each` for each picosecond of an interval, which is not empty.
    #[inline]
    pub(crate) fn add_over(&mut self, from: u64, to: u64, each: f64) {
        self.extend_to(to - 1);
        let mut from = from;
        while from < to {
            let bin = from >> self.scale;
            let end = ((bin + 1) << self.scale).min(to);
            self.sums[bin as usize] += each * (end - from) as f64;
            from = end;
        }
    }

    #[inline]
    fn extend_to(&mut self, at: u64) {
        if at >> self.scale >= self.sums.len() as u64 {
            self.grow(at);
        }
    }

    #[cold]
    fn grow(&mut self, at: u64) {
        let scale = scale_of(at).max(self.scale);
        if self.is_used() {
            self.coarsen(scale);
        } else {
            *self = Self { scale, sums: vec![0.0; MAX_BINS] };
        }
    }

    fn coarsen(&mut self, scale: u32) {
        for _ in self.scale..scale {
            for bin in 0..MAX_BINS / 2 {
                self.sums[bin] = self.sums[2 * bin] + self.sums[2 * bin + 1];
            }
            self.sums[MAX_BINS / 2..].fill(0.0);
        }
        self.scale = scale;
    }

    /// Adds the sums of other bins.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !self.is_used() {
            *self = other.clone();
        } else if other.is_used() {
            let scale = self.scale.max(other.scale);
            self.coarsen(scale);
            let mut other = other.clone();
            other.coarsen(scale);
            self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Returns the sums of bins of `2^scale` picoseconds, up to an instant.
    pub(crate) fn coarsened(&self, scale: u32, end: u64) -> Vec<f64> {
        let mut bins = self.clone();
        bins.coarsen(scale);
        bins.sums.truncate(end.div_ceil(1 << scale) as usize);
        bins.sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with the sums of all picoseconds of each bin.
        #[test]
        fn sums_are_those_of_each_picosecond(
            pieces in proptest::collection::vec((0_u64..500, 1_u64..2000, 0_u32..9), 1..40),
            coarser in 0_u32..3,
        ) {
            let (mut bins, mut all, mut now) = (Bins::default(), Vec::new(), 0);
            for (pause, picos, each) in pieces {
                let from = now + pause;
                now = from + picos;
                all.resize(from as usize, 0.0);
                all.resize(now as usize, f64::from(each));
                bins.add_over(from, now, f64::from(each));
                bins.add(now - 1, 0.5);
                all[now as usize - 1] += 0.5;
            }
            prop_assert_eq!(bins.scale(), scale_of(now - 1));
            let scale = bins.scale() + coarser;
            let expected: Vec<f64> = all.chunks(1 << scale).map(|picos| picos.iter().sum()).collect();
            prop_assert_eq!(bins.coarsened(scale, now), expected);
            let bytes = postcard::to_stdvec(&bins).unwrap();
            prop_assert!(postcard::from_bytes::<Bins>(&bytes[..bytes.len() - 1]).is_err(), "too short");
            prop_assert_eq!(postcard::from_bytes(&bytes), Ok(bins));
            prop_assert!(postcard::from_bytes::<Bins>(&[64, 0]).is_err(), "too long bins");
            prop_assert!(postcard::from_bytes::<Bins>(&[&[0, 1][..], &[0; 8]].concat()).is_err(), "too few bins");
        }
    }
}
