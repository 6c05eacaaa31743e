//! Communicators: matching contexts, each with a group of ranks.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::{fmt, slice};

use pdes_core::Rank;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::channel::index;

index! {
    /// A communicator of a rank: an index into [`RankTrace::communicators`](crate::RankTrace::communicators); number 0
    /// is the world.
    CommIdx
}

impl CommIdx {
    /// The communicator of all ranks.
    pub const WORLD: Self = Self::new(0);
}

/// Identifier of a communicator, the same on all ranks of the trace. The world has number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommId(u32);

impl CommId {
    /// The communicator of all ranks.
    pub const WORLD: Self = Self(0);

    /// Makes the identifier with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for CommId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A communicator, as seen by one of its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Its identifier in the trace.
    pub id: CommId,
    /// The rank of this process in the communicator.
    pub rank: u32,
    /// Its members, in rank order.
    pub group: Arc<Group>,
}

impl Communicator {
    /// Makes the world communicator of `ranks` ranks.
    pub(crate) fn world(rank: Rank, ranks: u32) -> Self {
        Self { id: CommId::WORLD, rank: rank.get(), group: Arc::new(Group::world(ranks)) }
    }
}

/// The communicators of a rank; the first one is the world.
#[derive(Clone, Debug)]
pub(crate) enum RankCommunicators {
    /// The world alone, stored without an allocation: the common case, and there may be a million ranks.
    World(Communicator),
    Several(Box<[Communicator]>),
}

impl Default for RankCommunicators {
    fn default() -> Self {
        Self::Several(Box::default())
    }
}

impl From<Vec<Communicator>> for RankCommunicators {
    fn from(list: Vec<Communicator>) -> Self {
        match <[Communicator; 1]>::try_from(list) {
            Ok([world]) => Self::World(world),
            Err(list) => Self::Several(list.into()),
        }
    }
}

impl Deref for RankCommunicators {
    type Target = [Communicator];

    fn deref(&self) -> &[Communicator] {
        match self {
            Self::World(world) => slice::from_ref(world),
            Self::Several(list) => list,
        }
    }
}

impl DerefMut for RankCommunicators {
    fn deref_mut(&mut self) -> &mut [Communicator] {
        match self {
            Self::World(world) => slice::from_mut(world),
            Self::Several(list) => list,
        }
    }
}

/// An MPI group: an ordered set of world ranks. Position `i` holds the world rank of rank `i` of the communicator.
///
/// Stored as strided ranges, so that a row, column or plane of a process grid takes a few words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    ranges: Box<[RankRange]>,
    len: u32,
}

/// A strided range of ranks: `first`, `first + stride`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankRange {
    /// The first rank.
    pub first: Rank,
    /// Difference between consecutive ranks, not zero.
    pub stride: i32,
    /// Number of ranks, at least 1.
    pub len: u32,
}

impl RankRange {
    /// Returns the rank at a place.
    pub fn member(self, index: u32) -> Rank {
        Rank::new((i64::from(self.first.get()) + i64::from(self.stride) * i64::from(index)) as u32)
    }

    fn position(self, rank: Rank) -> Option<u32> {
        let offset = i64::from(rank.get()) - i64::from(self.first.get());
        let stride = i64::from(self.stride);
        let index = (offset % stride == 0).then_some(offset / stride)?;
        (0..i64::from(self.len)).contains(&index).then_some(index as u32)
    }
}

impl Group {
    /// Makes the group of ranks `0..ranks`.
    pub fn world(ranks: u32) -> Self {
        Self { ranges: Box::new([RankRange { first: Rank::new(0), stride: 1, len: ranks }]), len: ranks }
    }

