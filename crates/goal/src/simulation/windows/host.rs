//! Host of the windowed engine: idle times of its one processor and its interfaces, and the lanes in which slots wait
//! for them.

use super::super::dependencies::{DependencyTracker, ReadyOperation};
use super::super::lane::{LaneKind, LanePlan};
use super::super::pool::{Pool, Slot, SlotQueue, SlotStack};
use super::event_log::PartitionLog;

/// A host with up to `LANES` lanes.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Host<const LANES: usize> {
    /// Time at which its processor becomes idle \[ps\].
    pub(super) cpu_idle_at: u64,
    /// Bucket of its next turn.
    pub(super) turn_bucket: u64,
    /// Earliest arrival in its mailbox, `u64::MAX` if that is empty \[ps\].
    pub(super) first_arrival: u64,
    /// Mailbox: messages in flight to it.
    pub(super) mailbox: SlotStack,
    /// Bit per lane, set if a slot waits there.
    occupied: u32,
    /// Its first operation.
    pub(super) first_node: u32,
    lanes: [LaneQueue; LANES],
}

const _: () = assert!(size_of::<Host<4>>() == 128);

/// Queue of slots that wait for the same resources of a host.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct LaneQueue {
    /// Later of the time at which the interface becomes idle, if the lane needs one, and the earliest start time of the
    /// head \[ps\]. Times in a lane never decrease.
    ready_at: u64,
    slots: SlotQueue,
}

/// Lane of receives, which do not wait for the processor.
const RECEIVE_LANE: usize = 2;

/// Returns the kind of a lane of a host with one processor.
#[inline]
pub(super) fn lane_kind(lane: usize) -> LaneKind {
    match lane {
        RECEIVE_LANE => LaneKind::Receive,
        3 => LaneKind::Calculate,
        _ if lane.is_multiple_of(2) => LaneKind::Send,
        _ => LaneKind::Arrival,
    }
}

impl<const LANES: usize> Host<LANES> {
    /// Makes a host with this first operation.
    pub(super) fn new(first: u32) -> Self {
        let (mail, lanes) = (SlotStack::default(), [LaneQueue::default(); LANES]);
        Self {
            cpu_idle_at: 0,
            turn_bucket: 0,
            first_arrival: u64::MAX,
            mailbox: mail,
            occupied: 0,
            first_node: first,
            lanes,
        }
    }

    /// Occupies the processor until `processor` and the interface of a lane until `interface` \[ps\].
    #[inline]
    pub(super) fn occupy(&mut self, lane: usize, processor: u64, interface: u64) {
        self.cpu_idle_at = processor;
        let lane = &mut self.lanes[lane];
        lane.ready_at = lane.ready_at.max(interface);
    }

    /// Keeps the processor and the interface of a lane busy until at least `until` \[ps\].
    pub(super) fn occupy_until(&mut self, lane: Option<usize>, until: u64) {
        self.cpu_idle_at = self.cpu_idle_at.max(until);
        if let Some(lane) = lane {
            self.lanes[lane].ready_at = self.lanes[lane].ready_at.max(until);
        }
    }

    /// Makes a slot for a ready operation, with its start time if nothing is before it in its lane.
    #[inline(always)]
    pub(super) fn make_slot(
        &self,
        ready: ReadyOperation,
        program: &DependencyTracker<'_>,
        plan: &LanePlan,
        stamp: u64,
    ) -> Slot {
        let mut slot = program.make_slot(ready, plan, 0, stamp);
        slot.time = self.cpu_idle_at.max(self.lanes[slot.attributes.lane()].ready_at);
        slot
    }

    /// Adds a message to the mailbox.
    #[inline]
    pub(super) fn deliver(&mut self, slot_id: u32, time: u64, pool: &mut Pool) {
        self.first_arrival = self.first_arrival.min(time);
        self.mailbox.push(slot_id, pool);
    }

    /// Returns true if a slot waits in a lane.
    #[inline]
    pub(super) fn is_occupied(&self, lane: usize) -> bool {
        self.occupied & 1 << lane != 0
    }

