//! The order of all events, found window by window.

use super::super::host::Next;

/// Names something that is created: by its record and its number there.
pub(crate) fn stamp(record: u32, number: u32) -> u64 {
    u64::from(record) << 32 | u64::from(number)
}

/// Events that have created something.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// The place of each record of earlier windows in the order of all events.
    places: Vec<u32>,
    /// The events of this window: when they happened, and the stamp of what happened.
    events: Vec<Next>,
    /// The numbers of those events by their time.
    by_time: Vec<(u64, u32)>,
}

impl Records {
    /// Adds an event before all windows, behind those that there are, and returns the number of its record.
    pub(crate) fn seed(&mut self) -> u32 {
        let number = self.places.len() as u32;
        self.places.push(number);
        number
    }

    /// Adds an event of this window and returns the number of its record.
    #[inline]
    pub(crate) fn open(&mut self, event: Next) -> u32 {
        self.events.push(event);
        (self.places.len() + self.events.len() - 1) as u32
    }

    /// Takes the last event away, which has created nothing.
    #[inline]
    pub(crate) fn abandon(&mut self) {
        self.events.pop();
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
        self.by_time.clear();
        self.by_time.extend((0..).zip(&self.events).map(|(number, event)| (event.time, number)));
        self.by_time.sort_unstable();
        self.places.resize(first + self.events.len(), UNKNOWN);
        let mut place = first as u32;
        let mut by_time = std::mem::take(&mut self.by_time);
        for group in by_time.chunk_by_mut(|one, other| one.0 == other.0) {
            self.settle_group(first, group, &mut place);
        }
        self.by_time = by_time;
        self.events.clear();
    }

    /// Orders events of one time: first what was created before, then what those events have created, and so on.
    fn settle_group(&mut self, first: usize, mut group: &mut [(u64, u32)], place: &mut u32) {
        while !group.is_empty() {
            let (places, events) = (&self.places, &self.events);
            let rank = |number: u32| {
                let stamp = events[number as usize].stamp;
                let place = places.get((stamp >> 32) as usize).copied().unwrap_or(0);
                u64::from(place) << 32 | stamp & u64::from(u32::MAX)
            };
            if group.len() > 1 {
                group.sort_unstable_by_key(|&(_, number)| rank(number));
            }
            let known = group.partition_point(|&(_, number)| rank(number) >> 32 != u64::from(UNKNOWN));
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
