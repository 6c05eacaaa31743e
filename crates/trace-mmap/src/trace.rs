//! A trace: what all ranks do.

mod cursor;
mod ops;
mod rank;

pub use cursor::Cursor;
pub use ops::Ops;
pub(crate) use rank::Body;
pub use rank::RankTrace;

use std::path::Path;

use pdes_core::Rank;

use crate::archive::ArchiveError;
use crate::error::{Location, TraceError};
use crate::load::{self, LoadOptions, Origin};
use crate::warning::{Unreceived, Warning};

/// What all ranks of an MPI program do.
///
/// Loading checks everything that can be checked without simulated time: a trace that loads has only known actions,
/// every request waited for exists, ranks agree on their communicators, and no rank receives more messages from a channel than are
/// sent to it. Which messages a
/// receive from any source takes is not known without time: a rank that has such receives may lack a message for a named
/// one that they took.
#[derive(Debug)]
pub struct Trace {
    ranks: Vec<RankTrace>,
    warnings: Vec<Warning>,
    unreceived: Option<Unreceived>,
    origin: Origin,
}

impl Trace {
    /// Loads a trace: an archive, a directory of rank files, a list of files, or a merged file; see the
    /// [crate documentation](crate) for the shapes.
    ///
    /// The result does not depend on the number of threads. Of the options an archive heeds the number of ranks only. It is
    /// mapped: the caller promises that nobody writes to it while the trace lives. Where somebody does,
    /// [`Trace::integrity`] tells; where somebody makes it shorter, the system ends the process (`SIGBUS`).
    ///
    /// # Errors
    /// Names the file, and the line where there is one, of the first thing that is wrong; among the files of several
    /// ranks the lowest rank's.
    pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Self, TraceError> {
        load::load(path, options)
    }

    /// Reads the merged text of all ranks from a string; there are as many ranks as the largest number in the first
    /// column asks for.
    ///
    /// # Errors
    /// As [`Trace::load`]; the file is called `<text>`.
    ///
    /// ```
    /// use trace_mmap::Trace;
    /// let trace = Trace::from_text("0 init\n0 compute 1e6\n0 finalize")?;
    /// assert_eq!((trace.ranks(), trace.actions()), (1, 3));
    /// # Ok::<(), trace_mmap::TraceError>(())
    /// ```
    pub fn from_text(text: &str) -> Result<Self, TraceError> {
        load::from_text(text, &LoadOptions::default())
    }

    pub(crate) fn new(
        ranks: Vec<RankTrace>,
        warnings: Vec<Warning>,
        unreceived: Option<Unreceived>,
        origin: Origin,
    ) -> Self {
        Self { ranks, warnings, unreceived, origin }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Returns what a rank does.
    ///
    /// # Panics
    /// Where the trace has no such rank.
    pub fn rank(&self, rank: Rank) -> &RankTrace {
        &self.ranks[rank.index()]
    }

    /// Returns what a rank does by the names of the program: the text of its trace, so to speak.
    ///
    /// # Panics
    /// Where the trace has no such rank.
    pub fn ops(&self, rank: Rank) -> Ops<'_> {
        Ops::new(self.rank(rank))
    }

    /// Returns whether the actions were read into memory, rather than mapped from an archive.
    pub fn is_in_memory(&self) -> bool {
        self.ranks.iter().any(|rank| matches!(rank.body, Body::Memory(_)))
    }

    /// Returns the number of actions of all ranks: the lines of the trace that are neither empty nor comments.
    pub fn actions(&self) -> u64 {
        self.ranks.iter().map(RankTrace::len).sum()
    }

    /// Returns what was tolerated while loading.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Checks that what cursors yielded so far was right: that none of them met damage, and that nobody wrote to the
    /// archive since it was opened. A trace that is not from an archive is always right.
    ///
    /// A run over an archive asks this at its end, before it believes its result.
    ///
    /// # Errors
    /// The first damage of the lowest rank that met some.
    pub fn integrity(&self) -> Result<(), ArchiveError> {
        match self.ranks.first().map(|rank| &rank.body) {
            Some(Body::Archive(body)) => body.form.archive.integrity(),
            _ => Ok(()),
        }
    }

    /// Returns the messages that are sent and never received, or `None` where there are none.
    pub fn unreceived(&self) -> Option<Unreceived> {
        self.unreceived
    }

    /// Finds the line of an action: of the `index`-th (from 0) of the rank. Reads the text again up to there, since
    /// nothing is stored per action.
    ///
    /// # Errors
    /// Where the text cannot be read any more, or where the rank has no such action.
    pub fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        self.origin.locate(rank, index)
    }
}
