//! Event queues: the events of a resource, and the earliest events of its parts.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::{SimDuration, SimTime, State, StateVisitor};

/// A time and a number in one integer, for fast comparison by both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EventKey(u128);

impl EventKey {
    fn new(at: SimTime, number: u64) -> Self {
        Self(u128::from(at.as_picos()) << 64 | u128::from(number))
    }

    fn at(self) -> SimTime {
        SimTime::from_picos((self.0 >> 64) as u64)
    }

    fn number(self) -> u64 {
        self.0 as u64
    }
}

/// The number is saved only: it is that of an event, or of a group.
impl State for EventKey {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if !visitor.saves_whole(self) {
            let mut at = self.at();
            visitor.time(&mut at);
            *self = Self::new(at, self.number());
        }
    }
}

/// Queue of events at fixed instants, ordered by time and then by insertion.
///
/// ```
/// use pdes_core::{EventQueue, SimTime};
///
/// let [now, later] = [1, 2].map(SimTime::from_picos);
/// let mut events = EventQueue::default();
/// [(later, "c"), (now, "a"), (now, "b")].into_iter().for_each(|(at, event)| events.add(at, event));
/// assert_eq!(events.next(), Some(now));
/// assert_eq!([(); 3].map(|()| events.pop_before(later)), [Some((now, "a")), Some((now, "b")), None]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize, State)]
pub struct EventQueue<E> {
    queue: BinaryHeap<Reverse<Entry<E>>>,
    #[state(saved = "numbers only have an order")]
    added: u64,
}

/// Ordered by its key, which is unique.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Entry<E> {
    key: EventKey,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), added: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event. `O(log n)`.
    pub fn add(&mut self, at: SimTime, event: E) {
        self.added += 1;
        self.queue.push(Reverse(Entry { key: EventKey::new(at, self.added), event }));
    }

    /// Returns the number of events added so far.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Returns the queued events in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.queue.iter().map(|entry| &entry.0.event)
    }

    /// Returns the queued events in their order. `O(n log n)`.
    pub fn in_order(&self) -> impl Iterator<Item = &E> {
        let mut entries: Vec<&Entry<E>> = self.queue.iter().map(|entry| &entry.0).collect();
        entries.sort();
        entries.into_iter().map(|entry| &entry.event)
    }

    /// Returns the time of the first event.
    pub fn next(&self) -> Option<SimTime> {
        self.queue.peek().map(|entry| entry.0.key.at())
    }

    /// Removes the first event if its time is before `end` and it is one of the first `added` that were added. `O(log
    /// n)`.
    pub fn pop_early(&mut self, end: SimTime, added: u64) -> Option<(SimTime, E)> {
        if self.queue.peek()?.0.key.number() > added {
            return None;
        }
        self.pop_before(end)
    }

    /// Changes all events, which keep their times. `O(n)`.
    pub fn for_each(&mut self, mut change: impl FnMut(&mut E)) {
        let mut entries = std::mem::take(&mut self.queue).into_vec();
        entries.iter_mut().for_each(|Reverse(entry)| change(&mut entry.event));
        self.queue = entries.into();
    }

    /// Keeps the events that `stays` returns true for, in their order. `O(n)`.
    pub fn retain(&mut self, mut stays: impl FnMut(&E) -> bool) {
        self.queue.retain(|Reverse(entry)| stays(&entry.event));
    }

    /// Returns, for each event in order, whether it is one of the first `added` that were added. `O(n log n)`.
    pub fn are_early(&self, added: u64) -> Vec<bool> {
        let mut keys: Vec<EventKey> = self.queue.iter().map(|entry| entry.0.key).collect();
        keys.sort_unstable();
        keys.into_iter().map(|key| key.number() <= added).collect()
    }

    /// Removes the first event if its time is before `end`. `O(log n)`.
    #[inline]
    pub fn pop_before(&mut self, end: SimTime) -> Option<(SimTime, E)> {
        if self.next()? >= end {
            return None;
        }
        self.queue.pop().map(|Reverse(Entry { key, event })| (key.at(), event))
    }

    /// Removes the first event if its time has come; that of [`SimTime::MAX`] never does. `O(log n)`.
    pub fn pop_due(&mut self, now: SimTime) -> Option<E> {
        self.pop_before(now.saturating_add(SimDuration::from_picos(1))).map(|(_, event)| event)
    }
}

/// Indexed binary heap of the earliest event of each group, such as the flows of a link or the parts of a machine; an event can move in both
/// directions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct IndexedEventHeap {
    /// Heap by time and group: no event is before its parent at half its position, counted from 1. An event that
    /// moves a little, as all do when a change reaches everything, mostly keeps its position.
    heap: Vec<EventKey>,
    /// Heap position of the event of each group, or [`NO_POSITION`].
    positions: Vec<u32>,
}

