//! Allgather by exchanges of pairs of blocks between neighbours.

use pdes_core::Bytes;

use super::{Args, direct};
use crate::collective::{Member, Schedule, exchange};

/// Neighbour exchange: pairs of ranks exchange their blocks, then each rank alternates between its two neighbours and
/// exchanges the two blocks that it received last. For an odd P this is [`direct::ring`], as in SimGrid.
///
/// Cost: P/2 rounds; (P/2) alpha + (P - 1) n beta. Source: Open MPI; Chen et al., HPC Asia 2005.
pub(in crate::collective) fn neighbor_exchange<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    if size % 2 == 1 {
        return direct::ring(member, args);
    }
    let even = rank.is_multiple_of(2);
    let neighbor =
        move |round: u32| if even == round.is_multiple_of(2) { member.after(1) } else { member.before(1) };
    let first =
        exchange(neighbor(0), args.blocks.bytes_of(rank), neighbor(0), args.blocks.bytes_of(neighbor(0)));
    // The pair of blocks that arrives in a round: at growing distances from this rank's pair, alternately above and below.
    let pair = move |round: u32| -> Bytes {
        let (own, distance) = (rank - rank % 2, round.div_ceil(2) * 2);
        let up = even == round.is_multiple_of(2);
        let shift = if up { distance } else { size - distance };
        let first = (u64::from(own) + u64::from(shift)) % u64::from(size);
        args.blocks.span(first as u32, 2).bytes()
    };
    let rounds = (1..size / 2).map(move |round| {
        let sent = if round == 1 { args.blocks.span(rank - rank % 2, 2).bytes() } else { pair(round - 1) };
        exchange(neighbor(round), sent, neighbor(round), pair(round))
    });
    Box::new([first].into_iter().chain(rounds))
}
