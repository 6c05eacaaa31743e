//! Storage of records while a trace loads: in memory up to a budget, beyond it in an unlinked temporary file.

mod spill;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::TraceError;
use crate::record::Record;
use spill::{SpillFile, SpillMap};

/// Number of records of a full chunk.
pub(crate) const CHUNK: usize = 4096;

/// Consecutive records of a rank.
#[derive(Debug)]
enum Chunk {
    Memory(Box<[Record]>),
    /// Range in the spill file, in records.
    Spilled {
        first: usize,
        len: usize,
    },
}

/// The records of a rank, in order.
#[derive(Debug, Default)]
pub(crate) struct Records {
    chunks: Vec<Chunk>,
    len: u64,
    spill: Option<Arc<SpillMap>>,
}

impl Records {
    /// Returns the number of records.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the chunk `number`, or `None` beyond the last.
    pub(crate) fn chunk(&self, number: usize) -> Option<&[Record]> {
        match self.chunks.get(number)? {
            Chunk::Memory(records) => Some(records),
            Chunk::Spilled { first, len } => {
                let map = self.spill.as_ref().expect("the spill file is mapped once loading ends");
                Some(&map.records()[*first..first + len])
            }
        }
    }

    /// Returns whether a record is of a kind; it is found fast at the end.
    pub(crate) fn has_kind(&self, kind: u8) -> bool {
        (0..self.chunks.len()).rev().any(|chunk| {
            let mut records = self.chunk(chunk).unwrap_or_default().iter().rev();
            records.any(|record| record.kind() == kind)
        })
    }

    /// Appends a chunk of actions, which the progress counter counts.
    pub(crate) fn push(&mut self, records: Vec<Record>, store: &Store<'_>) -> Result<(), TraceError> {
        if let Some(progress) = store.progress {
            // A display elsewhere reads this counter; nothing depends on its order.
            progress.fetch_add(records.len() as u64, Ordering::Relaxed);
        }
        self.push_annotations(records, store)
    }

    /// Appends a chunk of records that annotate others and do not count as actions.
    pub(crate) fn push_annotations(
        &mut self,
        records: Vec<Record>,
        store: &Store<'_>,
    ) -> Result<(), TraceError> {
        self.len += records.len() as u64;
        self.chunks.push(store.store_chunk(records)?);
        Ok(())
    }

    fn is_spilled(&self) -> bool {
        self.chunks.iter().any(|chunk| matches!(chunk, Chunk::Spilled { .. }))
    }
}

/// State shared by the loading threads: the memory budget, the spill file and the progress counter.
pub(crate) struct Store<'a> {
    budget: u64,
    used: AtomicU64,
    spill_dir: Option<&'a Path>,
    spill: Mutex<Option<SpillFile>>,
    progress: Option<&'a AtomicU64>,
}

impl<'a> Store<'a> {
    /// Creates a store that keeps up to `budget` bytes of records in memory.
    pub(crate) fn new(budget: u64, spill_dir: Option<&'a Path>, progress: Option<&'a AtomicU64>) -> Self {
        Self { budget, used: AtomicU64::new(0), spill_dir, spill: Mutex::new(None), progress }
    }

    fn store_chunk(&self, records: Vec<Record>) -> Result<Chunk, TraceError> {
        let size = size_of_val(records.as_slice()) as u64;
        // Relaxed: the counter guards no other memory, and the trace does not depend on which chunks are spilled.
        if self.used.fetch_add(size, Ordering::Relaxed) + size <= self.budget {
            return Ok(Chunk::Memory(records.into_boxed_slice()));
        }
        self.used.fetch_sub(size, Ordering::Relaxed);
        self.spill(&records)
    }

    fn spill(&self, records: &[Record]) -> Result<Chunk, TraceError> {
        let mut spill = self.spill.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *spill {
            Some(file) => file,
            empty => empty.insert(SpillFile::create(self.spill_dir)?),
        };
        Ok(Chunk::Spilled { first: file.append(records)?, len: records.len() })
    }

    /// Maps the spill file, if there is one, and hands the map to the records that are in it.
    pub(crate) fn finish<'r>(self, records: impl Iterator<Item = &'r mut Records>) -> Result<(), TraceError> {
        if let Some(file) = self.spill.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let map = Arc::new(file.map()?);
            for records in records.filter(|records| records.is_spilled()) {
                records.spill = Some(Arc::clone(&map));
            }
        }
        Ok(())
    }
}
