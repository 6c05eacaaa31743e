//! Boundaries between iterations of loops, and how many upcoming iterations equal the last one. A replay that reaches a steady
//! state can skip these.
//!
//! Loops whose bodies are [kept](crate::archive::unroll::LoopBodies::Kept) have boundaries. Those of a nested loop count where the
//! iteration around it does not begin at a boundary itself: in the first one of its loop, where iterations around differ, and after
//! one in which nested iterations were skipped.

use serde::{Deserialize, Serialize};

use crate::archive::{ArchivedRank, Damage, InsertCursor};
use crate::column::{ColumnReader, PrefetchedColumns};

/// Largest number of values of a column per iteration that are compared; iterations with more do not count as equal.
const MAX_VALUES_PER_ITERATION: u64 = 1 << 20;

/// Equal iterations have boundaries only if they hold at least 1/64 of the actions of their rank: stopping at others costs more
/// than it can save.
pub(crate) const MIN_SHARE_INVERSE: u64 = 64;

/// Identifies the run of a loop among all those of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoopRun {
    /// Index of the first record of its body.
    body: u64,
    /// Number of the run among those of nested loops, from 1; 0 for an outermost loop, which runs once.
    nested: u64,
}

impl LoopRun {
    /// Returns whether the loop is nested in another one.
    pub fn is_nested(&self) -> bool {
        self.nested > 0
    }
}

/// The boundary between two iterations of a loop that is followed by iterations equal to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationBoundary {
    /// The loop in which it lies.
    pub loop_run: LoopRun,
    /// Number of upcoming iterations with the same actions and amounts as the last one; at least one.
    pub upcoming_equal: u64,
    /// Number of consecutive equal iterations up to here; at least one.
    pub completed_equal: u64,
}

/// An iteration that equals the last one of its loop, and how much of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationInProgress {
    /// The boundary at which it began. The iteration is the first of the upcoming ones.
    pub boundary: IterationBoundary,
    /// Number of its actions that have been read.
    pub actions_read: u64,
    /// Number of actions of each of the equal iterations.
    pub actions: u64,
}

/// Tracks the iterations of the current loops of a cursor that have boundaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IterationBoundaries {
    outermost: LoopIterations,
    /// `None` if no nested loop of the rank has boundaries.
    nested: Option<Box<NestedLoop>>,
}

/// Tracks the nested loop with boundaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct NestedLoop {
    /// Number of loops in progress, this one and those around it; 0 outside of it.
    depth: usize,
    /// Number of nested loops begun.
    runs: u64,
    iterations: LoopIterations,
}

/// Tracks the iterations of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LoopIterations {
    /// Index of the first record of the body.
    body: u64,
    /// Index of the record after the end of the loop, which is known after one iteration.
    after_loop: u64,
    /// Number of completed iterations.
    completed: u64,
    /// Read position at the start of this iteration.
    iteration_start: ReadPosition,
    /// Number of actions of the last iteration.
    actions_per_iteration: u64,
    /// Number of records of the last iteration, without loop begins and ends.
    records_per_iteration: u64,
    upcoming_equal: u64,
    completed_equal: u64,
    /// True if the start of this iteration is a boundary, whether or not the cursor stops there.
    has_begun_at_boundary: bool,
    /// True if the cursor stops there.
    is_at_boundary: bool,
    /// Iterations of a nested loop were skipped in this iteration: it can be compared with no other.
    is_incomplete: bool,
    /// Number of boundaries that the cursor passes over before it stops at one.
    boundaries_to_pass: u64,
    /// Uses of the columns that are not constant.
    column_uses: Box<[ColumnUse]>,
}

/// Iterations that were skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkippedIterations {
    /// Number of loops in progress, that of the iterations and those around it.
    pub(crate) depth: usize,
    /// Number of actions before the position behind them.
    pub(crate) position: u64,
    /// Number of their records, without loop begins and ends.
    pub(crate) records: u64,
    /// Index of the record after the end of the loop.
    pub(crate) after_loop: u64,
}

