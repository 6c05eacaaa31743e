//! Serializable position of a walk.

use serde::{Deserialize, Serialize};

use crate::archive::program_walk::LoopFrame;
use crate::archive::{ArchivedRank, Damage, InsertCursor, IterationBoundaries, ProgramWalk};
use crate::column::PrefetchedColumns;
use crate::record::Record;

/// Position of a walk in its program and in the columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WalkPosition {
    /// Index of the next record.
    record: u64,
    /// The loops in progress, the outermost first.
    levels: Vec<LoopFrame>,
    /// Number of further iterations that may be without an action.
    idle_iterations: u64,
    /// Number of values read from each column that is not constant.
    used_values: Vec<u64>,
    /// The next inserted computation, relative to the next record.
    inserts: InsertCursor,
    /// State of the iterations, and number of records read, if the cursor stops at iteration boundaries.
    boundaries: Option<(Box<IterationBoundaries>, u64)>,
}

impl WalkPosition {
    pub(crate) fn inserts(&self) -> InsertCursor {
        self.inserts
    }

    /// Returns the number of records read, without loop begins and ends, where that matters.
    pub(crate) fn records(&self) -> Option<u64> {
        self.boundaries.as_ref().map(|(_, records)| *records)
    }
}

impl<'a> ProgramWalk<'a> {
    /// Returns the position of the walk before the records `rest`, after `read` records.
    pub(crate) fn position_before(
        &self,
        rest: &[Record],
        prefetched: &PrefetchedColumns<'_>,
        inserts: InsertCursor,
        read: u64,
    ) -> WalkPosition {
        let (depth, record) = self.depth_and_index(rest);
        let used = varying_columns(self.rank).map(|column| prefetched.taken(column)).collect();
        let levels = self.frames[..depth].to_vec();
        WalkPosition {
            record,
            levels,
            idle_iterations: self.idle_iterations,
            used_values: used,
            inserts: inserts.relative_to(read),
            boundaries: self.boundaries.clone().map(|boundaries| (boundaries, read)),
        }
    }

    /// Resumes at a position of the same walk; returns the records that follow.
    ///
    /// # Errors
    /// Fails if the program has no such position or the page with its records is damaged.
    pub(crate) fn resume_at(
        &mut self,
        place: &WalkPosition,
        prefetched: &mut PrefetchedColumns<'a>,
    ) -> Result<&'a [Record], Damage> {
        let WalkPosition { record, levels, idle_iterations, used_values, inserts, boundaries } = place;
        let has_own_boundaries = match (&self.boundaries, boundaries) {
            (Some(own), Some((saved, _))) => own.is_of_rank_of(saved, levels.len()),
            (own, saved) => own.is_none() && saved.is_none(),
        };
        let is_before = |level: &LoopFrame| level.body <= *record;
        let columns = varying_columns(self.rank);
        if levels.len() > self.frames.len()
            || !levels.iter().all(is_before)
            || columns.clone().count() != used_values.len()
            || !inserts.is_valid_for(&self.rank.class)
            || !has_own_boundaries
        {
            return Err(Self::bad_loop());
        }
        self.depth = levels.len();
        self.frames[..levels.len()].copy_from_slice(levels);
        self.idle_iterations = *idle_iterations;
        self.boundaries = boundaries.clone().map(|(boundaries, _)| boundaries);
        columns.zip(used_values).for_each(|(column, &used)| prefetched.seek(column, used));
        self.advance_to(*record)
    }
}

/// Returns the columns that are not constant.
fn varying_columns(rank: &ArchivedRank) -> impl Iterator<Item = u32> + Clone + '_ {
    (0..).zip(rank.class.columns.iter()).filter(|(_, column)| !column.is_constant()).map(|(column, _)| column)
}
