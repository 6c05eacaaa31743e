//! Shards: the files that the processes of a recorded program have left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ti_shard::{COMPLETE_MARK, ParsedHeader, ProcessState, ShardReader};
use trace_mmap::{NoteKind, Provenance, WorkMetric};

/// The reason why shards cannot be combined into a trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShardError {
    /// A file cannot be read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a shard.
    #[error("{}: found {found:?}, expected the first line of a shard, which the tracer writes", file.display())]
    NotAShard {
        /// The file.
        file: PathBuf,
        /// Its first line, or the beginning of it.
        found: String,
    },
    /// The shard has an unknown version.
    #[error("{}: found a shard of version {found}, expected {}; use the tracer that belongs to this program", file.display(), ParsedHeader::VERSION)]
    Version {
        /// The file.
        file: PathBuf,
        /// Version of the shard.
        found: String,
    },
    /// The directory contains no shards.
    #[error("{}: found no shard (N.shard)", dir.display())]
    NoShards {
        /// The directory.
        dir: PathBuf,
    },
    /// The shards belong to different runs.
    #[error("{} has {key}={found}, but {} has {key}={expected}: they are of different runs", file.display(), first.display())]
    OtherRun {
        /// The file.
        file: PathBuf,
        /// Name of the differing property.
        key: &'static str,
        /// Its value in this shard.
        found: String,
        /// Its value in the first shard.
        expected: String,
        /// File of the first shard.
        first: PathBuf,
    },
    /// There are two shards of one rank.
    #[error("{} and {} are both of rank {rank}", first.display(), second.display())]
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// File of one shard.
        first: PathBuf,
        /// File of the other shard.
        second: PathBuf,
    },
    /// The rank of a shard is out of range.
    #[error("{}: found rank {rank}, expected one below {world}", file.display())]
    RankOutOfRange {
        /// The file.
        file: PathBuf,
        /// Rank in the shard.
        rank: u32,
        /// Number of ranks of the run.
        world: u32,
    },
    /// Some ranks have no shard.
    #[error("found shards of {found} of {world} ranks; {} missing, the first is rank {first}", count(*missing))]
    MissingRanks {
        /// Number of ranks with a shard.
        found: usize,
        /// Number of ranks of the run.
        world: u32,
        /// Number of ranks without a shard.
        missing: u32,
        /// The first rank without a shard.
        first: u32,
    },
}

fn count(missing: u32) -> String {
    if missing == 1 { "1 is".to_owned() } else { format!("{missing} are") }
}

/// The properties of a run in the header of its shards: equal in all shards of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunHeader {
    /// Name of the run.
    job: String,
    /// Number of its ranks.
    ranks: u32,
    /// Measure of computation: `instructions` or `cpu-time`.
    counter: String,
    /// Flops per second of CPU time.
    rate: String,
}

impl RunHeader {
    /// Returns the measure of computation; `None` if the values are invalid.
    pub(crate) fn counted(&self) -> Option<WorkMetric> {
        match (self.counter.as_str(), self.rate.parse()) {
            ("instructions", _) => Some(WorkMetric::Instructions),
            ("cpu-time", Ok(rate)) if f64::is_finite(rate) && rate > 0.0 => {
                Some(WorkMetric::CpuTime { rate })
            }
            _ => None,
        }
    }
}

/// A shard: the recording of one process.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    file: PathBuf,
    run: RunHeader,
    rank: u32,
    /// Flag: the process has called `MPI_Finalize`, and all was written.
    is_complete: bool,
    state: ProcessState,
}

impl Shard {
    /// Reads the first line and the end of a file.
    fn read(file: &Path) -> Result<Self, ShardError> {
        let error = |source| ShardError::Io { file: file.to_path_buf(), source };
        let mut reader = BufReader::new(File::open(file).map_err(error)?);
        let mut head = Vec::new();
        reader.by_ref().take(4096).read_until(b'\n', &mut head).map_err(error)?;
        let head = String::from_utf8_lossy(&head);
        let (run, rank) = parse_head(file, head.trim_end())?;
        let mut state = [0; ProcessState::BYTES];
        // A process that ended at once has not written all of it.
        let state = match reader.read_exact(&mut state) {
            Ok(()) => ProcessState::from_bytes(&state),
            Err(_) => ProcessState::default(),
        };
        let mut file_of_shard = reader.into_inner();
        let is_complete = is_complete(&mut file_of_shard).map_err(error)?;
        Ok(Self { file: file.to_path_buf(), run, rank, is_complete, state })
    }

    /// Returns whether the process ended before its first record was written.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(!self.is_complete && ShardReader::new(File::open(&self.file)?)?.read_record()?.is_none())
    }

    /// Adds the notes about the process, except for its call in progress.
    fn add_notes(&self, provenance: &mut Provenance) {
        let (rank, state) = (self.rank, &self.state);
        if state.has_threads() {
            provenance.add_note(NoteKind::Threads, rank, "", 0);
        }
        let (elapsed, computed) = state.elapsed_and_computed();
        if elapsed >= MIN_ELAPSED && computed < elapsed / 100 {
            provenance.add_note(NoteKind::Idle, rank, "", 0);
        }
        if let Some((calls, function)) = state.failed() {
            provenance.add_note(NoteKind::FailedCalls, rank, &function, calls);
        }
        if let Some((calls, function)) = state.unknown_requests() {
            provenance.add_note(NoteKind::UnknownRequests, rank, &function, calls);
        }
    }
}

/// Time outside of MPI below which a process is not called idle \[ns\].
const MIN_ELAPSED: u64 = 50_000_000;

