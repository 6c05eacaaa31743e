//! Agreement of the members of a collective operation on the call, its root, and its amount of data.

use pdes_core::Rank;

use crate::describe;
use crate::layout::{CollectiveKind, NONE, Operation};
use crate::memory::Memory;

/// The part of a member.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    rank: Rank,
    call: String,
    kind: Option<CollectiveKind>,
    root: Option<i32>,
    /// Data of each member, or for each \[B\]; `None` where it need not be equal.
    bytes: Option<u64>,
    /// Return address of the call.
    site: u64,
}

impl Agreement {
    /// Returns the part of a rank, which is the number `member` of the communicator.
    pub(crate) fn of(operation: &Operation, (rank, member): (Rank, u32), memory: &Memory) -> Self {
        use CollectiveKind::{
            Allgather, Allreduce, Alltoall, Bcast, Exscan, Gather, Gatherv, Reduce, Scan, Scatter, Scatterv,
        };
        let &Operation { flags, peer, count, recv_count, bytes, source_bytes, request, .. } = operation;
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
        let (name, site) = memory.call(rank.get());
        // What a rank has posted, it may have called before its last call.
        let (call, site) = match request {
            NONE => (name, site),
            _ => (format!("a nonblocking {kind:?}"), 0),
        };
        Self { rank, call, kind, root, bytes, site }
    }

    /// Checks that another member agrees with the first one.
    ///
    /// # Errors
    /// Returns how they differ.
    pub(crate) fn check(&self, other: &Self, memory: &Memory) -> Result<(), String> {
        let Self { rank, call, .. } = other;
        let (difference, expected) = match () {
            () if (&self.call, self.kind) != (call, other.kind) => (String::new(), self.call.clone()),
            () if self.root != other.root => {
                let root = |part: &Self| format!("root {}", part.root.unwrap_or_default());
                (format!(" with {}", root(other)), root(self))
            }
            () if self.bytes != other.bytes => {
                let bytes = |part: &Self| format!("{} B for each member", part.bytes.unwrap_or_default());
                (format!(" with {}", bytes(other)), bytes(self))
            }
            () => return Ok(()),
        };
        // The first member may have ended since; all ranks are forked by one process, with the program at the same place.
        let place = describe::place(memory.process(rank.get()), self.site);
        let place = place.map_or_else(String::new, |place| format!(", called from {place}"));
        Err(format!(
            "rank {rank} calls {call}{difference}, and rank {} has {expected} in the same collective operation{place}: all members must call \
             the same, with the same root and amount of data",
            self.rank
        ))
    }
}
