//! Worker pool of the windowed engine: one partition per thread, with a barrier between windows.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pdes_core::Meeting;

use super::super::pool::Pool;
use super::agenda::Agenda;
use super::part::{Letter, Part};
use super::places::{Due, Places, Thresholds};
use crate::parameters::LIMIT;
use crate::threads::on_each;

/// State that the workers share.
struct Crew {
    meeting: Meeting<WORDS>,
    /// Mailbox of each partition, in two sets that alternate between windows: a fast worker may already send while
    /// others still read the messages of the window before.
    mail: [Box<[Mutex<Vec<Letter>>]>; 2],
    /// Number of the next record of each partition.
    ends: Box<[AtomicU32]>,
    /// Pools of the partitions, lent while records are compacted.
    pools: Box<[Mutex<Pool>]>,
}

/// Words of a worker's contribution to a barrier: time of its next event, records, chained comparisons, and from the
/// first worker the two thresholds.
const WORDS: usize = 5;

/// Makes and runs the partitions to their end, each on its own thread.
pub(super) fn run<'a, A: Agenda, const LANES: usize>(
    part: impl Fn(usize) -> Part<'a, A, LANES> + Sync,
    parts: usize,
    places: Places<'a>,
) -> Vec<Part<'a, A, LANES>> {
    let mail = || (0..parts).map(|_| Mutex::default()).collect();
    let crew = Crew {
        meeting: Meeting::new(parts),
        mail: [mail(), mail()],
        ends: (0..parts).map(|_| AtomicU32::new(0)).collect(),
        pools: (0..parts).map(|_| Mutex::new(Pool::new())).collect(),
    };
    let first = std::iter::once(Some(places)).chain(std::iter::repeat_with(|| None));
    on_each((0..parts).zip(first), |(number, places)| {
        let _guard = crew.meeting.break_up_on_panic();
        let mut part = part(number);
        part.begin();
        Member { crew: &crew, me: number, meetings: 0, places }.run(&mut part);
        part
    })
}

/// A worker thread and its progress.
struct Member<'c, 'a> {
    crew: &'c Crew,
    me: usize,
    meetings: usize,
    /// Order numbers of all records; the first worker assigns them.
    places: Option<Places<'a>>,
}

impl Member<'_, '_> {
    /// Runs a partition until no partition has events; returns `None` early if another thread has panicked.
    fn run<A: Agenda, const LANES: usize>(&mut self, part: &mut Part<'_, A, LANES>) -> Option<()> {
        for window in 0_usize.. {
            let mail = &self.crew.mail[window % 2];
            let next = part.next_time();
            for (outbox, mail) in part.outboxes.iter_mut().zip(mail) {
                if !outbox.is_empty() {
                    lock(mail).append(outbox);
                }
            }
            // Relaxed suffices: the barrier below orders this store before the loads by the first worker.
            self.crew.ends[self.me].store(part.work.records.next, Relaxed);
            let records = &part.work.records;
            let Thresholds { placed, limit } =
                self.places.as_ref().map_or(Thresholds::default(), Places::thresholds);
            let all = self.meet([next, records.count(), records.steps, placed, limit])?;
            let [start, records, steps, placed, limit] = all;
            if start == u64::MAX {
                break;
            }
            // The minimum over all workers is the LBTS: it includes the messages sent, so the window that starts there
            // is safe.
            part.take_mail(lock(&mail[self.me]).drain(..));
            match Due::new(records, steps, Thresholds { placed, limit }) {
                Due::Nothing => {}
                Due::Places => self.place(part, start)?,
                Due::Forgetting => self.forget(part, start)?,
            }
            part.run_window((start + part.window).min(LIMIT));
        }
        Some(())
    }

    /// Waits for the other workers; returns the minimum of the first words that they contribute and the sums of the
    /// others.
    fn meet(&mut self, brought: [u64; WORDS]) -> Option<[u64; WORDS]> {
        let all = self.crew.meeting.hold(self.meetings, self.me, brought)?;
        self.meetings += 1;
        let mut sums = [0; WORDS];
        sums[0] = u64::MAX;
        for words in all {
            sums[0] = sums[0].min(words[0]);
            sums[1..].iter_mut().zip(&words[1..]).for_each(|(sum, word)| *sum += word);
        }
        Some(sums)
    }

    /// Lets the first worker assign order numbers to the events before `until`.
    fn place<A: Agenda, const LANES: usize>(
        &mut self,
        part: &mut Part<'_, A, LANES>,
        until: u64,
    ) -> Option<()> {
        if let Some(places) = &mut self.places {
            places.place(&self.crew.ends(), until);
        }
        part.work.records.steps = 0;
        self.meet([0; WORDS]).map(|_| ())
    }

    /// Lets the first worker compact the records of all partitions.
    fn forget<A: Agenda, const LANES: usize>(
        &mut self,
        part: &mut Part<'_, A, LANES>,
        until: u64,
    ) -> Option<()> {
        let crew = self.crew;
        std::mem::swap(&mut *lock(&crew.pools[self.me]), &mut part.work.pool);
        self.meet([0; WORDS])?;
        if let Some(places) = &mut self.places {
            let mut pools: Vec<_> = crew.pools.iter().map(lock).collect();
            let mut pools: Vec<_> = pools.iter_mut().map(|pool| &mut **pool).collect();
            let mut ends = crew.ends();
            places.forget(&mut ends, until, &mut pools);
            crew.ends.iter().zip(ends).for_each(|(end, new)| end.store(new, Relaxed));
        }
        self.meet([0; WORDS])?;
        std::mem::swap(&mut *lock(&crew.pools[self.me]), &mut part.work.pool);
        let records = &mut part.work.records;
        (records.next, records.steps) = (crew.ends[self.me].load(Relaxed), 0);
        Some(())
    }
}

impl Crew {
    fn ends(&self) -> Vec<u32> {
        self.ends.iter().map(|end| end.load(Relaxed)).collect()
    }
}

/// Locks a mutex even if poisoned: after a panic the barrier breaks and all workers end without using the data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
