//! Algorithms of collective operations, as schedules of point-to-point steps.
//!
//! An algorithm is a function from a [`Member`] of the communicator and the arguments of the call to a [`Schedule`]: the
//! steps of this member, produced one by one as the replay asks for them. Most schedules are iterators; some depend on the
//! results of their steps ([`Answer`]). To add an algorithm, write such a function in the folder of its operation, cite its
//! source, and add a row to the operation's table `ALGORITHMS`, in the order of SimGrid's list; a [`Selection`]
//! then knows it by its name, and the decision tables of selectors may refer to it.
//!
//! The documentation of an algorithm describes the steps of all ranks; the function returns those of one member. Costs are
//! in Hockney's model: alpha is the latency of a message \[s\], beta the time per byte [s/B], P the number of ranks, n the
//! size of the vector or block \[B\], s the size of a segment \[B\], N the number of nodes, and C (or c) the number of
//! ranks per node. A virtual rank is a rank renumbered among those that take part in a phase; in rooted operations the root
//! has virtual rank 0.

mod allgather;
mod allgatherv;
mod allreduce;
mod alltoall;
mod alltoallv;
mod analytic;
mod arrival;
mod automatic;
mod barrier;
mod bcast;
mod blocks;
mod decision_table;
mod doubling;
pub(crate) mod file_access;
mod gather;
mod halving;
mod in_network;
mod layout;
mod measured;
mod member;
mod mesh;
mod operation;
mod pipeline;
mod reduce;
mod reduce_scatter;
mod round_peers;
pub(crate) mod runner;
mod scan;
mod scatter;
mod schedule_builder;
mod selection;
mod selector;
mod steps;
mod tree;
mod virtual_ranks;
pub(crate) mod window;

use pdes_core::{Bytes, Rank, SimDuration};
use trace_mmap::{Collective, Slot};

use crate::locks::{LockCall, LockName};

use allgather::Allgather;
use allgatherv::Allgatherv;
use allreduce::Allreduce;
use alltoall::Alltoall;
use alltoallv::Alltoallv;
use barrier::Barrier;
use bcast::Bcast;
use blocks::Blocks;
use gather::Gather;
use member::{Elements, size_of};
use operation::Selectable;
use reduce::Reduce;
use reduce_scatter::ReduceScatter;
use scatter::Scatter;

use crate::machine::{FileAccess, SwitchOperation};
pub use layout::Layout;
pub use measured::{MeasuredTimes, UnmeasuredError};
pub use member::Member;
pub use operation::Operation;
pub use selection::{Bounds, RankRequirement, Selection, SelectionError};
pub use selector::Selector;
pub(crate) use steps::concatenate;
pub use steps::{Answer, Schedule, Steps};

/// Access of a member to the memory of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OneSided {
    /// Transfers data of this size from there, and waits for them.
    Get(Bytes),
    /// Transfers data of this size to there, and waits for them.
    Accumulate(Bytes),
    /// Transfers data to there, whose arrival completes a request of the program, or that the target waits for.
    Put {
        /// Size.
        bytes: Bytes,
        /// Slot of the request.
        completes: Option<Slot>,
    },
    /// Waits for a lock, or gives it back, in the order of time.
    Lock {
        /// The lock.
        lock: LockName,
        /// The call.
        call: LockCall,
    },
}

