//! What messages take alone on their way, kept for the sizes that they have had last.

use pdes_core::Bytes;

use crate::machine::Passage;

/// Sizes that are kept: most messages between two ranks are of few.
const KEPT: usize = 4;

/// What the messages of one way take, by their size on the wire; those looked up last come last.
#[derive(Debug, Default)]
pub(super) struct Passages(Vec<(Bytes, Passage)>);

impl Passages {
    /// Returns what a message takes, which is looked up where it is not known.
    #[inline]
    pub(super) fn of(&mut self, bytes: Bytes, look_up: impl FnOnce() -> Passage) -> Passage {
        match self.0.last() {
            Some(&(size, known)) if size == bytes => known,
            _ => self.of_other(bytes, look_up),
        }
    }

    #[inline(never)]
    fn of_other(&mut self, bytes: Bytes, look_up: impl FnOnce() -> Passage) -> Passage {
        if let Some(&(_, known)) = self.0.iter().find(|(size, _)| *size == bytes) {
            return known;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        let found = look_up();
        self.0.push((bytes, found));
        found
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::SimDuration;

    use super::*;

    #[test]
    fn the_last_sizes_are_kept() {
        let mut passages = Passages::default();
        let mut looked_up = Vec::new();
        for size in [1, 2, 3, 4, 1, 5, 5, 4, 1] {
            let alone = Passage { latency: SimDuration::from_picos(size), ..Passage::default() };
            let found = passages.of(Bytes::new(size), || {
                looked_up.push(size);
                alone
            });
            assert_eq!(found, alone);
        }
        assert_eq!(looked_up, [1, 2, 3, 4, 5, 1]);
    }
}
