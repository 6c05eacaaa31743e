//! Locks of windows of one-sided communication.

use std::collections::VecDeque;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::CommId;

/// The locks of a run, by window and target. They are granted in the order in which they are asked for.
// Determinism: the hash map is looked up, never iterated; ranks ask on one thread.
#[derive(Debug, Default)]
pub(crate) struct Locks(FxHashMap<(CommId, Rank), Lock>);

#[derive(Debug, Default)]
struct Lock {
    is_exclusive: bool,
    holders: u32,
    /// Ranks that wait, each with whether it is to hold the lock alone.
    waiting: VecDeque<(Rank, bool)>,
}

impl Locks {
    /// Asks for a lock; returns whether it is granted at once.
    pub(crate) fn acquire(&mut self, window: CommId, target: Rank, rank: Rank, is_exclusive: bool) -> bool {
        let lock = self.0.entry((window, target)).or_default();
        let is_free = lock.holders == 0 || (!is_exclusive && !lock.is_exclusive && lock.waiting.is_empty());
        if is_free {
            (lock.is_exclusive, lock.holders) = (is_exclusive, lock.holders + 1);
        } else {
            lock.waiting.push_back((rank, is_exclusive));
        }
        is_free
    }

    /// Gives a lock back; returns the ranks to which it is granted now.
    pub(crate) fn release(&mut self, window: CommId, target: Rank) -> Vec<Rank> {
        let lock = self.0.entry((window, target)).or_default();
        lock.holders = lock.holders.saturating_sub(1);
        let mut granted = Vec::new();
        while let Some(&(rank, is_exclusive)) = lock.waiting.front() {
            if lock.holders > 0 && (is_exclusive || lock.is_exclusive) {
                break;
            }
            (lock.is_exclusive, lock.holders) = (is_exclusive, lock.holders + 1);
            lock.waiting.pop_front();
            granted.push(rank);
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exclusive_locks_wait_for_all_and_shared_ones_for_exclusive_ones() {
        let (mut locks, window, target) = (Locks::default(), CommId::new(9), Rank::new(0));
        let acquire = |locks: &mut Locks, rank, alone| locks.acquire(window, target, Rank::new(rank), alone);
        assert!(acquire(&mut locks, 1, false) && acquire(&mut locks, 2, false));
        // A shared lock behind an exclusive one does not overtake it.
        assert!(
            !acquire(&mut locks, 3, true) && !acquire(&mut locks, 4, false) && !acquire(&mut locks, 5, false)
        );
        assert_eq!(locks.release(window, target), []);
        assert_eq!(locks.release(window, target), [Rank::new(3)]);
        assert_eq!(locks.release(window, target), [Rank::new(4), Rank::new(5)]);
    }
}
