//! Table with an entry for each request of a rank.

use pdes_core::{State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ObservedRank;
use crate::point_to_point::RequestId;

/// Entries of all requests of a rank, made on first use where the request belongs to an operation, or to a program that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RequestTable<T> {
    of_program: Vec<T>,
    of_parts: Vec<T>,
}

impl<T: Default> RequestTable<T> {
    pub(super) fn new(rank: &ObservedRank<'_>) -> Self {
        // The requests of blocking calls follow the slots of the trace.
        let requests = rank.trace.slots() + 2;
        Self { of_program: (0..requests).map(|_| T::default()).collect(), of_parts: Vec::new() }
    }

    /// Returns the entry of a request, if it has been made.
    #[inline]
    pub(super) fn get(&self, request: RequestId) -> Option<&T> {
        match request.index_or_part() {
            Ok(slot) => self.of_program.get(slot),
            Err(part) => self.of_parts.get(part),
        }
    }

    /// Returns the entry of a request, for a change.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, request: RequestId) -> &mut T {
        match request.index_or_part() {
            Ok(slot) if slot < self.of_program.len() => &mut self.of_program[slot],
            Ok(slot) => entry_mut(&mut self.of_program, slot),
            Err(part) => entry_mut(&mut self.of_parts, part),
        }
    }

    /// Returns whether there may be an entry of a request: those of parts are made on first use.
    pub(super) fn may_have(&self, request: RequestId) -> bool {
        request.index_or_part().map_or(true, |slot| slot < self.of_program.len())
    }

    /// Returns whether another table is one of the same rank.
    pub(super) fn has_slots_of<U>(&self, other: &RequestTable<U>) -> bool {
        self.of_program.len() == other.of_program.len()
    }

    /// Returns all entries.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.of_program.iter_mut().chain(&mut self.of_parts)
    }
}

#[cold]
fn entry_mut<T: Default>(entries: &mut Vec<T>, index: usize) -> &mut T {
    if entries.len() <= index {
        entries.resize_with(index + 1, T::default);
    }
    &mut entries[index]
}

/// An entry that makes no difference is the default one.
impl<T: State + Default + PartialEq + Serialize + DeserializeOwned> State for RequestTable<T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let slots = self.of_program.len();
        if visitor.saves_whole(self) {
            if self.of_program.len() != slots {
                visitor.refuse();
            }
            return;
        }
        let none = T::default();
        for (number, entry) in (0_usize..).zip(self.iter_mut()).filter(|(_, entry)| **entry != none) {
            visitor.compare(&number);
            entry.visit(visitor);
        }
        visitor.compare(&usize::MAX);
    }
}

impl<T> RequestTable<T> {
    /// Returns a table with a function of all entries; `None` where it is `None` of one.
    pub(super) fn try_map<U>(&self, mut map: impl FnMut(&T) -> Option<U>) -> Option<RequestTable<U>> {
        let of_program = self.of_program.iter().map(&mut map).collect::<Option<_>>()?;
        Some(RequestTable { of_program, of_parts: self.of_parts.iter().map(map).collect::<Option<_>>()? })
    }
}