    /// Makes the group of these ranks, in this order.
    ///
    /// # Errors
    /// A rank that occurs twice.
    pub fn new(members: impl IntoIterator<Item = Rank>) -> Result<Self, Rank> {
        let members: Vec<Rank> = members.into_iter().collect();
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(pair[0]);
        }
        let mut runs: Vec<RankRange> = Vec::new();
        for &rank in &members {
            match runs.last_mut() {
                Some(run) if run.len == 1 => {
                    (run.stride, run.len) = (rank.get() as i32 - run.first.get() as i32, 2);
                }
                Some(run) if run.member(run.len) == rank => run.len += 1,
                _ => runs.push(RankRange { first: rank, stride: 1, len: 1 }),
            }
        }
        Ok(Self { ranges: runs.into(), len: members.len() as u32 })
    }

    /// Makes the group of the ranks of some ranges, each nonempty and within `0..ranks` of the run.
    ///
    /// # Errors
    /// A rank that occurs twice.
    pub fn from_ranges(runs: &[RankRange]) -> Result<Self, Rank> {
        match runs {
            // The common case in text; a single range has no rank twice.
            [RankRange { len: 2.., .. }] => Ok(Self { ranges: runs.into(), len: runs[0].len }),
            _ => Self::new(runs.iter().flat_map(|run| (0..run.len).map(|index| run.member(index)))),
        }
    }

    /// Returns the number of ranks.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether the group has no ranks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ranges, in order.
    pub fn ranges(&self) -> &[RankRange] {
        &self.ranges
    }

    /// Returns the world rank at position `index`. Cost: O(ranges).
    ///
    /// # Panics
    /// If the group has `index` members or fewer.
    pub fn member(&self, mut index: u32) -> Rank {
        for run in &self.ranges {
            if index < run.len {
                return run.member(index);
            }
            index -= run.len;
        }
        panic!("number {index} past the end of a group")
    }

    /// Returns the position of a world rank, if it belongs to the group. Cost: O(ranges).
    pub fn position(&self, rank: Rank) -> Option<u32> {
        let mut before = 0;
        for run in &self.ranges {
            if let Some(index) = run.position(rank) {
                return Some(before + index);
            }
            before += run.len;
        }
        None
    }

    /// Returns the first rank that is not in `other`, if any. Cost: O(ranks of both groups).
    pub(crate) fn first_not_in(&self, other: &Self) -> Option<Rank> {
        if self == other {
            return None;
        }
        if let [run] = *other.ranges {
            return self.members().find(|rank| run.position(*rank).is_none());
        }
        let inside: FxHashSet<Rank> = other.members().collect();
        self.members().find(|rank| !inside.contains(rank))
    }

    /// Yields the world ranks, in order.
    pub fn members(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranges.iter().flat_map(|run| (0..run.len).map(|index| run.member(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(ranks: &[u32]) -> Group {
        Group::new(ranks.iter().copied().map(Rank::new)).unwrap()
    }

    #[test]
    fn groups_are_stored_as_ranges() {
        assert_eq!(group(&[0, 1, 2, 3]).ranges().len(), 1);
        assert_eq!(group(&[3, 7, 11, 15]).ranges().len(), 1);
        assert_eq!(group(&[9, 6, 3, 0]).ranges().len(), 1);
        assert_eq!(Group::new([Rank::new(4), Rank::new(2), Rank::new(4)]), Err(Rank::new(4)));
        assert_eq!(group(&(0..64).collect::<Vec<_>>()), Group::world(64));
    }

    proptest::proptest! {
        #[test]
        fn members_and_positions_agree(ranks in proptest::sample::subsequence((0..40).collect::<Vec<u32>>(), 0..40), turn in 0_usize..40) {
            let mut ranks = ranks;
            let turn = turn.min(ranks.len());
            ranks.rotate_left(turn);
            let group = group(&ranks);
            proptest::prop_assert_eq!(group.members().map(Rank::get).collect::<Vec<_>>(), ranks.clone());
            for rank in 0..40 {
                let position = ranks.iter().position(|&other| other == rank).map(|index| index as u32);
                proptest::prop_assert_eq!(group.position(Rank::new(rank)), position);
                if let Some(position) = position {
                    proptest::prop_assert_eq!(group.member(position), Rank::new(rank));
                }
            }
        }
    }
}
