//! Groups of flows with a common bottleneck.
//!
//! Flows that one link froze have one level, and rise together when that link gets more room. On another link that they
//! share they act as one flow with the sum of their shares: a *group*. In dense traffic few links are full, so that a link
//! has far fewer groups than flows, and a flow is handled individually only when its bottleneck changes. Flows at their
//! own limits have no group: they come first among the members of a link.

use pdes_core::State;
use serde::{Deserialize, Serialize};

use super::filling::{TIE, position};
use super::{Flow, FlowIndex, MaxMin, TOLERANCE, Use};

/// A group: the flows of a link whose bottleneck is another link.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) struct Group {
    /// Sum of their shares.
    pub(super) share: f64,
    /// Bottleneck of the flows.
    pub(super) bottleneck: u32,
}

/// Compensation and number of terms of a running sum of shares.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, State)]
struct Compensation {
    /// Rounding error of the sum. Without the compensation, a flow that takes 1/27,000 of what a former one took
    /// would inherit 27,000 times its error.
    error: f64,
    flows: u32,
}

/// Index of the groups of each link by their bottlenecks: a row for each link, in which 0 means no group and other
/// entries are one more than the position of the group. There are no rows if there are more than
/// [`MAX_INDEXED_LINKS`] links.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GroupIndex {
    rows: Vec<u16>,
    /// The length of a row.
    stride: usize,
}

/// Largest number of links with a [`GroupIndex`]: 32 MB, of which rows without groups take no memory.
const MAX_INDEXED_LINKS: usize = 4096;

/// Flows of a link while flows are grouped.
#[derive(Debug, Serialize, Deserialize, State)]
pub(super) struct LinkState {
    /// Number of members at their own limits; these come first.
    pub(super) at_ceiling: u32,
    /// Groups of the other members whose bottleneck is another link.
    pub(super) groups: Vec<Group>,
    compensations: Vec<Compensation>,
    /// Sum of the shares of the flows whose bottleneck is this link.
    pub(super) own_share: f64,
    own_compensation: Compensation,
    /// Lower bound on the ceilings of the flows whose bottleneck is this link; infinite if there are none.
    pub(super) least_ceiling: f64,
    /// The link is in the fill order: it is expected to be full.
    pub(super) is_in_order: bool,
}

impl Compensation {
    fn add_flow(&mut self, sum: &mut f64, share: f64) {
        self.flows += 1;
        self.add(sum, share);
    }

