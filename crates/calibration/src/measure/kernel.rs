//! Floating-point kernel of one core.

use std::hint::black_box;

/// Length of each of the two arrays: 16 KiB in all, which fit into the L1 cache.
const LENGTH: usize = 1024;
/// Number of passes over the arrays per run.
const PASSES: usize = 100;

/// `y += a x` on arrays in the L1 cache: two flops per number and pass.
pub(super) struct Kernel {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Kernel {
    /// Amount of computation of a run \[flop\].
    pub(super) const FLOPS: u64 = 2 * (LENGTH * PASSES) as u64;
    pub(super) const DESCRIPTION: &'static str =
        "y += a x in doubles, 1024 of each, both processes at the same time";

    pub(super) fn new() -> Self {
        Self { x: vec![1.0; LENGTH], y: vec![0.0; LENGTH] }
    }

    pub(super) fn run(&mut self) {
        self.run_passes(PASSES);
    }

    /// Runs so many passes over the arrays, of some tenths of a microsecond each.
    pub(super) fn run_passes(&mut self, passes: usize) {
        for pass in 0..passes {
            // Small enough that no number overflows, however long this continues.
            let a = black_box(1e-9 * (pass + 1) as f64);
            for (y, x) in self.y.iter_mut().zip(&self.x) {
                *y += a * x;
            }
            black_box(&mut self.y);
        }
    }
}
