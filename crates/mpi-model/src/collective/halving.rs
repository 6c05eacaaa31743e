//! Recursive halving and doubling among the largest power of two of members, into which the remaining members are folded.

use pdes_core::Bytes;

use super::blocks::Blocks;
use super::member::Elements;
use super::schedule_builder::ScheduleBuilder;

/// The largest power of two of members, as virtual ranks: the first pairs of neighbours share one each.
#[derive(Clone, Copy, Debug)]
pub(super) struct PowerOfTwoCore {
    /// Binary logarithm of the number of virtual ranks.
    pub(super) levels: u32,
    /// Number of pairs that share a virtual rank.
    pub(super) folded_pairs: u32,
    /// The member of a pair that represents it.
    representative: Representative,
}

/// The one of two neighbours that represents both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Representative {
    Even,
    Odd,
}

impl PowerOfTwoCore {
    pub(super) fn new(size: u32, taker: Representative) -> Self {
        let levels = size.ilog2();
        Self { levels, folded_pairs: size - (1 << levels), representative: taker }
    }

    /// Returns the other member of a pair that shares a virtual rank.
    pub(super) fn fold_partner(self, rank: u32) -> Option<u32> {
        (rank < 2 * self.folded_pairs).then_some(rank ^ 1)
    }

    /// Returns the virtual rank of a member, or `None` if its partner represents it.
    pub(super) fn virtual_rank(self, rank: u32) -> Option<u32> {
        match self.fold_partner(rank) {
            None => Some(rank - self.folded_pairs),
            Some(_) if (rank % 2 == 1) == (self.representative == Representative::Odd) => Some(rank / 2),
            Some(_) => None,
        }
    }

    /// Returns the member behind a virtual rank.
    pub(super) fn rank(self, place: u32) -> u32 {
        if place < self.folded_pairs {
            2 * place + u32::from(self.representative == Representative::Odd)
        } else {
            place + self.folded_pairs
        }
    }

    /// Returns the blocks of virtual ranks `first..first + number` together, those of represented members included.
    pub(super) fn span(self, blocks: Blocks<'_>, first: u32, number: u32) -> Elements {
        let begin = |place: u32| place + place.min(self.folded_pairs);
        let from = begin(first);
        blocks.span(from, begin(first + number) - from)
    }

    /// Folds: the represented member of each pair sends its vector to its partner. Returns this member's virtual rank.
    pub(super) fn fold(self, rank: u32, bytes: Bytes, steps: &mut ScheduleBuilder) -> Option<u32> {
        let place = self.virtual_rank(rank);
        if let Some(partner) = self.fold_partner(rank) {
            match place {
                Some(_) => steps.recv(partner, bytes),
                None => steps.send(partner, bytes),
            }
        }
        place
    }

    /// Unfolds: each representative sends the result to its partner.
    pub(super) fn unfold(self, rank: u32, bytes: Bytes, steps: &mut ScheduleBuilder) {
        if let Some(partner) = self.fold_partner(rank) {
            match self.virtual_rank(rank) {
                Some(_) => steps.send(partner, bytes),
                None => steps.recv(partner, bytes),
            }
        }
    }

    /// Exchanges whole vectors at doubling distances (recursive doubling).
    pub(super) fn exchange_whole(self, place: u32, bytes: Bytes, steps: &mut ScheduleBuilder) {
        for partner in (0..self.levels).map(|level| self.rank(place ^ 1 << level)) {
            steps.exchange(partner, bytes, partner, bytes);
        }
    }

    /// Reduce-scatter by recursive halving: in each round a member sends the half of its part that its partner keeps.
    pub(super) fn reduce_scatter(self, place: u32, split: Split, steps: &mut ScheduleBuilder) {
        for level in 0..self.levels {
            let other = place ^ 1 << level;
            let (sent, kept) = (split.part(other, level + 1), split.part(place, level + 1));
            steps.exchange(self.rank(other), sent, self.rank(other), kept);
        }
    }

    /// Allgather by recursive doubling of what [`reduce_scatter`](Self::reduce_scatter) left, in the opposite order.
    pub(super) fn allgather(self, place: u32, split: Split, steps: &mut ScheduleBuilder) {
        for level in (0..self.levels).rev() {
            let other = place ^ 1 << level;
            let (own, others) = (split.part(place, level + 1), split.part(other, level + 1));
            steps.exchange(self.rank(other), own, self.rank(other), others);
        }
    }
}

/// Splitting of a vector by recursive halving: after `n` rounds a virtual rank holds the part that its lowest `n` bits
/// select, lowest bit first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Split {
    /// One block per virtual rank; the last also has the remainder (MPICH).
    Blocks { data: Elements, levels: u32 },
    /// Halves of halves; the second half is the larger one if they differ (Rabenseifner).
    Halves { data: Elements },
}

impl Split {
    /// Returns the size of the part of a virtual rank after some rounds.
    pub(super) fn part(self, place: u32, rounds: u32) -> Bytes {
        match self {
            Self::Blocks { data, levels } => {
                let blocks = 1_u64 << levels;
                let first: u64 =
                    (0..rounds).filter(|bit| place >> bit & 1 == 1).map(|bit| blocks >> (bit + 1)).sum();
                let count = data.count / blocks * (blocks >> rounds);
                let last = first + (blocks >> rounds) == blocks;
                data.size_of(count + if last { data.count % blocks } else { 0 })
            }
            Self::Halves { data } => {
                let half =
                    |count: u64, bit| if place >> bit & 1 == 0 { count / 2 } else { count.div_ceil(2) };
                data.size_of((0..rounds).fold(data.count, half))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole_after_any_number_of_rounds() {
        let data = Elements { count: 1003, element_size: Bytes::new(1) };
        for split in [Split::Blocks { data, levels: 4 }, Split::Halves { data }] {
            for rounds in 0..=4 {
                let sum: u64 = (0..1 << rounds).map(|place| split.part(place, rounds).get()).sum();
                assert_eq!(sum, 1003, "{split:?} after {rounds}");
            }
        }
        assert_eq!(Split::Blocks { data, levels: 2 }.part(3, 2), Bytes::new(253));
    }

    #[test]
    fn every_virtual_rank_has_a_member() {
        for size in 1..40 {
            for taker in [Representative::Even, Representative::Odd] {
                let core = PowerOfTwoCore::new(size, taker);
                for place in 0..1 << core.levels {
                    assert_eq!(core.virtual_rank(core.rank(place)), Some(place), "{size} {taker:?}");
                }
            }
        }
    }
}
