//! Computations between the records of a program.
//!
//! Where a tracer leaves a computation out nearly always, the program does not have it: to ask for it at each turn would cost a
//! cursor more than all else. Of those that are there a column says how many records lie between one and the next, and another
//! one their amounts.

use serde::{Deserialize, Serialize};

use crate::archive::Form;

/// Where the next computation is that the program does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inserts {
    /// The column of the records from one to the next; that of the amounts follows.
    gaps: u32,
    /// How many of these were not looked up yet.
    pub(crate) left: u64,
    /// Before how many more records the cursor has read the next one comes; the largest number where there is none.
    pub(crate) due: u64,
}

impl Default for Inserts {
    fn default() -> Self {
        Self { gaps: 0, left: 0, due: Self::NEVER }
    }
}

impl Inserts {
    /// Where there is none.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Begins before the first one of a rank.
    pub(crate) fn new(form: &Form) -> Self {
        Self { gaps: form.own_columns as u32, left: form.changes.inserted, due: Self::NEVER }
    }

    /// Returns whether it may be of this rank.
    pub(crate) fn fits(self, form: &Form) -> bool {
        let Self { gaps, left, due } = Self::new(form);
        self.gaps == gaps && self.left <= left && (left > 0 || self.due == due)
    }

    /// Returns how many are still to come, the next one included.
    pub(crate) fn to_come(self) -> u64 {
        self.left + u64::from(self.due != Self::NEVER)
    }

    /// Returns in how many records the next one comes for who has read `read` and passes over so many.
    pub(crate) fn after(self, read: u64, passed: u64) -> u64 {
        match self.due {
            Self::NEVER => Self::NEVER,
            due => due.saturating_sub(read).saturating_sub(passed),
        }
    }

    /// Counts from so many records on.
    pub(crate) fn from(self, read: u64) -> Self {
        Self { due: self.after(read, 0), ..self }
    }

    /// Returns a number of records by the bits of the double that a column has for it.
    #[inline]
    pub(crate) fn records(bits: u64) -> u64 {
        // As the mantissa of a sum with 2^52, a whole number is there at once, where a conversion takes several steps one after the other:
        // a cursor has nothing else to do until it knows how many records follow.
        const UNIT: f64 = 4_503_599_627_370_496.0;
        let records = f64::from_bits(bits);
        if records < UNIT { (records + UNIT).to_bits() ^ UNIT.to_bits() } else { records as u64 }
    }

    /// Returns the column of the records from one to the next.
    pub(crate) fn gaps(self) -> u32 {
        self.gaps
    }

    /// Returns the column of the amounts.
    pub(crate) fn amounts(self) -> u32 {
        self.gaps + 1
    }
}
