//! Collective operations: the calls of the members of a communicator match in their order.

use pdes_core::Rank;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype};

use super::call::Call;
use super::recording::{Communicator, Recording};
use super::{LineError, ParaverError};
use crate::timed::{Function, share};

/// The collective calls on all communicators, in the order of the communicators.
pub(super) struct Rounds {
    by_communicator: Vec<CommunicatorRounds>,
}

/// The collective calls on a communicator.
struct CommunicatorRounds {
    /// Indices of the calls of each member, all of the same number but for calls in which the trace ends.
    calls: Vec<Vec<usize>>,
    /// The root of each call, in the communicator, if the operation has one.
    roots: Vec<Option<Rank>>,
}

/// Finds the communicator of a collective call of a rank, and the rank in it.
pub(super) fn communicator_of(
    recording: &Recording,
    rank: Rank,
    call: &Call,
) -> Result<(usize, u32), ParaverError> {
    let name = || recording.labels.name(call.label).to_owned();
    let Some(id) = call.collective.communicator else {
        return Err(ParaverError::NoCommunicator { name: name() });
    };
    let Some(index) = recording.communicators.find(id) else {
        return Err(ParaverError::UnknownCommunicator { name: name(), id });
    };
    match recording.communicators.list[index].group.position(rank) {
        Some(position) => Ok((index, position)),
        None => Err(ParaverError::NotMember { rank, name: name(), id }),
    }
}

impl Rounds {
    /// Matches the calls of all ranks.
    pub(super) fn new(recording: &Recording) -> Result<Self, LineError> {
        let rounds = |members| CommunicatorRounds { calls: vec![Vec::new(); members], roots: Vec::new() };
        let communicators = recording.communicators.list.iter();
        let mut by_communicator: Vec<_> =
            communicators.map(|communicator| rounds(communicator.members.len())).collect();
        for (rank, task) in (0..).map(Rank::new).zip(&recording.tasks) {
            for (index, call) in task.calls.iter().enumerate() {
                if let Function::Collective { .. } = recording.labels.function(call.label) {
                    let place = communicator_of(recording, rank, call);
                    let (communicator, position) = place.map_err(|kind| kind.at(call.line))?;
                    by_communicator[communicator].calls[position as usize].push(index);
                }
            }
        }
        for (communicator, rounds) in by_communicator.iter_mut().enumerate() {
            rounds.check(recording, communicator)?;
            rounds.find_roots(recording, communicator)?;
        }
        Ok(Self { by_communicator })
    }

    /// Returns the number of calls on a communicator that all its members make.
    pub(super) fn complete(&self, communicator: usize) -> usize {
        self.by_communicator[communicator].complete()
    }

    /// Returns call `round` (from 0) on a communicator, as its member at a position makes it.
    pub(super) fn operation(
        &self,
        recording: &Recording,
        communicator: usize,
        round: usize,
        position: u32,
        kind: CollectiveKind,
    ) -> Collective {
        let rounds = &self.by_communicator[communicator];
        let members = rounds.calls.len() as u64;
        let fields = |member: usize| rounds.call(recording, communicator, round, member).collective;
        let all_sent = || (0..rounds.calls.len()).map(|member| fields(member).sent);
        let all_received = || (0..rounds.calls.len()).map(|member| fields(member).received).collect();
        let (sent, received) = (fields(position as usize).sent, fields(position as usize).received);
        let (count, flops, root) = (sent.max(received), 0.0, rounds.roots[round].unwrap_or(Rank::new(0)));
        let datatype = Datatype::BYTE;
        let (send_type, recv_type) = (datatype, datatype);
        match kind {
            CollectiveKind::Barrier => Collective::Barrier,
            CollectiveKind::Bcast => Collective::Bcast { count, root, datatype },
            CollectiveKind::Reduce => Collective::Reduce { count, flops, root, datatype },
            CollectiveKind::Allreduce => Collective::Allreduce { count, flops, datatype },
            CollectiveKind::Scan => Collective::Scan { count, flops, datatype },
            CollectiveKind::Exscan => Collective::Exscan { count, flops, datatype },
            // Some versions record the receive count of each peer, others of all: the send count is that of each peer.
            CollectiveKind::Alltoall => {
                Collective::Alltoall { send_count: sent, recv_count: sent, send_type, recv_type }
            }
            CollectiveKind::Allgather => {
                Collective::Allgather { send_count: sent, recv_count: sent, send_type, recv_type }
            }
            CollectiveKind::Gather => {
                Collective::Gather { send_count: sent, recv_count: sent, root, send_type, recv_type }
            }
            CollectiveKind::Scatter => {
                Collective::Scatter { send_count: received, recv_count: received, root, send_type, recv_type }
            }
            CollectiveKind::Gatherv => {
                let recv_counts = all_sent().collect();
                Collective::Gatherv { send_count: sent, recv_counts, root, send_type, recv_type }
            }
            CollectiveKind::Scatterv => {
                let send_counts = all_received();
                Collective::Scatterv { send_counts, recv_count: received, root, send_type, recv_type }
            }
            CollectiveKind::Allgatherv => {
                let recv_counts = all_sent().collect();
                Collective::Allgatherv { send_count: sent, recv_counts, send_type, recv_type }
            }
            CollectiveKind::ReduceScatter => {
                Collective::ReduceScatter { recv_counts: all_received(), flops, datatype }
            }
            CollectiveKind::Alltoallv => {
                let send_counts = (0..members).map(|peer| share(sent, members, peer)).collect();
                let recv_counts = all_sent().map(|sent| share(sent, members, position.into())).collect();
                Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type }
            }
        }
    }
}

