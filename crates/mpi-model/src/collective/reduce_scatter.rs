//! Reduce-scatter algorithms. `blocks[r]` is the number of elements that rank `r` keeps.

use pdes_core::Rank;
use trace_mmap::Datatype;

use super::member::size_of;
use super::{Member, Schedule, Step, reduce, scatter};

/// A flat reduction of everything to rank 0, then a linear scatter.
///
/// 2 (P - 1) messages. Source: SimGrid's `default` for equal blocks.
pub(super) fn flat_then_scatter(member: Member, blocks: &[u64], datatype: Datatype) -> Schedule<'_> {
    let root = Rank::new(0);
    let reduced = reduce::flat(member, root, size_of(blocks.iter().sum(), datatype));
    let block = move |rank: u32| size_of(blocks[rank as usize], datatype);
    Box::new(reduced.chain(scatter::linear(member, root, block, block(member.rank))))
}

/// P - 1 rounds: in round `i` each rank sends the block of rank `r + i` there and receives its own from `r - i`.
///
/// Source: MPICH's pairwise exchange for long vectors.
pub(super) fn pair(member: Member, blocks: &[u64], datatype: Datatype) -> Schedule<'_> {
    let own = size_of(blocks[member.rank as usize], datatype);
    let round = move |i| {
        let to = member.after(i);
        Step::SendRecv {
            to: Rank::new(to),
            send_bytes: size_of(blocks[to as usize], datatype),
            from: Rank::new(member.before(i)),
            recv_bytes: own,
        }
    };
    Box::new((1..member.size).map(round))
}

/// Recursive doubling: in round `k`, partners at distance 2^k exchange everything except what the sender's side of
/// the tree has reduced already. Where a partner does not exist, those that have the data pass it down a binomial
/// tree to those of their side that have not.
///
/// Source: MPICH's algorithm for non-commutative operators, which SimGrid uses for all short vectors.
pub(super) fn recursive_doubling(member: Member, blocks: &[u64], datatype: Datatype) -> Schedule<'_> {
    let rounds = (0..u32::BITS).take_while(move |&bit| bit < 31 && (1_u32 << bit) < member.size);
    Box::new(rounds.flat_map(move |bit| doubling_round(member, blocks, datatype, bit)))
}

fn doubling_round(member: Member, blocks: &[u64], datatype: Datatype, bit: u32) -> Vec<Step> {
    let Member { rank, size } = member;
    let mask = 1_u32 << bit;
    let my_root = rank >> bit << bit;
    let partner = rank ^ mask;
    let partner_root = partner >> bit << bit;
    let all_but = |root: u32| {
        let outside = |index: usize| !(root as usize..(root + mask) as usize).contains(&index);
        let count =
            blocks.iter().enumerate().filter(|&(index, _)| outside(index)).map(|(_, count)| count).sum();
        size_of(count, datatype)
    };
    let received = all_but(partner_root);
    let mut steps = Vec::new();
    if partner < size {
        let partner = Rank::new(partner);
        let send_bytes = all_but(my_root);
        steps.push(Step::SendRecv { to: partner, send_bytes, from: partner, recv_bytes: received });
    }
    if partner_root + mask > size {
        let complete = i64::from(size) - i64::from(my_root) - i64::from(mask);
        steps.extend((0..bit).rev().filter_map(|lower| {
            let other = rank ^ (1 << lower);
            let has_data = i64::from(rank >> (lower + 1) << (lower + 1)) + complete;
            let (me, it) = (i64::from(rank), i64::from(other));
            let (peer, bytes) = (Rank::new(other), received);
            if it > me && me < has_data && it >= has_data {
                Some(Step::Send { to: peer, bytes })
            } else if it < me && it < has_data && me >= has_data {
                Some(Step::Recv { from: peer, bytes })
            } else {
                None
            }
        }));
    }
    steps
}
