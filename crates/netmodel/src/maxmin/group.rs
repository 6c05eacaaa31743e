//! Flows by what sets their level.
//!
//! Flows that one link froze have one level, and rise together when that link has more room. To another link that they
//! share they are one flow with the sum of their shares: a *group*. In dense traffic few links are full, so that a link
//! has far fewer groups than flows, and a flow is looked at by itself only when something else becomes its bottleneck.
//! Flows at their own limits have no group: they stand first among the members of a link.

use super::{FlowIndex, MaxMin, Use};

/// The flows of a link whose home is one link, this or another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) home: u32,
    flows: u32,
    /// The sum of the shares of the flows.
    pub(super) share: f64,
    /// What rounding has taken from the sum. Without it, a flow that takes 1/27,000 of what another one took would
    /// inherit 27,000 times the error.
    error: f64,
}

/// What a link knows of its flows while these are grouped.
#[derive(Debug)]
pub(super) struct Stage {
    /// How many of the members are at their own limits; these come first.
    pub(super) alone: u32,
    /// The other members by their homes.
    pub(super) groups: Vec<Group>,
    /// How many flows have their home here.
    pub(super) residents: u32,
    /// None of them has a lower ceiling; infinite where there is no such flow.
    pub(super) least_ceiling: f64,
    /// Whether the filling expects the link to be full.
    pub(super) is_in_turn: bool,
}

impl Group {
    /// Adds to the sum, and keeps what rounding takes from it (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2,
    /// theorem B).
    fn add(&mut self, share: f64) {
        let sum = self.share + share;
        let added = sum - self.share;
        self.error += (self.share - (sum - added)) + (share - added);
        self.share = sum + self.error;
        self.error -= self.share - sum;
    }
}

impl Default for Stage {
    fn default() -> Self {
        let (alone, residents, least_ceiling) = (0, 0, f64::INFINITY);
        Self { alone, groups: Vec::new(), residents, least_ceiling, is_in_turn: false }
    }
}

impl Stage {
    fn clear(&mut self) {
        let groups = std::mem::take(&mut self.groups);
        *self = Self { groups, ..Self::default() };
        self.groups.clear();
    }

    /// Adds the share of a flow with this home.
    fn join(&mut self, home: u32, share: f64) {
        match self.groups.iter_mut().find(|group| group.home == home) {
            Some(group) => {
                group.flows += 1;
                group.add(share);
            }
            None => self.groups.push(Group { home, flows: 1, share, error: 0.0 }),
        }
    }

    /// Takes the share of a flow away again.
    fn part(&mut self, home: u32, share: f64) {
        let found = self.groups.iter().position(|group| group.home == home);
        let place = found.expect("the groups of a link have all its flows");
        let group = &mut self.groups[place];
        group.flows -= 1;
        if group.flows > 0 {
            group.add(-share);
        } else {
            self.groups.swap_remove(place);
        }
    }
}

impl MaxMin {
    /// Sorts all flows into groups.
    pub(super) fn group_flows(&mut self) {
        self.refill.is_grouped = true;
        self.refill.stages.resize_with(self.links.len(), Stage::default);
        self.refill.stages.iter_mut().for_each(Stage::clear);
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
        self.leave(index);
        self.flows[index as usize].home = home;
        self.enter(index);
    }

    /// Adds a flow to the groups of its links, or to those that stand alone.
    pub(super) fn enter(&mut self, index: u32) {
        let home = self.flows[index as usize].home;
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place } = self.flows[index as usize].uses[place];
            let stage = &mut self.refill.stages[link as usize];
            if let Some(home) = home {
                stage.join(home, self.links[link as usize].members[place as usize].share);
            } else {
                let first = stage.alone;
                stage.alone += 1;
                self.swap_members(link, place, first);
            }
        }
        if let Some(home) = home {
            let stage = &mut self.refill.stages[home as usize];
            stage.residents += 1;
            stage.least_ceiling = stage.least_ceiling.min(self.flows[index as usize].ceiling);
        }
    }

    /// Takes a flow from the groups of its links, or from those that stand alone.
    pub(super) fn leave(&mut self, index: u32) {
        let home = self.flows[index as usize].home;
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place } = self.flows[index as usize].uses[place];
            let stage = &mut self.refill.stages[link as usize];
            if let Some(home) = home {
                stage.part(home, self.links[link as usize].members[place as usize].share);
            } else {
                stage.alone -= 1;
                let last = stage.alone;
                self.swap_members(link, place, last);
            }
        }
        if let Some(home) = home {
            let stage = &mut self.refill.stages[home as usize];
            stage.residents -= 1;
            if stage.residents == 0 {
                stage.least_ceiling = f64::INFINITY;
            }
        }
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
