//! The operations of a program between transformations, rank by rank.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem;

use pdes_core::Rank;
use trace_mmap::folded::{Recurrent, State, walk};
use trace_mmap::{Action, Op, OpDecoder, RankTrace, Slot, Trace, nanos};

use super::requests::NewRequests;
use super::state::Stateful;
use super::{Plan, Rewrite};

/// A program: a trace after the first transformations of a hypothesis.
#[derive(Clone, Debug)]
pub struct Program<'a> {
    trace: &'a Trace,
    plans: &'a [Box<dyn Plan>],
    /// Names for the requests that transformations add, of the rank that is being transformed.
    names: NewRequests,
}

/// An operation of a rank on its way through transformations.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// Slot of the request that the operation posts. Requests with names are named by their slots.
    pub posted: Option<Slot>,
    /// Slot of the request that the operation waits for or tests, if it has no name.
    pub awaited: Option<Slot>,
    /// Index of the action in the original trace, from 0.
    pub action: u64,
    /// Duration in the recorded run, if known and still that of the operation \[ns\].
    pub nanos: Option<u64>,
}

impl<'a> Program<'a> {
    /// Makes the program of a trace, all of whose ranks are loaded, after some transformations.
    pub(super) fn new(trace: &'a Trace, plans: &'a [Box<dyn Plan>]) -> Self {
        Self { trace, plans, names: NewRequests::default() }
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.trace.ranks()).map(Rank::new)
    }

    /// Returns the operations of a rank, in order.
    pub fn steps(&self, rank: Rank) -> impl Iterator<Item = Step> + use<'a> {
        let trace = self.trace.rank(rank);
        let actions = actions(trace);
        Steps {
            decoder: StepDecoder::new(trace),
            actions,
            rewrites: self.rewrites(rank),
            ready: VecDeque::new(),
        }
    }

    /// Calls a function with the operations of a rank, in order, and with values that it may change.
    ///
    /// Iterations of a folded program in which the values come again, as they describe themselves, are left out: what they append to
    /// sequences among the values is repeated. So the function must not change anything else.
    ///
    /// # Errors
    /// Fails as the function does.
    pub(super) fn walk<V: Stateful, E>(
        &self,
        rank: Rank,
        values: &mut V,
        f: impl FnMut(&mut V, Step) -> Result<(), E>,
    ) -> Result<(), E> {
        let trace = self.trace.rank(rank);
        let mut walker =
            Walker { decoder: StepDecoder::new(trace), rewrites: self.rewrites(rank), values, f };
        match trace.folded_actions() {
            Some(parts) => walk(&parts, &mut walker)?,
            None => {
                for (action, nanos) in actions(trace) {
                    walker.take(action, nanos)?;
                }
            }
        }
        walker.finish()
    }

    /// Does the same with a function that does not fail.
    pub(super) fn walk_all<V: Stateful>(&self, rank: Rank, values: &mut V, mut f: impl FnMut(&mut V, Step)) {
        let never = |values: &mut V, step| -> Result<(), Infallible> {
            f(values, step);
            Ok(())
        };
        let Ok(()) = self.walk(rank, values, never);
    }

    fn rewrites(&self, rank: Rank) -> Rewrites<'a> {
        let (trace, plans, names) = (self.trace, self.plans, NewRequests::default());
        let rewrites = plans.iter().enumerate().map(|(number, plan)| {
            plan.rewrite(Self { trace, plans: &plans[..number], names: names.clone() }, rank)
        });
        Rewrites { rewrites: rewrites.collect(), buffers: Default::default(), names }
    }

    /// Returns names for the requests that the next transformation adds to a rank.
    pub(super) fn new_requests(&self) -> NewRequests {
        self.names.clone()
    }
}

/// Returns the actions of a rank, with their times in nanoseconds.
fn actions(trace: &RankTrace) -> Box<dyn Iterator<Item = (Action, Option<u64>)> + '_> {
    match trace.measured() {
        Some(measured) => Box::new(measured.map(|(action, time)| (action, time.map(nanos)))),
        None => Box::new(trace.cursor().map(|action| (action, None))),
    }
}

