//! Wait states: the reasons why ranks wait.

use serde::{Deserialize, Serialize};

use crate::statistics::ActionKind;

/// Reason why a rank waits: for whom, and in which operation.
///
/// The patterns are those of Scalasca ("Performance properties" of Scalasca 2.4, section MPI), as far as a replay can tell
/// them apart; `docs/waits.md` lists the differences.
///
/// | operation | waits for a message | waits until its message is received |
/// |---|---|---|
/// | point-to-point, probes, neighbourhoods | `LateSender` | `LateReceiver` |
/// | barrier, fence | `WaitAtBarrier` | `WaitAtBarrier` |
/// | lock, access that fetches | `LateReceiver`: for the lock | `LateReceiver` |
/// | allreduce, allgather(v), alltoall(v), reduce_scatter, making a communicator | `WaitAtNxN` | `WaitAtNxN` |
/// | bcast, scatter(v) | `LateBroadcast` | `LateReceiver` |
/// | reduce, gather(v) | `EarlyReduce` | `LateReceiver` |
/// | scan, exscan | `EarlyScan` | `LateReceiver` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WaitState {
    /// A receive waits for a message that has not been sent.
    LateSender,
    /// A send waits for a receive that has not been posted.
    LateReceiver,
    /// A barrier waits for a rank that is not there.
    WaitAtBarrier,
    /// An all-to-all operation waits for a rank that is not there.
    WaitAtNxN,
    /// A one-to-all operation waits for the root, or for a rank that forwards its data.
    LateBroadcast,
    /// An all-to-one operation waits for the others.
    EarlyReduce,
    /// A scan waits for lower ranks.
    EarlyScan,
}

impl WaitState {
    /// Number of wait states.
    pub const COUNT: usize = 7;

    /// All wait states, in the order of the enumeration.
    pub const ALL: [Self; Self::COUNT] = [
        Self::LateSender,
        Self::LateReceiver,
        Self::WaitAtBarrier,
        Self::WaitAtNxN,
        Self::LateBroadcast,
        Self::EarlyReduce,
        Self::EarlyScan,
    ];

    /// Returns the name in reports, such as `late_sender`.
    pub fn name(self) -> &'static str {
        match self {
            Self::LateSender => "late_sender",
            Self::LateReceiver => "late_receiver",
            Self::WaitAtBarrier => "wait_at_barrier",
            Self::WaitAtNxN => "wait_at_nxn",
            Self::LateBroadcast => "late_broadcast",
            Self::EarlyReduce => "early_reduce",
            Self::EarlyScan => "early_scan",
        }
    }

    /// Returns the state that a wait for a message, or for its receive, has inside an operation.
    #[inline]
    pub(crate) fn in_operation(self, operation: ActionKind) -> Self {
        // Most kinds of actions are no collective operations.
        if operation < ActionKind::Barrier { self } else { self.in_collective(operation) }
    }

    fn in_collective(self, operation: ActionKind) -> Self {
        use ActionKind::{
            Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Bcast, Exscan, Fetch, FileClose,
            FileOpen, FileReadAll, FileSetView, FileSync, FileWriteAll, Gather, Gatherv, NewCommunicator,
            Reduce, ReduceScatter, Scan, Scatter, Scatterv, WindowFence, WindowFree, WindowLock,
        };
        match (operation, self) {
            (Barrier | FileClose | FileSync | FileSetView | WindowFence | WindowFree, _) => {
                Self::WaitAtBarrier
            }
            (
                Allreduce | Allgather | Allgatherv | Alltoall | Alltoallv | ReduceScatter | NewCommunicator
                | FileOpen | FileReadAll | FileWriteAll,
                _,
            ) => Self::WaitAtNxN,
            // A lock that another rank holds is its target not being there.
            (WindowLock | Fetch, _) => Self::LateReceiver,
            (Bcast | Scatter | Scatterv, Self::LateSender) => Self::LateBroadcast,
            (Reduce | Gather | Gatherv, Self::LateSender) => Self::EarlyReduce,
            (Scan | Exscan, Self::LateSender) => Self::EarlyScan,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_in_the_order_of_the_list() {
        for (number, state) in WaitState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
        }
    }

    #[test]
    fn collectives_have_states_of_their_own() {
        let inside =
            |kind| [WaitState::LateSender, WaitState::LateReceiver].map(|state| state.in_operation(kind));
        assert_eq!(inside(ActionKind::Barrier), [WaitState::WaitAtBarrier; 2]);
        assert_eq!(inside(ActionKind::Alltoallv), [WaitState::WaitAtNxN; 2]);
        assert_eq!(inside(ActionKind::Scatterv), [WaitState::LateBroadcast, WaitState::LateReceiver]);
        assert_eq!(inside(ActionKind::Reduce), [WaitState::EarlyReduce, WaitState::LateReceiver]);
        assert_eq!(inside(ActionKind::Exscan), [WaitState::EarlyScan, WaitState::LateReceiver]);
        let both = [WaitState::LateSender, WaitState::LateReceiver];
        for kind in [ActionKind::NeighborAlltoall, ActionKind::Recv, ActionKind::Cancel] {
            assert_eq!(inside(kind), both);
        }
    }
}
