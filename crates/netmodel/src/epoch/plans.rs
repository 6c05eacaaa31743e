//! What will happen in a region.

use super::message::{Departure, FlowKey};

/// What will happen at an instant that is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan<T> {
    /// A message is sent.
    Start(Departure<T>),
    /// The data of a message that nobody else knows of begin to flow, on this way.
    Flow(FlowKey, u32, Departure<T>),
    /// A computation on a host of the region begins.
    Compute(u32, f64, T),
    /// A message is to be announced, on this way.
    Announce(u32, Departure<T>),
}

/// Names a plan until it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(u32);

/// The plans of a region, apart from the queues of when they are due: those move what they hold.
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
    /// Keeps a plan.
    pub(super) fn add(&mut self, plan: Plan<T>) -> Slot {
        let slot = self.vacant.pop().unwrap_or(Slot(self.list.len() as u32));
        match self.list.get_mut(slot.0 as usize) {
            Some(place) => *place = Some(plan),
            None => self.list.push(Some(plan)),
        }
        slot
    }

    /// Takes a plan out.
    ///
    /// # Panics
    /// Where it has been taken before.
    pub(super) fn take(&mut self, slot: Slot) -> Plan<T> {
        self.vacant.push(slot);
        self.list[slot.0 as usize].take().expect("a plan is taken once")
    }

    /// Returns all plans.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Plan<T>> {
        self.list.iter().flatten()
    }
}
