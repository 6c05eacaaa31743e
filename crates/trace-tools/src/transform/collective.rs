//! `collective`: ranks access files together.

use std::collections::BTreeMap;

use pdes_core::Rank;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_mmap::folded::State;
use trace_mmap::{CallOp, CommId, FileCall, FileDirection, FileName, Op};

use super::communicators::{Communicators, joint};
use super::keys::Keys;
use super::selector::Tracker;
use super::state::Stateful;
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "collective",
    subject: Subject::Accesses,
    keys: &[],
    semantics: "Accesses to files become collective: the k-th of each rank is one with the k-th of all other ranks of the communicator of the file, \
                `io-write_at` an `io-write_at_all`, and so on. Between any two collective operations there all ranks make equally many, of the same files and \
                directions in the same order.",
    read,
};

#[derive(Clone, Debug)]
struct Together {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Together { selector }))
}

/// Operation that all ranks of a communicator make: a selected access to a file, or another one (`None`).
type Joint = Option<(FileName, FileDirection)>;

/// The joint operations of the first rank of a communicator, to which those of the others are compared.
#[derive(Debug)]
struct Reference {
    rank: Rank,
    /// Their numbers.
    joints: Vec<u32>,
    /// Ranks that make the same ones.
    ranks: FxHashSet<Rank>,
}

/// Joint operations with their numbers.
#[derive(Debug, Default)]
struct Joints {
    numbers: FxHashMap<Joint, u32>,
    list: Vec<Joint>,
}

impl Joints {
    fn number(&mut self, joint: Joint) -> u32 {
        let next = self.list.len() as u32;
        *self.numbers.entry(joint).or_insert_with_key(|joint| {
            self.list.push(joint.clone());
            next
        })
    }

    fn describe(&self, number: Option<&u32>) -> String {
        match number.map(|number| &self.list[*number as usize]) {
            None => "nothing".to_owned(),
            Some(None) => "another collective operation".to_owned(),
            Some(Some((file, direction))) => {
                let verb = if *direction == FileDirection::Read { "a read of" } else { "a write to" };
                format!("{verb} {}", file.as_str())
            }
        }
    }
}

impl Together {
    /// Returns the communicator and the joint operation, if an operation is one.
    fn joint(&self, op: &Op, is_here: bool) -> Option<(CommId, Joint)> {
        if let Op::Call(CallOp::File { communicator, file, call, .. }) = op
            && is_here
            && self.selector.accepts_call(op)
            && let Some((direction, _)) = call.access()
        {
            return Some((*communicator, Some((file.clone(), direction))));
        }
        joint(op).map(|communicator| (communicator, None))
    }
}

impl Transform for Together {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let mut joints = Joints::default();
        let mut references: BTreeMap<CommId, Reference> = BTreeMap::new();
        let mut groups = BTreeMap::new();
        for rank in program.ranks() {
            let mut tracker = Tracker::new(&self.selector, rank);
            let mut communicators = Communicators::new(program, rank);
            let mut done: BTreeMap<CommId, usize> = BTreeMap::new();
            for step in program.steps(rank) {
                tracker.follow(&step.op);
                communicators.follow(&step.op);
                let Some((communicator, joint)) = self.joint(&step.op, tracker.is_here()) else { continue };
                let is_access = joint.is_some();
                let joint = joints.number(joint);
                let reference = references.entry(communicator).or_insert_with(|| Reference {
                    rank,
                    joints: Vec::new(),
                    ranks: FxHashSet::default(),
                });
                let number = done.entry(communicator).or_default();
                *number += 1;
                if reference.rank == rank {
                    reference.joints.push(joint);
                    if is_access && let Some((group, _)) = communicators.group(communicator) {
                        groups.entry(communicator).or_insert_with(|| std::sync::Arc::clone(group));
                    }
                    continue;
                }
                let expected = reference.joints.get(*number - 1);
                let has_access = |number: Option<&u32>| {
                    number.is_some_and(|number| joints.list[*number as usize].is_some())
                };
                if expected != Some(&joint) && (is_access || has_access(expected)) {
                    let reason = format!(
                        "{}, where rank {} has {}: all ranks of communicator {communicator} have to make the same accesses between two collective operations; select others",
                        joints.describe(Some(&joint)),
                        reference.rank,
                        joints.describe(expected),
                    );
                    return Err(Refusal::at(rank, step.action, reason));
                }
            }
            for (communicator, number) in done {
                let Some(reference) = references.get_mut(&communicator) else { continue };
                let left = reference.joints.get(number..).unwrap_or_default();
                if left.iter().all(|joint| joints.list[*joint as usize].is_none()) {
                    reference.ranks.insert(rank);
                }
            }
        }
        for (communicator, group) in groups {
            let reference = &references[&communicator];
            let missing = group.members().find(|rank| !reference.ranks.contains(rank));
            if let Some(rank) = missing {
                let reason = format!(
                    "it makes fewer of the accesses than rank {}: all ranks of communicator {communicator} have to make equally many; select others",
                    reference.rank
                );
                return Err(Refusal::Place { rank, action: None, reason });
            }
        }
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Together {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        Box::new(TogetherOnRank { plan: self, tracker: Tracker::new(&self.selector, rank) })
    }
}

#[derive(Debug)]
struct TogetherOnRank<'p> {
    plan: &'p Together,
    tracker: Tracker<'p>,
}

impl Rewrite for TogetherOnRank<'_> {
    fn apply(&mut self, mut step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if self.tracker.is_here()
            && self.plan.selector.accepts_call(&step.op)
            && let Op::Call(CallOp::File { call: FileCall::Access { is_collective, .. }, .. }) = &mut step.op
        {
            *is_collective = true;
            step.nanos = None;
        }
        out.push(step);
    }

    fn state(&mut self, state: &mut State<'_>) {
        self.tracker.state(state);
    }
}
