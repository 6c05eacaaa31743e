//! Host of the windowed engine: idle times of its one processor and its interfaces, and the lanes in which slots wait
//! for them.

use super::super::lane::{Plan, What};
use super::super::pool::{List, Pool, Slot, Stack};
use super::super::program::{Program, Ready};
use super::records::Records;

/// A host with up to `LANES` lanes.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Host<const LANES: usize> {
    /// Time at which its processor becomes idle \[ps\].
    pub(super) cpu: u64,
    /// Bucket of its next turn.
    pub(super) visit: u64,
    /// Earliest arrival in its mailbox, `u64::MAX` if that is empty \[ps\].
    pub(super) mail_time: u64,
    /// Mailbox: messages in flight to it.
    pub(super) mail: Stack,
    /// Bit per lane, set if a slot waits there.
    occupied: u32,
    /// Its first operation.
    pub(super) first: u32,
    lanes: [Lane; LANES],
}

const _: () = assert!(size_of::<Host<4>>() == 128);

/// Queue of slots that wait for the same resources of a host.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Lane {
    /// Later of the time at which the interface becomes idle, if the lane needs one, and the earliest start time of the
    /// head \[ps\]. Times in a lane never decrease.
    ready: u64,
    list: List,
}

/// Lane of receives, which do not wait for the processor.
const RECEIVES: usize = 2;

/// Returns the kind of a lane of a host with one processor.
#[inline]
pub(super) fn what(lane: usize) -> What {
    match lane {
        RECEIVES => What::Receive,
        3 => What::Calculate,
        _ if lane.is_multiple_of(2) => What::Send,
        _ => What::Arrive,
    }
}

impl<const LANES: usize> Host<LANES> {
    /// Makes a host with this first operation.
    pub(super) fn new(first: u32) -> Self {
        let (mail, lanes) = (Stack::default(), [Lane::default(); LANES]);
        Self { cpu: 0, visit: 0, mail_time: u64::MAX, mail, occupied: 0, first, lanes }
    }

    /// Occupies the processor until `processor` and the interface of a lane until `interface` \[ps\].
    #[inline]
    pub(super) fn occupy(&mut self, lane: usize, processor: u64, interface: u64) {
        self.cpu = processor;
        let lane = &mut self.lanes[lane];
        lane.ready = lane.ready.max(interface);
    }

    /// Keeps the processor and the interface of a lane busy until at least `until` \[ps\].
    pub(super) fn hold(&mut self, lane: Option<usize>, until: u64) {
        self.cpu = self.cpu.max(until);
        if let Some(lane) = lane {
            self.lanes[lane].ready = self.lanes[lane].ready.max(until);
        }
    }

    /// Makes a slot for a ready operation, with its start time if nothing is before it in its lane.
    #[inline(always)]
    pub(super) fn free(&self, ready: Ready, program: &Program<'_>, plan: &Plan, stamp: u64) -> Slot {
        let mut slot = program.slot(ready, plan, 0, stamp);
        slot.time = self.cpu.max(self.lanes[slot.sort.lane()].ready);
        slot
    }

    /// Adds a message to the mailbox.
    #[inline]
    pub(super) fn post(&mut self, place: u32, time: u64, pool: &mut Pool) {
        self.mail_time = self.mail_time.min(time);
        self.mail.push(place, pool);
    }

    /// Returns true if a slot waits in a lane.
    #[inline]
    pub(super) fn is_occupied(&self, lane: usize) -> bool {
        self.occupied & 1 << lane != 0
    }

    /// Appends a slot to a lane.
    #[inline]
    pub(super) fn push(&mut self, number: usize, time: u64, place: u32, pool: &mut Pool) {
        let lane = &mut self.lanes[number];
        if self.occupied & 1 << number == 0 {
            self.occupied |= 1 << number;
            lane.ready = lane.ready.max(time);
        }
        lane.list.push(place, pool);
    }

    /// Appends a slot, which may not be in the pool yet, to its lane.
    #[inline]
    pub(super) fn wait(&mut self, lane: usize, slot: Slot, place: Option<u32>, pool: &mut Pool) {
        let place = place.unwrap_or_else(|| pool.take(slot));
        self.push(lane, slot.time, place, pool);
    }

    /// Appends an arriving message to its lane.
    #[inline]
    pub(super) fn arrive(&mut self, place: u32, pool: &mut Pool) {
        let Slot { time, sort, .. } = pool[place];
        self.push(sort.lane() + 1, time, place, pool);
    }

    /// Removes and returns the messages of the mailbox.
    #[inline]
    pub(super) fn forget_mail(&mut self) -> Stack {
        self.mail_time = u64::MAX;
        std::mem::take(&mut self.mail)
    }

    /// Returns true if all lanes are empty.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.occupied == 0
    }

    /// Returns the earliest start time in a lane from `time` on \[ps\].
    #[inline]
    pub(super) fn earliest(&self, lane: usize, time: u64) -> u64 {
        self.time(lane).max(time)
    }

    /// Removes and returns the head of a lane.
    #[inline]
    pub(super) fn pop(&mut self, number: usize, pool: &mut Pool) -> Option<u32> {
        let lane = &mut self.lanes[number];
        let place = lane.list.pop(pool);
        match lane.list.first() {
            Some(first) => lane.ready = lane.ready.max(pool[first].time),
            None => self.occupied &= !(1 << number),
        }
        place
    }

    /// Returns the time and lane of the next event in the lanes; `u64::MAX` if they are empty.
    #[inline]
    pub(super) fn next(&self, pool: &Pool, records: &mut Records<'_>) -> (u64, usize) {
        match self.occupied {
            0 => (u64::MAX, 0),
            one if one.is_power_of_two() => {
                let number = one.trailing_zeros() as usize;
                (self.time(number), number)
            }
            _ => self.first_of_several(pool, records),
        }
    }

    /// Returns the time of the next event in an occupied lane \[ps\].
    #[inline]
    fn time(&self, number: usize) -> u64 {
        let busy = if number == RECEIVES { 0 } else { self.cpu };
        self.lanes[number].ready.max(busy)
    }

    fn first_of_several(&self, pool: &Pool, records: &mut Records<'_>) -> (u64, usize) {
        let mut occupied = self.occupied;
        let mut next = (u64::MAX, 0);
        while occupied != 0 {
            let number = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let time = self.time(number);
            if time < next.0 || time == next.0 && self.is_before(number, next.1, pool, records) {
                next = (time, number);
            }
        }
        next
    }

    /// Returns true if the head of one lane was created before the head of another.
    fn is_before(&self, one: usize, other: usize, pool: &Pool, records: &mut Records<'_>) -> bool {
        match (self.lanes[one].list.first(), self.lanes[other].list.first()) {
            (Some(one), Some(other)) => records.is_before(pool[one].stamp, pool[other].stamp),
            (one, _) => one.is_none(),
        }
    }

    /// Returns the head of a lane.
    pub(super) fn first_in(&self, lane: usize) -> Option<u32> {
        self.lanes[lane].list.first()
    }

    /// Yields the heads of the lanes, and of the mailbox.
    pub(super) fn heads(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().filter_map(|lane| lane.list.first()).chain(self.mail.last())
    }
}
