//! Operations of the actions of a trace.

use pdes_core::{Bytes, Rank};
use serde::{Deserialize, Serialize};
use trace_mmap::{
    Call, CallId, Collective, CollectiveId, CommIdx, Communicator, Datatype, FileCall, Slot, WindowCall,
};

use crate::collective::{self, Member, Schedule, Step, concatenate, file_access, window};
use crate::context::RankContext;
use crate::machine::{FileAccess, FileOperation, Machine};
use crate::observer::Analysis;
use crate::rank::file::FileCalls;
use crate::statistics::ActionKind;

/// Action of the trace that an operation carries out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Origin {
    /// A blocking collective operation on `MPI_COMM_WORLD`.
    Collective(CollectiveId),
    /// A call.
    Call(CallId),
    /// A collective access to a file, with its number among those on its communicator.
    FileAccess { call: CallId, number: u32 },
    /// An independent access to a file: nonblocking, or to a part of a view with holes, in which its position is.
    Access { call: CallId, access: FileAccess, with_holes: Option<FileCalls> },
    /// A call on a window that some of its ranks make.
    Epoch(CallId),
}

impl Origin {
    /// Returns whether all members of a communicator carry out the operation.
    pub(super) fn is_collective(self) -> bool {
        !matches!(self, Self::Access { .. } | Self::Epoch(_))
    }

    /// Returns the call; `None` for an action that is none.
    pub(crate) fn call(self) -> Option<CallId> {
        match self {
            Self::Collective(_) => None,
            Self::Call(call)
            | Self::Epoch(call)
            | Self::FileAccess { call, .. }
            | Self::Access { call, .. } => Some(call),
        }
    }
}

/// Operation of an action of the trace, before it begins.
pub(super) struct OperationPlan<'t> {
    pub(super) kind: ActionKind,
    pub(super) communicator: &'t Communicator,
    pub(super) schedule: Schedule<'t>,
    /// Slot of its request; `None` for a blocking operation.
    pub(super) slot: Option<Slot>,
}

/// Exchange of the color and the key of `MPI_Comm_split`.
static COMMUNICATOR_EXCHANGE: Collective = ALLGATHER;

const ALLGATHER: Collective = Collective::Allgather {
    send_count: 8,
    recv_count: 8,
    send_type: Datatype::BYTE,
    recv_type: Datatype::BYTE,
};

/// Broadcast of a pointer.
const BROADCAST: Collective = Collective::Bcast { count: 8, root: Rank::new(0), datatype: Datatype::BYTE };

/// Returns the collective operations of a call on a file.
fn file_operations(call: FileCall) -> &'static [Collective] {
    static OPEN: [Collective; 3] = [ALLGATHER, BROADCAST, BROADCAST];
    static BARRIERS: [Collective; 3] = [Collective::Barrier, Collective::Barrier, Collective::Barrier];
    match call {
        FileCall::Open { .. } => &OPEN,
        FileCall::Close => &BARRIERS,
        FileCall::Sync => &BARRIERS[..1],
        FileCall::Seek { .. } | FileCall::Access { .. } | FileCall::SharedAccess { .. } => &[],
    }
}

