//! The clocks of emulated workers, and the workers that the bound on run-ahead blocks.

use std::collections::BTreeSet;

use crate::SimTime;

/// The least clock of each worker, [`SimTime::MAX`] if it is idle, and the workers that wait until the minimum is later.
pub(super) struct WorkerClocks {
    of: Vec<SimTime>,
    in_order: BTreeSet<(SimTime, u32)>,
    /// Blocked workers, by the clock that all others must have reached.
    blocked: BTreeSet<(SimTime, u32)>,
    blocked_until: Vec<Option<SimTime>>,
}

impl WorkerClocks {
    pub(super) fn new(workers: u32) -> Self {
        Self {
            of: vec![SimTime::ZERO; workers as usize],
            in_order: (0..workers).map(|worker| (SimTime::ZERO, worker)).collect(),
            blocked: BTreeSet::new(),
            blocked_until: vec![None; workers as usize],
        }
    }

    pub(super) fn of(&self, worker: u32) -> SimTime {
        self.of[worker as usize]
    }

    pub(super) fn is_idle(&self, worker: u32) -> bool {
        self.of(worker) == SimTime::MAX
    }

    pub(super) fn least(&self) -> SimTime {
        self.in_order.first().map_or(SimTime::MAX, |&(clock, _)| clock)
    }

    pub(super) fn set(&mut self, worker: u32, clock: SimTime) {
        let before = std::mem::replace(&mut self.of[worker as usize], clock);
        if before != clock {
            self.in_order.remove(&(before, worker));
            self.in_order.insert((clock, worker));
        }
    }

    pub(super) fn set_idle(&mut self, worker: u32) {
        self.set(worker, SimTime::MAX);
    }

    pub(super) fn lower(&mut self, worker: u32, clock: SimTime) {
        if clock < self.of(worker) {
            self.set(worker, clock);
        }
    }

    /// Blocks a worker until all have reached a clock.
    pub(super) fn block(&mut self, worker: u32, needed: SimTime) {
        self.blocked.insert((needed, worker));
        self.blocked_until[worker as usize] = Some(needed);
    }

    /// Unblocks a worker, if it is blocked.
    pub(super) fn unblock(&mut self, worker: u32) {
        if let Some(needed) = self.blocked_until[worker as usize].take() {
            self.blocked.remove(&(needed, worker));
        }
    }

    /// Unblocks and returns a worker that need not wait any more, if there is one.
    pub(super) fn take_admitted(&mut self) -> Option<u32> {
        let &(needed, worker) = self.blocked.first()?;
        (needed <= self.least()).then(|| self.unblock(worker)).map(|()| worker)
    }
}
