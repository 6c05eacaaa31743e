//! Sizes of the files of file systems.

use std::collections::BTreeMap;

use pdes_core::StateWriter;
use serde::{Deserialize, Serialize};

use super::file_request::{FileOperation, FileRequest};

/// Sizes of files \[B\], by file system and number; `None` if a file existed before the run, and its size is not known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FileSizes(BTreeMap<(u32, u32), Option<u64>>);

impl FileSizes {
    /// Sets the size of a file that exists before the run.
    pub(super) fn set(&mut self, system: u32, file: u32, size: u64) {
        self.0.insert((system, file), Some(size));
    }

    /// Writes all sizes.
    pub(super) fn write_state(&self, state: &mut StateWriter) {
        state.value(&self.0);
    }

    /// Returns the size of the file of a request, if it is known.
    pub(super) fn of(&self, request: &FileRequest) -> Option<u64> {
        self.0.get(&(request.system.get(), request.file)).copied().flatten()
    }

    /// Returns whether the file of a request has data, or may have.
    pub(super) fn has(&self, request: &FileRequest) -> bool {
        self.0.contains_key(&(request.system.get(), request.file))
    }

    /// Makes a read of what exists one of that, which is nothing if no size is known.
    pub(super) fn cut_to_existing(&self, request: &mut FileRequest) {
        if request.operation == FileOperation::ReadExisting {
            let size = self.of(request).unwrap_or(0);
            request.bytes = request.bytes.min(size.saturating_sub(request.offset));
            request.operation = FileOperation::Read;
        }
    }

    /// Follows a read or a write up to `end`.
    ///
    /// # Errors
    /// Fails with the size of the file if a read goes beyond it.
    pub(super) fn access(&mut self, request: &FileRequest, end: u64) -> Result<(), u64> {
        let key = (request.system.get(), request.file);
        if request.operation == FileOperation::Write {
            if let Some(size) = self.0.entry(key).or_insert(Some(0)) {
                *size = end.max(*size);
            }
            return Ok(());
        }
        match *self.0.entry(key).or_insert(None) {
            Some(size) if end > size => Err(size),
            _ => Ok(()),
        }
    }
}
