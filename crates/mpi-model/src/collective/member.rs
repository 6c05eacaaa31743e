//! A member of a collective operation.

use pdes_core::{Bytes, Rank};
use trace_mmap::Datatype;

/// One of the ranks `0..size` that take part in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The number of this member.
    pub rank: u32,
    /// The number of members.
    pub size: u32,
}

impl Member {
    /// Makes member `rank` of `size`.
    ///
    /// # Panics
    /// Where there is no such member.
    pub fn new(rank: u32, size: u32) -> Self {
        assert!(rank < size, "rank {rank} is not among {size} ranks");
        Self { rank, size }
    }

    /// Returns whether this member is the root.
    pub(super) fn is(self, root: Rank) -> bool {
        self.rank == root.get()
    }

    /// All other members, in the order of their numbers.
    pub(super) fn others(self) -> impl Iterator<Item = u32> + Send {
        (0..self.size).filter(move |&other| other != self.rank)
    }

    /// The member `distance` places further round the ring.
    pub(super) fn after(self, distance: u32) -> u32 {
        ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.size)) as u32
    }

    /// The member `distance <= size` places back round the ring.
    pub(super) fn before(self, distance: u32) -> u32 {
        self.after(self.size - distance)
    }
}

/// The size of `count` elements; the trace's reader has checked that it is below 2^48.
pub(super) fn size_of(count: u64, datatype: Datatype) -> Bytes {
    datatype.size().checked_mul(count).expect("the trace's reader refuses sizes above 2^48 bytes")
}
