//! `remove`: collective operations do not take place.

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::CommId;

use super::keys::Keys;
use super::requests::RemovedRequests;
use super::selector::{Tracker, collective};
use super::{Plan, Program, Refusal, Rewrite, Selector, Step, Subject, Transform, TransformKind};

pub(super) const KIND: TransformKind = TransformKind {
    key: "remove",
    subject: Subject::Collectives,
    keys: &[],
    semantics: "Collective operations disappear on all ranks of their communicators, with waits and tests for their requests only; without `call`, \
                blocking barriers.",
    read,
};

#[derive(Clone, Debug)]
struct Remove {
    selector: Selector,
}

fn read(selector: Selector, _: &Keys<'_>) -> Result<Box<dyn Transform>, String> {
    Ok(Box::new(Remove { selector: selector.with_default_call("barrier") }))
}

/// The first rank with collective operations on a communicator, and a flag for each of them, in its order: true if it is selected.
type Selected = (Rank, Vec<bool>);

impl Transform for Remove {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        let mut by_communicator: BTreeMap<CommId, Selected> = BTreeMap::new();
        for rank in program.ranks() {
            let mut entered: BTreeMap<CommId, usize> = BTreeMap::new();
            let mut tracker = Tracker::new(&self.selector, rank);
            for step in program.steps(rank) {
                tracker.follow(&step.op);
                let Some((name, communicator)) = collective(&step.op) else { continue };
                let is_selected = tracker.is_here() && self.selector.accepts_collective(&step.op);
                let (first, selected) =
                    by_communicator.entry(communicator).or_insert_with(|| (rank, Vec::new()));
                let number = entered.entry(communicator).or_default();
                *number += 1;
                if *first == rank {
                    selected.push(is_selected);
                } else if selected.get(*number - 1).is_some_and(|first| *first != is_selected) {
                    let (keeps, removes) = if is_selected { (*first, "it") } else { (rank, "the other one") };
                    let number = *number - 1;
                    let reason = format!(
                        "{name} is operation {number} on communicator {}, of rank {first}, too; {removes} would remove it, and rank {keeps} would wait \
                         forever: select it on all ranks, or on none",
                        communicator.get()
                    );
                    return Err(Refusal::at(rank, step.action, reason));
                }
            }
        }
        Ok(Box::new(self.clone()))
    }
}

impl Plan for Remove {
    fn rewrite<'a>(&'a self, _: Program<'a>, rank: Rank) -> Box<dyn Rewrite + 'a> {
        let tracker = Tracker::new(&self.selector, rank);
        Box::new(WithoutCollectives { remove: self, tracker, requests: RemovedRequests::default() })
    }
}

#[derive(Debug)]
struct WithoutCollectives<'p> {
    remove: &'p Remove,
    tracker: Tracker<'p>,
    requests: RemovedRequests,
}

impl Rewrite for WithoutCollectives<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        self.tracker.follow(&step.op);
        if self.tracker.is_here() && self.remove.selector.accepts_collective(&step.op) {
            self.requests.add(&step);
        } else {
            out.extend(self.requests.keep(step));
        }
    }
}
