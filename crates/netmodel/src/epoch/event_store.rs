//! Storage of a region's scheduled events.

use pdes_core::State;
use serde::{Deserialize, Serialize};

use super::message::{FlowKey, MessageSpec};

/// A scheduled event of a region.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) enum RegionEvent<T> {
    /// A message is sent.
    Send(MessageSpec<T>),
    /// The flow of a message begins that concerns no other region, on this route.
    StartFlow(FlowKey, u32, MessageSpec<T>),
    /// A computation on a host of the region begins.
    Compute(u32, f64, T),
    /// A message must be announced to other regions, on this route.
    Announce(u32, MessageSpec<T>),
}

/// Identifier of a stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, State)]
pub(super) struct EventSlot(u32);

impl EventSlot {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The scheduled events of a region, stored apart from the event queues, which move their entries.
#[derive(Debug, Serialize, Deserialize, State)]
pub(super) struct EventStore<T> {
    list: Vec<Option<RegionEvent<T>>>,
    free_slots: Vec<EventSlot>,
}

impl<T> Default for EventStore<T> {
    fn default() -> Self {
        Self { list: Vec::new(), free_slots: Vec::new() }
    }
}

impl<T: Copy> EventStore<T> {
    /// Stores an event.
    pub(super) fn add(&mut self, event: RegionEvent<T>) -> EventSlot {
        let slot = self.free_slots.pop().unwrap_or(EventSlot(self.list.len() as u32));
        match self.list.get_mut(slot.0 as usize) {
            Some(place) => *place = Some(event),
            None => self.list.push(Some(event)),
        }
        slot
    }

    /// Removes an event.
    ///
    /// # Panics
    /// If it was removed before.
    pub(super) fn take(&mut self, slot: EventSlot) -> RegionEvent<T> {
        self.free_slots.push(slot);
        self.list[slot.0 as usize].take().expect("an event is taken once")
    }

    /// Returns a stored event.
    pub(super) fn get(&self, slot: EventSlot) -> Option<&RegionEvent<T>> {
        self.list.get(slot.0 as usize)?.as_ref()
    }

    /// Puts all events into the order of a list of their slots; returns the new slots by the old ones.
    pub(super) fn reorder(&mut self, slots: &[EventSlot]) -> Vec<EventSlot> {
        let (mut list, mut moved) = (std::mem::take(&mut self.list), Vec::new());
        moved.resize(list.len(), EventSlot(0));
        for &EventSlot(slot) in slots {
            moved[slot as usize] = EventSlot(self.list.len() as u32);
            self.list.push(list[slot as usize].take());
        }
        self.free_slots.clear();
        moved
    }

    /// Returns all stored events.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RegionEvent<T>> {
        self.list.iter().flatten()
    }
}
