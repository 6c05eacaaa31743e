//! A trace: what all ranks do.

mod cursor;
mod mark;
mod ops;
mod rank;

pub use cursor::Cursor;
pub use mark::Mark;
pub use ops::Ops;
pub(crate) use rank::Body;
pub use rank::RankTrace;

use std::path::Path;

use pdes_core::Rank;

use crate::archive::{ArchiveError, Directory};
use crate::error::{Location, TraceError};
use crate::load::{self, LoadOptions, Origin};
use crate::provenance::Provenance;
use crate::side::Side;
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
    /// The ranks that are held, in their order.
    held: Vec<RankTrace>,
    /// Their numbers, unless these are all.
    numbers: Option<Box<[Rank]>>,
    /// The tables of an archive.
    directory: Option<Directory>,
    warnings: Vec<Warning>,
    unreceived: Option<Unreceived>,
    provenance: Provenance,
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

    /// Opens a trace to [hold](Trace::hold) some ranks of it: of an archive what all ranks share is verified, and no rank is
    /// held yet. Text has no such parts, and is loaded.
    ///
    /// # Errors
    /// As [`Trace::load`], but for what is wrong with the tables of single ranks, and with the sum of their actions.
    pub fn open(path: &Path, options: &LoadOptions<'_>) -> Result<Self, TraceError> {
        load::open(path, options)
    }

    /// Holds these ranks of an archive, and no others: their tables are verified and take memory. Text has all ranks anyway.
    ///
    /// Processes that share a run hold the ranks of each, and [check](Trace::check_actions) together what one of them cannot know.
    ///
    /// # Errors
    /// The first thing that is wrong with the tables of one of the ranks.
    ///
    /// # Panics
    /// Where the trace has no such rank.
    pub fn hold(&mut self, ranks: impl IntoIterator<Item = Rank>) -> Result<(), ArchiveError> {
        let all = self.ranks();
        let Some(directory) = &self.directory else { return Ok(()) };
        let mut numbers: Vec<Rank> = ranks.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.last().is_none_or(|last| last.get() < all), "the trace has {all} ranks");
        self.held = directory.read(numbers.iter().copied())?;
        self.numbers = (numbers.len() < all as usize).then(|| numbers.into());
        Ok(())
    }

    /// Checks the number of actions of the ranks that are held, by all processes of a run together, against that of the
    /// archive. There is nothing to check in text.
    ///
    /// # Errors
    /// Where the two differ: some entry of the table of ranks or of columns is wrong.
    pub fn check_actions(&self, held_by_all: u64) -> Result<(), ArchiveError> {
        self.directory.as_ref().map_or(Ok(()), |directory| directory.check_actions(held_by_all))
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
        let provenance = Provenance::default();
        Self { held: ranks, numbers: None, directory: None, warnings, unreceived, provenance, origin }
    }

    /// Makes the trace of an archive, which holds no rank yet.
    pub(crate) fn of_archive(
        directory: Directory,
        unreceived: Option<Unreceived>,
        provenance: Provenance,
        origin: Origin,
    ) -> Self {
        let (held, numbers) = (Vec::new(), Some(Box::default()));
        let directory = Some(directory);
        Self { held, numbers, directory, warnings: Vec::new(), unreceived, provenance, origin }
    }

    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()
    }

    /// Returns the number of ranks, held or not.
    pub fn ranks(&self) -> u32 {
        self.directory.as_ref().map_or(self.held.len() as u32, Directory::ranks)
    }

    /// Returns the ranks that are held, in their order: all, unless the trace was [opened](Trace::open) to hold some.
    pub fn held(&self) -> impl ExactSizeIterator<Item = Rank> + '_ {
        (0..self.held.len()).map(|place| match &self.numbers {
            Some(numbers) => numbers[place],
            None => Rank::new(place as u32),
        })
    }

    fn get(&self, rank: Rank) -> Option<&RankTrace> {
        let place = match &self.numbers {
            Some(numbers) => numbers.binary_search(&rank).ok()?,
            None => rank.index(),
        };
        self.held.get(place)
    }

    /// Returns what a rank does.
    ///
    /// # Panics
    /// Where the trace does not hold the rank, or has no such rank.
    pub fn rank(&self, rank: Rank) -> &RankTrace {
        self.get(rank).unwrap_or_else(|| panic!("rank {rank} is not held"))
    }

    /// Returns the side tables of all ranks, held or not, those of an archive once each.
    pub(crate) fn sides(&self) -> impl Iterator<Item = &Side> {
        let in_memory = self.held.iter().filter(|_| self.is_in_memory()).map(|rank| &*rank.side);
        self.directory.iter().flat_map(Directory::sides).chain(in_memory)
    }

    /// Looks at a rank, which is read for that where it is not held.
    ///
    /// # Errors
    /// Where its tables are wrong.
    ///
    /// # Panics
    /// Where the trace has no such rank.
    pub fn look_at<T>(&self, rank: Rank, look: impl FnOnce(&RankTrace) -> T) -> Result<T, ArchiveError> {
        match (self.get(rank), &self.directory) {
            (None, Some(directory)) => {
                let read = directory.read(std::iter::once(rank))?;
                Ok(look(&read[0]))
            }
            _ => Ok(look(self.rank(rank))),
        }
    }

    /// Returns the number of actions of a rank, and of the requests that its end waits for, whether it is held or not.
    ///
    /// # Errors
    /// Where its tables are wrong.
    ///
    /// # Panics
    /// Where the trace has no such rank.
    pub fn outline(&self, rank: Rank) -> Result<(u64, u64), ArchiveError> {
        match (self.get(rank), &self.directory) {
            (None, Some(directory)) => directory.outline(rank),
            _ => {
                let trace = self.rank(rank);
                Ok((trace.len(), trace.pending_at_end().len() as u64))
            }
        }
    }

    /// Returns what a rank does by the names of the program: the text of its trace, so to speak.
    ///
    /// # Panics
    /// Where the trace does not hold the rank, or has no such rank.
    pub fn ops(&self, rank: Rank) -> Ops<'_> {
        Ops::new(self.rank(rank))
    }

    /// Returns whether the actions were read into memory, rather than mapped from an archive.
    pub fn is_in_memory(&self) -> bool {
        self.directory.is_none()
    }

    /// Returns the number of actions of all ranks: the lines of the trace that are neither empty nor comments.
    pub fn actions(&self) -> u64 {
        self.directory.as_ref().map_or_else(|| self.held_actions(), Directory::actions)
    }

    /// Returns the number of actions of the ranks that are held.
    pub fn held_actions(&self) -> u64 {
        self.held.iter().fold(0, |sum, rank| sum.saturating_add(rank.len()))
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
        self.directory.as_ref().map_or(Ok(()), |directory| directory.archive.integrity())
    }

    /// Returns a number that tells the trace apart from others: of an archive without reading its data, of text by reading all
    /// files again.
    ///
    /// # Errors
    /// Where a file of the text cannot be read.
    pub fn fingerprint(&self) -> Result<u64, TraceError> {
        match &self.directory {
            Some(directory) => Ok(directory.archive.fingerprint()),
            None => self.origin.fingerprint(),
        }
    }

    /// Returns the messages that are sent and never received, or `None` where there are none.
    pub fn unreceived(&self) -> Option<Unreceived> {
        self.unreceived
    }

    /// Returns whether times were kept of some rank that is held.
    pub fn keeps_times(&self) -> bool {
        self.held.iter().any(|rank| rank.times.is_some())
    }

    /// Returns where the trace comes from; of text nothing is known of that.
    pub fn provenance(&self) -> Provenance {
        self.provenance
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
