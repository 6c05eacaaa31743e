//! The dissemination barrier.

use pdes_core::Bytes;

use crate::collective::schedule_builder::build_schedule;
use crate::collective::{Member, Schedule};

/// In round `k` each rank signals the rank 2^k after it, and waits for the one 2^k before it.
///
/// Cost: ceil(log2 P) alpha. Source: Hensgen, Finkel and Manber, IJPP 17(1) 1988; MPICH's barrier and Open MPI's `bruck`.
pub(in crate::collective) fn dissemination(member: Member<'_>) -> Schedule<'_> {
    build_schedule(move |steps| {
        let distances = (0..u32::BITS).map(|bit| 1_u32 << bit).take_while(|&distance| distance < member.size);
        for distance in distances {
            steps.exchange(member.after(distance), Bytes::ZERO, member.before(distance), Bytes::ZERO);
        }
    })
}
