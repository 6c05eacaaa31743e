//! Errors in execution traces.

use std::io;
use std::path::PathBuf;

/// An execution trace cannot be read, or has no schedule.
#[derive(Debug, thiserror::Error)]
pub enum ChakraError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The name of a file does not end with a rank.
    #[error("{}: the name is not PREFIX.RANK.et or PREFIX.RANK.json", path.display())]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The file of a rank is missing.
    #[error("{}: the trace has {files} files, and none of rank {rank}", path.display())]
    Missing {
        /// The file that was named.
        path: PathBuf,
        /// Number of files.
        files: usize,
        /// The rank.
        rank: u32,
    },
    /// A message of protobuf is damaged.
    #[error("{}: the message at byte {offset} is damaged: {source}", path.display())]
    Protobuf {
        /// The file.
        path: PathBuf,
        /// Place of the message \[B\].
        offset: usize,
        /// The reason.
        source: prost::DecodeError,
    },
    /// The file is no JSON, or not that of an execution trace.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The reason, with its line.
        source: serde_json::Error,
    },
    /// A node is wrong.
    #[error("{}: node {id} {what}", path.display())]
    Node {
        /// The file.
        path: PathBuf,
        /// The id of the node.
        id: u64,
        /// What is wrong.
        what: String,
    },
    /// The ranks of a group do not have the same collective operations in the same order.
    #[error(
        "collective operation {number} of the group {group:?}: rank {rank} has {found}, rank {first} has {expected}"
    )]
    Collective {
        /// Number of the operation in the order of the group.
        number: usize,
        /// The group.
        group: String,
        /// The rank that differs.
        rank: usize,
        /// What it has.
        found: String,
        /// The first rank of the group.
        first: usize,
        /// What that has.
        expected: String,
    },
    /// An algorithm does not serve an operation.
    #[error(transparent)]
    Algorithm(#[from] crate::collective::AlgorithmError),
    /// The schedule is not valid.
    #[error(transparent)]
    Schedule(#[from] goal::ScheduleError),
}
