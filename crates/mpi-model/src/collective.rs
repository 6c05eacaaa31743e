//! Collective operations as schedules of point-to-point steps.
//!
//! An algorithm is a function from a [`Member`] and the arguments of the call to a [`Schedule`]: the steps of this
//! member, made one by one as the replay asks for them. Most are iterators; some listen to what their steps find out
//! ([`Answer`]). To add one, write such a function in the folder of its operation, cite where it comes from, and give it
//! a row in the operation's table `ALGORITHMS`, where SimGrid's list has it; a [`Selection`] then knows it by its name,
//! and the tables of selectors may name it.

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
mod doubling;
mod gather;
mod halving;
mod layout;
mod member;
mod mesh;
mod operation;
mod pipeline;
mod places;
mod reduce;
mod reduce_scatter;
mod rounds;
mod scan;
mod scatter;
mod script;
mod selection;
mod selector;
mod steps;
mod tree;

use pdes_core::{Bytes, Rank, SimDuration};
use trace_mmap::Collective;

use blocks::Blocks;
use member::{Elements, size_of};

pub use layout::Layout;
pub use member::Member;
pub use operation::Operation;
pub use selection::{Bounds, Needs, Selection, SelectionError};
pub use selector::Selector;
pub use steps::{Answer, Schedule, Steps};

/// One step of a member.
///
/// Peers are numbered within the communicator. Messages from one member to another meet its receives in the order in
/// which both are posted; announcements and puts do so apart. Non-blocking steps make requests that belong to the
/// operation; [`Wait`](Step::Wait), [`WaitAll`](Step::WaitAll) and [`WaitEach`](Step::WaitEach) complete them.
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
    /// Completes one request of the operation: the `request`-th since the last [`WaitAll`](Step::WaitAll) or
    /// [`WaitEach`](Step::WaitEach), from 0.
    Wait {
        /// Its number.
        request: u32,
    },
    /// Completes all requests of the operation in the order in which they end.
    WaitAll,
    /// Completes all requests of the operation in the order in which they were made.
    WaitEach,
    /// Tells another member the time, as a message of this size alone on its way would, or at once. A size for which a
    /// sender waits until it is received takes this member as long.
    Tell {
        /// Whom.
        to: Rank,
        /// The size of the message, or none.
        bytes: Option<Bytes>,
    },
    /// Waits until another member tells the time.
    Hear {
        /// Who.
        from: Rank,
    },
    /// Lets the time pass that messages take one after the other, alone on their way.
    Pass {
        /// To whom.
        peer: Rank,
        /// The size of each.
        bytes: Bytes,
        /// How many.
        times: u64,
    },
    /// Computes \[flop\].
    Compute {
        /// Amount.
        flops: f64,
    },
    /// Lets time pass.
    Sleep {
        /// How much.
        duration: SimDuration,
    },
    /// Announces that this member is here, by a message of one byte for which nobody waits here, and which only a
    /// [`Greet`](Step::Greet) receives.
    Announce {
        /// To whom.
        to: Rank,
    },
    /// Looks whether an announcement is there, at the price of `MPI_Iprobe`. The answer says whether.
    Look {
        /// Whose.
        from: Rank,
    },
    /// A blocking receive of the next announcement.
    Greet {
        /// Whose.
        from: Rank,
    },
    /// Leaves the next announcement alone, whether or not it is there yet.
    Ignore {
        /// Whose.
        from: Rank,
    },
    /// Lets a member know two numbers, which takes no time.
    Assign {
        /// Whom.
        to: Rank,
        /// The numbers.
        numbers: [u32; 2],
    },
    /// Gets two numbers to know, which are the answer. However long that takes, it takes no time of this member.
    Learn {
        /// From whom.
        from: Rank,
    },
    /// Writes into the memory of a member: the data flow at once, and nobody here waits for them.
    Put {
        /// Whose.
        to: Rank,
        /// Size.
        bytes: Bytes,
    },
    /// Makes a request of what a [`Put`](Step::Put) writes.
    Accept {
        /// Who writes.
        from: Rank,
        /// Size.
        bytes: Bytes,
    },
}

