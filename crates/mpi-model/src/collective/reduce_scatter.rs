//! Reduce-scatter algorithms. Their computation is charged by the caller.

use pdes_core::{Bytes, Rank};
use trace_mmap::Datatype;

use super::member::{Elements, size_of};
use super::operation::{Entry, Operation};
use super::{Member, Schedule, Step, exchange, reduce, scatter};

/// The arguments of a reduce-scatter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args<'a> {
    /// The number of elements that each rank keeps.
    pub(super) blocks: &'a [u64],
    pub(super) datatype: Datatype,
}

impl Args<'_> {
    /// The number of all elements.
    fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }

    /// The size of a rank's block.
    fn block(&self, rank: u32) -> Bytes {
        size_of(self.blocks[rank as usize], self.datatype)
    }
}

pub(super) type Algorithm = for<'a> fn(Member<'a>, Args<'a>) -> Schedule<'a>;

pub(super) const ALGORITHMS: &[Entry<Algorithm>] = &[
    Entry::new("default", of_simgrid),
    Entry::new("mpich_pair", pair),
    Entry::new("mpich_rdb", recursive_doubling),
];

/// The algorithm that the communicator uses.
pub(super) fn selected<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let bytes = size_of(args.total(), args.datatype).get();
    let place = member.selection.place(Operation::ReduceScatter, member.size, bytes);
    (ALGORITHMS[place].algorithm)(member, args)
}

fn of_simgrid<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let algorithm = match () {
        () if args.blocks.windows(2).all(|pair| pair[0] == pair[1]) => linear_then_scatter,
        () if args.total() > 524_288 => pair,
        () => recursive_doubling,
    };
    algorithm(member, args)
}

/// A linear reduction of everything to rank 0, then a linear scatter.
///
/// 2 (P - 1) messages. Source: SimGrid's `default` for equal blocks.
pub(super) fn linear_then_scatter<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let everything = Elements::new(args.total(), args.datatype);
    let reduced = reduce::linear(member, reduce::Args { root: 0, data: everything });
    let block = move |rank| args.block(rank);
    Box::new(reduced.chain(scatter::linear(member, 0, block, block(member.rank))))
}

/// P - 1 rounds: in round `i` each rank sends the block of rank `r + i` there and receives its own from `r - i`.
///
/// Source: MPICH's pairwise exchange for long vectors.
pub(super) fn pair<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let own = args.block(member.rank);
    let round = move |i| {
        let to = member.after(i);
        exchange(to, args.block(to), member.before(i), own)
    };
    Box::new((1..member.size).map(round))
}

/// Recursive doubling: in round `k`, partners at distance 2^k exchange everything except what the sender's side of
/// the tree has reduced already. Where a partner does not exist, those that have the data pass it down a binomial
/// tree to those of their side that have not.
///
/// Source: MPICH's algorithm for non-commutative operators, which SimGrid uses for all short vectors.
pub(super) fn recursive_doubling<'a>(member: Member<'a>, args: Args<'a>) -> Schedule<'a> {
    let rounds = (0..u32::BITS).take_while(move |&bit| bit < 31 && (1_u32 << bit) < member.size);
    Box::new(rounds.flat_map(move |bit| doubling_round(member, args, bit)))
}

fn doubling_round(member: Member<'_>, args: Args<'_>, bit: u32) -> Vec<Step> {
    let Member { rank, size, .. } = member;
    let mask = 1_u32 << bit;
    let my_root = rank >> bit << bit;
    let partner = rank ^ mask;
    let partner_root = partner >> bit << bit;
    let all_but = |root: u32| {
        let outside = |index: usize| !(root as usize..(root + mask) as usize).contains(&index);
        let count =
            args.blocks.iter().enumerate().filter(|&(index, _)| outside(index)).map(|(_, count)| count).sum();
        size_of(count, args.datatype)
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
