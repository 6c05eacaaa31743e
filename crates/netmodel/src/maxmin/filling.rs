//! Progressive filling of all links in the order of the last solve, for changes that reach nearly all of them.
//!
//! Links fill in the order of their levels, and that order changes little from one solve to the next. So the links are
//! visited in the *fill order* of the last solve, those at which flows came or went at an estimate of their new level: the
//! level of each is computed from the levels of the links before it and from what these leave to its groups
//! (`maxmin/group.rs`). A link that proves lower than the one before moves back to its position, and those that it
//! overtakes are visited again; a link that proves far higher than expected moves towards the end. At the end the
//! levels ascend, and each is that of progressive filling, because links that come later have no part in it. For the same
//! reason links before the first change keep their levels. Links that are not expected to be full are tested last, and
//! enter the order if they are overloaded; their *headroom*, the growth of all levels up to which they cannot be full, is
//! kept from solve to solve.
//!
//! If the order is far off, all links fill from the least to the highest level: every link begins with the level that it
//! would have alone, a lower bound, and moves towards the end whenever it proves higher than the next.

use pdes_core::{State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::group::{GroupIndex, LinkState};
use super::repair::differs;
use super::{Flow, MaxMin, TOLERANCE};

/// Relative distance below which two links fill at one level, so that either may be the bottleneck of a flow of both.
pub(super) const TIE: f64 = 1e-13;

/// State of the filling between solves, while flows are grouped.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Filling {
    pub(super) is_grouped: bool,
    pub(super) never_groups: bool,
    /// Flows of each link, by link.
    pub(super) link_states: Vec<LinkState>,
    pub(super) group_index: GroupIndex,
    /// Level of the flows with each bottleneck, by link.
    pub(super) frozen_levels: Vec<FrozenLevel>,
    /// Full links by level; during a filling, the links already filled and those to come.
    fill_order: Vec<FillEntry>,
    /// The fill order and the frozen levels are those of a filling of all links.
    is_complete: bool,
    /// Upper bound on the growth of any flow's level since the headroom was reset.
    growth: f64,
    /// Headroom by link: growth of levels up to which the link has room; infinite if the link is in the fill order or
    /// has no flows, and needs no test.
    pub(super) headrooms: Vec<f64>,
    /// Bottlenecks of the flows that a link freezes, and these flows; buffers.
    pub(super) bottlenecks: Vec<u32>,
    pub(super) rising_flows: Vec<u32>,
    /// Links outside the fill order that were found to have room; a buffer.
    with_room: Vec<u32>,
    /// Links removed from the fill order since the last solve, and first position at which the order or a level may
    /// have changed since then.
    removed: Vec<u32>,
    first_change: usize,
    /// Number of consecutive solves for which the other method would have been better.
    misfit_solves: u32,
}

/// Level of the flows of a bottleneck: a term of the sums over groups.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
#[repr(align(16))]
pub(super) struct FrozenLevel {
    /// Level of the flows if the link is full; else zero.
    pub(super) level: f64,
    /// One if the flows still rise, else zero.
    pub(super) rising: f64,
}

/// Entry of the fill order: a link and the level at which it fills.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct FillEntry {
    level: f64,
    link: u32,
}

impl FrozenLevel {
    pub(super) const RISING: Self = Self { level: 0.0, rising: 1.0 };

    fn frozen(level: f64) -> Self {
        Self { level, rising: 0.0 }
    }

    /// Returns the level up to which the flows may rise.
    pub(super) fn limit(self) -> f64 {
        if self.rising == 0.0 { self.level } else { f64::INFINITY }
    }
}

/// Between solves; the groups only while there are any.
impl State for Filling {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self {
            is_grouped,
            never_groups: _,
            link_states,
            group_index: _,
            frozen_levels,
            fill_order,
            is_complete,
            growth: _,
            headrooms: _,
            bottlenecks: _,
            rising_flows: _,
            with_room: _,
            removed,
            first_change: _,
            misfit_solves,
        } = self;
        is_grouped.visit(visitor);
        misfit_solves.visit(visitor);
        if *is_grouped {
            is_complete.visit(visitor);
            removed.visit(visitor);
            fill_order.visit(visitor);
            link_states.visit(visitor);
            frozen_levels.visit(visitor);
        }
    }
}