    fn remove_flow(&mut self, sum: &mut f64, share: f64) {
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

impl GroupIndex {
    /// Returns the row of a link: positions of its groups by bottleneck, plus one.
    fn row(&mut self, link: u32) -> &mut [u16] {
        &mut self.rows[link as usize * self.stride..][..self.stride]
    }

    /// Returns whether there are rows for this many links, or no rows at all.
    pub(super) fn covers(&self, links: usize) -> bool {
        self.stride == 0 || links <= self.stride
    }

    /// Rebuilds the index from the groups of all links.
    pub(super) fn rebuild(&mut self, link_states: &[LinkState]) {
        self.stride =
            if link_states.len() <= MAX_INDEXED_LINKS { link_states.len().next_power_of_two() } else { 0 };
        self.rows = vec![0; self.stride * self.stride];
        if self.stride > 0 {
            for (link, state) in (0..).zip(link_states) {
                let row = self.row(link);
                for (place, group) in (1..).zip(&state.groups) {
                    row[group.bottleneck as usize] = place;
                }
            }
        }
    }
}

impl Default for LinkState {
    fn default() -> Self {
        let (groups, tallies, own_tally) = (Vec::new(), Vec::new(), Compensation::default());
        Self {
            at_ceiling: 0,
            groups,
            compensations: tallies,
            own_share: 0.0,
            own_compensation: own_tally,
            least_ceiling: f64::INFINITY,
            is_in_order: false,
        }
    }
}

impl LinkState {
    fn clear(&mut self) {
        let (groups, tallies) = (std::mem::take(&mut self.groups), std::mem::take(&mut self.compensations));
        *self = Self { groups, compensations: tallies, ..Self::default() };
        self.groups.clear();
        self.compensations.clear();
    }

    /// Returns whether the link is the bottleneck of any flow.
    pub(super) fn is_bottleneck(&self) -> bool {
        self.own_compensation.flows > 0
    }

    /// Adds the share of a flow to the link's own sum or to the group of the flow's bottleneck.
    fn add_flow(&mut self, home: u32, link: u32, share: f64, ceiling: f64, places: &mut GroupIndex) {
        if home == link {
            self.own_compensation.add_flow(&mut self.own_share, share);
            self.least_ceiling = self.least_ceiling.min(ceiling);
        } else {
            self.add_to_group(home, share, places.row(link));
        }
    }

    /// Removes the share of a flow from the link's own sum or from the group of the flow's bottleneck.
    fn remove_flow(&mut self, home: u32, link: u32, share: f64, places: &mut GroupIndex) {
        if home != link {
            self.remove_from_group(home, share, places.row(link));
            return;
        }
        self.own_compensation.remove_flow(&mut self.own_share, share);
        if !self.is_bottleneck() {
            self.least_ceiling = f64::INFINITY;
        }
    }

    /// Adds the share of a flow to the group of its bottleneck, which is another link.
    fn add_to_group(&mut self, home: u32, share: f64, row: &mut [u16]) {
        let place = self.group_position(home, row).unwrap_or_else(|| {
            self.groups.push(Group { bottleneck: home, share: 0.0 });
            self.compensations.push(Compensation::default());
            if let Some(place) = row.get_mut(home as usize) {
                *place = self.groups.len() as u16;
            }
            self.groups.len() - 1
        });
        self.compensations[place].add_flow(&mut self.groups[place].share, share);
    }

    /// Removes the share of a flow from the group of its bottleneck, which is another link.
    fn remove_from_group(&mut self, home: u32, share: f64, row: &mut [u16]) {
        let place = self.group_position(home, row).expect("the groups of a link have all its flows");
        self.compensations[place].remove_flow(&mut self.groups[place].share, share);
        if self.compensations[place].flows == 0 {
            self.groups.swap_remove(place);
            self.compensations.swap_remove(place);
            if !row.is_empty() {
                row[home as usize] = 0;
                if let Some(moved) = self.groups.get(place) {
                    row[moved.bottleneck as usize] = place as u16 + 1;
                }
            }
        }
    }

    /// Returns the position of the group of a bottleneck.
    fn group_position(&self, home: u32, row: &[u16]) -> Option<usize> {
        match row.get(home as usize) {
            Some(&place) => usize::from(place).checked_sub(1),
            None => self.search_group(home),
        }
    }

    /// Finds the group without an index.
    #[cold]
    fn search_group(&self, home: u32) -> Option<usize> {
        position(&self.groups, |group| group.bottleneck == home)
    }
}

impl MaxMin {
    /// Groups all flows.
    pub(super) fn group_flows(&mut self) {
        self.filling.is_grouped = true;
        self.filling.link_states.resize_with(self.links.len(), LinkState::default);
        self.filling.link_states.iter_mut().for_each(LinkState::clear);
        self.filling.group_index.rebuild(&self.filling.link_states);
        self.links.iter_mut().for_each(|link| link.bottlenecked.clear());
        for index in self.active_flows() {
            self.limits[index as usize] = self.flows[index as usize].ceiling;
            self.add_to_groups(index);
        }
        self.reset_fill_order();
    }

    /// Ungroups all flows: lists them at their bottlenecks.
    pub(super) fn ungroup_flows(&mut self) {
        self.filling.is_grouped = false;
        for index in self.active_flows() {
            self.limits[index as usize] = self.level(FlowIndex(index));
            let home = self.flows[index as usize].bottleneck.take();
            self.set_bottleneck(index, home);
        }
    }

    /// Returns the flows in the order of their first links, and of the members of these: in an order that does not depend
    /// on the numbers of flows, which are reused. Sums over groups and lists depend on it.
    pub(super) fn active_flows(&self) -> Vec<u32> {
        let members = self.links.iter().flat_map(|link| &link.members);
        members.filter(|member| member.place == 0).map(|member| member.flow).collect()
    }

    /// Changes the bottleneck of a flow.
    pub(super) fn change_bottleneck(&mut self, index: u32, home: Option<u32>) {
        self.note_move(index);
        let flow = &mut self.flows[index as usize];
        if let (Some(from), Some(to)) = (flow.bottleneck, home) {
            flow.bottleneck = home;
            for &Use { link, share, .. } in &flow.uses {
                let state = &mut self.filling.link_states[link as usize];
                state.remove_flow(from, link, share, &mut self.filling.group_index);
                state.add_flow(to, link, share, flow.ceiling, &mut self.filling.group_index);
            }
            return;
        }
        self.remove_from_groups(index);
        self.flows[index as usize].bottleneck = home;
        self.add_to_groups(index);
    }

    /// Adds a flow to the groups of its links, or to their members at ceilings.
    pub(super) fn add_to_groups(&mut self, index: u32) {
        let Flow { bottleneck, ceiling, .. } = self.flows[index as usize];
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place, share } = self.flows[index as usize].uses[place];
            let state = &mut self.filling.link_states[link as usize];
            match bottleneck {
                Some(home) => state.add_flow(home, link, share, ceiling, &mut self.filling.group_index),
                None => {
                    let first = state.at_ceiling;
                    state.at_ceiling += 1;
                    self.swap_members(link, place, first);
                }
            }
        }
    }

