//! Errors of opening, reading and writing archives.

use std::io;
use std::path::PathBuf;

use pdes_core::Rank;

use crate::archive::{Damage, StructureError};
use crate::channel::Tag;
use crate::communicator::CommId;
use crate::error::TraceError;
use crate::link::{CommunicatorConflict, describe_shortage};

/// Error of opening or reading an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be opened, mapped or read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file is not an archive.
    #[error("{}: this is not a trace archive", file.display())]
    Magic {
        /// The file.
        file: PathBuf,
    },
    /// The file was written on a machine of the other byte order, or this machine is big-endian.
    #[error("{}: the byte order mark is {found:#010x}, expected {expected:#010x}", file.display())]
    ByteOrder {
        /// The file.
        file: PathBuf,
        /// Mark found.
        found: u32,
        /// Mark expected.
        expected: u32,
    },
    /// The format version is not supported.
    #[error(
        "{}: the archive has format version {found}, this program reads version {expected} only: convert the trace anew",
        file.display()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// Version found.
        found: u32,
        /// Version that is read.
        expected: u32,
    },
    /// The file is shorter or longer than it says.
    #[error("{}: the file has {found} bytes, but its header says {expected}: it was cut short or appended to", file.display())]
    Length {
        /// The file.
        file: PathBuf,
        /// Size found \[B\].
        found: u64,
        /// Size by the header \[B\].
        expected: u64,
    },
    /// The checksum of a part that is verified at every open does not match.
    #[error("{}: the checksum of the {section} does not match its bytes", file.display())]
    Checksum {
        /// The file.
        file: PathBuf,
        /// The part: the header or a table.
        section: &'static str,
    },
    /// An entry of a table is impossible.
    #[error("{}: entry {entry} of the {section}: the {field} is {found}, expected at most {limit}", file.display())]
    Entry {
        /// The file.
        file: PathBuf,
        /// The table.
        section: &'static str,
        /// Index of the entry, from 0.
        entry: u64,
        /// Name of the field.
        field: &'static str,
        /// Value found.
        found: u64,
        /// Largest value possible.
        limit: u64,
    },
    /// An entry of a table cannot be read.
    #[error("{}: entry {entry} of the {section} is malformed", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The table.
        section: &'static str,
        /// Index of the entry, from 0.
        entry: u64,
    },
    /// The data are damaged.
    #[error("{}: {damage}", file.display())]
    Data {
        /// The archive.
        file: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// The actions of a rank could not be read: results that used them are void.
    #[error("{}: rank {rank}: {damage}", file.display())]
    Damaged {
        /// The archive.
        file: PathBuf,
        /// The rank that was being read.
        rank: Rank,
        /// The damage.
        damage: Damage,
    },
    /// A number of messages or bytes of a trace in memory exceeds 64 bits.
    #[error("rank {rank}: a count of messages or bytes exceeds 64 bits")]
    TooMany {
        /// The rank.
        rank: Rank,
    },
    /// The archive has a number of ranks other than requested.
    #[error("{}: the archive has {found} ranks, but a run of {asked} was asked for", file.display())]
    Ranks {
        /// The file.
        file: PathBuf,
        /// Number of ranks requested.
        asked: u32,
        /// Number of ranks found.
        found: u32,
    },
    /// The file was written to after it was opened: results that used it are void.
    #[error("{}: the archive was changed while it was open", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
}

