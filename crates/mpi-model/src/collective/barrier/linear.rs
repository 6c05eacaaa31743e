//! A barrier at rank 0.

use pdes_core::Bytes;

use crate::collective::{Member, Schedule, Step, irecvs, isends, member, recv, send};

/// All ranks report to rank 0, which then releases them.
///
/// Cost: 2 (P - 1) messages of no bytes; 2 alpha. Source: Open MPI's `basic_linear`.
pub(in crate::collective) fn linear(member: Member<'_>) -> Schedule<'_> {
    let empty = |_| Bytes::ZERO;
    if member.size == 1 {
        member::empty_schedule()
    } else if member.rank == 0 {
        let reports = irecvs(member.others(), empty).chain([Step::WaitAll]);
        Box::new(reports.chain(isends(member.others(), empty)).chain([Step::WaitAll]))
    } else {
        Box::new([send(0, Bytes::ZERO), recv(0, Bytes::ZERO)].into_iter())
    }
}
