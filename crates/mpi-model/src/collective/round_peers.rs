//! Rounds in which each member sends to one peer and receives from one.

use pdes_core::Bytes;

use super::{Member, Schedule, Step, irecvs, send};

/// Destination and source of a member in a round.
pub(super) type RoundPeers = (u32, u32);

/// Returns the peers of round `i` on a ring: `i` ranks after, and `i` ranks before.
pub(super) fn ring_peers(member: Member<'_>, round: u32) -> RoundPeers {
    (member.after(round), member.before(round))
}

/// Returns the peers of round `i` of a pairwise exchange: if the number of members is a power of two, both are rank XOR
/// `i`; otherwise they are those of the ring, as in Open MPI and MPICH (SimGrid refuses such numbers).
pub(super) fn pairwise_peers(member: Member<'_>, round: u32) -> RoundPeers {
    if member.size.is_power_of_two() {
        (member.rank ^ round, member.rank ^ round)
    } else {
        ring_peers(member, round)
    }
}

/// Posts non-blocking receives from all sources, sends to the destinations one after the other, and waits for the receives.
pub(super) fn exchange_among<'a>(
    sources: impl Iterator<Item = u32> + Send + 'a,
    destinations: impl Iterator<Item = u32> + Send + 'a,
    bytes: Bytes,
) -> Schedule<'a> {
    let sends = destinations.map(move |to| send(to, bytes));
    Box::new(irecvs(sources, move |_| bytes).chain(sends).chain([Step::WaitAll]))
}

/// Returns the number with its `bits` low bits in reverse order.
pub(super) fn bit_reversed(number: u32, bits: u32) -> u32 {
    number.reverse_bits().checked_shr(u32::BITS - bits).unwrap_or(0)
}
