//! Pool of slots: ready operations, and messages in flight or waiting.
//!
//! Only a few operations of a schedule are ready at a time. Only these have a slot with their mutable state, which is
//! reused for the next ones while it is still in the caches; the schedule itself is only read.

use super::dependencies::Attributes;
use super::memory::growing_table;

/// A ready operation, or the message that a send has become.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Slot {
    /// Earliest start time of an operation, arrival time of a message \[ps\].
    pub(crate) time: u64,
    /// Creation order, the tie-breaker between events at equal times.
    pub(crate) stamp: u64,
    /// Length of a message \[B\] or of a computation \[ps\].
    pub(crate) size: u64,
    /// Index of the operation, or of the send of a message.
    pub(crate) node: u32,
    pub(crate) channel: u32,
    /// Next slot in its queue or stack: one more than its id, or 0; meaningless while it is in none.
    pub(super) next: u32,
    pub(crate) attributes: Attributes,
    /// The only edge that leaves the operation, packed; or the index of the first of several.
    pub(super) edge: u32,
}

const _: () = assert!(size_of::<Slot>() == 48);

/// FIFO queue of slots, linked through the slots: first and last, each one more than a slot id, or 0.
#[derive(Clone, Copy, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct SlotQueue {
    first: u32,
    last: u32,
}

impl SlotQueue {
    /// Returns the first slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        self.first.checked_sub(1)
    }

    /// Adds a slot that is in no queue.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, pool: &mut Pool) {
        pool.slots[slot as usize].next = 0;
        match self.first {
            0 => self.first = slot + 1,
            _ => pool.slots[self.last as usize - 1].next = slot + 1,
        }
        self.last = slot + 1;
    }

    /// Removes and returns the first slot.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> Option<u32> {
        let slot = self.first()?;
        // `last` is ignored while the queue is empty. The slot itself is not written: its next owner reads all of it at
        // once, and a load that only partly overlaps a pending store would stall.
        self.first = pool.slots[slot as usize].next;
        Some(slot)
    }

    /// Yields all slots in order.
    pub(crate) fn iter(self, pool: &Pool) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |&slot| pool.slots[slot as usize].next.checked_sub(1))
    }
}

/// Pool of all slots, with a free list.
#[derive(Debug)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    /// Free list. Slots are reused without being read: in large schedules they are hardly ever in the caches.
    free_list: Vec<u32>,
}

/// Initial capacity: the number of slots that thousands of hosts use at a time.
const INITIAL_CAPACITY: usize = 1 << 17;

impl Pool {
    pub(crate) fn new() -> Self {
        Self { slots: growing_table(INITIAL_CAPACITY), free_list: Vec::new() }
    }

    /// Adds a slot and returns its id.
    ///
    /// There are never more slots than operations, whose number fits 32 bits.
    #[inline]
    pub(crate) fn insert(&mut self, slot: Slot) -> u32 {
        match self.free_list.pop() {
            Some(slot_id) => {
                self.slots[slot_id as usize] = slot;
                slot_id
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Removes a slot that is in no queue.
    #[inline]
    pub(crate) fn remove(&mut self, slot_id: u32) {
        self.free_list.push(slot_id);
    }
}

impl std::ops::Index<u32> for Pool {
    type Output = Slot;

    #[inline]
    fn index(&self, slot_id: u32) -> &Slot {
        &self.slots[slot_id as usize]
    }
}

impl std::ops::IndexMut<u32> for Pool {
    #[inline]
    fn index_mut(&mut self, slot_id: u32) -> &mut Slot {
        &mut self.slots[slot_id as usize]
    }
}
