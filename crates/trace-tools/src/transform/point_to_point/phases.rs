//! Linear forms of collective operations.

use trace_mmap::{CallOp, Collective, Datatype, Op};

/// A phase of a rank in a collective operation: it posts receives, then sends, in the order of ranks, waits for all of them, and
/// computes. Ranks are those of the communicator.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Phase {
    /// Sources, with the size of the buffer \[B\].
    pub(super) receives: Vec<(u32, u64)>,
    /// Destinations, with the size of the message \[B\].
    pub(super) sends: Vec<(u32, u64)>,
    /// Computation \[flop\].
    pub(super) flops: f64,
}

impl Phase {
    fn receive(receives: impl IntoIterator<Item = (u32, u64)>) -> Self {
        Self { receives: receives.into_iter().collect(), ..Self::default() }
    }

    fn send(sends: impl IntoIterator<Item = (u32, u64)>) -> Self {
        Self { sends: sends.into_iter().collect(), ..Self::default() }
    }

    fn exchange(
        receives: impl IntoIterator<Item = (u32, u64)>,
        sends: impl IntoIterator<Item = (u32, u64)>,
    ) -> Self {
        Self { sends: sends.into_iter().collect(), ..Self::receive(receives) }
    }

    fn computing(self, flops: f64) -> Self {
        Self { flops, ..self }
    }

    /// Returns the phase without messages of no bytes.
    fn of_data(mut self) -> Self {
        self.receives.retain(|(_, bytes)| *bytes > 0);
        self.sends.retain(|(_, bytes)| *bytes > 0);
        self
    }
}

/// Returns the phases of rank `me` of `size` in an operation; `None` for operations that are not collective.
pub(super) fn phases(op: &Op, me: u32, size: u32) -> Option<Vec<Phase>> {
    match op {
        Op::Collective(operation) | Op::Call(CallOp::Collective { operation, .. }) => {
            Some(of_collective(operation, me, size))
        }
        Op::Call(CallOp::NeighborAlltoall { to, from, .. }) => {
            let others = |list: &[(u32, pdes_core::Bytes)]| -> Vec<(u32, u64)> {
                let others = list.iter().filter(|(rank, _)| *rank != me);
                others.map(|(rank, bytes)| (*rank, bytes.get())).collect()
            };
            Some(vec![Phase::exchange(others(from), others(to)).of_data()])
        }
        _ => None,
    }
}

/// Returns whether a collective operation is one phase without a computation on all ranks, so that it need not block.
pub(super) fn is_one_exchange(op: &Op) -> bool {
    match op {
        Op::Collective(operation) | Op::Call(CallOp::Collective { operation, .. }) => match operation {
            Collective::Barrier | Collective::Allreduce { .. } | Collective::ReduceScatter { .. } => false,
            operation => operation.flops().is_none_or(|flops| flops == 0.0),
        },
        _ => true,
    }
}

fn of_collective(operation: &Collective, me: u32, size: u32) -> Vec<Phase> {
    use Collective as C;
    let others = || (0..size).filter(move |rank| *rank != me);
    let all = |count: u64, datatype: &Datatype| {
        let bytes = count * datatype.size().get();
        others().map(move |rank| (rank, bytes))
    };
    let each = |counts: &[u64], datatype: &Datatype| -> Vec<(u32, u64)> {
        let size = datatype.size().get();
        others().map(|rank| (rank, counts.get(rank as usize).map_or(0, |count| count * size))).collect()
    };
    let one = |rank: u32, count: u64, datatype: &Datatype| [(rank, count * datatype.size().get())];
    let phases = match operation {
        C::Barrier => return barrier(me, others()),
        C::Bcast { count, root, datatype } => match root.get() {
            root if root == me => vec![Phase::send(all(*count, datatype))],
            root => vec![Phase::receive(one(root, *count, datatype))],
        },
        C::Reduce { count, flops, root, datatype } => match root.get() {
            root if root == me => vec![Phase::receive(all(*count, datatype)).computing(*flops)],
            root => vec![Phase::send(one(root, *count, datatype)).computing(*flops)],
        },
        C::Allreduce { count, flops, datatype } => match me {
            0 => vec![
                Phase::receive(all(*count, datatype)).computing(*flops),
                Phase::send(all(*count, datatype)),
            ],
            _ => {
                let both = Phase::exchange(one(0, *count, datatype), one(0, *count, datatype));
                vec![both.computing(*flops)]
            }
        },
        C::Alltoall { send_count, recv_count, send_type, recv_type } => {
            vec![Phase::exchange(all(*recv_count, recv_type), all(*send_count, send_type))]
        }
        C::Alltoallv { send_counts, recv_counts, send_type, recv_type } => {
            vec![Phase::exchange(each(recv_counts, recv_type), each(send_counts, send_type))]
        }
        C::Gather { send_count, recv_count, root, send_type, recv_type } => match root.get() {
            root if root == me => vec![Phase::receive(all(*recv_count, recv_type))],
            root => vec![Phase::send(one(root, *send_count, send_type))],
        },
        C::Gatherv { send_count, recv_counts, root, send_type, recv_type } => match root.get() {
            root if root == me => vec![Phase::receive(each(recv_counts, recv_type))],
            root => vec![Phase::send(one(root, *send_count, send_type))],
        },
        C::Scatter { send_count, recv_count, root, send_type, recv_type } => match root.get() {
            root if root == me => vec![Phase::send(all(*send_count, send_type))],
            root => vec![Phase::receive(one(root, *recv_count, recv_type))],
        },
        C::Scatterv { send_counts, recv_count, root, send_type, recv_type } => match root.get() {
            root if root == me => vec![Phase::send(each(send_counts, send_type))],
            root => vec![Phase::receive(one(root, *recv_count, recv_type))],
        },
        C::Allgather { send_count, recv_count, send_type, recv_type } => {
            vec![Phase::exchange(all(*recv_count, recv_type), all(*send_count, send_type))]
        }
        C::Allgatherv { send_count, recv_counts, send_type, recv_type } => {
            vec![Phase::exchange(each(recv_counts, recv_type), all(*send_count, send_type))]
        }
        C::ReduceScatter { recv_counts, flops, datatype } => {
            let sum = recv_counts.iter().sum();
            let own = recv_counts.get(me as usize).copied().unwrap_or_default();
            match me {
                0 => vec![
                    Phase::receive(all(sum, datatype)).computing(*flops),
                    Phase::send(each(recv_counts, datatype)),
                ],
                _ => {
                    let both = Phase::exchange(one(0, own, datatype), one(0, sum, datatype));
                    vec![both.computing(*flops)]
                }
            }
        }
        C::Scan { count, flops, datatype } | C::Exscan { count, flops, datatype } => {
            let (lower, higher) = (|(rank, _): &(u32, u64)| *rank < me, |(rank, _): &(u32, u64)| *rank > me);
            let both =
                Phase::exchange(all(*count, datatype).filter(lower), all(*count, datatype).filter(higher));
            vec![both.computing(*flops)]
        }
    };
    phases.into_iter().map(Phase::of_data).collect()
}

/// Messages of no bytes to rank 0, and back once all have come.
fn barrier(me: u32, others: impl Iterator<Item = u32> + Clone) -> Vec<Phase> {
    let empty = |rank| (rank, 0);
    match me {
        0 => vec![Phase::receive(others.clone().map(empty)), Phase::send(others.map(empty))],
        _ => vec![Phase::exchange([empty(0)], [empty(0)])],
    }
}
