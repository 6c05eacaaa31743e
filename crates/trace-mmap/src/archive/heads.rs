//! Boundaries between iterations of outermost loops, and how many upcoming iterations equal the last one. A replay that reaches
//! a steady state can skip these.

use crate::archive::{ArchivedRank, Damage, Inserts};
use crate::column::{Ahead, ColumnReader};

/// Largest number of values of a column per iteration that are compared; iterations with more do not count as equal.
const MAX_PATTERN: u64 = 1 << 20;

/// Equal iterations have boundaries only if they hold at least 1/64 of the actions of their rank: stopping at others costs more
/// than it can save.
const MIN_SHARE: u64 = 64;

/// The boundary between two iterations of an outermost loop that is followed by iterations equal to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Identifies the loop among those of the rank.
    pub body: u64,
    /// Number of upcoming iterations with the same actions and amounts as the last one; at least one.
    pub alike: u64,
    /// Number of consecutive equal iterations up to here; at least one.
    pub repeated: u64,
}

/// Tracks the iterations of the current outermost loop of a cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    /// Index of the first record of the body.
    body: u64,
    /// Index of the record after the end of the loop, which is known after one iteration.
    pub(crate) behind: u64,
    /// Number of completed iterations.
    done: u64,
    /// Read position at the start of this iteration.
    reached: Reached,
    /// Number of actions of the last iteration.
    actions: u64,
    /// Number of records of the last iteration, without loop begins and ends.
    records: u64,
    alike: u64,
    repeated: u64,
    /// Whether the start of this iteration is a boundary.
    is_here: bool,
    /// Number of boundaries that the cursor passes over before it stops at one.
    pub(crate) passes: u64,
    /// Uses of the columns that are not constant.
    columns: Box<[Uses]>,
}

/// Read position of a cursor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// Number of actions read.
    pub(crate) position: u64,
    /// Number of records read, without loop begins and ends.
    pub(crate) records: u64,
    pub(crate) inserts: Inserts,
}

/// Use of a column by an outermost loop.
#[derive(Clone, Copy, Debug)]
struct Uses {
    column: u32,
    /// Number of values used before this iteration.
    before: u64,
    /// Number of values used in the last iteration.
    each: u64,
}

impl Heads {
    pub(crate) fn new(rank: &ArchivedRank) -> Self {
        let columns = (0..)
            .zip(&rank.form.columns[..rank.form.own_columns])
            .filter(|(_, column)| !column.is_constant());
        let columns = columns.map(|(column, _)| Uses { column, before: 0, each: 0 }).collect();
        Self { columns, ..Self::default() }
    }

    /// Returns the boundary at `position`, if there is one.
    pub(crate) fn at(&self, position: u64) -> Option<Head> {
        let Self { body, alike, repeated, .. } = *self;
        (self.is_here && self.reached.position == position).then_some(Head { body, alike, repeated })
    }

    /// Begins to track an outermost loop.
    pub(crate) fn enter(&mut self, body: u64, reached: Reached, ahead: &Ahead<'_>) {
        (self.body, self.reached) = (body, reached);
        (self.done, self.alike, self.repeated, self.is_here, self.passes) = (0, 0, 0, false, 0);
        self.columns.iter_mut().for_each(|uses| uses.before = ahead.used(uses.column));
    }

    /// Records the end of an iteration, with `left` iterations to come; returns whether the cursor stops at this boundary.
    pub(crate) fn turn(
        &mut self,
        left: u64,
        reached: Reached,
        ahead: &Ahead<'_>,
        rank: &ArchivedRank,
    ) -> Result<bool, Damage> {
        self.done += 1;
        let before = std::mem::replace(&mut self.reached, reached);
        self.actions = reached.position.saturating_sub(before.position);
        self.records = reached.records.saturating_sub(before.records);
        for uses in &mut self.columns {
            let used = ahead.used(uses.column);
            (uses.each, uses.before) = (used.saturating_sub(uses.before), used);
        }
        if self.alike > 0 {
            (self.alike, self.repeated) = (self.alike - 1, self.repeated + 1);
        } else if self.done.is_power_of_two() {
            // Searching only after 1, 2, 4, 8, ... iterations bounds the cost if amounts never repeat.
            let is_alone = reached.inserts.to_come() != before.inserts.to_come();
            let alike = if is_alone { 0 } else { self.count_alike(left, rank)? };
            (self.alike, self.repeated) = (alike, 1);
        }
        let iterations = self.alike.saturating_add(self.repeated);
        let share = self.actions.saturating_mul(iterations).saturating_mul(MIN_SHARE);
        // A replay needs two boundaries to see what an iteration changes, and a third iteration that it can skip.
        let is_head = self.alike > 0 && iterations > 2 && share >= rank.form.actions;
        self.is_here = is_head && self.passes == 0;
        self.passes = self.passes.saturating_sub(is_head.into());
        Ok(self.is_here)
    }

    /// Counts the upcoming iterations that equal the last one.
    fn count_alike(&self, left: u64, rank: &ArchivedRank) -> Result<u64, Damage> {
        // A computation inserted after the last record of an iteration belongs to that iteration.
        let records = self.reached.inserts.after(self.reached.records, 1);
        let mut alike = left.min(records / self.records.max(1));
        for uses in self.columns.iter().filter(|uses| uses.each > 0) {
            alike = alike.min(uses.count_alike(alike, rank)?);
        }
        Ok(alike)
    }

    /// Skips `iterations` upcoming iterations, which equal the last one.
    pub(crate) fn skip(&mut self, iterations: u64, ahead: &mut Ahead<'_>) {
        self.done += iterations;
        self.alike -= iterations;
        self.reached.position += self.actions.saturating_mul(iterations);
        // From here on the cursor counts records and actions alike.
        self.reached.records = self.reached.position;
        for uses in &mut self.columns {
            uses.before = uses.before.saturating_add(uses.each.saturating_mul(iterations));
            ahead.seek(uses.column, uses.before);
        }
        self.is_here &= self.alike > 0;
    }

    /// Returns the number of actions before this iteration.
    pub(crate) fn position(&self) -> u64 {
        self.reached.position
    }

    /// Returns the number of records of the last iteration, without loop begins and ends.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }
}

impl Uses {
    /// Counts the upcoming iterations, up to `most`, whose values equal those of the last one.
    fn count_alike(&self, most: u64, rank: &ArchivedRank) -> Result<u64, Damage> {
        if self.each > MAX_PATTERN {
            return Ok(0);
        }
        let (shard, column) = (rank.shard(), &rank.form.columns[self.column as usize]);
        let mut pattern = vec![0; self.each as usize];
        let (mut reader, mut filled) = (ColumnReader::at(column, self.before - self.each), 0);
        while filled < pattern.len() {
            filled += reader.unpack(shard, rank.blocks, &mut pattern[filled..])?;
        }
        let end = most.saturating_mul(self.each).min(column.len.saturating_sub(self.before));
        let (mut compared, mut values) = (0, [0; 64]);
        while compared < end {
            let room = (end - compared).min(values.len() as u64) as usize;
            let len = reader.unpack(shard, rank.blocks, &mut values[..room])?;
            for value in &values[..len] {
                if *value != pattern[(compared % self.each) as usize] {
                    return Ok(compared / self.each);
                }
                compared += 1;
            }
        }
        Ok(compared / self.each)
    }
}