/// Returns the plan of the operation of an action; `None` where the action is no operation.
pub(super) fn plan<'t, M: Machine, A: Analysis>(
    context: &RankContext<'t, M, A>,
    origin: Origin,
) -> Option<OperationPlan<'t>> {
    let (trace, replay) = (context.trace, context.replay);
    let member = |communicator: &'t Communicator| {
        let (layout, selection) = (replay.layout(communicator), &replay.parameters.collectives);
        let has_switches = replay.machine.switch_communicator(communicator.id).is_some();
        Member::new(communicator.rank, layout, selection).with_switches(has_switches)
    };
    let (kind, on, slot, operation) = match origin {
        Origin::Collective(id) => (trace.collective(id).into(), CommIdx::WORLD, None, trace.collective(id)),
        Origin::FileAccess { call: id, number } => {
            let Call::File { communicator, call, slot, .. } = trace.call(id) else { return None };
            let communicator = trace.communicator(*communicator);
            let parts = replay.collective_accesses().get(communicator.id, number)?;
            let (direction, _) = call.access()?;
            let access = context.file_operation(id, direction.into());
            let (member, io) = (member(communicator), replay.parameters.collective_io);
            let schedule = match call {
                FileCall::SharedAccess { .. } => file_access::ordered(member, parts, access, io),
                _ => file_access::schedule(member, parts, access, io),
            };
            let kind = ActionKind::of_access(call)?;
            return Some(OperationPlan { kind, communicator, schedule, slot: *slot });
        }
        Origin::Access { call: id, access, with_holes } => {
            let Call::File { communicator, call, slot, .. } = trace.call(id) else { return None };
            let communicator = trace.communicator(*communicator);
            let schedule: Schedule<'t> = match with_holes {
                Some(calls) => {
                    let data = (access.offset, access.offset.saturating_add(access.bytes));
                    let (view, hints) = (calls.view(trace)?, calls.hints(trace));
                    file_access::sieving::schedule(access, view, data, hints)
                }
                None => Box::new(file_access::access_steps(access)),
            };
            let kind = ActionKind::of_access(call)?;
            return Some(OperationPlan { kind, communicator, schedule, slot: *slot });
        }
        Origin::Epoch(id) => {
            let Call::Window { communicator, call, group, slot, access, completed, puts } = trace.call(id)
            else {
                return None;
            };
            let communicator = trace.communicator(*communicator);
            let kind = ActionKind::of_call(trace.call(id), trace);
            let (schedule, slot) = match *call {
                // Its request is complete when the call returns.
                WindowCall::Fetch { kind, target, bytes, writes } => {
                    let is_own = target == communicator.rank;
                    (window::fetch((kind, writes), (target, is_own), bytes, *access), None)
                }
                WindowCall::Sync { kind, target } => {
                    let targets = target.map_or(0..communicator.group.len(), |target| target..target + 1);
                    (window::epoch(kind, targets, group, (puts, completed))?, *slot)
                }
                WindowCall::Access { .. } => return None,
            };
            return Some(OperationPlan { kind, communicator, schedule, slot });
        }
        Origin::Call(id) => match trace.call(id) {
            Call::Window { communicator, completed, puts, .. } => {
                let communicator = trace.communicator(*communicator);
                let kind = ActionKind::of_call(trace.call(id), trace);
                let schedule = window::fence(member(communicator), puts, completed);
                return Some(OperationPlan { kind, communicator, schedule, slot: None });
            }
            Call::Collective { operation, communicator, slot } => {
                let operation = trace.collective(*operation);
                (operation.into(), *communicator, *slot, operation)
            }
            // Its ranks agree on their arguments by an allgather.
            Call::NewCommunicator { kind, parent, new } => {
                let on = kind.collective_on(*parent, *new)?;
                (ActionKind::NewCommunicator, on, None, &COMMUNICATOR_EXCHANGE)
            }
            Call::NeighborAlltoall { communicator, to, from, slot } => {
                let communicator = trace.communicator(*communicator);
                let (kind, schedule) = (ActionKind::NeighborAlltoall, neighbors(to, from));
                return Some(OperationPlan { kind, communicator, schedule, slot: *slot });
            }
            Call::SetView { communicator, .. } => {
                (ActionKind::FileSetView, *communicator, None, &Collective::Barrier)
            }
            Call::File { communicator, call, .. } if call.is_collective() => {
                let communicator = trace.communicator(*communicator);
                let member = member(communicator);
                let operations = file_operations(*call).iter();
                let schedules = operations.map(move |operation| collective::schedule(member, operation));
                let access = match call {
                    FileCall::Open { .. } => context.file_operation(id, FileOperation::Open),
                    _ => context.file_operation(id, FileOperation::Sync),
                };
                let own = file_access::access_steps(access).filter(|_| !matches!(call, FileCall::Close));
                let own: Schedule<'t> = Box::new(own);
                let kind = ActionKind::of_call(trace.call(id), trace);
                let schedule = concatenate([own].into_iter().chain(schedules));
                return Some(OperationPlan { kind, communicator, schedule, slot: None });
            }
            _ => return None,
        },
    };
    let communicator = trace.communicator(on);
    let schedule = collective::schedule(member(communicator), operation);
    Some(OperationPlan { kind, communicator, schedule, slot })
}

/// Returns the steps of a neighbourhood alltoall: receives from all neighbours, then sends to all.
fn neighbors<'t>(to: &'t [(u32, Bytes)], from: &'t [(u32, Bytes)]) -> Schedule<'t> {
    let receives = from.iter().map(|&(from, bytes)| Step::Irecv { from: Rank::new(from), bytes });
    let sends = to.iter().map(|&(to, bytes)| Step::Isend { to: Rank::new(to), bytes });
    Box::new(receives.chain(sends).chain([Step::WaitAll]))
}
