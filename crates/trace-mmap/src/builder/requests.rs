//! Pending requests of a rank, resolved to slots.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;

use pdes_core::Rank;
use rustc_hash::FxHashMap;

use crate::builder::OpError;
use crate::builder::named_requests::NamedRequest;
use crate::channel::{Slot, Tag};
use crate::record::MAX_SLOTS;
use crate::structure::RequestName;

/// Source, destination and tag by which SimGrid's format identifies a request, as the numbers in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    src: i32,
    dst: i32,
    tag: i32,
}

/// The number for `MPI_ANY_TAG` in a trace.
const ANY_TAG: i32 = -444;
/// The number for `MPI_ANY_SOURCE` in a trace.
const ANY_SOURCE: i32 = -555;
/// The number for `MPI_PROC_NULL` in a trace.
const PROC_NULL: i32 = -666;

impl RequestKey {
    /// Makes a key from the numbers in the text, of which -444 is any tag, -555 any source and -666 `MPI_PROC_NULL`.
    pub const fn new(src: i32, dst: i32, tag: i32) -> Self {
        Self { src, dst, tag }
    }

    /// Makes the key of a send; `None` is `MPI_PROC_NULL`.
    pub(crate) fn send(me: Rank, to: Option<Rank>, tag: Option<Tag>) -> Self {
        Self::new(me.get() as i32, peer_number(to), tag.map_or(ANY_TAG, Tag::get))
    }

    /// Makes the key of a receive; `None` is `MPI_PROC_NULL`.
    pub(crate) fn receive(me: Rank, from: Option<Rank>, tag: Option<Tag>) -> Self {
        Self::new(peer_number(from), me.get() as i32, tag.map_or(ANY_TAG, Tag::get))
    }

    /// Makes the key of a wildcard receive.
    pub(crate) fn receive_from_any(me: Rank, tag: Option<Tag>) -> Self {
        Self::new(ANY_SOURCE, me.get() as i32, tag.map_or(ANY_TAG, Tag::get))
    }
}

fn peer_number(peer: Option<Rank>) -> i32 {
    peer.map_or(PROC_NULL, |rank| rank.get() as i32)
}

/// First-in, first-out queue of the requests of one key, linked through [`SlotEntry::next`].
#[derive(Clone, Copy)]
struct Queue {
    front: Slot,
    back: Slot,
}

/// The contents of a slot.
#[derive(Clone, Copy)]
struct SlotEntry {
    /// The request behind this one in the queue of its key.
    next: Option<Slot>,
    /// Number of requests that the rank posted or started before this one.
    posted: u64,
}

/// Canonical description of the pending requests, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestState {
    /// The queue of each key, sorted by key.
    queues: Vec<(RequestKey, Vec<Slot>)>,
    /// The named requests, sorted by name.
    named: Vec<(RequestName, NamedRequest)>,
    /// All pending requests, in posting order.
    by_posting_order: Vec<Slot>,
    /// Slots of requests that were freed while active.
    freed_active: Vec<Slot>,
}

/// The requests of a rank. Requests of one key complete in posting order.
///
/// Always the lowest free slot is allocated, so that slots are deterministic and as few as possible.
#[derive(Default)]
pub(crate) struct Requests {
    queues: FxHashMap<RequestKey, Queue>,
    slots: Vec<SlotEntry>,
    free_slots: BinaryHeap<Reverse<Slot>>,
    posted: u64,
    pub(super) named: FxHashMap<RequestName, NamedRequest>,
    /// True if any request was named.
    pub(super) has_names: bool,
    /// Slots of requests that were freed while active.
    pub(super) freed_active: Vec<Slot>,
}

impl Requests {
    /// Adds a pending request and returns its slot.
    pub(crate) fn post(&mut self, key: RequestKey) -> Result<Slot, OpError> {
        let slot = self.allocate_slot()?;
        self.append(key, slot);
        Ok(slot)
    }

    /// Allocates the lowest free slot.
    pub(super) fn allocate_slot(&mut self) -> Result<Slot, OpError> {
        let pending = SlotEntry { next: None, posted: self.posted };
        self.posted += 1;
        match self.free_slots.pop() {
            Some(Reverse(slot)) => {
                self.slots[slot.index()] = pending;
                Ok(slot)
            }
            None if self.slots.len() == MAX_SLOTS as usize => {
                Err(OpError::TooManyRequests { limit: MAX_SLOTS })
            }
            None => {
                self.slots.push(pending);
                Ok(Slot::new(self.slots.len() as u32 - 1))
            }
        }
    }

    pub(super) fn release_slot(&mut self, slot: Slot) {
        self.free_slots.push(Reverse(slot));
    }

    /// Makes a request the last one in posting order.
    pub(super) fn mark_newest(&mut self, slot: Slot) {
        self.slots[slot.index()].posted = self.posted;
        self.posted += 1;
    }

    fn append(&mut self, key: RequestKey, slot: Slot) {
        let slots = &mut self.slots;
        self.queues
            .entry(key)
            .and_modify(|queue| {
                slots[queue.back.index()].next = Some(slot);
                queue.back = slot;
            })
            .or_insert(Queue { front: slot, back: slot });
    }

    /// Removes the first request of the key and frees its slot; `None` if none is pending.
    pub(crate) fn complete(&mut self, key: RequestKey) -> Option<Slot> {
        let slot = self.remove_front(key)?;
        self.free_slots.push(Reverse(slot));
        Some(slot)
    }