impl Filling {
    #[cfg(test)]
    pub(super) fn change_patience(&mut self) {
        self.misfit_solves += 1;
    }

    /// Returns the first link from this one on that may have no room after this growth.
    fn first_without_headroom(&self, from: u32, growth: f64) -> Option<u32> {
        let place = position(&self.headrooms[from as usize..], |&room| room < growth)?;
        Some(from + place as u32)
    }
}

/// Returns the position of the first match, testing eight at a time without a branch for each.
pub(super) fn position<T>(all: &[T], is_so: impl Fn(&T) -> bool) -> Option<usize> {
    let (eights, rest) = all.as_chunks::<8>();
    let is_among = |eight: &[T; 8]| eight.iter().fold(false, |found, one| found | is_so(one));
    let (first, some) = match eights.iter().position(is_among) {
        Some(place) => (8 * place, &eights[place][..]),
        None => (8 * eights.len(), rest),
    };
    some.iter().position(is_so).map(|place| first + place)
}

/// Number of consecutive solves that must favour grouping before flows are grouped: it costs a few solves, and dense
/// traffic has its lulls.
const GROUP_AFTER: u32 = 4;
/// Number of consecutive solves that must favour ungrouping before flows are ungrouped.
const UNGROUP_AFTER: u32 = 32;

/// Work [flow limits], plus one per link, up to which a solve is better done by the sweep.
const SWEEP_WORK: usize = 64;

/// Flows stay grouped while at least one in this many full links changes its level.
const MIN_CHANGED_PART: usize = 8;

/// Ratio of the level of a link to that of the next one beyond which the link moves towards the end.
const REORDER_RATIO: f64 = 1.0 + 1e-3;

/// Relative distance of levels below which entries of the fill order are redone together: which of two such links is
/// the bottleneck of a flow may depend on the other one.
const ORDER_TIE: f64 = 1e-10;

/// Relative rounding error of a sum over groups.
const ROUNDING: f64 = 1e-12;

/// Growth beyond which the headroom is reset.
const MAX_GROWTH: f64 = 1e100;

impl MaxMin {
    /// Chooses the method of the next solve: filling with groups or sweep without.
    pub(super) fn choose_method(&mut self) {
        if self.filling.never_groups {
            return;
        }
        let (fits, patience) = if self.filling.is_grouped {
            (MIN_CHANGED_PART * self.sweep.changed.len() >= self.filling.fill_order.len(), UNGROUP_AFTER)
        } else {
            (self.sweep.work <= SWEEP_WORK + self.links.len(), GROUP_AFTER)
        };
        let misfit_solves = &mut self.filling.misfit_solves;
        *misfit_solves = if fits { 0 } else { *misfit_solves + 1 };
        if *misfit_solves == patience {
            *misfit_solves = 0;
            if self.filling.is_grouped { self.ungroup_flows() } else { self.group_flows() }
        }
    }

    /// Sets the fill order to the full links by their levels.
    pub(super) fn reset_fill_order(&mut self) {
        self.filling.fill_order.clear();
        self.filling.frozen_levels.clear();
        self.filling.frozen_levels.resize(self.links.len(), FrozenLevel::RISING);
        self.filling.headrooms.resize(self.links.len(), 0.0);
        self.filling.is_complete = false;
        self.reset_headrooms();
        for (index, link) in self.links.iter().enumerate() {
            if self.filling.link_states[index].is_bottleneck() {
                self.filling.frozen_levels[index] = FrozenLevel::frozen(link.level);
                self.filling.link_states[index].is_in_order = true;
                self.filling.fill_order.push(FillEntry { level: link.level, link: index as u32 });
            }
        }
        self.filling.fill_order.sort_by(|one, other| one.level.total_cmp(&other.level));
    }

