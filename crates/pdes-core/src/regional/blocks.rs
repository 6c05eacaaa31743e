//! Which member of a cluster has which regions.

use std::ops::Range;

use super::RegionIndex;
use crate::Rank;

/// Which regions each member of a cluster runs, and with them the processes that live there: blocks of regions with about
/// as many processes each.
///
/// ```
/// use pdes_core::{Rank, RegionBlocks};
///
/// // Two processes in each of the regions 0 to 2, one in region 3.
/// let blocks = RegionBlocks::new(vec![0, 1, 2, 3, 0, 1, 2], 4, 2);
/// assert_eq!((blocks.regions(0), blocks.regions(1)), (0..2, 2..4));
/// assert!(blocks.ranks(1).eq([2, 3, 6].map(Rank::new)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionBlocks {
    /// The region of each rank.
    homes: Vec<RegionIndex>,
    /// The first region of each member, and their number.
    starts: Vec<RegionIndex>,
}

impl RegionBlocks {
    /// Cuts so many regions into as many blocks as there are members; rank `i` lives in region `homes[i]`. Where there are
    /// fewer regions with processes than members, some have none.
    ///
    /// # Panics
    /// Where `members` is zero, and where `homes` names no region.
    pub fn new(homes: Vec<RegionIndex>, regions: u32, members: usize) -> Self {
        assert!(members > 0, "a cluster has at least one member");
        let mut residents = vec![0_u64; regions as usize];
        homes.iter().for_each(|&home| residents[home as usize] += 1);
        // How many live before each region.
        let mut before = vec![0];
        before.extend(residents.iter().scan(0, |sum, &of_region| {
            *sum += of_region;
            Some(*sum)
        }));
        let start = |member: usize| {
            // All in parts of a process, of which there are as many as members.
            let (parts, wanted) = (members as u64, homes.len() as u64 * member as u64);
            // The nearest cut; of equals the first.
            let after = before.partition_point(|&sum| sum * parts < wanted);
            let nearest = match after.checked_sub(1) {
                Some(first) if wanted - before[first] * parts <= before[after] * parts - wanted => first,
                _ => after,
            };
            nearest as RegionIndex
        };
        let mut starts: Vec<RegionIndex> = (0..members).map(start).collect();
        starts.push(regions);
        Self { homes, starts }
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of regions.
    pub(super) fn count(&self) -> usize {
        self.starts[self.members()] as usize
    }

    /// Returns the regions of a member.
    pub fn regions(&self, member: usize) -> Range<RegionIndex> {
        self.starts[member]..self.starts[member + 1]
    }

    /// Returns the ranks that live in the regions of a member, in ascending order.
    pub fn ranks(&self, member: usize) -> impl Iterator<Item = Rank> + '_ {
        let regions = self.regions(member);
        let homes = (0..).zip(&self.homes);
        homes.filter(move |(_, home)| regions.contains(home)).map(|(rank, _)| Rank::new(rank))
    }

    /// Returns the region of each rank.
    pub fn homes(&self) -> &[RegionIndex] {
        &self.homes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(residents: &[u32], members: usize) -> Vec<usize> {
        let homes = (0..).zip(residents).flat_map(|(home, &count)| (0..count).map(move |_| home));
        let blocks = RegionBlocks::new(homes.collect(), residents.len() as u32, members);
        let end = (0..members).fold(0, |end, member| {
            let regions = blocks.regions(member);
            assert_eq!(regions.start, end);
            regions.end
        });
        assert_eq!(end, residents.len() as u32);
        (0..members).map(|member| blocks.ranks(member).count()).collect()
    }

    #[test]
    fn blocks_have_about_as_many_processes_each() {
        assert_eq!(sizes(&[4; 8], 3), [12, 8, 12]);
        assert_eq!(sizes(&[1, 1, 1, 9], 2), [3, 9]);
        assert_eq!(sizes(&[9, 1, 1, 1], 2), [9, 3]);
        assert_eq!(sizes(&[0, 3, 0, 3, 0], 2), [3, 3]);
    }

    #[test]
    fn there_may_be_fewer_regions_than_members() {
        assert_eq!(sizes(&[5], 3).iter().sum::<usize>(), 5);
        assert_eq!(sizes(&[2, 2], 4).iter().sum::<usize>(), 4);
        assert_eq!(sizes(&[0, 0], 2), [0, 0]);
    }
}
