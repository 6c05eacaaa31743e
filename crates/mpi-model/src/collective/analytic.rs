//! Collective operations in closed form (selector `analytic`): members exchange tokens with times instead of data.
//!
//! An alltoall on 16,384 ranks has 268 million messages; here it takes 32,766 tokens and a few sums. Each operation costs
//! as much as the algorithm in the table with uncontended transfers. `t(d, n)` is the time of a message of `n` bytes to the
//! member `d` ranks further, `x(d, n)` to the member whose rank differs in bit `d`, both including the overheads of sender
//! and receiver. `K` is `ceil(log2 P)`, and `k` runs from 0 to `K - 1`; in sums of `x`, `K` is `floor(log2 P)`, and if `P`
//! is no power of two, the members beyond it fold in before and get the result after: `f(n)` is a message each way.
//!
//! | operation | dependencies | cost | algorithm |
//! |---|---|---|---|
//! | barrier | all for all | `sum_k t(2^k, 0)` | dissemination |
//! | bcast, scatter | each for its parent in a binomial tree | `t` of each edge | binomial tree |
//! | reduce, gather | each for its children in a binomial tree | `t` of each edge | binomial tree |
//! | gatherv, scatterv | the root for all, each for the root | `t` of each edge | linear |
//! | allreduce, up to 2 KiB | all for all | `sum_k x(2^k, n) + f(n)` | recursive doubling |
//! | allreduce, beyond | all for all | `2 sum_k x(2^k, n 2^(k-K)) + f(n)` | Rabenseifner |
//! | allgather(v) | all for all | `sum_k t(2^k, n min(2^k, P - 2^k))`, `n` the mean block | Bruck |
//! | alltoall, up to 256 bytes | all for all | `sum_k t(2^k, n P / 2)` | Bruck |
//! | alltoall(v), else | all for all | `sum_k c_k t(2^k, n)`, where `c_k` members are `2^k` to `2^(k+1) - 1` ranks away | pairwise exchange |
//! | reduce_scatter | all for all | `sum_k x(2^k, n 2^(k-K)) + f(n)` | recursive halving |
//! | scan, exscan | each for those `2^k` ranks before | `t` of each edge | Hillis and Steele |
//!
//! If all members wait for all, the times of entry travel up and down one binomial tree, which costs nothing itself. Rooted
//! operations do not make leaves wait for each other. Sources of the algorithms: Thakur, Rabenseifner, Gropp, "Optimization
//! of collective communication operations in MPICH", IJHPCA 19(1), 2005; Hillis, Steele, CACM 29(12), 1986.

use pdes_core::{Bytes, Rank};

use super::blocks::{Blocks, repeated};
use super::member::Elements;
use super::{Member, Schedule, Step, allgather, alltoall, bcast, gather, reduce, scatter};

/// Largest size of an allreduce that costs as much as recursive doubling \[B\]; MPICH's limit.
const SHORT_ALLREDUCE: u64 = 2048;
/// Largest block of an alltoall that costs as much as Bruck's algorithm \[B\]; MPICH's limit.
const SHORT_ALLTOALL: u64 = 256;

pub(super) fn send_token(to: u32, bytes: Option<Bytes>) -> Step {
    Step::SendToken { to: Rank::new(to), bytes }
}

pub(super) fn recv_token(from: u32) -> Step {
    Step::RecvToken { from: Rank::new(from) }
}

/// Returns the powers of two below the number of members.
fn distances(member: Member<'_>) -> impl DoubleEndedIterator<Item = u32> + Send + use<> {
    let rounds = member.size.next_power_of_two().trailing_zeros();
    (0..rounds).map(|round| 1 << round)
}

/// A binomial tree as seen by one member. The children of a member are its relative rank plus the powers of two below its
/// lowest set bit.
#[derive(Clone, Copy)]
pub(super) struct BinomialTree<'a> {
    member: Member<'a>,
    root: u32,
    relative: u32,
}

impl<'a> BinomialTree<'a> {
    pub(super) fn new(member: Member<'a>, root: u32) -> Self {
        Self { member, root, relative: member.before(root) }
    }

