//! Calls that have a cost of their own, and the size on which it depends.

use trace_mmap::{Action, Call, CollectiveId, CommIdx, FileCall, RankTrace, WindowCall};

use crate::statistics::ActionKind;

/// A sort of calls with a cost of its own ([`Parameters::call_overheads`](crate::Parameters::call_overheads)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargedCall {
    /// Calls of a kind; not computations and what takes no time.
    Kind(ActionKind),
    /// Collective operations of a rank alone, of any kind, which libraries end at once.
    Alone,
}

impl ChargedCall {
    /// Returns all sorts.
    pub fn all() -> impl Iterator<Item = Self> {
        ActionKind::ALL.into_iter().filter(|&kind| has_cost(kind)).map(Self::Kind).chain([Self::Alone])
    }

    /// Returns the name in configurations: that of the action, or `alone`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.name(),
            Self::Alone => "alone",
        }
    }

    /// Returns the sort with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|call| call.name() == name)
    }

    /// Returns the sort of an action as a call, and the size on which its cost depends; `None` where it has none.
    ///
    /// The size is the number of requests of calls on lists of requests, the bytes of the message of calls that send, those of the
    /// buffer of `irecv`, and the [payload](trace_mmap::Collective::payload) of a collective operation. It is zero for all others,
    /// and for calls that complete one message: the size of that counts in [`Parameters::receive`](crate::Parameters::receive).
    ///
    /// # Panics
    /// The action is not of this rank.
    pub fn of(action: Action, rank: &RankTrace) -> Option<(Self, u64)> {
        let members = |communicator: CommIdx| rank.communicator(communicator).group.len();
        let communicator = match action {
            Action::Collective(_) => Some(CommIdx::WORLD),
            Action::Call(id) => match rank.call(id) {
                Call::Collective { communicator, .. } | Call::NeighborAlltoall { communicator, .. } => {
                    Some(*communicator)
                }
                _ => None,
            },
            _ => None,
        };
        if communicator.is_some_and(|communicator| members(communicator) == 1) {
            return Some((Self::Alone, 0));
        }
        let kind = ActionKind::of(action, rank);
        has_cost(kind).then(|| (Self::Kind(kind), size(action, rank)))
    }
}

/// Returns whether actions of a kind are calls that may have a cost: neither computations nor what takes no time.
fn has_cost(kind: ActionKind) -> bool {
    !matches!(
        kind,
        ActionKind::Compute
            | ActionKind::Copy
            | ActionKind::Sleep
            | ActionKind::Marker
            | ActionKind::Finalize
    )
}

/// Returns the size on which the cost of an action as a call depends.
fn size(action: Action, rank: &RankTrace) -> u64 {
    let payload = |id: CollectiveId| rank.collective(id).payload().unwrap_or_default();
    match action {
        Action::Send { bytes, .. } | Action::Isend { bytes, .. } | Action::Irecv { bytes, .. } => bytes.get(),
        Action::SendRecv(id) => rank.send_recv(id).send_bytes.get(),
        Action::Collective(id) => payload(id),
        Action::Call(id) => match rank.call(id) {
            Call::Send { bytes, .. }
            | Call::Isend { bytes, .. }
            | Call::Irecv { bytes, .. }
            | Call::SendRecv { send_bytes: bytes, .. }
            | Call::File {
                call: FileCall::Access { bytes, .. } | FileCall::SharedAccess { bytes, .. },
                ..
            } => bytes.get(),
            Call::Window {
                call: WindowCall::Access { bytes, .. } | WindowCall::Fetch { bytes, .. }, ..
            } => bytes.get(),
            Call::Collective { operation, .. } => payload(*operation),
            Call::NeighborAlltoall { to, .. } => to.iter().map(|(_, bytes)| bytes.get()).sum(),
            Call::Start { slots } => slots.len() as u64,
            call => call.completion().map_or(0, |completion| completion.requests.len() as u64),
        },
        _ => 0,
    }
}
