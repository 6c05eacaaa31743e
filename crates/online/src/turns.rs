//! Turns of ranks: how many have one at once, and on which cores.
//!
//! While turns are short, or one comes after the other, the simulator and the ranks share a core: a turn goes from one process to another, and
//! on another core this takes an interrupt. Ranks that compute at once for longer have a core each.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::layout::{APART, Header};
use crate::memory::{Memory, Patience};
use crate::shim::cache_directory;

/// Number of turns after which it is decided anew whether they are on one core.
const TURNS: u32 = 100;
/// Number of turns among those during which another rank has one, too, from which on they are worth another core: of four at once.
const MANY: u32 = 70;
/// Mean work of turns for which another core is worth an interrupt, if others have one at once, or in any case: then they may \[s\].
const LONG: f64 = 2e-5;
const LONG_ALONE: f64 = 1e-4;

/// The turns of a run.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Flag of each rank: it has a turn, from its begin on.
    given: Box<[AtomicBool]>,
    /// Flag of each rank: its next turn is asked for.
    is_awaited: Box<[AtomicBool]>,
    /// Cores of this process.
    cores: Vec<u32>,
    /// Flag: no two ranks have a turn at once.
    is_exclusive: AtomicBool,
    /// Flag: ranks compute on cores of their own.
    is_apart: AtomicBool,
}

/// State of a turn, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The rank waits for it, or nothing is known before its end.
    Unknown,
    /// The rank has it.
    Running,
    /// The rank has given it back, or has ended.
    Back,
}

#[derive(Debug, Default)]
struct State {
    /// Ranks that have a turn, but for their first one, or have given it back, which was not taken; each with its core, if it has one of its
    /// own.
    given: VecDeque<(u32, Option<u32>)>,
    /// Ranks that get one next.
    waiting: VecDeque<u32>,
    /// The thread of all turns, while it shares its core with the ranks.
    shared: Option<Pinned>,
    recent: Recent,
    /// A rank has ended: the others may end at any time, without turns.
    is_ending: bool,
}

/// The turns since the last decision.
#[derive(Debug, Default)]
struct Recent {
    turns: u32,
    /// Thread that has taken the first one.
    thread: Option<ThreadId>,
    /// Other threads have taken turns, too.
    is_of_many: bool,
    /// Number of turns during which another rank had one, too.
    overlapped: u32,
    /// Work of the ranks \[s\].
    worked: f64,
}

/// A thread on one core, which no other run takes.
#[derive(Debug)]
struct Pinned {
    id: ThreadId,
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
        Some(Self {
            id: std::thread::current().id(),
            thread: gettid(),
            before,
            core: core as u32,
            _lock: lock,
        })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // An error: the thread has ended.
        let _ = sched_setaffinity(Some(self.thread), &self.before);
    }
}

