//! Traces of liballprof, the tracer of LogGOPSim: text, a file for each rank.
//!
//! A rank has the [timed calls](crate::timed) of its file. `docs/traces.md` says what is kept.
//!
//! # Format
//! A line is a call: `MPI_Name:begin:argument:...:end`, with times in microseconds, which `MPI_Init` has at its end only, and
//! `MPI_Finalize` at its begin. Arguments are in the order of C: numbers, addresses of buffers, requests and results,
//! `handle,size,extent` of datatypes, `handle,rank,size` of communicators. Some tracers write vectors of counts after their
//! addresses, others the addresses only. The other lines are comments.

mod communicators;
mod line;
mod program;

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{TraceError, TraceSource};

use crate::files::rank_family;
use crate::format::Candidate;
use crate::text::Lines;
use crate::timed::{Communicators, TimedCalls, TimedProgram, source};
pub use line::LiballprofError;

/// Ends of names of files.
const ENDS: [&str; 6] = [".dat", ".txt", ".dat.gz", ".txt.gz", ".dat.zst", ".txt.zst"];

/// Returns whether a candidate is a file of a rank, or a directory with such files.
pub(crate) fn knows(candidate: &Candidate) -> bool {
    let is_file = |candidate: &Candidate| {
        let mut lines = candidate.text().split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(b"MPI_Init:-:") || line.starts_with(b"MPI_Init_thread:-:"))
    };
    is_file(candidate) || ENDS.iter().any(|end| candidate.member(end).is_some_and(|member| is_file(&member)))
}

/// Opens a trace: reads the calls that make communicators.
pub(crate) fn open(candidate: &Candidate) -> Result<Box<dyn TraceSource>, TraceError> {
    let files = rank_family(candidate, &ENDS)?;
    let ranks = files.len() as u32;
    let calls = files.iter().map(|file| communicators::made(file, ranks)).collect::<Result<Vec<_>, _>>()?;
    let communicators = Communicators::resolve(communicators::PREDEFINED, &calls)
        .map_err(|bad| bad.locate(|rank| files[rank].clone()))?;
    Ok(source(Liballprof { path: candidate.path().to_path_buf(), files, communicators }))
}

/// A trace.
#[derive(Debug)]
struct Liballprof {
    path: PathBuf,
    files: Vec<PathBuf>,
    communicators: Communicators,
}

impl TimedCalls for Liballprof {
    type Shared = ();

    fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> Vec<&Path> {
        self.files.iter().map(PathBuf::as_path).collect()
    }

    fn file(&self, rank: Rank) -> &Path {
        &self.files[rank.index()]
    }

    fn ranks(&self) -> Result<u32, TraceError> {
        Ok(self.files.len() as u32)
    }

    fn shared(&self) -> Result<(), TraceError> {
        Ok(())
    }

    fn write(&self, (): &(), program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
        let ranks = self.files.len() as u32;
        program::write(Lines::open(self.file(program.rank()))?, ranks, &self.communicators, program)
    }
}
