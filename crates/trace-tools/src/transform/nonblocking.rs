//! `nonblocking`: collective operations take place during computations.

use std::collections::VecDeque;

use pdes_core::Rank;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, CommId, Op, RequestName, Slot};

use super::key::{Key, KeyValues};
use super::keys::Keys;
use super::overlap::{Reach, is_computation, is_local};
use super::remove::check_selected_collectives;
use super::requests::NewRequests;
use super::selector::Tracker;
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "nonblocking",
    subject: Subject::Collectives,
    keys: &[Key::optional("late", KeyValues::Reach, "Computations that the wait passes, 1 by default.")],
    semantics: "Blocking collective operations become nonblocking on all ranks of their communicators, with a wait behind up to `late` computations that \
                follow (by default 1), or `late = \"place\"` up to the next `location`. The wait passes computations only.",
    read,
};

#[derive(Clone, Debug)]
struct Nonblocking {
    selector: Selector,
    late: Reach,
}

fn read(selector: Selector, keys: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    let late = keys.get("late", Reach::read)?.unwrap_or(Reach::of(1));
    Ok(Box::new(Nonblocking { selector, late }))
}

impl Transform for Nonblocking {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        check_selected_collectives(program, &self.selector)?;
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Nonblocking {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(LateWaits {
            plan: self,
            tracker: Tracker::new(&self.selector, rank),
            requests: program.new_requests(),
            waits: VecDeque::new(),
        })
    }
}

/// Starts collective operations, and waits for them later.
///
/// The program does not wait forever if it did not before: each operation starts where it was, and what comes between its start and
/// its wait waits for nothing.
#[derive(Debug)]
struct LateWaits<'p> {
    plan: &'p Nonblocking,
    tracker: Tracker<'p>,
    requests: NewRequests,
    /// Waits, with the number of computations that they may still pass.
    waits: VecDeque<(Step, u32)>,
}

fn is_blocking(op: &Op) -> bool {
    matches!(
        op,
        Op::Collective(_)
            | Op::Call(
                CallOp::Collective { request: None, .. } | CallOp::NeighborAlltoall { request: None, .. }
            )
    )
}

/// Returns a collective operation as one with a request.
fn started(op: Op, name: RequestName) -> Op {
    Op::Call(match op {
        Op::Collective(operation) => {
            CallOp::Collective { communicator: CommId::WORLD, operation, request: Some(name) }
        }
        Op::Call(CallOp::Collective { communicator, operation, .. }) => {
            CallOp::Collective { communicator, operation, request: Some(name) }
        }
        Op::Call(CallOp::NeighborAlltoall { communicator, to, from, .. }) => {
            CallOp::NeighborAlltoall { communicator, to, from, request: Some(name) }
        }
        other => return other,
    })
}

impl LateWaits<'_> {
    /// Appends the waits that pass no more computations.
    fn end_waits(&mut self, out: &mut Vec<Step>) {
        let ended = self.waits.iter().take_while(|(_, left)| *left == 0).count();
        out.extend(self.waits.drain(..ended).map(|(wait, _)| wait));
    }
}

impl Rewrite for LateWaits<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if !is_local(&step.op) || self.plan.late.ends_at(&step.op) {
            out.extend(self.waits.drain(..).map(|(wait, _)| wait));
        }
        let is_selected = self.tracker.is_here() && self.plan.selector.accepts_call(&step.op);
        if is_selected && is_blocking(&step.op) {
            let name = self.requests.next();
            let call = started(step.op.clone(), name);
            let wait = Op::Call(CallOp::Wait { request: name });
            let wait = Step { op: wait, posted: None, awaited: None, nanos: None, ..step.clone() };
            (step.op, step.posted, step.nanos) = (call, Some(Slot::new(name.get())), None);
            out.push(step);
            self.waits.push_back((wait, self.plan.late.computations));
        } else {
            let passes = is_computation(&step.op);
            out.push(step);
            if passes {
                self.waits.iter_mut().for_each(|(_, left)| *left -= 1);
            }
        }
        self.end_waits(out);
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        out.extend(self.waits.drain(..).map(|(wait, _)| wait));
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.tracker, &mut self.waits).state(state);
    }
}