fn parse_head(file: &Path, head: &str) -> Result<(RunHeader, u32), ShardError> {
    let file = file.to_path_buf();
    match ParsedHeader::parse(head) {
        ParsedHeader::Shard { world, rank, .. } if rank >= world => {
            Err(ShardError::RankOutOfRange { file, rank, world })
        }
        ParsedHeader::Shard { job, world, rank, counter, rate } => {
            Ok((RunHeader { job, ranks: world, counter, rate }, rank))
        }
        ParsedHeader::OtherVersion(found) => Err(ShardError::Version { file, found }),
        ParsedHeader::NotAShard => {
            Err(ShardError::NotAShard { file, found: head.chars().take(60).collect() })
        }
    }
}

/// Returns whether a process has completed its shard: a process that died leaves zeros behind its last record.
fn is_complete(file: &mut File) -> io::Result<bool> {
    let mut end = [0; COMPLETE_MARK.len()];
    let len = file.seek(SeekFrom::End(0))?;
    let Some(start) = len.checked_sub(end.len() as u64) else { return Ok(false) };
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut end)?;
    Ok(end == COMPLETE_MARK)
}

/// The shards of the ranks of a run.
#[derive(Debug)]
pub(crate) struct ShardSet {
    by_rank: BTreeMap<u32, Shard>,
    /// Number of ranks of the run.
    ranks: u32,
}

/// Ranks that must have a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// All ranks.
    All,
    /// Some ranks have none: they ended before or in `MPI_Init`.
    Some,
}

impl ShardSet {
    /// Reads shards, and directories of shards, and checks that they are one per rank of one run.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is of another run, or if the shard of a rank is there twice, or missing although
    /// all must be there.
    pub(crate) fn read(paths: &[PathBuf], completeness: Completeness) -> Result<Self, ShardError> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() { files.extend(list_shards(path)?) } else { files.push(path.clone()) }
        }
        let mut by_rank = BTreeMap::<u32, Shard>::new();
        let mut first: Option<Shard> = None;
        for file in files {
            let shard = Shard::read(&file)?;
            check_run(first.get_or_insert_with(|| shard.clone()), &shard)?;
            if let Some(other) = by_rank.get(&shard.rank) {
                let (first, second) = (other.file.clone(), shard.file);
                return Err(ShardError::DuplicateRank { rank: shard.rank, first, second });
            }
            by_rank.insert(shard.rank, shard);
        }
        let (found, world) = (by_rank.len(), first.map_or(0, |shard| shard.run.ranks));
        match (0..world).find(|rank| !by_rank.contains_key(rank)) {
            Some(first) if completeness == Completeness::All => {
                Err(ShardError::MissingRanks { found, world, missing: world - found as u32, first })
            }
            _ => Ok(Self { by_rank, ranks: world }),
        }
    }

    /// Links all shards into a folder, which becomes a trace of one file per rank; returns the paths. A rank that has recorded
    /// nothing gets a text that enters MPI.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written.
    pub(crate) fn link_into(&self, folder: &Path) -> Result<Vec<PathBuf>, ShardError> {
        let stage = |rank: u32| {
            let target = folder.join(format!("rank-{rank}.txt"));
            match self.by_rank.get(&rank) {
                Some(shard) if !shard.is_empty()? => {
                    std::os::unix::fs::symlink(fs::canonicalize(&shard.file)?, &target)?;
                }
                _ => fs::write(&target, format!("{rank} init\n"))?,
            }
            Ok(target)
        };
        (0..self.ranks)
            .map(stage)
            .collect::<io::Result<_>>()
            .map_err(|source| ShardError::Io { file: folder.to_path_buf(), source })
    }

    /// Returns the properties of the run.
    pub(crate) fn run(&self) -> Option<&RunHeader> {
        self.by_rank.values().next().map(|shard| &shard.run)
    }

    /// Returns the ranks that did not call `MPI_Finalize`.
    pub(crate) fn ended_early(&self) -> Vec<u32> {
        let is_complete = |rank: &u32| self.by_rank.get(rank).is_some_and(|shard| shard.is_complete);
        (0..self.ranks).filter(|rank| !is_complete(rank)).collect()
    }

    /// Returns the ranks that have no shard.
    pub(crate) fn missing(&self) -> Vec<u32> {
        (0..self.ranks).filter(|rank| !self.by_rank.contains_key(rank)).collect()
    }

    /// Adds the notes about all processes, except for their calls in progress.
    pub(crate) fn add_notes(&self, provenance: &mut Provenance) {
        self.by_rank.values().for_each(|shard| shard.add_notes(provenance));
    }
}

/// Lists the shards in a directory.
pub(crate) fn list_shards(dir: &Path) -> Result<Vec<PathBuf>, ShardError> {
    let error = |source| ShardError::Io { file: dir.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(error)? {
        let file = entry.map_err(error)?.path();
        if file.extension().is_some_and(|extension| extension == "shard") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(ShardError::NoShards { dir: dir.to_path_buf() }) } else { Ok(files) }
}

fn check_run(first: &Shard, shard: &Shard) -> Result<(), ShardError> {
    let keys = |run: &RunHeader| {
        let RunHeader { job, ranks, counter, rate } = run.clone();
        [("job", job), ("world", ranks.to_string()), ("counter", counter), ("rate", rate)]
    };
    for ((key, found), (_, expected)) in keys(&shard.run).into_iter().zip(keys(&first.run)) {
        if found != expected {
            let (file, first) = (shard.file.clone(), first.file.clone());
            return Err(ShardError::OtherRun { file, key, found, expected, first });
        }
    }
    Ok(())
}
