//! Decision tables: rules that choose the algorithm of a call by the number of ranks, the size and the placement.

use super::Member;
use super::member::Elements;

/// A decision table of an operation. The first rule that holds for a call decides.
pub(super) struct DecisionTable<A: 'static> {
    /// The size that rules compare.
    pub(super) by: Measure,
    /// The rules; the last one holds for all calls.
    pub(super) rules: &'static [Rule<A>],
}

/// A rule of a decision table.
///
/// Its columns are exclusive upper bounds on the size, each with the algorithm for smaller calls; the first bound that
/// exceeds the size decides. The algorithm after the columns is for larger calls.
pub(super) enum Rule<A: 'static> {
    /// Chooses by size for fewer ranks than the bound.
    Ranks(u32, &'static [(u64, A)], A),
    /// Chooses by size.
    Otherwise(&'static [(u64, A)], A),
    /// Chooses the algorithm.
    Use(A),
    /// Applies rules to calls that meet a condition; if none of them holds, the rules after this one follow.
    When(Condition, &'static [Rule<A>]),
}

/// A condition on a call, other than a bound on the number of ranks or the size.
#[derive(Clone, Copy)]
pub(super) enum Condition {
    /// There is no element.
    Empty,
    /// There are fewer elements than the largest power of two of ranks.
    FewElements,
    /// The number of ranks is even.
    EvenRanks,
    /// The number of ranks is a power of two.
    PowerOfTwoRanks,
    /// The number of ranks per node is one of these. It counts as 1 if nodes have different numbers of ranks.
    RanksPerNode(&'static [u32]),
    /// All nodes have the same number of ranks.
    UniformNodes,
    /// Some node has ranks that are not consecutive.
    Unblocked,
    /// The call is no part of a two-level algorithm.
    NotWithinLevels,
}

/// The size of a call that a table compares with its bounds, as a function of the data of a call: its vector, the block of
/// one rank, or all blocks if these differ.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// The size of the data \[B\].
    Bytes,
    /// The size of the data, times the number of ranks \[B\].
    BytesOfAllRanks,
    /// The size of the data, divided by the number of ranks and rounded down \[B\].
    BytesPerRank,
    /// The size of the data, divided by the number of ranks and rounded up \[B\].
    BytesPerRankRoundedUp,
    /// The number of elements.
    Elements,
}

impl Measure {
    /// Returns the size of a call with these data by so many ranks.
    pub(super) fn of(self, data: Elements, ranks: u32) -> u64 {
        let bytes = data.bytes().get();
        match self {
            Self::Bytes => bytes,
            Self::BytesOfAllRanks => bytes.saturating_mul(ranks.into()),
            Self::BytesPerRank => bytes / u64::from(ranks),
            Self::BytesPerRankRoundedUp => bytes.div_ceil(ranks.into()),
            Self::Elements => data.count,
        }
    }
}

impl Condition {
    fn is_met(self, member: Member<'_>, data: Elements) -> bool {
        let Member { size, layout, .. } = member;
        match self {
            Self::Empty => data.count == 0,
            Self::FewElements => data.count < 1 << size.ilog2(),
            Self::EvenRanks => size.is_multiple_of(2),
            Self::PowerOfTwoRanks => size.is_power_of_two(),
            Self::RanksPerNode(numbers) => numbers.contains(&layout.ranks_per_node().unwrap_or(1)),
            Self::UniformNodes => layout.is_uniform(),
            Self::Unblocked => !layout.is_blocked(),
            Self::NotWithinLevels => !member.within_levels,
        }
    }
}

impl<A: Copy> DecisionTable<A> {
    /// Returns the algorithm for a member's call with these data.
    pub(super) fn choose(&self, member: Member<'_>, data: Elements) -> A {
        let size = self.by.of(data, member.size);
        choose(self.rules, size, member, data).expect("the last rule of a table holds for all calls")
    }
}

fn choose<A: Copy>(rules: &[Rule<A>], size: u64, member: Member<'_>, data: Elements) -> Option<A> {
    rules.iter().find_map(|rule| match *rule {
        Rule::Ranks(below, ..) if member.size >= below => None,
        Rule::Ranks(_, columns, larger) | Rule::Otherwise(columns, larger) => {
            let column = columns.iter().find(|&&(below, _)| size < below);
            Some(column.map_or(larger, |&(_, algorithm)| algorithm))
        }
        Rule::Use(algorithm) => Some(algorithm),
        Rule::When(condition, rules) if condition.is_met(member, data) => choose(rules, size, member, data),
        Rule::When(..) => None,
    })
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::Rule::{Otherwise, Ranks, Use, When};
    use super::*;
    use crate::collective::{Layout, Selection};

    #[test]
    fn first_rule_that_holds_decides() {
        let rules: &'static [Rule<char>] = &[
            When(Condition::RanksPerNode(&[2, 4]), &[Ranks(9, &[(10, 'a'), (20, 'b')], 'c')]),
            When(Condition::Empty, &[Use('d')]),
            Ranks(9, &[], 'e'),
            Otherwise(&[(10, 'f')], 'g'),
        ];
        let selection = Selection::default();
        let name = |per_node: u32, ranks: u32, count| {
            let layout = Layout::new(&(0..ranks).map(|rank| rank / per_node).collect::<Vec<_>>());
            let data = Elements { count, element_size: Bytes::new(2) };
            let choose = |by| DecisionTable { by, rules }.choose(Member::new(0, &layout, &selection), data);
            [choose(Measure::Bytes), choose(Measure::Elements)].iter().collect::<String>()
        };
        assert_eq!([name(2, 8, 4), name(4, 8, 5), name(2, 8, 10)], ["aa", "ba", "cb"]);
        assert_eq!([name(2, 10, 0), name(1, 8, 0), name(1, 8, 1)], ["dd", "dd", "ee"]);
        assert_eq!([name(2, 10, 4), name(3, 9, 5), name(2, 9, 10)], ["ff", "gf", "gg"]);
    }
}
