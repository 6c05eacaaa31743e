//! Creations of equal communicators.

use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CallOp, CommId, CommunicatorCall, Group, Op};

use crate::transform::selector::{Selector, Tracker};
use crate::transform::{Program, Refusal};

/// The ranks that create communicators together: those of a parent or, by `comm_create_group`, those of a group.
type Creators = (CommId, Option<Arc<Group>>);

/// A creation of a communicator on a rank.
#[derive(Debug)]
pub(super) struct Creation {
    creators: Creators,
    /// Its number among those of the creators.
    number: usize,
    is_selected: bool,
    /// The communicator, if the rank belongs to it.
    new: Option<(CommId, Arc<Group>)>,
}

/// Follows the creations of communicators of a rank.
#[derive(Debug)]
pub(super) struct Creations<'s> {
    selector: &'s Selector,
    tracker: Tracker<'s>,
    numbers: FxHashMap<Creators, usize>,
}

impl<'s> Creations<'s> {
    pub(super) fn new(selector: &'s Selector, rank: Rank) -> Self {
        Self { selector, tracker: Tracker::new(selector, rank), numbers: FxHashMap::default() }
    }

    /// Follows an operation; returns the creation if it is one. Parents are the first ones of those that are equal.
    pub(super) fn follow(&mut self, op: &Op, equal: &Equal) -> Option<Creation> {
        self.tracker.follow(op);
        let Op::Call(CallOp::NewCommunicator { parent, new, kind }) = op else { return None };
        if *kind == CommunicatorCall::Define {
            return None;
        }
        let group = new.as_ref().filter(|_| *kind == CommunicatorCall::CreateGroup);
        let creators = (equal.first(*parent), group.map(|(_, group)| Arc::clone(group)));
        let number = self.numbers.entry(creators.clone()).or_default();
        *number += 1;
        // A window has memory of its own.
        let is_selected =
            self.tracker.is_here() && self.selector.accepts_call(op) && *kind != CommunicatorCall::Window;
        Some(Creation { creators, number: *number - 1, is_selected, new: new.clone() })
    }
}

/// The creations of the same ranks, by their numbers.
#[derive(Debug, Default)]
struct Together {
    /// The first rank that makes them.
    first: Option<Rank>,
    /// A number for each creation, equal for those of equal results on all ranks so far.
    classes: Vec<u32>,
    is_selected: Vec<bool>,
    /// For each creation the first one that is equal to it and selected, or itself.
    earlier: Vec<usize>,
}

/// Communicators that are equal to earlier ones.
#[derive(Debug, Default)]
pub(super) struct Equal {
    /// The first communicator of those that are equal, for each of the others.
    pub(super) first: FxHashMap<CommId, CommId>,
    /// Number of communicators that are equal to a first one, with itself.
    counts: FxHashMap<CommId, u32>,
    removed: FxHashMap<Creators, Vec<bool>>,
}

impl Equal {
    /// Returns the first of the communicators that are equal to one.
    pub(super) fn first(&self, id: CommId) -> CommId {
        self.first.get(&id).copied().unwrap_or(id)
    }

    /// Returns the number of communicators that are equal to a first one, with itself.
    pub(super) fn count(&self, first: CommId) -> u32 {
        self.counts.get(&first).copied().unwrap_or(1)
    }

    pub(super) fn is_removed(&self, creation: &Creation) -> bool {
        let removed = self.removed.get(&creation.creators);
        removed.and_then(|removed| removed.get(creation.number)).copied().unwrap_or_default()
    }

    /// Finds the communicators that are equal to earlier ones if parents are those of `parents`.
    ///
    /// # Errors
    /// Fails if a creation is selected on some ranks only.
    pub(super) fn find(selector: &Selector, program: &Program<'_>, parents: &Self) -> Result<Self, Refusal> {
        let mut all: FxHashMap<Creators, Together> = FxHashMap::default();
        let mut groups: FxHashMap<Option<Arc<Group>>, u32> = FxHashMap::default();
        // Classes of the creations of the same ranks that give them the same groups.
        let mut classes: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for rank in program.ranks() {
            let mut creations = Creations::new(selector, rank);
            for step in program.steps(rank) {
                let Some(creation) = creations.follow(&step.op, parents) else { continue };
                let Creation { creators, number, is_selected, new } = creation;
                let together = all.entry(creators.clone()).or_default();
                let first = *together.first.get_or_insert(rank);
                if number == together.classes.len() && first == rank {
                    together.classes.push(0);
                    together.is_selected.push(is_selected);
                }
                let Some(class) = together.classes.get_mut(number) else { continue };
                if together.is_selected[number] != is_selected {
                    let reason = format!(
                        "it is creation {number} on communicator {}, of rank {first}, too: select it on all ranks, or on none",
                        creators.0
                    );
                    return Err(Refusal::at(rank, step.action, reason));
                }
                let next = groups.len() as u32;
                let group = *groups.entry(new.map(|(_, group)| group)).or_insert(next);
                let next = classes.len() as u32 + 1;
                *class = *classes.entry((*class, group)).or_insert(next);
            }
        }
        for together in all.values_mut() {
            let mut known: FxHashMap<u32, usize> = FxHashMap::default();
            let earlier = together.classes.iter().zip(&together.is_selected).enumerate();
            together.earlier = earlier
                .map(|(number, (class, is_selected))| {
                    let first = *known.entry(*class).or_insert(number);
                    if *is_selected { first } else { number }
                })
                .collect();
        }
        Ok(Self::of(&all, selector, program, parents))
    }

    /// Collects the communicators of removed creations.
    fn of(
        all: &FxHashMap<Creators, Together>,
        selector: &Selector,
        program: &Program<'_>,
        parents: &Self,
    ) -> Self {
        let mut equal = Self::default();
        for (creators, together) in all {
            let removed = together.earlier.iter().enumerate().map(|(number, first)| number != *first);
            equal.removed.insert(creators.clone(), removed.collect());
        }
        for rank in program.ranks() {
            let mut creations = Creations::new(selector, rank);
            let mut made: FxHashMap<Creators, Vec<Option<CommId>>> = FxHashMap::default();
            for step in program.steps(rank) {
                let Some(creation) = creations.follow(&step.op, parents) else { continue };
                let own = made.entry(creation.creators.clone()).or_default();
                let new = creation.new.map(|(id, _)| id);
                own.push(new);
                let earlier = all.get(&creation.creators).and_then(|all| all.earlier.get(creation.number));
                let first = earlier.filter(|earlier| **earlier != creation.number);
                if let (Some(id), Some(Some(first))) = (new, first.map(|first| own[*first])) {
                    equal.first.insert(id, first);
                }
            }
        }
        for first in equal.first.values() {
            *equal.counts.entry(*first).or_insert(1) += 1;
        }
        equal
    }
}
