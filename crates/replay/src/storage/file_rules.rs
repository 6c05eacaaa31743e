//! Rules for the files of file systems, which a run finds in the trace before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use mpi_model::FileAccess;
use netmodel::{FileServers, FileSystemId, HostId, Platform, Storage, StoragePlace, Striping};
use trace_mmap::{Action, Call, FileCall, FileHints, NumberHint, RankTrace};

use crate::programs::{Program, Programs};

/// The striping of files, and the ends of reads.
#[derive(Clone, Debug)]
pub(crate) struct FileRules {
    /// Striping of files that hints stripe, by file system and number.
    striped: BTreeMap<(FileSystemId, u32), Striping>,
    /// Reads may go beyond the end of files: in recorded traces and of programs that run the amounts are those of buffers, and others may write earlier than in the
    /// replay.
    allows_reads_beyond_the_end: bool,
}

impl FileRules {
    /// Finds the rules of the traces of all programs. Costs the actions of ranks that open files with hints of striping, up to their first accesses.
    pub(crate) fn of(programs: &Programs, platform: &Platform) -> Self {
        let mut found = StripedFiles::default();
        if !platform.storage().file_systems().is_empty() {
            for (_, Program { trace, placement, .. }, rank) in programs.ranks() {
                // A damaged rank ends the run on the process that replays it.
                let _ = trace.with_rank(rank, |of_rank| {
                    found.add_rank(of_rank, platform.storage(), placement.host(rank));
                });
            }
        }
        let allows_reads_beyond_the_end = programs.iter().any(|program| {
            let Program { trace, .. } = program;
            program.may_access_files() || trace.provenance().is_recorded() || trace.has_measured_times()
        });
        Self { striped: found.striped, allows_reads_beyond_the_end }
    }

    /// Creates the idle clients and servers of those hosts that `is_own` accepts.
    pub(crate) fn servers<'a, T: Copy>(
        &self,
        storage: &'a Storage,
        is_own: impl Fn(HostId) -> bool,
    ) -> FileServers<'a, T> {
        let mut servers = FileServers::new(storage, is_own, FileAccess::file_number, self.striped.clone());
        if self.allows_reads_beyond_the_end {
            servers.allow_reads_beyond_the_end();
        }
        servers
    }
}

/// The files that hints stripe. Those of the last open before a first access count, in the program of the first rank that opens the file
/// with hints and accesses it.
#[derive(Debug, Default)]
struct StripedFiles {
    striped: BTreeMap<(FileSystemId, u32), Striping>,
    /// Files of which the striping is known.
    known: BTreeSet<String>,
}

impl StripedFiles {
    fn add_rank(&mut self, rank: &RankTrace, storage: &Storage, host: HostId) {
        let hinted = rank.calls().filter_map(|call| match call {
            Call::File { file, call: FileCall::Open { hints, .. }, .. } if is_striped(hints) => {
                Some(file.as_str())
            }
            _ => None,
        });
        let mut wanted: BTreeSet<&str> = hinted.filter(|file| !self.known.contains(*file)).collect();
        let mut opened: BTreeMap<&str, FileHints> = BTreeMap::new();
        for action in rank.cursor() {
            if wanted.is_empty() {
                return;
            }
            let Action::Call(id) = action else { continue };
            let Call::File { file, call, .. } = rank.call(id) else { continue };
            match call {
                FileCall::Open { hints, .. } => drop(opened.insert(file.as_str(), *hints)),
                FileCall::Access { .. } | FileCall::SharedAccess { .. } if wanted.remove(file.as_str()) => {
                    let hints = opened.get(file.as_str()).filter(|hints| is_striped(hints));
                    self.add_file(storage, host, file.as_str(), hints);
                }
                _ => {}
            }
        }
    }

    fn add_file(&mut self, storage: &Storage, host: HostId, file: &str, hints: Option<&FileHints>) {
        self.known.insert(file.to_owned());
        let Some(StoragePlace::FileSystem(id)) = storage.find(host, file) else { return };
        let system = &storage.file_systems()[id.index()];
        // A file that exists keeps its stripes.
        let Some(hints) = hints.filter(|_| !system.files.contains_key(file)) else { return };
        let number = |hint| hints.number(hint).and_then(NonZeroU64::new);
        let striping =
            system.striping.with_hints(number(NumberHint::StripingUnit), number(NumberHint::StripingFactor));
        self.striped.insert((id, FileAccess::file_number(file)), striping);
    }
}

fn is_striped(hints: &FileHints) -> bool {
    [NumberHint::StripingUnit, NumberHint::StripingFactor].iter().any(|hint| hints.number(*hint).is_some())
}
