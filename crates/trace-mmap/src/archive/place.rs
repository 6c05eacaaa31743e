//! Serializable position of a walk.

use serde::{Deserialize, Serialize};

use crate::archive::walk::Level;
use crate::archive::{ArchivedRank, Damage, Inserts, Walk};
use crate::column::Ahead;
use crate::record::Record;

/// Position of a walk in its program and in the columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Index of the next record.
    record: u64,
    /// The loops in progress, the outermost first.
    levels: Vec<Level>,
    /// Number of further iterations that may be without an action.
    idle: u64,
    /// Number of values read from each column that is not constant.
    used: Vec<u64>,
    /// The next inserted computation, relative to the next record.
    inserts: Inserts,
}

impl Place {
    pub(crate) fn inserts(&self) -> Inserts {
        self.inserts
    }
}

impl<'a> Walk<'a> {
    /// Returns the position of the walk before the records `rest`; `None` if it stops at iteration boundaries, whose state a
    /// position does not hold.
    pub(crate) fn place_of(&self, rest: &[Record], ahead: &Ahead<'_>, inserts: Inserts) -> Option<Place> {
        let (depth, record) = self.place(rest);
        let used = varying(self.rank).map(|column| ahead.used(column)).collect();
        let levels = self.levels[..depth].to_vec();
        self.heads.is_none().then_some(Place { record, levels, idle: self.idle, used, inserts })
    }

    /// Resumes at a position of the same walk; returns the records that follow.
    ///
    /// # Errors
    /// Fails if the program has no such position or the page with its records is damaged.
    pub(crate) fn go_on_at(&mut self, place: &Place, ahead: &mut Ahead<'a>) -> Result<&'a [Record], Damage> {
        let Place { record, levels, idle, used, inserts } = place;
        let is_before = |level: &Level| level.body <= *record;
        let columns = varying(self.rank);
        if levels.len() > self.levels.len()
            || !levels.iter().all(is_before)
            || columns.clone().count() != used.len()
            || !inserts.fits(&self.rank.form)
        {
            return Err(Self::bad_loop());
        }
        self.depth = levels.len();
        self.levels[..levels.len()].copy_from_slice(levels);
        self.idle = *idle;
        columns.zip(used).for_each(|(column, &used)| ahead.seek(column, used));
        self.advance_to(*record)
    }
}

/// Returns the columns that are not constant.
fn varying(rank: &ArchivedRank) -> impl Iterator<Item = u32> + Clone + '_ {
    (0..).zip(rank.form.columns.iter()).filter(|(_, column)| !column.is_constant()).map(|(column, _)| column)
}