/// A step of a member's schedule.
///
/// Peers are ranks of the communicator. Messages between two members match receives in posting order; announcements, puts
/// and out-of-band numbers match separately. Non-blocking steps create requests that belong to the operation;
/// [`Wait`](Step::Wait), [`WaitAll`](Step::WaitAll) and [`WaitEach`](Step::WaitEach) complete them.
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
    /// A combined send and receive; takes no time if both peers are the member itself.
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
    /// Completes one request of the operation: the `request`-th since the last [`WaitAll`](Step::WaitAll) or
    /// [`WaitEach`](Step::WaitEach), from 0.
    Wait {
        /// Number of the request.
        request: u32,
    },
    /// Completes all requests of the operation in order of completion.
    WaitAll,
    /// Completes all requests of the operation in posting order.
    WaitEach,
    /// Sends a token that carries this member's time. It arrives after the uncontended transfer time of a message of this
    /// size, or at once without a size. If a send of this size is synchronous, the step takes this member as long.
    SendToken {
        /// Destination.
        to: Rank,
        /// Size of the message, if a transfer is charged.
        bytes: Option<Bytes>,
    },
    /// Waits for a token.
    RecvToken {
        /// Source.
        from: Rank,
    },
    /// Advances the clock by the uncontended transfer times of messages that are sent one after the other.
    UncontendedTransfers {
        /// Peer.
        peer: Rank,
        /// Size of each message.
        bytes: Bytes,
        /// Number of messages.
        times: u64,
    },
    /// Fails: nobody measured the time of a call.
    Unmeasured {
        /// The operation.
        operation: Operation,
        /// The size \[B\].
        bytes: u64,
    },
    /// Computes \[flop\].
    Compute {
        /// Amount.
        flops: f64,
    },
    /// A step of an operation on the file of the call.
    Access {
        /// The access.
        access: FileAccess,
        /// Number of the step, from 0; the last ones may do nothing.
        number: u8,
    },
    /// Takes part in an operation of switches, until this member's part is over.
    Switches {
        /// Operation.
        operation: SwitchOperation<Rank>,
        /// Size of the vector.
        bytes: Bytes,
    },
    /// Advances the clock.
    Sleep {
        /// Duration.
        duration: SimDuration,
    },
    /// Announces the arrival of this member, by a message of one byte whose send is not waited for, and which only a
    /// [`RecvAnnouncement`](Step::RecvAnnouncement) receives.
    SendAnnouncement {
        /// Destination.
        to: Rank,
    },
    /// Polls for an announcement, at the cost of `MPI_Iprobe`. The answer is whether there was one.
    PollAnnouncement {
        /// Source.
        from: Rank,
    },
    /// A blocking receive of the next announcement.
    RecvAnnouncement {
        /// Source.
        from: Rank,
    },
    /// Discards the next announcement, whether or not it has arrived yet.
    DiscardAnnouncement {
        /// Source.
        from: Rank,
    },
    /// Sends two numbers out of band, which takes no time.
    SendOutOfBand {
        /// Destination.
        to: Rank,
        /// The numbers.
        numbers: [u32; 2],
    },
    /// Receives two numbers out of band; they are the answer. However long they take, this member's clock does not advance.
    RecvOutOfBand {
        /// Source.
        from: Rank,
    },
    /// Writes into the memory of a member: the transfer starts at once, and its completion is not waited for here.
    Put {
        /// Destination.
        to: Rank,
        /// Size.
        bytes: Bytes,
    },
    /// Completes a request of the program.
    Complete {
        /// Its slot.
        slot: Slot,
    },
    /// Accesses the memory of a member, which takes no part.
    OneSided {
        /// The member.
        of: Rank,
        /// The access.
        access: OneSided,
    },
    /// Posts a request that completes when a [`Put`](Step::Put) has been written.
    ExpectPut {
        /// Origin of the put.
        from: Rank,
        /// Size.
        bytes: Bytes,
    },
}

