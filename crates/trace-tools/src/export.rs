//! Formats in which traces are written beside archives and text: a registry with a row for each.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use outputs::AtomicFile;
use pdes_core::Rank;
use trace_mmap::{Trace, TraceError};

use crate::paraver::{self, dimemas};
use crate::schedule::{ScheduleOfTraceError, schedule};

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Name, for errors and documentation.
    pub name: &'static str,
    /// End of the names of files.
    pub extension: &'static str,
    write: WriteTrace,
}

/// Writes a trace into a file with a name; times are amounts of computation at a speed \[flop/s\].
type WriteTrace = fn(&Trace, &Path, Option<f64>, &mut dyn Write) -> Result<Exported, ExportError>;

/// All formats.
pub static EXPORTS: &[Export] = &[
    Export { name: "GOAL schedules", extension: "goal", write: write_schedule },
    Export { name: "traces of Paraver", extension: "prv", write: paraver::write },
    Export { name: "traces of Dimemas", extension: "dim", write: dimemas::write },
];

/// A description of a written trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Number of ranks and operations or records, as text.
    pub extent: String,
    /// Parts of the trace that the format does not hold, with the number of calls or arguments.
    pub left_out: BTreeMap<String, u64>,
}

/// A trace cannot be written in a format.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The trace is a schedule.
    #[error("rank {rank} is a graph, not a list of calls, which this format needs")]
    Graph {
        /// The rank.
        rank: Rank,
    },
    /// The amounts of computation have no rate.
    #[error("computations have no unit; give the flops per second that make times of them (--speed)")]
    NoSpeed,
    /// Times of calls are not known.
    #[error(
        "the trace has no measured times, of which a timeline consists; a replay writes one of its own, by output.timeline"
    )]
    NoTimes,
    /// The trace has no schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleOfTraceError),
    /// The trace is damaged.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file cannot be written.
    #[error("{}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A record cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Export {
    /// Returns the format of a file by the end of its name; `None` is an archive.
    pub fn of(path: &Path) -> Option<&'static Self> {
        EXPORTS.iter().find(|export| path.extension().is_some_and(|end| end == export.extension))
    }

    /// Writes a trace. `speed` is the rate at which amounts become times \[flop/s\], by default that at which times became the amounts.
    ///
    /// # Errors
    /// Fails if there are computations and no speed, if the trace is a schedule or damaged, or if the file cannot be written, which is then
    /// left as it was.
    pub fn write(&self, trace: &Trace, output: &Path, speed: Option<f64>) -> Result<Exported, ExportError> {
        let error = |source| ExportError::File { file: output.to_path_buf(), source };
        let mut file = AtomicFile::create(output).map_err(error)?;
        let speed = speed.or_else(|| trace.provenance().work_metric?.rate());
        let exported = (self.write)(trace, output, speed, &mut file)?;
        trace.integrity().map_err(TraceError::from)?;
        file.commit().map_err(error)?;
        Ok(exported)
    }
}

fn write_schedule(
    trace: &Trace,
    _: &Path,
    speed: Option<f64>,
    mut out: &mut dyn Write,
) -> Result<Exported, ExportError> {
    let scheduled = schedule(trace, speed)?;
    ::goal::write_text(&scheduled.schedule, &mut out)?;
    Ok(Exported { extent: scheduled.schedule.extent().to_string(), left_out: scheduled.left_out })
}