/// Read position of a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadPosition {
    /// Number of actions read.
    pub(crate) actions: u64,
    /// Number of records read, without loop begins and ends.
    pub(crate) records: u64,
    pub(crate) inserts: InsertCursor,
}

/// Use of a column by a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ColumnUse {
    column: u32,
    /// Number of values used before this iteration.
    used_before: u64,
    /// Number of values used in the last iteration.
    per_iteration: u64,
}

impl IterationBoundaries {
    pub(crate) fn new(rank: &ArchivedRank, has_nested: bool) -> Self {
        let outermost = LoopIterations::new(rank);
        let nested =
            has_nested.then(|| Box::new(NestedLoop { depth: 0, runs: 0, iterations: outermost.clone() }));
        Self { outermost, nested }
    }

    /// Returns whether a saved state is one of the same rank, at most `depth` loops deep.
    pub(super) fn is_of_rank_of(&self, saved: &Self, depth: usize) -> bool {
        self.outermost.has_columns_of(&saved.outermost)
            && match (&self.nested, &saved.nested) {
                (Some(own), Some(saved)) => {
                    own.iterations.has_columns_of(&saved.iterations) && saved.depth <= depth
                }
                (own, saved) => own.is_none() && saved.is_none(),
            }
    }

    /// Returns the boundary at `position`, if there is one.
    pub(crate) fn boundary_at(&self, position: u64) -> Option<IterationBoundary> {
        let nested = self.nested_in_progress();
        let nested = nested.and_then(|nested| nested.iterations.boundary_at(position, nested.runs));
        nested.or_else(|| self.outermost.boundary_at(position, 0))
    }

    /// Returns the iteration in progress at `position` if it began at a boundary.
    pub(crate) fn in_progress_at(&self, position: u64) -> Option<IterationInProgress> {
        let nested = self.nested_in_progress();
        let nested = nested.and_then(|nested| nested.iterations.in_progress_at(position, nested.runs));
        nested.or_else(|| self.outermost.in_progress_at(position, 0))
    }

    /// Returns the nested loop in progress.
    fn nested_in_progress(&self) -> Option<&NestedLoop> {
        self.nested.as_deref().filter(|nested| nested.depth > 0)
    }

    /// Returns the loop in which an iteration began at a boundary, the outermost one if none did, and its depth.
    fn current(&mut self) -> (&mut LoopIterations, usize) {
        match self.nested.as_deref_mut().filter(|nested| nested.depth > 0) {
            Some(NestedLoop { depth, iterations, .. }) if iterations.has_begun_at_boundary => {
                (iterations, *depth)
            }
            _ => (&mut self.outermost, 1),
        }
    }

    /// Makes the cursor pass over the next `boundaries` of the current loop.
    pub(crate) fn pass(&mut self, boundaries: u64) {
        self.current().0.boundaries_to_pass = boundaries;
    }

    /// Begins to track a loop, `depth` loops deep.
    pub(crate) fn enter_loop(
        &mut self,
        depth: usize,
        body: u64,
        reached: ReadPosition,
        prefetched: &PrefetchedColumns<'_>,
    ) {
        let Some(nested) = self.nested.as_deref_mut().filter(|_| depth > 1) else {
            return self.outermost.enter_loop(body, reached, prefetched);
        };
        (nested.depth, nested.runs) = (depth, nested.runs + 1);
        nested.iterations.enter_loop(body, reached, prefetched);
    }

    /// Notes that `depth` loops are in progress.
    pub(crate) fn leave_to(&mut self, depth: usize) {
        if let Some(nested) = &mut self.nested
            && nested.depth > depth
        {
            nested.depth = 0;
        }
    }