/// Returns the steps of one member of an operation.
///
/// # Panics
/// Where a vector of the operation has fewer entries than there are members.
pub fn schedule<'a>(member: Member<'a>, operation: &'a Collective) -> Schedule<'a> {
    match *operation {
        Collective::Barrier => barrier::selected(member),
        Collective::Bcast { count, root, datatype } => {
            bcast::selected(member, bcast::Args { root: root.get(), data: Elements::new(count, datatype) })
        }
        Collective::Reduce { count, flops, root, datatype } => {
            let args = reduce::Args { root: root.get(), data: Elements::new(count, datatype) };
            Box::new(reduce::selected(member, args).then(reduction(flops)))
        }
        Collective::Allreduce { count, flops, datatype } => {
            Box::new(allreduce::selected(member, Elements::new(count, datatype)).then(reduction(flops)))
        }
        Collective::Alltoall { send_count, recv_count, send_type, recv_type } => {
            let sent = Blocks::equal(send_count, send_type);
            alltoall::selected(
                member,
                alltoall::Args { sent, received: Blocks::equal(recv_count, recv_type) },
            )
        }
        Collective::Alltoallv { ref send_counts, ref recv_counts, send_type, recv_type } => {
            let sent = Blocks::each(send_counts, send_type);
            let received = Blocks::each(recv_counts, recv_type);
            alltoallv::selected(member, alltoall::Args { sent, received })
        }
        Collective::Gather { send_count, recv_count, root, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            let received = Elements::new(recv_count, recv_type);
            gather::selected(member, gather::Args { root: root.get(), sent, received })
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
            scatter::selected(member, scatter::Args { root: root.get(), sent, received })
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
            allgather::selected(
                member,
                allgather::Args { sent, blocks: Blocks::equal(recv_count, recv_type) },
            )
        }
        Collective::Allgatherv { send_count, ref recv_counts, send_type, recv_type } => {
            let sent = Elements::new(send_count, send_type);
            let blocks = Blocks::each(recv_counts, recv_type);
            allgatherv::selected(member, allgather::Args { sent, blocks })
        }
        Collective::ReduceScatter { ref recv_counts, flops, datatype } => {
            let blocks = Blocks::each(recv_counts, datatype);
            Box::new(reduce_scatter::selected(member, blocks).then(reduction(flops)))
        }
        Collective::Scan { count, flops, datatype } | Collective::Exscan { count, flops, datatype } => {
            let algorithm = if member.selection.is_analytic() { analytic::scan } else { scan::linear };
            Box::new(algorithm(member, size_of(count, datatype)).then(reduction(flops)))
        }
    }
}

/// A blocking send.
fn send(to: u32, bytes: Bytes) -> Step {
    Step::Send { to: Rank::new(to), bytes }
}

/// A blocking receive.
fn recv(from: u32, bytes: Bytes) -> Step {
    Step::Recv { from: Rank::new(from), bytes }
}

/// A non-blocking send.
fn isend(to: u32, bytes: Bytes) -> Step {
    Step::Isend { to: Rank::new(to), bytes }
}

/// A non-blocking receive.
fn irecv(from: u32, bytes: Bytes) -> Step {
    Step::Irecv { from: Rank::new(from), bytes }
}

/// A combined send and receive.
fn exchange(to: u32, send_bytes: Bytes, from: u32, recv_bytes: Bytes) -> Step {
    Step::SendRecv { to: Rank::new(to), send_bytes, from: Rank::new(from), recv_bytes }
}

/// Sends `bytes(peer)` to each of these ranks without blocking.
fn isends<'a>(
    to: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    to.map(move |to| isend(to, bytes(to)))
}

/// Receives `bytes(peer)` from each of these ranks without blocking.
fn irecvs<'a>(
    from: impl Iterator<Item = u32> + Send + 'a,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    from.map(move |from| irecv(from, bytes(from)))
}

/// The reduction's computation, after the operation has completed.
fn reduction(flops: f64) -> impl Iterator<Item = Step> + Send {
    (flops != 0.0).then_some(Step::Compute { flops }).into_iter()
}

#[cfg(test)]
mod tests;
