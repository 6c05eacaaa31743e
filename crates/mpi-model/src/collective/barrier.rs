//! Barrier algorithms.

use pdes_core::Bytes;

use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, irecvs, isends, member, recv, send};

pub(super) type Algorithm = for<'a> fn(Member<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] =
    &[Entry::new("default", linear), Entry::new("ompi_basic_linear", linear)];

/// The algorithm that the communicator uses.
pub(super) fn selected(member: Member<'_>) -> Schedule<'_> {
    let place = member.selection.place(Operation::Barrier, member.size, 0);
    (ALGORITHMS[place].algorithm)(member)
}

/// Everybody reports to rank 0, which then releases everybody.
///
/// 2 (P - 1) messages of no bytes; two latencies. Source: Open MPI's `basic_linear`.
pub(super) fn linear(member: Member<'_>) -> Schedule<'_> {
    let empty = |_| Bytes::ZERO;
    if member.size == 1 {
        member::nothing()
    } else if member.rank == 0 {
        let reports = irecvs(member.others(), empty).chain([Step::WaitAll]);
        Box::new(reports.chain(isends(member.others(), empty)).chain([Step::WaitAll]))
    } else {
        Box::new([send(0, Bytes::ZERO), recv(0, Bytes::ZERO)].into_iter())
    }
}
