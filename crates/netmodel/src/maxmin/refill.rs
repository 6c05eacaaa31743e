//! Progressive filling of all links together, for changes that reach nearly all of them.
//!
//! Each link keeps what its frozen flows leave and the shares of those that rise; a link that fills takes its flows out
//! of both, at all its guests (`maxmin/group.rs`). Their quotient is a lower bound of the level of the link: exact but for
//! rounding, and for flows that reach their own limits before. So it orders the links; where a link comes up, its level
//! is computed from its groups.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::group::{Group, Guest};
use super::{Link, MaxMin, TOLERANCE};
use crate::Sharing;

/// Below this part of the shares that it had, the shares that rise are a difference of equals.
const PRECISE: f64 = 1.0 / 64.0;

/// A link that has no more than this part of its capacity left may be full after the next change.
const TIGHT: f64 = 0.1;

/// Levels closer than this, relatively, are equal for flows that have their home at one of two links and might as well
/// have it at the other.
const TIE: f64 = 1e-13;

/// What the filling knows between solves, while flows are grouped.
#[derive(Debug, Default)]
pub(super) struct Refill {
    pub(super) is_grouped: bool,
    /// By the numbers of the links.
    pub(super) stages: Vec<Stage>,
    /// Lower bounds of levels, as bits, with their links.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// How many links the last filling found full.
    full: usize,
    /// How many solves in a row were better done the other way.
    misfits: u32,
}

/// A link that is being filled.
#[derive(Debug)]
pub(super) struct Stage {
    /// The level of its flows; until it is full, no limit.
    pub(super) limit: f64,
    /// What the flows that other links froze leave.
    room: f64,
    /// The shares of the others.
    rising: f64,
    /// The shares of all.
    whole: f64,
    /// A level below which it is known not to be full.
    least: f64,
    /// How many flows rise.
    flows: u32,
    /// Whether the filling sees to it that the link carries no more than it can.
    is_due: bool,
    /// Whether it was nearly full after the last filling.
    is_tight: bool,
    /// How many of the members are at their own limits; these come first.
    pub(super) alone: u32,
    /// The other members by their homes.
    pub(super) groups: Vec<Group>,
    /// The links that have a group whose home is this one, itself among them.
    pub(super) guests: Vec<Guest>,
    /// No flow whose home the link is has a lower ceiling; infinite where there is no such flow.
    pub(super) least_ceiling: f64,
}

impl Default for Stage {
    fn default() -> Self {
        let (limit, least_ceiling) = (f64::INFINITY, f64::INFINITY);
        let (room, rising, whole, least, flows, alone) = (0.0, 0.0, 0.0, 0.0, 0, 0);
        let (groups, guests) = (Vec::new(), Vec::new());
        let (is_due, is_tight) = (false, true);
        Self {
            limit,
            room,
            rising,
            whole,
            least,
            flows,
            is_due,
            is_tight,
            alone,
            groups,
            guests,
            least_ceiling,
        }
    }
}

impl Stage {
    /// Forgets all flows.
    pub(super) fn clear(&mut self) {
        (self.alone, self.least_ceiling, self.is_tight) = (0, f64::INFINITY, true);
        self.groups.clear();
        self.guests.clear();
    }

    /// Returns whether the link is expected to fill, because it did the last time, or nearly so, or may have more flows.
    fn may_fill(&self) -> bool {
        self.is_tight || self.alone > 0 || !self.guests.is_empty()
    }

    /// Returns a lower bound of the level; infinite where nothing rises any more.
    fn bound(&self) -> f64 {
        let full = if self.flows == 0 {
            f64::INFINITY
        } else if self.rising > PRECISE * self.whole {
            (self.room / self.rising).max(self.least)
        } else {
            self.least
        };
        full.min(self.least_ceiling)
    }
}

/// Flows are grouped, or no longer, when that has been found better so many times in a row: it costs a few solves.
const PATIENCE: u32 = 8;

/// Solves that look at fewer limits than this, and four per link, are done as they come up.
const DENSE: usize = 256;

impl MaxMin {
    /// Decides whether flows are grouped for the next solve.
    pub(super) fn choose_grouping(&mut self) {
        let Refill { is_grouped, full, ref mut misfits, .. } = self.refill;
        let fits = if is_grouped {
            4 * self.sweep.changed.len() >= full
        } else {
            self.sweep.work <= DENSE + 4 * self.links.len()
        };
        *misfits = if fits { 0 } else { *misfits + 1 };
        if *misfits == PATIENCE {
            *misfits = 0;
            if is_grouped { self.ungroup_flows() } else { self.group_flows() }
        }
    }

    /// Brings the rates up to date by filling all links. Flows are grouped.
    pub(super) fn refill(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        self.disturbed.clear();
        if !self.fill_links(|link, stage| stage.may_fill() || link.sharing == Sharing::FatPipe) {
            self.fill_links(|_, _| true);
            self.sweep.changed.sort_unstable();
            self.sweep.changed.dedup();
            self.sweep.changed.retain(|&link| self.links[link as usize].level < f64::INFINITY);
        }
    }

