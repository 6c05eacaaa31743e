//! Cache of transfer times without contention, by message size.

use pdes_core::Bytes;

use crate::machine::UncontendedTransfer;

/// Number of cached sizes: most messages between two ranks have few.
const ENTRIES: usize = 4;

/// Transfer times on one route, by size on the wire.
#[derive(Debug, Default)]
pub(super) struct TransferTimes {
    /// Result of the last query.
    last: Option<(Bytes, UncontendedTransfer)>,
    /// Cached entries, the oldest first.
    entries: Vec<(Bytes, UncontendedTransfer)>,
}

impl TransferTimes {
    /// Returns the last result if it was for this size.
    #[inline]
    pub(super) fn last_for(&self, bytes: Bytes) -> Option<UncontendedTransfer> {
        self.last.filter(|&(size, _)| size == bytes).map(|(_, known)| known)
    }

    /// Returns the transfer time of a message, obtained from `compute` on a miss.
    pub(super) fn get_or_compute(
        &mut self,
        bytes: Bytes,
        compute: impl FnOnce() -> UncontendedTransfer,
    ) -> UncontendedTransfer {
        let known = self.entries.iter().find(|(size, _)| *size == bytes).copied();
        let found = known.unwrap_or_else(|| self.insert(bytes, compute()));
        self.last = Some(found);
        found.1
    }

    fn insert(&mut self, bytes: Bytes, transfer: UncontendedTransfer) -> (Bytes, UncontendedTransfer) {
        if self.entries.len() == ENTRIES {
            self.entries.remove(0);
        }
        self.entries.push((bytes, transfer));
        (bytes, transfer)
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::SimDuration;

    use super::*;

    #[test]
    fn the_last_sizes_are_kept() {
        let mut times = TransferTimes::default();
        let mut looked_up = Vec::new();
        for size in [1, 2, 3, 4, 1, 5, 5, 4, 1] {
            let alone = UncontendedTransfer {
                latency: SimDuration::from_picos(size),
                ..UncontendedTransfer::default()
            };
            let found = times.get_or_compute(Bytes::new(size), || {
                looked_up.push(size);
                alone
            });
            assert_eq!((found, times.last_for(Bytes::new(size))), (alone, Some(alone)));
            assert_eq!(times.last_for(Bytes::new(size + 1)), None);
        }
        assert_eq!(looked_up, [1, 2, 3, 4, 5, 1]);
    }
}
