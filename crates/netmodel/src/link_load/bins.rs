//! Sums over bins of time, in bounded memory.

use pdes_core::Wire;

/// Maximum number of bins. When they do not reach an instant, bins are merged in pairs.
pub(crate) const MAX_BINS: usize = 128;

/// Returns the least binary logarithm of the bin length [ps] with which [`MAX_BINS`] bins reach an instant.
pub(crate) fn scale_of(now: u64) -> u32 {
    (0..u64::BITS).find(|&scale| now >> scale < MAX_BINS as u64).unwrap_or(u64::BITS - 1)
}

/// Sums over bins of `2^scale` picoseconds, from time zero. Takes a kilobyte once anything is added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bins {
    scale: u32,
    sums: Vec<f64>,
}

impl Bins {
    /// Returns whether anything was added.
    pub(crate) fn is_used(&self) -> bool {
        !self.sums.is_empty()
    }

    pub(crate) fn scale(&self) -> u32 {
        self.scale
    }

    /// Writes the sums for another process of the operating system.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        (self.scale, self.sums.len() as u32).write(bytes);
        self.sums.iter().for_each(|sum| sum.to_bits().write(bytes));
    }

    /// Reads sums; `None` if the bytes hold none.
    pub(crate) fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (scale, count): (u32, u32) = Wire::read(bytes)?;
        if scale >= u64::BITS || !matches!(count as usize, 0 | MAX_BINS) {
            return None;
        }
        let sums: Option<_> = (0..count).map(|_| u64::read(bytes).map(f64::from_bits)).collect();
        Some(Self { scale, sums: sums? })
    }

    /// Adds an amount at an instant.
    #[inline]
    pub(crate) fn add(&mut self, at: u64, amount: f64) {
        self.extend_to(at);
        self.sums[(at >> self.scale) as usize] += amount;
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
        self.sums.resize(MAX_BINS, 0.0);
        self.coarsen(scale_of(at).max(self.scale));
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
            let mut bytes = Vec::new();
            bins.write(&mut bytes);
            prop_assert_eq!(Bins::read(&mut &bytes[..bytes.len() - 1]), None);
            prop_assert_eq!(Bins::read(&mut bytes.as_slice()), Some(bins));
        }
    }
}
