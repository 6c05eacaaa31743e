//! Counts of the calls of a trace that no replay models.

use std::collections::BTreeMap;
use std::fmt;

use pdes_core::Rank;

use super::ArchiveError;
use super::info::tally;
use crate::call::Call;
use crate::side_tables::SideTables;
use crate::trace::{RankTrace, Trace};

/// Number of calls of a function that no replay models, and the bytes that they moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmodelledCalls {
    /// Name of the function, such as `MPI_Put`.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Bytes moved \[B\], as far as the calls have a size.
    pub bytes: u128,
}

/// Displays number and name, as `2 MPI_Put`.
impl fmt::Display for UnmodelledCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.calls, self.name)
    }
}

impl UnmodelledCalls {
    /// Counts the calls of all ranks, loaded or not, ordered by name. The cost is linear in the length of the programs with such
    /// calls, which are folded in most archives.
    ///
    /// # Errors
    /// Fails if sums exceed 64 bits, or if a program with such calls or the tables of its rank are damaged.
    ///
    /// ```
    /// use trace_mmap::UnmodelledCalls;
    /// let trace = trace_tools::from_text("0 init\n0 unmodelled MPI_Put target=0 bytes=8\n0 unmodelled MPI_Put target=0 bytes=9\n")?;
    /// let [put] = &UnmodelledCalls::of(&trace)?[..] else { panic!("there are calls of one function") };
    /// assert_eq!((put.name.as_str(), put.calls, put.bytes), ("MPI_Put", 2, 17));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(trace: &Trace) -> Result<Vec<Self>, ArchiveError> {
        let mut by_name = BTreeMap::new();
        let has_some = trace.side_tables().try_fold(false, |any, side| Ok(any | has_unmodelled(side?)))?;
        for rank in (0..if has_some { trace.ranks() } else { 0 }).map(Rank::new) {
            trace.with_rank(rank, |trace| add_rank(trace, rank, &mut by_name))??;
        }
        let sum = |(name, (calls, bytes))| Self { name, calls, bytes };
        Ok(by_name.into_iter().map(sum).collect())
    }
}

fn has_unmodelled(side: &SideTables) -> bool {
    side.calls.iter().any(|call| matches!(call, Call::Unmodelled(_)))
}

fn add_rank(
    trace: &RankTrace,
    rank: Rank,
    by_name: &mut BTreeMap<String, (u64, u128)>,
) -> Result<(), ArchiveError> {
    if !has_unmodelled(&trace.side_tables) {
        return Ok(());
    }
    for (call, uses) in trace.side_tables.calls.iter().zip(tally(trace, rank)?.calls) {
        let Call::Unmodelled(call) = call else { continue };
        let (calls, bytes) = by_name.entry(call.name().to_owned()).or_default();
        *calls = calls.saturating_add(uses);
        *bytes += u128::from(call.bytes()) * u128::from(uses);
    }
    Ok(())
}
