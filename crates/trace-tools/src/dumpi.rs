//! Traces of SST's DUMPI library: a binary file for each rank, and a text with the name that they share.
//!
//! A rank has the [timed calls](crate::timed) of its file, by wall time. `docs/traces.md` says what is kept.
//!
//! # Format
//! All numbers are big-endian. A file begins with [`MAGIC`]; the index at its end, after the same magic, has the offsets of its parts,
//! the last one first: key values, [footer](file::Parts::calls), records, header, labels of counters, names of functions, sizes of
//! datatypes. A record is the number of a function, a mask of what it has, the thread, processor and wall times, counters, and the
//! arguments of [its layout](functions).

mod creations;
mod datatypes;
mod error;
mod file;
mod functions;
mod program;

pub use error::DumpiError;

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{Location, TraceError, TraceSource};

use crate::error::InputError;
use crate::files::{rank_family, same_family};
use crate::format::Candidate;
use crate::timed::{Communicators, Creation, TimedCalls, TimedProgram, source};
use creations::Grids;
use file::{Bad, Parts, Problem};

/// First bytes of a file, and of its index.
const MAGIC: [u8; 8] = *b"\xff\xaa\xddDUMPI";

/// Key of the name that the files share, in the text beside them.
const PREFIX: &str = "fileprefix=";

/// Returns whether a candidate is a file of a rank, the text beside the files, or a directory with such files.
pub(crate) fn knows(candidate: &Candidate) -> bool {
    candidate.head().starts_with(&MAGIC)
        || prefix(candidate).is_some()
        || candidate.member(".bin").is_some_and(|file| file.head().starts_with(&MAGIC))
}

/// Returns the name that the files share, if the candidate is the text beside them.
fn prefix(candidate: &Candidate) -> Option<&str> {
    let text = str::from_utf8(candidate.head()).ok()?;
    text.lines().find_map(|line| line.strip_prefix(PREFIX)).filter(|_| text.contains("numprocs="))
}

/// Opens a trace: reads the parts of its files, and the records that make communicators.
pub(crate) fn open(candidate: &Candidate) -> Result<Box<dyn TraceSource>, TraceError> {
    let files = match prefix(candidate) {
        Some(prefix) => {
            // The directory of the recording need not be that of the files.
            let name = Path::new(prefix).file_name().unwrap_or_default().to_string_lossy();
            same_family(candidate, &format!("{name}-"), ".bin")?
        }
        None => rank_family(candidate, &[".bin"])?,
    };
    let files = files.iter().map(|file| Parts::read(file)).collect::<Result<Vec<_>, _>>()?;
    let makes = |[called, _]: [u32; 2], name: &str| called > 0 && creations::FUNCTIONS.contains(&name);
    let has_creations = files.iter().any(|parts| {
        let mut counters = parts.calls.iter().enumerate();
        counters.any(|(number, calls)| functions::name(number).is_some_and(|name| makes(*calls, name)))
    });
    let calls = files.iter().map(|parts| if has_creations { made(parts) } else { Ok(Vec::new()) });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    let communicators = Communicators::resolve(creations::PREDEFINED, &calls)
        .map_err(|bad| bad.locate(|rank| files[rank].path.clone()))?;
    Ok(source(Dumpi { path: candidate.path().to_path_buf(), files, communicators }))
}

/// Reads the records of a rank that make communicators.
fn made(parts: &Parts) -> Result<Vec<Creation>, TraceError> {
    let (mut creations, mut grids) = (Vec::new(), Grids::default());
    let mut records = parts.records()?;
    while let Some(record) = records.next().map_err(|bad| bad.locate(&parts.path))? {
        if let Some(made) = creations::made(record, &mut grids) {
            creations.push(Creation { name: record.name, line: record.number, made });
        }
    }
    Ok(creations)
}

impl Bad {
    /// Adds the file.
    fn locate(self, path: &Path) -> TraceError {
        let file = path.to_path_buf();
        match self.error {
            Problem::Io(source) => InputError::Io { file, source }.into(),
            Problem::Dumpi(kind) => {
                TraceError::Action { location: Location { file, line: self.record }, kind: kind.into() }
            }
        }
    }
}

/// A trace.
#[derive(Debug)]
struct Dumpi {
    path: PathBuf,
    files: Vec<Parts>,
    communicators: Communicators,
}

impl TimedCalls for Dumpi {
    type Shared = ();

    fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> Vec<&Path> {
        self.files.iter().map(|parts| &*parts.path).collect()
    }

    fn file(&self, rank: Rank) -> &Path {
        &self.files[rank.index()].path
    }

    fn ranks(&self) -> Result<u32, TraceError> {
        Ok(self.files.len() as u32)
    }

    fn shared(&self) -> Result<(), TraceError> {
        Ok(())
    }

    fn write(&self, (): &(), program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
        program::write(&self.files[program.rank().index()], &self.communicators, program)
    }
}
