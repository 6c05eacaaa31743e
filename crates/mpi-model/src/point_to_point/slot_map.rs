//! Map from the slots of the trace to requests of the replay.

use serde::{Deserialize, Serialize};
use trace_mmap::Slot;

/// A permutation of request slots.
///
/// It is the identity until a call completes another request than in the recorded run. From then on, the trace's later uses of
/// the one concern the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SlotMap {
    /// Slot of the replay for each slot of the trace, up to the last one that differs.
    table: Vec<u32>,
    /// Slots that the call in progress has completed so far.
    pub(crate) chosen: Vec<Slot>,
}

impl SlotMap {
    /// Returns the slot of the replay for a slot of the trace.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Slot {
        self.table.get(slot.index()).map_or(slot, |&mapped| Slot::new(mapped))
    }

    /// Swaps the requests of two slots of the trace.
    pub(crate) fn swap(&mut self, one: Slot, other: Slot) {
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
        let mut slot_map = SlotMap::default();
        let [a, b, c] = [0, 1, 2].map(Slot::new);
        slot_map.swap(a, c);
        slot_map.swap(a, b);
        assert_eq!([a, b, c].map(|slot| slot_map.get(slot)), [b, c, a]);
        assert_eq!(slot_map.get(Slot::new(7)), Slot::new(7));
    }
}
