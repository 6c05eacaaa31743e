//! Blocks of a vector, one for each rank.

use pdes_core::Bytes;
use trace_mmap::Datatype;

use super::Layout;
use super::file_access::FileParts;
use super::member::Elements;

/// Blocks of the ranks of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocks<'a> {
    /// All blocks have this size.
    Equal(Elements),
    /// Each block has its own number of elements.
    PerRank { counts: &'a [u64], datatype: Datatype },
    /// The ranks are the nodes of this layout; the block of a node has one such block for each of its members.
    PerNode { block: Elements, layout: &'a Layout },
    /// The blocks that a member of a collective access to a file sends to each rank, or receives.
    OfFile { parts: &'a FileParts, member: u32, are_sent: bool },
}

impl<'a> Blocks<'a> {
    pub(super) fn equal(count: u64, datatype: Datatype) -> Self {
        Self::Equal(Elements::new(count, datatype))
    }

    pub(super) fn per_rank(counts: &'a [u64], datatype: Datatype) -> Self {
        Self::PerRank { counts, datatype }
    }

    /// Returns the block of a rank.
    pub(super) fn elements(self, rank: u32) -> Elements {
        match self {
            Self::Equal(block) => block,
            Self::PerRank { counts, datatype } => Elements::new(counts[rank as usize], datatype),
            Self::PerNode { block, layout } => repeated(block, layout.node_size(rank).into()),
            Self::OfFile { parts, member, are_sent } => {
                let (from, to) = if are_sent { (member, rank) } else { (rank, member) };
                Elements::new(parts.sent(from, to), Datatype::BYTE)
            }
        }
    }

    /// Returns the size of the block of a rank.
    pub(super) fn bytes_of(self, rank: u32) -> Bytes {
        self.elements(rank).bytes()
    }

    /// Returns the sum of `number` blocks, from that of rank `first` on, wrapping around. Takes O(`number`) for blocks of
    /// different sizes.
    pub(super) fn span(self, first: u32, number: u32) -> Elements {
        match self {
            Self::Equal(block) => repeated(block, number.into()),
            Self::PerRank { counts, datatype } => {
                let (first, number) = (first as usize, number as usize);
                let wrapped = number.saturating_sub(counts.len() - first);
                let (low, high) = (&counts[..wrapped], &counts[first..first + number - wrapped]);
                Elements::new(low.iter().chain(high).sum(), datatype)
            }
            Self::PerNode { block, layout } => {
                let nodes = (first..first + number).map(|node| node % layout.nodes());
                repeated(block, nodes.map(|node| u64::from(layout.node_size(node))).sum())
            }
            Self::OfFile { parts, .. } => {
                let ranks = (first..first + number).map(|rank| rank % parts.members());
                Elements::new(ranks.map(|rank| self.elements(rank).count).sum(), Datatype::BYTE)
            }
        }
    }

    /// Returns the sum of the blocks of ranks `0..size`.
    pub(super) fn total(self, size: u32) -> Elements {
        self.span(0, size)
    }
}

/// Largest product of a block and a number \[B\]. No message of this size ends within simulated time.
const MAX_BYTES: u64 = 1 << 62;

/// Returns `number` equal blocks, at most [`MAX_BYTES`] together.
pub(super) fn repeated(block: Elements, number: u64) -> Elements {
    block.with_count(block.count.saturating_mul(number).min(MAX_BYTES / block.element_size.get().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_wraps_around() {
        let counts = [1, 20, 300];
        let blocks = Blocks::per_rank(&counts, Datatype::BYTE);
        let span = |first, number| blocks.span(first, number).bytes().get();
        assert_eq!([span(0, 0), span(2, 1), span(1, 2), span(2, 2), span(1, 3)], [0, 300, 320, 301, 321]);
        assert_eq!(Blocks::equal(7, Datatype::BYTE).span(2, 3).count, 21);
        let layout = Layout::new(&[0, 0, 1, 2, 2]);
        let nodes = Blocks::PerNode { block: Elements::new(10, Datatype::BYTE), layout: &layout };
        assert_eq!((nodes.bytes_of(1).get(), nodes.span(1, 2).count, nodes.span(2, 2).count), (10, 30, 40));
    }

    #[test]
    fn an_absurd_number_of_blocks_does_not_overflow() {
        assert_eq!(repeated(Elements::new(1 << 48, Datatype::BYTE), 1 << 20).bytes().get(), MAX_BYTES);
    }
}
