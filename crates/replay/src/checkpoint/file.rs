//! File format of a checkpoint.
//!
//! | bytes | content |
//! |---|---|
//! | 0-7 | magic |
//! | 8-11 | version, little-endian |
//! | then | the [`Header`], the state of the network, which is empty without contention, then the states of the ranks in order; each as its length in 4 bytes and its postcard encoding |
//! | last 32 | BLAKE3 hash of all bytes before |
//!
//! The hash is checked before anything else is interpreted, so that damage is reported as damage.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mpi_model::{Machine, RankProcess, Replay, ReplayError, RestoreError};
use netmodel::RouteError;
use outputs::AtomicFile;
use pdes_core::LpId;
use serde::{Deserialize, Serialize};
use timeline::SavedSpool;

use super::CheckpointError;
use super::identity::{Difference, RunIdentity};
use super::state::ProgramStates;
use crate::programs::replay_of;
use crate::simulation::RunError;

/// Magic number. As in PNG, a byte beyond ASCII and line ends reveal transfers as text.
const MAGIC: [u8; 8] = *b"\x89PDK\r\n\x1a\n";
/// Version of the format.
const VERSION: u32 = 24;
/// Size of the part before the header \[B\].
const HEADER_OFFSET: u64 = 12;
/// Size of the hash \[B\].
const HASH_SIZE: u64 = 32;

/// State of the run as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) identity: RunIdentity,
    /// Number of actions replayed, of all ranks.
    pub(super) actions: u64,
    /// Wall-clock time of replaying them \[s\].
    pub(super) replayed_s: f64,
    pub(super) programs: ProgramStates,
    /// Events were simulated in the order of time.
    pub(super) in_time_order: bool,
    /// Events of the timeline so far, if there is one.
    pub(super) events: Option<SavedSpool>,
}

/// Writes a checkpoint and returns its size \[B\]. The previous file remains until this one is complete and on disk.
pub(super) fn write(
    path: &Path,
    header: &Header,
    network: Vec<u8>,
    states: impl Iterator<Item = Vec<u8>>,
) -> Result<u64, CheckpointError> {
    write_file(path, header, network, states).map_err(|error| CheckpointError::io(path, error))
}

fn write_file(
    path: &Path,
    header: &Header,
    network: Vec<u8>,
    states: impl Iterator<Item = Vec<u8>>,
) -> io::Result<u64> {
    let mut writer = HashedWriter { file: AtomicFile::create(path)?, hasher: blake3::Hasher::new() };
    writer.write(&MAGIC)?;
    writer.write(&VERSION.to_le_bytes())?;
    writer.frame(header)?;
    writer.frame(&network)?;
    for state in states {
        writer.bytes(&state)?;
    }
    let HashedWriter { mut file, hasher } = writer;
    file.write_all(hasher.finalize().as_bytes())?;
    file.commit()
}

struct HashedWriter {
    file: AtomicFile,
    hasher: blake3::Hasher,
}

impl HashedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.file.write_all(bytes)
    }

    fn frame(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.bytes(&postcard::to_stdvec(value).map_err(io::Error::other)?)
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.write(&length.to_le_bytes())?;
        self.write(bytes)
    }
}

/// An open checkpoint: its hash is correct, and it belongs to this run.
#[derive(Debug)]
pub(super) struct CheckpointReader {
    path: PathBuf,
    file: BufReader<File>,
    /// Size of the states that are not read yet \[B\].
    remaining: u64,
    header: Header,
}