    /// Updates the rates by filling all links. Flows are grouped.
    pub(super) fn solve_by_filling(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        let first = self.update_fill_order();
        let none_left_out = self.modified.skipped.is_empty();
        let place = if none_left_out && self.filling.is_complete { first } else { 0 };
        self.filling.is_complete = none_left_out;
        self.filling.first_change = place;
        self.unfreeze_from(place);
        // Enough if the order is roughly right; else filling from lower bounds is faster.
        let steps = 4 * self.filling.fill_order.len() + 64;
        if self.fill_in_order(place, REORDER_RATIO, steps) {
            self.store_levels();
        } else {
            self.fill_from_lower_bounds();
        }
    }

    /// Updates the rates by filling all links from lower bounds, without the last fill order.
    pub(super) fn fill_from_scratch(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        self.dirty_links.clear();
        self.filling.is_complete = false;
        self.fill_from_lower_bounds();
    }

    /// Moves the links at which flows came or went to their estimated levels in the fill order; returns the first
    /// position at which that makes a difference.
    fn update_fill_order(&mut self) -> usize {
        let mut disturbed = std::mem::take(&mut self.dirty_links);
        for &link in &disturbed {
            self.filling.link_states[link as usize].is_in_order = false;
        }
        let (links, link_states, removed) =
            (&self.links, &mut self.filling.link_states, &mut self.filling.removed);
        let headrooms = &mut self.filling.headrooms;
        let mut lowest = f64::INFINITY;
        self.filling.fill_order.retain(|entry| {
            let state = &mut link_states[entry.link as usize];
            state.is_in_order &= !links[entry.link as usize].sweep_state.is_skipped;
            if !state.is_in_order {
                lowest = lowest.min(entry.level);
                headrooms[entry.link as usize] = 0.0;
                removed.push(entry.link);
            }
            state.is_in_order
        });
        for link in disturbed.drain(..) {
            if self.filling.link_states[link as usize].is_in_order
                || self.links[link as usize].sweep_state.is_skipped
            {
                continue;
            }
            self.filling.frozen_levels[link as usize] = FrozenLevel::RISING;
            let level = self.expected_level(link);
            if level.is_finite() {
                self.filling.frozen_levels[link as usize] = FrozenLevel::frozen(level);
                self.insert_in_order(FillEntry { level, link });
                lowest = lowest.min(level);
            }
        }
        self.dirty_links = disturbed;
        let fill_order = &self.filling.fill_order;
        let mut first = fill_order.partition_point(|entry| entry.level < lowest * (1.0 - ORDER_TIE));
        while first > 0
            && fill_order
                .get(first)
                .is_some_and(|entry| fill_order[first - 1].level >= entry.level * (1.0 - ORDER_TIE))
        {
            first -= 1;
        }
        first
    }

    /// Inserts an entry after those of lower levels, and returns its position.
    fn insert_in_order(&mut self, entry: FillEntry) -> usize {
        self.filling.link_states[entry.link as usize].is_in_order = true;
        self.filling.headrooms[entry.link as usize] = f64::INFINITY;
        let place = self.filling.fill_order.partition_point(|other| other.level <= entry.level);
        self.filling.fill_order.insert(place, entry);
        place
    }

    /// Unfreezes the flows of the links from this position on.
    fn unfreeze_from(&mut self, place: usize) {
        if place == 0 {
            return self.unfreeze_all();
        }
        for entry in &self.filling.fill_order[place..] {
            self.filling.frozen_levels[entry.link as usize] = FrozenLevel::RISING;
        }
    }

    /// Unfreezes all flows, except those of skipped links.
    fn unfreeze_all(&mut self) {
        for (frozen, link) in self.filling.frozen_levels.iter_mut().zip(&self.links) {
            *frozen = if link.sweep_state.is_skipped {
                FrozenLevel::frozen(link.level)
            } else {
                FrozenLevel::RISING
            };
        }
    }

