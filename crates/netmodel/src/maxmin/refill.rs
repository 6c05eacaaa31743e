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

use super::group::{Places, Stage};
use super::repair::is_other;
use super::{Flow, MaxMin, TOLERANCE};

/// Relative distance below which two links fill at one level, so that either may be the bottleneck of a flow of both.
pub(super) const TIE: f64 = 1e-13;

/// State of the filling between solves, while flows are grouped.
#[derive(Debug, Default)]
pub(super) struct Refill {
    pub(super) is_grouped: bool,
    /// Flows of each link, by link.
    pub(super) stages: Vec<Stage>,
    pub(super) places: Places,
    /// Level of the flows with each bottleneck, by link.
    pub(super) lids: Vec<Lid>,
    /// Full links by level; during a filling, the links already filled and those to come.
    turns: Vec<Turn>,
    /// The fill order and the frozen levels are those of a filling of all links.
    is_filled: bool,
    /// Upper bound on the growth of any flow's level since the headroom was reset.
    growth: f64,
    /// Headroom by link: growth of levels up to which the link has room; infinite if the link is in the fill order or
    /// has no flows, and needs no test.
    pub(super) rooms: Vec<f64>,
    /// Bottlenecks of the flows that a link freezes, and these flows; buffers.
    pub(super) homes: Vec<u32>,
    pub(super) taken: Vec<u32>,
    /// Links outside the fill order that were found to have room; a buffer.
    looked_at: Vec<u32>,
    /// Links removed from the fill order since the last solve, and first position at which the order or a level may
    /// have changed since then.
    out: Vec<u32>,
    first_change: usize,
    /// Number of consecutive solves for which the other method would have been better.
    misfits: u32,
}

/// Level of the flows of a bottleneck: a term of the sums over groups.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(super) struct Lid {
    /// Level of the flows if the link is full; else zero.
    pub(super) level: f64,
    /// One if the flows still rise, else zero.
    pub(super) rising: f64,
}

/// Entry of the fill order: a link and the level at which it fills.
#[derive(Clone, Copy, Debug)]
struct Turn {
    level: f64,
    link: u32,
}

impl Lid {
    pub(super) const OPEN: Self = Self { level: 0.0, rising: 1.0 };

    fn shut(level: f64) -> Self {
        Self { level, rising: 0.0 }
    }

    /// Returns the level up to which the flows may rise.
    pub(super) fn limit(self) -> f64 {
        if self.rising == 0.0 { self.level } else { f64::INFINITY }
    }
}

