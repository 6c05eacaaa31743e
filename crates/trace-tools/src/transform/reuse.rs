//! `reuse`: communicators that are created again are those of before.

mod creations;
mod order;

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, Op};

use self::creations::{Creations, Equal};
use self::order::check_order;
use super::keys::Keys;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "reuse",
    subject: Subject::Creations,
    keys: &[],
    semantics: "A communicator with the same parent, and on all of its ranks the same members in the same order as an earlier one, is not created: later \
                operations, also creations, use the first one, which is freed when the program has freed all of these. What one communicator would confuse is \
                refused: receives and probes of any tag or source there, and messages and collective operations of different order on two ranks.",
    read,
};

#[derive(Debug)]
struct Reuse {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Reuse { selector }))
}

impl Transform for Reuse {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        // What is created on communicators that are reused may be equal in turn.
        let mut equal = Equal::default();
        loop {
            let found = Equal::find(&self.selector, program, &equal)?;
            if found.first == equal.first {
                break;
            }
            equal = found;
        }
        check_order(program, &equal)?;
        Ok(Box::new(Reused { selector: self.selector.clone(), equal: Arc::new(equal) }))
    }
}

#[derive(Debug)]
struct Reused {
    selector: Selector,
    equal: Arc<Equal>,
}

impl Plan for Reused {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(FirstOnes {
            creations: Creations::new(&self.selector, rank),
            equal: &self.equal,
            freed: FxHashMap::default(),
        })
    }
}

#[derive(Debug)]
struct FirstOnes<'p> {
    creations: Creations<'p>,
    equal: &'p Equal,
    /// Number of communicators that the program has freed, by the first equal one.
    freed: FxHashMap<CommId, u32>,
}

impl Rewrite for FirstOnes<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        if let Some(creation) = self.creations.follow(&step.op, self.equal)
            && self.equal.is_removed(&creation)
        {
            return;
        }
        if let Op::Call(CallOp::FreeCommunicator { communicator }) = &step.op {
            let first = self.equal.first(*communicator);
            let freed = self.freed.entry(first).or_default();
            *freed += 1;
            if *freed < self.equal.count(first) {
                return;
            }
        }
        if let Op::Call(call) = &mut step.op {
            rename(call, |communicator| *communicator = self.equal.first(*communicator));
        }
        out.push(step);
    }
}

/// Calls a function with the communicators that a call uses.
fn rename(call: &mut CallOp, mut f: impl FnMut(&mut CommId)) {
    match call {
        CallOp::Send { to, .. } | CallOp::Isend { to, .. } | CallOp::SendInit { to, .. } => {
            f(&mut to.communicator);
        }
        CallOp::Recv { from, .. }
        | CallOp::Irecv { from, .. }
        | CallOp::RecvInit { from, .. }
        | CallOp::Probe { from }
        | CallOp::Iprobe { from, .. } => f(&mut from.communicator),
        CallOp::SendRecv { to, from, .. } => {
            f(&mut to.communicator);
            f(&mut from.communicator);
        }
        CallOp::Collective { communicator, .. }
        | CallOp::NeighborAlltoall { communicator, .. }
        | CallOp::NewCommunicator { parent: communicator, .. }
        | CallOp::FreeCommunicator { communicator }
        | CallOp::File { communicator, .. }
        | CallOp::SetView { communicator, .. }
        | CallOp::Window { communicator, .. } => f(communicator),
        _ => {}
    }
}
