//! `waitany`: a rank works on messages in the order in which they come.

use pdes_core::Rank;
use rustc_hash::FxHashSet;
use trace_mmap::folded::State;
use trace_mmap::{CallOp, Op, RequestName};

use super::keys::Keys;
use super::messages::{MessageTracker, SelectedMessages};
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "waitany",
    subject: Subject::Messages,
    keys: &[],
    semantics: "A `waitall` for two or more receives of such messages, and the computation that follows, become for each of these receives a `waitany` for \
                those that are left and an equal part of the computation; a `waitall` for the other requests follows. A `waitall` that no computation follows \
                stays. With outcomes as recorded, receives complete in the order of the call. Requests must have numbers.",
    read,
};

#[derive(Debug)]
struct Waitany {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Waitany { selector }))
}

impl Transform for Waitany {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let messages = SelectedMessages::new(&self.selector, program)?;
        for rank in program.ranks() {
            program.walk(rank, &mut messages.follow(rank), |tracker, step| {
                if tracker.follow(&step.op).receive && matches!(step.op, Op::Irecv { .. }) {
                    let reason = "a request without a number, which waitany cannot name: record the program with trace acquire, or add req=";
                    return Err(Refusal::at(rank, step.action, reason));
                }
                Ok(())
            })?;
        }
        Ok(Box::new(InOrderOfArrival(messages)))
    }
}

#[derive(Debug)]
struct InOrderOfArrival(SelectedMessages);

impl Plan for InOrderOfArrival {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let messages = self.0.follow(rank);
        Box::new(Arrivals { messages, pending: FxHashSet::default(), held: None })
    }
}

#[derive(Debug)]
struct Arrivals<'p> {
    messages: MessageTracker<'p>,
    /// Requests of selected receives that may be pending.
    pending: FxHashSet<RequestName>,
    /// A wait for all, with its selected receives, until the next operation.
    held: Option<(Step, Vec<RequestName>)>,
}

impl Arrivals<'_> {
    fn take(&mut self, requests: &[RequestName]) -> Vec<RequestName> {
        requests.iter().filter(|name| self.pending.remove(name)).copied().collect()
    }
}

/// Appends a wait and the work on a part of the computation for each of some receives, and a wait for the other requests.
fn unroll(wait: &Step, mut left: Vec<RequestName>, computation: Step, out: &mut Vec<Step>) {
    let Op::Call(CallOp::Waitall { requests }) = &wait.op else { return };
    let Op::Compute { flops } = computation.op else { return };
    let others: Vec<RequestName> = requests.iter().filter(|name| !left.contains(name)).copied().collect();
    let new = |op: Op, like: &Step| Step { op, posted: None, awaited: None, nanos: None, ..like.clone() };
    let part = flops / left.len() as f64;
    while let Some(first) = left.first().copied() {
        let call = CallOp::Waitany { requests: left.clone(), done: Some(first) };
        out.push(new(Op::Call(call), wait));
        out.push(new(Op::Compute { flops: part }, &computation));
        left.remove(0);
    }
    if !others.is_empty() {
        out.push(new(Op::Call(CallOp::Waitall { requests: others }), wait));
    }
}

impl Rewrite for Arrivals<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        let is_received = self.messages.follow(&step.op).receive;
        if let Some((wait, receives)) = self.held.take() {
            if matches!(step.op, Op::Compute { .. }) {
                return unroll(&wait, receives, step, out);
            }
            out.push(wait);
        }
        if is_received && let Some(slot) = step.posted {
            self.pending.insert(RequestName::new(slot.get()));
        }
        if let Op::Call(CallOp::Waitall { requests }) = &step.op {
            let receives = self.take(requests);
            if receives.len() > 1 {
                self.held = Some((step, receives));
                return;
            }
        } else if let Op::Call(call) = &step.op {
            let done: Vec<RequestName> =
                call.completion().map_or(&[][..], |completion| completion.done()).to_vec();
            self.take(&done);
        } else if step.op == Op::WaitAll {
            self.pending.clear();
        }
        out.push(step);
    }

    fn finish(&mut self, out: &mut Vec<Step>) {
        out.extend(self.held.take().map(|(wait, _)| wait));
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.messages, &mut self.pending, &mut self.held).state(state);
    }
}
