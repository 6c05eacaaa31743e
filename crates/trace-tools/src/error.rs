//! Errors of reading the files of a trace.

use std::io;
use std::path::{Path, PathBuf};

use trace_mmap::{Location, TraceError};

use crate::darshan::DarshanError;
use crate::dumpi::DumpiError;
use crate::foreign::Foreign;

/// The files of a trace cannot be read: the error of [`TraceError::Source`]. Errors in lines are [`TextError`](crate::TextError)s.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be opened or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A compressed file, or a shard, is damaged or ends too early.
    #[error("{}: the {format} stream is damaged or cut short: {source}", file.display())]
    Compressed {
        /// The file.
        file: PathBuf,
        /// The format: `gzip`, `zstd` or `shard`.
        format: &'static str,
        /// The error of the decoder.
        source: io::Error,
    },
    /// A file has another format.
    #[error("{}: {found}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The format.
        found: Foreign,
    },
    /// A file has neither actions nor names of trace files.
    #[error("{}: no line with an action or the name of a trace file", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// A list names a file that does not exist.
    #[error(
        "{list}: found no file {}; expected names of trace files, or actions, such as `0 init`",
        excerpt(file)
    )]
    ListedFileMissing {
        /// The line of the list.
        list: Location,
        /// The path of the file, as in the list or, if relative, relative to the list.
        file: PathBuf,
    },
    /// A Paraver trace has no `.pcf` beside it.
    #[error(
        "{}: found no file {}, which has the names of the calls of this Paraver trace",
        trace.display(), labels.display()
    )]
    LabelsMissing {
        /// The trace.
        trace: PathBuf,
        /// The expected path of its `.pcf`.
        labels: PathBuf,
    },
    /// A schedule has an operation that only its own model can simulate.
    #[error("{}: operation {operation} of rank {rank} is {kind}; replay this schedule with --model loggops", file.display())]
    GraphOperation {
        /// The schedule.
        file: PathBuf,
        /// Rank of the operation.
        rank: u32,
        /// Number of the operation within its rank, from 0.
        operation: u32,
        /// The operation, with its article.
        kind: &'static str,
    },
    /// A log of Darshan cannot be read.
    #[error("{}: {problem}", file.display())]
    Darshan {
        /// The log.
        file: PathBuf,
        /// The problem.
        problem: DarshanError,
    },
    /// A file of a DUMPI trace cannot be read.
    #[error("{}: {problem}", file.display())]
    Dumpi {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: DumpiError,
    },
    /// No file has a name of the files of ranks.
    #[error("{}: no file that ends with the number of its rank and {ends}", path.display())]
    NoNumberedFiles {
        /// The file or directory.
        path: PathBuf,
        /// The ends of names.
        ends: String,
    },
    /// A rank has no file, or there are two of one rank.
    #[error(
        "{}: of the files {name}, that of rank {rank} is not there once{}",
        path.display(),
        highest.map_or(String::new(), |highest| format!("; the highest one is of rank {highest}"))
    )]
    NumberedFileMissing {
        /// The file or directory.
        path: PathBuf,
        /// The common name, with an asterisk for the number.
        name: String,
        /// The rank.
        rank: u64,
        /// The highest rank with a file, if there is one.
        highest: Option<u64>,
    },
    /// A directory has the files of several traces.
    #[error("{}: the files of several traces, such as {} and {}; name a file of one", dir.display(), names[0], names[1])]
    SeveralTraces {
        /// The directory.
        dir: PathBuf,
        /// The begins of names of two traces.
        names: [String; 2],
    },
    /// A directory has no rank files.
    #[error("{}: no rank files in this directory, expected rank-0.txt, rank-1.txt, ... (or .txt.gz, .txt.zst)", dir.display())]
    NoRankFiles {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory lacks the file of a rank below the highest one.
    #[error("{}: the file rank-{missing}.txt of rank {missing} is missing; there is one for rank {highest}", dir.display())]
    RankFileMissing {
        /// The directory.
        dir: PathBuf,
        /// The lowest rank without a file.
        missing: u32,
        /// The highest rank with a file.
        highest: u32,
    },
    /// A directory has two files for a rank.
    #[error("{} and {} are both trace files of rank {rank}", first.display(), second.display())]
    DuplicateRankFile {
        /// The rank.
        rank: u32,
        /// One file.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
}

impl InputError {
    /// Makes the error that a file cannot be read.
    pub(crate) fn io(file: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        |source| Self::Io { file, source }
    }
}

impl From<InputError> for TraceError {
    fn from(error: InputError) -> Self {
        Self::Source(Box::new(error))
    }
}

/// Returns the start of a path, quoted: a line of any file may have become one.
fn excerpt(path: &Path) -> String {
    const LONGEST: usize = 120;
    let text = path.to_string_lossy();
    let cut = text.char_indices().nth(LONGEST).map(|(end, _)| format!("{:?} ...", &text[..end]));
    cut.unwrap_or_else(|| format!("{text:?}"))
}
