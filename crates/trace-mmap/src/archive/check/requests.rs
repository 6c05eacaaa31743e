//! Following the requests of a program: which are pending where.

use std::collections::BTreeMap;

use crate::call::Call;
use crate::channel::Slot;
use crate::record::{CALL, IRECV, ISEND, LOOP_BEGIN, LOOP_END, NULL_REQUEST, Record, TEST, WAIT, WAIT_ALL};
use crate::side::Side;

/// What is at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Free,
    Pending,
    /// A persistent request that is not started.
    Inactive,
    /// A persistent request that is started.
    Active,
    /// Freed before it was complete: nothing names it again.
    Forgotten,
}

/// What was at a place before the body of a loop first used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Exactly(Place),
    /// The body had completed all requests: only whether it is persistent matters.
    Persistent(bool),
}

/// The requests of a rank.
///
/// One pass over a loop stands for all its iterations: what a body does to a place depends on what is there when the body first
/// uses it. So all iterations are alike if each of these places is at the end of the body as it was then.
#[derive(Debug)]
pub(super) struct Pending {
    places: Vec<Place>,
    loops: Vec<Level>,
}

/// A loop in progress.
#[derive(Debug, Default)]
struct Level {
    count: u64,
    needed: BTreeMap<u32, Needed>,
    /// Whether the body has completed all requests.
    has_waited: bool,
}

impl Pending {
    pub(super) fn new(slots: u32) -> Self {
        Self { places: vec![Place::Free; slots as usize], loops: Vec::new() }
    }

    /// Follows the next record; returns whether it makes sense.
    pub(super) fn push(&mut self, record: Record, side: &Side) -> bool {
        match record.kind() {
            ISEND | IRECV | NULL_REQUEST => self.post(record.slot(), Place::Pending),
            WAIT => self.complete(record.slot()),
            TEST => self.is_named(record.slot()),
            CALL => side.calls.get(record.index() as usize).is_some_and(|call| self.call(call)),
            WAIT_ALL => {
                self.places.iter_mut().for_each(Place::wait);
                self.loops.iter_mut().for_each(|level| level.has_waited = true);
                true
            }
            LOOP_BEGIN => {
                self.loops.push(Level { count: record.amount(), ..Level::default() });
                true
            }
            LOOP_END => self.loops.pop().is_some_and(|level| {
                let is_ready = |(slot, needed): (&u32, &Needed)| needed.is_met(self.places[*slot as usize]);
                level.count < 2 || level.needed.iter().all(is_ready)
            }),
            _ => true,
        }
    }

    fn call(&mut self, call: &Call) -> bool {
        match call {
            Call::Isend { slot, .. } | Call::Irecv { slot, .. } => self.post(*slot, Place::Pending),
            Call::Collective { slot, .. } | Call::NeighborAlltoall { slot, .. } => {
                slot.is_none_or(|slot| self.post(slot, Place::Pending))
            }
            Call::SendInit { slot, .. } | Call::RecvInit { slot, .. } => self.post(*slot, Place::Inactive),
            Call::Start { slots } => slots
                .iter()
                .all(|slot| self.change(*slot, |place| place.becomes(Place::Inactive, Place::Active))),
            Call::Free { slot } => self.change(*slot, Place::forget),
            Call::Waitall { slots } | Call::Testall { slots, done: true } => {
                slots.iter().all(|slot| self.complete(*slot))
            }
            Call::Testall { slots, done: false } => slots.iter().all(|slot| self.is_named(*slot)),
            Call::Waitany { slots, done } => self.complete_some(slots, done.as_slice(), true),
            Call::Waitsome { slots, done } => self.complete_some(slots, done, true),
            Call::Testany { slots, done } => self.complete_some(slots, done.as_slice(), false),
            Call::Testsome { slots, done } => self.complete_some(slots, done, false),
            Call::Test { slot, done: true } => self.complete(*slot),
            Call::Test { slot, done: false } => self.is_named(*slot),
            Call::Cancel { slot, .. } => self.change(*slot, |place| place.is_active()),
            _ => true,
        }
    }

