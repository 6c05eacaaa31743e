//! Following the requests of a program: which are pending where.

use std::collections::BTreeMap;

use crate::record::{
    IRECV, IRECV_ANY, ISEND, LOOP_BEGIN, LOOP_END, NULL_REQUEST, Record, TEST, WAIT, WAIT_ALL,
};

/// The pending requests of a rank.
///
/// One pass over a loop stands for all its iterations: what a body does to a slot does not depend on what was there
/// before, or does nothing. So all iterations end alike, and the second one makes sense if each slot is at the end of the
/// first as the body needs it where it first uses it.
#[derive(Debug)]
pub(super) struct Pending {
    slots: Vec<bool>,
    loops: Vec<Level>,
}

/// A loop in progress.
#[derive(Debug, Default)]
struct Level {
    count: u64,
    /// Whether each slot was pending before the body first used it.
    needed: BTreeMap<u32, bool>,
    /// Whether the body has completed all requests: it needs nothing of its begin any more.
    has_waited: bool,
}

impl Pending {
    pub(super) fn new(slots: u32) -> Self {
        Self { slots: vec![false; slots as usize], loops: Vec::new() }
    }

    /// Follows the next record; returns whether it makes sense.
    pub(super) fn push(&mut self, record: Record) -> bool {
        match record.kind() {
            ISEND | IRECV | IRECV_ANY | NULL_REQUEST => self.change(record, false, true),
            WAIT => self.change(record, true, false),
            TEST => self.change(record, true, true),
            WAIT_ALL => {
                self.slots.fill(false);
                self.loops.iter_mut().for_each(|level| level.has_waited = true);
                true
            }
            LOOP_BEGIN => {
                self.loops.push(Level { count: record.amount(), ..Level::default() });
                true
            }
            LOOP_END => self.loops.pop().is_some_and(|level| {
                let is_ready = |(slot, needed): (&u32, &bool)| self.slots[*slot as usize] == *needed;
                level.count < 2 || level.needed.iter().all(is_ready)
            }),
            _ => true,
        }
    }

    fn change(&mut self, record: Record, expected: bool, to: bool) -> bool {
        let slot = record.slot();
        for level in self.loops.iter_mut().filter(|level| !level.has_waited) {
            level.needed.entry(slot.get()).or_insert(expected);
        }
        match self.slots.get_mut(slot.index()) {
            Some(state) => std::mem::replace(state, to) == expected,
            None => false,
        }
    }

    /// Returns the number of pending requests.
    pub(super) fn count(&self) -> u64 {
        self.slots.iter().filter(|is_pending| **is_pending).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::channel::Slot;

    fn follow(records: &[Record]) -> Option<usize> {
        let mut pending = Pending::new(2);
        records.iter().position(|record| !pending.push(*record))
    }

    fn post(slot: u32) -> Record {
        Record::encode(Action::Null { slot: Some(Slot::new(slot)) })
    }

    fn wait(slot: u32) -> Record {
        Record::encode(Action::Wait { slot: Slot::new(slot) })
    }

    #[test]
    fn loops_must_find_what_they_left() {
        let (begin, end) = (Record::loop_begin(2), Record::loop_end());
        let wait_all = Record::encode(Action::WaitAll);
        assert_eq!(follow(&[begin, post(0), wait(0), end]), None);
        assert_eq!(follow(&[post(0), begin, wait(0), post(0), end]), None);
        assert_eq!(follow(&[begin, post(0), end]), Some(2));
        assert_eq!(follow(&[post(0), begin, wait(0), end]), Some(3));
        assert_eq!(follow(&[Record::loop_begin(1), post(0), end]), None);
        // The first iteration may complete more than the others.
        assert_eq!(follow(&[post(0), post(1), begin, wait_all, post(0), end]), None);
        assert_eq!(follow(&[begin, begin, post(1), end, end]), Some(3));
    }

    #[test]
    fn what_is_not_pending_is_not_waited_for() {
        assert_eq!(follow(&[wait(0)]), Some(0));
        assert_eq!(follow(&[post(0), post(0)]), Some(1));
        assert_eq!(follow(&[post(5)]), Some(0));
    }
}
