//! `waitall`: receives that follow each other complete in any order.

use pdes_core::Rank;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, Slot};

use super::keys::Keys;
use super::messages::as_irecv;
use super::requests::NewRequests;
use super::selector::{Tracker, blocking_receive};
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "waitall",
    subject: Subject::Receives,
    keys: &[],
    semantics: "Two or more blocking receives in a row, `location`s aside, one of which is selected, become an `irecv` each and a `waitall` after the last \
                one, whatever order their messages come in.",
    read,
};

#[derive(Clone, Debug)]
struct Waitall {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Waitall { selector }))
}

impl Transform for Waitall {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, _: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Waitall {
    fn rewrite<'a>(&'a self, program: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(Together {
            selector: &self.selector,
            tracker: Tracker::new(&self.selector, rank),
            requests: program.new_requests(),
            held: Vec::new(),
            is_selected: false,
        })
    }
}

/// Posts receives together, and waits for them at once.
///
/// Messages match as before, because the receives are posted in their order. The program does not wait forever if it did not before:
/// between the receives it did nothing that another rank could wait for.
#[derive(Debug)]
struct Together<'p> {
    selector: &'p Selector,
    tracker: Tracker<'p>,
    requests: NewRequests,
    /// The receives, and the locations between them and after them.
    held: Vec<Step>,
    /// One of them is selected.
    is_selected: bool,
}

fn is_location(op: &Op) -> bool {
    matches!(op, Op::Location { .. })
}

impl Together<'_> {
    fn release(&mut self, out: &mut Vec<Step>) {
        let mut left = self.held.iter().filter(|step| !is_location(&step.op)).count();
        if !std::mem::take(&mut self.is_selected) || left < 2 {
            out.append(&mut self.held);
            return;
        }
        let mut names = Vec::new();
        for step in self.held.drain(..) {
            let name = if is_location(&step.op) { None } else { Some(self.requests.next()) };
            let Some((name, op)) = name.and_then(|name| Some((name, as_irecv(&step.op, name)?))) else {
                out.push(step);
                continue;
            };
            names.push(name);
            left -= 1;
            let changed = |op, posted| Step { op, posted, awaited: None, nanos: None, ..step.clone() };
            out.push(changed(op, Some(Slot::new(name.get()))));
            if left == 0 {
                let requests = std::mem::take(&mut names);
                out.push(changed(Op::Call(CallOp::Waitall { requests }), None));
            }
        }
    }
}

impl Rewrite for Together<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if blocking_receive(&step.op).is_some() {
            self.is_selected |= self.tracker.is_here() && self.selector.accepts_call(&step.op);
            self.held.push(step);
        } else if is_location(&step.op) && !self.held.is_empty() {
            self.held.push(step);
        } else {
            self.release(out);
            out.push(step);
        }
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        self.release(out);
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.tracker, &mut self.held, &mut self.is_selected).state(state);
    }
}