    /// Records the end of an iteration, `depth` loops deep and before the record `behind` that follows the loop, with `left` iterations
    /// to come; returns whether the cursor stops at this boundary.
    pub(crate) fn end_iteration(
        &mut self,
        (depth, behind): (usize, u64),
        left: u64,
        reached: ReadPosition,
        prefetched: &PrefetchedColumns<'_>,
        rank: &ArchivedRank,
    ) -> Result<bool, Damage> {
        let Self { outermost, nested } = self;
        let iterations = match nested {
            _ if depth == 1 => outermost,
            Some(nested) if nested.depth == depth && !outermost.has_begun_at_boundary => {
                &mut nested.iterations
            }
            _ => return Ok(false),
        };
        iterations.after_loop = behind;
        iterations.end_iteration(left, reached, prefetched, rank)
    }

    /// Skips `iterations` upcoming iterations of the current loop, which equal the last one.
    pub(crate) fn skip_iterations(
        &mut self,
        iterations: u64,
        prefetched: &mut PrefetchedColumns<'_>,
    ) -> SkippedIterations {
        let (current, depth) = self.current();
        current.skip_iterations(iterations, prefetched);
        let skipped = SkippedIterations {
            depth,
            position: current.iteration_start.actions,
            records: current.records_per_iteration.saturating_mul(iterations),
            after_loop: current.after_loop,
        };
        self.outermost.is_incomplete |= depth > 1;
        skipped
    }
}

impl LoopIterations {
    fn new(rank: &ArchivedRank) -> Self {
        let columns = (0..)
            .zip(&rank.class.columns[..rank.class.program_columns])
            .filter(|(_, column)| !column.is_constant());
        let columns =
            columns.map(|(column, _)| ColumnUse { column, used_before: 0, per_iteration: 0 }).collect();
        Self { column_uses: columns, ..Self::default() }
    }

    fn has_columns_of(&self, other: &Self) -> bool {
        let columns = |of: &Self| of.column_uses.iter().map(|uses| uses.column).collect::<Vec<_>>();
        columns(self) == columns(other)
    }

    /// Returns the boundary at `position`, if there is one.
    fn boundary_at(&self, position: u64, nested: u64) -> Option<IterationBoundary> {
        let is_there = self.is_at_boundary && self.iteration_start.actions == position;
        is_there.then(|| self.boundary(nested))
    }

    /// Returns the iteration in progress at `position` if it began at a boundary.
    fn in_progress_at(&self, position: u64, nested: u64) -> Option<IterationInProgress> {
        self.has_begun_at_boundary.then(|| IterationInProgress {
            boundary: self.boundary(nested),
            actions_read: position.saturating_sub(self.iteration_start.actions),
            actions: self.actions_per_iteration,
        })
    }

    fn boundary(&self, nested: u64) -> IterationBoundary {
        let Self { body, upcoming_equal, completed_equal, .. } = *self;
        IterationBoundary { loop_run: LoopRun { body, nested }, upcoming_equal, completed_equal }
    }

    /// Begins to track a loop.
    fn enter_loop(&mut self, body: u64, reached: ReadPosition, prefetched: &PrefetchedColumns<'_>) {
        (self.body, self.iteration_start) = (body, reached);
        (
            self.completed,
            self.upcoming_equal,
            self.completed_equal,
            self.has_begun_at_boundary,
            self.is_at_boundary,
            self.is_incomplete,
            self.boundaries_to_pass,
        ) = (0, 0, 0, false, false, false, 0);
        self.column_uses.iter_mut().for_each(|uses| uses.used_before = prefetched.taken(uses.column));
    }

