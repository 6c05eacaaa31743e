//! Locks of the memory of a rank, which other ranks take and give back in the order of time.
//!
//! A rank asks for a lock, and gives it back, by a token to the rank whose memory it is. Both are conditional events: the rank that keeps
//! the lock sees the tokens of all ranks in the order of (time, rank), and a rank that gets a lock when another one gives it back resumes
//! at that instant, before which nothing is left to be done.

use std::collections::{BTreeMap, VecDeque};

use pdes_core::{Rank, SimTime};
use serde::{Deserialize, Serialize};
use trace_mmap::CommId;

use crate::cause::Cause;
use crate::point_to_point::RequestId;

/// Purpose of a lock of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LockName {
    /// `MPI_Win_lock`.
    Memory,
    /// Accesses that fetch, one after the other.
    Fetches,
}

/// Call on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockCall {
    /// Waits for the lock.
    Take {
        /// Nobody else may hold it.
        is_exclusive: bool,
    },
    /// Gives it back.
    GiveBack,
}

/// A call on a lock, for the rank whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockMessage {
    /// The window, by the name of its communicator.
    pub window: CommId,
    /// The lock.
    pub lock: LockName,
    /// The call.
    pub call: LockCall,
    /// Rank that calls.
    pub from: Rank,
    /// Request that completes when it holds the lock; `None` if it gives the lock back.
    pub request: Option<RequestId>,
    /// Time of the call.
    pub at: SimTime,
    /// Cause of its lateness; unknown where no analysis needs it.
    pub cause: Cause,
}

/// The locks of a rank that others hold.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Locks(BTreeMap<(CommId, LockName), Lock>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Lock {
    /// Ranks that hold it, in their order.
    holders: Vec<Rank>,
    /// The holder is the only one.
    is_exclusive: bool,
    /// First come, first served.
    queue: VecDeque<Waiting>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    rank: Rank,
    request: RequestId,
    is_exclusive: bool,
}

impl Locks {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ranks that wait for a lock, each with the first one that holds it.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Rank, Rank)> {
        let of_lock = |lock: &'_ Lock| {
            let holder = lock.holders.first().copied();
            lock.queue.iter().filter_map(move |waiting| Some((waiting.rank, holder?))).collect::<Vec<_>>()
        };
        self.0.values().flat_map(of_lock)
    }

    /// Carries out a call on a lock; returns the ranks that hold it from now on, with their requests.
    pub(crate) fn called(&mut self, message: &LockMessage) -> Vec<(Rank, RequestId)> {
        let key = (message.window, message.lock);
        let lock = self.0.entry(key).or_default();
        match (message.call, message.request) {
            (LockCall::Take { is_exclusive }, Some(request)) => {
                lock.queue.push_back(Waiting { rank: message.from, request, is_exclusive });
            }
            _ => lock.holders.retain(|holder| *holder != message.from),
        }
        let mut granted = Vec::new();
        while let Some(next) = lock.queue.front()
            && (lock.holders.is_empty() || !(lock.is_exclusive || next.is_exclusive))
        {
            granted.push((next.rank, next.request));
            let place = lock.holders.partition_point(|holder| *holder < next.rank);
            lock.holders.insert(place, next.rank);
            lock.is_exclusive = next.is_exclusive;
            lock.queue.pop_front();
        }
        if lock.holders.is_empty() {
            self.0.remove(&key);
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point_to_point::Requests;

    fn message(from: u32, call: LockCall) -> LockMessage {
        let request = Requests::new(0).blocking_send();
        let (from, request) = (Rank::new(from), (call != LockCall::GiveBack).then_some(request));
        let (window, lock) = (CommId::new(1), LockName::Memory);
        LockMessage { window, lock, call, from, request, at: SimTime::ZERO, cause: Cause::default() }
    }

    #[test]
    fn whoever_waits_waits_for_the_first_holder() {
        let mut locks = Locks::default();
        let [shared, exclusive] = [false, true].map(|is_exclusive| LockCall::Take { is_exclusive });
        for (from, call) in [(3, shared), (1, shared), (2, exclusive), (1, LockCall::GiveBack), (0, shared)] {
            locks.called(&message(from, call));
        }
        let waits: Vec<_> = locks.waiting().map(|(rank, holder)| (rank.get(), holder.get())).collect();
        assert_eq!(waits, [(2, 3), (0, 3)]);
    }

    #[test]
    fn readers_share_a_lock_and_nobody_overtakes() {
        let mut locks = Locks::default();
        let mut call = |from: u32, call| {
            let granted = locks
                .called(&message(from, call))
                .into_iter()
                .map(|(rank, _)| rank.get())
                .collect::<Vec<_>>();
            (granted, locks.is_empty())
        };
        let [shared, exclusive] = [false, true].map(|is_exclusive| LockCall::Take { is_exclusive });
        assert_eq!(call(1, shared), (vec![1], false));
        assert_eq!(call(2, shared), (vec![2], false));
        assert_eq!(call(3, exclusive), (vec![], false));
        assert_eq!(call(4, shared), (vec![], false));
        assert_eq!(call(5, shared), (vec![], false));
        assert_eq!(call(1, LockCall::GiveBack), (vec![], false));
        assert_eq!(call(2, LockCall::GiveBack), (vec![3], false));
        assert_eq!(call(3, LockCall::GiveBack), (vec![4, 5], false));
        assert_eq!(call(4, LockCall::GiveBack), (vec![], false));
        assert_eq!(call(5, LockCall::GiveBack), (vec![], true));
    }
}
