//! The values of the messages of a run, apart from the simulation.
//!
//! A value is here before its message is sent, and so before the message is received: whoever takes it finds it, on any number of threads.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::CommId;

use super::data::Data;

/// A message to a rank: its sender, tag and communicator, and its number among those.
pub(super) type MessageKey = (Rank, u32, CommId, u64);

/// An operation: its communicator, and its number there.
pub(super) type OperationKey = (CommId, u64);

/// Number of maps of messages: enough that threads seldom wait for each other.
const MAPS: u32 = 1024;

type Contributions = Arc<[OnceLock<Data>]>;

/// Messages to some ranks, by receiver and key.
type Messages = Mutex<FxHashMap<(Rank, MessageKey), Data>>;

/// The values that are on their way.
// Determinism: the hash maps are looked up, never iterated.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Number of ranks of the run.
    ranks: u32,
    /// Messages, in a map for the receivers of one remainder: one for each rank would cost memory where no message is on its way.
    messages: Box<[Messages]>,
    /// Operations to which not all members have contributed, with the number of those that have.
    operations: Mutex<FxHashMap<OperationKey, (u32, Contributions)>>,
}

impl Exchange {
    pub(super) fn new(ranks: u32) -> Self {
        let messages = (0..ranks.min(MAPS)).map(|_| Mutex::default()).collect();
        Self { ranks, messages, operations: Mutex::default() }
    }

    /// Returns the number of ranks of the run.
    pub(super) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Puts the data of a message in, if they have a value.
    pub(super) fn put(&self, to: Rank, key: MessageKey, data: Data) {
        if data.has_value() {
            lock(self.messages_to(to)).insert((to, key), data);
        }
    }

    /// Takes the data of a message of this size.
    pub(super) fn take(&self, to: Rank, key: MessageKey, bytes: u64) -> Data {
        lock(self.messages_to(to)).remove(&(to, key)).unwrap_or_else(|| bytes.into())
    }

    fn messages_to(&self, to: Rank) -> &Messages {
        &self.messages[to.index() % self.messages.len()]
    }

    /// Contributes the data of a member to an operation of `size` members; returns the places of all.
    pub(super) fn contribute(
        &self,
        key: OperationKey,
        (member, size): (u32, u32),
        data: Data,
    ) -> Contributions {
        let mut operations = lock(&self.operations);
        let new = || (0, (0..size).map(|_| OnceLock::new()).collect());
        let (given, all) = operations.entry(key).or_insert_with(new);
        *given += 1;
        let (is_complete, contributions) = (*given == size, Arc::clone(all));
        if is_complete {
            operations.remove(&key);
        }
        drop(operations);
        // Each member of a communicator calls each of its operations once.
        let _ = contributions[member as usize].set(data);
        contributions
    }
}

/// Locks a map. Where a rank has panicked, the run ends anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