impl CommunicatorRounds {
    fn complete(&self) -> usize {
        self.calls.iter().map(Vec::len).min().unwrap_or(0)
    }

    fn call<'a>(
        &self,
        recording: &'a Recording,
        communicator: usize,
        round: usize,
        member: usize,
    ) -> &'a Call {
        let rank = recording.communicators.list[communicator].members[member];
        &recording.tasks[rank.index()].calls[self.calls[member][round]]
    }

    /// Checks that all members call the same operations.
    fn check(&self, recording: &Recording, communicator: usize) -> Result<(), LineError> {
        let Communicator { members, number, .. } = &recording.communicators.list[communicator];
        let id = *number;
        let name = |call: &Call| recording.labels.name(call.label).to_owned();
        let rounds = |member: &usize| self.calls[*member].len();
        let all = 0..self.calls.len();
        let (Some(fewest), Some(most)) = (all.clone().min_by_key(rounds), all.clone().max_by_key(rounds))
        else {
            return Ok(());
        };
        for round in 0..rounds(&fewest) {
            let first = self.call(recording, communicator, round, 0);
            for member in all.clone() {
                let call = self.call(recording, communicator, round, member);
                if recording.labels.function(call.label) != recording.labels.function(first.label) {
                    let (rank, other) = (members[member], members[0]);
                    let (found, expected, round) = (name(call), name(first), round + 1);
                    let kind = ParaverError::CollectivesDiffer { id, round, rank, found, other, expected };
                    return Err(kind.at(call.line));
                }
            }
        }
        let calls = rounds(&fewest);
        if rounds(&most) == calls {
            return Ok(());
        }
        // A trace that was cut may end when some ranks are in an operation that others have not called.
        let is_cut = |member: usize| {
            let task = &recording.tasks[members[member].index()];
            let more = &self.calls[member][calls..];
            let ends_in_it = task.is_in_call && more == [task.calls.len() - 1];
            (more.is_empty() || ends_in_it) && !task.begins_in_collective
        };
        if all.clone().all(is_cut) {
            return Ok(());
        }
        let call = self.call(recording, communicator, calls, most);
        let (name, round, rank) = (name(call), calls + 1, members[fewest]);
        Err(ParaverError::CollectiveMissing { name, id, round, rank, calls }.at(call.line))
    }

    /// Finds the roots of all calls.
    fn find_roots(&mut self, recording: &Recording, communicator: usize) -> Result<(), LineError> {
        let roots = (0..self.complete()).map(|round| {
            let first = self.call(recording, communicator, round, 0);
            if !has_root(recording.labels.function(first.label)) {
                return Ok(None);
            }
            let is_root =
                |member: &usize| self.call(recording, communicator, round, *member).collective.is_root;
            let mut roots = (0..self.calls.len()).filter(is_root);
            match (roots.next(), roots.count()) {
                (Some(root), 0) => Ok(Some(Rank::new(root as u32))),
                (root, more) => {
                    let name = recording.labels.name(first.label).to_owned();
                    let found = more + usize::from(root.is_some());
                    Err(ParaverError::Roots { name, found }.at(first.line))
                }
            }
        });
        self.roots = roots.collect::<Result<_, _>>()?;
        Ok(())
    }
}

fn has_root(function: Function) -> bool {
    use CollectiveKind::{Bcast, Gather, Gatherv, Reduce, Scatter, Scatterv};
    matches!(
        function,
        Function::Collective { kind: Bcast | Reduce | Gather | Gatherv | Scatter | Scatterv, .. }
    )
}
