//! The operations of a program between transformations, rank by rank.

use std::collections::VecDeque;
use std::mem;

use pdes_core::Rank;
use trace_mmap::{Action, Op, Ops, RankTrace, Slot, Trace, nanos};

use super::requests::NewRequests;
use super::{Plan, Rewrite};

/// A program: a trace after the first transformations of a hypothesis.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    trace: &'a Trace,
    plans: &'a [Box<dyn Plan>],
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
        Self { trace, plans }
    }

    /// Returns the ranks.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.trace.ranks()).map(Rank::new)
    }

    /// Returns the operations of a rank, in order.
    pub fn steps(&self, rank: Rank) -> impl Iterator<Item = Step> + use<'a> {
        let (trace, plans) = (self.trace, self.plans);
        let rewrites = plans
            .iter()
            .enumerate()
            .map(|(number, plan)| plan.rewrite(Self { trace, plans: &plans[..number] }, rank));
        Steps {
            source: Source::new(trace.rank(rank)),
            rewrites: rewrites.collect(),
            ready: VecDeque::new(),
            buffers: Default::default(),
            is_over: false,
        }
    }

    /// Returns names for the requests that the next transformation adds to a rank.
    pub(super) fn new_requests(&self) -> NewRequests {
        NewRequests::after(self.plans.len())
    }
}

/// Iterator over the operations of a rank after transformations.
struct Steps<'a> {
    source: Source<'a>,
    rewrites: Vec<Box<dyn Rewrite + 'a>>,
    /// Operations that came of the last action.
    ready: VecDeque<Step>,
    /// Operations before and after a transformation; kept for their memory.
    buffers: [Vec<Step>; 2],
    /// True once the trace has no more actions.
    is_over: bool,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            if self.is_over {
                return None;
            }
            let step = self.source.next();
            if self.rewrites.is_empty() {
                return step;
            }
            self.is_over = step.is_none();
            let [before, after] = &mut self.buffers;
            before.extend(step);
            for rewrite in &mut self.rewrites {
                before.drain(..).for_each(|step| rewrite.apply(step, after));
                if self.is_over {
                    rewrite.finish(after);
                }
                mem::swap(before, after);
            }
            match before.len() {
                0 => {}
                1 => return before.pop(),
                _ => self.ready.extend(before.drain(..)),
            }
        }
    }
}

/// The operations of a rank in the trace.
struct Source<'a> {
    trace: &'a RankTrace,
    ops: Ops<'a>,
    actions: Box<dyn Iterator<Item = (Action, Option<u64>)> + 'a>,
    next: u64,
}

impl<'a> Source<'a> {
    fn new(trace: &'a RankTrace) -> Self {
        let actions: Box<dyn Iterator<Item = _>> = match trace.measured() {
            Some(measured) => Box::new(measured.map(|(action, time)| (action, time.map(nanos)))),
            None => Box::new(trace.cursor().map(|action| (action, None))),
        };
        Self { trace, ops: Ops::new(trace), actions, next: 0 }
    }

    fn posted(&self, action: Action) -> Option<Slot> {
        match action {
            Action::Isend { slot, .. } | Action::Irecv { slot, .. } => Some(slot),
            Action::ProcNull { slot } => slot,
            Action::Call(id) => self.trace.call(id).posted_slot(),
            _ => None,
        }
    }
}

impl Iterator for Source<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (action, nanos) = self.actions.next()?;
        let op = self.ops.next()?;
        self.next += 1;
        let awaited = match action {
            Action::Wait { slot } | Action::Test { slot } => Some(slot),
            _ => None,
        };
        Some(Step { op, posted: self.posted(action), awaited, action: self.next - 1, nanos })
    }
}
