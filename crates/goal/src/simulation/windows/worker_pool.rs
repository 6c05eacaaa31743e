//! Worker pool of the windowed engine: one partition per thread, with a barrier between windows.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pdes_core::Barrier;

use super::super::pool::Pool;
use super::bucket_queue::BucketQueue;
use super::order_numbers::{Maintenance, OrderNumbers, Thresholds};
use super::partition::{Partition, RemoteMessage};
use crate::parameters::TIME_LIMIT;
use crate::threads::map_parallel;

/// State that the workers share.
struct WorkerPool {
    barrier: Barrier<WORDS>,
    /// Mailbox of each partition, in two sets that alternate between windows: a fast worker may already send while
    /// others still read the messages of the window before.
    mailboxes: [Box<[Mutex<Vec<RemoteMessage>>]>; 2],
    /// Number of the next record of each partition.
    ends: Box<[AtomicU32]>,
    /// Pools of the partitions, lent while records are compacted.
    pools: Box<[Mutex<Pool>]>,
}

/// Words of a worker's contribution to a barrier: time of its next event, records, chained comparisons, and from the
/// first worker the two thresholds.
const WORDS: usize = 5;

/// Makes and runs the partitions to their end, each on its own thread.
pub(super) fn run<'a, A: BucketQueue, const LANES: usize>(
    part: impl Fn(usize) -> Partition<'a, A, LANES> + Sync,
    parts: usize,
    places: OrderNumbers<'a>,
) -> Vec<Partition<'a, A, LANES>> {
    let mail = || (0..parts).map(|_| Mutex::default()).collect();
    let shared = WorkerPool {
        barrier: Barrier::new(parts),
        mailboxes: [mail(), mail()],
        ends: (0..parts).map(|_| AtomicU32::new(0)).collect(),
        pools: (0..parts).map(|_| Mutex::new(Pool::new())).collect(),
    };
    let first = std::iter::once(Some(places)).chain(std::iter::repeat_with(|| None));
    map_parallel((0..parts).zip(first), |(number, places)| {
        let _guard = shared.barrier.abort_on_panic();
        let mut part = part(number);
        part.schedule_roots();
        Worker { shared: &shared, me: number, rounds: 0, order_numbers: places }.run(&mut part);
        part
    })
}

/// A worker thread and its progress.
struct Worker<'c, 'a> {
    shared: &'c WorkerPool,
    me: usize,
    rounds: usize,
    /// Order numbers of all records; the first worker assigns them.
    order_numbers: Option<OrderNumbers<'a>>,
}

impl Worker<'_, '_> {
    /// Runs a partition until no partition has events; returns `None` early if another thread has panicked.
    fn run<A: BucketQueue, const LANES: usize>(&mut self, part: &mut Partition<'_, A, LANES>) -> Option<()> {
        for window in 0_usize.. {
            let mail = &self.shared.mailboxes[window % 2];
            let next = part.next_event_bound();
            for (outbox, mail) in part.outgoing.iter_mut().zip(mail) {
                if !outbox.is_empty() {
                    lock(mail).append(outbox);
                }
            }
            // Relaxed suffices: the barrier below orders this store before the loads by the first worker.
            self.shared.ends[self.me].store(part.handler.records.next_record, Relaxed);
            let records = &part.handler.records;
            let Thresholds { numbered: placed, limit } =
                self.order_numbers.as_ref().map_or(Thresholds::default(), OrderNumbers::thresholds);
            let all = self.all_reduce([next, records.count(), records.chained_comparisons, placed, limit])?;
            let [start, records, steps, placed, limit] = all;
            if start == u64::MAX {
                break;
            }
            // The minimum over all workers is the LBTS: it includes the messages sent, so the window that starts there
            // is safe.
            part.receive_messages(lock(&mail[self.me]).drain(..));
            match Maintenance::new(records, steps, Thresholds { numbered: placed, limit }) {
                Maintenance::Nothing => {}
                Maintenance::Numbering => self.assign_order_numbers(part, start)?,
                Maintenance::Compaction => self.compact(part, start)?,
            }
            part.run_window((start + part.window).min(TIME_LIMIT));
        }
        Some(())
    }

    /// Waits for the other workers; returns the minimum of the first words that they contribute and the sums of the
    /// others.
    fn all_reduce(&mut self, brought: [u64; WORDS]) -> Option<[u64; WORDS]> {
        let all = self.shared.barrier.all_reduce(self.rounds, self.me, brought)?;
        self.rounds += 1;
        let mut sums = [0; WORDS];
        sums[0] = u64::MAX;
        for words in all {
            sums[0] = sums[0].min(words[0]);
            sums[1..].iter_mut().zip(&words[1..]).for_each(|(sum, word)| *sum += word);
        }
        Some(sums)
    }

    /// Lets the first worker assign order numbers to the events before `until`.
    fn assign_order_numbers<A: BucketQueue, const LANES: usize>(
        &mut self,
        part: &mut Partition<'_, A, LANES>,
        until: u64,
    ) -> Option<()> {
        if let Some(places) = &mut self.order_numbers {
            places.assign_until(&self.shared.ends(), until);
        }
        part.handler.records.chained_comparisons = 0;
        self.all_reduce([0; WORDS]).map(|_| ())
    }

    /// Lets the first worker compact the records of all partitions.
    fn compact<A: BucketQueue, const LANES: usize>(
        &mut self,
        part: &mut Partition<'_, A, LANES>,
        until: u64,
    ) -> Option<()> {
        let shared = self.shared;
        std::mem::swap(&mut *lock(&shared.pools[self.me]), &mut part.handler.pool);
        self.all_reduce([0; WORDS])?;
        if let Some(places) = &mut self.order_numbers {
            let mut pools: Vec<_> = shared.pools.iter().map(lock).collect();
            let mut pools: Vec<_> = pools.iter_mut().map(|pool| &mut **pool).collect();
            let mut ends = shared.ends();
            places.compact(&mut ends, until, &mut pools);
            shared.ends.iter().zip(ends).for_each(|(end, new)| end.store(new, Relaxed));
        }
        self.all_reduce([0; WORDS])?;
        std::mem::swap(&mut *lock(&shared.pools[self.me]), &mut part.handler.pool);
        let records = &mut part.handler.records;
        (records.next_record, records.chained_comparisons) = (shared.ends[self.me].load(Relaxed), 0);
        Some(())
    }
}

impl WorkerPool {
    fn ends(&self) -> Vec<u32> {
        self.ends.iter().map(|end| end.load(Relaxed)).collect()
    }
}

/// Locks a mutex even if poisoned: after a panic the barrier breaks and all workers end without using the data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
