//! Folding of any number of ranks into a power of two of virtual ranks.

use crate::collective::Member;
use crate::collective::blocks::Blocks;
use crate::collective::member::Elements;

/// The largest power of two not above P takes part as virtual ranks; of the first 2 (P - that) ranks, the even ones fold
/// into the odd ones.
#[derive(Clone, Copy)]
pub(super) struct Fold<'a> {
    pub(super) blocks: Blocks<'a>,
    /// Number of virtual ranks.
    pub(super) virtual_ranks: u32,
    /// Number of virtual ranks that stand for two ranks.
    pub(super) folded_pairs: u32,
}

/// Role of a rank.
pub(super) enum Role {
    /// Sends its vector to the next rank, which represents it.
    FoldedAway,
    /// Takes part under this virtual rank.
    Participates(u32),
}

impl<'a> Fold<'a> {
    pub(super) fn new(member: Member<'_>, blocks: Blocks<'a>) -> Self {
        let power = 1 << member.size.ilog2();
        Self { blocks, virtual_ranks: power, folded_pairs: member.size - power }
    }

    pub(super) fn levels(self) -> u32 {
        self.virtual_ranks.ilog2()
    }

    pub(super) fn role(self, rank: u32) -> Role {
        match rank {
            rank if rank >= 2 * self.folded_pairs => Role::Participates(rank - self.folded_pairs),
            rank if rank % 2 == 1 => Role::Participates(rank / 2),
            _ => Role::FoldedAway,
        }
    }

    /// Returns the rank behind a virtual rank.
    pub(super) fn rank(self, number: u32) -> u32 {
        if number < self.folded_pairs { 2 * number + 1 } else { number + self.folded_pairs }
    }

    /// Returns the blocks of virtual ranks `first..first + number` together.
    pub(super) fn span(self, first: u32, number: u32) -> Elements {
        let begin = |number: u32| number + number.min(self.folded_pairs);
        let from = begin(first);
        self.blocks.span(from, begin(first + number) - from)
    }
}
