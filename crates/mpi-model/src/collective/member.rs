//! Members of a collective operation: ranks of the communicator, alone or as leaders and groups of a node.

use pdes_core::{Bytes, Rank};
use trace_mmap::Datatype;

use super::{Layout, Schedule, Selection, Step, Steps};

/// One of the ranks `0..size` of the communicator on which a collective operation runs.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Rank of this member in the communicator.
    pub rank: u32,
    /// Number of members.
    pub size: u32,
    /// Placement of the members on nodes.
    pub layout: &'a Layout,
    /// Algorithms that the communicator uses.
    pub selection: &'a Selection,
    /// Set within a two-level algorithm; MPICH's selector does not divide it into levels once more.
    pub(super) within_levels: bool,
    /// Switches carry out operations of the communicator.
    pub(super) has_switches: bool,
}

impl<'a> Member<'a> {
    /// Returns member `rank` of a communicator.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn new(rank: u32, layout: &'a Layout, selection: &'a Selection) -> Self {
        let size = layout.size();
        assert!(rank < size, "rank {rank} is not among {size} ranks");
        Self { rank, size, layout, selection, within_levels: false, has_switches: false }
    }

    /// Returns the member, for whose communicator switches carry out operations, or do not.
    pub(crate) fn with_switches(self, has_switches: bool) -> Self {
        Self { has_switches, ..self }
    }

    fn within_levels(self) -> Self {
        Self { within_levels: true, ..self }
    }

    /// Returns all other members in rank order.
    pub(super) fn others(self) -> impl Iterator<Item = u32> + Send {
        (0..self.size).filter(move |&other| other != self.rank)
    }

    /// Returns the member `distance` ranks after this one on the ring.
    pub(super) fn after(self, distance: u32) -> u32 {
        ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.size)) as u32
    }

    /// Returns the member `distance <= size` ranks before this one on the ring.
    pub(super) fn before(self, distance: u32) -> u32 {
        self.after(self.size - distance)
    }

    /// Returns the index of this member's node.
    pub(super) fn node(self) -> u32 {
        self.layout.node_of(self.rank)
    }

    /// Returns whether this member is the leader (lowest rank) of its node.
    pub(super) fn is_leader(self) -> bool {
        self.layout.local_rank(self.rank) == 0
    }

    /// Returns the schedule of a part of the operation among the leaders of all nodes, where node `n` is member `n`; it is
    /// empty for other members.
    pub(super) fn among_leaders(self, part: impl FnOnce(Member<'a>) -> Schedule<'a>) -> Schedule<'a> {
        if !self.is_leader() {
            return empty_schedule();
        }
        let layout = self.layout;
        let leader = Member::new(self.node(), layout.leader_layout(), self.selection).within_levels();
        Box::new(part(leader).renumbered(move |node| layout.leader(node)))
    }

    /// Returns the schedule of a part of the operation among the members of this node, numbered by local rank.
    pub(super) fn on_node(self, part: impl FnOnce(Member<'a>) -> Schedule<'a>) -> Schedule<'a> {
        let (layout, node) = (self.layout, self.node());
        let local = Member::new(layout.local_rank(self.rank), layout.node_layout(node), self.selection)
            .within_levels();
        Box::new(part(local).renumbered(move |place| layout.member(node, place)))
    }
}

/// Returns a schedule without steps.
pub(super) fn empty_schedule<'a>() -> Schedule<'a> {
    Box::new(std::iter::empty())
}

impl Step {
    /// Returns the step with each peer replaced by `number(peer)`.
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
            Self::SendToken { to, bytes } => Self::SendToken { to: anew(to), bytes },
            Self::RecvToken { from } => Self::RecvToken { from: anew(from) },
            Self::UncontendedTransfers { peer, bytes, times } => {
                Self::UncontendedTransfers { peer: anew(peer), bytes, times }
            }
            Self::SendAnnouncement { to } => Self::SendAnnouncement { to: anew(to) },
            Self::PollAnnouncement { from } => Self::PollAnnouncement { from: anew(from) },
            Self::RecvAnnouncement { from } => Self::RecvAnnouncement { from: anew(from) },
            Self::DiscardAnnouncement { from } => Self::DiscardAnnouncement { from: anew(from) },
            Self::SendOutOfBand { to, numbers } => Self::SendOutOfBand { to: anew(to), numbers },
            Self::RecvOutOfBand { from } => Self::RecvOutOfBand { from: anew(from) },
            Self::Put { to, bytes } => Self::Put { to: anew(to), bytes },
            Self::ExpectPut { from, bytes } => Self::ExpectPut { from: anew(from), bytes },
            Self::Switches { operation, bytes } => Self::Switches { operation: operation.map(anew), bytes },
            Self::Wait { .. }
            | Self::WaitAll
            | Self::WaitEach
            | Self::Complete { .. }
            | Self::OneSided { .. }
            | Self::Access { .. }
            | Self::Unmeasured { .. }
            | Self::Compute { .. }
            | Self::Sleep { .. } => self,
        }
    }
}

/// A number of elements of one datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) count: u64,
    /// Size of one element; 0 for empty datatypes.
    pub(super) element_size: Bytes,
}

impl Elements {
    /// No elements.
    pub(super) const NONE: Self = Self { count: 0, element_size: Bytes::ZERO };

    pub(super) fn new(count: u64, datatype: Datatype) -> Self {
        Self { count, element_size: datatype.size() }
    }

    /// Returns the size of all elements.
    pub(super) fn bytes(self) -> Bytes {
        self.size_of(self.count)
    }

    /// Returns the size of `count` such elements; the trace's reader has checked that it is below 2^48 bytes, and so are
    /// sums of blocks.
    pub(super) fn size_of(self, count: u64) -> Bytes {
        self.element_size.checked_mul(count).expect("the trace's reader refuses sizes above 2^48 bytes")
    }

    /// Returns the number of elements in a segment of this size; at least one, and all elements if they have no size.
    pub(super) fn per_segment(self, bytes: u64) -> u64 {
        bytes.checked_div(self.element_size.get()).unwrap_or(self.count).max(1)
    }

    /// Returns Open MPI's number of elements in a segment: as [`per_segment`](Self::per_segment), but rounded to the
    /// nearest, and all elements if they are not larger than a segment.
    pub(super) fn per_open_mpi_segment(self, bytes: u64) -> u64 {
        let unit = self.element_size.get();
        if bytes < unit || bytes >= self.bytes().get() {
            return self.count;
        }
        bytes / unit + u64::from(bytes % unit > unit / 2)
    }

    /// Returns another number of such elements.
    pub(super) fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }
}

/// Returns the size of `count` elements; the trace's reader has checked that it is below 2^48 bytes.
pub(super) fn size_of(count: u64, datatype: Datatype) -> Bytes {
    Elements::new(count, datatype).bytes()
}
