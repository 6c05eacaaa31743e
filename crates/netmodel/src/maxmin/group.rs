//! Flows by what sets their level.
//!
//! Flows that one link froze have one level, and rise together when that link has more room. To another link that they
//! share they are one flow with the sum of their shares: a *group*. In dense traffic few links are full, so that a link
//! has far fewer groups than flows, and a flow is looked at by itself only when something else becomes its bottleneck.
//! Flows at their own limits have no group: they stand first among the members of a link.

use super::refill::{TIE, position};
use super::{Flow, FlowIndex, MaxMin, TOLERANCE, Use};

/// The flows of a link whose home is another one, as sums over all groups read them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The sum of their shares.
    pub(super) share: f64,
    pub(super) home: u32,
}

/// What a sum of shares is kept up to date with.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// What rounding has taken from the sum. Without it, a flow that takes 1/27,000 of what another one took would
    /// inherit 27,000 times the error.
    error: f64,
    flows: u32,
}

/// Where each link has its groups, by their homes: a row for each link, in which 0 is none and all others are one more than
/// the place of the group. It has no rows where there are too many links for it.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<u16>,
    /// The length of a row.
    stride: usize,
}

/// Groups are found by [`Places`] where there are no more links: 32 MB, of which rows without groups take none.
const INDEXED: usize = 4096;

/// What a link knows of its flows while these are grouped.
#[derive(Debug)]
pub(super) struct Stage {
    /// How many of the members are at their own limits; these come first.
    pub(super) alone: u32,
    /// The members that have their homes at other links, by these.
    pub(super) groups: Vec<Group>,
    tallies: Vec<Tally>,
    /// The sum of the shares of those at home here.
    pub(super) own: f64,
    own_tally: Tally,
    /// No flow at home here has a lower ceiling; infinite where there is no such flow.
    pub(super) least_ceiling: f64,
    /// Whether the filling expects the link to be full.
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

    /// Adds to the sum, and keeps what rounding takes from it (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2,
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
    /// Returns the places of the groups of a link, by their homes.
    fn row(&mut self, link: u32) -> &mut [u16] {
        &mut self.places[link as usize * self.stride..][..self.stride]
    }

    /// Returns whether there is a row for so many links, or is none at all.
    pub(super) fn has_room(&self, links: usize) -> bool {
        self.stride == 0 || links <= self.stride
    }

    /// Makes a table for so many links.
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

    /// Returns whether flows have their home at the link.
    pub(super) fn is_home(&self) -> bool {
        self.own_tally.flows > 0
    }

    /// Adds the share of a flow to a link's own or to those of its home.
    fn join_from(&mut self, home: u32, link: u32, share: f64, ceiling: f64, places: &mut Places) {
        if home == link {
            self.own_tally.join(&mut self.own, share);
            self.least_ceiling = self.least_ceiling.min(ceiling);
        } else {
            self.join(home, share, places.row(link));
        }
    }

    /// Takes the share of a flow away again from a link's own or from those of its home.
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

    /// Adds the share of a flow that has its home at another link.
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

    /// Takes the share of a flow that has its home at another link away again.
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

    /// Finds the group of the flows of a home.
    fn find(&self, home: u32, row: &[u16]) -> Option<usize> {
        match row.get(home as usize) {
            Some(&place) => usize::from(place).checked_sub(1),
            None => self.search(home),
        }
    }

    /// Does the same without a table.
    #[cold]
    fn search(&self, home: u32) -> Option<usize> {
        position(&self.groups, |group| group.home == home)
    }
}

impl MaxMin {
    /// Sorts all flows into groups.
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

    /// Gives all flows back to their homes.
    pub(super) fn ungroup_flows(&mut self) {
        self.refill.is_grouped = false;
        for index in 0..self.flows.len() as u32 {
            self.limits[index as usize] = self.level(FlowIndex(index));
            let home = self.flows[index as usize].home.take();
            self.move_home(index, home);
        }
    }

    /// Gives a flow another home.
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

    /// Adds a flow to the groups of its links, or to those that stand alone.
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

    /// Takes a flow from the groups of its links, or from those that stand alone.
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

    /// Makes a link that is full the home of the flows that could rise further elsewhere.
    pub(super) fn take_in(&mut self, index: u32, level: f64) {
        let most = level * (1.0 + TOLERANCE);
        // Backwards: where a flow leaves its place among those that stand alone, the last of them takes it.
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

    /// Returns whether another link, which is not full yet, fills at the same level as this one, as it did before. Where a
    /// flow would leave it at its ceiling below that, this link would have counted on the flow for nothing.
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

    /// Leaves the flows at home at a link alone that have ceilings up to this level; returns whether there are any.
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