    fn absolute(self, relative: u32) -> u32 {
        ((u64::from(relative) + u64::from(self.root)) % u64::from(self.member.size)) as u32
    }

    fn parent(self) -> Option<u32> {
        let relative = self.relative;
        (relative != 0).then(|| self.absolute(relative & (relative - 1)))
    }

    /// Returns the children, smallest subtree first, each with the number of members of its subtree.
    fn children(self) -> impl DoubleEndedIterator<Item = (u32, u32)> + Send + 'a {
        let lowest =
            if self.relative == 0 { self.member.size } else { self.relative & self.relative.wrapping_neg() };
        let below = distances(self.member).filter(move |&bit| bit < lowest);
        let child = move |bit| (self.relative + bit, bit);
        below
            .map(child)
            .filter(move |&(child, _)| child < self.member.size)
            .map(move |(child, bit)| (self.absolute(child), bit.min(self.member.size - child)))
    }

    /// Returns the number of members of this member's subtree, itself included.
    fn subtree(self) -> u32 {
        let (relative, size) = (self.relative, self.member.size);
        if relative == 0 { size } else { (relative & relative.wrapping_neg()).min(size - relative) }
    }

    /// Waits for all children, then sends a token to the parent, which arrives after the transfer of `bytes(members of the
    /// subtree)`.
    pub(super) fn up(self, bytes: impl Fn(u32) -> Option<Bytes>) -> impl Iterator<Item = Step> + Send + 'a {
        let told = self.parent().map(|parent| send_token(parent, bytes(self.subtree())));
        self.children().map(|(child, _)| recv_token(child)).chain(told)
    }

    /// Waits for the parent, then sends tokens to all children, largest subtree first.
    pub(super) fn down(
        self,
        bytes: impl Fn(u32) -> Option<Bytes> + Send + 'a,
    ) -> impl Iterator<Item = Step> + Send + 'a {
        let heard = self.parent().map(recv_token).into_iter();
        heard.chain(self.children().rev().map(move |(child, subtree)| send_token(child, bytes(subtree))))
    }
}

/// Waits for all members, then advances the clock by these transfers.
pub(super) fn after_synchronization<'a>(
    member: Member<'a>,
    costs: impl Iterator<Item = Step> + Send + 'a,
) -> Schedule<'a> {
    let tree = BinomialTree::new(member, 0);
    Box::new(tree.up(|_| None).chain(tree.down(|_| None)).chain(costs))
}

/// Returns transfers of `bytes(distance)` to the members at each power of two.
fn doubling_transfers<'a>(
    member: Member<'a>,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    distances(member).map(move |distance| uncontended_transfers(member.after(distance), bytes(distance), 1))
}

/// Returns `times` transfers of `bytes(bit)` to each member whose rank differs in one bit, and if the number of members is
/// no power of two, one of the whole to a neighbour and back.
fn bit_transfers<'a>(
    member: Member<'a>,
    times: u64,
    whole: Bytes,
    bytes: impl Fn(u32) -> Bytes + Send + 'a,
) -> impl Iterator<Item = Step> + Send + 'a {
    let folds = !member.size.is_power_of_two();
    let partner = move |distance| match member.rank ^ distance {
        partner if partner < member.size => partner,
        _ => member.after(distance),
    };
    let bits = distances(member).filter(move |&bit| bit <= member.size / 2);
    let exchanged = bits.map(move |bit| uncontended_transfers(partner(bit), bytes(bit), times));
    exchanged.chain(folds.then(|| uncontended_transfers(member.after(1), whole, 2)))
}

pub(super) fn uncontended_transfers(peer: u32, bytes: Bytes, times: u64) -> Step {
    Step::UncontendedTransfers { peer: Rank::new(peer), bytes, times }
}

pub(super) fn barrier<'a>(member: Member<'a>) -> Schedule<'a> {
    after_synchronization(member, doubling_transfers(member, |_| Bytes::ZERO))
}

pub(super) fn bcast<'a>(member: Member<'a>, args: bcast::Args) -> Schedule<'a> {
    Box::new(BinomialTree::new(member, args.root).down(move |_| Some(args.data.bytes())))
}

