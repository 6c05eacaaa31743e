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
    /// Whether the samples of all ranks count together.
    pub of_all_ranks: bool,
    /// Number of its executions, of all ranks.
    pub executed: u64,
    /// Number of times that it took its mean time in place of an execution.
    pub skipped: u64,
    /// Mean work of its executions \[s, or instructions where these are counted\]; 0 where computations are not measured.
    pub mean_work: f64,
}

/// Executions of a block on each rank, in whose order work is added: executed, skipped, and their work.
type Executions = BTreeMap<u32, (u64, u64, f64)>;

/// Executions of sampled blocks, by place and scope.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<BTreeMap<(String, bool), Executions>>);

impl Samples {
    /// Adds what a rank says of a block.
    pub(crate) fn add(&self, rank: u32, place: String, operation: &Operation) {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let executions = (operation.bytes, operation.source_bytes, operation.seconds);
        blocks.entry((place, operation.flags != 0)).or_default().insert(rank, executions);
    }

    /// Returns the blocks, in the order of their places.
    pub(crate) fn blocks(&self) -> Vec<SampledBlock> {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let block = |((place, of_all_ranks), executions): (&(String, bool), &Executions)| {
            let executed = executions.values().map(|(executed, ..)| executed).sum();
            let work: f64 = executions.values().map(|(.., work)| work).sum();
            let mean_work = if executed == 0 { 0.0 } else { work / executed as f64 };
            let skipped = executions.values().map(|(_, skipped, _)| skipped).sum();
            SampledBlock { place: place.clone(), of_all_ranks: *of_all_ranks, executed, skipped, mean_work }
        };
        blocks.iter().map(block).collect()
    }
}
