//! All-to-all algorithms for blocks of any sizes.

use pdes_core::Bytes;
use trace_mmap::Datatype;

use super::member::size_of;
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecvs, isends};

/// The arguments of an alltoallv: numbers of elements, one for each rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    pub(super) sent: &'a [u64],
    pub(super) received: &'a [u64],
    pub(super) send_type: Datatype,
    pub(super) recv_type: Datatype,
}

impl Args<'_> {
    /// The size of the block for a rank.
    fn to(&self, rank: u32) -> Bytes {
        size_of(self.sent[rank as usize], self.send_type)
    }

    /// The size of the block from a rank.
    fn from(&self, rank: u32) -> Bytes {
        size_of(self.received[rank as usize], self.recv_type)
    }
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[Entry::new("default", linear)];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let place = member.selection.place(Operation::Alltoallv, member.size, 0);
    (ALGORITHMS[place].algorithm)(member, args)
}

/// All receives in the order of ranks, then all sends, with a block size for each peer.
///
/// P (P - 1) messages at once. Source: SimGrid's `default` alltoallv.
fn linear<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let receives = irecvs(member.others(), move |rank| args.from(rank));
    let sends = isends(member.others(), move |rank| args.to(rank));
    Box::new(receives.chain(sends).chain([Step::WaitAll]))
}
