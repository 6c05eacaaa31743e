//! Random perturbation of the schedule, for tests of determinism.

use std::time::Duration;

use fastrand::Rng;

/// A source of random numbers for one worker: reproducible, and of no influence on results by design.
pub(crate) struct Jitter(Rng);

impl Jitter {
    pub(crate) fn new(seed: u64, worker: usize) -> Self {
        // Neighbours in number must not get neighbouring seeds, whose first numbers are alike.
        Self(Rng::with_seed(seed ^ (worker as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Returns a number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Puts the thread to sleep now and then.
    pub(crate) fn pause(&mut self) {
        if self.below(64) == 0 {
            std::thread::sleep(Duration::from_micros(self.0.u64(..200)));
        }
    }
}