/// The transformations of a rank, one after the other.
struct Rewrites<'a> {
    rewrites: Vec<Box<dyn Rewrite + 'a>>,
    /// Operations before and after a transformation; kept for their memory.
    buffers: [Vec<Step>; 2],
    names: NewRequests,
}

impl Rewrites<'_> {
    /// Transforms the next operation, or what is held back at the end; returns those that come of it.
    fn apply(&mut self, step: Option<Step>) -> &mut Vec<Step> {
        let [before, after] = &mut self.buffers;
        let is_over = step.is_none();
        before.clear();
        before.extend(step);
        for rewrite in &mut self.rewrites {
            before.drain(..).for_each(|step| rewrite.apply(step, after));
            if is_over {
                rewrite.finish(after);
            }
            mem::swap(before, after);
        }
        before.iter().for_each(|step| self.names.follow(step));
        before
    }
}

impl Stateful for Rewrites<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        self.names.state(state);
        self.rewrites.iter_mut().for_each(|rewrite| rewrite.state(state));
    }
}

/// Iterator over the operations of a rank after transformations.
struct Steps<'a> {
    decoder: StepDecoder<'a>,
    actions: Box<dyn Iterator<Item = (Action, Option<u64>)> + 'a>,
    rewrites: Rewrites<'a>,
    /// Operations that came of the last action.
    ready: VecDeque<Step>,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            let action = self.actions.next();
            let is_over = action.is_none();
            let step = action.map(|(action, nanos)| self.decoder.decode(action, nanos));
            self.ready.extend(self.rewrites.apply(step).drain(..));
            if is_over {
                // Nothing is held back any more.
                return self.ready.pop_front();
            }
        }
    }
}

/// Passes the operations of a rank after transformations to a function.
struct Walker<'a, 'v, V, F> {
    decoder: StepDecoder<'a>,
    rewrites: Rewrites<'a>,
    values: &'v mut V,
    f: F,
}

impl<V, E, F: FnMut(&mut V, Step) -> Result<(), E>> Walker<'_, '_, V, F> {
    fn take(&mut self, action: Action, nanos: Option<u64>) -> Result<(), E> {
        let step = self.decoder.decode(action, nanos);
        if self.rewrites.rewrites.is_empty() {
            return (self.f)(self.values, step);
        }
        self.rewrites.apply(Some(step)).drain(..).try_for_each(|step| (self.f)(self.values, step))
    }

    fn finish(&mut self) -> Result<(), E> {
        self.rewrites.apply(None).drain(..).try_for_each(|step| (self.f)(self.values, step))
    }
}

impl<V: Stateful, E, F: FnMut(&mut V, Step) -> Result<(), E>> Recurrent<Action> for Walker<'_, '_, V, F> {
    type Stop = E;

    fn step(&mut self, action: &Action) -> Result<(), E> {
        self.take(*action, None)
    }

    fn state(&mut self, state: &mut State<'_>) {
        self.decoder.state(state);
        self.rewrites.state(state);
        self.values.state(state);
    }
}

/// Decoder of the actions of a rank.
struct StepDecoder<'a> {
    trace: &'a RankTrace,
    ops: OpDecoder<'a>,
    next: u64,
}

impl<'a> StepDecoder<'a> {
    fn new(trace: &'a RankTrace) -> Self {
        Self { trace, ops: OpDecoder::new(trace), next: 0 }
    }

    fn decode(&mut self, action: Action, nanos: Option<u64>) -> Step {
        self.next += 1;
        let awaited = match action {
            Action::Wait { slot } | Action::Test { slot } => Some(slot),
            _ => None,
        };
        let posted = match action {
            Action::Isend { slot, .. } | Action::Irecv { slot, .. } => Some(slot),
            Action::ProcNull { slot } => slot,
            Action::Call(id) => self.trace.call(id).posted_slot(),
            _ => None,
        };
        Step { op: self.ops.decode(action), posted, awaited, action: self.next - 1, nanos }
    }
}

impl Stateful for StepDecoder<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        self.ops.state(state);
        state.counter(&mut self.next, u64::MAX);
    }
}