impl Refill {
    /// Returns the first link from this one on that may have no room after this growth.
    fn without_room(&self, from: u32, growth: f64) -> Option<u32> {
        let place = position(&self.rooms[from as usize..], |&room| room < growth)?;
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
const PATIENCE: u32 = 4;
/// Number of consecutive solves that must favour ungrouping before flows are ungrouped.
const PATIENCE_WITH_GROUPS: u32 = 32;

/// Work [flow limits], plus one per link, up to which a solve is better done by the sweep.
const DENSE: usize = 64;

/// Flows stay grouped while at least one in this many full links changes its level.
const SPARSE: usize = 8;

/// Ratio of the level of a link to that of the next one beyond which the link moves towards the end.
const HASTE: f64 = 1.0 + 1e-3;

/// Relative distance of levels below which entries of the fill order are redone together: which of two such links is
/// the bottleneck of a flow may depend on the other one.
const NEAR: f64 = 1e-10;

/// Relative rounding error of a sum over groups.
const ROUNDING: f64 = 1e-12;

/// Growth beyond which the headroom is reset.
const MOST_GROWTH: f64 = 1e100;

impl MaxMin {
    /// Chooses the method of the next solve: filling with groups or sweep without.
    pub(super) fn choose_grouping(&mut self) {
        let (fits, patience) = if self.refill.is_grouped {
            (SPARSE * self.sweep.changed.len() >= self.refill.turns.len(), PATIENCE_WITH_GROUPS)
        } else {
            (self.sweep.work <= DENSE + self.links.len(), PATIENCE)
        };
        let misfits = &mut self.refill.misfits;
        *misfits = if fits { 0 } else { *misfits + 1 };
        if *misfits == patience {
            *misfits = 0;
            if self.refill.is_grouped { self.ungroup_flows() } else { self.group_flows() }
        }
    }

    /// Sets the fill order to the full links by their levels.
    pub(super) fn take_turns_as_they_are(&mut self) {
        self.refill.turns.clear();
        self.refill.lids.clear();
        self.refill.lids.resize(self.links.len(), Lid::OPEN);
        self.refill.rooms.resize(self.links.len(), 0.0);
        self.refill.is_filled = false;
        self.forget_rooms();
        for (index, link) in self.links.iter().enumerate() {
            if self.refill.stages[index].is_home() {
                self.refill.lids[index] = Lid::shut(link.level);
                self.refill.stages[index].is_in_turn = true;
                self.refill.turns.push(Turn { level: link.level, link: index as u32 });
            }
        }
        self.refill.turns.sort_by(|one, other| one.level.total_cmp(&other.level));
    }

    /// Updates the rates by filling all links. Flows are grouped.
    pub(super) fn refill(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        let first = self.expect_changes();
        let none_left_out = self.marks.owed.is_empty();
        let place = if none_left_out && self.refill.is_filled { first } else { 0 };
        self.refill.is_filled = none_left_out;
        self.refill.first_change = place;
        self.open_lids_from(place);
        // Enough if the order is roughly right; else filling from lower bounds is faster.
        let steps = 4 * self.refill.turns.len() + 64;
        if self.fill_in_turn(place, HASTE, steps) {
            self.settle_links();
        } else {
            self.fill_afresh();
        }
    }

    /// Updates the rates by filling all links from lower bounds, without the last fill order.
    pub(super) fn refill_afresh(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        self.disturbed.clear();
        self.refill.is_filled = false;
        self.fill_afresh();
    }

    /// Moves the links at which flows came or went to their estimated levels in the fill order; returns the first
    /// position at which that makes a difference.
    fn expect_changes(&mut self) -> usize {
        let mut disturbed = std::mem::take(&mut self.disturbed);
        for &link in &disturbed {
            self.refill.stages[link as usize].is_in_turn = false;
        }
        let (links, stages, out) = (&self.links, &mut self.refill.stages, &mut self.refill.out);
        let rooms = &mut self.refill.rooms;
        let mut lowest = f64::INFINITY;
        self.refill.turns.retain(|turn| {
            let stage = &mut stages[turn.link as usize];
            stage.is_in_turn &= !links[turn.link as usize].mark.left_out;
            if !stage.is_in_turn {
                lowest = lowest.min(turn.level);
                rooms[turn.link as usize] = 0.0;
                out.push(turn.link);
            }
            stage.is_in_turn
        });
        for link in disturbed.drain(..) {
            if self.refill.stages[link as usize].is_in_turn || self.links[link as usize].mark.left_out {
                continue;
            }
            self.refill.lids[link as usize] = Lid::OPEN;
            let level = self.level_expected(link);
            if level.is_finite() {
                self.refill.lids[link as usize] = Lid::shut(level);
                self.add_turn(Turn { level, link });
                lowest = lowest.min(level);
            }
        }
        self.disturbed = disturbed;
        let turns = &self.refill.turns;
        let mut first = turns.partition_point(|turn| turn.level < lowest * (1.0 - NEAR));
        while first > 0
            && turns.get(first).is_some_and(|turn| turns[first - 1].level >= turn.level * (1.0 - NEAR))
        {
            first -= 1;
        }
        first
    }

    /// Inserts an entry after those of lower levels, and returns its position.
    fn add_turn(&mut self, turn: Turn) -> usize {
        self.refill.stages[turn.link as usize].is_in_turn = true;
        self.refill.rooms[turn.link as usize] = f64::INFINITY;
        let place = self.refill.turns.partition_point(|other| other.level <= turn.level);
        self.refill.turns.insert(place, turn);
        place
    }

    /// Unfreezes the flows of the links from this position on.
    fn open_lids_from(&mut self, place: usize) {
        if place == 0 {
            return self.open_lids();
        }
        for turn in &self.refill.turns[place..] {
            self.refill.lids[turn.link as usize] = Lid::OPEN;
        }
    }

    /// Unfreezes all flows, except those of skipped links.
    fn open_lids(&mut self) {
        for (lid, link) in self.refill.lids.iter_mut().zip(&self.links) {
            *lid = if link.mark.left_out { Lid::shut(link.level) } else { Lid::OPEN };
        }
    }

    /// Fills all links from lower bounds: each is expected at the level that it would have if no other one was full.
    fn fill_afresh(&mut self) {
        self.open_lids();
        self.forget_rooms();
        self.refill.turns.clear();
        for index in 0..self.links.len() as u32 {
            let link = &self.links[index as usize];
            let is_in_turn = !link.members.is_empty() && !link.mark.left_out;
            self.refill.stages[index as usize].is_in_turn = is_in_turn;
            if is_in_turn {
                let level = self.level_of_groups(index, 0.0);
                self.refill.turns.push(Turn { level, link: index });
            }
        }
        self.refill.turns.sort_by(|one, other| one.level.total_cmp(&other.level));
        self.refill.first_change = 0;
        let has_ended = self.fill_in_turn(0, 1.0 + TOLERANCE, self.steps_afresh());
        debug_assert!(has_ended, "the filling does not end");
        if has_ended { self.settle_links() } else { self.repair_afresh() }
    }

    /// Returns an upper bound on the steps of a filling from lower bounds.
    ///
    /// A step fills a link, removes it, moves it towards the end, or ungroups flows at their ceilings. Each link is
    /// filled or removed once. It moves towards the end if its level has risen, and so a flow of it has been frozen
    /// since its last visit: at most as often as it has flows. Each flow is ungrouped at its ceiling once. Rounding
    /// may move a link back or forth, and cause other visits: twice the sum is enough for that.
    fn steps_afresh(&self) -> usize {
        let waits: usize = self.links.iter().map(|link| link.members.len()).sum();
        2 * (waits + self.links.len() + self.flows.len())
    }

    /// Updates the rates by a sweep over all links, in which each link fills once, so that it ends whatever rounding
    /// does. Ungroups the flows.
    pub(super) fn repair_afresh(&mut self) {
        for index in 0..self.flows.len() as u32 {
            let flow = &mut self.flows[index as usize];
            if flow.home.is_none_or(|home| !self.links[home as usize].mark.left_out) {
                flow.home = None;
                self.begun.push(index);
            }
        }
        for (index, link) in self.links.iter_mut().enumerate().filter(|(_, link)| !link.mark.left_out) {
            link.level = f64::INFINITY;
            self.disturbed.push(index as u32);
        }
        self.refill.misfits = 0;
        self.ungroup_flows();
        self.repair();
    }

    /// Fills the links in order from this position on; a link whose level exceeds `haste` times that of the next one
    /// moves towards the end. Returns whether the filling ended within `steps` steps.
    fn fill_in_turn(&mut self, mut place: usize, haste: f64, steps: usize) -> bool {
        let mut left = steps;
        loop {
            while place < self.refill.turns.len() {
                if left == 0 {
                    return false;
                }
                left -= 1;
                place = self.fill_at(place, haste);
            }
            let growth = self.refill.growth * self.growth_since_last();
            match self.add_overloaded(growth) {
                Some(first) => place = first,
                None => {
                    self.refill.growth = growth;
                    if growth > MOST_GROWTH {
                        self.forget_rooms();
                    }
                    return true;
                }
            }
        }
    }

    /// Fills the link at this position; returns the next position.
    fn fill_at(&mut self, mut place: usize, haste: f64) -> usize {
        let Turn { link, level: expected } = self.refill.turns[place];
        let reached = if place > 0 { self.refill.turns[place - 1].level } else { 0.0 };
        let next = self.refill.turns.get(place + 1).map_or(f64::INFINITY, |next| next.level);
        let (level, others_rise) = self.level_in_turn(link, expected, reached);
        if level == f64::INFINITY {
            self.refill.turns.remove(place);
            self.refill.stages[link as usize].is_in_turn = false;
            self.refill.rooms[link as usize] = 0.0;
            self.refill.out.push(link);
            return place;
        }
        if level > next * haste {
            self.wait(place, level);
            return place;
        }
        if level < reached * (1.0 - TOLERANCE) {
            place = self.go_back(place, level);
            self.refill.turns[place].level = level;
        } else {
            self.refill.turns[place].level = level.max(reached);
        }
        let most = level * (1.0 + TOLERANCE);
        if others_rise {
            self.take_in(link, level);
        }
        if self.refill.stages[link as usize].least_ceiling <= most && self.leave_at_ceilings(link, most) {
            return place;
        }
        let before = self.links[link as usize].level;
        self.refill.lids[link as usize] = Lid::shut(if is_other(level, before) { level } else { before });
        place + 1
    }

    /// Moves a link towards the end, after those of lower expected levels.
    fn wait(&mut self, place: usize, level: f64) {
        let turns = &mut self.refill.turns[place..];
        turns[0].level = level;
        // Linear search, because it rarely moves far.
        let lower = turns[1..].iter().take_while(|turn| turn.level < level).count();
        turns[..=lower].rotate_left(1);
    }

    /// Moves a link back before those of higher levels, which will be visited again; returns its position.
    fn go_back(&mut self, place: usize, level: f64) -> usize {
        let turns = &mut self.refill.turns[..=place];
        let higher = turns[..place].iter().rev().take_while(|turn| turn.level * (1.0 - TOLERANCE) > level);
        let first = place - higher.count();
        turns[first..].rotate_right(1);
        turns[first..].iter().for_each(|turn| self.refill.lids[turn.link as usize] = Lid::OPEN);
        self.refill.first_change = self.refill.first_change.min(first);
        first
    }

    /// Returns an upper bound on the growth of any flow's level since the last solve, new flows aside; at least 1.
    fn growth_since_last(&self) -> f64 {
        let at_home = self.refill.turns.iter().map(|turn| {
            let index = turn.link as usize;
            (self.refill.lids[index].level, self.links[index].level)
        });
        let moved = self.sweep.moved.iter().zip(&self.sweep.left).map(|(&flow, &before)| {
            let Flow { home, ceiling, .. } = self.flows[flow as usize];
            (home.map_or(ceiling, |home| self.refill.lids[home as usize].level), before)
        });
        at_home.chain(moved).map(|(now, before)| now / before).fold(1.0, f64::max)
    }

    /// Resets the headroom of all links.
    fn forget_rooms(&mut self) {
        self.refill.growth = 1.0;
        self.refill.rooms.fill(0.0);
    }

    /// Inserts the overloaded links into the fill order, once all links in it are full and flows have grown by this
    /// factor; returns the first position to visit.
    fn add_overloaded(&mut self, growth: f64) -> Option<usize> {
        let mut looked_at = std::mem::take(&mut self.refill.looked_at);
        looked_at.clear();
        let reached = self.refill.turns.last().map_or(0.0, |turn| turn.level);
        let mut first = None;
        let mut next = 0;
        while let Some(index) = self.refill.without_room(next, growth) {
            next = index + 1;
            let (link, stage) = (&self.links[index as usize], &self.refill.stages[index as usize]);
            if stage.is_in_turn || link.members.is_empty() {
                self.refill.rooms[index as usize] = f64::INFINITY;
                continue;
            }
            if link.mark.left_out {
                continue;
            }
            if let Some(room) = self.room(link, stage) {
                self.refill.rooms[index as usize] = growth * room * (1.0 - ROUNDING);
                looked_at.push(index);
                continue;
            }
            let (level, _) = self.level_in_turn(index, reached, reached);
            if level < f64::INFINITY {
                let place = self.add_turn(Turn { level, link: index });
                first = Some(first.map_or(place, |first: usize| first.min(place)));
            }
        }
        if first.is_some() {
            // These headrooms refer to levels that will change.
            looked_at.iter().for_each(|&link| self.refill.rooms[link as usize] = 0.0);
        }
        self.refill.looked_at = looked_at;
        let later = &self.refill.turns[first?..];
        later.iter().for_each(|turn| self.refill.lids[turn.link as usize] = Lid::OPEN);
        self.refill.first_change = self.refill.first_change.min(first?);
        first
    }

    /// Stores the levels of the full links, and records which of these changed.
    fn settle_links(&mut self) {
        if self.refill.first_change == 0 {
            (0..self.links.len() as u32).for_each(|link| self.settle_link(link));
            self.refill.out.clear();
            return;
        }
        for place in self.refill.first_change..self.refill.turns.len() {
            self.settle_link(self.refill.turns[place].link);
        }
        let mut out = std::mem::take(&mut self.refill.out);
        out.drain(..).for_each(|link| self.settle_link(link));
        self.refill.out = out;
    }

    fn settle_link(&mut self, index: u32) {
        let (link, refill) = (&mut self.links[index as usize], &self.refill);
        let is_home = refill.stages[index as usize].is_home();
        let level = if is_home { refill.lids[index as usize].level } else { f64::INFINITY };
        if !link.mark.left_out && link.level != level {
            link.level = level;
            if level < f64::INFINITY {
                self.sweep.changed.push(index);
            }
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
                sharing.solve_afresh();
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
            assert!(sharing.refill.is_grouped, "flows are grouped as long as all rates change");
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
    fn a_sweep_over_all_links_ends_what_a_filling_began() {
        let (mut filled, mut swept) = (dense(), dense());
        filled.solve();
        swept.begin_sweep();
        swept.expect_changes();
        swept.open_lids();
        assert!(!swept.fill_in_turn(0, super::HASTE, 3), "three steps are not enough");
        swept.repair_afresh();
        assert_eq!(swept.check(), Ok(()));
        assert!(!swept.refill.is_grouped);
        let rates = |sharing: &MaxMin| -> Vec<f64> {
            (0..30).map(|flow| sharing.rate(super::super::FlowIndex::new(flow))).collect()
        };
        for (swept, filled) in rates(&swept).into_iter().zip(rates(&filled)) {
            assert!((swept - filled).abs() <= 1e-9 * filled, "{swept} instead of {filled}");
        }
        assert_eq!(swept.moved_flows().count(), 30);
    }
}
