//! Floating-point operations of one core.

use std::hint::black_box;

/// Numbers of each of the two arrays: 16 KiB in all, which fit into the nearest cache.
const LENGTH: usize = 1024;
/// Passes over the arrays of one run.
const PASSES: usize = 100;

/// `y += a x` on arrays in the nearest cache: two flops per number and pass.
pub(super) struct Kernel {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Kernel {
    /// Flops of a run.
    pub(super) const FLOPS: u64 = 2 * (LENGTH * PASSES) as u64;
    pub(super) const DESCRIPTION: &'static str =
        "y += a x in doubles, 1024 of each, both processes at the same time";

    pub(super) fn new() -> Self {
        Self { x: vec![1.0; LENGTH], y: vec![0.0; LENGTH] }
    }

    pub(super) fn run(&mut self) {
        for pass in 0..PASSES {
            // So small that nothing overflows, however long this goes on.
            let a = black_box(1e-9 * (pass + 1) as f64);
            for (y, x) in self.y.iter_mut().zip(&self.x) {
                *y += a * x;
            }
            black_box(&mut self.y);
        }
    }
}
