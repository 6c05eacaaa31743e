//! Cursors over folded sequences.

use super::{Folded, State};

/// A cursor over the items of a folded sequence, which may be part of the state of a machine.
#[derive(Clone, Debug)]
pub struct FoldedCursor<'s, T> {
    /// The sequence, and the loops in progress.
    frames: Vec<Frame<'s, T>>,
}

#[derive(Debug)]
struct Frame<'s, T> {
    parts: &'s [Folded<T>],
    /// Number of the current part, and of its next item.
    part: usize,
    item: usize,
    /// Number of iterations before this one.
    done: u64,
    count: u64,
}

impl<T> Clone for Frame<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'s, T> FoldedCursor<'s, T> {
    pub(super) fn new(parts: &'s [Folded<T>]) -> Self {
        Self { frames: vec![Frame { parts, part: 0, item: 0, done: 0, count: 1 }] }
    }

    /// Describes the position.
    pub fn state(&mut self, state: &mut State<'_>) {
        state.word(self.frames.len() as u64);
        for frame in &self.frames {
            // Parts stay where they are while there is a cursor.
            for word in [frame.parts.as_ptr() as usize, frame.part, frame.item] {
                state.word(word as u64);
            }
        }
        state.exclusive_counters(self.frames.iter_mut().map(|frame| {
            let left = frame.count - 1 - frame.done;
            (&mut frame.done, left)
        }));
    }
}

impl<'s, T> Iterator for FoldedCursor<'s, T> {
    type Item = &'s T;

    fn next(&mut self) -> Option<&'s T> {
        loop {
            let frame = self.frames.last_mut()?;
            let parts = frame.parts;
            match parts.get(frame.part) {
                Some(Folded::Items(items)) if frame.item < items.len() => {
                    frame.item += 1;
                    return Some(&items[frame.item - 1]);
                }
                Some(Folded::Loop(count, body)) if frame.item == 0 && *count > 0 => {
                    frame.item = 1;
                    self.frames.push(Frame { parts: body, part: 0, item: 0, done: 0, count: *count });
                }
                Some(_) => (frame.part, frame.item) = (frame.part + 1, 0),
                None if frame.done + 1 < frame.count => {
                    (frame.done, frame.part, frame.item) = (frame.done + 1, 0, 0);
                }
                None => {
                    self.frames.pop();
                }
            }
        }
    }
}