    /// Fills all links from lower bounds: each is expected at the level that it would have if no other one was full.
    fn fill_from_lower_bounds(&mut self) {
        self.unfreeze_all();
        self.reset_headrooms();
        self.filling.fill_order.clear();
        for index in 0..self.links.len() as u32 {
            let link = &self.links[index as usize];
            let is_in_turn = !link.members.is_empty() && !link.sweep_state.is_skipped;
            self.filling.link_states[index as usize].is_in_order = is_in_turn;
            if is_in_turn {
                let level = self.level_of_groups(index, 0.0);
                self.filling.fill_order.push(FillEntry { level, link: index });
            }
        }
        self.filling.fill_order.sort_by(|one, other| one.level.total_cmp(&other.level));
        self.filling.first_change = 0;
        let has_ended = self.fill_in_order(0, 1.0 + TOLERANCE, self.max_steps());
        debug_assert!(has_ended, "the filling does not end");
        if has_ended { self.store_levels() } else { self.sweep_from_scratch() }
    }

    /// Returns an upper bound on the steps of a filling from lower bounds.
    ///
    /// A step fills a link, removes it, moves it towards the end, or ungroups flows at their ceilings. Each link is
    /// filled or removed once. It moves towards the end if its level has risen, and so a flow of it has been frozen
    /// since its last visit: at most as often as it has flows. Each flow is ungrouped at its ceiling once. Rounding
    /// may move a link back or forth, and cause other visits: twice the sum is enough for that.
    fn max_steps(&self) -> usize {
        let waits: usize = self.links.iter().map(|link| link.members.len()).sum();
        2 * (waits + self.links.len() + self.flows.len())
    }

    /// Updates the rates by a sweep over all links, in which each link fills once, so that it ends whatever rounding
    /// does. Ungroups the flows.
    pub(super) fn sweep_from_scratch(&mut self) {
        for index in self.active_flows() {
            let flow = &mut self.flows[index as usize];
            if flow
                .bottleneck
                .is_none_or(|bottleneck| !self.links[bottleneck as usize].sweep_state.is_skipped)
            {
                flow.bottleneck = None;
                self.new_flows.push(index);
            }
        }
        for (index, link) in
            self.links.iter_mut().enumerate().filter(|(_, link)| !link.sweep_state.is_skipped)
        {
            if link.level < f64::INFINITY {
                self.sweep.freed.push(index as u32);
            }
            link.level = f64::INFINITY;
            self.dirty_links.push(index as u32);
        }
        self.filling.misfit_solves = 0;
        self.ungroup_flows();
        self.repair();
    }

    /// Fills the links in order from this position on; a link whose level exceeds `reorder_ratio` times that of the next one
    /// moves towards the end. Returns whether the filling ended within `steps` steps.
    fn fill_in_order(&mut self, mut place: usize, reorder_ratio: f64, steps: usize) -> bool {
        let mut left = steps;
        loop {
            while place < self.filling.fill_order.len() {
                if left == 0 {
                    return false;
                }
                left -= 1;
                place = self.fill_at(place, reorder_ratio);
            }
            let growth = self.filling.growth * self.growth_since_last();
            match self.add_overloaded(growth) {
                Some(first) => place = first,
                None => {
                    self.filling.growth = growth;
                    if growth > MAX_GROWTH {
                        self.reset_headrooms();
                    }
                    return true;
                }
            }
        }
    }

    /// Fills the link at this position; returns the next position.
    fn fill_at(&mut self, mut place: usize, reorder_ratio: f64) -> usize {
        let FillEntry { link, level } = self.filling.fill_order[place];
        let reached = if place > 0 { self.filling.fill_order[place - 1].level } else { 0.0 };
        let next = self.filling.fill_order.get(place + 1).map_or(f64::INFINITY, |next| next.level);
        let (level, others_rise) = self.level_in_order(link, level, reached);
        if level == f64::INFINITY {
            self.filling.fill_order.remove(place);
            self.filling.link_states[link as usize].is_in_order = false;
            self.filling.headrooms[link as usize] = 0.0;
            self.filling.removed.push(link);
            return place;
        }
        if level > next * reorder_ratio {
            self.move_later(place, level);
            return place;
        }
        if level < reached * (1.0 - TOLERANCE) {
            place = self.move_earlier(place, level);
            self.filling.fill_order[place].level = level;
        } else {
            self.filling.fill_order[place].level = level.max(reached);
        }
        let most = level * (1.0 + TOLERANCE);
        if others_rise {
            self.freeze_rising_flows(link, level);
        }
        if self.filling.link_states[link as usize].least_ceiling <= most
            && self.ungroup_at_ceilings(link, most)
        {
            return place;
        }
        let before = self.links[link as usize].level;
        self.filling.frozen_levels[link as usize] =
            FrozenLevel::frozen(if differs(level, before) { level } else { before });
        place + 1
    }

