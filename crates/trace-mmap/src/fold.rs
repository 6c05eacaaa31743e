//! Folding: online detection of loops in the records of a rank.
//!
//! A window holds the last records, with the loops found so far as single items. When it ends in two equal sequences, or in a
//! loop and one more run of its body, they become one loop, which may in turn complete an outer one. Equal sequences are
//! found as in LZ77: a chain of earlier items with the hash of the last one gives the candidate lengths, a rolling hash
//! rejects most unequal sequences, and every match is compared item by item. Memory is bounded by the window; items
//! leave it in order and are then final.

mod bodies;
mod window;

use bodies::Bodies;
use window::Window;

use crate::record::Record;

/// Number of items that stay in the window when it overflows; it holds up to twice as many.
const WINDOW_ITEMS: usize = 1 << 16;

/// Number of items of the longest loop body.
const MAX_BODY_ITEMS: usize = WINDOW_ITEMS / 2;

/// Largest number of items of all stored bodies; beyond it the window is emptied and all bodies are dropped.
const MAX_STORED_ITEMS: usize = 1 << 20;

/// Largest number of earlier items that are tried as the end of an equal sequence.
const MAX_TRIES: usize = 16;

/// Kind of an item that represents a loop: its index is the body, its amount the count.
const LOOP_ITEM: u8 = u8::MAX;

fn loop_item(body: u32, count: u64) -> Record {
    Record::from_words(u64::from(LOOP_ITEM) | u64::from(body) << 32, count)
}

/// Returns body and count of an item that represents a loop.
fn as_loop(item: Record) -> Option<(u32, u64)> {
    (item.kind() == LOOP_ITEM).then(|| (item.index(), item.amount()))
}

