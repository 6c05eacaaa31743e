//! Sizes of the parts of files that a server has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Ends of the parts of files that a server has \[B\], by the numbers of files; `None` if a part existed before the run, and its size is
/// not known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct PartSizes(BTreeMap<u32, Option<u64>>);

impl PartSizes {
    /// Sets the size of a part that exists before the run.
    pub(super) fn set(&mut self, file: u32, size: u64) {
        self.0.insert(file, Some(size));
    }

    /// Returns the size of a part: `Some(None)` if it is not known, `None` if there are no data of the file.
    pub(super) fn of(&self, file: u32) -> Option<Option<u64>> {
        self.0.get(&file).copied()
    }

    /// Follows a write up to `end`.
    pub(super) fn write(&mut self, file: u32, end: u64) {
        if let Some(size) = self.0.entry(file).or_insert(Some(0)) {
            *size = end.max(*size);
        }
    }

    /// Follows a read; returns the size of the part, if it is known. A part that is read first was there before.
    pub(super) fn read(&mut self, file: u32) -> Option<u64> {
        *self.0.entry(file).or_insert(None)
    }
}