    /// Moves a link towards the end, after those of lower expected levels.
    fn move_later(&mut self, place: usize, level: f64) {
        let fill_order = &mut self.filling.fill_order[place..];
        fill_order[0].level = level;
        // Linear search, because it rarely moves far.
        let lower = fill_order[1..].iter().take_while(|entry| entry.level < level).count();
        fill_order[..=lower].rotate_left(1);
    }

    /// Moves a link back before those of higher levels, which will be visited again; returns its position.
    fn move_earlier(&mut self, place: usize, level: f64) -> usize {
        let fill_order = &mut self.filling.fill_order[..=place];
        let higher =
            fill_order[..place].iter().rev().take_while(|entry| entry.level * (1.0 - TOLERANCE) > level);
        let first = place - higher.count();
        fill_order[first..].rotate_right(1);
        fill_order[first..]
            .iter()
            .for_each(|entry| self.filling.frozen_levels[entry.link as usize] = FrozenLevel::RISING);
        self.filling.first_change = self.filling.first_change.min(first);
        first
    }

    /// Returns an upper bound on the growth of any flow's level since the last solve, new flows aside; at least 1.
    fn growth_since_last(&self) -> f64 {
        let at_home = self.filling.fill_order.iter().map(|entry| {
            let index = entry.link as usize;
            (self.filling.frozen_levels[index].level, self.links[index].level)
        });
        let moved = self.sweep.moved.iter().zip(&self.sweep.levels_before).map(|(&flow, &before)| {
            let Flow { bottleneck, ceiling, .. } = self.flows[flow as usize];
            (
                bottleneck
                    .map_or(ceiling, |bottleneck| self.filling.frozen_levels[bottleneck as usize].level),
                before,
            )
        });
        at_home.chain(moved).map(|(now, before)| now / before).fold(1.0, f64::max)
    }

    /// Resets the headroom of all links.
    fn reset_headrooms(&mut self) {
        self.filling.growth = 1.0;
        self.filling.headrooms.fill(0.0);
    }

    /// Inserts the overloaded links into the fill order, once all links in it are full and flows have grown by this
    /// factor; returns the first position to visit.
    fn add_overloaded(&mut self, growth: f64) -> Option<usize> {
        let mut with_room = std::mem::take(&mut self.filling.with_room);
        with_room.clear();
        let reached = self.filling.fill_order.last().map_or(0.0, |entry| entry.level);
        let mut first = None;
        let mut next = 0;
        while let Some(index) = self.filling.first_without_headroom(next, growth) {
            next = index + 1;
            let (link, state) = (&self.links[index as usize], &self.filling.link_states[index as usize]);
            if state.is_in_order || link.members.is_empty() {
                self.filling.headrooms[index as usize] = f64::INFINITY;
                continue;
            }
            if link.sweep_state.is_skipped {
                continue;
            }
            if let Some(room) = self.headroom(link, state) {
                // Flows without a rate, over links without capacity, may grow by any factor.
                self.filling.headrooms[index as usize] = (growth * room * (1.0 - ROUNDING)).min(f64::MAX);
                with_room.push(index);
                continue;
            }
            let (level, _) = self.level_in_order(index, reached, reached);
            if level < f64::INFINITY {
                let place = self.insert_in_order(FillEntry { level, link: index });
                first = Some(first.map_or(place, |first: usize| first.min(place)));
            }
        }
        if first.is_some() {
            // These headrooms refer to levels that will change.
            with_room.iter().for_each(|&link| self.filling.headrooms[link as usize] = 0.0);
        }
        self.filling.with_room = with_room;
        let later = &self.filling.fill_order[first?..];
        later.iter().for_each(|entry| self.filling.frozen_levels[entry.link as usize] = FrozenLevel::RISING);
        self.filling.first_change = self.filling.first_change.min(first?);
        first
    }

