//! Groups of flows with a common bottleneck.
//!
//! Flows that one link froze have one level, and rise together when that link gets more room. On another link that they
//! share they act as one flow with the sum of their shares: a *group*. In dense traffic few links are full, so that a link
//! has far fewer groups than flows, and a flow is handled individually only when its bottleneck changes. Flows at their
//! own limits have no group: they come first among the members of a link.

use super::refill::{TIE, position};
use super::{Flow, FlowIndex, MaxMin, TOLERANCE, Use};

/// A group: the flows of a link whose bottleneck is another link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Sum of their shares.
    pub(super) share: f64,
    /// Bottleneck of the flows.
    pub(super) home: u32,
}

/// Compensation and number of terms of a running sum of shares.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Rounding error of the sum. Without the compensation, a flow that takes 1/27,000 of what a former one took
    /// would inherit 27,000 times its error.
    error: f64,
    flows: u32,
}

/// Index of the groups of each link by their bottlenecks: a row for each link, in which 0 means no group and other
/// entries are one more than the position of the group. There are no rows if there are more than
/// [`MAX_INDEXED_LINKS`] links.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<u16>,
    /// The length of a row.
    stride: usize,
}

/// Largest number of links with a [`GroupIndex`]: 32 MB, of which rows without groups take no memory.
const INDEXED: usize = 4096;

/// Flows of a link while flows are grouped.
#[derive(Debug)]
pub(super) struct Stage {
    /// Number of members at their own limits; these come first.
    pub(super) alone: u32,
    /// Groups of the other members whose bottleneck is another link.
    pub(super) groups: Vec<Group>,
    tallies: Vec<Tally>,
    /// Sum of the shares of the flows whose bottleneck is this link.
    pub(super) own: f64,
    own_tally: Tally,
    /// Lower bound on the ceilings of the flows whose bottleneck is this link; infinite if there are none.
    pub(super) least_ceiling: f64,
    /// The link is in the fill order: it is expected to be full.
    pub(super) is_in_turn: bool,
}

impl Tally {
    fn join(&mut self, sum: &mut f64, share: f64) {
        self.flows += 1;
        self.add(sum, share);
    }

    fn part(&mut self, sum: &mut f64, share: f64) {
        self.flows -= 1;
        if self.flows > 0 {
            self.add(sum, -share);
        } else {
            (*sum, self.error) = (0.0, 0.0);
        }
    }

    /// Adds to the sum and tracks the rounding error (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2,
    /// theorem B).
    fn add(&mut self, before: &mut f64, share: f64) {
        let sum = *before + share;
        let added = sum - *before;
        self.error += (*before - (sum - added)) + (share - added);
        *before = sum + self.error;
        self.error -= *before - sum;
    }
}

impl Places {
    /// Returns the row of a link: positions of its groups by bottleneck, plus one.
    fn row(&mut self, link: u32) -> &mut [u16] {
        &mut self.places[link as usize * self.stride..][..self.stride]
    }

    /// Returns whether there are rows for this many links, or no rows at all.
    pub(super) fn has_room(&self, links: usize) -> bool {
        self.stride == 0 || links <= self.stride
    }

    /// Rebuilds the index from the groups of all links.
    pub(super) fn index(&mut self, stages: &[Stage]) {
        self.stride = if stages.len() <= INDEXED { stages.len().next_power_of_two() } else { 0 };
        self.places = vec![0; self.stride * self.stride];
        if self.stride > 0 {
            for (link, stage) in (0..).zip(stages) {
                let row = self.row(link);
                for (place, group) in (1..).zip(&stage.groups) {
                    row[group.home as usize] = place;
                }
            }
        }
    }
}

impl Default for Stage {
    fn default() -> Self {
        let (groups, tallies, own_tally) = (Vec::new(), Vec::new(), Tally::default());
        Self {
            alone: 0,
            groups,
            tallies,
            own: 0.0,
            own_tally,
            least_ceiling: f64::INFINITY,
            is_in_turn: false,
        }
    }
}

impl Stage {
    fn clear(&mut self) {
        let (groups, tallies) = (std::mem::take(&mut self.groups), std::mem::take(&mut self.tallies));
        *self = Self { groups, tallies, ..Self::default() };
        self.groups.clear();
        self.tallies.clear();
    }

    /// Returns whether the link is the bottleneck of any flow.
    pub(super) fn is_home(&self) -> bool {
        self.own_tally.flows > 0
    }

    /// Adds the share of a flow to the link's own sum or to the group of the flow's bottleneck.
    fn join_from(&mut self, home: u32, link: u32, share: f64, ceiling: f64, places: &mut Places) {
        if home == link {
            self.own_tally.join(&mut self.own, share);
            self.least_ceiling = self.least_ceiling.min(ceiling);
        } else {
            self.join(home, share, places.row(link));
        }
    }

