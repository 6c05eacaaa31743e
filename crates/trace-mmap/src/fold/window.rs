//! Window of the items that may still become part of a loop.

use crate::fold::as_loop;
use crate::fold::bodies::Bodies;
use crate::record::Record;

/// Number of entries of the hash table of last items: at first, as most ranks have few different records, and at most.
const FIRST_TABLE_ENTRIES: usize = 1 << 8;
const TABLE_ENTRIES: usize = 1 << 16;

/// Index that stands for no item; windows are shorter.
const NONE: u32 = u32::MAX;

/// Base of the rolling hash; odd, so that multiplication by it is invertible modulo 2^64.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The window: a stack of items, with hash chains.
///
/// The chains are stacks too: an item that is popped is the head of its chains, because all later items were popped before.
pub(super) struct Window {
    items: Vec<Record>,
    /// Prefix hashes: the hash of all items before each item, and of all items.
    hashes: Vec<u64>,
    /// Chain of each item: the previous item with the same entry in `last`.
    previous: Vec<u32>,
    /// Last item with each hash. Grows with the window.
    last: Vec<u32>,
    /// For each length of the window, the last loop that may be followed by exactly one run of its body at that length.
    due: Vec<u32>,
    /// Chain of each loop: the previous loop with the same entry in `due`.
    due_previous: Vec<u32>,
    /// Powers of the base of the rolling hash, up to that of the longest window so far.
    powers: Vec<u64>,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            items: Vec::new(),
            hashes: vec![0],
            previous: Vec::new(),
            last: vec![NONE; FIRST_TABLE_ENTRIES],
            due: vec![NONE],
            due_previous: Vec::new(),
            powers: vec![1],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn items(&self) -> &[Record] {
        &self.items
    }

    /// Returns the hash of the items of a range.
    #[inline]
    pub(super) fn hash(&self, start: usize, end: usize) -> u64 {
        self.hashes[end].wrapping_sub(self.hashes[start].wrapping_mul(self.powers[end - start]))
    }

    /// Returns the earlier items that may equal the last one, the nearest first.
    #[inline]
    pub(super) fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        let last = self.items.last().copied();
        let next = |index: &u32| Some(self.previous[*index as usize]).filter(|index| *index != NONE);
        let first = self.previous.last().copied().filter(|index| *index != NONE);
        std::iter::successors(first, next)
            .map(|index| index as usize)
            .filter(move |index| Some(self.items[*index]) == last)
    }

    /// Returns the loops that are followed by as many items as their body has.
    #[inline]
    pub(super) fn due(&self) -> impl Iterator<Item = usize> + '_ {
        let next = |index: &u32| Some(self.due_previous[*index as usize]).filter(|index| *index != NONE);
        let first = self.due.get(self.len()).copied().filter(|index| *index != NONE);
        std::iter::successors(first, next).map(|index| index as usize)
    }

    /// Adds an item.
    #[inline]
    pub(super) fn push(&mut self, item: Record, bodies: &Bodies) {
        if self.items.len() >= self.last.len() && self.last.len() < TABLE_ENTRIES {
            self.grow_table();
        }
        let (index, mixed) = (self.items.len() as u32, hash_item(item));
        let entry = self.table_entry(mixed);
        self.previous.push(std::mem::replace(&mut self.last[entry], index));
        if self.powers.len() <= self.hashes.len() {
            self.powers.push(self.powers[self.powers.len() - 1].wrapping_mul(BASE));
        }
        let hash = self.hashes[self.items.len()];
        self.hashes.push(hash.wrapping_mul(BASE).wrapping_add(mixed));
        self.items.push(item);
        let due_earlier = match next_run_end(index, item, bodies) {
            Some(length) => {
                if self.due.len() <= length {
                    self.due.resize(length + 1, NONE);
                }
                std::mem::replace(&mut self.due[length], index)
            }
            None => NONE,
        };
        self.due_previous.push(due_earlier);
    }

    /// Makes the table of last items four times as large, and the chains anew: they lead to the same equal items.
    #[cold]
    fn grow_table(&mut self) {
        self.last = vec![NONE; self.last.len() * 4];
        for (index, item) in (0_u32..).zip(&self.items) {
            let entry = self.table_entry(hash_item(*item));
            self.previous[index as usize] = std::mem::replace(&mut self.last[entry], index);
        }
    }

    /// Returns the entry of an item in the table of last items.
    #[inline]
    fn table_entry(&self, mixed: u64) -> usize {
        (mixed >> 48) as usize & (self.last.len() - 1)
    }

    /// Removes the last items.
    pub(super) fn truncate(&mut self, len: usize, bodies: &Bodies) {
        while self.items.len() > len {
            self.pop(bodies);
        }
    }

    fn pop(&mut self, bodies: &Bodies) {
        let (Some(item), Some(earlier), Some(due_earlier)) =
            (self.items.pop(), self.previous.pop(), self.due_previous.pop())
        else {
            return;
        };
        self.hashes.pop();
        let entry = self.table_entry(hash_item(item));
        self.last[entry] = earlier;
        if let Some(length) = next_run_end(self.items.len() as u32, item, bodies) {
            self.due[length] = due_earlier;
        }
    }

    /// Removes the first items.
    pub(super) fn drop_first(&mut self, len: usize, bodies: &Bodies) {
        let kept = self.items.split_off(len);
        self.items.clear();
        self.hashes.truncate(1);
        self.previous.clear();
        self.last.fill(NONE);
        self.due.clear();
        self.due_previous.clear();
        kept.into_iter().for_each(|item| self.push(item, bodies));
    }
}

/// Returns the length of the window at which one more run of the body of a loop may be complete; `None` for other items.
fn next_run_end(index: u32, item: Record, bodies: &Bodies) -> Option<usize> {
    let (body, _) = as_loop(item)?;
    Some(index as usize + 1 + bodies.items(body).len())
}

#[inline]
fn hash_item(item: Record) -> u64 {
    let [head, amount] = item.words();
    let mixed = (head ^ amount.rotate_left(29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ mixed >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd)
}
