//! Reasons against an extrapolation.

use std::io;
use std::path::PathBuf;

use pdes_core::Rank;
use trace_mmap::{TraceError, WriteError};

/// A trace cannot be extrapolated.
#[derive(Debug, thiserror::Error)]
pub enum ExtrapolationError {
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An archive cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is no folder for temporary files.
    #[error("no temporary folder: {0}")]
    Folder(#[source] io::Error),
    /// The trace is a schedule.
    #[error("{}: this is a schedule, expected a trace of an MPI program", path.display())]
    Graph {
        /// The trace.
        path: PathBuf,
    },
    /// There are too few different numbers of ranks.
    #[error(
        "the traces have {found:?} ranks, expected two different numbers of ranks or more, each once, or one trace and --scaling"
    )]
    Counts {
        /// The numbers of ranks.
        found: Vec<usize>,
    },
    /// Several traces tell how the problem grows.
    #[error("--scaling weak or strong is for one trace: several tell how their values change")]
    Scaling,
    /// One trace has several grids.
    #[error(
        "the ranks stand in the grids {:?} and {:?} alike, and one trace does not tell in which: give a trace on another number of ranks",
        .0[0], .0[1]
    )]
    Grids([Vec<u32>; 2]),
    /// Three ranks along a dimension do not tell offsets of peers from fixed ranks.
    #[error(
        "three ranks along dimension {0} do not tell whether their peers are neighbours or fixed ranks: give a trace with four or more"
    )]
    Narrow(usize),
    /// One trace does not tell how something changes.
    #[error(
        "{what} at the place {place}: one trace does not tell how it changes with the number of ranks; give a trace on another number"
    )]
    Unknown {
        /// The operation of the value.
        what: String,
        /// The place of the ranks.
        place: String,
    },
    /// The amounts of computation of the traces are different things.
    #[error("the traces count different things as computation (trace info: counted), expected one")]
    Metrics,
    /// A rank has no folded form.
    #[error(
        "{}: rank {rank} is no loop of equal iterations; where measured computations differ, make them equal first \
         (trace transform with smooth)",
        path.display()
    )]
    Unfolded {
        /// The trace.
        path: PathBuf,
        /// The rank.
        rank: Rank,
    },
    /// A call has no rule.
    #[error("{}: rank {rank} has {call}, for which there is no rule on more ranks", path.display())]
    Call {
        /// The trace.
        path: PathBuf,
        /// The rank.
        rank: Rank,
        /// The call.
        call: String,
    },
    /// No grid makes the ranks of all traces alike.
    #[error(
        "the ranks stand in no grid of up to three dimensions in which ranks at one place have the same calls and neighbours: \
         of {ranks} ranks, in a grid of {grid:?}, ranks {} and {} differ",
        differ[0], differ[1]
    )]
    Grid {
        /// Number of ranks of the smallest trace without a grid.
        ranks: usize,
        /// The grid with the fewest dimensions.
        grid: Vec<u32>,
        /// Two ranks at one place that differ.
        differ: [Rank; 2],
    },
    /// The traces have grids, but their ranks are not alike.
    #[error(
        "ranks at one place have other calls or neighbours in the traces of {0:?} ranks, whatever their grids"
    )]
    Unlike(Vec<usize>),
    /// The number of ranks has no grid with as many dimensions, or the one given has another number of ranks.
    #[error("{ranks} ranks do not stand in a grid of {expected}")]
    Target {
        /// The number of ranks.
        ranks: u32,
        /// The grid that is expected.
        expected: String,
    },
    /// Too few traces have ranks at a place of the result.
    #[error(
        "{traces} of the traces have ranks at the place {place}, expected {expected} or more: give larger traces"
    )]
    Unseen {
        /// The place.
        place: String,
        /// Number of the traces.
        traces: usize,
        /// Number of traces that are expected.
        expected: usize,
    },
    /// A value follows no law.
    #[error(
        "{what} at the place {place} follows no law: {values}{}",
        best.as_ref().map_or(String::new(), |(law, misfit)| format!("; {law} misses by {:.2} %", 100.0 * misfit))
    )]
    Law {
        /// The operation of the value.
        what: String,
        /// The place of the ranks.
        place: String,
        /// Some of the values, with their numbers of ranks.
        values: String,
        /// The law that fits best, with its misfit.
        best: Option<(String, f64)>,
    },
    /// A value follows several laws, which differ on the ranks of the result.
    #[error(
        "{what} at the place {place} is in the traces {} as well as {}: give a trace with another shape of grid, or choose a grid of the \
         same shape",
        laws[0], laws[1]
    )]
    Ambiguous {
        /// The operation of the value.
        what: String,
        /// The place of the ranks.
        place: String,
        /// The laws.
        laws: [String; 2],
    },
    /// A law gives an impossible value.
    #[error(
        "{what} would be {value}, expected a whole number of 0 or more: choose another number of ranks or grid"
    )]
    Value {
        /// The operation of the value.
        what: String,
        /// The value.
        value: f64,
    },
}
