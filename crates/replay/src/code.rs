//! Programs in code: ranks that are functions, and decide by what they are told.
//!
//! A rank is an `async` function, which awaits its calls of MPI. In between it runs at once, in no simulated time; a call ends when it
//! ends in the simulation. The rank gets its actions from it as from a trace, so that models, engines, analyses and reports are the same.
//!
//! The data of messages are real values, or sizes only. They travel apart from the simulation: a value is put in the [`Exchange`] before
//! its message is sent, and taken out after the message has arrived.

mod communicator;
mod data;
mod exchange;
mod mpi;
mod operation;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use mpi_model::{ActionSource, ActionSources, Selection};
use pdes_core::Rank;
use trace_mmap::{Location, RankBuilders, RankTrace, TraceError, TraceSource, WorkMetric};

pub use data::{Data, Message, Values};
use exchange::Exchange;
pub use mpi::{Mpi, Request};
use source::RankSource;

type RankFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A program that is known while it runs only: functions in code, or processes outside.
pub trait RunningProgram: fmt::Debug + Send + Sync {
    /// Returns the name, which stands in reports in place of the path of a trace.
    fn name(&self) -> &Path;

    /// Returns the number of ranks.
    fn ranks(&self) -> u32;

    /// Returns the sources of the actions of `ranks` ranks, for one run.
    fn sources(&self, ranks: u32, selection: &Selection) -> Arc<dyn ActionSources>;

    /// Returns the quantity that amounts of computation measure; `None` if they are flops. Where they are processor time or instructions,
    /// polls cost nothing beside, unless the configuration says so, as those of recorded traces: the program makes as many as it has time
    /// for.
    fn work_metric(&self) -> Option<WorkMetric> {
        None
    }

    /// Returns whether ranks may access files: where the platform has storage, a run is prepared for that before it begins.
    fn accesses_files(&self) -> bool {
        false
    }
}

/// A program in code: a function that each rank runs, with its [`Mpi`].
///
/// # Determinism
/// Results are the same bits for any number of threads if ranks exchange data by their calls alone, and take neither time nor random
/// numbers from elsewhere.
///
/// ```
/// use replay::{CodeProgram, Mpi, RunningProgram};
///
/// async fn rank(mpi: Mpi) {
///     let (me, size) = (mpi.rank(), mpi.size());
///     if me == 0 {
///         mpi.send(1, 0, 1000).await;
///     } else {
///         mpi.receive((me + size - 1) % size, 0, 1000).await;
///         mpi.compute(1e6).await;
///     }
/// }
/// let program = CodeProgram::new("example", 2, rank);
/// assert_eq!(program.ranks(), 2);
/// ```
#[derive(Clone)]
pub struct CodeProgram {
    name: PathBuf,
    ranks: u32,
    rank: Arc<dyn Fn(Mpi) -> RankFuture + Send + Sync>,
}

impl CodeProgram {
    /// Creates a program of `ranks` ranks. The name stands in reports in place of the path of a trace.
    ///
    /// A replay that cannot go on in one mode of execution begins anew in another, and calls `rank` again.
    ///
    /// # Panics
    /// Panics if there are no ranks.
    pub fn new<F>(name: &str, ranks: u32, rank: impl Fn(Mpi) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        assert!(ranks > 0, "a program has at least one rank");
        let rank = Arc::new(move |mpi| Box::pin(rank(mpi)) as RankFuture);
        Self { name: name.into(), ranks, rank }
    }
}

impl RunningProgram for CodeProgram {
    fn name(&self) -> &Path {
        &self.name
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn sources(&self, ranks: u32, selection: &Selection) -> Arc<dyn ActionSources> {
        let (exchange, selection) = (Arc::new(Exchange::new(ranks)), Arc::new(selection.clone()));
        Arc::new(ProgramRun { program: self.clone(), selection, exchange })
    }
}

impl fmt::Debug for CodeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ranks, rank: _ } = self;
        f.debug_struct("CodeProgram").field("name", name).field("ranks", ranks).finish_non_exhaustive()
    }
}

/// A trace without actions, to whose tables a program adds while it runs.
#[derive(Debug)]
pub(crate) struct GrowingTrace {
    name: PathBuf,
    ranks: u32,
    work_metric: Option<WorkMetric>,
}

impl GrowingTrace {
    pub(crate) fn new(program: &dyn RunningProgram) -> Self {
        let (ranks, work_metric) = (program.ranks(), program.work_metric());
        Self { name: program.name().to_path_buf(), ranks, work_metric }
    }
}

impl TraceSource for GrowingTrace {
    fn path(&self) -> &Path {
        &self.name
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        Ok(self.ranks.into())
    }

    fn grows(&self) -> bool {
        true
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        self.work_metric
    }

    fn read(&self, _: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        Ok(())
    }

    fn locate(&self, _: Rank, _: u64) -> Result<Location, TraceError> {
        Err(TraceError::NotStored { name: self.name.clone() })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        Err(TraceError::NotStored { name: self.name.clone() })
    }
}

/// One run of a program.
#[derive(Debug)]
struct ProgramRun {
    program: CodeProgram,
    selection: Arc<Selection>,
    exchange: Arc<Exchange>,
}

impl ActionSources for ProgramRun {
    fn source<'t>(&self, rank: Rank, trace: &'t RankTrace) -> Box<dyn ActionSource + 't> {
        let Self { program, selection, exchange } = self;
        Box::new(RankSource::new(rank, trace, program, Arc::clone(selection), Arc::clone(exchange)))
    }
}
