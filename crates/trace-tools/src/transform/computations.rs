//! Rewriting of the amounts of selected computations.

use std::fmt;

use pdes_core::Rank;
use trace_mmap::Op;
use trace_mmap::folded::State;

use super::selector::{Selector, Tracker};
use super::state::Stateful;
use super::{Plan, Pointwise, Program, Refusal, Rewrite, Step, Transform};

/// Changes the amounts of the selected computations of a rank by a function of the amount \[flop\] and of the instance to which the
/// computation belongs.
pub(super) struct Computations<'a, F> {
    tracker: Tracker<'a>,
    change: F,
    /// True if the change does not depend on the instance.
    is_steady: bool,
}

impl<'a, F: FnMut(f64, u64) -> f64> Computations<'a, F> {
    pub(super) fn new(selector: &'a Selector, rank: Rank, change: F) -> Self {
        Self { tracker: Tracker::new(selector, rank), change, is_steady: false }
    }

    /// Changes amounts by a function that does not use the instance.
    pub(super) fn steady(selector: &'a Selector, rank: Rank, change: F) -> Self {
        Self { is_steady: true, ..Self::new(selector, rank, change) }
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

    fn state(&mut self, state: &mut State<'_>) {
        self.tracker.state(state);
        if !self.is_steady {
            state.unknown();
        }
    }
}

impl<F> fmt::Debug for Computations<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computations").field("tracker", &self.tracker).finish_non_exhaustive()
    }
}

/// A transformation that changes the selected computations by their amounts alone.
#[derive(Clone, Debug)]
pub(super) struct PointwiseTransform<C> {
    pub(super) selector: Selector,
    pub(super) change: C,
}

impl<C: Pointwise + Clone + 'static> Transform for PointwiseTransform<C> {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn pointwise(&self) -> Option<&dyn Pointwise> {
        Some(&self.change)
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(self.clone()))
    }
}

impl<C: Pointwise> Plan for PointwiseTransform<C> {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Computations::steady(&self.selector, rank, |flops, _| self.change.change(flops)))
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