impl CheckpointReader {
    /// Opens a checkpoint, and checks that it belongs to the run `identity`.
    pub(super) fn new(path: &Path, identity: &RunIdentity) -> Result<Self, CheckpointError> {
        let io = |error| CheckpointError::io(path, error);
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let length = file.get_ref().metadata().map_err(io)?.len();
        check_start(path, &mut file)?;
        let Some(left) = length.checked_sub(HEADER_OFFSET + HASH_SIZE) else {
            return Err(damaged(path, "it ends before its header"));
        };
        check_hash(path, &mut file, HEADER_OFFSET + left)?;
        file.seek(SeekFrom::Start(HEADER_OFFSET)).map_err(io)?;
        let mut frames = FrameReader { path, file: &mut file, remaining: left };
        let header: Header = frames.next()?;
        let left = frames.remaining;
        match identity.difference(&header.identity) {
            None => Ok(Self { path: path.to_owned(), file, remaining: left, header }),
            Some(Difference { part, found, expected }) => {
                Err(CheckpointError::OtherRun { path: path.to_owned(), part, found, expected })
            }
        }
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the state of the network, which comes first.
    pub(super) fn network(&mut self) -> Result<Vec<u8>, CheckpointError> {
        let mut frames = FrameReader { path: &self.path, file: &mut self.file, remaining: self.remaining };
        let network = frames.next()?;
        self.remaining = frames.remaining;
        Ok(network)
    }

    /// Restores some of so many processes, in their order.
    pub(super) fn processes<'t, M>(
        mut self,
        worlds: &'t [Replay<'t, M>],
        (mine, lps): (&[LpId], u32),
        locate: impl Fn(LpId, Box<ReplayError<RouteError>>) -> RunError,
    ) -> Result<Vec<RankProcess<'t, M>>, RunError>
    where
        M: Machine<Error = RouteError>,
    {
        let mut frames = FrameReader { path: &self.path, file: &mut self.file, remaining: self.remaining };
        let mut place_of = vec![None; lps as usize];
        mine.iter().enumerate().for_each(|(place, lp)| place_of[lp.index()] = Some(place));
        let mut processes: Vec<Option<RankProcess<'t, M>>> = mine.iter().map(|_| None).collect();
        for (lp, place) in (0..).map(LpId::new).zip(place_of) {
            let bytes = frames.bytes()?;
            let Some(place) = place else { continue };
            let (world, rank) = replay_of(worlds, lp);
            let process = world.restore_process(rank, &bytes).map_err(|error| match error {
                RestoreError::Replay(error) => locate(lp, error),
                RestoreError::Foreign { rank, actions } => {
                    CheckpointError::ImpossibleState { path: self.path.clone(), rank, actions }.into()
                }
            })?;
            processes[place] = Some(process);
        }
        match frames.remaining {
            0 => Ok(processes.into_iter().flatten().collect()),
            _ => Err(damaged(&self.path, "it has more states than the run has ranks").into()),
        }
    }
}

fn damaged(path: &Path, what: &'static str) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what }
}

fn check_start(path: &Path, file: &mut impl Read) -> Result<(), CheckpointError> {
    let mut start = Vec::new();
    file.take(HEADER_OFFSET).read_to_end(&mut start).map_err(|error| CheckpointError::io(path, error))?;
    let (magic, version) = start.split_at(start.len().min(MAGIC.len()));
    if magic != MAGIC {
        return Err(CheckpointError::Magic { path: path.to_owned(), found: magic.to_vec() });
    }
    let version = version.try_into().map_err(|_| damaged(path, "it ends before its header"))?;
    match u32::from_le_bytes(version) {
        VERSION => Ok(()),
        found => Err(CheckpointError::Version { path: path.to_owned(), found, expected: VERSION }),
    }
}

/// Compares the hash of the first `bytes` bytes with the hash stored behind them.
fn check_hash(path: &Path, file: &mut BufReader<File>, bytes: u64) -> Result<(), CheckpointError> {
    let io = |error| CheckpointError::io(path, error);
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.by_ref().take(bytes)).map_err(io)?;
    let mut expected = [0; HASH_SIZE as usize];
    file.read_exact(&mut expected).map_err(io)?;
    // This comparison takes constant time, which is not needed here and costs nothing.
    if hasher.finalize() == blake3::Hash::from_bytes(expected) {
        Ok(())
    } else {
        Err(damaged(path, "its hash is wrong"))
    }
}

/// Reads frames: a length and as many bytes.
struct FrameReader<'f> {
    path: &'f Path,
    file: &'f mut BufReader<File>,
    remaining: u64,
}

impl FrameReader<'_> {
    fn next<T: for<'b> Deserialize<'b>>(&mut self) -> Result<T, CheckpointError> {
        let bytes = self.bytes()?;
        self.decode(&bytes)
    }

    /// Reads the bytes of a frame.
    fn bytes(&mut self) -> Result<Vec<u8>, CheckpointError> {
        let mut length = [0; 4];
        self.read(&mut length)?;
        let length = u32::from_le_bytes(length);
        if u64::from(length) > self.remaining {
            return Err(damaged(self.path, "a state goes beyond its end"));
        }
        let mut bytes = vec![0; length as usize];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn decode<T: for<'b> Deserialize<'b>>(&self, bytes: &[u8]) -> Result<T, CheckpointError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            _ => Err(damaged(self.path, "a state is invalid")),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        let left = self.remaining.checked_sub(bytes.len() as u64);
        self.remaining =
            left.ok_or_else(|| damaged(self.path, "it has fewer states than the run has ranks"))?;
        self.file.read_exact(bytes).map_err(|error| CheckpointError::io(self.path, error))
    }
}
