//! The order of all events, found window by window.

use super::super::host::Next;
use super::sorting::sort;

/// Names something that is created: by its record and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Events that have created something.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The place of each record of earlier windows in the order of all events.
    places: Vec<u32>,
    /// Whether the events of this window are added in the order of all events.
    pub(crate) is_in_order: bool,
    /// The events of this window: when they happened, and the stamp of what happened.
    events: Vec<Next>,
    /// Those events as they are sorted: by what, and their number.
    order: Vec<(u64, u32)>,
    scratch: Vec<(u64, u32)>,
}

impl Records {
    /// Adds an event before all windows, behind those that there are, and returns the number of its record.
    pub(crate) fn seed(&mut self) -> u32 {
        let number = self.places.len() as u32;
        self.places.push(number);
        number
    }

    /// Returns the number that the record of the next event will have.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        (self.places.len() + self.events.len()) as u32
    }

    /// Adds an event of this window, which has created something.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, stamp: u64) {
        if self.is_in_order {
            let number = self.places.len() as u32;
            return self.places.push(number);
        }
        self.events.push(Next { time, stamp });
    }

    /// Returns what stamps are compared by: places, where they are known. Those that are not known belong to events of
    /// this window, and so to one host: they come later, in their own order.
    #[inline]
    pub(crate) fn rank(&self, stamp: u64) -> u64 {
        let record = (stamp >> 32) as usize;
        let place = self.places.get(record).copied().map_or(record as u64, u64::from);
        place << 32 | stamp & u64::from(u32::MAX)
    }

    /// Puts the events of the window into the order of all events, that of time and stamps.
    pub(crate) fn settle(&mut self) {
        let first = self.places.len();
        if self.events.len() < 2 {
            self.places.extend((first as u32..).take(self.events.len()));
            return self.events.clear();
        }
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend((0..).zip(&self.events).map(|(number, event)| (event.time, number)));
        sort(&mut order, &mut self.scratch);
        self.places.resize(first + self.events.len(), UNKNOWN);
        let mut place = first as u32;
        let mut at = 0;
        while let Some(&(time, number)) = order.get(at) {
            let others = order[at + 1..].iter().take_while(|other| other.0 == time).count();
            if others == 0 {
                self.places[first + number as usize] = place;
                place += 1;
            } else {
                self.settle_group(first, &mut order[at..=at + others], &mut place);
            }
            at += 1 + others;
        }
        self.order = order;
        self.events.clear();
    }

    /// Orders events of one time: first what was created before, then what those events have created, and so on.
    fn settle_group(&mut self, first: usize, mut group: &mut [(u64, u32)], place: &mut u32) {
        while !group.is_empty() {
            for (rank, number) in group.iter_mut() {
                let stamp = self.events[*number as usize].stamp;
                let place = self.places.get((stamp >> 32) as usize).copied().unwrap_or(0);
                *rank = u64::from(place) << 32 | stamp & u64::from(u32::MAX);
            }
            sort(group, &mut self.scratch);
            let known = group.partition_point(|&(rank, _)| rank >> 32 != u64::from(UNKNOWN));
            let (settled, rest) = group.split_at_mut(known);
            for &mut (_, number) in settled {
                self.places[first + number as usize] = *place;
                *place += 1;
            }
            group = rest;
        }
    }
}

/// The place of a record whose turn has not come.
pub(crate) const UNKNOWN: u32 = u32::MAX;
