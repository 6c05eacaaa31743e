//! Where workers wait for each other, and learn how all of them stand.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::SimTime;
use crate::cluster::patience::Patience;

/// Looks before a worker offers its core to others: a meeting of workers that have a core each takes less.
const LOOKS_BEFORE_YIELD: u32 = 2000;

/// How regions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Letters that were sent in this phase.
    pub(super) letters: u64,
    /// The next event of any.
    pub(super) event: SimTime,
    /// The next boundary that matters to any.
    pub(super) boundary: SimTime,
    /// The earliest failure of any.
    pub(super) failure: SimTime,
    /// When a process has met a conditional event.
    pub(super) conditional: SimTime,
}

impl Standing {
    pub(super) const NOTHING: Self = Self {
        letters: 0,
        event: SimTime::MAX,
        boundary: SimTime::MAX,
        failure: SimTime::MAX,
        conditional: SimTime::MAX,
    };

    pub(super) fn merge(&mut self, other: Self) {
        self.letters += other.letters;
        self.event = self.event.min(other.event);
        self.boundary = self.boundary.min(other.boundary);
        self.failure = self.failure.min(other.failure);
        self.conditional = self.conditional.min(other.conditional);
    }
}

/// A barrier that sums up what workers bring to it.
pub(super) struct Meeting {
    arrived: CachePadded<AtomicUsize>,
    held: CachePadded<AtomicUsize>,
    /// What each worker brings, in turn for two meetings: a fast worker may come to the next one while others still read.
    slots: [Box<[CachePadded<Slot>]>; 2],
    is_broken: AtomicBool,
}

#[derive(Default)]
struct Slot([AtomicU64; 5]);

impl Slot {
    fn write(&self, standing: Standing) {
        let Standing { letters, event, boundary, failure, conditional } = standing;
        let [event, boundary, failure, conditional] =
            [event, boundary, failure, conditional].map(SimTime::as_picos);
        let words = [letters, event, boundary, failure, conditional];
        // Relaxed, as below: the counters of the meeting order them.
        self.0.iter().zip(words).for_each(|(slot, word)| slot.store(word, Ordering::Relaxed));
    }

    fn read(&self) -> Standing {
        let word = |word: usize| self.0[word].load(Ordering::Relaxed);
        let [event, boundary, failure, conditional] = [1, 2, 3, 4].map(word).map(SimTime::from_picos);
        Standing { letters: word(0), event, boundary, failure, conditional }
    }
}

impl Meeting {
    pub(super) fn new(workers: usize) -> Self {
        let slots = || (0..workers).map(|_| CachePadded::default()).collect();
        Self {
            arrived: CachePadded::default(),
            held: CachePadded::default(),
            slots: [slots(), slots()],
            is_broken: AtomicBool::new(false),
        }
    }

    /// Waits for all workers to come to their meeting number `number`; returns what they bring together, `None` where one
    /// of them will never come.
    pub(super) fn hold(&self, number: usize, me: usize, brought: Standing) -> Option<Standing> {
        let slots = &self.slots[number % 2];
        slots[me].write(brought);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == slots.len() {
            self.arrived.store(0, Ordering::Relaxed);
            self.held.store(number + 1, Ordering::Release);
        } else {
            self.wait(number + 1)?;
        }
        let mut all = Standing::NOTHING;
        slots.iter().for_each(|slot| all.merge(slot.read()));
        Some(all)
    }

    fn wait(&self, number: usize) -> Option<()> {
        let (mut looks, mut patience) = (0, Patience::new());
        while self.held.load(Ordering::Acquire) < number {
            if self.is_broken.load(Ordering::Relaxed) {
                return None;
            }
            looks += 1;
            if looks < LOOKS_BEFORE_YIELD {
                std::hint::spin_loop();
            } else {
                patience.pause();
            }
        }
        Some(())
    }

    /// Ends the wait of all others: a worker has panicked.
    pub(super) fn break_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_learn_the_sum_of_each_meeting() {
        let meeting = Meeting::new(3);
        std::thread::scope(|scope| {
            for me in 0..3_u64 {
                let meeting = &meeting;
                scope.spawn(move || {
                    for number in 0..2000 {
                        let event = SimTime::from_picos(1 + number as u64 * 3 + me);
                        let brought = Standing { letters: me, event, ..Standing::NOTHING };
                        let all = meeting.hold(number, me as usize, brought).unwrap();
                        assert_eq!((all.letters, all.event.as_picos()), (3, 1 + number as u64 * 3));
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_a_worker_that_is_gone() {
        let meeting = Meeting::new(2);
        meeting.break_up();
        assert_eq!(meeting.hold(0, 0, Standing::NOTHING), None);
    }
}
