//! `remove`: collective operations do not take place.

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::{CommId, Op};

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

/// Checks that whoever selects a collective operation selects it on all ranks of its communicator: `select` begins the selection of
/// the operations of a rank, in order.
pub(super) fn check_collectives<F: FnMut(&Op) -> bool>(
    program: &Program<'_>,
    select: impl Fn(Rank) -> F,
) -> Result<(), Refusal> {
    let mut by_communicator: BTreeMap<CommId, Selected> = BTreeMap::new();
    for rank in program.ranks() {
        let mut entered: BTreeMap<CommId, usize> = BTreeMap::new();
        let mut selects = select(rank);
        for step in program.steps(rank) {
            let is_selected = selects(&step.op);
            let Some((name, communicator)) = collective(&step.op) else { continue };
            let (first, selected) = by_communicator.entry(communicator).or_insert_with(|| (rank, Vec::new()));
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
    Ok(())
}

/// Checks that a selector selects collective operations on all ranks of their communicators, or on none.
pub(super) fn check_selected_collectives(program: &Program<'_>, selector: &Selector) -> Result<(), Refusal> {
    check_collectives(program, |rank| {
        let mut tracker = Tracker::new(selector, rank);
        move |op| {
            tracker.follow(op);
            tracker.is_here() && selector.accepts_call(op)
        }
    })
}

impl Transform for Remove {
    fn selector(&self) -> &Selector {
        &self.selector
    }

    fn plan(&self, program: &Program<'_>) -> Result<Box<dyn Plan>, Refusal> {
        check_selected_collectives(program, &self.selector)?;
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
        if self.tracker.is_here() && self.remove.selector.accepts_call(&step.op) {
            self.requests.add(&step);
        } else {
            out.extend(self.requests.keep(step));
        }
    }
}
