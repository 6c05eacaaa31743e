//! Sources of traces: formats whose actions are read and built, unlike archives, which are mapped.

mod read;

pub use read::read_unlinked;
pub(crate) use read::{count_ranks, read_rank};

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use pdes_core::Rank;

use crate::builder::{LinkableRank, RankBuilder};
use crate::error::{Location, TraceError};
use crate::provenance::{Provenance, WorkMetric};
use crate::store::Store;
use crate::warning::Warning;

/// Largest number of ranks of a run.
pub const MAX_RANKS: u32 = 1 << 20;

/// A trace in some format, whose ranks are read one by one, or all at once.
///
/// [`Trace::read`](crate::Trace::read) loads it, [`convert`](crate::convert) makes an archive of it.
///
/// # Laws
/// [`read`](Self::read) pushes the same actions of a rank whenever it is called, on any thread, in the order of the program.
/// [`locate`](Self::locate) finds the place of any action that was pushed.
pub trait TraceSource: fmt::Debug + Send + Sync {
    /// Returns the file or directory, for errors.
    fn path(&self) -> &Path;

    /// Returns the number of ranks: one more than the highest rank with an action.
    ///
    /// # Errors
    /// Fails if that cannot be read.
    fn ranks(&self) -> Result<u64, TraceError>;

    /// Returns whether the actions of all ranks are in one stream, so that all ranks are read at once; by default false: each rank
    /// is read by itself, in any order and several at a time.
    fn is_interleaved(&self) -> bool {
        false
    }

    /// Returns whether the actions of ranks are known while their programs run only; by default false. [`read`](Self::read) pushes none
    /// then, and the [tables](crate::TableWriter) of ranks grow.
    fn grows(&self) -> bool {
        false
    }

    /// Returns the quantity that amounts of computation measure; by default unknown.
    fn work_metric(&self) -> Option<WorkMetric> {
        None
    }

    /// Pushes the actions of the [wanted](RankBuilders::wanted) ranks: one rank, or all if they are interleaved.
    ///
    /// # Errors
    /// Fails at the first invalid action, with its place ([`TraceError::Action`]), or if the source cannot be read.
    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError>;

    /// Finds the place of action `index` (from 0) of a rank.
    ///
    /// # Errors
    /// Fails if the source cannot be read any more, or has no such action ([`TraceError::NoSuchAction`]).
    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError>;

    /// Returns a hash of the contents, which changes if they do.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    fn fingerprint(&self) -> Result<u64, TraceError>;
}

impl dyn TraceSource {
    /// Returns the provenance, of which sources know the metric only.
    pub(crate) fn provenance(&self) -> Provenance {
        Provenance { work_metric: self.work_metric(), ..Provenance::default() }
    }
}

/// Options of loading a trace.
#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    /// Number of threads that read ranks, one each at a time; 0 means 1. Interleaved ranks are read by one thread.
    pub threads: usize,
    /// Number of ranks of the run, by default that of the trace. Ranks beyond the trace have no actions.
    pub ranks: Option<u32>,
    /// Memory for actions, of 16 B each \[B\]. Actions beyond it go to an unnamed temporary file, which is mapped. Not counted are a
    /// chunk of 64 KiB per rank being read, and the tables of the ranks.
    pub memory_budget: u64,
    /// Directory of the temporary file, by default that of the system.
    pub spill_dir: Option<PathBuf>,
    /// Number of actions read so far, updated in steps of up to 4096, for a progress display.
    pub progress: Option<&'a AtomicU64>,
}

impl Default for LoadOptions<'_> {
    /// One thread, 2 GiB of actions in memory.
    fn default() -> Self {
        Self { threads: 1, ranks: None, memory_budget: 2 << 30, spill_dir: None, progress: None }
    }
}

impl LoadOptions<'_> {
    /// Creates a store with a share of the memory budget.
    pub(crate) fn store(&self, memory_budget: u64) -> Store<'_> {
        Store::new(memory_budget, self.spill_dir.as_deref(), self.progress)
    }
}

/// The builders of the ranks that a source is asked to read.
pub struct RankBuilders<'s> {
    first: u32,
    /// `None` before the first action of the rank.
    builders: Vec<Option<Box<RankBuilder<'s>>>>,
    /// Number of ranks of the run.
    ranks: u32,
    store: &'s Store<'s>,
    warnings: Vec<Warning>,
}

impl<'s> RankBuilders<'s> {
    fn new(wanted: Range<u32>, ranks: u32, store: &'s Store<'s>) -> Self {
        let builders = wanted.clone().map(|_| None).collect();
        Self { first: wanted.start, builders, ranks, store, warnings: Vec::new() }
    }

    /// Returns the number of ranks of the run.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the ranks to read.
    pub fn wanted(&self) -> Range<u32> {
        self.first..self.first + self.builders.len() as u32
    }

    /// Returns the builder of a rank; `None` if the rank is not wanted.
    #[inline]
    pub fn get(&mut self, rank: u64) -> Option<&mut RankBuilder<'s>> {
        let place = usize::try_from(rank.checked_sub(self.first.into())?).ok()?;
        let builder = self.builders.get_mut(place)?;
        Some(match builder {
            Some(builder) => builder,
            None => {
                builder.insert(Box::new(RankBuilder::new(Rank::new(rank as u32), self.ranks, self.store)))
            }
        })
    }

    /// Adds a warning. Warnings of one kind are merged: the first one keeps its place, the numbers of lines are added.
    pub fn warn(&mut self, warning: Warning) {
        warning.merge_into(&mut self.warnings);
    }

    /// Finishes the traces of all wanted ranks.
    fn finish(self) -> Result<(Vec<LinkableRank>, Vec<Warning>), TraceError> {
        let (ranks, first) = (self.ranks, self.first);
        let finish = |(rank, builder): (u32, Option<Box<RankBuilder<'_>>>)| match builder {
            Some(builder) => builder.finish(),
            None => Ok(LinkableRank::empty(Rank::new(rank), ranks)),
        };
        let finished = (first..).zip(self.builders).map(finish).collect::<Result<_, _>>()?;
        Ok((finished, self.warnings))
    }
}
