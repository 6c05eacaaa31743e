//! A barrier of workers with a reduction.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};

/// Largest number of polls before a worker yields its core: a barrier of workers that have a core each takes less.
const MAX_POLLS: u32 = 2000;
/// A worker tries the largest number of polls again at every barrier whose number is a multiple of this.
const BARRIERS_PER_TRIAL: usize = 128;
/// Number of times that a worker yields its core before it sleeps: to wake it up costs more than a few of them.
const YIELDS_BEFORE_SLEEP: u32 = 200;

/// A reusable barrier of a fixed number of workers, to which each contributes `WORDS` words.
///
/// All writes of a worker before the barrier are visible to all workers after it. A barrier of workers that have a core each
/// takes a fraction of a microsecond. A worker that waits longer yields its core, then sleeps until the last one arrives, and polls
/// less at the next barriers: where others wait for its core, polls only delay them.
#[derive(Debug)]
pub struct Barrier<const WORDS: usize> {
    /// Number of workers that have arrived at the present barrier.
    arrived: CachePadded<AtomicUsize>,
    /// Number of completed barriers.
    completed: CachePadded<AtomicUsize>,
    /// Contribution of each worker, alternately for even and odd barriers: a fast worker may arrive at the next one while
    /// others still read.
    slots: [Box<[CachePadded<Slot<WORDS>>]>; 2],
    /// Number of polls of each worker before it yields.
    polls: Box<[CachePadded<AtomicU32>]>,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake_up: Condvar,
    is_aborted: AtomicBool,
}

#[derive(Debug)]
struct Slot<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Slot<WORDS> {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    fn write(&self, words: [u64; WORDS]) {
        // Relaxed, as below: `arrived` (AcqRel) and `completed` (Release, Acquire) order writes before reads.
        self.0.iter().zip(words).for_each(|(slot, word)| slot.store(word, Ordering::Relaxed));
    }

    fn read(&self) -> [u64; WORDS] {
        std::array::from_fn(|word| self.0[word].load(Ordering::Relaxed))
    }
}

impl<const WORDS: usize> Barrier<WORDS> {
    /// Makes a barrier of this many workers.
    pub fn new(workers: usize) -> Self {
        let slots = || (0..workers).map(|_| CachePadded::new(Slot::new())).collect();
        Self {
            arrived: CachePadded::default(),
            completed: CachePadded::default(),
            slots: [slots(), slots()],
            polls: (0..workers).map(|_| CachePadded::new(AtomicU32::new(MAX_POLLS))).collect(),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake_up: Condvar::new(),
            is_aborted: AtomicBool::new(false),
        }
    }

    /// Waits until all workers have arrived at barrier number `number`, counted from 0; returns the contributions of all, in
    /// the order of the workers, or `None` if the barrier is aborted. Every worker reduces them itself, to the same result, and
    /// must read them before its next barrier.
    pub fn all_reduce(
        &self,
        number: usize,
        me: usize,
        contribution: [u64; WORDS],
    ) -> Option<impl Iterator<Item = [u64; WORDS]> + '_> {
        let slots = &self.slots[number % 2];
        slots[me].write(contribution);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == slots.len() {
            // Relaxed: no worker arrives again before it has seen the release below.
            self.arrived.store(0, Ordering::Relaxed);
            // Sequentially consistent, as in `sleep_until`: either this worker sees a sleeper, or that one sees the completion.
            self.completed.store(number + 1, Ordering::SeqCst);
            self.wake_sleepers();
        } else {
            self.wait(number + 1, me)?;
        }
        Some(slots.iter().map(|slot| slot.read()))
    }

    /// Waits until `number` barriers are completed; returns `None` if they are aborted.
    fn wait(&self, number: usize, me: usize) -> Option<()> {
        let is_over =
            || self.completed.load(Ordering::Acquire) >= number || self.is_aborted.load(Ordering::Relaxed);
        // Relaxed: only this worker uses its number of polls.
        let (own, is_trial) = (&self.polls[me], number.is_multiple_of(BARRIERS_PER_TRIAL));
        let usual = own.load(Ordering::Relaxed);
        let mut polls = 0..if is_trial { MAX_POLLS } else { usual };
        let has_polled = polls.any(|_| {
            std::hint::spin_loop();
            is_over()
        });
        own.store(if has_polled { MAX_POLLS } else { usual / 2 }, Ordering::Relaxed);
        let mut yields = 0..YIELDS_BEFORE_SLEEP;
        let mut has_yielded = || {
            yields.any(|_| {
                std::thread::yield_now();
                is_over()
            })
        };
        if !has_polled && !has_yielded() {
            self.sleep_until(is_over);
        }
        (self.completed.load(Ordering::Acquire) >= number).then_some(())
    }

    #[cold]
    fn sleep_until(&self, is_over: impl Fn() -> bool) {
        let mut guard = self.sleep.lock();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while !is_over() {
            self.wake_up.wait(&mut guard);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // A worker between its last look and its sleep holds the lock.
            drop(self.sleep.lock());
            self.wake_up.notify_all();
        }
    }

    /// Aborts this and all later barriers: workers that wait return `None`.
    pub fn abort(&self) {
        self.is_aborted.store(true, Ordering::SeqCst);
        self.wake_sleepers();
    }

    /// Returns a guard that aborts the barrier if the thread panics before the guard is dropped.
    pub fn abort_on_panic(&self) -> impl Drop + '_ {
        AbortOnPanic(self)
    }
}

struct AbortOnPanic<'a, const WORDS: usize>(&'a Barrier<WORDS>);

impl<const WORDS: usize> Drop for AbortOnPanic<'_, WORDS> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_get_all_contributions() {
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for me in 0..3 {
                let barrier = &barrier;
                scope.spawn(move || {
                    for number in 0..2000 {
                        let words = |worker: usize| [worker as u64, (3 * number + worker) as u64];
                        let all: Vec<_> = barrier.all_reduce(number, me, words(me)).unwrap().collect();
                        assert_eq!(all, [0, 1, 2].map(words));
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_waits_for_a_worker_that_is_gone() {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            let gone = scope.spawn(|| {
                let _guard = barrier.abort_on_panic();
                panic!("as the test wants it");
            });
            assert!(gone.join().is_err());
        });
        assert!(barrier.all_reduce(0, 0, []).is_none());
    }
}
