//! All-to-all by Bruck's algorithm.

use super::Args;
use crate::collective::blocks::repeated;
use crate::collective::{Member, Schedule, exchange};

/// Bruck's algorithm: in round `k`, all blocks whose distance has bit `k` set are sent 2^k ranks on, packed together.
///
/// Cost: ceil(log2 P) alpha + P/2 log2 P n beta. Source: Bruck et al., IEEE TPDS 8(11) 1997.
pub(in crate::collective) fn bruck<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let distances =
        (0..u32::BITS).map(|bit| 1_u32 << bit).take_while(move |&distance| distance < member.size);
    Box::new(distances.map(move |distance| {
        let bytes = repeated(args.sent.elements(0), blocks_with_bit(member.size, distance)).bytes();
        exchange(member.after(distance), bytes, member.before(distance), bytes)
    }))
}

/// Returns how many numbers below `size` have this bit set.
fn blocks_with_bit(size: u32, bit: u32) -> u64 {
    let (size, bit) = (u64::from(size), u64::from(bit));
    size / (2 * bit) * bit + (size % (2 * bit)).saturating_sub(bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_a_round_are_counted_in_closed_form() {
        for size in 1..70_u32 {
            for bit in [1_u32, 2, 4, 8, 16, 32, 64] {
                let counted = (0..size).filter(|block| block & bit != 0).count() as u64;
                assert_eq!(blocks_with_bit(size, bit), counted, "{size} {bit}");
            }
        }
    }
}
