//! Which request stands for which place of the trace.

use serde::{Deserialize, Serialize};
use trace_mmap::Slot;

/// Maps the places of the trace to those where requests are.
///
/// They are the same until a call completes another request than it did in the recorded run. From then on what the trace
/// says of the one concerns the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Places {
    /// The place for each of the trace, up to the last one that is another.
    table: Vec<u32>,
    /// What the call in progress has completed so far.
    pub(super) chosen: Vec<Slot>,
}

impl Places {
    /// Returns where the request of a place of the trace is.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> Slot {
        self.table.get(slot.index()).map_or(slot, |&place| Slot::new(place))
    }

    /// Returns whether no place has ever stood for another.
    pub(super) fn are_those_of_the_trace(&self) -> bool {
        self.table.is_empty()
    }

    /// Lets two places of the trace change what they stand for.
    pub(super) fn swap(&mut self, one: Slot, other: Slot) {
        let needed = one.index().max(other.index()) as u32 + 1;
        let known = self.table.len() as u32;
        self.table.extend(known..needed);
        self.table.swap(one.index(), other.index());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_accumulate() {
        let mut places = Places::default();
        let [a, b, c] = [0, 1, 2].map(Slot::new);
        places.swap(a, c);
        places.swap(a, b);
        assert_eq!([a, b, c].map(|slot| places.of(slot)), [b, c, a]);
        assert_eq!(places.of(Slot::new(7)), Slot::new(7));
    }
}