    fn post(&mut self, slot: Slot, to: Place) -> bool {
        self.change(slot, |place| place.becomes(Place::Free, to))
    }

    fn complete(&mut self, slot: Slot) -> bool {
        self.change(slot, |place| {
            let is_named = place.is_named();
            place.wait();
            is_named
        })
    }

    /// Returns whether a place has a request that can be named.
    fn is_named(&mut self, slot: Slot) -> bool {
        self.change(slot, |place| place.is_named())
    }

    fn complete_some(&mut self, slots: &[Slot], done: &[Slot], waits: bool) -> bool {
        let is_active = |place: &mut Place| place.is_active();
        let is_stuck = waits && done.is_empty() && slots.iter().any(|slot| self.change(*slot, is_active));
        !is_stuck
            && slots.iter().all(|slot| self.is_named(*slot))
            && done.iter().all(|slot| self.change(*slot, is_active) && self.complete(*slot))
    }

    fn change(&mut self, slot: Slot, change: impl Fn(&mut Place) -> bool) -> bool {
        let Some(place) = self.places.get_mut(slot.index()) else { return false };
        for level in &mut self.loops {
            let needed = match level.has_waited {
                true => Needed::Persistent(place.is_persistent()),
                false => Needed::Exactly(*place),
            };
            level.needed.entry(slot.get()).or_insert(needed);
        }
        change(place)
    }

    /// Returns the number of pending requests.
    pub(super) fn count(&self) -> u64 {
        self.places.iter().filter(|place| place.is_active()).count() as u64
    }
}

impl Needed {
    fn is_met(self, place: Place) -> bool {
        match self {
            Self::Exactly(needed) => needed == place,
            Self::Persistent(needed) => needed == place.is_persistent(),
        }
    }
}

impl Place {
    fn is_active(&self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }

    fn is_persistent(&self) -> bool {
        matches!(self, Self::Inactive | Self::Active)
    }

    fn is_named(&self) -> bool {
        self.is_active() || self.is_persistent()
    }

    /// Completes what is there.
    fn wait(&mut self) {
        *self = if self.is_persistent() { Self::Inactive } else { Self::Free };
    }

    fn forget(&mut self) -> bool {
        let was_named = self.is_named();
        *self = if self.is_active() { Self::Forgotten } else { Self::Free };
        was_named
    }

    /// Puts something in place of something else; returns whether that was there.
    fn becomes(&mut self, from: Self, to: Self) -> bool {
        std::mem::replace(self, to) == from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::call::{CallId, Source};
    use pdes_core::Bytes;

    fn follow(records: &[Record]) -> Option<usize> {
        follow_calls(records, Vec::new())
    }

    fn follow_calls(records: &[Record], calls: Vec<Call>) -> Option<usize> {
        let (mut pending, side) = (Pending::new(2), Side { calls, ..Side::default() });
        records.iter().position(|record| !pending.push(*record, &side))
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

    #[test]
    fn persistent_requests_are_started_between_completions() {
        let slot = Slot::new(0);
        let calls = vec![
            Call::RecvInit { from: Source::Nobody, bytes: Bytes::ZERO, slot },
            Call::Start { slots: [slot].into() },
            Call::Free { slot },
        ];
        let [init, start, free] = [0, 1, 2].map(|id| Record::encode(Action::Call(CallId::new(id))));
        let (begin, end, wait_all) =
            (Record::loop_begin(2), Record::loop_end(), Record::encode(Action::WaitAll));
        let follow = |records: &[Record]| follow_calls(records, calls.clone());
        assert_eq!(follow(&[init, begin, start, wait(0), end, wait(0), free, post(0)]), None);
        assert_eq!(follow(&[init, start, start]), Some(2));
        assert_eq!(follow(&[init, begin, start, end]), Some(3));
        assert_eq!(follow(&[init, start, free, post(0)]), Some(3));
        // It is there in the second iteration, where the first one made it.
        assert_eq!(follow(&[begin, wait_all, init, end]), Some(3));
        assert_eq!(follow(&[init, start, begin, wait_all, start, end]), None);
    }
}