/// Returns the steps of one member of an operation.
///
/// # Panics
/// If a vector of the operation has fewer entries than there are members.
pub fn schedule<'a>(member: Member<'a>, operation: &'a Collective) -> Schedule<'a> {
    match *operation {
        Collective::Barrier => Barrier::selected(member, ()),
        Collective::Bcast { count, root, datatype } => {
            Bcast::selected(member, bcast::Args { root: root.get(), data: Elements::new(count, datatype) })
        }
        Collective::Reduce { count, flops, root, datatype } => {
            let args = reduce::Args { root: root.get(), data: Elements::new(count, datatype) };
            Box::new(Reduce::selected(member, args).then(reduction_step(flops)))
        }
        Collective::Allreduce { count, flops, datatype } => {
            Box::new(Allreduce::selected(member, Elements::new(count, datatype)).then(reduction_step(flops)))
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type } => {
            let sent = Blocks::equal(send_count, send_type);
            Alltoall::selected(
                member,
                alltoall::Args { sent, received: Blocks::equal(recv_count, recv_type) },
            )
        }
        Collective::Alltoallv { ref send_counts, ref recv_counts, send_type, recv_type } => {
            let sent = Blocks::per_rank(send_counts, send_type);
            let received = Blocks::per_rank(recv_counts, recv_type);
            Alltoallv::selected(member, alltoall::Args { sent, received })
        }
        Collective::Gather { send_count, recv_count, root, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            let received = Elements::new(recv_count, recv_type);
            Gather::selected(member, gather::Args { root: root.get(), sent, received })
        }
        Collective::Gatherv { send_count, root, send_type, .. } if member.selection.is_analytic() => {
            analytic::gatherv(member, root.get(), size_of(send_count, send_type))
        }
        Collective::Gatherv { send_count, ref recv_counts, root, send_type, recv_type } => {
            let received = move |rank: u32| size_of(recv_counts[rank as usize], recv_type);
            gather::linear(member, root.get(), size_of(send_count, send_type), received)
        }
        Collective::Scatter { send_count, recv_count, root, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            let received = Elements::new(recv_count, recv_type);
            Scatter::selected(member, scatter::Args { root: root.get(), sent, received })
        }
        Collective::Scatterv { ref send_counts, recv_count, root, send_type, recv_type } => {
            let sent = move |rank: u32| size_of(send_counts[rank as usize], send_type);
            if member.selection.is_analytic() {
                return analytic::scatterv(member, root.get(), sent);
            }
            scatter::linear(member, root.get(), sent, size_of(recv_count, recv_type))
        }
        Collective::Allgather { send_count, recv_count, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            Allgather::selected(
                member,
                allgather::Args { sent, blocks: Blocks::equal(recv_count, recv_type) },
            )
        }
        Collective::Allgatherv { send_count, ref recv_counts, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            let blocks = Blocks::per_rank(recv_counts, recv_type);
            Allgatherv::selected(member, allgather::Args { sent, blocks })
        }
        Collective::ReduceScatter { ref recv_counts, flops, datatype } => {
            let blocks = Blocks::per_rank(recv_counts, datatype);
            Box::new(ReduceScatter::selected(member, blocks).then(reduction_step(flops)))
        }
        Collective::Scan { count, flops, datatype } | Collective::Exscan { count, flops, datatype } => {
            let algorithm = if member.selection.is_analytic() { analytic::scan } else { scan::linear };
            Box::new(algorithm(member, size_of(count, datatype)).then(reduction_step(flops)))
        }
    }
}

/// Returns a blocking send.
fn send(to: u32, bytes: Bytes) -> Step {
    Step::Send { to: Rank::new(to), bytes }
}

/// Returns a blocking receive.
fn recv(from: u32, bytes: Bytes) -> Step {
    Step::Recv { from: Rank::new(from), bytes }
}

/// Returns a non-blocking send.
fn isend(to: u32, bytes: Bytes) -> Step {
    Step::Isend { to: Rank::new(to), bytes }
}

/// Returns a non-blocking receive.
fn irecv(from: u32, bytes: Bytes) -> Step {
    Step::Irecv { from: Rank::new(from), bytes }
}

/// Returns a combined send and receive.
fn exchange(to: u32, send_bytes: Bytes, from: u32, recv_bytes: Bytes) -> Step {
    Step::SendRecv { to: Rank::new(to), send_bytes, from: Rank::new(from), recv_bytes }
}

/// Returns non-blocking sends of `bytes(peer)` to each of these ranks.
fn isends<'a>(
    to: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    to.map(move |to| isend(to, bytes(to)))
}

/// Returns non-blocking receives of `bytes(peer)` from each of these ranks.
fn irecvs<'a>(
    from: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    from.map(move |from| irecv(from, bytes(from)))
}

/// Returns the computation of a reduction, which follows the communication.
fn reduction_step(flops: f64) -> impl Iterator<Item = Step> + Send {
    (flops != 0.0).then_some(Step::Compute { flops }).into_iter()
}

#[cfg(test)]
mod tests;
