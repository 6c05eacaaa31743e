//! Writing traces as time-independent text.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use pdes_core::Rank;

use crate::archive::WriteError;
use crate::error::TraceError;
use crate::structure::TextLine;
use crate::trace::Trace;

/// Actions between two updates of a counter.
const REPORT: u64 = 1 << 16;

/// Writes what a rank does as text, one line per action, which reads back as the same actions.
///
/// # Errors
/// What the writer says. Damage of an archive shows in [`Trace::integrity`].
///
/// ```
/// use trace_mmap::{Trace, write_text};
/// let text = "0 init\n0 compute 250000\n0 allreduce 8 0 0\n";
/// let mut written = Vec::new();
/// write_text(&Trace::from_text(text)?, pdes_core::Rank::new(0), &mut written, None)?;
/// assert_eq!(written, text.as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Where the trace has no such rank.
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
    for op in trace.ops(rank) {
        writeln!(out, "{}", TextLine { rank, op: &op })?;
        written += 1;
        if written == REPORT {
            report(std::mem::take(&mut written));
        }
    }
    report(written);
    Ok(())
}

/// Writes a trace as text into a directory, which is created where it is missing: `rank-0.txt`, `rank-1.txt`, ... and
/// `files.txt`, which lists them. The counter counts actions.
///
/// # Errors
/// Where a file cannot be written, or the trace is a damaged archive.
pub fn dump(trace: &Trace, dir: &Path, progress: Option<&AtomicU64>) -> Result<(), WriteError> {
    let error = |file: &Path| {
        let file = file.to_path_buf();
        move |source| WriteError::Io { file, source }
    };
    std::fs::create_dir_all(dir).map_err(error(dir))?;
    let list = dir.join("files.txt");
    let mut names = String::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        let name = format!("rank-{rank}.txt");
        let file = dir.join(&name);
        let written = File::create(&file).map(BufWriter::new).and_then(|mut out| {
            write_text(trace, rank, &mut out, progress)?;
            out.flush()
        });
        written.map_err(error(&file))?;
        names += &name;
        names.push('\n');
    }
    trace.integrity().map_err(TraceError::from)?;
    std::fs::write(&list, names).map_err(error(&list))
}
