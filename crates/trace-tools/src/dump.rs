//! Writer of traces as time-independent text.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use outputs::AtomicFile;
use pdes_core::{Rank, SimDuration};
use trace_mmap::{Trace, TraceError, WriteError, nanos};

use crate::files::rank_of;
use crate::line::TextLine;

/// Number of actions between two updates of the progress counter.
const PROGRESS_INTERVAL: u64 = 1 << 16;

/// Name of the list of files in a directory.
const LIST: &str = "files.txt";

/// The reason why a directory is refused.
const OTHER_TRACE: &str = "the directory has files of a trace already: name a new or empty one";

/// Writes the actions of a rank as text, one line per action, which reads back as the same actions.
///
/// # Errors
/// Returns errors of the writer. Damage of an archive is reported by [`Trace::integrity`].
///
/// ```
/// use trace_tools::{from_text, write_text};
/// let text = "0 init\n0 compute 250000\n0 allreduce 8 0 0\n";
/// let mut written = Vec::new();
/// write_text(&from_text(text)?, pdes_core::Rank::new(0), &mut written, None)?;
/// assert_eq!(written, text.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Panics if the trace has no such rank.
pub fn write_text(
    trace: &Trace,
    rank: Rank,
    out: &mut dyn Write,
    progress: Option<&AtomicU64>,
) -> io::Result<()> {
    let mut written = 0;
    let report = |actions| {
        if let Some(progress) = progress {
            // A display elsewhere reads this counter; nothing depends on its order.
            progress.fetch_add(actions, Ordering::Relaxed);
        }
    };
    let mut measured = trace.rank(rank).measured();
    for op in trace.ops(rank) {
        let time = measured.as_mut().and_then(Iterator::next).and_then(|(_, time)| time);
        write_line(out, TextLine { rank, op: &op }, time)?;
        written += 1;
        if written == PROGRESS_INTERVAL {
            report(std::mem::take(&mut written));
        }
    }
    report(written);
    Ok(())
}

/// Writes a line, with the measured time of the action if known.
pub(crate) fn write_line(
    out: &mut dyn Write,
    line: TextLine<'_>,
    time: Option<SimDuration>,
) -> io::Result<()> {
    match time {
        Some(time) => writeln!(out, "{line} time={}", nanos(time)),
        None => writeln!(out, "{line}"),
    }
}

/// Writes a trace as text into a directory, which is created if missing: `rank-0.txt`, `rank-1.txt`, ... and
/// `files.txt`, which lists them. The counter counts actions.
///
/// # Errors
/// Fails if the directory has files of ranks, which would be lost or mixed with the new ones, if a file cannot be written, or if the trace
/// is a damaged archive; files written so far are then removed.
pub fn dump(trace: &Trace, dir: &Path, progress: Option<&AtomicU64>) -> Result<(), WriteError> {
    if let Some(file) = std::fs::read_dir(dir).ok().and_then(first_of_a_trace) {
        let source = io::Error::new(io::ErrorKind::AlreadyExists, OTHER_TRACE);
        return Err(WriteError::Io { file, source });
    }
    let mut written = RemoveOnFailure { files: Vec::new(), dir: (!dir.exists()).then_some(dir) };
    std::fs::create_dir_all(dir).map_err(io_error(dir))?;
    let mut names = String::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        let name = format!("rank-{rank}.txt");
        written.write(dir.join(&name), |out| write_text(trace, rank, out, progress))?;
        names += &name;
        names.push('\n');
    }
    trace.integrity().map_err(TraceError::from)?;
    written.write(dir.join(LIST), |out| out.write_all(names.as_bytes()))?;
    written.commit();
    Ok(())
}

/// Returns the first file of a trace in a directory, by name.
fn first_of_a_trace(entries: std::fs::ReadDir) -> Option<PathBuf> {
    let files = entries.flatten().map(|entry| entry.path());
    files.filter(|file| rank_of(file).is_some() || file.ends_with(LIST)).min()
}

fn io_error(file: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let file = file.to_path_buf();
    move |source| WriteError::Io { file, source }
}

/// Guard that removes the files written so far unless all are written.
struct RemoveOnFailure<'a> {
    files: Vec<PathBuf>,
    /// The directory, if it was created for this dump.
    dir: Option<&'a Path>,
}

impl RemoveOnFailure<'_> {
    fn write(
        &mut self,
        file: PathBuf,
        write: impl FnOnce(&mut AtomicFile) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let mut out = AtomicFile::create(&file).map_err(io_error(&file))?;
        write(&mut out).and_then(|()| out.commit()).map_err(io_error(&file))?;
        self.files.push(file);
        Ok(())
    }

    fn commit(mut self) {
        self.files.clear();
        self.dir = None;
    }
}

impl Drop for RemoveOnFailure<'_> {
    fn drop(&mut self) {
        // The error that led here matters more than what cannot be removed.
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
        if let Some(dir) = self.dir {
            let _ = std::fs::remove_dir(dir);
        }
    }
}