    /// Stores the levels of the full links, and records which of these changed.
    fn store_levels(&mut self) {
        if self.filling.first_change == 0 {
            (0..self.links.len() as u32).for_each(|link| self.store_level(link));
            self.filling.removed.clear();
            return;
        }
        for place in self.filling.first_change..self.filling.fill_order.len() {
            self.store_level(self.filling.fill_order[place].link);
        }
        let mut removed = std::mem::take(&mut self.filling.removed);
        removed.drain(..).for_each(|link| self.store_level(link));
        self.filling.removed = removed;
    }

    fn store_level(&mut self, index: u32) {
        let (link, refill) = (&mut self.links[index as usize], &self.filling);
        let is_bottleneck = refill.link_states[index as usize].is_bottleneck();
        let level = if is_bottleneck { refill.frozen_levels[index as usize].level } else { f64::INFINITY };
        if !link.sweep_state.is_skipped && link.level != level {
            link.level = level;
            let changes = &mut self.sweep;
            (if level < f64::INFINITY { &mut changes.changed } else { &mut changes.freed }).push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MaxMin, Usage};
    use crate::Sharing;

    /// 30 flows between six links, some bounded, the last ones not solved yet.
    fn dense() -> MaxMin {
        let mut sharing = MaxMin::default();
        let links: Vec<_> =
            (0..6).map(|link| sharing.add_link(40.0 + 7.0 * f64::from(link), Sharing::Shared)).collect();
        for flow in 0..30 {
            let usages =
                [flow % 6, (flow + 1 + flow / 6) % 6].map(|link| Usage { link: links[link], weight: 1.0 });
            let bound = if flow % 7 == 0 { 3.0 } else { f64::INFINITY };
            sharing.add_flow(&usages, 1.0 + (flow % 3) as f64, bound);
            if flow == 20 {
                sharing.solve_from_scratch();
            }
        }
        sharing
    }

    #[test]
    fn links_may_come_while_flows_are_grouped() {
        let mut sharing = dense();
        sharing.solve();
        let mut last = super::super::LinkIndex::new(5);
        for capacity in 1..30 {
            assert!(sharing.filling.is_grouped, "flows are grouped as long as all rates change");
            let link = sharing.add_link(f64::from(capacity), Sharing::Shared);
            let usages = [last, link].map(|link| Usage { link, weight: 1.0 });
            sharing.add_flow(&usages, 1.0, f64::INFINITY);
            sharing.solve();
            assert_eq!(sharing.check(), Ok(()));
            last = link;
        }
    }

    /// Tests the fallback for a filling that does not end, which no known input triggers.
    #[test]
    fn a_sweep_replaces_a_filling_that_does_not_end() {
        let (mut filled, mut swept) = (dense(), dense());
        filled.solve();
        swept.begin_sweep();
        swept.update_fill_order();
        swept.unfreeze_all();
        assert!(!swept.fill_in_order(0, super::REORDER_RATIO, 3), "three steps are not enough");
        swept.sweep_from_scratch();
        assert_eq!(swept.check(), Ok(()));
        assert!(!swept.filling.is_grouped);
        let rates = |sharing: &MaxMin| -> Vec<f64> {
            (0..30).map(|flow| sharing.rate(super::super::FlowIndex::new(flow))).collect()
        };
        for (swept, filled) in rates(&swept).into_iter().zip(rates(&filled)) {
            assert!((swept - filled).abs() <= 1e-9 * filled, "{swept} instead of {filled}");
        }
        assert_eq!(swept.moved_flows().count(), 30);
    }
}
