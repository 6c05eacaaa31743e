//! Calls of collective operations, and their required outcome.

use pdes_core::Rank;
use trace_mmap::{Collective, Datatype};

use crate::collective::{Elements, Operation};

/// A call of an operation by all members.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) operation: Collective,
    /// The operation, where its algorithm can be chosen.
    pub(super) kind: Option<Operation>,
    size: u32,
}

/// Returns the calls that are run with `size` ranks.
pub(super) fn calls(size: u32) -> Vec<Call> {
    let with = |operation, kind| Call { operation, kind, size };
    let mut calls = vec![with(Collective::Barrier, Some(Operation::Barrier))];
    let (int, byte) = (Datatype::from_id(1).unwrap(), Datatype::BYTE);
    let mut roots = vec![0, size / 2, size - 1];
    roots.dedup();
    for (count, datatype) in [(0, byte), (1, byte), (100, int), (20_000, int), (300_001, byte)] {
        let (send_type, recv_type) = (datatype, datatype);
        let (send_count, recv_count) = (count, count);
        let flops = if count == 100 { 5.0 } else { 0.0 };
        for root in roots.iter().copied().map(Rank::new) {
            let bcast = Collective::Bcast { count, root, datatype };
            let reduce = Collective::Reduce { count, flops, root, datatype };
            let gather = Collective::Gather { send_count, recv_count, root, send_type, recv_type };
            let scatter = Collective::Scatter { send_count, recv_count, root, send_type, recv_type };
            calls.extend([
                with(bcast, Some(Operation::Bcast)),
                with(reduce, Some(Operation::Reduce)),
                with(gather, Some(Operation::Gather)),
                with(scatter, Some(Operation::Scatter)),
            ]);
        }
        let allgather = Collective::Allgather { send_count, recv_count, send_type, recv_type };
        let alltoall = Collective::Alltoall { send_count, recv_count, send_type, recv_type };
        calls.extend([
            with(Collective::Allreduce { count, flops, datatype }, Some(Operation::Allreduce)),
            with(allgather, Some(Operation::Allgather)),
            with(alltoall, Some(Operation::Alltoall)),
        ]);
        calls.extend(
            vectors(size, count, datatype).into_iter().map(|(operation, kind)| with(operation, kind)),
        );
    }
    calls
}

/// Returns calls with a count for each rank.
fn vectors(size: u32, count: u64, datatype: Datatype) -> Vec<(Collective, Option<Operation>)> {
    let (send_type, recv_type) = (datatype, datatype);
    let equal: Box<[u64]> = vec![count; size as usize].into();
    let ramp: Box<[u64]> = (0..u64::from(size)).map(|rank| rank * count / 4).collect();
    let (root, flops) = (Rank::new(size / 2), 0.0);
    let mut calls = vec![
        (Collective::Scan { count, flops, datatype }, None),
        (Collective::Exscan { count, flops: 1.0, datatype }, None),
    ];
    for blocks in [equal.clone(), ramp] {
        let (send_count, recv_counts) = (0, blocks.clone());
        calls.push((
            Collective::Allgatherv { send_count, recv_counts, send_type, recv_type },
            Some(Operation::Allgatherv),
        ));
        let recv_counts = blocks.clone();
        calls.push((
            Collective::ReduceScatter { recv_counts, flops: 2.0, datatype },
            Some(Operation::ReduceScatter),
        ));
        let recv_counts = blocks.clone();
        calls.push((Collective::Gatherv { send_count, recv_counts, root, send_type, recv_type }, None));
        let (send_counts, recv_count) = (blocks, 0);
        calls.push((Collective::Scatterv { send_counts, recv_count, root, send_type, recv_type }, None));
    }
    let (send_counts, recv_counts) = (equal.clone(), equal);
    let alltoallv = Collective::Alltoallv { send_counts, recv_counts, send_type, recv_type };
    calls.push((alltoallv, Some(Operation::Alltoallv)));
    calls
}

