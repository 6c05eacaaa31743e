//! The cache of an I/O server: parts of files in the memory of its host.

use std::collections::{BTreeMap, BTreeSet};

use pdes_core::{State, StateVisitor};

/// Sizes of a cache, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// Size of all.
    pub bytes: u64,
    /// Maximum amount that is acknowledged and not yet on the device; with 0, writes are acknowledged when they are on it.
    pub dirty_bytes: u64,
    /// Amount that a read which continues the last one of its file reads beyond its end.
    pub read_ahead: u64,
}

/// Parts of files that a cache holds, the least recently used of which leave when it is full.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// End and last use of each part, by its file and begin. No two of them touch.
    parts: BTreeMap<(u32, u64), (u64, u64)>,
    /// Last use, file and begin of each part.
    by_use: BTreeSet<(u64, u32, u64)>,
    bytes: u64,
    uses: u64,
}

impl Cache {
    /// Returns whether the cache holds a part of a file, and counts that as a use.
    pub(super) fn read(&mut self, file: u32, begin: u64, end: u64) -> bool {
        let Some((&(_, start), &(stop, used))) = self.parts.range((file, 0)..=(file, begin)).next_back()
        else {
            return false;
        };
        let is_held = end <= stop;
        if is_held {
            self.uses += 1;
            self.by_use.remove(&(used, file, start));
            self.by_use.insert((self.uses, file, start));
            self.parts.insert((file, start), (stop, self.uses));
        }
        is_held
    }

    /// Adds a part of a file; what was used least recently leaves the cache, down to its size.
    pub(super) fn add(&mut self, file: u32, begin: u64, end: u64, size: u64) {
        let (mut from, mut to) = (begin, end);
        // Parts do not touch, so their ends are in the order of their begins.
        while let Some((&(_, start), &(stop, used))) = self.parts.range((file, 0)..=(file, to)).next_back()
            && stop >= from
        {
            self.remove(file, start, stop, used);
            (from, to) = (from.min(start), to.max(stop));
        }
        self.uses += 1;
        self.insert(file, from, to, self.uses);
        while self.bytes > size
            && let Some(&(used, file, start)) = self.by_use.first()
        {
            let (stop, _) = self.parts[&(file, start)];
            let excess = (self.bytes - size).min(stop - start);
            self.remove(file, start, stop, used);
            self.insert(file, start + excess, stop, used);
        }
    }

    fn insert(&mut self, file: u32, begin: u64, end: u64, used: u64) {
        if begin < end {
            self.parts.insert((file, begin), (end, used));
            self.by_use.insert((used, file, begin));
            self.bytes += end - begin;
        }
    }

    fn remove(&mut self, file: u32, begin: u64, end: u64, used: u64) {
        self.parts.remove(&(file, begin));
        self.by_use.remove(&(used, file, begin));
        self.bytes -= end - begin;
    }
}

impl State for Cache {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { parts, by_use, bytes, uses } = self;
        visitor.saved(parts);
        visitor.saved(uses);
        if visitor.is_loading() {
            *by_use = parts.iter().map(|(&(file, begin), &(_, used))| (used, file, begin)).collect();
            let mut sizes = parts.iter().map(|(&(_, begin), &(end, _))| end.checked_sub(begin));
            let sum = sizes.try_fold(0, |sum: u64, size| sum.checked_add(size?));
            *bytes = sum.unwrap_or_else(|| {
                visitor.refuse();
                0
            });
        }
        if visitor.is_observing() {
            // The order of uses matters, not their number.
            let ends = by_use.iter().map(|&(_, file, begin)| (file, begin, parts[&(file, begin)].0));
            visitor.compare(&ends.collect::<Vec<_>>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_joins_parts_and_drops_the_least_recently_used() {
        let mut cache = Cache::default();
        for (begin, end) in [(0, 10), (20, 30), (10, 20)] {
            cache.add(1, begin, end, 100);
        }
        assert!(cache.read(1, 0, 30) && cache.read(1, 5, 25));
        assert!(!cache.read(1, 25, 31) && !cache.read(2, 0, 1));
        assert_eq!((cache.bytes, cache.parts.len()), (30, 1));
        cache.add(2, 0, 60, 100);
        assert!(cache.read(1, 0, 1));
        // 30 B too many: the other file has to leave room, from its begin.
        cache.add(3, 0, 40, 100);
        assert!(cache.read(1, 0, 30) && cache.read(3, 0, 40) && cache.read(2, 30, 60));
        assert!(!cache.read(2, 29, 60));
        assert_eq!(cache.bytes, 100);
        // A part above the size keeps its end.
        cache.add(4, 0, 1000, 100);
        assert!(cache.read(4, 900, 1000) && !cache.read(4, 899, 1000) && !cache.read(1, 0, 1));
    }
}
