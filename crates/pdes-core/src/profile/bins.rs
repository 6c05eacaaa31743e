//! A histogram of work over simulated time.

use crate::SimTime;

/// Maximum number of bins of a process.
const MAX_BINS: usize = 1024;

/// A histogram of a process's steps over simulated time. The bins double in length when the time exceeds them; their length
/// is a power of two, so that the histograms of different processes can be added.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    steps: Vec<u32>,
    /// Binary logarithm of the length of a bin \[ps\].
    width: u32,
    total: u64,
}

impl Bins {
    pub(super) fn add(&mut self, at: SimTime, steps: u32) {
        self.total += u64::from(steps);
        while at.as_picos() >> self.width >= MAX_BINS as u64 {
            self.double();
        }
        let bin = (at.as_picos() >> self.width) as usize;
        if bin >= self.steps.len() {
            self.steps.resize(bin + 1, 0);
        }
        self.steps[bin] = self.steps[bin].saturating_add(steps);
    }

    fn double(&mut self) {
        self.steps =
            self.steps.chunks(2).map(|pair| pair.iter().copied().fold(0, u32::saturating_add)).collect();
        self.width += 1;
    }

    pub(super) fn width(&self) -> u32 {
        self.width
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Adds the steps to a sum over processes, whose bins have at least the same length.
    pub(super) fn add_to(&self, sum: &mut Vec<u64>, width: u32) {
        for (bin, &steps) in self.steps.iter().enumerate() {
            let bin = bin >> (width - self.width);
            if bin >= sum.len() {
                sum.resize(bin + 1, 0);
            }
            sum[bin] += u64::from(steps);
        }
    }
}