    /// Removes the share of a flow from the link's own sum or from the group of the flow's bottleneck.
    fn part_from(&mut self, home: u32, link: u32, share: f64, places: &mut Places) {
        if home != link {
            self.part(home, share, places.row(link));
            return;
        }
        self.own_tally.part(&mut self.own, share);
        if !self.is_home() {
            self.least_ceiling = f64::INFINITY;
        }
    }

    /// Adds the share of a flow to the group of its bottleneck, which is another link.
    fn join(&mut self, home: u32, share: f64, row: &mut [u16]) {
        let place = self.find(home, row).unwrap_or_else(|| {
            self.groups.push(Group { home, share: 0.0 });
            self.tallies.push(Tally::default());
            if let Some(place) = row.get_mut(home as usize) {
                *place = self.groups.len() as u16;
            }
            self.groups.len() - 1
        });
        self.tallies[place].join(&mut self.groups[place].share, share);
    }

    /// Removes the share of a flow from the group of its bottleneck, which is another link.
    fn part(&mut self, home: u32, share: f64, row: &mut [u16]) {
        let place = self.find(home, row).expect("the groups of a link have all its flows");
        self.tallies[place].part(&mut self.groups[place].share, share);
        if self.tallies[place].flows == 0 {
            self.groups.swap_remove(place);
            self.tallies.swap_remove(place);
            if !row.is_empty() {
                row[home as usize] = 0;
                if let Some(moved) = self.groups.get(place) {
                    row[moved.home as usize] = place as u16 + 1;
                }
            }
        }
    }

    /// Returns the position of the group of a bottleneck.
    fn find(&self, home: u32, row: &[u16]) -> Option<usize> {
        match row.get(home as usize) {
            Some(&place) => usize::from(place).checked_sub(1),
            None => self.search(home),
        }
    }

    /// Finds the group without an index.
    #[cold]
    fn search(&self, home: u32) -> Option<usize> {
        position(&self.groups, |group| group.home == home)
    }
}

impl MaxMin {
    /// Groups all flows.
    pub(super) fn group_flows(&mut self) {
        self.refill.is_grouped = true;
        self.refill.stages.resize_with(self.links.len(), Stage::default);
        self.refill.stages.iter_mut().for_each(Stage::clear);
        self.refill.places.index(&self.refill.stages);
        self.links.iter_mut().for_each(|link| link.home.clear());
        for index in 0..self.flows.len() as u32 {
            self.limits[index as usize] = self.flows[index as usize].ceiling;
            self.enter(index);
        }
        self.take_turns_as_they_are();
    }

    /// Ungroups all flows: lists them at their bottlenecks.
    pub(super) fn ungroup_flows(&mut self) {
        self.refill.is_grouped = false;
        for index in 0..self.flows.len() as u32 {
            self.limits[index as usize] = self.level(FlowIndex(index));
            let home = self.flows[index as usize].home.take();
            self.move_home(index, home);
        }
    }

    /// Changes the bottleneck of a flow.
    pub(super) fn regroup(&mut self, index: u32, home: Option<u32>) {
        self.note_move(index);
        let flow = &mut self.flows[index as usize];
        if let (Some(from), Some(to)) = (flow.home, home) {
            flow.home = home;
            for &Use { link, share, .. } in &flow.uses {
                let stage = &mut self.refill.stages[link as usize];
                stage.part_from(from, link, share, &mut self.refill.places);
                stage.join_from(to, link, share, flow.ceiling, &mut self.refill.places);
            }
            return;
        }
        self.leave(index);
        self.flows[index as usize].home = home;
        self.enter(index);
    }