    /// Removes a flow from the groups of its links, or from their members at ceilings.
    pub(super) fn remove_from_groups(&mut self, index: u32) {
        let home = self.flows[index as usize].bottleneck;
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place, share } = self.flows[index as usize].uses[place];
            let state = &mut self.filling.link_states[link as usize];
            match home {
                Some(home) => state.remove_flow(home, link, share, &mut self.filling.group_index),
                None => {
                    state.at_ceiling -= 1;
                    let last = state.at_ceiling;
                    self.swap_members(link, place, last);
                }
            }
        }
    }

    /// Makes a full link the bottleneck of its flows that could rise further elsewhere.
    pub(super) fn freeze_rising_flows(&mut self, index: u32, level: f64) {
        let most = level * (1.0 + TOLERANCE);
        // Backwards: when a flow leaves the members at ceilings, the last of them takes its position.
        for place in (0..self.filling.link_states[index as usize].at_ceiling as usize).rev() {
            let flow = self.links[index as usize].members[place].flow;
            if self.flows[flow as usize].ceiling > most {
                self.change_bottleneck(flow, Some(index));
            }
        }
        let mut bottlenecks = std::mem::take(&mut self.filling.bottlenecks);
        let groups = self.filling.link_states[index as usize].groups.iter().map(|group| group.bottleneck);
        let rises = |home: u32| self.filling.frozen_levels[home as usize].limit() > most;
        bottlenecks.extend(groups.filter(|&home| rises(home) && !self.is_tied(index, level, home)));
        if !bottlenecks.is_empty() {
            self.freeze_groups(index, &bottlenecks);
            bottlenecks.clear();
        }
        self.filling.bottlenecks = bottlenecks;
    }

    /// Returns whether another link, which is not full yet, fills at the same level as this one, as it did before.
    /// Such a link keeps its flows. The exception is a flow whose ceiling is at or below that level: if it left the
    /// other link for its ceiling, this link would have counted on it in vain.
    fn is_tied(&self, index: u32, level: f64, other: u32) -> bool {
        let (before, other_before) = (self.links[index as usize].level, self.links[other as usize].level);
        if before < f64::INFINITY && other_before < before * (1.0 - TOLERANCE)
            || self.filling.link_states[other as usize].least_ceiling <= level * (1.0 + TOLERANCE)
        {
            return false;
        }
        // A link that seems to fill below waits for flows that do not rise so far.
        let other_level = self.level_in_order(other, level, level * (1.0 - TIE)).0;
        (level * (1.0 - TIE)..=level * (1.0 + TIE)).contains(&other_level)
    }

    fn freeze_groups(&mut self, index: u32, bottlenecks: &[u32]) {
        let alone = self.filling.link_states[index as usize].at_ceiling as usize;
        let members = self.links[index as usize].members[alone..].iter().map(|member| member.flow);
        let flows = &self.flows;
        let is_taken =
            |&flow: &u32| flows[flow as usize].bottleneck.is_some_and(|home| bottlenecks.contains(&home));
        let mut rising_flows = std::mem::take(&mut self.filling.rising_flows);
        rising_flows.extend(members.filter(is_taken));
        rising_flows.drain(..).for_each(|flow| self.change_bottleneck(flow, Some(index)));
        self.filling.rising_flows = rising_flows;
    }

    /// Ungroups the flows of a bottleneck that have ceilings up to `most`; returns whether there are any.
    pub(super) fn ungroup_at_ceilings(&mut self, index: u32, most: f64) -> bool {
        let mut least = f64::INFINITY;
        let alone = self.filling.link_states[index as usize].at_ceiling;
        for place in alone as usize..self.links[index as usize].members.len() {
            let flow = self.links[index as usize].members[place].flow;
            let (home, ceiling) = (self.flows[flow as usize].bottleneck, self.flows[flow as usize].ceiling);
            if home == Some(index) && ceiling <= most {
                self.change_bottleneck(flow, None);
            } else if home == Some(index) {
                least = least.min(ceiling);
            }
        }
        let state = &mut self.filling.link_states[index as usize];
        state.least_ceiling = least;
        state.at_ceiling > alone
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

    use super::LinkState;

    proptest! {
        #[test]
        fn groups_are_the_same_with_a_table_and_without(
            changes in proptest::collection::vec((0_u32..40, 1_u32..100, any::<bool>()), 1..300),
        ) {
            let (mut indexed, mut searched) = (LinkState::default(), LinkState::default());
            let mut row = [0_u16; 64];
            let mut shares: [Vec<f64>; 40] = std::array::from_fn(|_| Vec::new());
            for (home, share, parts) in changes {
                let flows = &mut shares[home as usize];
                if let Some(share) = flows.pop_if(|_| parts) {
                    indexed.remove_from_group(home, share, &mut row);
                    searched.remove_from_group(home, share, &mut []);
                } else {
                    let share = f64::from(share) / 7.0;
                    flows.push(share);
                    indexed.add_to_group(home, share, &mut row);
                    searched.add_to_group(home, share, &mut []);
                }
                let groups = |state: &LinkState| -> Vec<_> {
                    state.groups.iter().map(|group| (group.bottleneck, group.share.to_bits())).collect()
                };
                prop_assert_eq!(groups(&indexed), groups(&searched));
                prop_assert_eq!(indexed.groups.len(), shares.iter().filter(|flows| !flows.is_empty()).count());
            }
        }
    }
}
