//! Computations inserted between the records of a program.
//!
//! A computation that the tracer leaves out nearly always is not in the program: testing for it in each iteration would cost a
//! cursor more than all else. Two columns hold the executions that exist: one the number of records from each to the next, the
//! other their amounts.

use serde::{Deserialize, Serialize};

use crate::archive::RankClass;

/// Distance to the next inserted computation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InsertCursor {
    /// Column of the distances in records; the column of amounts follows it.
    distance_column: u32,
    /// Number of distances that have not been read.
    pub(crate) remaining: u64,
    /// Number of records before the next one, from the point from which the cursor counts; [`NEVER`](Self::NEVER) if there is none.
    pub(crate) records_until_next: u64,
}

impl Default for InsertCursor {
    fn default() -> Self {
        Self { distance_column: 0, remaining: 0, records_until_next: Self::NEVER }
    }
}

impl InsertCursor {
    /// Distance if there are no further insertions.
    pub(crate) const NEVER: u64 = u64::MAX;

    /// Returns the state before the first record of a rank.
    pub(crate) fn new(form: &RankClass) -> Self {
        Self {
            distance_column: form.program_columns as u32,
            remaining: form.changes.inserted,
            records_until_next: Self::NEVER,
        }
    }

    /// Returns whether the state is possible for a rank of this form.
    pub(crate) fn is_valid_for(self, form: &RankClass) -> bool {
        let Self { distance_column, remaining, records_until_next } = Self::new(form);
        self.distance_column == distance_column
            && self.remaining <= remaining
            && (remaining > 0 || self.records_until_next == records_until_next)
    }

    /// Returns the number of insertions to come, the next one included.
    pub(crate) fn upcoming(self) -> u64 {
        self.remaining + u64::from(self.records_until_next != Self::NEVER)
    }

    /// Returns the number of records before the next one for a cursor that has read `read` records and skips `passed`.
    pub(crate) fn records_until_next_after(self, read: u64, passed: u64) -> u64 {
        match self.records_until_next {
            Self::NEVER => Self::NEVER,
            due => due.saturating_sub(read).saturating_sub(passed),
        }
    }

    /// Returns the state relative to a cursor that has read `read` records.
    pub(crate) fn relative_to(self, read: u64) -> Self {
        Self { records_until_next: self.records_until_next_after(read, 0), ..self }
    }

    /// Decodes a number of records from the bits of the double that a column stores for it.
    #[inline]
    pub(crate) fn decode_distance(bits: u64) -> u64 {
        // Adding 2^52 leaves a whole number in the low bits of the mantissa. This has a shorter latency than a conversion, for
        // which a cursor would have to wait: it cannot go on before it knows how many records follow.
        const UNIT: f64 = 4_503_599_627_370_496.0;
        let records = f64::from_bits(bits);
        if records < UNIT { (records + UNIT).to_bits() ^ UNIT.to_bits() } else { records as u64 }
    }

    /// Returns the column of the distances.
    pub(crate) fn distance_column(self) -> u32 {
        self.distance_column
    }

    /// Returns the column of the amounts.
    pub(crate) fn amount_column(self) -> u32 {
        self.distance_column + 1
    }
}
