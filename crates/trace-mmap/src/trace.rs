//! Traces: the actions of all ranks of an MPI program.

mod cursor;
mod cursor_position;
mod growing;
mod ops;
mod rank;

pub use cursor::Cursor;
pub use cursor_position::CursorPosition;
pub use growing::TableWriter;
pub(crate) use ops::ToNamed;
pub use ops::{OpDecoder, Ops};
pub(crate) use rank::ActionStorage;
pub use rank::RankTrace;

use std::path::Path;

use pdes_core::Rank;

use crate::archive::{self, ArchiveError, Directory};
use crate::call::WindowCall;
use crate::error::{Location, TraceError};
use crate::provenance::Provenance;
use crate::side_tables::SideTables;
use crate::source::TraceSource;
use crate::warning::{Unreceived, Warning};

/// The actions of all ranks of an MPI program.
///
/// Loading checks everything that can be checked without simulated time: a trace that loads has only known actions,
/// every request waited for exists, ranks agree on their communicators, and no rank receives more messages from a channel
/// than are sent to it. The matching of receives from any source depends on time: such a receive may take a message for
/// which a receive from a named source then waits forever.
#[derive(Debug)]
pub struct Trace {
    /// The loaded ranks, in ascending order.
    loaded: Vec<RankTrace>,
    /// Their numbers; `None` if all ranks are loaded.
    loaded_numbers: Option<Box<[Rank]>>,
    origin: Origin,
    warnings: Vec<Warning>,
    unreceived: Option<Unreceived>,
    provenance: Provenance,
}

/// The origin of a trace.
#[derive(Debug)]
enum Origin {
    /// An archive, by its tables.
    Archive(Directory),
    Source(Box<dyn TraceSource>),
}

impl Trace {
    /// Loads all ranks of an archive.
    ///
    /// It is mapped: the caller promises that nobody writes to it, or to its shards, while the trace lives. This function is not
    /// `unsafe`, since no caller could do more than promise. Changes are reported by [`Trace::integrity`]; if a file is
    /// truncated, the system ends the process (`SIGBUS`).
    ///
    /// # Errors
    /// Fails if the file is not an archive of this version, or is damaged.
    pub fn load(archive: &Path) -> Result<Self, ArchiveError> {
        let mut trace = Self::open(archive)?;
        trace.load_all_ranks()?;
        Ok(trace)
    }

    /// Opens an archive in order to [load](Trace::load_ranks) some of its ranks: verifies the parts that all ranks share and loads
    /// no rank. It is mapped as by [`Trace::load`].
    ///
    /// # Errors
    /// Fails as [`Trace::load`], except for errors in the tables of single ranks and in the sum of their actions.
    pub fn open(archive: &Path) -> Result<Self, ArchiveError> {
        let (directory, unreceived, provenance) = archive::open(archive)?;
        // Where a recording has ended early, its provenance tells.
        let ends = Warning::of_ends(directory.ends()).filter(|_| provenance.ended_early == 0);
        let (origin, warnings) = (Origin::Archive(directory), ends.into_iter().collect());
        let (loaded, loaded_numbers) = (Vec::new(), Some(Box::default()));
        Ok(Self { loaded, loaded_numbers, origin, warnings, unreceived, provenance })
    }

    /// Loads all ranks of an archive, and checks the sum of their actions. Does nothing for other sources, which have all ranks
    /// loaded.
    ///
    /// # Errors
    /// Returns the first error in the tables of the ranks.
    pub fn load_all_ranks(&mut self) -> Result<(), ArchiveError> {
        self.load_ranks((0..self.ranks()).map(Rank::new))?;
        self.check_actions(self.loaded_actions())
    }

    /// Loads these ranks of an archive, instead of those loaded before: verifies their tables and keeps them in memory. Does
    /// nothing for text, which has all ranks loaded.
    ///
    /// In a distributed run each process loads its own ranks; together they [check](Trace::check_actions) the number of actions.
    ///
    /// # Errors
    /// Returns the first error in the tables of the ranks.
    ///
    /// # Panics
    /// Panics if the trace has no such rank.
    pub fn load_ranks(&mut self, ranks: impl IntoIterator<Item = Rank>) -> Result<(), ArchiveError> {
        let all = self.ranks();
        let Some(directory) = self.directory() else { return Ok(()) };
        let mut numbers: Vec<Rank> = ranks.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert!(numbers.last().is_none_or(|last| last.get() < all), "the trace has {all} ranks");
        self.loaded = directory.read_ranks(numbers.iter().copied())?;
        self.loaded_numbers = (numbers.len() < all as usize).then(|| numbers.into());
        Ok(())
    }