pub(super) fn reduce<'a>(member: Member<'a>, args: reduce::Args) -> Schedule<'a> {
    Box::new(BinomialTree::new(member, args.root).up(|_| Some(args.data.bytes())))
}

pub(super) fn allreduce<'a>(member: Member<'a>, data: Elements) -> Schedule<'a> {
    let bytes = data.bytes();
    if bytes.get() <= SHORT_ALLREDUCE {
        return after_synchronization(member, bit_transfers(member, 1, bytes, move |_| bytes));
    }
    after_synchronization(member, bit_transfers(member, 2, bytes, halving_sizes(member, bytes)))
}

/// Returns the sizes of recursive halving: half of the vector at the largest distance, half of that at the next smaller
/// one, and so on.
fn halving_sizes(member: Member<'_>, whole: Bytes) -> impl Fn(u32) -> Bytes + Send + use<> {
    let size = 1_u128 << member.size.ilog2();
    move |distance| Bytes::new((u128::from(whole.get()) * u128::from(distance) / size) as u64)
}

pub(super) fn gather<'a>(member: Member<'a>, args: gather::Args) -> Schedule<'a> {
    Box::new(
        BinomialTree::new(member, args.root).up(|members| Some(repeated(args.sent, members.into()).bytes())),
    )
}

pub(super) fn scatter<'a>(member: Member<'a>, args: scatter::Args) -> Schedule<'a> {
    let block = args.block(member.rank);
    Box::new(
        BinomialTree::new(member, args.root)
            .down(move |members| Some(repeated(block, members.into()).bytes())),
    )
}

/// Sends tokens from all members to the root.
pub(super) fn gatherv<'a>(member: Member<'a>, root: u32, sent: Bytes) -> Schedule<'a> {
    if member.rank == root {
        return Box::new(member.others().map(recv_token));
    }
    Box::new([send_token(root, Some(sent))].into_iter())
}

/// Sends tokens from the root to all members.
pub(super) fn scatterv<'a>(
    member: Member<'a>,
    root: u32,
    sent: impl Fn(u32) -> Bytes + Send + 'a,
) -> Schedule<'a> {
    if member.rank == root {
        return Box::new(member.others().map(move |other| send_token(other, Some(sent(other)))));
    }
    Box::new([recv_token(root)].into_iter())
}

pub(super) fn allgather<'a>(member: Member<'a>, args: allgather::Args<'a>) -> Schedule<'a> {
    let mean = args.blocks.total(member.size).bytes().get() / u64::from(member.size);
    let blocks = move |distance: u32| u64::from(distance.min(member.size - distance));
    after_synchronization(
        member,
        doubling_transfers(member, move |distance| Bytes::new(mean * blocks(distance))),
    )
}

pub(super) fn alltoall<'a>(member: Member<'a>, args: alltoall::Args<'a>) -> Schedule<'a> {
    let total = |blocks: Blocks<'a>| blocks.total(member.size).bytes().get();
    let block = total(args.sent).max(total(args.received)) / u64::from(member.size);
    if block <= SHORT_ALLTOALL && matches!(args.sent, Blocks::Equal(_)) {
        let half = Bytes::new(block * u64::from(member.size) / 2);
        return after_synchronization(member, doubling_transfers(member, move |_| half));
    }
    let costs = distances(member).map(move |distance| {
        let peers = distance.min(member.size - distance);
        uncontended_transfers(member.after(distance), Bytes::new(block), peers.into())
    });
    after_synchronization(member, costs)
}

pub(super) fn reduce_scatter<'a>(member: Member<'a>, blocks: Blocks<'a>) -> Schedule<'a> {
    let whole = blocks.total(member.size).bytes();
    after_synchronization(member, bit_transfers(member, 1, whole, halving_sizes(member, whole)))
}

pub(super) fn scan<'a>(member: Member<'a>, bytes: Bytes) -> Schedule<'a> {
    let Member { rank, size, .. } = member;
    Box::new(distances(member).flat_map(move |distance| {
        let told = rank.checked_add(distance).filter(|&to| to < size).map(|to| send_token(to, Some(bytes)));
        let heard = rank.checked_sub(distance).map(recv_token);
        told.into_iter().chain(heard)
    }))
}