/// Returns the call as this member makes it: with its own block where blocks differ.
pub(super) fn of_member(operation: &Collective, rank: u32) -> Collective {
    let mut own = operation.clone();
    match &mut own {
        Collective::Allgatherv { send_count, recv_counts, .. }
        | Collective::Gatherv { send_count, recv_counts, .. } => *send_count = recv_counts[rank as usize],
        Collective::Scatterv { send_counts, recv_count, .. } => *recv_count = send_counts[rank as usize],
        _ => {}
    }
    own
}

impl Call {
    /// Returns the set of members, as bits, whose data this member needs.
    pub(super) fn needs(&self, rank: u32) -> u64 {
        let all = (1_u64 << self.size) - 1;
        let root = |root: Rank| 1_u64 << root.get();
        let of_root = |root: Rank, needs: u64| if root.get() == rank { needs } else { 0 };
        match &self.operation {
            Collective::Barrier => all,
            Collective::Bcast { count: 0, .. }
            | Collective::Reduce { count: 0, .. }
            | Collective::Allreduce { count: 0, .. }
            | Collective::Gather { send_count: 0, .. }
            | Collective::Scatter { send_count: 0, .. }
            | Collective::Allgather { send_count: 0, .. }
            | Collective::Alltoall { send_count: 0, .. } => 0,
            Collective::Bcast { root: from, .. } | Collective::Scatter { root: from, .. } => root(*from),
            Collective::Reduce { root, .. } | Collective::Gather { root, .. } => of_root(*root, all),
            Collective::Allreduce { .. } | Collective::Allgather { .. } | Collective::Alltoall { .. } => all,
            Collective::Alltoallv { recv_counts, .. } | Collective::Allgatherv { recv_counts, .. } => {
                senders(recv_counts)
            }
            Collective::Gatherv { recv_counts, root, .. } => of_root(*root, senders(recv_counts)),
            Collective::Scatterv { send_counts, root: from, .. } if send_counts[rank as usize] > 0 => {
                root(*from)
            }
            Collective::ReduceScatter { recv_counts, .. } if recv_counts[rank as usize] > 0 => all,
            Collective::Scatterv { .. } | Collective::ReduceScatter { .. } => 0,
            Collective::Scan { .. } | Collective::Exscan { .. } => (1 << rank) - 1,
        }
    }

    /// Returns the minimum number of bytes that this member must receive.
    pub(super) fn least_bytes(&self, rank: u32) -> u64 {
        let others = u64::from(self.size) - 1;
        let bytes = |count, datatype| Elements::new(count, datatype).bytes().get();
        // Vectors may be reduced in parts, one of which the member has already.
        let part = |count, datatype| bytes(count / u64::from(self.size) * others, datatype);
        let besides_own = |counts: &[u64]| counts.iter().sum::<u64>() - counts[rank as usize];
        match &self.operation {
            Collective::Bcast { count, root, datatype } if root.get() != rank => bytes(*count, *datatype),
            Collective::Reduce { count, root, datatype, .. } if root.get() == rank => part(*count, *datatype),
            Collective::Allreduce { count, datatype, .. } => part(*count, *datatype),
            Collective::Gather { recv_count, root, recv_type, .. } if root.get() == rank => {
                bytes(others * recv_count, *recv_type)
            }
            Collective::Scatter { recv_count, root, recv_type, .. } if root.get() != rank => {
                bytes(*recv_count, *recv_type)
            }
            Collective::Allgather { recv_count, recv_type, .. }
            | Collective::Alltoall { recv_count, recv_type, .. } => bytes(others * recv_count, *recv_type),
            Collective::Allgatherv { recv_counts, recv_type, .. }
            | Collective::Alltoallv { recv_counts, recv_type, .. } => {
                bytes(besides_own(recv_counts), *recv_type)
            }
            _ => 0,
        }
    }
}

/// Returns the set of members, as bits, whose blocks are not empty.
fn senders(counts: &[u64]) -> u64 {
    counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(rank, _)| 1 << rank).sum()
}
