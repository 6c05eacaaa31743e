//! Cache of transfer times without contention, by message size.

use pdes_core::Bytes;

use crate::machine::Passage;

/// Number of cached sizes: most messages between two ranks have few.
const KEPT: usize = 4;

/// Transfer times on one route, by size on the wire.
#[derive(Debug, Default)]
pub(super) struct Passages {
    /// Result of the last query.
    last: Option<(Bytes, Passage)>,
    /// Cached entries, the oldest first.
    kept: Vec<(Bytes, Passage)>,
}

impl Passages {
    /// Returns the last result if it was for this size.
    #[inline]
    pub(super) fn again(&self, bytes: Bytes) -> Option<Passage> {
        self.last.filter(|&(size, _)| size == bytes).map(|(_, known)| known)
    }

    /// Returns the transfer time of a message, obtained from `compute` on a miss.
    pub(super) fn of(&mut self, bytes: Bytes, look_up: impl FnOnce() -> Passage) -> Passage {
        let known = self.kept.iter().find(|(size, _)| *size == bytes).copied();
        let found = known.unwrap_or_else(|| self.keep(bytes, look_up()));
        self.last = Some(found);
        found.1
    }

    fn keep(&mut self, bytes: Bytes, passage: Passage) -> (Bytes, Passage) {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push((bytes, passage));
        (bytes, passage)
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
            assert_eq!((found, passages.again(Bytes::new(size))), (alone, Some(alone)));
            assert_eq!(passages.again(Bytes::new(size + 1)), None);
        }
        assert_eq!(looked_up, [1, 2, 3, 4, 5, 1]);
    }
}