const NO_POSITION: u32 = u32::MAX;

/// Not compared: what is earliest follows from the groups.
impl State for IndexedEventHeap {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if !visitor.saves_whole(self) && visitor.is_repeating() {
            let Self { heap, positions: _ } = self;
            heap.iter_mut().for_each(|event| event.visit(visitor));
        }
    }
}

impl IndexedEventHeap {
    /// Makes room for this many groups.
    pub fn grow(&mut self, groups: usize) {
        if self.positions.len() < groups {
            self.positions.resize(groups, NO_POSITION);
        }
    }

    /// Sets the earliest event of a group. `O(log n)`.
    #[inline]
    pub fn set(&mut self, group: u32, at: Option<SimTime>) {
        let position = self.positions[group as usize];
        match at {
            Some(at) if position == NO_POSITION => {
                let event = EventKey::new(at, group.into());
                self.heap.push(event);
                self.sift_up(self.heap.len() - 1, event);
            }
            Some(at) => self.reposition(position as usize, EventKey::new(at, group.into())),
            None if position == NO_POSITION => {}
            None => self.remove(position as usize),
        }
    }

    fn remove(&mut self, position: usize) {
        self.positions[self.heap[position].number() as usize] = NO_POSITION;
        if let Some(last) = self.heap.pop()
            && position < self.heap.len()
        {
            self.reposition(position, last);
        }
    }

    /// Moves an event to its position, starting from that of another one.
    fn reposition(&mut self, position: usize, event: EventKey) {
        if position > 0 && event < self.heap[(position - 1) / 2] {
            self.sift_up(position, event);
        } else {
            self.sift_down(position, event);
        }
    }

    fn sift_up(&mut self, mut position: usize, event: EventKey) {
        while position > 0 {
            let above = (position - 1) / 2;
            if self.heap[above] < event {
                break;
            }
            self.put(position, self.heap[above]);
            position = above;
        }
        self.put(position, event);
    }

    fn sift_down(&mut self, mut position: usize, event: EventKey) {
        while let Some(&one) = self.heap.get(2 * position + 1) {
            let other = self.heap.get(2 * position + 2).copied().unwrap_or(one);
            let (below, first) = (2 * position + 1 + usize::from(other < one), one.min(other));
            if event < first {
                break;
            }
            self.put(position, first);
            position = below;
        }
        self.put(position, event);
    }

    fn put(&mut self, position: usize, event: EventKey) {
        self.heap[position] = event;
        self.positions[event.number() as usize] = position as u32;
    }

    /// Returns the time of the event of a group.
    #[inline]
    pub fn of_group(&self, group: u32) -> Option<SimTime> {
        let position = *self.positions.get(group as usize)?;
        self.heap.get(position as usize).map(|event| event.at())
    }

    /// Returns the time of the earliest event.
    #[inline]
    pub fn next(&self) -> Option<SimTime> {
        self.heap.first().map(|event| event.at())
    }

    /// Removes the earliest event if it is before `end`; returns its group, which then has none. On a tie the group
    /// of the lowest number comes first. `O(log n)`.
    #[inline]
    pub fn pop_before(&mut self, end: SimTime) -> Option<u32> {
        let event = self.heap.first().filter(|event| event.at() < end)?;
        let group = event.number() as u32;
        self.remove(0);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_earliest_of_groups_is_that_of_a_list(
            changes in proptest::collection::vec((0_u32..700, proptest::option::of(0_u64..50), any::<bool>()), 1..300),
        ) {
            let mut earliest = IndexedEventHeap::default();
            let mut list = Vec::new();
            for (group, at, takes) in changes {
                let at = at.map(|at| if at == 49 { SimTime::MAX } else { SimTime::from_picos(at) });
                earliest.grow(group as usize + 1);
                list.resize(list.len().max(group as usize + 1), None);
                earliest.set(group, at);
                list[group as usize] = at;
                let first = (0..).zip(&list).filter_map(|(group, &at)| Some((at?, group))).min();
                prop_assert_eq!(earliest.next(), first.map(|(at, _)| at));
                let end = SimTime::from_picos(25);
                if takes {
                    let taken = first.filter(|&(at, _)| at < end).map(|(_, group)| group);
                    prop_assert_eq!(earliest.pop_before(end), taken);
                    taken.into_iter().for_each(|group| list[group as usize] = None);
                }
            }
        }
    }
}
