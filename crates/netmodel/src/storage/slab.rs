//! Values with numbers that are used again.

use pdes_core::State;
use serde::{Deserialize, Serialize};

/// Values by their numbers; a new value gets the number that became free last, and the first one if there are no others: numbers depend
/// on what has happened since there were none.
///
/// The crate `slab` forgets the order of free numbers when it is stored, so that a resumed run would number transfers differently.
#[derive(Debug, Serialize, Deserialize, State)]
pub(super) struct Slab<V> {
    values: Vec<Option<V>>,
    free: Vec<u32>,
}

impl<V> Default for Slab<V> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<V> Slab<V> {
    pub(super) fn insert(&mut self, value: V) -> u32 {
        if let Some(number) = self.free.pop()
            && let Some(place) = self.values.get_mut(number as usize)
        {
            *place = Some(value);
            return number;
        }
        self.values.push(Some(value));
        self.values.len() as u32 - 1
    }

    pub(super) fn get(&self, number: u32) -> Option<&V> {
        self.values.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut V> {
        self.values.get_mut(number as usize)?.as_mut()
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<V> {
        let value = self.values.get_mut(number as usize)?.take();
        if value.is_some() {
            self.free.push(number);
        }
        if self.is_empty() {
            self.values.clear();
            self.free.clear();
        }
        value
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.values.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
    }
}
