//! Random perturbation of the schedule, for tests of determinism.

use std::time::Duration;

/// A small pseudo-random generator (SplitMix64; Steele, Lea and Flood 2014): reproducible, and of no influence on
/// results by design.
pub(crate) struct Jitter(u64);

impl Jitter {
    pub(crate) fn new(seed: u64, worker: usize) -> Self {
        Self(seed ^ (worker as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Puts the thread to sleep now and then.
    pub(crate) fn pause(&mut self) {
        if self.below(64) == 0 {
            std::thread::sleep(Duration::from_micros(self.below(200) as u64));
        }
    }
}
