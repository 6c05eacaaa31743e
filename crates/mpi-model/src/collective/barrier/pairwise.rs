//! Barriers in which pairs exchange at doubling distances.

use pdes_core::Bytes;

use crate::collective::schedule_builder::{ScheduleBuilder, build_schedule};
use crate::collective::{Member, Schedule};

/// The ranks beyond the largest power of two report to a partner below it, the others exchange in pairs at doubling
/// distances, and the partners release the ranks beyond.
///
/// Cost: (floor(log2 P) + 2) alpha. Source: Open MPI's `recursivedoubling` and MVAPICH2's pairwise barrier, in which the
/// ranks beyond report by an exchange whose answer is the release.
pub(in crate::collective) fn recursive_doubling(member: Member<'_>) -> Schedule<'_> {
    build_schedule(move |steps| folded(member, steps))
}

fn folded(member: Member<'_>, steps: &mut ScheduleBuilder) {
    let Member { rank, size, .. } = member;
    let core = 1 << size.ilog2();
    let (beyond, empty) = (size - core, Bytes::ZERO);
    if rank >= core {
        steps.exchange(rank - core, empty, rank - core, empty);
        return;
    }
    if rank < beyond {
        steps.recv(rank + core, empty);
    }
    for bit in 0..core.ilog2() {
        let partner = rank ^ 1 << bit;
        steps.exchange(partner, empty, partner, empty);
    }
    if rank < beyond {
        steps.send(rank + core, empty);
    }
}

/// Two ranks exchange a message.
///
/// Cost: alpha. Source: Open MPI's `two_procs`.
pub(in crate::collective) fn two_procs(member: Member<'_>) -> Schedule<'_> {
    build_schedule(move |steps| {
        if member.size == 2 {
            let other = 1 - member.rank;
            steps.exchange(other, Bytes::ZERO, other, Bytes::ZERO);
        }
    })
}
