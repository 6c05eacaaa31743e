//! The file of a checkpoint.
//!
//! | bytes | holds |
//! |---|---|
//! | 0-7 | magic |
//! | 8-11 | version, little-endian |
//! | then | the [`Header`], then the state of each rank in their order: each as its length in 4 bytes and its postcard |
//! | last 32 | BLAKE3 of all before |
//!
//! The hash is compared before anything else is believed, so that damage is found as damage.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use mpi_model::{Machine, RankProcess, RankState, ReplayError, RestoreError, World};
use netmodel::RouteError;
use pdes_core::Rank;
use serde::{Deserialize, Serialize};

use super::identity::{Difference, Identity};
use super::{CheckpointError, draft};
use crate::scene::RunError;

/// The first bytes. As in PNG, a byte beyond ASCII and line ends reveal transfers as text.
const MAGIC: [u8; 8] = *b"\x89PDK\r\n\x1a\n";
/// The version of the format.
const VERSION: u32 = 3;
/// Bytes before the header.
const START: u64 = 12;
/// Bytes of the hash.
const HASH: u64 = 32;

/// What is known of all ranks together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) identity: Identity,
    /// Actions of all ranks.
    pub(super) actions: u64,
    /// Wall-clock time of replaying them \[s\].
    pub(super) replayed_s: f64,
    /// What the next looks cost.
    pub(super) looks: (u64, u64),
}

/// Writes a checkpoint and returns its size \[B\]. The file that was there before stays until this one is complete and on its disk.
pub(super) fn write(
    path: &Path,
    header: &Header,
    states: impl Iterator<Item = RankState>,
) -> Result<u64, CheckpointError> {
    let draft = draft(path);
    write_draft(&draft, header, states)
        .and_then(|bytes| {
            std::fs::rename(&draft, path)?;
            // The directory has the new name; where it cannot be opened the name is still right.
            path.parent()
                .map_or(Ok(()), |directory| File::open(directory).and_then(|file| file.sync_all()))?;
            Ok(bytes)
        })
        .map_err(|error| CheckpointError::io(path, error))
}

fn write_draft(draft: &Path, header: &Header, states: impl Iterator<Item = RankState>) -> io::Result<u64> {
    let mut writer =
        HashedWriter { file: BufWriter::new(File::create(draft)?), hasher: blake3::Hasher::new(), bytes: 0 };
    writer.write(&MAGIC)?;
    writer.write(&VERSION.to_le_bytes())?;
    writer.frame(header)?;
    for state in states {
        writer.frame(&state)?;
    }
    let HashedWriter { mut file, hasher, bytes } = writer;
    file.write_all(hasher.finalize().as_bytes())?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(bytes + HASH)
}

struct HashedWriter {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl HashedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn frame(&mut self, value: &impl Serialize) -> io::Result<()> {
        let bytes = postcard::to_stdvec(value).map_err(io::Error::other)?;
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.write(&length.to_le_bytes())?;
        self.write(&bytes)
    }
}

/// A checkpoint whose hash is right and that is of this run.
#[derive(Debug)]
pub(super) struct Opened {
    path: PathBuf,
    file: BufReader<File>,
    /// Bytes of states that are not read yet.
    left: u64,
    header: Header,
}

impl Opened {
    /// Opens a checkpoint of a run.
    pub(super) fn new(path: &Path, identity: &Identity) -> Result<Self, CheckpointError> {
        let io = |error| CheckpointError::io(path, error);
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let length = file.get_ref().metadata().map_err(io)?.len();
        check_start(path, &mut file)?;
        let Some(left) = length.checked_sub(START + HASH) else {
            return Err(damaged(path, "it ends before its header"));
        };
        check_hash(path, &mut file, START + left)?;
        file.seek(SeekFrom::Start(START)).map_err(io)?;
        let mut frames = Frames { path, file: &mut file, left };
        let header: Header = frames.next()?;
        let left = frames.left;
        match identity.difference(&header.identity) {
            None => Ok(Self { path: path.to_owned(), file, left, header }),
            Some(Difference { part, found, expected }) => {
                Err(CheckpointError::Other { path: path.to_owned(), part, found, expected })
            }
        }
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the processes of all ranks, in their order.
    pub(super) fn processes<'t, M>(
        mut self,
        world: &'t World<'t, M>,
        ranks: u32,
        locate: impl Fn(Box<ReplayError<RouteError>>) -> RunError,
    ) -> Result<Vec<RankProcess<'t, M>>, RunError>
    where
        M: Machine<Order = std::convert::Infallible, Error = RouteError>,
    {
        let mut frames = Frames { path: &self.path, file: &mut self.file, left: self.left };
        let mut processes = Vec::with_capacity(ranks as usize);
        for rank in (0..ranks).map(Rank::new) {
            let process = world.process_in(rank, frames.next()?).map_err(|error| match error {
                RestoreError::Replay(error) => locate(error),
                RestoreError::Foreign { rank, actions } => {
                    CheckpointError::Foreign { path: self.path.clone(), rank, actions }.into()
                }
            })?;
            processes.push(process);
        }
        match frames.left {
            0 => Ok(processes),
            _ => Err(damaged(&self.path, "it has more states than the run has ranks").into()),
        }
    }
}

fn damaged(path: &Path, what: &'static str) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what }
}

fn check_start(path: &Path, file: &mut impl Read) -> Result<(), CheckpointError> {
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start).map_err(|error| CheckpointError::io(path, error))?;
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

/// Compares the hash of so many bytes with that behind them.
fn check_hash(path: &Path, file: &mut BufReader<File>, bytes: u64) -> Result<(), CheckpointError> {
    let io = |error| CheckpointError::io(path, error);
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.by_ref().take(bytes)).map_err(io)?;
    let mut expected = [0; HASH as usize];
    file.read_exact(&mut expected).map_err(io)?;
    // In constant time, which does no harm.
    if hasher.finalize() == blake3::Hash::from_bytes(expected) {
        Ok(())
    } else {
        Err(damaged(path, "its hash is wrong"))
    }
}

/// Reads what was written with its length.
struct Frames<'f> {
    path: &'f Path,
    file: &'f mut BufReader<File>,
    left: u64,
}

impl Frames<'_> {
    fn next<T: for<'b> Deserialize<'b>>(&mut self) -> Result<T, CheckpointError> {
        let mut length = [0; 4];
        self.read(&mut length)?;
        let length = u32::from_le_bytes(length);
        if u64::from(length) > self.left {
            return Err(damaged(self.path, "a state goes beyond its end"));
        }
        let mut bytes = vec![0; length as usize];
        self.read(&mut bytes)?;
        match postcard::take_from_bytes(&bytes) {
            Ok((value, [])) => Ok(value),
            _ => Err(damaged(self.path, "a state is none")),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| damaged(self.path, "it has fewer states than the run has ranks"))?;
        self.file.read_exact(bytes).map_err(|error| CheckpointError::io(self.path, error))
    }
}