    /// Moves the first request of the key behind the others, as SimGrid's `test` does; `None` if none is pending.
    pub(crate) fn rotate(&mut self, key: RequestKey) -> Option<Slot> {
        let slot = self.remove_front(key)?;
        self.slots[slot.index()].next = None;
        self.append(key, slot);
        Some(slot)
    }

    fn remove_front(&mut self, key: RequestKey) -> Option<Slot> {
        let queue = self.queues.get_mut(&key)?;
        let slot = queue.front;
        match self.slots[slot.index()].next {
            Some(next) => queue.front = next,
            None => {
                self.queues.remove(&key);
            }
        }
        Some(slot)
    }

    /// Removes all requests and frees their slots.
    pub(crate) fn complete_all(&mut self) {
        // The iteration order of the map has no effect: the heap yields the free slots by number.
        for (_, queue) in self.queues.drain() {
            let rest = iter::successors(Some(queue.front), |slot| self.slots[slot.index()].next);
            self.free_slots.extend(rest.map(Reverse));
        }
        if self.has_names {
            self.complete_all_named();
        }
    }

    /// Returns a description of the pending requests; equal descriptions have equal futures.
    pub(crate) fn state(&self) -> RequestState {
        let in_queue = |queue: &Queue| -> Vec<Slot> {
            iter::successors(Some(queue.front), |slot| self.slots[slot.index()].next).collect()
        };
        let mut queues: Vec<_> = self.queues.iter().map(|(key, queue)| (*key, in_queue(queue))).collect();
        queues.sort_unstable();
        let mut named: Vec<_> = self.named.iter().map(|(name, named)| (*name, *named)).collect();
        named.sort_unstable_by_key(|(name, _)| *name);
        RequestState {
            queues,
            named,
            by_posting_order: self.all_pending(),
            freed_active: self.freed_active.clone(),
        }
    }

    /// Returns all pending requests, in posting order.
    fn all_pending(&self) -> Vec<Slot> {
        let in_queue =
            |queue: &Queue| iter::successors(Some(queue.front), |slot| self.slots[slot.index()].next);
        let unnamed = self.queues.values().flat_map(in_queue);
        let named = self.named.values().filter(|named| named.is_active).map(|named| named.slot);
        let mut pending: Vec<Slot> = unnamed.chain(named).collect();
        pending.sort_unstable_by_key(|slot| self.slots[slot.index()].posted);
        pending
    }

    /// Returns whether any request was named.
    pub(crate) fn has_names(&self) -> bool {
        self.has_names
    }

    /// Returns the number of slots: the largest number of requests that existed at once.
    pub(crate) fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the requests to be waited for at the end: like SimGrid the last one of each key, in posting order; but all of them
    /// if any request was named.
    pub(crate) fn pending_at_end(&self) -> Vec<Slot> {
        if self.has_names {
            return self.all_pending();
        }
        let mut last: Vec<Slot> = self.queues.values().map(|queue| queue.back).collect();
        last.sort_unstable_by_key(|slot| self.slots[slot.index()].posted);
        last
    }

    /// Makes the error that no request of the key is pending.
    #[cold]
    pub(crate) fn not_pending_error(&self, action: &'static str, key: RequestKey) -> OpError {
        const SHOWN: usize = 4;
        let mut pending: Vec<_> = self.queues.keys().map(|key| (key.src, key.dst, key.tag)).collect();
        pending.sort_unstable();
        let more = pending.len().saturating_sub(SHOWN);
        pending.truncate(SHOWN);
        OpError::NoPendingRequest { action, src: key.src, dst: key.dst, tag: key.tag, pending, more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RequestKey = RequestKey::new(0, 1, 7);
    const B: RequestKey = RequestKey::new(2, 0, 7);

    fn slot(number: u32) -> Slot {
        Slot::new(number)
    }

    #[test]
    fn a_key_is_served_in_order_and_the_lowest_slot_is_reused() {
        let mut requests = Requests::default();
        let posted: Vec<_> = [A, A, B, A].into_iter().map(|key| requests.post(key)).collect();
        assert_eq!(posted, [0, 1, 2, 3].map(|number| Ok(slot(number))));
        assert_eq!(requests.complete(A), Some(slot(0)));
        assert_eq!(requests.complete(B), Some(slot(2)));
        assert_eq!(requests.complete(B), None);
        assert_eq!(requests.post(B), Ok(slot(0)));
        assert_eq!(requests.post(B), Ok(slot(2)));
        assert_eq!(requests.slot_count(), 4);
        // Left: A at 1 and 3, B at 0 and 2 (posted last).
        assert_eq!(requests.pending_at_end(), [slot(3), slot(2)]);
    }

    #[test]
    fn a_test_moves_the_request_behind_the_others_of_its_key() {
        let mut requests = Requests::default();
        for key in [A, A, B] {
            requests.post(key).expect("three requests are few");
        }
        assert_eq!(requests.rotate(A), Some(slot(0)));
        assert_eq!(requests.rotate(B), Some(slot(2)));
        assert_eq!(requests.pending_at_end(), [slot(0), slot(2)]);
        assert_eq!(requests.complete(A), Some(slot(1)));
        assert_eq!(requests.complete(A), Some(slot(0)));
        assert_eq!(requests.rotate(A), None);
    }

    #[test]
    fn completing_all_frees_every_slot() {
        let mut requests = Requests::default();
        for key in [A, B, A] {
            requests.post(key).expect("three requests are few");
        }
        requests.complete_all();
        assert_eq!(requests.pending_at_end(), []);
        assert_eq!(requests.complete(A), None);
        assert_eq!(requests.post(B), Ok(slot(0)));
        assert_eq!(requests.slot_count(), 3);
    }
}
