//! Traversal of the program of a rank: executes its loops.

use serde::{Deserialize, Serialize};

use crate::archive::layout::MAX_DEPTH;
use crate::archive::unroll::{LoopBodies, Unrolled};
use crate::archive::{ArchivedRank, Damage, IterationBoundaries, ReadPosition, SkippedIterations};
use crate::column::PrefetchedColumns;
use crate::record::{LOOP_BEGIN, LOOP_END, Limits, Record};

/// A loop in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoopFrame {
    /// Index of the record after its begin.
    pub(crate) body: u64,
    /// Number of iterations after this one.
    remaining: u64,
    /// Number of actions before this iteration.
    position: u64,
}

/// Position of a cursor in a program, with the loops in progress.
#[derive(Clone, Debug)]
pub(crate) struct ProgramWalk<'a> {
    pub(crate) rank: &'a ArchivedRank,
    /// The unrolled program, which is read instead if present.
    unrolled: Option<&'a Unrolled>,
    /// Consecutive records that the cursor reads.
    chunk: &'a [Record],
    /// Index of the record after the chunk.
    end: u64,
    /// Number of loops in progress.
    pub(super) depth: usize,
    /// Loops in progress, with room for the deepest nesting of the program.
    pub(super) frames: Box<[LoopFrame]>,
    /// Number of further iterations that may be without an action, because of absent computations. Bounds the work on
    /// forged programs, whose loops might yield nothing.
    pub(super) idle_iterations: u64,
    /// State of the iterations, if the cursor stops at iteration boundaries.
    pub(crate) boundaries: Option<Box<IterationBoundaries>>,
}

impl<'a> ProgramWalk<'a> {
    pub(crate) fn new(rank: &'a ArchivedRank) -> Self {
        Self::with_bodies(rank, LoopBodies::Replicated)
    }

    /// Creates a walk that tracks iteration boundaries.
    pub(crate) fn with_boundaries(rank: &'a ArchivedRank) -> Self {
        let walk = Self::with_bodies(rank, LoopBodies::Kept);
        let has_nested = walk.unrolled.is_some_and(Unrolled::has_nested_boundaries);
        Self { boundaries: Some(Box::new(IterationBoundaries::new(rank, has_nested))), ..walk }
    }

    fn with_bodies(rank: &'a ArchivedRank, bodies: LoopBodies) -> Self {
        let unrolled = rank.class.program.unrolled(rank.shard(), bodies);
        let unrolled = unrolled.filter(|unrolled| unrolled.fits(&rank.class.limits));
        let absent = rank.class.changes.absent;
        Self {
            rank,
            unrolled,
            chunk: &[],
            end: 0,
            depth: 0,
            frames: vec![LoopFrame::default(); rank.class.program.depth.min(MAX_DEPTH as u64) as usize]
                .into(),
            idle_iterations: absent.saturating_mul(MAX_DEPTH as u64),
            boundaries: None,
        }
    }