/// Online folder of the records of one rank.
pub(crate) struct Folder {
    window: Window,
    bodies: Bodies,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { window: Window::new(), bodies: Bodies::default() }
    }

    /// Adds the next record; passes records that are final to `emit`.
    #[inline]
    pub(crate) fn push<E>(
        &mut self,
        record: Record,
        emit: &mut impl FnMut(Record) -> Result<(), E>,
    ) -> Result<(), E> {
        self.window.push(record, &self.bodies);
        while self.extend_loop() || self.begin_loop() {}
        if self.bodies.len() > MAX_STORED_ITEMS {
            self.finish(emit)?;
            self.bodies = Bodies::default();
        } else if self.window.len() >= 2 * WINDOW_ITEMS {
            let first = self.window.len() - WINDOW_ITEMS;
            self.emit_first(first, emit)?;
            self.window.drop_first(first, &self.bodies);
        }
        Ok(())
    }

    /// Emits all remaining records.
    pub(crate) fn finish<E>(&mut self, emit: &mut impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        let all = self.window.len();
        self.emit_first(all, emit)?;
        self.window.drop_first(all, &self.bodies);
        Ok(())
    }

    fn emit_first<E>(&self, len: usize, emit: &mut impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        self.window.items()[..len].iter().try_for_each(|item| self.bodies.emit(*item, emit))
    }

    /// Merges a loop and one more run of its body at the end of the window; returns whether there was one.
    fn extend_loop(&mut self) -> bool {
        let end = self.window.len();
        let found = self.window.due().find_map(|start| {
            let (body, count) = as_loop(self.window.items()[start])?;
            let is_run = self.bodies.hash(body) == self.window.hash(start + 1, end)
                && self.bodies.items(body) == &self.window.items()[start + 1..];
            (is_run && count < u64::MAX).then(|| (start, loop_item(body, count + 1)))
        });
        let Some((start, item)) = found else { return false };
        self.window.truncate(start, &self.bodies);
        self.window.push(item, &self.bodies);
        true
    }

    /// Replaces two equal sequences at the end of the window by a loop; returns whether there were any.
    fn begin_loop(&mut self) -> bool {
        let end = self.window.len();
        let len = self.window.candidates().take(MAX_TRIES).map(|last| end - 1 - last).find(|len| {
            let (first, second) = (end.wrapping_sub(2 * len), end - len);
            2 * len <= end
                && *len <= MAX_BODY_ITEMS
                && self.window.hash(first, second) == self.window.hash(second, end)
                && self.window.items()[first..second] == self.window.items()[second..end]
        });
        let Some(len) = len else { return false };
        let Some(body) =
            self.bodies.intern(&self.window.items()[end - len..], self.window.hash(end - len, end))
        else {
            return false;
        };
        self.window.truncate(end - 2 * len, &self.bodies);
        self.window.push(loop_item(body, 2), &self.bodies);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{LOOP_BEGIN, LOOP_END};
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn fold(records: impl IntoIterator<Item = u32>) -> Vec<Record> {
        let mut folder = Folder::new();
        let mut folded = Vec::new();
        let mut emit = |record| -> Result<(), Infallible> {
            folded.push(record);
            Ok(())
        };
        for index in records {
            folder.push(Record::column(index), &mut emit).expect("emitting never fails");
        }
        folder.finish(&mut emit).expect("emitting never fails");
        folded
    }

    fn unfold(records: &[Record]) -> Vec<u32> {
        let mut unfolded = Vec::new();
        let mut loops: Vec<(usize, u64)> = Vec::new();
        let mut at = 0;
        while at < records.len() {
            let record = records[at];
            at += 1;
            match record.kind() {
                LOOP_BEGIN => loops.push((at, record.amount())),
                LOOP_END => {
                    let (body, left) = loops.last_mut().expect("a loop");
                    *left -= 1;
                    if *left == 0 {
                        loops.pop();
                    } else {
                        at = *body;
                    }
                }
                _ => unfolded.push(record.index()),
            }
        }
        unfolded
    }

    #[test]
    fn nested_loops_are_found() {
        // 300 steps of: 1, 62 planes of (2 3 4), 5, 62 planes of (4 3 2).
        let plane = |records: [u32; 3]| std::iter::repeat_n(records, 62).flatten();
        let step = || std::iter::once(1).chain(plane([2, 3, 4])).chain([5]).chain(plane([4, 3, 2]));
        let all: Vec<u32> = std::iter::once(0).chain((0..300).flat_map(|_| step())).chain([9]).collect();
        let folded = fold(all.iter().copied());
        assert_eq!(unfold(&folded), all);
        // Two ends, three loops of two records each, and the eight records of a step.
        assert_eq!(folded.len(), 2 + 3 * 2 + 8);
    }

    #[test]
    fn short_loops_are_not_folded() {
        assert_eq!(fold([1, 1, 2]).len(), 3);
        assert_eq!(fold([1, 2, 1, 2]).len(), 4);
        assert_eq!(fold([1, 1, 1]).len(), 3);
        assert_eq!(fold([1, 1, 1, 1]).len(), 3);
    }

    #[test]
    fn folding_is_lossless_beyond_the_window() {
        let all: Vec<u32> = (0..5 * WINDOW_ITEMS as u32).map(|index| index % 7 * index).collect();
        assert_eq!(unfold(&fold(all.iter().copied())), all);
        let long = MAX_BODY_ITEMS as u32 + 7;
        let all: Vec<u32> = (0..3).flat_map(|_| 0..long).collect();
        assert_eq!(fold(all.iter().copied()).len(), all.len());
        let short = MAX_BODY_ITEMS as u32;
        let all: Vec<u32> = (0..3).flat_map(|_| 0..short).collect();
        assert_eq!(fold(all.iter().copied()).len(), short as usize + 2);
    }

    proptest! {
        #[test]
        fn folding_loses_nothing(
            parts in prop::collection::vec((prop::collection::vec(0_u32..4, 1..6), 1_usize..5), 0..12),
            times in 1_usize..5,
        ) {
            let once: Vec<u32> = parts.into_iter().flat_map(|(part, times)| part.repeat(times)).collect();
            let all = once.repeat(times);
            let folded = fold(all.iter().copied());
            prop_assert!(folded.len() <= all.len());
            prop_assert_eq!(unfold(&folded), all);
        }
    }
}
