//! Flows by what sets their level.
//!
//! Flows that one link froze have one level, and rise together when that link has more room. To another link that they
//! share they are one flow with the sum of their shares: a *group*. In dense traffic few links are full, so that a link
//! has far fewer groups than flows, and a flow is looked at by itself only when something else becomes its bottleneck.
//! Flows at their own limits have no group: they stand first among the members of a link.

use super::refill::Stage;
use super::{Flow, FlowIndex, MaxMin, Member, Use};

/// The flows of a link whose home is one link, this or another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) home: u32,
    pub(super) flows: u32,
    /// Its place among the guests of its home.
    guest: u32,
    /// The sum of the shares of the flows.
    pub(super) share: f64,
    /// What rounding has taken from the sum. Without it, a flow that takes 1/27,000 of what another one took would
    /// inherit 27,000 times the error.
    error: f64,
}

/// Where a link has a group: on which link, and its place there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) link: u32,
    pub(super) place: u32,
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
        for place in 0..self.flows[index as usize].uses.len() {
            self.leave(index, place);
        }
        self.flows[index as usize].home = home;
        self.enter(index);
    }

    /// Adds a flow to the groups of its links, or to those that stand alone.
    pub(super) fn enter(&mut self, index: u32) {
        let home = self.flows[index as usize].home;
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, place } = self.flows[index as usize].uses[place];
            match home {
                Some(home) => self.join(link, home, self.links[link as usize].members[place as usize].share),
                None => {
                    let stage = &mut self.refill.stages[link as usize];
                    let first = stage.alone;
                    stage.alone += 1;
                    self.swap_members(link, place, first);
                }
            }
        }
        if let Some(home) = home {
            let stage = &mut self.refill.stages[home as usize];
            stage.least_ceiling = stage.least_ceiling.min(self.flows[index as usize].ceiling);
        }
    }

    /// Takes a flow from the groups of its link at this place, or from those that stand alone there.
    pub(super) fn leave(&mut self, index: u32, place: usize) {
        let Flow { home, ref uses, .. } = self.flows[index as usize];
        let Use { link, place } = uses[place];
        let Some(home) = home else {
            let stage = &mut self.refill.stages[link as usize];
            stage.alone -= 1;
            let last = stage.alone;
            return self.swap_members(link, place, last);
        };
        let Member { share, .. } = self.links[link as usize].members[place as usize];
        let groups = &mut self.refill.stages[link as usize].groups;
        let found = groups.iter().position(|group| group.home == home);
        let place = found.expect("the groups of a link have all its flows");
        let group = &mut groups[place];
        group.flows -= 1;
        if group.flows > 0 {
            return group.add(-share);
        }
        let Group { guest, .. } = groups.swap_remove(place);
        if let Some(&moved) = groups.get(place) {
            self.refill.stages[moved.home as usize].guests[moved.guest as usize].place = place as u32;
        }
        self.forget_guest(home, guest);
    }

    fn join(&mut self, index: u32, home: u32, share: f64) {
        let groups = &mut self.refill.stages[index as usize].groups;
        match groups.iter_mut().find(|group| group.home == home) {
            Some(group) => {
                group.flows += 1;
                group.add(share);
            }
            None => {
                let place = groups.len() as u32;
                let guests = &mut self.refill.stages[home as usize].guests;
                let guest = guests.len() as u32;
                guests.push(Guest { link: index, place });
                let group = Group { home, flows: 1, guest, share, error: 0.0 };
                self.refill.stages[index as usize].groups.push(group);
            }
        }
    }

    fn forget_guest(&mut self, home: u32, guest: u32) {
        let Stage { guests, least_ceiling, .. } = &mut self.refill.stages[home as usize];
        guests.swap_remove(guest as usize);
        match guests.get(guest as usize) {
            Some(&Guest { link, place }) => {
                self.refill.stages[link as usize].groups[place as usize].guest = guest;
            }
            None if guests.is_empty() => *least_ceiling = f64::INFINITY,
            None => (),
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
