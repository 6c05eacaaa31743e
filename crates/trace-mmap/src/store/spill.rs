//! The spill file: written while a trace loads, then mapped read-only. The only unsafe code of the store.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::TraceError;
use crate::record::Record;

/// An unlinked temporary file of records.
pub(super) struct SpillFile {
    file: File,
    dir: PathBuf,
    records: usize,
}

impl SpillFile {
    /// Creates the file in `dir`, by default the system's directory for temporary files.
    pub(super) fn create(dir: Option<&Path>) -> Result<Self, TraceError> {
        let dir = dir.map_or_else(std::env::temp_dir, Path::to_path_buf);
        match tempfile::tempfile_in(&dir) {
            Ok(file) => Ok(Self { file, dir, records: 0 }),
            Err(source) => Err(TraceError::Spill { dir, source }),
        }
    }

    /// Appends records; returns the index of the first.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<usize, TraceError> {
        self.file.write_all(bytemuck::cast_slice(records)).map_err(|source| self.error(source))?;
        let first = self.records;
        self.records += records.len();
        Ok(first)
    }

    /// Maps the file.
    pub(super) fn map(self) -> Result<SpillMap, TraceError> {
        // SAFETY: the file was created by `tempfile_in`, which leaves no name for it, and its only handle is dropped
        // here: nobody can write to it or truncate it while the map lives.
        let map = unsafe { Mmap::map(&self.file) }.map_err(|source| self.error(source))?;
        Ok(SpillMap { map, records: self.records })
    }

    fn error(&self, source: io::Error) -> TraceError {
        TraceError::Spill { dir: self.dir.clone(), source }
    }
}

/// The mapped spill file.
#[derive(Debug)]
pub(super) struct SpillMap {
    map: Mmap,
    records: usize,
}

impl SpillMap {
    /// Returns all records.
    pub(super) fn records(&self) -> &[Record] {
        bytemuck::cast_slice(&self.map[..self.records * size_of::<Record>()])
    }
}
