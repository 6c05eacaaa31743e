//! Tracker of the requests of a program: finds slots that are misused.

use std::collections::BTreeMap;

use crate::call::{Call, Completion, Indexed, RequestUse, Visit};
use crate::channel::Slot;
use crate::record::{CALL, IRECV, ISEND, LOOP_BEGIN, LOOP_END, NULL_REQUEST, Record, TEST, WAIT, WAIT_ALL};
use crate::side_tables::SideTables;

/// State of a request slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SlotState {
    #[default]
    Free,
    Pending,
    /// Persistent request that is not started.
    Inactive,
    /// Persistent request that is started.
    Active,
    /// Request that was freed before it was complete; nothing refers to it again.
    Freed,
}

/// Effect of a part of a program on a slot: the new state for each old one, or `None` if the part is invalid for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transition([Option<SlotState>; SlotState::ALL.len()]);

/// The requests of a rank.
///
/// One pass over a loop stands for all its iterations: the slots change as in the first iteration, and the effect of the body on
/// each slot that it uses, raised to a power, gives the others. The cost is logarithmic in the number of iterations.
#[derive(Debug)]
pub(super) struct RequestTracker {
    slots: Vec<SlotState>,
    open_loops: Vec<OpenLoop>,
}

/// A loop in progress.
#[derive(Debug)]
struct OpenLoop {
    count: u64,
    effects: BTreeMap<u32, Transition>,
    /// Effect on all other slots.
    on_others: Transition,
}

impl RequestTracker {
    pub(super) fn new(slots: u32) -> Self {
        Self { slots: vec![SlotState::Free; slots as usize], open_loops: Vec::new() }
    }

    /// Executes the next record; returns whether it is valid.
    pub(super) fn push(&mut self, record: Record, side: &SideTables) -> bool {
        match record.kind() {
            ISEND | IRECV | NULL_REQUEST => self.post(record.slot(), SlotState::Pending),
            WAIT => self.complete(record.slot()),
            TEST => self.has_request(record.slot()),
            CALL => side.calls.get(record.index() as usize).is_some_and(|call| self.call(call)),
            WAIT_ALL => {
                let wait = |place: &mut SlotState| {
                    place.complete();
                    true
                };
                self.slots.iter_mut().for_each(SlotState::complete);
                if let Some(level) = self.open_loops.last_mut() {
                    level.append_to_others(Transition::of(wait), &BTreeMap::new());
                }
                true
            }
            LOOP_BEGIN => {
                self.open_loops.push(OpenLoop::new(record.amount()));
                true
            }
            LOOP_END => self.open_loops.pop().is_some_and(|level| self.end_loop(level)),
            _ => true,
        }
    }

    /// Ends a loop whose first iteration was executed; returns whether the others are valid.
    fn end_loop(&mut self, level: OpenLoop) -> bool {
        let OpenLoop { count, mut effects, on_others } = level;
        let mut makes_sense = true;
        for (slot, effect) in &mut effects {
            let place = &mut self.slots[*slot as usize];
            match effect.power(count.saturating_sub(1)).apply(*place) {
                Some(after) => *place = after,
                None => makes_sense = false,
            }
            *effect = effect.power(count);
        }
        if let Some(outer) = self.open_loops.last_mut() {
            for (slot, effect) in &effects {
                outer.append(*slot, *effect);
            }
            outer.append_to_others(on_others, &effects);
        }
        makes_sense
    }

    fn call(&mut self, call: &Call) -> bool {
        let mut uses = CallUses { tracker: self, is_valid: true };
        call.visit(&mut uses);
        let is_valid = uses.is_valid;
        is_valid && call.completion().is_none_or(|completion| self.completion(completion))
    }

    fn completion(&mut self, Completion { requests, done, waits }: Completion<'_, Slot>) -> bool {
        match done {
            None => requests.iter().all(|slot| self.complete(*slot)),
            Some(done) => self.complete_some(requests, done, waits),
        }
    }

    fn post(&mut self, slot: Slot, to: SlotState) -> bool {
        self.change(slot, |place| place.transition(SlotState::Free, to))
    }

    fn complete(&mut self, slot: Slot) -> bool {
        self.change(slot, |place| {
            let is_named = place.has_request();
            place.complete();
            is_named
        })
    }

    /// Returns whether a slot has a request that can be referred to.
    fn has_request(&mut self, slot: Slot) -> bool {
        self.change(slot, |place| place.has_request())
    }

    fn complete_some(&mut self, slots: &[Slot], done: &[Slot], waits: bool) -> bool {
        let is_active = |place: &mut SlotState| place.is_active();
        let is_stuck = waits && done.is_empty();
        (!is_stuck || slots.iter().all(|slot| self.change(*slot, |place| !place.is_active())))
            && slots.iter().all(|slot| self.has_request(*slot))
            && done.iter().all(|slot| self.change(*slot, is_active) && self.complete(*slot))
    }

    fn change(&mut self, slot: Slot, change: impl Fn(&mut SlotState) -> bool) -> bool {
        let Some(place) = self.slots.get_mut(slot.index()) else { return false };
        if let Some(level) = self.open_loops.last_mut() {
            level.append(slot.get(), Transition::of(&change));
        }
        change(place)
    }