    /// Checks the number of actions of all ranks loaded by any process of a run against that of the archive. Does nothing for
    /// text.
    ///
    /// # Errors
    /// Fails if the two differ: some entry of the table of ranks or of columns is wrong.
    pub fn check_actions(&self, loaded_by_all: u64) -> Result<(), ArchiveError> {
        self.directory().map_or(Ok(()), |directory| directory.check_actions(loaded_by_all))
    }

    pub(crate) fn new(
        loaded: Vec<RankTrace>,
        warnings: Vec<Warning>,
        unreceived: Option<Unreceived>,
        source: Box<dyn TraceSource>,
    ) -> Self {
        let (provenance, origin) = (source.provenance(), Origin::Source(source));
        Self { loaded, loaded_numbers: None, origin, warnings, unreceived, provenance }
    }

    pub(crate) fn directory(&self) -> Option<&Directory> {
        match &self.origin {
            Origin::Archive(directory) => Some(directory),
            Origin::Source(_) => None,
        }
    }

    /// Returns the number of ranks, loaded or not.
    pub fn ranks(&self) -> u32 {
        self.directory().map_or(self.loaded.len() as u32, Directory::ranks)
    }

    /// Returns the loaded ranks in ascending order: all, unless the trace was [opened](Trace::open) to load some.
    pub fn loaded_ranks(&self) -> impl ExactSizeIterator<Item = Rank> + '_ {
        (0..self.loaded.len()).map(|place| match &self.loaded_numbers {
            Some(numbers) => numbers[place],
            None => Rank::new(place as u32),
        })
    }

    fn loaded_rank(&self, rank: Rank) -> Option<&RankTrace> {
        let place = match &self.loaded_numbers {
            Some(numbers) => numbers.binary_search(&rank).ok()?,
            None => rank.index(),
        };
        self.loaded.get(place)
    }

    /// Returns the trace of a rank.
    ///
    /// # Panics
    /// Panics if the rank is not loaded or does not exist.
    pub fn rank(&self, rank: Rank) -> &RankTrace {
        self.loaded_rank(rank).unwrap_or_else(|| panic!("rank {rank} is not loaded"))
    }

    /// Returns the side tables of all ranks, loaded or not; shared ones of an archive once.
    ///
    /// # Errors
    /// Fails if some are malformed.
    pub(crate) fn side_tables(&self) -> impl Iterator<Item = Result<&SideTables, ArchiveError>> {
        let in_memory = self.loaded.iter().filter(|_| self.is_in_memory()).map(|rank| Ok(&*rank.side_tables));
        self.directory().into_iter().flat_map(Directory::side_tables).chain(in_memory)
    }

    /// Returns whether the programs of ranks are graphs of operations, not sequences of actions.
    pub fn has_graphs(&self) -> bool {
        self.loaded.iter().any(|rank| rank.graph.is_some())
    }

    /// Returns whether the programs of ranks are known while they run only; see [`RankTrace::grows`].
    pub fn grows(&self) -> bool {
        self.loaded.iter().any(RankTrace::grows)
    }

    /// Returns whether some rank has calls on files; a damaged table has none.
    pub fn has_file_calls(&self) -> bool {
        self.side_tables().flatten().any(SideTables::has_file_calls)
    }

    /// Returns whether some rank accesses a file at its shared pointer in the order of time; a damaged table has no such calls.
    pub fn has_shared_file_accesses(&self) -> bool {
        self.side_tables().flatten().any(SideTables::has_shared_accesses)
    }

    /// Returns whether some rank locks the memory of another one for itself alone; a damaged table has no such calls.
    pub fn has_exclusive_locks(&self) -> bool {
        self.side_tables().flatten().any(|tables| tables.window_calls().any(WindowCall::is_exclusive_lock))
    }

    /// Returns whether some rank has calls on windows that exclude others: exclusive locks, and accesses that fetch. A damaged table has
    /// none.
    pub fn has_excluding_window_calls(&self) -> bool {
        let excludes = |call: WindowCall| call.is_exclusive_lock() || call.fetches();
        self.side_tables().flatten().any(|tables| tables.window_calls().any(excludes))
    }

    /// Calls a function with a rank, which is read temporarily if it is not loaded.
    ///
    /// # Errors
    /// Fails if its tables are malformed.
    ///
    /// # Panics
    /// Panics if the trace has no such rank.
    pub fn with_rank<T>(&self, rank: Rank, f: impl FnOnce(&RankTrace) -> T) -> Result<T, ArchiveError> {
        Ok(f(self.read_rank(rank)?.as_ref().unwrap_or_else(|| self.rank(rank))))
    }

    /// Reads a rank; returns `None` if it is loaded.
    pub(crate) fn read_rank(&self, rank: Rank) -> Result<Option<RankTrace>, ArchiveError> {
        match (self.loaded_rank(rank), self.directory()) {
            (None, Some(directory)) => Ok(directory.read_ranks(std::iter::once(rank))?.pop()),
            _ => Ok(None),
        }
    }

    /// Returns the number of actions of a rank and of the requests that are pending at its end, whether it is loaded or not.
    ///
    /// # Errors
    /// Fails if its tables are malformed.
    ///
    /// # Panics
    /// Panics if the trace has no such rank.
    pub fn outline(&self, rank: Rank) -> Result<(u64, u64), ArchiveError> {
        match (self.loaded_rank(rank), self.directory()) {
            (None, Some(directory)) => directory.outline(rank),
            _ => {
                let trace = self.rank(rank);
                Ok((trace.len(), trace.pending_at_end().len() as u64))
            }
        }
    }

    /// Returns the operations of a rank in terms of the program, as in the text of a trace: with ranks and tags instead of indices.
    ///
    /// # Panics
    /// Panics if the rank is not loaded or does not exist.
    pub fn ops(&self, rank: Rank) -> Ops<'_> {
        Ops::new(self.rank(rank))
    }

    /// Returns whether the actions are in memory rather than mapped from an archive.
    pub fn is_in_memory(&self) -> bool {
        self.directory().is_none()
    }

    /// Returns the number of actions of all ranks: the lines of the trace that are neither empty nor comments.
    pub fn actions(&self) -> u64 {
        self.directory().map_or_else(|| self.loaded_actions(), Directory::actions)
    }

    /// Returns the number of actions of the loaded ranks.
    pub fn loaded_actions(&self) -> u64 {
        self.loaded.iter().fold(0, |sum, rank| sum.saturating_add(rank.len()))
    }

    /// Returns the warnings of loading.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Checks that the actions yielded by cursors so far are valid: no cursor found damage, and nobody wrote to the archive
    /// since it was opened. Always succeeds for text.
    ///
    /// A run over an archive has to check this at its end, before it uses its result.
    ///
    /// # Errors
    /// Returns the first damage of the lowest damaged rank.
    pub fn integrity(&self) -> Result<(), ArchiveError> {
        self.directory().map_or(Ok(()), |directory| directory.archive.integrity())
    }

    /// Returns a hash that identifies the trace. For an archive this does not read the data; text files are all read again.
    ///
    /// # Errors
    /// Fails if a text file cannot be read.
    pub fn fingerprint(&self) -> Result<u64, TraceError> {
        match &self.origin {
            Origin::Archive(directory) => Ok(directory.archive.fingerprint()),
            Origin::Source(source) => source.fingerprint(),
        }
    }

    /// Returns the messages that are sent and never received, or `None` if there are none.
    pub fn unreceived(&self) -> Option<Unreceived> {
        self.unreceived
    }

    /// Returns whether some loaded rank has measured times.
    pub fn has_measured_times(&self) -> bool {
        self.loaded.iter().any(|rank| rank.measured_times.is_some())
    }

    /// Returns the provenance of the trace; text has none.
    pub fn provenance(&self) -> Provenance {
        self.provenance.clone()
    }

    /// Finds the place of action `index` (from 0) of a rank. Reads the source again up to it, since no positions are stored.
    ///
    /// # Errors
    /// Fails if the source cannot be read any more or the rank has no such action; always for an archive, which keeps no places.
    pub fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        match &self.origin {
            Origin::Archive(directory) => {
                Err(TraceError::NoLines { file: directory.archive.path().to_path_buf() })
            }
            Origin::Source(source) => source.locate(rank, index),
        }
    }
}
