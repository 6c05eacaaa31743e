//! `remove`: collective operations do not take place.

use std::collections::BTreeMap;

use pdes_core::Rank;
use trace_mmap::CommId;
use trace_mmap::folded::{FoldedCursor, FoldedSequence, State};

use super::keys::Keys;
use super::requests::RemovedRequests;
use super::selector::{Select, Tracker, collective};
use super::state::{Count, Stateful};
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
type Selected = (Rank, FoldedSequence<bool>);

/// Checks that whoever selects a collective operation selects it on all ranks of its communicator: `select` begins the selection of
/// the operations of a rank, in order.
pub(super) fn check_collectives<S: Select>(
    program: &Program<'_>,
    select: impl Fn(Rank) -> S,
) -> Result<(), Refusal> {
    let mut by_communicator: BTreeMap<CommId, Selected> = BTreeMap::new();
    for rank in program.ranks() {
        let mut values = (select(rank), OnRank::default());
        program.walk(rank, &mut values, |(select, OnRank { own, others, numbers }), step| {
            let is_selected = select.selects(&step.op);
            let Some((name, communicator)) = collective(&step.op) else { return Ok(()) };
            let number = numbers.entry(communicator).or_default();
            number.0 += 1;
            let Some((first, selected)) = by_communicator.get(&communicator) else {
                own.entry(communicator).or_default().push(is_selected);
                return Ok(());
            };
            let flags = others.entry(communicator).or_insert_with(|| selected.cursor());
            if flags.next().is_none_or(|first| *first == is_selected) {
                return Ok(());
            }
            let (keeps, removes) = if is_selected { (*first, "it") } else { (rank, "the other one") };
            let number = number.0 - 1;
            let reason = format!(
                "{name} is operation {number} on communicator {}, of rank {first}, too; {removes} would remove it, and rank {keeps} would wait \
                 forever: select it on all ranks, or on none",
                communicator.get()
            );
            Err(Refusal::at(rank, step.action, reason))
        })?;
        let (_, OnRank { own, .. }) = values;
        by_communicator.extend(own.into_iter().map(|(communicator, mut flags)| {
            flags.merge_equal();
            (communicator, (rank, flags))
        }));
    }
    Ok(())
}

/// Follows the collective operations of a rank.
#[derive(Default)]
struct OnRank<'p> {
    /// The flags on communicators that no rank before has used.
    own: BTreeMap<CommId, FoldedSequence<bool>>,
    /// Those of other ranks on the others.
    others: BTreeMap<CommId, FoldedCursor<'p, bool>>,
    /// Numbers of operations.
    numbers: BTreeMap<CommId, Count>,
}

impl Stateful for OnRank<'_> {
    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.own, &mut self.others, &mut self.numbers).state(state);
    }
}

/// Checks that a selector selects collective operations on all ranks of their communicators, or on none.
pub(super) fn check_selected_collectives(program: &Program<'_>, selector: &Selector) -> Result<(), Refusal> {
    check_collectives(program, |rank| Tracker::new(selector, rank))
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
        Box::new(WithoutCollectives { tracker, requests: RemovedRequests::default() })
    }
}

#[derive(Debug)]
struct WithoutCollectives<'p> {
    tracker: Tracker<'p>,
    requests: RemovedRequests,
}

impl Rewrite for WithoutCollectives<'_> {
    fn apply(&mut self, step: Step, out: &mut Vec<Step>) {
        if self.tracker.selects(&step.op) {
            self.requests.add(&step);
        } else {
            out.extend(self.requests.keep(step));
        }
    }

    fn state(&mut self, state: &mut State<'_>) {
        (&mut self.tracker, &mut self.requests).state(state);
    }
}
