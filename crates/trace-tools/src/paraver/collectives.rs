//! Collective operations: the calls of the members of a communicator match in their order.

use pdes_core::Rank;
use trace_mmap::table::CollectiveKind;
use trace_mmap::{Collective, Datatype};

use super::call::CollectiveFields;
use super::labels::{LabelId, Labels};
use super::recording::{Communicator, Communicators, Recording};
use super::{LineError, ParaverError};
use crate::timed::{Function, share};

/// The collective calls on all communicators, in the order of the communicators.
pub(super) struct Rounds {
    by_communicator: Vec<CommunicatorRounds>,
}

/// The collective calls on a communicator.
struct CommunicatorRounds {
    /// The calls of each member, all of the same number but for calls in which the trace ends.
    calls: Vec<Vec<RoundCall>>,
    /// The root of each call, in the communicator, if the operation has one.
    roots: Vec<Option<Rank>>,
}

/// A collective call of a rank.
#[derive(Clone, Copy)]
pub(super) struct RoundCall {
    pub(super) label: LabelId,
    pub(super) fields: CollectiveFields,
    pub(super) line: u64,
    /// True if the trace of the rank ends in this call.
    pub(super) is_cut: bool,
}

/// Finds the communicator of a collective call of a rank, and the rank in it.
pub(super) fn communicator_of(
    communicators: &Communicators,
    labels: &Labels,
    rank: Rank,
    label: LabelId,
    fields: &CollectiveFields,
) -> Result<(usize, u32), ParaverError> {
    let name = || labels.name(label).to_owned();
    let Some(id) = fields.communicator else {
        return Err(ParaverError::NoCommunicator { name: name() });
    };
    let Some(index) = communicators.find(id) else {
        return Err(ParaverError::UnknownCommunicator { name: name(), id });
    };
    match communicators.list[index].group.position(rank) {
        Some(position) => Ok((index, position)),
        None => Err(ParaverError::NotMember { rank, name: name(), id }),
    }
}

impl Rounds {
    /// Matches the calls of all ranks of a recording.
    pub(super) fn new(recording: &Recording) -> Result<Self, LineError> {
        let Recording { labels, communicators, tasks } = recording;
        let mut rounds = Self::without_calls(communicators);
        for (rank, task) in (0..).map(Rank::new).zip(tasks) {
            for (index, call) in task.calls.iter().enumerate() {
                if let Function::Collective { .. } = labels.function(call.label) {
                    let is_cut = task.is_in_call && index == task.calls.len() - 1;
                    let (label, fields, line) = (call.label, call.collective, call.line);
                    rounds.add(communicators, labels, rank, RoundCall { label, fields, line, is_cut })?;
                }
            }
        }
        rounds.check(communicators, labels, |rank| tasks[rank.index()].begins_in_collective)?;
        Ok(rounds)
    }

    /// Starts without calls.
    pub(super) fn without_calls(communicators: &Communicators) -> Self {
        let rounds = |communicator: &Communicator| CommunicatorRounds {
            calls: vec![Vec::new(); communicator.members.len()],
            roots: Vec::new(),
        };
        Self { by_communicator: communicators.list.iter().map(rounds).collect() }
    }

    /// Adds the next collective call of a rank.
    pub(super) fn add(
        &mut self,
        communicators: &Communicators,
        labels: &Labels,
        rank: Rank,
        call: RoundCall,
    ) -> Result<(), LineError> {
        let place = communicator_of(communicators, labels, rank, call.label, &call.fields);
        let (communicator, position) = place.map_err(|kind| kind.at(call.line))?;
        self.by_communicator[communicator].calls[position as usize].push(call);
        Ok(())
    }

    /// Checks that calls match, and finds their roots. Before the first call of a rank whose recording begins in a collective operation
    /// there may have been others.
    pub(super) fn check(
        &mut self,
        communicators: &Communicators,
        labels: &Labels,
        begins_in_collective: impl Fn(Rank) -> bool,
    ) -> Result<(), LineError> {
        for (communicator, rounds) in communicators.list.iter().zip(&mut self.by_communicator) {
            rounds.check(communicator, labels, &begins_in_collective)?;
            rounds.find_roots(labels)?;
        }
        Ok(())
    }

    /// Returns the number of calls on a communicator that all its members make.
    pub(super) fn complete(&self, communicator: usize) -> usize {
        self.by_communicator[communicator].complete()
    }

    /// Returns call `round` (from 0) on a communicator, as its member at a position makes it.
    pub(super) fn operation(
        &self,
        communicator: usize,
        round: usize,
        position: u32,
        kind: CollectiveKind,
    ) -> Collective {
        let rounds = &self.by_communicator[communicator];
        let members = rounds.calls.len() as u64;
        let fields = |member: usize| rounds.calls[member][round].fields;
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

    /// Checks that all members call the same operations.
    fn check(
        &self,
        communicator: &Communicator,
        labels: &Labels,
        begins_in_collective: impl Fn(Rank) -> bool,
    ) -> Result<(), LineError> {
        let Communicator { members, number, .. } = communicator;
        let id = *number;
        let name = |call: &RoundCall| labels.name(call.label).to_owned();
        let rounds = |member: &usize| self.calls[*member].len();
        let all = 0..self.calls.len();
        let (Some(fewest), Some(most)) = (all.clone().min_by_key(rounds), all.clone().max_by_key(rounds))
        else {
            return Ok(());
        };
        for round in 0..rounds(&fewest) {
            let first = &self.calls[0][round];
            for member in all.clone() {
                let call = &self.calls[member][round];
                if labels.function(call.label) != labels.function(first.label) {
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
            let more = &self.calls[member][calls..];
            let ends_in_it = matches!(more, [call] if call.is_cut);
            (more.is_empty() || ends_in_it) && !begins_in_collective(members[member])
        };
        if all.clone().all(is_cut) {
            return Ok(());
        }
        let call = &self.calls[most][calls];
        let (name, round, rank) = (name(call), calls + 1, members[fewest]);
        Err(ParaverError::CollectiveMissing { name, id, round, rank, calls }.at(call.line))
    }

    /// Finds the roots of all calls.
    fn find_roots(&mut self, labels: &Labels) -> Result<(), LineError> {
        let roots = (0..self.complete()).map(|round| {
            let first = &self.calls[0][round];
            if !has_root(labels.function(first.label)) {
                return Ok(None);
            }
            let mut roots = (0..self.calls.len()).filter(|member| self.calls[*member][round].fields.is_root);
            match (roots.next(), roots.count()) {
                (Some(root), 0) => Ok(Some(Rank::new(root as u32))),
                (root, more) => {
                    let name = labels.name(first.label).to_owned();
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
