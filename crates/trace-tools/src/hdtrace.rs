//! Traces of HDTrace, the tracer of PIOsimHD: a project in XML (`NAME.proj`), and a file of calls for each thread
//! (`NAME_HOST_RANK_THREAD.trc`).
//!
//! A rank has the [timed calls](crate::timed) of the first thread that the project lists. `docs/traces.md` says what is kept.
//!
//! # Format
//! An element of a file of calls is a call without `MPI_`, with its arguments, its begin `time` and its `end` in seconds as attributes;
//! lists of requests and vectors of counts are elements inside it. Calls that a library makes inside another call stand before that, in an
//! element `Nested`. Peers and roots are ranks of the world; communicators (`cid`) have numbers of each rank, whose members the project
//! lists. Receives have no size.

mod element;
mod error;
mod program;
mod project;
mod sizes;

pub use error::HdtraceError;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Group, TraceError, TraceSource};

use self::project::Project;
use self::sizes::Sizes;
use crate::format::Candidate;
use crate::timed::{Communicators, Given, Handle, TimedCalls, TimedProgram, source};

/// Returns whether a candidate is a project.
pub(crate) fn knows(candidate: &Candidate) -> bool {
    let text = candidate.text();
    let contains = |part: &[u8]| memchr::memmem::find(text, part).is_some();
    candidate.path().extension().is_some_and(|end| end == "proj") && contains(b"<Application")
}

/// Opens a trace: reads its project.
pub(crate) fn open(candidate: &Candidate) -> Result<Box<dyn TraceSource>, TraceError> {
    let path = candidate.path();
    let project = Project::read(path)?;
    let ranks = project.files.len() as u32;
    let world = Group::world(ranks);
    let (mut given, mut groups) = (FxHashMap::default(), Vec::new());
    let mut by_rank: Vec<FxHashMap<u64, Handle>> = vec![FxHashMap::default(); ranks as usize];
    for (handle, communicator) in (0..).zip(project.communicators) {
        let group = Group::new(communicator.iter().map(|member| member.rank));
        let wrong = |rank| TraceError::Source(HdtraceError::Twice { path: path.to_path_buf(), rank }.into());
        let group = Arc::new(group.map_err(wrong)?);
        for member in communicator {
            by_rank[member.rank.index()].insert(member.number, handle);
        }
        let id = CommId::new(handle as u32 + 1);
        given.insert(
            handle,
            if *group == world { Given::World } else { Given::Group((id, Arc::clone(&group))) },
        );
        groups.push(group);
    }
    let communicators = Communicators::new(given, ranks, groups.len() as u32 + 1);
    let names = Names { groups, by_rank };
    Ok(source(HdTrace {
        path: path.to_path_buf(),
        files: project.files,
        other_threads: project.other_threads,
        names,
        communicators,
    }))
}

/// A trace.
#[derive(Debug)]
struct HdTrace {
    path: PathBuf,
    files: Vec<PathBuf>,
    /// Number of further threads of each rank.
    other_threads: Vec<u64>,
    names: Names,
    communicators: Communicators,
}

/// The communicators of a project.
#[derive(Debug)]
struct Names {
    groups: Vec<Arc<Group>>,
    /// Handles by the numbers that each rank has for them.
    by_rank: Vec<FxHashMap<u64, Handle>>,
}

impl Names {
    /// Finds a communicator by its number on a rank, and the rank in it.
    fn find(&self, rank: Rank, number: u64) -> Option<(Handle, u32)> {
        let handle = *self.by_rank[rank.index()].get(&number)?;
        Some((handle, self.groups[handle as usize].position(rank)?))
    }

    /// Returns the rank in a communicator of a rank of the world.
    fn position(&self, handle: Handle, rank: i64) -> Option<u32> {
        self.groups[handle as usize].position(Rank::new(u32::try_from(rank).ok()?))
    }
}

impl TimedCalls for HdTrace {
    type Shared = Sizes;

    fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> Vec<&Path> {
        [&self.path].into_iter().chain(&self.files).map(PathBuf::as_path).collect()
    }

    fn file(&self, rank: Rank) -> &Path {
        &self.files[rank.index()]
    }

    fn ranks(&self) -> Result<u32, TraceError> {
        Ok(self.files.len() as u32)
    }

    fn is_interleaved(&self) -> bool {
        // Sizes are those of all ranks, and read once.
        true
    }

    fn shared(&self) -> Result<Sizes, TraceError> {
        Sizes::read(&self.files, &self.names)
    }

    fn write(&self, sizes: &Sizes, program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
        let others = self.other_threads[program.rank().index()];
        if others > 0 {
            program.leave_out(0, others, "calls of further threads of a rank are left out");
        }
        let file = self.file(program.rank());
        program::write(file, &self.names, &self.communicators, sizes, program)
    }
}
