//! What waits: operations that are free, and messages under way.
//!
//! Of a schedule's operations only a few are free at a time. They alone have a place with all that changes, which is
//! given on to the next ones while it is still in the caches; the schedule itself is only read.

use super::memory::growing_table;
use super::program::Sort;

/// An operation that is free, or the message that a send has become.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Slot {
    /// The earliest time at which it happens, of a message that at which it arrives \[ps\].
    pub(crate) time: u64,
    /// Its place in the order of creation.
    pub(crate) stamp: u64,
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    /// The operation; of a message its send.
    pub(crate) node: u32,
    pub(crate) channel: u32,
    /// What stands behind it in the list in which it waits: one more than its index, or 0; anything while it is in none.
    pub(super) behind: u32,
    pub(crate) sort: Sort,
    /// The only edge that leaves the operation, of several their place.
    pub(super) edge: u32,
}

const _: () = assert!(size_of::<Slot>() == 48);

/// The ends of a list of slots that stand behind each other; both are one more than an index, or 0.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl List {
    /// Returns the first slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.first.checked_sub(1)
    }

    /// Adds a slot that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, pool: &mut Pool) {
        pool.slots[slot as usize].behind = 0;
        match self.first {
            0 => self.first = slot + 1,
            _ => pool.slots[self.last as usize - 1].behind = slot + 1,
        }
        self.last = slot + 1;
    }

    /// Takes the first slot.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let slot = self.first()?;
        // The end is of no interest while there is no first one. Nothing is written to the slot: whoever takes it reads all of it
        // next, and would wait until that has reached the cache.
        self.first = pool.slots[slot as usize].behind;
        Some(slot)
    }

    /// Yields all slots.
    pub(crate) fn iter(self, pool: &Pool) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |&slot| pool.slots[slot as usize].behind.checked_sub(1))
    }
}

/// Slots of which the last one comes first: one more than its index, or 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stack(u32);

impl Stack {
    /// Returns the last slot.
    #[inline]
    pub(crate) fn last(self) -> Option<u32> {
        self.0.checked_sub(1)
    }

    /// Returns the slot, if there is one and no other.
    #[inline]
    pub(crate) fn only(self, pool: &Pool) -> Option<u32> {
        self.last().filter(|&slot| pool.slots[slot as usize].behind == 0)
    }

    /// Adds a slot that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, pool: &mut Pool) {
        pool.slots[slot as usize].behind = std::mem::replace(&mut self.0, slot + 1);
    }

    /// Takes the last slot.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let slot = self.last()?;
        self.0 = pool.slots[slot as usize].behind;
        Some(slot)
    }
}

/// All slots.
#[derive(Debug)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    /// Slots that may be taken. Taking one does not read it: in large schedules it is hardly ever in the caches.
    spare: Vec<u32>,
}

/// Makes room for so many slots, as thousands of hosts have free at a time.
const USUAL: usize = 1 << 17;

impl Pool {
    pub(crate) fn new() -> Self {
        Self { slots: growing_table(USUAL), spare: Vec::new() }
    }

    /// Takes a slot.
    ///
    /// There are never more than operations, whose number fits 32 bits.
    #[inline]
    pub(crate) fn take(&mut self, slot: Slot) -> u32 {
        match self.spare.pop() {
            Some(place) => {
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Yields the stamps of all slots.
    pub(crate) fn stamps(&mut self) -> impl Iterator<Item = &mut u64> {
        self.slots.iter_mut().map(|slot| &mut slot.stamp)
    }

    /// Gives a slot back that is in no list.
    #[inline]
    pub(crate) fn give(&mut self, place: u32) {
        self.spare.push(place);
    }
}

impl std::ops::Index<u32> for Pool {
    type Output = Slot;

    #[inline]
    fn index(&self, place: u32) -> &Slot {
        &self.slots[place as usize]
    }
}

impl std::ops::IndexMut<u32> for Pool {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut Slot {
        &mut self.slots[place as usize]
    }
}
