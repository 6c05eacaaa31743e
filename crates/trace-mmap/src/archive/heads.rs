//! Heads of iterations, and how many that follow are like the last one.

use crate::archive::{ArchivedRank, Damage, Inserts};
use crate::column::{Ahead, ColumnReader};

/// Values of a column in one iteration that are compared with those to come; with more, iterations do not count as alike.
const MAX_PATTERN: u64 = 1 << 20;

/// A loop with less than this part of the actions of its rank has no heads: to stop at them costs more than it can save.
const MIN_SHARE: u64 = 64;

/// The head of an iteration of a loop that is in no other one, where iterations like the last one follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Tells the loop apart from others of the rank.
    pub body: u64,
    /// How many iterations follow that have the same actions and amounts as the last one, at least one.
    pub alike: u64,
    /// How many iterations up to here have them, at least one.
    pub repeated: u64,
}

/// What is known of the iterations of an outermost loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heads {
    /// The record behind the begin of the loop, and that behind its end, which is known after an iteration.
    body: u64,
    pub(crate) behind: u64,
    /// Iterations done.
    done: u64,
    /// What was read before this iteration.
    reached: Reached,
    /// Actions in an iteration, and records but for begins and ends of loops.
    actions: u64,
    records: u64,
    alike: u64,
    repeated: u64,
    is_here: bool,
    /// Heads that the cursor does not stop at before the next one.
    pub(crate) passes: u64,
    /// The columns whose amounts are not all the same.
    columns: Box<[Uses]>,
}

/// What a cursor has read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// Actions.
    pub(crate) position: u64,
    /// Records, but for begins and ends of loops.
    pub(crate) records: u64,
    pub(crate) inserts: Inserts,
}

/// How an outermost loop uses a column.
#[derive(Clone, Copy, Debug)]
struct Uses {
    column: u32,
    /// Values used before this iteration, and in one.
    before: u64,
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

    /// Returns the head where the cursor stands after so many actions, if that is one.
    pub(crate) fn at(&self, position: u64) -> Option<Head> {
        let Self { body, alike, repeated, .. } = *self;
        (self.is_here && self.reached.position == position).then_some(Head { body, alike, repeated })
    }

    /// Takes in that a loop begins.
    pub(crate) fn enter(&mut self, body: u64, reached: Reached, ahead: &Ahead<'_>) {
        (self.body, self.reached) = (body, reached);
        (self.done, self.alike, self.repeated, self.is_here, self.passes) = (0, 0, 0, false, 0);
        self.columns.iter_mut().for_each(|uses| uses.before = ahead.used(uses.column));
    }

    /// Takes in that an iteration has ended, and so many are to come; returns whether here is a head.
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
            // Not each time: amounts that are never the same should not cost much.
            let is_alone = reached.inserts.to_come() != before.inserts.to_come();
            let alike = if is_alone { 0 } else { self.count_alike(left, rank)? };
            (self.alike, self.repeated) = (alike, 1);
        }
        let iterations = self.alike.saturating_add(self.repeated);
        let share = self.actions.saturating_mul(iterations).saturating_mul(MIN_SHARE);
        // It takes two heads to see what an iteration changes, and a third iteration to save it.
        let is_head = self.alike > 0 && iterations > 2 && share >= rank.form.actions;
        self.is_here = is_head && self.passes == 0;
        self.passes = self.passes.saturating_sub(is_head.into());
        Ok(self.is_here)
    }

    /// Counts the iterations to come whose amounts are those of the last one.
    fn count_alike(&self, left: u64, rank: &ArchivedRank) -> Result<u64, Damage> {
        // What is inserted behind the last record of an iteration is in that iteration.
        let records = self.reached.inserts.after(self.reached.records, 1);
        let mut alike = left.min(records / self.records.max(1));
        for uses in self.columns.iter().filter(|uses| uses.each > 0) {
            alike = alike.min(uses.count_alike(alike, rank)?);
        }
        Ok(alike)
    }

    /// Passes over iterations that are to come.
    pub(crate) fn skip(&mut self, iterations: u64, ahead: &mut Ahead<'_>) {
        self.done += iterations;
        self.alike -= iterations;
        self.reached.position += self.actions.saturating_mul(iterations);
        // From here on the cursor counts records as it counts actions.
        self.reached.records = self.reached.position;
        for uses in &mut self.columns {
            uses.before = uses.before.saturating_add(uses.each.saturating_mul(iterations));
            ahead.seek(uses.column, uses.before);
        }
        self.is_here &= self.alike > 0;
    }

    /// Returns the actions before this iteration.
    pub(crate) fn position(&self) -> u64 {
        self.reached.position
    }

    /// Returns the records of an iteration, but for begins and ends of loops.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }
}

impl Uses {
    /// Counts the iterations to come, up to `most`, whose amounts are those of the last one.
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
