//! Folded sequences that grow.

use super::{Folded, FoldedCursor};

/// A folded sequence to which a machine appends.
#[derive(Clone, Debug)]
pub struct FoldedSequence<T> {
    parts: Vec<Folded<T>>,
    /// Number of parts that have been observed: items that follow are a part of their own.
    sealed: usize,
    /// Number of parts at the begin of each loop in progress, by its depth; none for loops that began before the sequence.
    begins: Vec<(usize, usize)>,
    len: u64,
}

impl<T> Default for FoldedSequence<T> {
    fn default() -> Self {
        Self { parts: Vec::new(), sealed: 0, begins: Vec::new(), len: 0 }
    }
}

impl<T> FoldedSequence<T> {
    /// Appends an item.
    pub fn push(&mut self, item: T) {
        self.len += 1;
        match self.parts[self.sealed..].last_mut() {
            Some(Folded::Items(items)) => items.push(item),
            _ => self.parts.push(Folded::Items(vec![item])),
        }
    }

    /// Returns the number of items, with repetitions.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Counts items, with repetitions.
    pub fn count(&self, is_counted: impl Fn(&T) -> bool) -> u64 {
        count(&self.parts, &is_counted)
    }

    /// Returns the parts.
    pub fn parts(&self) -> &[Folded<T>] {
        &self.parts
    }

    /// Returns the parts.
    pub fn into_parts(self) -> Vec<Folded<T>> {
        self.parts
    }

    /// Returns a cursor before the first item.
    pub fn cursor(&self) -> FoldedCursor<'_, T> {
        FoldedCursor::new(&self.parts)
    }

    /// Ends the last part; returns the number of parts.
    pub(super) fn seal(&mut self) -> usize {
        self.sealed = self.parts.len();
        self.sealed
    }

    /// Takes note of the begin of a loop.
    pub(super) fn begin_loop(&mut self, depth: usize) -> usize {
        self.begins.retain(|(other, _)| *other < depth);
        self.begins.push((depth, self.parts.len()));
        self.seal()
    }

    /// Returns the number of parts before the loop in progress of a depth.
    fn before_loop(&self, depth: usize) -> usize {
        self.begins.iter().find(|(other, _)| *other == depth).map_or(0, |(_, parts)| *parts)
    }
}

impl<T: PartialEq + Clone> FoldedSequence<T> {
    /// Returns the item that all items are equal to, if they are.
    pub fn only(&self) -> Option<&T> {
        fn is_all<T: PartialEq>(parts: &[Folded<T>], one: &T) -> bool {
            parts.iter().all(|part| match part {
                Folded::Items(items) => items.iter().all(|item| item == one),
                Folded::Loop(_, body) => is_all(body, one),
            })
        }
        let first = self.cursor().next()?;
        is_all(&self.parts, first).then_some(first)
    }

    /// Stores a sequence of equal items as one part, at whatever places they were appended.
    pub fn merge_equal(&mut self) {
        if let Some(only) = self.only().cloned() {
            self.parts = vec![Folded::Loop(self.len, vec![Folded::Items(vec![only])])];
            self.sealed = 1;
        }
    }

    /// Repeats the parts from a number on so many times more, in a loop of a depth.
    pub(super) fn repeat(&mut self, depth: usize, from: usize, times: u64) {
        let mut body = self.parts.split_off(from);
        if body.is_empty() {
            return;
        }
        self.len += times * count(&body, &|_| true);
        let first = self.before_loop(depth);
        let mut count = times + 1;
        // Iterations before, which began with other states, may have appended the same.
        while self.parts.len() >= first + body.len() && self.parts.ends_with(&body) {
            self.parts.truncate(self.parts.len() - body.len());
            count += 1;
        }
        if let [Folded::Loop(inner, _)] = &mut body[..] {
            *inner *= count;
            self.parts.append(&mut body);
        } else {
            self.parts.push(Folded::Loop(count, body));
        }
        self.join(self.parts.len().saturating_sub(2).max(first));
        self.seal();
    }

    /// Makes loops of one body that follow each other one, from a part on.
    fn join(&mut self, first: usize) {
        let mut rest = self.parts.split_off(first);
        rest.dedup_by(|later, earlier| match (earlier, later) {
            (Folded::Loop(count, body), Folded::Loop(more, other)) if body == other => {
                *count += *more;
                true
            }
            _ => false,
        });
        self.parts.append(&mut rest);
    }

    /// Ends a loop of a depth: whole iterations that follow a repetition become part of it.
    pub(super) fn end_loop(&mut self, depth: usize) {
        let first = self.before_loop(depth);
        let found = (first..self.parts.len()).find_map(|place| {
            let Folded::Loop(_, body) = &self.parts[place] else { return None };
            let rest = &self.parts[place + 1..];
            let is_whole = !rest.is_empty() && rest.len().is_multiple_of(body.len());
            let is_same = is_whole && rest.chunks(body.len()).all(|parts| parts == body);
            is_same.then(|| (place, (rest.len() / body.len()) as u64))
        });
        if let Some((place, more)) = found {
            self.parts.truncate(place + 1);
            if let Folded::Loop(count, _) = &mut self.parts[place] {
                *count += more;
            }
        }
        self.join(first);
        self.begins.retain(|(other, _)| *other < depth);
        self.seal();
    }
}

/// Counts items of parts, with repetitions.
fn count<T>(parts: &[Folded<T>], is_counted: &impl Fn(&T) -> bool) -> u64 {
    let of_part = |part: &Folded<T>| match part {
        Folded::Items(items) => items.iter().filter(|item| is_counted(item)).count() as u64,
        Folded::Loop(times, body) => times * count(body, is_counted),
    };
    parts.iter().map(of_part).sum()
}