    /// Returns the limits to check actions against; `None` if all are known to be within them.
    pub(crate) fn limits(&self) -> Option<&'a Limits> {
        self.unrolled.is_none().then_some(&*self.rank.class.limits)
    }

    /// Advances to the records after the chunk, `position` actions from the start; returns none at the end of the program.
    pub(crate) fn advance(&mut self, position: u64) -> Result<&'a [Record], Damage> {
        self.load_chunk(self.end)?;
        if self.chunk.is_empty() {
            self.check_end(position)?;
        }
        Ok(self.chunk)
    }

    /// Advances to the records from `record` on.
    pub(super) fn advance_to(&mut self, record: u64) -> Result<&'a [Record], Damage> {
        self.load_chunk(record)?;
        Ok(self.chunk)
    }

    fn load_chunk(&mut self, record: u64) -> Result<(), Damage> {
        let program = &self.rank.class.program;
        let (next, end) = (program.offset + 16 * record, program.offset + 16 * program.records);
        self.chunk = match self.unrolled {
            Some(unrolled) => unrolled.records().get(record as usize..).unwrap_or_default(),
            None if next < end => self.rank.shard().records(next, end)?,
            None => &[],
        };
        self.end = record + self.chunk.len() as u64;
        Ok(())
    }

    /// Executes the begin or end of a loop, `position` actions from the start and before the records `rest`; returns the records
    /// that follow.
    pub(crate) fn execute_loop_record(
        &mut self,
        turn: Record,
        position: u64,
        rest: &'a [Record],
    ) -> Result<&'a [Record], Damage> {
        match turn.kind() {
            LOOP_BEGIN => self.enter_loop(turn, position, rest),
            LOOP_END => self.end_iteration(position, rest),
            _ => Err(Damage::of(turn)),
        }
    }

    /// Begins another iteration if the record ends one of a loop within the chunk: the fast path of
    /// [`ProgramWalk::execute_loop_record`]. Returns `None` in all other cases, which the latter handles.
    #[inline]
    pub(crate) fn repeat_in_chunk(&mut self, turn: Record, position: u64) -> Option<&'a [Record]> {
        let level = self.frames.get_mut(self.depth.checked_sub(1)?)?;
        let is_plain =
            turn.kind() == LOOP_END && self.boundaries.is_none() && position <= self.rank.class.actions;
        if !is_plain || level.remaining == 0 || level.position == position {
            return None;
        }
        let body = self.chunk.get(self.chunk.len().checked_sub((self.end - level.body) as usize)?..)?;
        level.remaining -= 1;
        level.position = position;
        Some(body)
    }

    fn enter_loop(
        &mut self,
        begin: Record,
        position: u64,
        rest: &'a [Record],
    ) -> Result<&'a [Record], Damage> {
        let level = self.frames.get_mut(self.depth);
        let (Some(level), Some(left)) = (level, begin.amount().checked_sub(1)) else {
            return Err(Self::bad_loop());
        };
        *level = LoopFrame { body: self.end - rest.len() as u64, remaining: left, position };
        self.depth += 1;
        let skipped = if self.unrolled.is_some() { begin.index() } else { 0 };
        Ok(&rest[skipped as usize..])
    }

    fn end_iteration(&mut self, position: u64, rest: &'a [Record]) -> Result<&'a [Record], Damage> {
        let level = self.depth.checked_sub(1).and_then(|top| self.frames.get_mut(top));
        let level = level.ok_or(Self::bad_loop())?;
        if position > self.rank.class.actions {
            return Err(self.wrong_action_count(position));
        }
        if level.remaining == 0 {
            self.depth -= 1;
            return Ok(rest);
        }
        if level.position == position {
            self.idle_iterations = self.idle_iterations.checked_sub(1).ok_or(Self::bad_loop())?;
        }
        level.remaining -= 1;
        level.position = position;
        let body = level.body;
        match self.chunk.len().checked_sub((self.end - body) as usize) {
            Some(start) => Ok(&self.chunk[start..]),
            None => self.load_chunk(body).map(|()| self.chunk),
        }
    }

    /// Updates the iteration boundaries after the begin or end of a loop, which was executed at loop depth `depth` and before the
    /// record `behind`; returns whether the cursor stops at this boundary.
    pub(crate) fn track_boundaries(
        &mut self,
        turn: Record,
        depth: usize,
        behind: u64,
        reached: ReadPosition,
        prefetched: &PrefetchedColumns<'_>,
    ) -> Result<bool, Damage> {
        let Some(boundaries) = self.boundaries.as_deref_mut() else { return Ok(false) };
        boundaries.leave_to(self.depth);
        let Some(level) = self.depth.checked_sub(1).map(|top| &self.frames[top]) else { return Ok(false) };
        if turn.kind() == LOOP_BEGIN {
            if self.depth == 1 || self.unrolled.is_some() && turn.has_boundaries() {
                boundaries.enter_loop(self.depth, level.body, reached, prefetched);
            }
            return Ok(false);
        }
        if depth > self.depth {
            return Ok(false);
        }
        let left = level.remaining.saturating_add(1);
        boundaries.end_iteration((depth, behind), left, reached, prefetched, self.rank)
    }

    /// Returns the state of the iterations, within a loop.
    pub(crate) fn boundaries_in_loop(&self) -> Option<&IterationBoundaries> {
        self.boundaries.as_deref().filter(|_| self.depth > 0)
    }

    /// Returns the records `rest` extended by the `cut` records that were split off from their end.
    pub(crate) fn with_cut_off(&self, rest: &[Record], cut: usize) -> &'a [Record] {
        &self.chunk[self.chunk.len() - cut - rest.len()..]
    }

    /// Returns the number of loops in progress and the index of the first record of `rest`.
    pub(crate) fn depth_and_index(&self, rest: &[Record]) -> (usize, u64) {
        (self.depth, self.end - rest.len() as u64)
    }

    /// Skips iterations of the current loop at an iteration boundary; returns the records that follow, `rest` if iterations are left.
    pub(crate) fn skip_iterations(
        &mut self,
        iterations: u64,
        rest: &'a [Record],
        prefetched: &mut PrefetchedColumns<'a>,
    ) -> Option<(SkippedIterations, Result<&'a [Record], Damage>)> {
        let skipped = self.boundaries.as_mut()?.skip_iterations(iterations, prefetched);
        let level = self.frames.get_mut(skipped.depth.checked_sub(1)?)?;
        level.position = skipped.position;
        if let Some(left) = level.remaining.checked_sub(iterations) {
            level.remaining = left;
            return Some((skipped, Ok(rest)));
        }
        self.depth = skipped.depth - 1;
        self.boundaries.as_mut()?.leave_to(self.depth);
        Some((skipped, self.load_chunk(skipped.after_loop).map(|()| self.chunk)))
    }

    /// Checks at the end of the program that all loops have ended and that the number of actions is that of the table.
    fn check_end(&self, position: u64) -> Result<(), Damage> {
        match self.depth {
            0 if position == self.rank.class.actions => Ok(()),
            0 => Err(self.wrong_action_count(position)),
            _ => Err(Self::bad_loop()),
        }
    }

    fn wrong_action_count(&self, found: u64) -> Damage {
        Damage::Actions { expected: self.rank.class.actions, found }
    }

    pub(super) fn bad_loop() -> Damage {
        Damage::Loop { limit: MAX_DEPTH as u64 }
    }
}
