//! The way of a cursor through the program of a rank.

use serde::{Deserialize, Serialize};

use crate::archive::layout::MAX_DEPTH;
use crate::archive::unroll::{Outermost, Unrolled};
use crate::archive::{ArchivedRank, Damage, Heads, Reached};
use crate::column::Ahead;
use crate::record::{LOOP_BEGIN, LOOP_END, Limits, Record};

/// A loop in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Level {
    /// The record behind its begin.
    pub(crate) body: u64,
    /// Iterations after this one.
    left: u64,
    /// Actions before this iteration.
    position: u64,
}

/// Where a cursor is in a program.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) rank: &'a ArchivedRank,
    /// The program with its loops unrolled, which is then read instead.
    unrolled: Option<&'a Unrolled>,
    /// The records that the cursor reads, and the record behind them.
    chunk: &'a [Record],
    end: u64,
    pub(super) depth: usize,
    /// As many as the program nests loops.
    pub(super) levels: Box<[Level]>,
    /// How many more iterations may be without an action. Each is so because columns left out a computation.
    pub(super) idle: u64,
    /// What is known of iterations, where the cursor stops at their heads.
    pub(crate) heads: Option<Box<Heads>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(rank: &'a ArchivedRank) -> Self {
        Self::over(rank, Outermost::Repeated)
    }

    /// Makes a walk that tells the heads of iterations.
    pub(crate) fn by_iterations(rank: &'a ArchivedRank) -> Self {
        Self { heads: Some(Box::new(Heads::new(rank))), ..Self::over(rank, Outermost::Single) }
    }

    fn over(rank: &'a ArchivedRank, outermost: Outermost) -> Self {
        let unrolled = rank.form.program.unrolled(rank.shard(), outermost);
        let unrolled = unrolled.filter(|unrolled| unrolled.fits(&rank.form.limits));
        let absent = rank.form.changes.absent;
        Self {
            rank,
            unrolled,
            chunk: &[],
            end: 0,
            depth: 0,
            levels: vec![Level::default(); rank.form.program.depth.min(MAX_DEPTH as u64) as usize].into(),
            idle: absent.saturating_mul(MAX_DEPTH as u64),
            heads: None,
        }
    }

    /// Returns the bounds of the actions, `None` where they are known to be within.
    pub(crate) fn limits(&self) -> Option<&'a Limits> {
        self.unrolled.is_none().then_some(&*self.rank.form.limits)
    }

    /// Goes on to the records that follow after so many actions, none at the end of the program.
    pub(crate) fn advance(&mut self, position: u64) -> Result<&'a [Record], Damage> {
        self.go_to(self.end)?;
        if self.chunk.is_empty() {
            self.check_end(position)?;
        }
        Ok(self.chunk)
    }

    /// Goes on to the records from this one on.
    pub(super) fn advance_to(&mut self, record: u64) -> Result<&'a [Record], Damage> {
        self.go_to(record)?;
        Ok(self.chunk)
    }

    fn go_to(&mut self, record: u64) -> Result<(), Damage> {
        let program = &self.rank.form.program;
        let (next, end) = (program.offset + 16 * record, program.offset + 16 * program.records);
        self.chunk = match self.unrolled {
            Some(unrolled) => unrolled.records().get(record as usize..).unwrap_or_default(),
            None if next < end => self.rank.shard().records(next, end)?,
            None => &[],
        };
        self.end = record + self.chunk.len() as u64;
        Ok(())
    }

    /// Goes on behind the begin or end of a loop, after so many actions and with these records to follow; returns those
    /// that do follow.
    pub(crate) fn turn(
        &mut self,
        turn: Record,
        position: u64,
        rest: &'a [Record],
    ) -> Result<&'a [Record], Damage> {
        match turn.kind() {
            LOOP_BEGIN => self.enter(turn, position, rest),
            LOOP_END => self.repeat(position, rest),
            _ => Err(Damage::of(turn)),
        }
    }

    /// Begins another iteration where this record ends one of a loop whose records follow each other, after so many actions.
    /// This is what most turns are; `None` where it is anything else, which [`Walk::turn`] finds.
    #[inline]
    pub(crate) fn again(&mut self, turn: Record, position: u64) -> Option<&'a [Record]> {
        let level = self.levels.get_mut(self.depth.checked_sub(1)?)?;
        let is_plain = turn.kind() == LOOP_END && self.heads.is_none() && position <= self.rank.form.actions;
        if !is_plain || level.left == 0 || level.position == position {
            return None;
        }
        let body = self.chunk.get(self.chunk.len().checked_sub((self.end - level.body) as usize)?..)?;
        level.left -= 1;
        level.position = position;
        Some(body)
    }

    fn enter(&mut self, begin: Record, position: u64, rest: &'a [Record]) -> Result<&'a [Record], Damage> {
        let level = self.levels.get_mut(self.depth);
        let (Some(level), Some(left)) = (level, begin.amount().checked_sub(1)) else {
            return Err(Self::bad_loop());
        };
        *level = Level { body: self.end - rest.len() as u64, left, position };
        self.depth += 1;
        let skipped = if self.unrolled.is_some() { begin.index() } else { 0 };
        Ok(&rest[skipped as usize..])
    }

    fn repeat(&mut self, position: u64, rest: &'a [Record]) -> Result<&'a [Record], Damage> {
        let level = self.depth.checked_sub(1).and_then(|top| self.levels.get_mut(top));
        let level = level.ok_or(Self::bad_loop())?;
        if position > self.rank.form.actions {
            return Err(self.wrong_number(position));
        }
        if level.left == 0 {
            self.depth -= 1;
            return Ok(rest);
        }
        if level.position == position {
            self.idle = self.idle.checked_sub(1).ok_or(Self::bad_loop())?;
        }
        level.left -= 1;
        level.position = position;
        let body = level.body;
        match self.chunk.len().checked_sub((self.end - body) as usize) {
            Some(start) => Ok(&self.chunk[start..]),
            None => self.go_to(body).map(|()| self.chunk),
        }
    }

    /// Takes in a turn from a place so deep in loops, with these records to follow; returns whether
    /// here is the head of an iteration that others like it follow.
    pub(crate) fn look_ahead(
        &mut self,
        turn: Record,
        depth: usize,
        behind: u64,
        reached: Reached,
        ahead: &Ahead<'_>,
    ) -> Result<bool, Damage> {
        let Some(heads) = self.heads.as_deref_mut().filter(|_| self.depth == 1) else { return Ok(false) };
        let level = &self.levels[0];
        if turn.kind() == LOOP_BEGIN {
            heads.enter(level.body, reached, ahead);
            return Ok(false);
        }
        if depth > 1 {
            return Ok(false);
        }
        heads.behind = behind;
        heads.turn(level.left.saturating_add(1), reached, ahead, self.rank)
    }

    /// Returns the records that follow each other, of which these are but for so many at their end.
    pub(crate) fn whole(&self, rest: &[Record], cut: usize) -> &'a [Record] {
        &self.chunk[self.chunk.len() - cut - rest.len()..]
    }

    /// Returns how many loops are in progress, and the record behind these, which follow.
    pub(crate) fn place(&self, rest: &[Record]) -> (usize, u64) {
        (self.depth, self.end - rest.len() as u64)
    }

    /// Passes over iterations of the outermost loop, at the head of one; returns the records to follow, `rest` where there
    /// are iterations left.
    pub(crate) fn skip(
        &mut self,
        iterations: u64,
        rest: &'a [Record],
        ahead: &mut Ahead<'a>,
    ) -> Result<&'a [Record], Damage> {
        let (Some(heads), Some(level)) = (&mut self.heads, self.levels.first_mut()) else { return Ok(rest) };
        heads.skip(iterations, ahead);
        level.position = heads.position();
        if let Some(left) = level.left.checked_sub(iterations) {
            level.left = left;
            return Ok(rest);
        }
        let behind = heads.behind;
        self.depth = 0;
        self.go_to(behind).map(|()| self.chunk)
    }

    /// Checks, where the program ends, that so do its loops and that it had as many actions as its table says.
    fn check_end(&self, position: u64) -> Result<(), Damage> {
        match self.depth {
            0 if position == self.rank.form.actions => Ok(()),
            0 => Err(self.wrong_number(position)),
            _ => Err(Self::bad_loop()),
        }
    }

    fn wrong_number(&self, found: u64) -> Damage {
        Damage::Actions { expected: self.rank.form.actions, found }
    }

    pub(super) fn bad_loop() -> Damage {
        Damage::Loop { limit: MAX_DEPTH as u64 }
    }
}