    /// Fills the links that may become full; returns whether no other one carries more than it can.
    fn fill_links(&mut self, may_fill: impl Fn(&Link, &Stage) -> bool) -> bool {
        self.refill.full = 0;
        let mut queue = std::mem::take(&mut self.refill.queue).into_vec();
        for index in 0..self.links.len() as u32 {
            self.empty(index);
            let (link, stage) = (&self.links[index as usize], &self.refill.stages[index as usize]);
            let is_due = stage.flows > 0 && !link.mark.left_out && may_fill(link, stage);
            if is_due {
                queue.push(Reverse((stage.bound().to_bits(), index)));
            }
            self.refill.stages[index as usize].is_due = is_due;
        }
        self.refill.queue = BinaryHeap::from(queue);
        while let Some(Reverse((bound, link))) = self.refill.queue.pop() {
            self.come_up(link, f64::from_bits(bound));
        }
        let mut fits = true;
        for index in 0..self.links.len() {
            let (link, stage) = (&mut self.links[index], &mut self.refill.stages[index]);
            stage.is_tight = stage.room < TIGHT * link.capacity;
            if stage.limit < f64::INFINITY {
                continue;
            }
            link.level = f64::INFINITY;
            fits &=
                stage.is_due || link.mark.left_out || stage.flows == 0 && stage.room >= -TIE * link.capacity;
            if !stage.guests.is_empty() {
                self.leave_at_ceilings(index as u32, f64::INFINITY);
            }
        }
        fits
    }

    /// Lets the flows of a link rise from nothing.
    fn empty(&mut self, index: u32) {
        let link = &self.links[index as usize];
        let stage = &mut self.refill.stages[index as usize];
        let groups: f64 = stage.groups.iter().map(|group| group.share).sum();
        let alone: f64 = link.members[..stage.alone as usize].iter().map(|member| member.share).sum();
        (stage.room, stage.whole) = (link.capacity, groups + alone);
        (stage.rising, stage.least, stage.flows) = (stage.whole, 0.0, link.members.len() as u32);
        stage.limit = if link.mark.left_out { link.level } else { f64::INFINITY };
    }

    /// Fills a link whose lower bound is the least, unless that has risen.
    fn come_up(&mut self, index: u32, filed: f64) {
        let stage = &self.refill.stages[index as usize];
        let bound = stage.bound();
        if bound > filed * (1.0 + TOLERANCE) {
            return self.file(index, bound);
        }
        let level = self.level_of_groups(index, filed);
        let next = level.min(stage.least_ceiling);
        if next > filed * (1.0 + TOLERANCE) {
            self.refill.stages[index as usize].least = level;
            self.file(index, next);
        } else if stage.least_ceiling <= level * (1.0 + TOLERANCE) {
            self.leave_at_ceilings(index, next);
            self.file(index, next);
        } else {
            self.freeze_all(index, level);
        }
    }

    fn file(&mut self, index: u32, bound: f64) {
        if bound.is_finite() {
            self.refill.queue.push(Reverse((bound.to_bits(), index)));
        }
    }

    /// Freezes the flows of a link that rise.
    fn freeze_all(&mut self, index: u32, level: f64) {
        self.take_in(index, level);
        if self.refill.stages[index as usize].guests.is_empty() {
            return;
        }
        self.refill.full += 1;
        let (_, level) = self.settle(index, level);
        self.refill.stages[index as usize].limit = level;
        let guests = std::mem::take(&mut self.refill.stages[index as usize].guests);
        for &Guest { link, place } in &guests {
            let stage = &mut self.refill.stages[link as usize];
            let group = &stage.groups[place as usize];
            stage.room -= group.share * level;
            stage.rising -= group.share;
            stage.flows -= group.flows;
        }
        self.refill.stages[index as usize].guests = guests;
    }

    /// Makes a link that is full the home of the flows that could rise further elsewhere.
    fn take_in(&mut self, index: u32, level: f64) {
        let most = level * (1.0 + TOLERANCE);
        // Backwards: where a flow leaves its place among those that stand alone, the last of them takes it.
        for place in (0..self.refill.stages[index as usize].alone as usize).rev() {
            let flow = self.links[index as usize].members[place].flow;
            if self.flows[flow as usize].ceiling > most {
                self.regroup(flow, Some(index));
            }
        }
        let mut place = 0;
        while let Some(&Group { home, .. }) = self.refill.stages[index as usize].groups.get(place) {
            place += 1;
            let rises = home != index && self.refill.stages[home as usize].limit > most;
            if rises && !self.is_tied(home, level) {
                self.take_in_group(index, home);
                place = 0;
            }
        }
    }

    /// Returns whether another link that is not full yet fills at this level.
    fn is_tied(&self, index: u32, level: f64) -> bool {
        let most = level * (1.0 + TIE);
        self.refill.stages[index as usize].bound() <= most && self.level_of_groups(index, level) <= most
    }

    fn take_in_group(&mut self, index: u32, home: u32) {
        for place in
            self.refill.stages[index as usize].alone as usize..self.links[index as usize].members.len()
        {
            let flow = self.links[index as usize].members[place].flow;
            if self.flows[flow as usize].home == Some(home) {
                self.regroup(flow, Some(index));
            }
        }
    }

    /// Leaves the flows at home at a link alone that have ceilings up to this level.
    fn leave_at_ceilings(&mut self, index: u32, level: f64) {
        let most = level * (1.0 + TOLERANCE);
        let mut least = f64::INFINITY;
        for place in
            self.refill.stages[index as usize].alone as usize..self.links[index as usize].members.len()
        {
            let flow = self.links[index as usize].members[place].flow;
            let (home, ceiling) = (self.flows[flow as usize].home, self.flows[flow as usize].ceiling);
            if home == Some(index) && ceiling <= most {
                self.regroup(flow, None);
            } else if home == Some(index) {
                least = least.min(ceiling);
            }
        }
        self.refill.stages[index as usize].least_ceiling = least;
    }
}
