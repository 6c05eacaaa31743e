//! Barrier algorithms.

use pdes_core::{Bytes, Rank};

use super::{Member, Schedule, Step, irecvs, isends};

/// Everybody reports to rank 0, which then releases everybody.
///
/// 2 (P - 1) messages of no bytes; two latencies. Source: Open MPI's `basic_linear`.
pub(super) fn linear<'a>(member: Member) -> Schedule<'a> {
    let root = Rank::new(0);
    let nothing = |_| Bytes::ZERO;
    if member.size == 1 {
        Box::new(std::iter::empty())
    } else if member.is(root) {
        let reports = irecvs(member.others(), nothing).chain([Step::WaitAll]);
        Box::new(reports.chain(isends(member.others(), nothing)).chain([Step::WaitAll]))
    } else {
        Box::new(
            [Step::Send { to: root, bytes: Bytes::ZERO }, Step::Recv { from: root, bytes: Bytes::ZERO }]
                .into_iter(),
        )
    }
}
