//! Agreement of the members of a collective operation on the call, its root, its operator, and its amount of data.

use pdes_core::Rank;

use crate::describe::Places;
use crate::layout::{CollectiveKind, Operation};

/// Names of the predefined operators, by their numbers; that after the last one is an operator of the program.
const OPERATORS: [&str; 16] = [
    "no operator",
    "MPI_MAX",
    "MPI_MIN",
    "MPI_SUM",
    "MPI_PROD",
    "MPI_LAND",
    "MPI_BAND",
    "MPI_LOR",
    "MPI_BOR",
    "MPI_LXOR",
    "MPI_BXOR",
    "MPI_MAXLOC",
    "MPI_MINLOC",
    "MPI_REPLACE",
    "MPI_NO_OP",
    "an operator of the program",
];

/// The part of a member.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    pub(crate) rank: Rank,
    pub(crate) operation: Operation,
    kind: Option<CollectiveKind>,
    root: Option<i32>,
    /// Data of each member, or for each \[B\]; `None` where it need not be equal.
    bytes: Option<u64>,
}

impl Agreement {
    /// Returns the part of a rank, which is the number `member` of the communicator.
    pub(crate) fn of(operation: &Operation, (rank, member): (Rank, u32)) -> Self {
        use CollectiveKind::{
            Allgather, Allreduce, Alltoall, Bcast, Exscan, Gather, Gatherv, Reduce, Scan, Scatter, Scatterv,
        };
        let &Operation { flags, peer, count, recv_count, bytes, source_bytes, .. } = operation;
        let kind = CollectiveKind::from_number(flags);
        let root = kind.filter(|kind| matches!(kind, Bcast | Reduce | Gather | Gatherv | Scatter | Scatterv));
        let root = root.map(|_| peer);
        let is_root = u32::try_from(peer) == Ok(member);
        let (sent, received) = (count.saturating_mul(bytes), recv_count.saturating_mul(source_bytes));
        let bytes = match kind {
            Some(Bcast | Reduce | Allreduce | Scan | Exscan | Allgather | Alltoall) => Some(sent),
            Some(Gather) => Some(if is_root { received } else { sent }),
            Some(Scatter) => Some(if is_root { sent } else { received }),
            _ => None,
        };
        Self { rank, operation: *operation, kind, root, bytes }
    }

    fn operator(&self) -> &'static str {
        let number = usize::try_from(self.operation.tag).unwrap_or_default();
        OPERATORS[number.min(OPERATORS.len() - 1)]
    }

    /// Checks that another member agrees with the first one.
    ///
    /// # Errors
    /// Returns how they differ.
    pub(crate) fn check(&self, other: &Self, places: &Places) -> Result<(), String> {
        let Self { rank, operation, .. } = other;
        let (difference, expected) = match () {
            () if (self.operation.call, self.kind) != (operation.call, other.kind) => {
                (String::new(), self.operation.name())
            }
            () if self.root != other.root => {
                let root = |part: &Self| format!("root {}", part.root.unwrap_or_default());
                (format!(" with {}", root(other)), root(self))
            }
            () if self.bytes != other.bytes => {
                let bytes = |part: &Self| format!("{} B for each member", part.bytes.unwrap_or_default());
                (format!(" with {}", bytes(other)), bytes(self))
            }
            () if self.operation.tag != operation.tag => {
                (format!(" with {}", other.operator()), self.operator().to_owned())
            }
            () => return Ok(()),
        };
        let [place, of_first] = [operation, &self.operation].map(|part| places.called_from(part.site));
        Err(format!(
            "rank {rank} calls {}{difference}, and rank {} has {expected} in the same collective operation{of_first}, and by rank \
             {rank}{place}: all members must call the same, with the same root, operator and amount of data",
            operation.name(),
            self.rank
        ))
    }
}
