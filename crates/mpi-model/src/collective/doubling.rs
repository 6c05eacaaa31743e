//! Recursive doubling for any number of ranks.

use pdes_core::Bytes;

use super::{Member, Schedule, Step, exchange, recv, send};

/// Returns the schedule of recursive doubling: in round `k`, partners at distance 2^k exchange what the 2^k members on
/// their sides of the tree have. If a partner does not exist, the members of its partner's side that have the data forward
/// them down a binomial tree to those that have not.
///
/// `piece(first, number)` is the size of what members `first..first + number` have together. Takes ceil(log2 P) rounds, and
/// as many more messages down the tree if P is no power of two. Source: MPICH; Thakur, Rabenseifner and Gropp, IJHPCA 19(1)
/// 2005.
pub(super) fn recursive_doubling<'a>(
    member: Member<'a>,
    piece: impl Fn(u32, u32) -> Bytes + Copy + Send + 'a,
) -> Schedule<'a> {
    let rounds = (0..31).take_while(move |&bit| 1_u32 << bit < member.size);
    Box::new(rounds.flat_map(move |bit| {
        let round = Round::new(member, bit);
        let received = round.piece(round.partner_root, piece);
        let met = round.partner < member.size;
        let sent = round.piece(round.own_root, piece);
        let meeting = met.then(|| exchange(round.partner, sent, round.partner, received));
        meeting.into_iter().chain(round.forward_to_unpaired(received))
    }))
}

/// One round as seen by a member.
#[derive(Clone, Copy)]
struct Round {
    rank: u32,
    size: u32,
    bit: u32,
    partner: u32,
    /// Lowest members of both sides.
    own_root: u32,
    partner_root: u32,
}

impl Round {
    fn new(member: Member<'_>, bit: u32) -> Self {
        let Member { rank, size, .. } = member;
        let partner = rank ^ (1 << bit);
        Self { rank, size, bit, partner, own_root: rank >> bit << bit, partner_root: partner >> bit << bit }
    }

    /// Returns the size of the data of the side with this root.
    fn piece(self, root: u32, piece: impl Fn(u32, u32) -> Bytes) -> Bytes {
        piece(root.min(self.size), self.size.saturating_sub(root).min(1 << self.bit))
    }

    /// Returns the steps that forward received data to members of this side without a partner.
    fn forward_to_unpaired(self, bytes: Bytes) -> impl Iterator<Item = Step> {
        let complete = self.size.saturating_sub(self.partner_root);
        let missing = complete > 0 && complete < 1 << self.bit;
        let levels = if missing { self.bit } else { 0 };
        (0..levels).rev().filter_map(move |level| {
            let other = self.rank ^ (1 << level);
            let have_end = (self.rank >> (level + 1) << (level + 1)) + complete;
            if self.rank < have_end && other >= have_end {
                Some(send(other, bytes))
            } else if other < have_end && self.rank >= have_end {
                Some(recv(other, bytes))
            } else {
                None
            }
        })
    }
}
