//! Classification of the actions of a trace by [`ActionKind`].

use pdes_core::Bytes;
use trace_mmap::{Action, Call, CollectiveId, CommIdx, FileCall, RankTrace};

use crate::statistics::ActionKind;

impl ActionKind {
    /// Returns the kind to which a replay attributes an action of a rank.
    ///
    /// ```
    /// use mpi_model::ActionKind;
    /// use trace_mmap::Trace;
    /// let trace = trace_tools::from_text("0 init\n0 irecv -555 1 8 req=3\n0 send 0 1 8\n0 ssend -666 0 8\n0 iallreduce 8 0 req=4\n0 wait req=4\n")?;
    /// let rank = trace.rank(pdes_core::Rank::new(0));
    /// let names: Vec<_> = rank.cursor().map(|action| ActionKind::of(action, rank).name()).collect();
    /// assert_eq!(names, ["marker", "irecv", "send", "send", "icollective", "wait"]);
    /// # Ok::<(), trace_mmap::TraceError>(())
    /// ```
    ///
    /// # Panics
    /// The action is not of this rank.
    pub fn of(action: Action, rank: &RankTrace) -> Self {
        match action {
            Action::Compute { .. } => Self::Compute,
            Action::Sleep { .. } => Self::Sleep,
            Action::Send { .. } | Action::ProcNull { slot: None } => Self::Send,
            Action::Isend { .. } | Action::ProcNull { slot: Some(_) } => Self::Isend,
            Action::Recv { .. } => Self::Recv,
            Action::Irecv { .. } => Self::Irecv,
            Action::SendRecv(_) => Self::SendRecv,
            Action::Wait { .. } => Self::Wait,
            Action::Test { .. } => Self::Test,
            Action::WaitAll => Self::Waitall,
            Action::Collective(id) => Self::from(rank.collective(id)),
            Action::Init | Action::Communicator | Action::Location(_) => Self::Marker,
            Action::Finalize => Self::Finalize,
            Action::Call(id) => Self::of_call(rank.call(id), rank),
        }
    }

    /// Returns whether actions of this kind are calls that may have a cost of their own
    /// ([`Parameters::call_overheads`](crate::Parameters::call_overheads)): neither computations nor actions that take no time.
    pub fn has_call_overhead(self) -> bool {
        !matches!(self, Self::Compute | Self::Sleep | Self::Marker | Self::Finalize)
    }

    /// Returns whether a call of this kind only completes what others have started.
    pub(crate) fn is_completion(self) -> bool {
        matches!(self, Self::Recv | Self::Wait | Self::Waitall | Self::Waitany | Self::Waitsome | Self::Probe)
    }

    /// Returns the kind and the size on which the cost of an action as a call depends
    /// ([`Parameters::call_overheads`](crate::Parameters::call_overheads)); `None` where it has none.
    ///
    /// The size is that of the message that the call sends, of the buffer of `irecv`, or the
    /// [payload](trace_mmap::Collective::payload) of a collective operation. It is zero for all others, and for calls that complete
    /// messages: the size of a received message counts in [`Parameters::receive`](crate::Parameters::receive). Operations of one rank
    /// alone, which libraries end at once, have no cost.
    ///
    /// # Panics
    /// The action is not of this rank.
    pub fn charged(action: Action, rank: &RankTrace) -> Option<(Self, Bytes)> {
        let kind = Self::of(action, rank);
        let is_alone = match action {
            Action::Collective(_) => rank.communicators()[CommIdx::WORLD.index()].group.len() == 1,
            Action::Call(id) => match rank.call(id) {
                Call::Collective { communicator, .. } | Call::NeighborAlltoall { communicator, .. } => {
                    rank.communicators()[communicator.index()].group.len() == 1
                }
                _ => false,
            },
            _ => false,
        };
        (kind.has_call_overhead() && !is_alone).then(|| (kind, Self::charged_size(action, rank)))
    }

    fn charged_size(action: Action, rank: &RankTrace) -> Bytes {
        let operation = |id: CollectiveId| Bytes::new(rank.collective(id).payload().unwrap_or_default());
        let all =
            |neighbors: &[(u32, Bytes)]| neighbors.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum + *bytes);
        match action {
            Action::Send { bytes, .. } | Action::Isend { bytes, .. } | Action::Irecv { bytes, .. } => bytes,
            Action::SendRecv(id) => rank.send_recv(id).send_bytes,
            Action::Collective(id) => operation(id),
            Action::Call(id) => match rank.call(id) {
                Call::Send { bytes, .. }
                | Call::Isend { bytes, .. }
                | Call::Irecv { bytes, .. }
                | Call::SendRecv { send_bytes: bytes, .. }
                | Call::File {
                    call: FileCall::Access { bytes, .. } | FileCall::SharedAccess { bytes, .. },
                    ..
                } => *bytes,
                Call::Collective { operation: id, .. } => operation(*id),
                Call::NeighborAlltoall { to, .. } => all(to),
                _ => Bytes::ZERO,
            },
            _ => Bytes::ZERO,
        }
    }
}
