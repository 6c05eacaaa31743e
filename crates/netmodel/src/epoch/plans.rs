//! Storage of a region's scheduled events.

use super::message::{Departure, FlowKey};

/// A scheduled event of a region.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan<T> {
    /// A message is sent.
    Start(Departure<T>),
    /// The flow of a message begins that concerns no other region, on this route.
    Flow(FlowKey, u32, Departure<T>),
    /// A computation on a host of the region begins.
    Compute(u32, f64, T),
    /// A message must be announced to other regions, on this route.
    Announce(u32, Departure<T>),
}

/// Identifier of a stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

/// The scheduled events of a region, stored apart from the event queues, which move their entries.
#[derive(Debug)]
pub(super) struct Plans<T> {
    list: Vec<Option<Plan<T>>>,
    vacant: Vec<Slot>,
}

impl<T> Default for Plans<T> {
    fn default() -> Self {
        Self { list: Vec::new(), vacant: Vec::new() }
    }
}

impl<T: Copy> Plans<T> {
    /// Stores an event.
    pub(super) fn add(&mut self, plan: Plan<T>) -> Slot {
        let slot = self.vacant.pop().unwrap_or(Slot(self.list.len() as u32));
        match self.list.get_mut(slot.0 as usize) {
            Some(place) => *place = Some(plan),
            None => self.list.push(Some(plan)),
        }
        slot
    }

    /// Removes an event.
    ///
    /// # Panics
    /// If it was removed before.
    pub(super) fn take(&mut self, slot: Slot) -> Plan<T> {
        self.vacant.push(slot);
        self.list[slot.0 as usize].take().expect("an event is taken once")
    }

    /// Returns all stored events.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Plan<T>> {
        self.list.iter().flatten()
    }
}
