//! A member of a collective operation, and groups of members that do a part of it.

use pdes_core::{Bytes, Rank};
use trace_mmap::Datatype;

use super::{Layout, Schedule, Selection, Step, Steps};

/// One of the ranks `0..size` of the communicator on which a collective operation runs.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The number of this member.
    pub rank: u32,
    /// The number of members.
    pub size: u32,
    /// Who shares a node with whom.
    pub layout: &'a Layout,
    /// Which algorithms the communicator uses.
    pub selection: &'a Selection,
    /// Whether this is a part of a two-level algorithm, which MPICH does not divide into levels once more.
    pub(super) within_levels: bool,
}

impl<'a> Member<'a> {
    /// Makes member `rank` of a communicator.
    ///
    /// # Panics
    /// Where there is no such member.
    pub fn new(rank: u32, layout: &'a Layout, selection: &'a Selection) -> Self {
        let size = layout.size();
        assert!(rank < size, "rank {rank} is not among {size} ranks");
        Self { rank, size, layout, selection, within_levels: false }
    }

    fn within_levels(self) -> Self {
        Self { within_levels: true, ..self }
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

    /// The number of the own node.
    pub(super) fn node(self) -> u32 {
        self.layout.node_of(self.rank)
    }

    /// Whether this member is the lowest on its node.
    pub(super) fn leads(self) -> bool {
        self.layout.place_of(self.rank) == 0
    }

    /// Runs a part of the operation among the leaders of all nodes, where node `n` is member `n`; nothing happens on the
    /// others.
    pub(super) fn among_leaders(self, part: impl FnOnce(Member<'a>) -> Schedule<'a>) -> Schedule<'a> {
        if !self.leads() {
            return nothing();
        }
        let layout = self.layout;
        let leader = Member::new(self.node(), layout.leaders(), self.selection).within_levels();
        Box::new(part(leader).renumbered(move |node| layout.leader(node)))
    }

    /// Runs a part of the operation among the members of the own node, each of which has its place as number.
    pub(super) fn on_node(self, part: impl FnOnce(Member<'a>) -> Schedule<'a>) -> Schedule<'a> {
        let (layout, node) = (self.layout, self.node());
        let local =
            Member::new(layout.place_of(self.rank), layout.local(node), self.selection).within_levels();
        Box::new(part(local).renumbered(move |place| layout.member(node, place)))
    }
}

/// The schedule of a member that has nothing to do.
pub(super) fn nothing<'a>() -> Schedule<'a> {
    Box::new(std::iter::empty())
}

impl Step {
    /// Returns the step with its peers numbered anew.
    pub(super) fn renumber(self, number: impl Fn(u32) -> u32) -> Self {
        let anew = |rank: Rank| Rank::new(number(rank.get()));
        match self {
            Self::Send { to, bytes } => Self::Send { to: anew(to), bytes },
            Self::Isend { to, bytes } => Self::Isend { to: anew(to), bytes },
            Self::Recv { from, bytes } => Self::Recv { from: anew(from), bytes },
            Self::Irecv { from, bytes } => Self::Irecv { from: anew(from), bytes },
            Self::SendRecv { to, send_bytes, from, recv_bytes } => {
                Self::SendRecv { to: anew(to), send_bytes, from: anew(from), recv_bytes }
            }
            Self::Tell { to, bytes } => Self::Tell { to: anew(to), bytes },
            Self::Hear { from } => Self::Hear { from: anew(from) },
            Self::Pass { peer, bytes, times } => Self::Pass { peer: anew(peer), bytes, times },
            Self::Announce { to } => Self::Announce { to: anew(to) },
            Self::Look { from } => Self::Look { from: anew(from) },
            Self::Greet { from } => Self::Greet { from: anew(from) },
            Self::Ignore { from } => Self::Ignore { from: anew(from) },
            Self::Assign { to, numbers } => Self::Assign { to: anew(to), numbers },
            Self::Learn { from } => Self::Learn { from: anew(from) },
            Self::Put { to, bytes } => Self::Put { to: anew(to), bytes },
            Self::Accept { from, bytes } => Self::Accept { from: anew(from), bytes },
            Self::Wait { .. }
            | Self::WaitAll
            | Self::WaitEach
            | Self::Compute { .. }
            | Self::Sleep { .. } => self,
        }
    }
}

/// A number of elements of one datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) count: u64,
    /// The size of one element; 0 for the empty datatypes.
    pub(super) unit: Bytes,
}

impl Elements {
    pub(super) fn new(count: u64, datatype: Datatype) -> Self {
        Self { count, unit: datatype.size() }
    }

    /// The size of all elements.
    pub(super) fn bytes(self) -> Bytes {
        self.size_of(self.count)
    }

    /// The size of `count` such elements; the trace's reader has checked that it is below 2^48, and so are sums of
    /// blocks.
    pub(super) fn size_of(self, count: u64) -> Bytes {
        self.unit.checked_mul(count).expect("the trace's reader refuses sizes above 2^48 bytes")
    }

    /// How many elements fill a segment of some bytes; at least one, and all of those that have no size.
    pub(super) fn per_segment(self, bytes: u64) -> u64 {
        bytes.checked_div(self.unit.get()).unwrap_or(self.count).max(1)
    }

    /// The segments of Open MPI: as [`per_segment`](Self::per_segment), but rounded to the nearest, and all elements
    /// where they are not larger than a segment.
    pub(super) fn per_open_mpi_segment(self, bytes: u64) -> u64 {
        let unit = self.unit.get();
        if bytes < unit || bytes >= self.bytes().get() {
            return self.count;
        }
        bytes / unit + u64::from(bytes % unit > unit / 2)
    }

    /// Another number of such elements.
    pub(super) fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }
}

/// The size of `count` elements; the trace's reader has checked that it is below 2^48.
pub(super) fn size_of(count: u64, datatype: Datatype) -> Bytes {
    Elements::new(count, datatype).bytes()
}
