//! `eliminate`: messages are neither sent nor received.

use pdes_core::{Bytes, Rank};
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, RequestName};

use super::keys::Keys;
use super::messages::{MessageTracker, SelectedMessages, Sides, without};
use super::requests::RemovedRequests;
use super::state::Stateful;
use super::{
    FoldedForm, Plan, Program, Refusal, Rewrite, Selector, SizeChange, Step, Subject, Transform,
    TransformKind,
};

pub(super) const KIND: TransformKind = TransformKind {
    key: "eliminate",
    subject: Subject::Messages,
    keys: &[],
    semantics: "Messages disappear with their receives, and with waits and tests for these requests only; the other half of a combined send and receive stays. \
                Persistent requests of such messages are made and freed, but not started.",
    read,
};

#[derive(Debug)]
struct Eliminate {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Eliminate { selector }))
}

impl Transform for Eliminate {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn folded(&self) -> Option<FoldedForm<'_>> {
        Some(FoldedForm::Sizes(self))
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::with_persistent(&self.selector, program)?;
        messages.check_probes(program)?;
        Ok(Box::new(Eliminated(messages)))
    }
}

impl SizeChange for Eliminate {
    fn size(&self, _: Bytes) -> Option<Bytes> {
        None
    }
}

#[derive(Debug)]
struct Eliminated(SelectedMessages);

impl Plan for Eliminated {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(WithoutMessages { messages: self.0.follow(rank), requests: RemovedRequests::default() })
    }
}

#[derive(Debug)]
struct WithoutMessages<'p> {
    messages: MessageTracker<'p>,
    requests: RemovedRequests,
}

impl WithoutMessages<'_> {
    /// Returns the persistent requests whose messages are not eliminated, of those that a call starts.
    fn start(&mut self, op: &Op, requests: &[RequestName]) -> Vec<RequestName> {
        let mut is_selected = Vec::new();
        self.messages.follow_each(op, |sides| is_selected.push(sides != Sides::default()));
        let mut is_selected = is_selected.into_iter();
        let mut started = Vec::new();
        for request in requests {
            // A request without a peer has no message.
            let is_removed = self.messages.has_peer(*request) && is_selected.next().unwrap_or_default();
            self.requests.start(*request, is_removed);
            started.extend((!is_removed).then_some(*request));
        }
        started
    }
}

impl Rewrite for WithoutMessages<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        if let Op::Call(CallOp::Start { requests }) = &step.op {
            let started = self.start(&step.op, requests);
            if !started.is_empty() {
                step.op = Op::Call(CallOp::Start { requests: started });
                out.push(step);
            }
            return;
        }
        let sides = self.messages.follow(&step.op);
        if sides == Sides::default() {
            out.extend(self.requests.keep(step));
            return;
        }
        self.requests.add(&step);
        if let Some(op) = without(step.op, sides) {
            (step.op, step.nanos) = (op, None);
            out.push(step);
        }
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.messages, &mut self.requests).state(state);
    }
}