/// Error of writing an archive.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file cannot be created, written or renamed; nothing is left of it.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] TraceError),
    /// A structured program is wrong.
    #[error("rank {rank}: {kind}")]
    Structure {
        /// The rank.
        rank: Rank,
        /// The error in the program.
        kind: StructureError,
    },
    /// A rank is out of range or written twice.
    #[error("rank {rank} is written twice, or is not below the {ranks} ranks of the archive")]
    Rank {
        /// The rank.
        rank: Rank,
        /// Number of ranks of the archive.
        ranks: u32,
    },
    /// A rank receives more messages from a channel than are sent to it.
    #[error("rank {rank} {}", describe_shortage([*receives, *sends], *src, *tag, *communicator))]
    ReceiveWithoutSend {
        /// The receiver.
        rank: Rank,
        /// The source; `None` for all sources together, if some receive is from any source.
        src: Option<Rank>,
        /// The tag; `None` for any.
        tag: Option<Tag>,
        /// The communicator.
        communicator: CommId,
        /// Number of messages sent to the channel.
        sends: u64,
        /// Number of receives from the channel.
        receives: u64,
    },
    /// Ranks do not agree on a communicator.
    #[error(transparent)]
    Communicators(#[from] CommunicatorConflict),
    /// A number of actions, messages or bytes exceeds 64 bits.
    #[error("rank {rank}: a count of actions, messages or bytes exceeds 64 bits")]
    TooMany {
        /// The rank.
        rank: Rank,
    },
    /// The range of ranks to keep is empty or exceeds the trace.
    #[error("cannot keep ranks {first} to {end} (exclusive) of {ranks} ranks")]
    CutRanks {
        /// First rank to keep.
        first: u32,
        /// Rank after the last one to keep.
        end: u32,
        /// Number of ranks of the trace.
        ranks: u32,
    },
    /// A rank has calls that name requests, some of which would be removed.
    #[error(
        "rank {rank} has messages to or from removed ranks, and calls that name requests ({call}): cut between ranks without such messages, or keep all ranks"
    )]
    CutRequests {
        /// The rank, by its number in the input.
        rank: Rank,
        /// Name of the first such call.
        call: &'static str,
    },
    /// A rank accesses a window, of which some ranks may go.
    #[error(
        "rank {rank} calls {call}: the epochs of a window need all its ranks, so that ranks with windows cannot be cut off: keep all ranks"
    )]
    CutWindow {
        /// The rank, by its number in the input.
        rank: Rank,
        /// Name of the first such call.
        call: &'static str,
    },
    /// A probe from any source found a message that may be from a removed rank.
    #[error(
        "rank {rank}, action {action}: this probe from any source does not tell the source of the message that it found (source=), and messages from removed ranks go: cut between ranks without such messages, or keep all ranks"
    )]
    CutProbe {
        /// The rank, by its number in the input.
        rank: Rank,
        /// Index of the action.
        action: u64,
    },
    /// The counts of a removed root are not the same in equal calls of the rank that takes its place, or not known.
    #[error(
        "rank {rank}, action {action}: this {call} has its counts at its root, rank {root}, which goes; the root has other counts in equal calls of this rank, or another call: keep rank {root}"
    )]
    CutRoot {
        /// The rank that takes the place of the root, by its number in the input.
        rank: Rank,
        /// Index of the action.
        action: u64,
        /// The root.
        root: Rank,
        /// Name of the operation.
        call: &'static str,
    },
    /// The amounts of a rank that is cut cannot be read.
    #[error("rank {rank} cannot be read: {damage}")]
    Damaged {
        /// The rank, by its number in the input.
        rank: Rank,
        /// The damage.
        damage: Damage,
    },
    /// A rank has no loop whose iterations could be cut.
    #[error("rank {rank} has no loop: its iterations cannot be cut")]
    CutNoLoop {
        /// The rank.
        rank: Rank,
    },
    /// The main loop of a rank is shorter than the part to remove.
    #[error(
        "the main loop of rank {rank} has {iterations} iterations, of which {removed} are to be removed, as from the longest one"
    )]
    CutShortLoop {
        /// The rank.
        rank: Rank,
        /// Number of iterations of its main loop.
        iterations: u64,
        /// Number of iterations to remove.
        removed: u64,
    },
    /// The main loops of the ranks are not the same loop of the program.
    #[error(
        "the main loop of rank {rank}, with {iterations} iterations, is not that of the other ranks: {removed} iterations of each differ in their messages or collective operations"
    )]
    CutOtherLoop {
        /// The rank.
        rank: Rank,
        /// Number of iterations of its main loop.
        iterations: u64,
        /// Number of iterations to remove.
        removed: u64,
    },
    /// There are more shards than ranks, or none.
    #[error("{shards} shards are asked for, expected 1 to {limit}")]
    Shards {
        /// Number of shards asked for.
        shards: u32,
        /// Largest number possible.
        limit: u32,
    },
}
