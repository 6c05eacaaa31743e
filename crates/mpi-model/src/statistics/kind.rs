//! Classification of the actions of a trace by [`ActionKind`].

use trace_mmap::{Action, RankTrace};

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

    /// Returns whether an action of this kind is a call in which the library moves data: one that waits, tests or blocks. A call that
    /// starts a nonblocking operation returns at once.
    pub(crate) fn makes_progress(self) -> bool {
        let is_call = !matches!(self, Self::Compute | Self::Copy | Self::Sleep | Self::Marker);
        let is_start = matches!(
            self,
            Self::Isend
                | Self::Irecv
                | Self::Start
                | Self::NonBlocking
                | Self::FileReadStart
                | Self::FileWriteStart
                | Self::Cancel
        );
        is_call && !is_start
    }

    /// Returns whether a call of this kind only completes what others have started.
    pub(crate) fn is_completion(self) -> bool {
        matches!(self, Self::Recv | Self::Wait | Self::Waitall | Self::Waitany | Self::Waitsome | Self::Probe)
    }
}