impl Turns {
    pub(crate) fn new(ranks: u32) -> Self {
        let cores = sched_getaffinity(None).map_or(vec![0], |cores| {
            let all = 0..CpuSet::MAX_CPU;
            all.filter(|&core| cores.is_set(core)).map(|core| core as u32).collect()
        });
        Self {
            state: Mutex::default(),
            given: (0..ranks).map(|_| AtomicBool::new(true)).collect(),
            is_awaited: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
            cores,
            is_exclusive: AtomicBool::new(false),
            is_apart: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets no two ranks have a turn at once from now on: they access memory of others at the instants of their calls.
    pub(crate) fn exclude(&self) {
        self.is_exclusive.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        self.is_exclusive.load(Ordering::Relaxed)
    }

    /// Returns whether ranks compute on cores of their own.
    pub(crate) fn are_apart(&self) -> bool {
        self.is_apart.load(Ordering::Relaxed)
    }

    /// Gives a rank the turn, at once or when others have given theirs back.
    pub(crate) fn give(&self, memory: &Memory, rank: u32) {
        let mut state = self.state();
        state.waiting.push_back(rank);
        self.give_waiting(memory, &mut state);
    }

    /// Gives turns to ranks that wait for them, as many as there are cores, first to those that others wait for: on a shared one, they compute
    /// one after the other.
    fn give_waiting(&self, memory: &Memory, state: &mut State) {
        let mut running = if state.shared.is_some() { 0 } else { state.running(memory).count() };
        while running < self.cores.len() && !state.waiting.is_empty() {
            let first = state.waiting.iter().position(|&rank| self.is_awaited(rank)).unwrap_or(0);
            let Some(rank) = state.waiting.remove(first) else { break };
            self.give_now(memory, state, rank);
            running += usize::from(state.shared.is_none());
        }
    }

    fn give_now(&self, memory: &Memory, state: &mut State, rank: u32) {
        self.given[rank as usize].store(true, Ordering::Relaxed);
        // The system may wake a rank on the core of another one, and leave it there while others are idle.
        let is_free = |core: &&u32| state.running(memory).all(|of_other| of_other != Some(**core));
        let core = self.cores.iter().filter(|_| self.are_apart()).find(is_free).copied();
        state.given.push_back((rank, core));
        memory.release_turn(rank, core);
    }

    /// Returns what is known of the turn of a rank that waits for it or has it, where ranks compute on cores of their own.
    pub(crate) fn look(&self, memory: &Memory, rank: u32) -> Look {
        match self.are_apart() && self.given[rank as usize].load(Ordering::Relaxed) {
            false => Look::Unknown,
            true if memory.has_given_back(rank) => Look::Back,
            true => Look::Running,
        }
    }

    /// Returns whether ranks without a turn could have one, if they were asked for.
    pub(crate) fn lack_ranks(&self) -> bool {
        self.state().lacks_ranks(self.given.len())
    }

    fn is_awaited(&self, rank: u32) -> bool {
        self.is_awaited[rank as usize].load(Ordering::Relaxed)
    }

    /// Sets whether the next turn of a rank is asked for, by [`Turns::look`].
    pub(crate) fn set_awaited(&self, rank: u32, is_awaited: bool) {
        self.is_awaited[rank as usize].store(is_awaited, Ordering::Relaxed);
    }

    /// Waits until a rank gives its turn back, or for a short time if what ranks compute `is_watched` and others could have a turn, too;
    /// returns false at once if turns are on one core, or `is_over`.
    pub(crate) fn await_decision(&self, memory: &Memory, is_watched: bool, is_over: bool) -> bool {
        if !self.are_apart() || is_over {
            return false;
        }
        let Header { bell, listeners, .. } = memory.header();
        listeners.fetch_add(1, Ordering::SeqCst);
        let heard = bell.load(Ordering::SeqCst);
        let mut state = self.state();
        self.give_waiting(memory, &mut state);
        let is_any_back =
            state.given.iter().any(|&(rank, _)| self.is_awaited(rank) && memory.has_given_back(rank));
        let patience = match is_watched && state.lacks_ranks(self.given.len()) {
            true if state.running(memory).count() < self.cores.len() => Patience::Short,
            true => Patience::Long,
            false => Patience::Endless,
        };
        drop(state);
        if !is_any_back {
            memory.await_bell(heard, patience);
        }
        listeners.fetch_sub(1, Ordering::SeqCst);
        true
    }

    /// Waits until a rank that gets a turn gives it back, or has ended, or `is_over`; returns whether it has given it back.
    pub(crate) fn take(&self, memory: &Memory, rank: u32, is_over: impl Fn() -> bool) -> bool {
        let shares_core = self.hurry(memory, rank);
        let is_back = memory.await_turn(rank, shares_core, is_over);
        let worked = f64::from_bits(memory.slot(rank).turn_s.load(Ordering::Relaxed));
        self.given[rank as usize].store(false, Ordering::Relaxed);
        let mut state = self.state();
        if let Some(place) = state.given.iter().position(|(given, _)| *given == rank) {
            state.given.remove(place);
        }
        self.note(memory, &mut state, worked);
        self.give_waiting(memory, &mut state);
        is_back
    }

    /// Gives a rank that waits for it the turn now; returns whether this thread is on its core.
    fn hurry(&self, memory: &Memory, rank: u32) -> bool {
        let mut state = self.state();
        if let Some(place) = state.waiting.iter().position(|waiting| *waiting == rank) {
            state.waiting.remove(place);
            self.give_now(memory, &mut state, rank);
        }
        state.shared.as_ref().is_some_and(|pinned| pinned.id == std::thread::current().id())
    }

    /// Gives a rank its last turn, which it does not give back.
    pub(crate) fn end(&self, memory: &Memory, rank: u32) {
        let mut state = self.state();
        state.is_ending = true;
        state.unpin(memory, 0);
        memory.release_turn(rank, None);
    }

    /// Lets the thread of all turns run on all cores again: the ranks are left.
    pub(crate) fn leave(&self, memory: &Memory) {
        self.state().unpin(memory, 0);
    }

    /// Notes a turn that a rank has given back, and after some of them decides whether they are on one core.
    fn note(&self, memory: &Memory, state: &mut State, worked: f64) {
        let me = std::thread::current().id();
        let others = u32::from(!state.given.is_empty());
        let Recent { turns, thread, is_of_many, overlapped, worked: sum } = &mut state.recent;
        *turns += 1;
        *is_of_many |= *thread.get_or_insert(me) != me;
        *overlapped += others;
        *sum += worked;
        let is_foreign = state.shared.as_ref().is_some_and(|pinned| pinned.id != me);
        if *turns < TURNS && !is_foreign {
            return;
        }
        let mean = *sum / f64::from(*turns);
        let is_apart = self.cores.len() > 1 && (mean > LONG && *overlapped > MANY || mean > LONG_ALONE);
        let may_share = !*is_of_many && !is_foreign && !state.is_ending;
        state.recent = Recent::default();
        self.is_apart.store(is_apart, Ordering::Relaxed);
        if is_apart || !may_share {
            state.unpin(memory, if is_apart { APART } else { 0 });
        } else if state.shared.is_none() {
            state.shared = Pinned::new();
            let core = state.shared.as_ref().map_or(0, |pinned| pinned.core + 1);
            memory.header().core.store(core, Ordering::Relaxed);
        }
    }
}

impl State {
    /// Returns the cores of the ranks that compute.
    fn running(&self, memory: &Memory) -> impl Iterator<Item = Option<u32>> {
        let running = self.given.iter().filter(|(rank, _)| memory.is_computing(*rank));
        running.map(|(_, core)| *core)
    }

    /// Returns whether some of the ranks have no turn, and none waits for one.
    fn lacks_ranks(&self, ranks: usize) -> bool {
        self.waiting.is_empty() && self.given.len() < ranks
    }

    /// Lets the thread run anywhere again, and announces where ranks run.
    fn unpin(&mut self, memory: &Memory, core: u32) {
        memory.header().core.store(core, Ordering::Relaxed);
        self.shared = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::turn;
    use crate::memory::HeaderSettings;

    fn cores() -> u32 {
        sched_getaffinity(None).unwrap().count()
    }

    fn memory(ranks: u32) -> Memory {
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
        Memory::create(ranks, settings).unwrap()
    }

    #[test]
    fn a_thread_that_has_all_turns_shares_its_core_while_they_are_short() {
        let turns = Turns { cores: vec![0, 1], ..Turns::new(1) };
        let (memory, before) = (memory(1), cores());
        std::fs::create_dir_all(cache_directory()).unwrap();
        let announced = || memory.header().core.load(Ordering::Relaxed);
        let take = |worked: f64, others: u32| {
            let mut state = turns.state();
            state.given = (0..others).map(|rank| (rank, None)).collect();
            turns.note(&memory, &mut state, worked);
        };
        (1..TURNS).for_each(|_| take(0.0, 0));
        assert_eq!((announced(), cores()), (0, before));
        take(0.0, 0);
        // Other runs may have taken all cores.
        let is_shared = announced() > 0;
        assert_eq!(is_shared, turns.state().shared.is_some());
        assert_eq!(cores(), if is_shared { 1 } else { before });
        (0..TURNS).for_each(|_| take(1e-6, 1));
        assert_eq!(announced() > 0, turns.state().shared.is_some());
        // Long ones have more cores, if they are at once, or so long that they could be.
        (0..TURNS).for_each(|_| take(5e-5, 0));
        assert_eq!(announced() > 0, turns.state().shared.is_some());
        for (worked, others) in [(5e-5, 1), (1e-3, 0)] {
            (0..TURNS).for_each(|_| take(worked, others));
            assert!(turns.are_apart());
            assert_eq!((announced(), cores()), (APART, before));
            (0..TURNS).for_each(|_| take(5e-5, 0));
            assert!(!turns.are_apart());
        }
        std::thread::scope(|scope| scope.spawn(|| take(0.0, 0)).join().unwrap());
        assert_eq!((announced(), cores()), (0, before));
        (0..2 * TURNS).for_each(|_| take(0.0, 0));
        assert_eq!(announced() > 0, turns.state().shared.is_some());
        turns.leave(&memory);
        assert_eq!((announced(), cores()), (0, before));
    }

    #[test]
    fn as_many_ranks_as_cores_have_a_turn_at_once() {
        let (memory, turns) = (memory(4), Turns { cores: vec![0, 1], ..Turns::new(4) });
        // Ranks that wait for their turns.
        (0..4).for_each(|rank| memory.slot(rank).turn.store(turn::SIMULATOR, Ordering::Relaxed));
        let with_turn = || -> Vec<u32> {
            (0..4).filter(|rank| memory.slot(*rank).turn.load(Ordering::Relaxed) == turn::RANK).collect()
        };
        let give_back = |rank: u32| memory.slot(rank).turn.store(turn::SIMULATOR, Ordering::Relaxed);
        (0..4).for_each(|rank| turns.give(&memory, rank));
        assert_eq!(with_turn(), [0, 1]);
        give_back(0);
        assert!(turns.take(&memory, 0, || false));
        assert_eq!(with_turn(), [1, 2]);
        // One that is asked for before others does not wait.
        give_back(1);
        give_back(2);
        assert!(!turns.take(&memory, 3, || true));
        assert_eq!(with_turn(), [3]);
    }
}
