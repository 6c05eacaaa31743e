//! Programs that are graphs: the operations of a rank, ordered by dependencies alone.

use pdes_core::{Bytes, Rank};

/// An operation of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraphOperation {
    /// A computation.
    Compute {
        /// Number of floating-point operations.
        flops: f64,
    },
    /// A message to another rank.
    Send(GraphMessage),
    /// A message from another rank.
    Receive(GraphMessage),
    /// The first message, in the order of time, that a rank with receives from any source or with any tag gets from this source
    /// with this tag.
    ReceiveFirst(GraphFilter),
}

/// A message of a graph, as one side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphMessage {
    /// The other side.
    pub peer: Rank,
    /// Tag.
    pub tag: u32,
    /// Number among the messages of this sender, receiver and tag, by which a send and a receive match; `None` where the receives of
    /// the receiver are [`GraphOperation::ReceiveFirst`].
    pub number: Option<u32>,
    /// Size of the message, or of the buffer.
    pub bytes: Bytes,
}

/// Messages that a receive of a graph accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphFilter {
    /// Source; `None` for any.
    pub source: Option<Rank>,
    /// Tag; `None` for any.
    pub tag: Option<u32>,
    /// Size of the buffer.
    pub bytes: Bytes,
}

/// A dependency on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// Index of the operation that waits.
    pub operation: u32,
    /// True if it waits for the start only, not for the end.
    pub after_start: bool,
}

/// The program of a rank as a graph: an operation starts when those on which it depends have started, or ended.
///
/// Operations have the numbers from 0 in the order of their definition, which has no other meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationGraph {
    operations: Box<[GraphOperation]>,
    /// First edge of each operation, and the end of the last one.
    first_edge: Box<[u32]>,
    edges: Box<[Dependent]>,
}

impl OperationGraph {
    /// Creates a graph of operations, each with its dependents. A cycle of dependencies shows as a deadlock.
    ///
    /// # Panics
    /// Panics if a dependent is no operation, or if there are 2^32 dependencies or more.
    pub fn new(operations: impl IntoIterator<Item = (GraphOperation, Vec<Dependent>)>) -> Self {
        let (mut all, mut first_edge, mut edges) = (Vec::new(), vec![0], Vec::new());
        for (operation, dependents) in operations {
            all.push(operation);
            edges.extend(dependents);
            first_edge.push(u32::try_from(edges.len()).expect("a rank has fewer than 2^32 dependencies"));
        }
        let is_known = |edge: &Dependent| (edge.operation as usize) < all.len();
        assert!(edges.iter().all(is_known), "dependents are operations of the graph");
        Self { operations: all.into(), first_edge: first_edge.into(), edges: edges.into() }
    }

    /// Returns the operations.
    pub fn operations(&self) -> &[GraphOperation] {
        &self.operations
    }

    /// Returns whether messages to the rank are matched in the order of time.
    pub(crate) fn has_timing_dependent_matching(&self) -> bool {
        self.operations.iter().any(|operation| matches!(operation, GraphOperation::ReceiveFirst(_)))
    }

    /// Returns the dependents of an operation.
    ///
    /// # Panics
    /// Panics if there is no such operation.
    #[inline]
    pub fn dependents(&self, operation: u32) -> &[Dependent] {
        let [first, end] = [0, 1].map(|next| self.first_edge[operation as usize + next] as usize);
        &self.edges[first..end]
    }

    /// Returns the number of dependencies of each operation.
    pub fn dependency_counts(&self) -> Box<[u32]> {
        let mut counts = vec![0; self.operations.len()];
        self.edges.iter().for_each(|edge| counts[edge.operation as usize] += 1);
        counts.into()
    }
}
