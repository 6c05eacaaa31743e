//! Chakra execution traces (`MLCommons`): a graph of computations and communications for each rank.
//!
//! The files of a trace are `PREFIX.RANK.et`, in protobuf, or `PREFIX.RANK.json`. Data dependencies order the nodes, as in Chakra's own
//! feeder; control dependencies name parents in a call stack in traces of `PyTorch`, and are counted only.

mod error;
mod lint;
mod message;
mod order;
mod read;
mod schedule;

pub use error::ChakraError;
pub use lint::CHAKRA_LINTS;
pub use schedule::{ChakraSchedule, Roofline, ScheduleOptions};

use std::path::Path;

use order::streams;
pub(crate) use order::{Stream, dependents};

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// No work: metadata, and accesses to remote memory, which have no model here.
    Nothing,
    /// A computation.
    Compute,
    /// A message to another rank.
    Send,
    /// A message from another rank.
    Receive,
    /// A collective operation.
    Collective,
}

/// A collective operation, by the numbers of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the operations have the usual names")]
pub enum CollectiveKind {
    AllReduce,
    Reduce,
    AllGather,
    Gather,
    Scatter,
    Broadcast,
    AllToAll,
    ReduceScatter,
    Barrier,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its number, unique on its rank.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Indices of the nodes that come before it, in ascending order.
    pub after: Vec<u32>,
    /// Number of control dependencies.
    pub control: u32,
    /// Recorded begin \[us\]; 0 where the recording has none.
    pub start: u64,
    /// Recorded duration \[us\].
    pub micros: u64,
    /// True if the processor of the host does it.
    pub is_cpu: bool,
    /// The operation, if it is collective and says which.
    pub collective: Option<CollectiveKind>,
    /// Size of a message or of a collective operation \[B\].
    pub bytes: u64,
    /// The other rank of a message.
    pub peer: u32,
    /// Tag of a message.
    pub tag: u32,
    /// Name of the process group, empty for all ranks.
    pub group: String,
    /// Computation \[flop\], and memory that it reads and writes \[B\].
    pub work: Option<(u64, u64)>,
}

/// The graphs of all ranks.
#[derive(Clone, Debug)]
pub struct ExecutionTrace {
    /// The nodes of each rank, by ascending id.
    pub ranks: Vec<Vec<Node>>,
}

impl ExecutionTrace {
    /// Returns whether a file has the name and the first bytes of an execution trace.
    pub fn knows(path: &Path) -> bool {
        read::knows(path)
    }

    /// Reads the files of all ranks, of which one is named.
    ///
    /// # Errors
    /// Fails if a file is missing, cannot be read or decoded, if ids or dependencies are wrong, or if these form a cycle.
    pub fn read(path: &Path) -> Result<Self, ChakraError> {
        read::read(path)
    }
}
