//! The partition of regions over the members of a cluster, in contiguous blocks.

use std::ops::Range;

use super::RegionIndex;
use crate::LpId;

/// The assignment of regions, and of the processes that belong to them, to the members of a cluster: contiguous blocks of
/// regions. A member with an empty block waits for the others, and costs them nothing.
///
/// ```
/// use pdes_core::{LpId, RegionBlocks};
///
/// // Two processes in each of the regions 0 to 2, one in region 3.
/// let blocks = RegionBlocks::new(vec![0, 1, 2, 3, 0, 1, 2], 4, 2);
/// assert_eq!((blocks.regions(0), blocks.regions(1)), (0..2, 2..4));
/// assert!(blocks.lps(1).eq([2, 3, 6].map(LpId::new)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionBlocks {
    /// Region of each process.
    region_of_lp: Vec<RegionIndex>,
    /// First region of each member, and the number of regions.
    starts: Vec<RegionIndex>,
}

impl RegionBlocks {
    /// Divides regions into one block for each member, with about as many processes each; process `i` belongs to region
    /// `homes[i]`. If fewer regions have processes than there are members, some members have no processes.
    ///
    /// # Panics
    /// If `members` is zero, and if an entry of `homes` is not below `regions`.
    pub fn new(homes: Vec<RegionIndex>, regions: u32, members: usize) -> Self {
        let mut process_counts = vec![0; regions as usize];
        homes.iter().for_each(|&home| process_counts[home as usize] += 1);
        Self::with_costs(homes, &process_counts, &vec![true; members])
    }

    /// Divides regions into blocks of about equal cost, in any unit, for those members that are to work; process `i` belongs to region
    /// `homes[i]`.
    ///
    /// ```
    /// use pdes_core::RegionBlocks;
    ///
    /// let blocks = RegionBlocks::with_costs(vec![0, 1, 2, 3], &[40, 10, 20, 10], &[true, false, true]);
    /// assert_eq!([0, 1, 2].map(|member| blocks.regions(member)), [0..1, 1..1, 1..4]);
    /// ```
    ///
    /// # Panics
    /// If no member is to work.
    pub fn with_costs(homes: Vec<RegionIndex>, costs: &[u64], works: &[bool]) -> Self {
        let workers = works.iter().filter(|works| **works).count();
        assert!(workers > 0, "a cluster has at least one member that works");
        let end = costs.len() as RegionIndex;
        let mut of_workers = starts(costs, workers).into_iter().peekable();
        let start = |&works: &bool| {
            let next = of_workers.peek().copied().unwrap_or(end);
            of_workers.next_if(|_| works);
            next
        };
        let mut starts: Vec<_> = works.iter().map(start).collect();
        starts.push(end);
        Self { region_of_lp: homes, starts }
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of regions.
    pub fn count(&self) -> usize {
        self.starts[self.members()] as usize
    }

    /// Returns the members that have regions.
    pub fn working_members(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members()).filter(|&member| !self.regions(member).is_empty())
    }

    /// Returns the regions of a member.
    pub fn regions(&self, member: usize) -> Range<RegionIndex> {
        self.starts[member]..self.starts[member + 1]
    }

    /// Returns the processes that belong to the regions of a member, in ascending order.
    pub fn lps(&self, member: usize) -> impl Iterator<Item = LpId> + '_ {
        let regions = self.regions(member);
        let homes = (0..).zip(&self.region_of_lp);
        homes.filter(move |(_, home)| regions.contains(home)).map(|(lp, _)| LpId::new(lp))
    }

    /// Returns the region of each process.
    pub fn region_of_lp(&self) -> &[RegionIndex] {
        &self.region_of_lp
    }
}

/// Returns the first region of each of `blocks` blocks of about equal cost: block `b` begins at the cut whose prefix sum is
/// nearest to `b / blocks` of the total; ties go to the first cut.
pub(super) fn starts(costs: &[u64], blocks: usize) -> Vec<RegionIndex> {
    // Prefix sums of the costs.
    let mut before = vec![0];
    before.extend(costs.iter().scan(0, |sum, &cost| {
        *sum += u128::from(cost);
        Some(*sum)
    }));
    let (parts, all) = (blocks as u128, before[costs.len()]);
    let start = |block: u128| {
        let wanted = all * block;
        let after = before.partition_point(|&sum| sum * parts < wanted);
        let nearest = match after.checked_sub(1) {
            Some(first) if wanted - before[first] * parts <= before[after] * parts - wanted => first,
            _ => after,
        };
        nearest as RegionIndex
    };
    (0..parts).map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(process_counts: &[u32], members: usize) -> Vec<usize> {
        let homes = (0..).zip(process_counts).flat_map(|(home, &count)| (0..count).map(move |_| home));
        let blocks = RegionBlocks::new(homes.collect(), process_counts.len() as u32, members);
        let end = (0..members).fold(0, |end, member| {
            let regions = blocks.regions(member);
            assert_eq!(regions.start, end);
            regions.end
        });
        assert_eq!(end, process_counts.len() as u32);
        (0..members).map(|member| blocks.lps(member).count()).collect()
    }

    #[test]
    fn blocks_have_about_as_many_processes_each() {
        assert_eq!(sizes(&[4; 8], 3), [12, 8, 12]);
        assert_eq!(sizes(&[1, 1, 1, 9], 2), [3, 9]);
        assert_eq!(sizes(&[9, 1, 1, 1], 2), [9, 3]);
        assert_eq!(sizes(&[0, 3, 0, 3, 0], 2), [3, 3]);
    }

    #[test]
    fn blocks_cost_about_as_much_each() {
        assert_eq!(starts(&[1; 8], 4), [0, 2, 4, 6]);
        assert_eq!(starts(&[7, 1, 1, 1, 2], 2), [0, 1]);
        assert_eq!(starts(&[1, 1, 1, 7], 2), [0, 3]);
        assert_eq!(starts(&[u64::MAX; 3], 3), [0, 1, 2]);
        assert_eq!(starts(&[0; 3], 2), [0, 0]);
    }

    #[test]
    fn members_that_do_not_work_have_no_regions() {
        let blocks = RegionBlocks::with_costs(vec![0, 1, 2, 3], &[1; 4], &[false, true, false, true, false]);
        assert_eq!(blocks.working_members().collect::<Vec<_>>(), [1, 3]);
        assert_eq!((blocks.regions(1), blocks.regions(3)), (0..2, 2..4));
    }

    #[test]
    fn there_may_be_fewer_regions_than_members() {
        assert_eq!(sizes(&[5], 3).iter().sum::<usize>(), 5);
        assert_eq!(sizes(&[2, 2], 4).iter().sum::<usize>(), 4);
        assert_eq!(sizes(&[0, 0], 2), [0, 0]);
    }
}
