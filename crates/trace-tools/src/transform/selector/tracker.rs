//! Following a rank through a program, for its selected operations.

use pdes_core::Rank;
use trace_mmap::Op;
use trace_mmap::folded::State;

use super::Selector;
use crate::transform::state::Stateful;

/// A selection of the operations of a rank, which follows them in their order.
pub(in crate::transform) trait Select: Stateful {
    /// Returns whether the next operation is selected.
    fn selects(&mut self, op: &Op) -> bool;
}

/// Follows the place of a rank in the program.
#[derive(Debug)]
pub(in crate::transform) struct Tracker<'s> {
    selector: &'s Selector,
    is_rank: bool,
    is_place: bool,
    /// Number of visits of the place.
    visits: u64,
    /// Number of selected computations.
    computations: u64,
}

impl<'s> Tracker<'s> {
    pub(in crate::transform) fn new(selector: &'s Selector, rank: Rank) -> Self {
        let is_place = !selector.has_place();
        Self { selector, is_rank: selector.selects_rank(rank), is_place, visits: 0, computations: 0 }
    }

    /// Takes note of the next operation: a location begins a visit of its place, and ends that of another one.
    pub(in crate::transform) fn follow(&mut self, op: &Op) {
        let Op::Location { file, line } = op else { return };
        if !self.selector.has_place() {
            return;
        }
        let found = self.selector.selects_place(file, *line);
        self.visits += u64::from(found);
        let iterations = self.selector.iterations.as_ref();
        self.is_place = found && iterations.is_none_or(|numbers| numbers.contains(self.visits - 1));
    }

    /// Returns the number of visits of the place so far.
    pub(in crate::transform) fn visits(&self) -> u64 {
        self.visits
    }

    /// Returns whether rank and place are selected.
    pub(in crate::transform) fn is_here(&self) -> bool {
        self.is_rank && self.is_place
    }

    /// Returns the instance to which the next selected computation belongs: the visit of the place or, without a place, the
    /// computation itself.
    pub(in crate::transform) fn next_instance(&mut self) -> u64 {
        self.computations += 1;
        if self.selector.has_place() { self.visits - 1 } else { self.computations - 1 }
    }
}

/// Selects operations of the subject, other than messages.
impl Select for Tracker<'_> {
    fn selects(&mut self, op: &Op) -> bool {
        self.follow(op);
        self.is_here() && self.selector.accepts_call(op)
    }
}

impl Stateful for Tracker<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        self.is_place.state(state);
        let alike = self.selector.iterations.as_ref().map(|numbers| numbers.alike(self.visits));
        let (first, end) = alike.unwrap_or((0, u64::MAX));
        state.word(first);
        let left = end - self.visits;
        state.counter(&mut self.visits, left);
        state.counter(&mut self.computations, u64::MAX);
    }
}