    /// Adds a flow to the groups of its links, or to their members at ceilings.
    pub(super) fn enter(&mut self, index: u32) {
        let Flow { home, ceiling, .. } = self.flows[index as usize];
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place, share } = self.flows[index as usize].uses[place];
            let stage = &mut self.refill.stages[link as usize];
            match home {
                Some(home) => stage.join_from(home, link, share, ceiling, &mut self.refill.places),
                None => {
                    let first = stage.alone;
                    stage.alone += 1;
                    self.swap_members(link, place, first);
                }
            }
        }
    }

    /// Removes a flow from the groups of its links, or from their members at ceilings.
    pub(super) fn leave(&mut self, index: u32) {
        let home = self.flows[index as usize].home;
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place, share } = self.flows[index as usize].uses[place];
            let stage = &mut self.refill.stages[link as usize];
            match home {
                Some(home) => stage.part_from(home, link, share, &mut self.refill.places),
                None => {
                    stage.alone -= 1;
                    let last = stage.alone;
                    self.swap_members(link, place, last);
                }
            }
        }
    }

    /// Makes a full link the bottleneck of its flows that could rise further elsewhere.
    pub(super) fn take_in(&mut self, index: u32, level: f64) {
        let most = level * (1.0 + TOLERANCE);
        // Backwards: when a flow leaves the members at ceilings, the last of them takes its position.
        for place in (0..self.refill.stages[index as usize].alone as usize).rev() {
            let flow = self.links[index as usize].members[place].flow;
            if self.flows[flow as usize].ceiling > most {
                self.regroup(flow, Some(index));
            }
        }
        let mut homes = std::mem::take(&mut self.refill.homes);
        let groups = self.refill.stages[index as usize].groups.iter().map(|group| group.home);
        let rises = |home: u32| self.refill.lids[home as usize].limit() > most;
        homes.extend(groups.filter(|&home| rises(home) && !self.is_tied(index, level, home)));
        if !homes.is_empty() {
            self.take_in_groups(index, &homes);
            homes.clear();
        }
        self.refill.homes = homes;
    }

    /// Returns whether another link, which is not full yet, fills at the same level as this one, as it did before.
    /// Such a link keeps its flows. The exception is a flow whose ceiling is at or below that level: if it left the
    /// other link for its ceiling, this link would have counted on it in vain.
    fn is_tied(&self, index: u32, level: f64, other: u32) -> bool {
        let (before, other_before) = (self.links[index as usize].level, self.links[other as usize].level);
        (before == f64::INFINITY || other_before >= before * (1.0 - TOLERANCE))
            && self.refill.stages[other as usize].least_ceiling > level * (1.0 + TOLERANCE)
            && self.level_in_turn(other, level, level * (1.0 - TIE)).0 <= level * (1.0 + TIE)
    }

    fn take_in_groups(&mut self, index: u32, homes: &[u32]) {
        let alone = self.refill.stages[index as usize].alone as usize;
        let members = self.links[index as usize].members[alone..].iter().map(|member| member.flow);
        let flows = &self.flows;
        let is_taken = |&flow: &u32| flows[flow as usize].home.is_some_and(|home| homes.contains(&home));
        let mut taken = std::mem::take(&mut self.refill.taken);
        taken.extend(members.filter(is_taken));
        taken.drain(..).for_each(|flow| self.regroup(flow, Some(index)));
        self.refill.taken = taken;
    }

    /// Ungroups the flows of a bottleneck that have ceilings up to `most`; returns whether there are any.
    pub(super) fn leave_at_ceilings(&mut self, index: u32, most: f64) -> bool {
        let mut least = f64::INFINITY;
        let alone = self.refill.stages[index as usize].alone;
        for place in alone as usize..self.links[index as usize].members.len() {
            let flow = self.links[index as usize].members[place].flow;
            let (home, ceiling) = (self.flows[flow as usize].home, self.flows[flow as usize].ceiling);
            if home == Some(index) && ceiling <= most {
                self.regroup(flow, None);
            } else if home == Some(index) {
                least = least.min(ceiling);
            }
        }
        let stage = &mut self.refill.stages[index as usize];
        stage.least_ceiling = least;
        stage.alone > alone
    }

    fn swap_members(&mut self, index: u32, one: u32, other: u32) {
        if one == other {
            return;
        }
        let members = &mut self.links[index as usize].members;
        members.swap(one as usize, other as usize);
        for place in [one, other] {
            let member = members[place as usize];
            self.flows[member.flow as usize].uses[member.place as usize].place = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Stage;

    proptest! {
        #[test]
        fn groups_are_the_same_with_a_table_and_without(
            changes in proptest::collection::vec((0_u32..40, 1_u32..100, any::<bool>()), 1..300),
        ) {
            let (mut indexed, mut searched) = (Stage::default(), Stage::default());
            let mut row = [0_u16; 64];
            let mut shares: [Vec<f64>; 40] = std::array::from_fn(|_| Vec::new());
            for (home, share, parts) in changes {
                let flows = &mut shares[home as usize];
                if let Some(share) = flows.pop_if(|_| parts) {
                    indexed.part(home, share, &mut row);
                    searched.part(home, share, &mut []);
                } else {
                    let share = f64::from(share) / 7.0;
                    flows.push(share);
                    indexed.join(home, share, &mut row);
                    searched.join(home, share, &mut []);
                }
                let groups = |stage: &Stage| -> Vec<_> {
                    stage.groups.iter().map(|group| (group.home, group.share.to_bits())).collect()
                };
                prop_assert_eq!(groups(&indexed), groups(&searched));
                prop_assert_eq!(indexed.groups.len(), shares.iter().filter(|flows| !flows.is_empty()).count());
            }
        }
    }
}
