//! Allgatherv round a ring in pieces.

use pdes_core::Bytes;

use crate::collective::allgather::Args;
use crate::collective::{Member, Schedule, exchange, recv, send};

/// Minimum size of a piece \[B\].
const PIECE: u64 = 32_768 * 8;

/// Each rank forwards to its right neighbour what it received from its left one, beginning with its own block, in pieces as
/// large as the smallest block, but of at least 256 KiB. Empty blocks are not sent.
///
/// Cost: P - 1 rounds if blocks are equal: (P - 1)(alpha + n beta). Source: MPICH's ring for allgatherv.
pub(in crate::collective) fn segmented_ring<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let smallest = (0..member.size).map(|rank| args.blocks.elements(rank).count).min().unwrap_or(0);
    let unit = args.blocks.elements(0).element_size.get().max(1);
    let least = if smallest.saturating_mul(unit) < PIECE { PIECE / unit } else { smallest };
    let (right, left) = (member.after(1), member.before(1));
    let mut out = pieces(member, args, 0, least.max(1));
    let mut into = pieces(member, args, 1, least.max(1));
    let rounds = std::iter::from_fn(move || match (out.next(), into.next()) {
        (None, None) => None,
        (sent, received) => Some((sent.flatten(), received.flatten())),
    });
    Box::new(rounds.filter_map(move |round| match round {
        (Some(sent), Some(received)) => Some(exchange(right, sent, left, received)),
        (Some(sent), None) => Some(send(right, sent)),
        (None, Some(received)) => Some(recv(left, received)),
        (None, None) => None,
    }))
}

/// Returns the pieces of P - 1 blocks, beginning with that of the rank `distance` before this one; an empty block is one
/// round without a message.
fn pieces<'a>(
    member: Member<'a>,
    args: Args<'a>,
    distance: u32,
    piece: u64,
) -> impl Iterator<Item = Option<Bytes>> + Send + 'a {
    (1..member.size).flat_map(move |block| {
        let block = args.blocks.elements(member.before(distance + block - 1));
        (0..block.count.div_ceil(piece).max(1)).map(move |place| {
            let count = (block.count - place * piece).min(piece);
            (count > 0).then(|| block.with_count(count).bytes())
        })
    })
}
