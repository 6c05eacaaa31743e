//! Sums over a program by key, for operations that are associative: loops are raised to a power instead of executed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A summary of consecutive operations.
pub(super) trait Summary: Clone {
    /// Returns the summary of these operations followed by others.
    fn then(&self, next: &Self) -> Self;

    /// Returns the summary of so many repetitions, at least one.
    fn repeat(&self, count: u64) -> Self {
        let (mut square, mut sum, mut left): (Self, Option<Self>, _) = (self.clone(), None, count);
        while left > 0 {
            if left % 2 == 1 {
                sum = Some(sum.map_or_else(|| square.clone(), |sum| sum.then(&square)));
            }
            left /= 2;
            if left > 0 {
                square = square.then(&square);
            }
        }
        sum.unwrap_or_else(|| self.clone())
    }
}

/// The summaries of a program by key. The cost of a loop is linear in its length and logarithmic in its number of iterations.
#[derive(Debug)]
pub(super) struct LoopSums<K, S> {
    sums: BTreeMap<K, S>,
    /// Summaries before each open loop, and its number of iterations.
    outer: Vec<(BTreeMap<K, S>, u64)>,
}

impl<K, S> Default for LoopSums<K, S> {
    fn default() -> Self {
        Self { sums: BTreeMap::new(), outer: Vec::new() }
    }
}

impl<K: Ord, S: Summary> LoopSums<K, S> {
    /// Adds an operation.
    pub(super) fn add(&mut self, key: K, operation: &S) {
        append(&mut self.sums, key, operation);
    }

    /// Begins a loop of so many iterations.
    pub(super) fn begin(&mut self, count: u64) {
        self.outer.push((std::mem::take(&mut self.sums), count));
    }

    /// Ends a loop.
    pub(super) fn end(&mut self) {
        let Some((before, count)) = self.outer.pop() else { return };
        let body = std::mem::replace(&mut self.sums, before);
        body.into_iter().for_each(|(key, once)| append(&mut self.sums, key, &once.repeat(count)));
    }

    /// Returns the summaries.
    pub(super) fn finish(self) -> BTreeMap<K, S> {
        self.sums
    }
}

fn append<K: Ord, S: Summary>(sums: &mut BTreeMap<K, S>, key: K, next: &S) {
    match sums.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(next.clone());
        }
        Entry::Occupied(mut entry) => {
            let sum = entry.get().then(next);
            entry.insert(sum);
        }
    }
}