    /// Appends a slot to a lane.
    #[inline]
    pub(super) fn push(&mut self, number: usize, time: u64, slot_id: u32, pool: &mut Pool) {
        let lane = &mut self.lanes[number];
        if self.occupied & 1 << number == 0 {
            self.occupied |= 1 << number;
            lane.ready_at = lane.ready_at.max(time);
        }
        lane.slots.push(slot_id, pool);
    }

    /// Appends a slot, which may not be in the pool yet, to its lane.
    #[inline]
    pub(super) fn enqueue(&mut self, lane: usize, slot: Slot, slot_id: Option<u32>, pool: &mut Pool) {
        let slot_id = slot_id.unwrap_or_else(|| pool.insert(slot));
        self.push(lane, slot.time, slot_id, pool);
    }

    /// Appends an arriving message to its lane.
    #[inline]
    pub(super) fn enqueue_arrival(&mut self, slot_id: u32, pool: &mut Pool) {
        let Slot { time, attributes: sort, .. } = pool[slot_id];
        self.push(sort.lane() + 1, time, slot_id, pool);
    }

    /// Removes and returns the messages of the mailbox.
    #[inline]
    pub(super) fn take_mailbox(&mut self) -> SlotStack {
        self.first_arrival = u64::MAX;
        std::mem::take(&mut self.mailbox)
    }

    /// Returns true if all lanes are empty.
    #[inline]
    pub(super) fn are_lanes_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Returns the earliest start time in a lane from `time` on \[ps\].
    #[inline]
    pub(super) fn earliest_start(&self, lane: usize, time: u64) -> u64 {
        self.next_time(lane).max(time)
    }

    /// Removes and returns the head of a lane.
    #[inline]
    pub(super) fn pop(&mut self, number: usize, pool: &mut Pool) -> Option<u32> {
        let lane = &mut self.lanes[number];
        let slot_id = lane.slots.pop(pool);
        match lane.slots.first() {
            Some(first) => lane.ready_at = lane.ready_at.max(pool[first].time),
            None => self.occupied &= !(1 << number),
        }
        slot_id
    }

    /// Returns the time and lane of the next event in the lanes; `u64::MAX` if they are empty.
    #[inline]
    pub(super) fn next_event(&self, pool: &Pool, records: &mut PartitionLog<'_>) -> (u64, usize) {
        match self.occupied {
            0 => (u64::MAX, 0),
            one if one.is_power_of_two() => {
                let number = one.trailing_zeros() as usize;
                (self.next_time(number), number)
            }
            _ => self.next_of_several(pool, records),
        }
    }

    /// Returns the time of the next event in an occupied lane \[ps\].
    #[inline]
    fn next_time(&self, number: usize) -> u64 {
        let busy = if number == RECEIVE_LANE { 0 } else { self.cpu_idle_at };
        self.lanes[number].ready_at.max(busy)
    }

    fn next_of_several(&self, pool: &Pool, records: &mut PartitionLog<'_>) -> (u64, usize) {
        let mut occupied = self.occupied;
        let mut next = (u64::MAX, 0);
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let time = self.next_time(number);
            if time < next.0 || time == next.0 && self.is_before(number, next.1, pool, records) {
                next = (time, number);
            }
        }
        next
    }

    /// Returns true if the head of one lane was created before the head of another.
    fn is_before(&self, one: usize, other: usize, pool: &Pool, records: &mut PartitionLog<'_>) -> bool {
        match (self.lanes[one].slots.first(), self.lanes[other].slots.first()) {
            (Some(one), Some(other)) => records.is_before(pool[one].stamp, pool[other].stamp),
            (one, _) => one.is_none(),
        }
    }

    /// Returns the head of a lane.
    pub(super) fn head_of(&self, lane: usize) -> Option<u32> {
        self.lanes[lane].slots.first()
    }

    /// Yields the heads of the lanes, and of the mailbox.
    pub(super) fn heads(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().filter_map(|lane| lane.slots.first()).chain(self.mailbox.top())
    }
}
