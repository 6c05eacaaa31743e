//! Rounds in which members send and receive at the same time.

use pdes_core::Bytes;

use super::{Member, Schedule, Step, irecvs, send};

/// To whom a member sends in a round, and from whom it receives.
pub(super) type Partners = (u32, u32);

/// Round `i` of a ring: `i` places on, and `i` places back.
pub(super) fn round_the_ring(member: Member<'_>, round: u32) -> Partners {
    (member.after(round), member.before(round))
}

/// Round `i` in pairs: on a power of two both are the member whose number differs in the bits of `i`; elsewhere the
/// round is that of a ring, as in the pairwise exchanges of Open MPI and MPICH (SimGrid refuses such numbers).
pub(super) fn in_pairs(member: Member<'_>, round: u32) -> Partners {
    if member.size.is_power_of_two() {
        (member.rank ^ round, member.rank ^ round)
    } else {
        round_the_ring(member, round)
    }
}

/// Receives from all of these without blocking, sends to all of these one after the other, waits for the receives.
pub(super) fn among<'a>(
    sources: impl Iterator<Item = u32> + Send + 'a,
    destinations: impl Iterator<Item = u32> + Send + 'a,
    bytes: Bytes,
) -> Schedule<'a> {
    let sends = destinations.map(move |to| send(to, bytes));
    Box::new(irecvs(sources, move |_| bytes).chain(sends).chain([Step::WaitAll]))
}

/// The number with its `bits` low bits in reverse order.
pub(super) fn mirrored(number: u32, bits: u32) -> u32 {
    number.reverse_bits().checked_shr(u32::BITS - bits).unwrap_or(0)
}
