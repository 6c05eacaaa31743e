//! Work by simulated time.

use crate::SimTime;

/// The most bins of a process.
const MOST: usize = 1024;

/// Steps of a process in bins of simulated time, which grow with the time: their length is a power of two, so that
/// those of different processes can be added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    steps: Vec<u32>,
    /// The logarithm of the length in picoseconds.
    width: u32,
    total: u64,
}

impl Bins {
    pub(super) fn add(&mut self, at: SimTime, steps: u32) {
        self.total += u64::from(steps);
        while at.as_picos() >> self.width >= MOST as u64 {
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

    /// Adds the steps to those of others, in bins of at least the own length.
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
