//! The core that the simulator and the ranks share while one thread has all turns: a turn goes from one process to another, and on another
//! core this takes an interrupt.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::memory::Memory;
use crate::shim::cache_directory;

/// Number of turns of one thread after which it is taken to have all of them.
const TURNS: u32 = 100;

/// The core of a run, if there is one.
#[derive(Debug, Default)]
pub(crate) struct SharedCore(Mutex<Sharing>);

#[derive(Debug, Default)]
enum Sharing {
    #[default]
    Unknown,
    /// A thread has had so many turns.
    Counting(ThreadId, u32),
    /// A thread runs on the core, in which ranks wait.
    Shared {
        thread: ThreadId,
        _pinned: Pinned,
    },
    Apart,
}

/// A thread on one core, which no other run takes.
#[derive(Debug)]
struct Pinned {
    thread: Pid,
    before: CpuSet,
    core: u32,
    _lock: File,
}

impl Pinned {
    /// Keeps this thread on its core, or on another one that no run has taken; `None` if there is none.
    fn new() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let here = sched_getcpu();
        let others = (0..CpuSet::MAX_CPU).filter(|&core| core != here);
        let mut cores = std::iter::once(here).chain(others).filter(|&core| before.is_set(core));
        let take = |core: usize| {
            let lock = File::create(cache_directory().join(format!("core-{core}"))).ok()?;
            lock.try_lock().ok().map(|()| (core, lock))
        };
        let (core, lock) = cores.find_map(take)?;
        let mut only = CpuSet::new();
        only.set(core);
        sched_setaffinity(None, &only).ok()?;
        Some(Self { thread: gettid(), before, core: core as u32, _lock: lock })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // An error: the thread has ended.
        let _ = sched_setaffinity(Some(self.thread), &self.before);
    }
}

impl SharedCore {
    /// Notes a turn of this thread, which shares its core with the ranks from then on if it has had all turns.
    pub(crate) fn take_turn(&self, memory: &Memory) {
        let me = std::thread::current().id();
        let mut sharing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *sharing {
            Sharing::Unknown => *sharing = Sharing::Counting(me, 1),
            Sharing::Counting(thread, turns) if *thread == me && *turns < TURNS => *turns += 1,
            Sharing::Counting(thread, _) if *thread == me => {
                *sharing = Pinned::new().map_or(Sharing::Apart, |pinned| {
                    memory.header().core.store(pinned.core + 1, Ordering::Relaxed);
                    Sharing::Shared { thread: me, _pinned: pinned }
                });
            }
            Sharing::Shared { thread, .. } if *thread == me => {}
            Sharing::Apart => {}
            Sharing::Counting(..) | Sharing::Shared { .. } => {
                memory.header().core.store(0, Ordering::Relaxed);
                *sharing = Sharing::Apart;
            }
        }
    }

    /// Lets the thread run anywhere again.
    pub(crate) fn release(&self, memory: &Memory) {
        memory.header().core.store(0, Ordering::Relaxed);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Sharing::Apart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HeaderSettings;

    fn cores() -> u32 {
        sched_getaffinity(None).unwrap().count()
    }

    #[test]
    fn a_thread_that_has_all_turns_shares_its_core() {
        let settings = HeaderSettings {
            computation: 0,
            clocks: 0,
            fixed_s: 0.0,
            debugged: None,
            fold_bytes: None,
            poll_tolerance: 0.0,
            checks_buffers: false,
            keeps_polls: true,
        };
        let (memory, core, before) = (Memory::create(1, settings).unwrap(), SharedCore::default(), cores());
        std::fs::create_dir_all(cache_directory()).unwrap();
        let announced = || memory.header().core.load(Ordering::Relaxed);
        (0..TURNS).for_each(|_| core.take_turn(&memory));
        assert_eq!((announced(), cores()), (0, before));
        core.take_turn(&memory);
        // Other runs may have taken all cores.
        assert_eq!(announced() > 0, matches!(*core.0.lock().unwrap(), Sharing::Shared { .. }));
        assert_eq!(cores(), if announced() > 0 { 1 } else { before });
        std::thread::scope(|scope| scope.spawn(|| core.take_turn(&memory)).join().unwrap());
        assert_eq!((announced(), cores()), (0, before));
        (0..=2 * TURNS).for_each(|_| core.take_turn(&memory));
        assert_eq!((announced(), cores()), (0, before));
    }
}
