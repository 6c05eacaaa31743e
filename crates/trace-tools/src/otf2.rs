//! Archives of OTF2, as Score-P, TAU and others write them, by the library of the format.
//!
//! A rank is a location of MPI, a source of [timed calls](crate::timed): its calls are the outermost regions of MPI. `docs/traces.md`
//! says what is kept.

mod amounts;
mod program;
mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::otf2::reader::{Counter, Definitions, GroupKind, Otf2Error};
use pdes_core::Rank;
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, Group, MAX_RANKS, TraceError, TraceSource, WorkMetric};

use crate::format::Candidate;
use crate::timed::{Communicators, Given, Handle, NANOS, TimedCalls, TimedProgram, source};
use amounts::Vectors;

/// First bytes of an anchor.
pub(crate) const MAGIC: &[u8] = b"\x03BOTF2";

/// End of the names of anchors.
const END: &str = ".otf2";

/// An archive lacks something that a replay needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Otf2ProgramError {
    /// No location is a thread of a processor.
    #[error("{}: the archive has no location that is a thread of a processor", anchor.display())]
    NoRanks {
        /// The anchor.
        anchor: PathBuf,
    },
    /// The clock of the archive has no resolution.
    #[error("{}: the archive does not tell the resolution of its clock", anchor.display())]
    NoClock {
        /// The anchor.
        anchor: PathBuf,
    },
    /// A communicator has a member that is no rank, or one twice.
    #[error("{}: communicator {communicator} has the member {member}, which is no rank, or is there twice", anchor.display())]
    Member {
        /// The anchor.
        anchor: PathBuf,
        /// Number of the communicator.
        communicator: u32,
        /// The member.
        member: u64,
    },
    /// There is no counter of a name.
    #[error("{}: the archive has no counter {counter:?}, expected {}", anchor.display(), expected(known))]
    NoCounter {
        /// The anchor.
        anchor: PathBuf,
        /// The name.
        counter: String,
        /// The names of the counters of the archive.
        known: Vec<String>,
    },
    /// Another format has no counters.
    #[error("{}: this is no archive of OTF2, which alone has counters such as {counter:?}", path.display())]
    NotOtf2 {
        /// The trace.
        path: PathBuf,
        /// The name.
        counter: String,
    },
    /// A rank has no values of the counter.
    #[error("the rank has no value of the counter {counter:?}, by which its computations are measured")]
    NoValue {
        /// The name.
        counter: String,
    },
}

fn expected(known: &[String]) -> String {
    match known {
        [] => "none: it has no metric that counts from the start in whole numbers".to_owned(),
        known => format!("one of {}", known.join(", ")),
    }
}

/// Returns whether a candidate is an anchor, or a directory with one.
pub(crate) fn knows(candidate: &Candidate) -> bool {
    candidate.head().starts_with(MAGIC)
        || candidate.member(END).is_some_and(|anchor| anchor.head().starts_with(MAGIC))
}

/// Opens an archive: reads its definitions, and the amounts of collective operations on vectors if it has any.
pub(crate) fn open(candidate: &Candidate) -> Result<Box<dyn TraceSource>, TraceError> {
    open_counted(candidate, None)
}

/// Opens an archive whose computations are counted by a metric, if one is named, else timed.
pub(crate) fn open_counted(
    candidate: &Candidate,
    counter: Option<&str>,
) -> Result<Box<dyn TraceSource>, TraceError> {
    let anchor = match candidate.member(END) {
        Some(anchor) => anchor.path().to_path_buf(),
        None => candidate.path().to_path_buf(),
    };
    let definitions = Definitions::read(&anchor).map_err(library)?;
    let wrong = |error: Otf2ProgramError| TraceError::Source(error.into());
    if definitions.ticks_per_second == 0 {
        return Err(wrong(Otf2ProgramError::NoClock { anchor }));
    }
    let counters = match counter {
        Some(counter) => counters(&anchor, &definitions, counter).map_err(wrong)?,
        None => Vec::new(),
    };
    let locations = locations(&definitions);
    let ranks = u32::try_from(locations.len()).ok().filter(|ranks| *ranks <= MAX_RANKS);
    let ranks = match ranks {
        Some(0) => return Err(wrong(Otf2ProgramError::NoRanks { anchor })),
        Some(ranks) => ranks,
        None => {
            let found = locations.len() as u64;
            return Err(TraceError::TooManyRanks { path: anchor, found, limit: MAX_RANKS });
        }
    };
    let communicators = communicators(&anchor, &definitions, ranks).map_err(wrong)?;
    let vectors = Vectors::read(&anchor, &definitions, &locations, &communicators)?;
    let files = files(&anchor);
    let events = |location: &u64| anchor.with_extension("").join(format!("{location}.evt"));
    let event_files = locations.iter().map(events).collect();
    Ok(source(Otf2 { anchor, files, event_files, definitions, counters, locations, communicators, vectors }))
}

