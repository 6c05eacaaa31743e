//! Sampled blocks of a program.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::layout::Operation;

/// A block that was sampled: marked by `include/pdes_sample.h`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledBlock {
    /// File and line, or the name that a Fortran program gives it.
    pub place: String,
    /// The samples of all ranks count together.
    pub of_all_ranks: bool,
    /// Number of its executions, of all ranks.
    pub executed: u64,
    /// Number of times that it took its mean time in place of an execution.
    pub skipped: u64,
    /// Mean work of its executions \[s, or instructions where these are counted\]; 0 where computations are not measured.
    pub mean_work: f64,
}

/// Numbers of executions of a block by a rank and of those it has skipped, and the work of the executions.
#[derive(Clone, Copy, Debug)]
struct Part {
    executed: u64,
    skipped: u64,
    work: f64,
}

/// Parts of the ranks in each block, by its place and whether its samples are of all ranks. They are added in the order of ranks.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<BTreeMap<(String, bool), BTreeMap<u32, Part>>>);

impl Samples {
    /// Adds what a rank says of a block.
    pub(crate) fn add(&self, rank: u32, place: String, operation: &Operation) {
        let &Operation { bytes: executed, source_bytes: skipped, seconds: work, flags, .. } = operation;
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.entry((place, flags != 0)).or_default().insert(rank, Part { executed, skipped, work });
    }

    /// Returns the blocks, in the order of their places.
    pub(crate) fn blocks(&self) -> Vec<SampledBlock> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::with_capacity(blocks.len());
        for ((place, of_all_ranks), parts) in &*blocks {
            let executed = parts.values().map(|part| part.executed).sum();
            let skipped = parts.values().map(|part| part.skipped).sum();
            let work: f64 = parts.values().map(|part| part.work).sum();
            let mean_work = if executed == 0 { 0.0 } else { work / executed as f64 };
            let (place, of_all_ranks) = (place.clone(), *of_all_ranks);
            found.push(SampledBlock { place, of_all_ranks, executed, skipped, mean_work });
        }
        found
    }
}
