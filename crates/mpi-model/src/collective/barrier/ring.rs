//! A barrier round a ring.

use pdes_core::Bytes;

use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// A token travels round the ring from rank 0, twice.
///
/// Cost: 2 P alpha. Source: Open MPI's `doublering`.
pub(in crate::collective) fn double_ring(member: Member<'_>) -> Schedule<'_> {
    build_schedule(move |steps| {
        if member.size == 1 {
            return;
        }
        for _ in 0..2 {
            if member.rank > 0 {
                steps.recv(member.before(1), Bytes::ZERO);
            }
            steps.send(member.after(1), Bytes::ZERO);
            if member.rank == 0 {
                steps.recv(member.before(1), Bytes::ZERO);
            }
        }
    })
}
