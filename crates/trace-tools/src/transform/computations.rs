//! Rewriting of the amounts of selected computations.

use std::fmt;

use pdes_core::Rank;
use trace_mmap::Op;

use super::selector::{Selector, Tracker};
use super::{Program, Rewrite, Step};

/// Changes the amounts of the selected computations of a rank by a function of the amount \[flop\] and of the instance to which the
/// computation belongs.
pub(super) struct Computations<'a, F> {
    tracker: Tracker<'a>,
    change: F,
}

impl<'a, F: FnMut(f64, u64) -> f64> Computations<'a, F> {
    pub(super) fn new(selector: &'a Selector, rank: Rank, change: F) -> Self {
        Self { tracker: Tracker::new(selector, rank), change }
    }
}

impl<F: FnMut(f64, u64) -> f64> Rewrite for Computations<'_, F> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if let Op::Compute { flops } = &mut step.op
            && self.tracker.is_here()
        {
            let changed = (self.change)(*flops, self.tracker.next_instance());
            step.nanos = step.nanos.filter(|_| changed.to_bits() == flops.to_bits());
            *flops = changed;
        }
        out.push(step);
    }
}

impl<F> fmt::Debug for Computations<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computations").field("tracker", &self.tracker).finish_non_exhaustive()
    }
}

/// Calls a function with the instance, the amount \[flop\] and the action of each selected computation of a rank.
pub(super) fn for_each(
    selector: &Selector,
    program: &Program<'_>,
    rank: Rank,
    mut f: impl FnMut(u64, f64, u64),
) {
    if !selector.selects_rank(rank) {
        return;
    }
    let mut tracker = Tracker::new(selector, rank);
    for step in program.steps(rank) {
        tracker.follow(&step.op);
        if let Op::Compute { flops } = step.op
            && tracker.is_here()
        {
            f(tracker.next_instance(), flops, step.action);
        }
    }
}