    /// Records the end of an iteration, with `left` iterations to come; returns whether the cursor stops at this boundary.
    fn end_iteration(
        &mut self,
        left: u64,
        reached: ReadPosition,
        prefetched: &PrefetchedColumns<'_>,
        rank: &ArchivedRank,
    ) -> Result<bool, Damage> {
        self.completed += 1;
        let before = std::mem::replace(&mut self.iteration_start, reached);
        self.actions_per_iteration = reached.actions.saturating_sub(before.actions);
        self.records_per_iteration = reached.records.saturating_sub(before.records);
        for uses in &mut self.column_uses {
            let used = prefetched.taken(uses.column);
            (uses.per_iteration, uses.used_before) = (used.saturating_sub(uses.used_before), used);
        }
        if std::mem::take(&mut self.is_incomplete) {
            self.upcoming_equal = 0;
        } else if self.upcoming_equal > 0 {
            (self.upcoming_equal, self.completed_equal) = (self.upcoming_equal - 1, self.completed_equal + 1);
        } else if self.completed.is_power_of_two() {
            // Searching only after 1, 2, 4, 8, ... iterations bounds the cost if amounts never repeat.
            let is_alone = reached.inserts.upcoming() != before.inserts.upcoming();
            let alike = if is_alone { 0 } else { self.count_upcoming_equal(left, rank)? };
            (self.upcoming_equal, self.completed_equal) = (alike, 1);
        }
        let iterations = self.upcoming_equal.saturating_add(self.completed_equal);
        let share = self.actions_per_iteration.saturating_mul(iterations).saturating_mul(MIN_SHARE_INVERSE);
        // A replay needs two boundaries to see what an iteration changes, and a third iteration that it can skip.
        let is_boundary = self.upcoming_equal > 0 && iterations > 2 && share >= rank.class.actions;
        self.has_begun_at_boundary = is_boundary;
        self.is_at_boundary = is_boundary && self.boundaries_to_pass == 0;
        self.boundaries_to_pass = self.boundaries_to_pass.saturating_sub(is_boundary.into());
        Ok(self.is_at_boundary)
    }

    /// Counts the upcoming iterations that equal the last one.
    fn count_upcoming_equal(&self, left: u64, rank: &ArchivedRank) -> Result<u64, Damage> {
        // A computation inserted after the last record of an iteration belongs to that iteration.
        let records = self.iteration_start.inserts.records_until_next_after(self.iteration_start.records, 1);
        let mut alike = left.min(records / self.records_per_iteration.max(1));
        for uses in self.column_uses.iter().filter(|uses| uses.per_iteration > 0) {
            alike = alike.min(uses.count_upcoming_equal(alike, rank)?);
        }
        Ok(alike)
    }

    /// Skips `iterations` upcoming iterations, which equal the last one.
    fn skip_iterations(&mut self, iterations: u64, prefetched: &mut PrefetchedColumns<'_>) {
        self.completed += iterations;
        self.upcoming_equal -= iterations;
        self.iteration_start.actions += self.actions_per_iteration.saturating_mul(iterations);
        // From here on the cursor counts records and actions alike.
        self.iteration_start.records = self.iteration_start.actions;
        for uses in &mut self.column_uses {
            uses.used_before = uses.used_before.saturating_add(uses.per_iteration.saturating_mul(iterations));
            prefetched.seek(uses.column, uses.used_before);
        }
        self.has_begun_at_boundary &= self.upcoming_equal > 0;
        self.is_at_boundary &= self.upcoming_equal > 0;
    }
}

impl ColumnUse {
    /// Counts the upcoming iterations, up to `most`, whose values equal those of the last one.
    fn count_upcoming_equal(&self, most: u64, rank: &ArchivedRank) -> Result<u64, Damage> {
        if self.per_iteration > MAX_VALUES_PER_ITERATION {
            return Ok(0);
        }
        let (shard, column) = (rank.shard(), &rank.class.columns[self.column as usize]);
        let mut pattern = vec![0; self.per_iteration as usize];
        let (mut reader, mut filled) = (ColumnReader::at(column, self.used_before - self.per_iteration), 0);
        while filled < pattern.len() {
            filled += reader.unpack(shard, rank.blocks_offset, &mut pattern[filled..])?;
        }
        let end = most.saturating_mul(self.per_iteration).min(column.len.saturating_sub(self.used_before));
        let (mut compared, mut values) = (0, [0; 64]);
        while compared < end {
            let room = (end - compared).min(values.len() as u64) as usize;
            let len = reader.unpack(shard, rank.blocks_offset, &mut values[..room])?;
            for value in &values[..len] {
                if *value != pattern[(compared % self.per_iteration) as usize] {
                    return Ok(compared / self.per_iteration);
                }
                compared += 1;
            }
        }
        Ok(compared / self.per_iteration)
    }
}