    /// Returns the number of pending requests.
    pub(super) fn count(&self) -> u64 {
        self.slots.iter().filter(|place| place.is_active()).count() as u64
    }
}

/// Applies what a call does to its requests, except for their completion.
struct CallUses<'a> {
    tracker: &'a mut RequestTracker,
    is_valid: bool,
}

impl Visit<'_, Indexed> for CallUses<'_> {
    fn requests(&mut self, used: RequestUse, slots: &[Slot]) {
        let start = |place: &mut SlotState| place.transition(SlotState::Inactive, SlotState::Active);
        self.is_valid &= slots.iter().all(|&slot| match used {
            RequestUse::Posted => self.tracker.post(slot, SlotState::Pending),
            RequestUse::Created => self.tracker.post(slot, SlotState::Inactive),
            RequestUse::Started => self.tracker.change(slot, start),
            RequestUse::Freed => self.tracker.change(slot, SlotState::free),
            RequestUse::Cancelled => self.tracker.change(slot, |place| place.is_active()),
            RequestUse::Waited | RequestUse::Tested | RequestUse::Done => true,
        });
    }
}

impl OpenLoop {
    fn new(count: u64) -> Self {
        Self { count, effects: BTreeMap::new(), on_others: Transition::identity() }
    }

    /// Appends an effect on a slot.
    fn append(&mut self, slot: u32, next: Transition) {
        let effect = self.effects.entry(slot).or_insert(self.on_others);
        *effect = effect.then(next);
    }

    /// Appends an effect on all slots except `some`.
    fn append_to_others(&mut self, next: Transition, some: &BTreeMap<u32, Transition>) {
        let others = self.effects.iter_mut().filter(|(slot, _)| !some.contains_key(slot));
        others.for_each(|(_, effect)| *effect = effect.then(next));
        self.on_others = self.on_others.then(next);
    }
}

impl Transition {
    fn identity() -> Self {
        Self(SlotState::ALL.map(Some))
    }

    /// Returns the effect of a change that returns whether it is valid.
    fn of(change: impl Fn(&mut SlotState) -> bool) -> Self {
        Self(SlotState::ALL.map(|mut place| change(&mut place).then_some(place)))
    }

    fn apply(self, place: SlotState) -> Option<SlotState> {
        self.0[place as usize]
    }

    fn then(self, next: Self) -> Self {
        Self(self.0.map(|place| place.and_then(|place| next.apply(place))))
    }

    fn power(self, mut count: u64) -> Self {
        let (mut all, mut power) = (Self::identity(), self);
        while count > 0 {
            if count % 2 == 1 {
                all = all.then(power);
            }
            power = power.then(power);
            count /= 2;
        }
        all
    }
}

impl SlotState {
    /// All states, in the order of their declaration.
    const ALL: [Self; 5] = [Self::Free, Self::Pending, Self::Inactive, Self::Active, Self::Freed];

    fn is_active(&self) -> bool {
        matches!(self, Self::Pending | Self::Active)
    }

    fn is_persistent(&self) -> bool {
        matches!(self, Self::Inactive | Self::Active)
    }

    fn has_request(&self) -> bool {
        self.is_active() || self.is_persistent()
    }

    /// Completes the request, if any.
    fn complete(&mut self) {
        *self = if self.is_persistent() { Self::Inactive } else { Self::Free };
    }

    fn free(&mut self) -> bool {
        let was_named = self.has_request();
        *self = if self.is_active() { Self::Freed } else { Self::Free };
        was_named
    }

    /// Changes the state to `to`; returns whether it was `from`.
    fn transition(&mut self, from: Self, to: Self) -> bool {
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
        let (mut pending, side) = (RequestTracker::new(2), SideTables { calls, ..SideTables::default() });
        records.iter().position(|record| !pending.push(*record, &side))
    }

    fn post(slot: u32) -> Record {
        Record::encode(Action::ProcNull { slot: Some(Slot::new(slot)) })
    }

    fn wait(slot: u32) -> Record {
        Record::encode(Action::Wait { slot: Slot::new(slot) })
    }

    #[test]
    fn every_iteration_must_be_valid() {
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
    fn misused_slots_are_found() {
        assert_eq!(follow(&[wait(0)]), Some(0));
        assert_eq!(follow(&[post(0), post(0)]), Some(1));
        assert_eq!(follow(&[post(5)]), Some(0));
    }

    #[test]
    fn persistent_requests_are_started_between_completions() {
        let slot = Slot::new(0);
        let calls = vec![
            Call::RecvInit { from: Source::ProcNull, bytes: Bytes::ZERO, slot },
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
        // The second iteration finds the request that the first one created.
        assert_eq!(follow(&[begin, wait_all, init, end]), Some(3));
        assert_eq!(follow(&[init, start, begin, wait_all, start, end]), None);
        // The first iteration finds it started, the others not, and neither minds.
        assert_eq!(follow(&[init, start, begin, wait(0), free, init, end]), None);
        // A request that is freed before it is complete vanishes with the next wait for all.
        assert_eq!(follow(&[init, start, free, begin, wait_all, begin, init, free, end, end]), None);
        assert_eq!(follow(&[begin, wait_all, begin, init, free, end, init, start, free, end]), None);
        assert_eq!(follow(&[begin, begin, init, free, end, init, start, free, end]), Some(8));
    }
}