/// Returns the counters of a name, of which each metric may have one.
fn counters(anchor: &Path, definitions: &Definitions, name: &str) -> Result<Vec<Counter>, Otf2ProgramError> {
    let named = definitions.counters.iter().filter(|counter| counter.name == name);
    let found: Vec<Counter> = named.cloned().collect();
    if found.is_empty() {
        let mut known: Vec<String> =
            definitions.counters.iter().map(|counter| counter.name.clone()).collect();
        known.sort_unstable();
        known.dedup();
        let (anchor, counter) = (anchor.to_path_buf(), name.to_owned());
        return Err(Otf2ProgramError::NoCounter { anchor, counter, known });
    }
    Ok(found)
}

fn library(error: Otf2Error) -> TraceError {
    TraceError::Source(error.into())
}

/// Returns the locations of the ranks, in their order: those of MPI, or all threads if the archive does not tell.
fn locations(definitions: &Definitions) -> Vec<u64> {
    let mut groups = definitions.groups.values();
    match groups.find(|group| group.is_mpi && group.kind == GroupKind::Locations) {
        Some(group) => group.members.clone(),
        None => definitions
            .locations
            .iter()
            .filter(|location| location.is_thread)
            .map(|location| location.id)
            .collect(),
    }
}

/// Makes the communicators of the archive.
fn communicators(
    anchor: &Path,
    definitions: &Definitions,
    ranks: u32,
) -> Result<Communicators, Otf2ProgramError> {
    let world = Group::world(ranks);
    let mut given: FxHashMap<Handle, Given> = FxHashMap::default();
    for (communicator, number) in definitions.communicators.keys().zip(1..) {
        let Some(group) = definitions.groups.get(&definitions.communicators[communicator].group) else {
            continue;
        };
        let found = match group.kind {
            GroupKind::Own => Given::Own,
            GroupKind::Locations => Given::World,
            GroupKind::Other => continue,
            GroupKind::Members => {
                let wrong = |member| {
                    let anchor = anchor.to_path_buf();
                    Otf2ProgramError::Member { anchor, communicator: *communicator, member }
                };
                let is_rank = |member: &&u64| **member >= ranks.into();
                if let Some(&member) = group.members.iter().find(is_rank) {
                    return Err(wrong(member));
                }
                let members = group.members.iter().map(|member| Rank::new(*member as u32));
                let members = Group::new(members).map_err(|rank| wrong(rank.get().into()))?;
                if members == world {
                    Given::World
                } else {
                    Given::Group((CommId::new(number), Arc::new(members)))
                }
            }
        };
        given.insert((*communicator).into(), found);
    }
    let count = definitions.communicators.len() as u32 + 1;
    Ok(Communicators::new(given, ranks, count))
}

/// Returns the files of an archive, in their order.
fn files(anchor: &Path) -> Vec<PathBuf> {
    let mut files = vec![anchor.to_path_buf(), anchor.with_extension("def")];
    let entries = fs::read_dir(anchor.with_extension("")).into_iter().flatten().flatten();
    files.extend(entries.map(|entry| entry.path()));
    files.retain(|file| file.is_file());
    files.sort_unstable();
    files
}

/// An archive.
#[derive(Debug)]
struct Otf2 {
    anchor: PathBuf,
    files: Vec<PathBuf>,
    /// The files with the events of the ranks, for errors.
    event_files: Vec<PathBuf>,
    definitions: Definitions,
    /// The counters that measure computations; none if times do.
    counters: Vec<Counter>,
    /// The locations of the ranks.
    locations: Vec<u64>,
    communicators: Communicators,
    vectors: Vectors,
}

impl TimedCalls for Otf2 {
    type Shared = ();

    fn path(&self) -> &Path {
        &self.anchor
    }

    fn files(&self) -> Vec<&Path> {
        self.files.iter().map(PathBuf::as_path).collect()
    }

    fn file(&self, rank: Rank) -> &Path {
        &self.event_files[rank.index()]
    }

    fn ranks(&self) -> Result<u32, TraceError> {
        Ok(self.locations.len() as u32)
    }

    /// Counts of instructions are known as such, others are flops.
    fn work_metric(&self) -> Option<WorkMetric> {
        match self.counters.first() {
            None => Some(WorkMetric::Time { rate: NANOS }),
            Some(counter) => {
                ["PAPI_TOT_INS", "instructions"].contains(&&*counter.name).then_some(WorkMetric::Instructions)
            }
        }
    }

    fn shared(&self) -> Result<(), TraceError> {
        Ok(())
    }

    fn write(&self, (): &(), program: &mut TimedProgram<'_>) -> Result<(), TraceError> {
        program::write(self, program)
    }
}
