//! Allgather algorithms for blocks of any sizes.

use pdes_core::Bytes;
use trace_mmap::Datatype;

use super::member::{Elements, size_of};
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecv, isend};

/// The arguments of an allgatherv.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    /// The block that this member contributes.
    pub(super) sent: Elements,
    /// The number of elements of each rank's block.
    pub(super) received: &'a [u64],
    pub(super) recv_type: Datatype,
}

impl Args<'_> {
    /// The size of a rank's block.
    fn block(&self, rank: u32) -> Bytes {
        size_of(self.received[rank as usize], self.recv_type)
    }
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let all = size_of(args.received.iter().sum(), args.recv_type).get();
    let place = member.selection.place(Operation::Allgatherv, member.size, all / u64::from(member.size));
    (ALGORITHMS[place].algorithm)(member, args)
}

fn linear<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    all_at_once(member, args.sent.bytes(), move |rank| args.block(rank))
}

/// Everybody sends its block to everybody, in the order of ranks, sends and receives alternating.
///
/// P (P - 1) messages at once. Source: SimGrid's `default`.
pub(super) fn all_at_once<'a>(
    member: Member<'a>,
    sent: Bytes,
    received: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    let exchange = move |other| [isend(other, sent), irecv(other, received(other))];
    Box::new(member.others().flat_map(exchange).chain([Step::WaitAll]))
}
