//! Collective operations as schedules of point-to-point steps.
//!
//! An algorithm is a function from a [`Member`] and the arguments of the call to a [`Schedule`]: the steps of this
//! member, made one by one as the replay asks for them. To add one, write such a function in the file of its
//! operation, cite where it comes from, and give it to the [`Selector`].

mod allgather;
mod alltoall;
mod barrier;
mod bcast;
mod gather;
mod member;
mod reduce;
mod reduce_scatter;
mod scan;
mod scatter;
mod selector;

use pdes_core::{Bytes, Rank};

pub use member::Member;
pub use selector::Selector;

/// The steps of one member of a collective operation, in order.
pub type Schedule<'a> = Box<dyn Iterator<Item = Step> + Send + 'a>;

/// One step of a member.
///
/// Non-blocking steps make requests that belong to the operation; [`WaitAll`](Step::WaitAll) and
/// [`WaitEach`](Step::WaitEach) complete them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A blocking send.
    Send {
        /// Destination.
        to: Rank,
        /// Size.
        bytes: Bytes,
    },
    /// A non-blocking send.
    Isend {
        /// Destination.
        to: Rank,
        /// Size.
        bytes: Bytes,
    },
    /// A blocking receive.
    Recv {
        /// Source.
        from: Rank,
        /// Size of the buffer.
        bytes: Bytes,
    },
    /// A non-blocking receive.
    Irecv {
        /// Source.
        from: Rank,
        /// Size of the buffer.
        bytes: Bytes,
    },
    /// A combined send and receive; costs nothing where both peers are the member itself.
    SendRecv {
        /// Destination.
        to: Rank,
        /// Size of the message sent.
        send_bytes: Bytes,
        /// Source.
        from: Rank,
        /// Size of the buffer.
        recv_bytes: Bytes,
    },
    /// Completes all requests of the operation in the order in which they end.
    WaitAll,
    /// Completes all requests of the operation in the order in which they were made.
    WaitEach,
    /// Computes \[flop\].
    Compute {
        /// Amount.
        flops: f64,
    },
}

/// Sends `bytes(peer)` to each of these ranks without blocking.
fn isends<'a>(
    to: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    to.map(move |to| Step::Isend { to: Rank::new(to), bytes: bytes(to) })
}

/// Receives `bytes(peer)` from each of these ranks without blocking.
fn irecvs<'a>(
    from: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    from.map(move |from| Step::Irecv { from: Rank::new(from), bytes: bytes(from) })
}

/// The reduction's computation, after the operation has completed.
fn reduction(flops: f64) -> impl Iterator<Item = Step> + Send {
    (flops != 0.0).then_some(Step::Compute { flops }).into_iter()
}

#[cfg(test)]
mod tests {
    //! Every schedule of every operation is checked for what any correct algorithm has: each message that one member
    //! sends is received by its peer, in the same order, with a buffer that is large enough.

    use std::collections::BTreeMap;

    use trace_mmap::{Collective, Datatype};

    use super::*;

    fn operations(size: u32) -> Vec<Collective> {
        let (int, byte) = (Datatype::from_id(1).unwrap(), Datatype::BYTE);
        let equal: Box<[u64]> = vec![100; size as usize].into();
        let ramp: Box<[u64]> = (0..u64::from(size)).map(|count| count * 50).collect();
        let mut operations = vec![
            Collective::Barrier,
            Collective::Allreduce { count: 100, flops: 5.0, datatype: int },
            Collective::Allgather { send_count: 10, recv_count: 10, send_type: int, recv_type: int },
            Collective::Allgatherv {
                send_count: 0,
                recv_counts: ramp.clone(),
                send_type: byte,
                recv_type: byte,
            },
            Collective::Alltoallv {
                send_counts: equal.clone(),
                recv_counts: equal.clone(),
                send_type: byte,
                recv_type: byte,
            },
            Collective::Scan { count: 3, flops: 0.0, datatype: int },
            Collective::Exscan { count: 3, flops: 1.0, datatype: int },
        ];
        for count in [0, 1, 100, 1_000, 100_000, 1_000_000] {
            operations.push(Collective::Alltoall {
                send_count: count,
                recv_count: count,
                send_type: byte,
                recv_type: byte,
            });
        }
        for factor in [1, 100_000] {
            let counts: Box<[u64]> = ramp.iter().map(|count| count * factor).collect();
            operations.push(Collective::ReduceScatter { recv_counts: counts, flops: 2.0, datatype: int });
        }
        operations.push(Collective::ReduceScatter { recv_counts: equal, flops: 2.0, datatype: int });
        for root in [0, size / 2, size - 1].map(Rank::new) {
            operations.extend([
                Collective::Bcast { count: 100, root, datatype: int },
                Collective::Reduce { count: 100, flops: 7.0, root, datatype: int },
                Collective::Gather { send_count: 4, recv_count: 4, root, send_type: int, recv_type: int },
                Collective::Scatter { send_count: 4, recv_count: 4, root, send_type: int, recv_type: int },
                Collective::Gatherv {
                    send_count: 4,
                    recv_counts: vec![4; size as usize].into(),
                    root,
                    send_type: int,
                    recv_type: int,
                },
                Collective::Scatterv {
                    send_counts: vec![4; size as usize].into(),
                    recv_count: 4,
                    root,
                    send_type: int,
                    recv_type: int,
                },
            ]);
        }
        operations
    }

    /// Own contribution of each rank to an allgatherv, which is not the same for all.
    fn of_member(operation: &Collective, rank: u32) -> Collective {
        match operation.clone() {
            Collective::Allgatherv { recv_counts, send_type, recv_type, .. } => {
                let send_count = recv_counts[rank as usize];
                Collective::Allgatherv { send_count, recv_counts, send_type, recv_type }
            }
            other => other,
        }
    }

    #[test]
    fn every_message_has_its_receive() {
        for size in 1..=17 {
            for operation in operations(size) {
                let mut sent: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
                let mut received: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
                for rank in 0..size {
                    let operation = of_member(&operation, rank);
                    for step in Selector::Default.schedule(Member::new(rank, size), &operation) {
                        let mut send =
                            |to: Rank, b: Bytes| sent.entry((rank, to.get())).or_default().push(b.get());
                        let mut receive = |from: Rank, b: Bytes| {
                            received.entry((from.get(), rank)).or_default().push(b.get())
                        };
                        match step {
                            Step::Send { to, bytes } | Step::Isend { to, bytes } => send(to, bytes),
                            Step::Recv { from, bytes } | Step::Irecv { from, bytes } => receive(from, bytes),
                            Step::SendRecv { to, send_bytes, from, recv_bytes } => {
                                send(to, send_bytes);
                                receive(from, recv_bytes);
                            }
                            Step::WaitAll | Step::WaitEach => {}
                            Step::Compute { flops } => assert!(flops > 0.0),
                        }
                    }
                }
                assert_eq!(sent, received, "{operation:?} on {size} ranks");
            }
        }
    }
}
