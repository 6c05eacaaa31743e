//! The data of the messages and collective operations of a run: blocks in shared memory, which ranks read and write themselves.
//!
//! A block is here before its message is sent, and so before the message is received: whoever takes it finds it, on any number of threads.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Group};

use crate::agreement::Agreement;
use crate::describe::{Places, call};
use crate::layout::{BLOCK_HEAD, Operation};
use crate::memory::Memory;

/// A message to a rank: its sender, tag and communicator, and its number among those.
pub(crate) type MessageKey = (Rank, i32, CommId, u64);

/// Smallest table \[B\], as a power of two.
const SMALLEST_CLASS: u32 = 7;

/// The blocks that are on their way.
// Determinism: the hash maps are looked up, and iterated in the order of their keys.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Messages to each rank.
    messages: Box<[Mutex<FxHashMap<MessageKey, Sent>>]>,
    operations: Mutex<Operations>,
    communicators: Mutex<FxHashMap<CommId, Arc<Group>>>,
}

/// A message that is on its way: its block, and the operation that sent it.
#[derive(Debug)]
struct Sent {
    block: u64,
    by: Operation,
}

/// Collective operations to which not all members have contributed, and the memory of their tables.
#[derive(Debug, Default)]
struct Operations {
    /// By communicator and number there.
    tables: FxHashMap<(CommId, u64), Incomplete>,
    used: u64,
    /// Tables of each size, of which those that their readers have freed are used again.
    pools: FxHashMap<u32, Vec<u64>>,
}

/// A collective operation to which some members have contributed.
#[derive(Debug)]
struct Incomplete {
    table: u64,
    members: u32,
    size: u32,
    first: Agreement,
}

impl Operations {
    /// Takes memory for a table of `size` members; returns its offset, `None` if there is no more.
    fn new_table(&mut self, memory: &Memory, size: u32) -> Option<u64> {
        // The members' blocks, and that of a result for all.
        let blocks = u64::from(size) + 1;
        let bytes = 8 + 8 * blocks;
        let class = (bytes + BLOCK_HEAD).next_power_of_two().trailing_zeros().max(SMALLEST_CLASS);
        let pool = self.pools.entry(class).or_default();
        let is_free = |table: &u64| memory.block(*table).is_free.load(Ordering::Acquire) == 1;
        // The oldest ones are the first to be free.
        let table = match pool.first().copied().filter(is_free) {
            Some(table) => {
                pool.rotate_left(1);
                table
            }
            None => {
                let (begin, room) = memory.own_arena();
                let table = begin + self.used + BLOCK_HEAD;
                self.used += 1 << class;
                if self.used > room {
                    return None;
                }
                pool.push(table);
                table
            }
        };
        let head = memory.block(table);
        head.bytes.store(bytes, Ordering::Relaxed);
        head.is_free.store(0, Ordering::Relaxed);
        // No reader yet, in the lower half; the size in the upper one.
        memory.store(table, u64::from(size) << 32);
        (0..blocks).for_each(|member| memory.store(table + 8 + 8 * member, 0));
        Some(table)
    }
}

impl Exchange {
    pub(crate) fn new(ranks: u32) -> Self {
        Self {
            messages: (0..ranks).map(|_| Mutex::default()).collect(),
            operations: Mutex::default(),
            communicators: Mutex::default(),
        }
    }

    /// Puts the block of a message in.
    pub(crate) fn put(&self, to: Rank, key: MessageKey, block: u64, by: Operation) {
        if block != 0 {
            lock(&self.messages[to.index()]).insert(key, Sent { block, by });
        }
    }

    /// Takes the block of a message; 0 if it has no data.
    pub(crate) fn take(&self, to: Rank, key: MessageKey) -> u64 {
        lock(&self.messages[to.index()]).remove(&key).map_or(0, |sent| sent.block)
    }

    /// Returns what is left at the end: messages that were not received, and collective operations that not all members have called. Each
    /// has the rank that it is about.
    pub(crate) fn leftovers(&self, places: &Places) -> Vec<(Rank, String)> {
        let mut unreceived: BTreeMap<(Rank, u32), BTreeMap<MessageKey, Operation>> = BTreeMap::new();
        for (to, messages) in (0..).zip(&self.messages) {
            for (key, sent) in &*lock(messages) {
                unreceived.entry((key.0, to)).or_default().insert(*key, sent.by);
            }
        }
        let describe = |((from, to), messages): ((Rank, u32), BTreeMap<MessageKey, Operation>)| {
            let first = messages.values().next().map_or_else(String::new, |by| call(by, places));
            let number = messages.len();
            (from, format!("{number} message(s) to rank {to} were never received, the first one of {first}"))
        };
        let mut leftovers: Vec<_> = unreceived.into_iter().map(describe).collect();
        let operations = lock(&self.operations);
        let mut incomplete: Vec<_> = operations.tables.iter().collect();
        incomplete.sort_unstable_by_key(|(key, _)| **key);
        leftovers.extend(incomplete.into_iter().map(|(_, Incomplete { members, size, first, .. })| {
            let first_call = call(&first.operation, places);
            (
                first.rank,
                format!("{members} of {size} members have called {first_call}, and the others never do"),
            )
        }));
        leftovers
    }

    /// Contributes the block of a member to an operation of `size` members; returns the table of all.
    ///
    /// # Errors
    /// The member does not agree with the first one, or there is no memory.
    pub(crate) fn contribute(
        &self,
        (memory, places): (&Memory, &Places),
        key: (CommId, u64),
        (member, size): (u32, u32),
        (part, block): (Agreement, u64),
    ) -> Result<u64, String> {
        let mut operations = lock(&self.operations);
        let mut operation = match operations.tables.remove(&key) {
            Some(found) => {
                found.first.check(&part, places)?;
                found
            }
            None => {
                let table = operations.new_table(memory, size);
                let table = table
                    .ok_or("the tables of its collective operations need more memory than an arena has")?;
                Incomplete { table, members: 0, size, first: part }
            }
        };
        operation.members += 1;
        let table = operation.table;
        if operation.members < size {
            operations.tables.insert(key, operation);
        }
        drop(operations);
        memory.store(table + 8 + 8 * u64::from(member), block);
        Ok(table)
    }

    /// Returns whether all members have contributed to an operation to which one has.
    pub(crate) fn is_complete(&self, key: (CommId, u64)) -> bool {
        !lock(&self.operations).tables.contains_key(&key)
    }

    /// Returns the group of a communicator, which all members share; `None` if the identifier is that of another group.
    pub(crate) fn join(&self, id: CommId, group: Group) -> Option<Arc<Group>> {
        let mut communicators = lock(&self.communicators);
        let shared = communicators.entry(id).or_insert_with(|| Arc::new(group.clone()));
        (**shared == group).then(|| Arc::clone(shared))
    }
}

/// Locks a map. Where a rank has panicked, the run ends anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
