//! Progressive filling of all links, for changes that reach nearly all of them.
//!
//! Links fill in the order of their levels, and that order changes little from one solve to the next. So they *take turns*
//! as they did the last time, those at which flows came or went where they are expected now: the level of each is
//! computed from the levels of those before it and what these leave to its groups (`maxmin/group.rs`). Where
//! one turns out to be lower than the one before, it goes back to where it belongs, and those that it overtakes have
//! another turn; where one turns out to be far higher than expected, it waits. In the end the levels ascend, and
//! each is that of progressive filling: links that come later have no part in it. So those before the first at which
//! something has changed keep their levels. A link that is not expected to be full is looked at last, and takes its turn
//! if it carries too much; how much the flows may grow until that can be is known from the last time.
//!
//! Should expectations be far off, all is filled from the least to the highest level: every link begins with the level that it would
//! have alone, a lower bound, and waits whenever it turns out to be higher than the next.

use super::group::{Places, Stage};
use super::repair::is_other;
use super::{Flow, MaxMin, TOLERANCE};

/// Levels closer than this, relatively, are equal for flows that have their home at one of two links and might as well
/// have it at the other.
pub(super) const TIE: f64 = 1e-13;

/// What the filling knows between solves, while flows are grouped.
#[derive(Debug, Default)]
pub(super) struct Refill {
    pub(super) is_grouped: bool,
    /// By the numbers of the links.
    pub(super) stages: Vec<Stage>,
    pub(super) places: Places,
    /// By the numbers of the links.
    pub(super) lids: Vec<Lid>,
    /// The links that are full, by level; while they are being filled, those that are first and those to come.
    turns: Vec<Turn>,
    /// Whether the turns and the lids are those of a filling of all links.
    is_filled: bool,
    /// How many times its level of some solve the level of a flow may be by now: a bound for all flows.
    growth: f64,
    /// By the numbers of the links: up to which growth a link has room; infinite where it has a turn or no flows, and need not be
    /// looked at.
    pub(super) rooms: Vec<f64>,
    /// The homes of flows that a link takes in, and these flows.
    pub(super) homes: Vec<u32>,
    pub(super) taken: Vec<u32>,
    /// The links that take no turn and have been found to have room.
    looked_at: Vec<u32>,
    /// The links that have had their turns taken away since the last solve, and the first place at which another link may
    /// stand or have another level than then.
    out: Vec<u32>,
    first_change: usize,
    /// How many solves in a row were better done the other way.
    misfits: u32,
}

/// What keeps down the flows whose home is a link: a term of the sums over groups.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(super) struct Lid {
    /// Their level, if the link is full; else zero.
    pub(super) level: f64,
    /// One if they rise, else zero.
    pub(super) rising: f64,
}

/// When a link fills.
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
    /// Returns the first link from this one on that may have no room once flows have grown by so much.
    fn without_room(&self, from: u32, growth: f64) -> Option<u32> {
        let place = position(&self.rooms[from as usize..], |&room| room < growth)?;
        Some(from + place as u32)
    }
}

/// Returns the place of the first one that is so, looking at eight at a time without a branch for each.
pub(super) fn position<T>(all: &[T], is_so: impl Fn(&T) -> bool) -> Option<usize> {
    let (eights, rest) = all.as_chunks::<8>();
    let is_among = |eight: &[T; 8]| eight.iter().fold(false, |found, one| found | is_so(one));
    let (first, some) = match eights.iter().position(is_among) {
        Some(place) => (8 * place, &eights[place][..]),
        None => (8 * eights.len(), rest),
    };
    some.iter().position(is_so).map(|place| first + place)
}

/// Flows are grouped when that has been found better so many times in a row, and no longer when the contrary has: it costs
/// a few solves, and dense traffic has its lulls.
const PATIENCE: u32 = 4;
const PATIENCE_WITH_GROUPS: u32 = 32;

/// Solves that look at fewer limits than this, and one per link, are done as they come up.
const DENSE: usize = 64;

/// Flows stay grouped where one in so many of the links that are full gets another level.
const SPARSE: usize = 8;

/// How much higher than the next one a link may be expected to be before it waits.
const HASTE: f64 = 1.0 + 1e-3;

/// Turns whose levels are as close as this, relatively, are taken all or none: which of two links is the home of a flow
/// may depend on the other one.
const NEAR: f64 = 1e-10;

/// What rounding may add to a sum over groups, relatively.
const ROUNDING: f64 = 1e-12;

/// Growth is counted from 1 again beyond this.
const MOST_GROWTH: f64 = 1e100;

impl MaxMin {
    /// Decides whether flows are grouped for the next solve.
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

    /// Lets the links that are full take turns by their levels.
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

    /// Brings the rates up to date by filling all links. Flows are grouped.
    pub(super) fn refill(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        let first = self.expect_changes();
        let none_left_out = self.marks.owed.is_empty();
        let place = if none_left_out && self.refill.is_filled { first } else { 0 };
        self.refill.is_filled = none_left_out;
        self.refill.first_change = place;
        self.open_lids_from(place);
        let steps = 4 * self.refill.turns.len() + 64;
        if self.fill_in_turn(place, HASTE, steps) {
            self.settle_links();
        } else {
            self.fill_afresh();
        }
    }

    /// Does what [`MaxMin::refill`] does, without any expectations.
    pub(super) fn refill_afresh(&mut self) {
        self.begin_sweep();
        self.sweep.rising.clear();
        self.disturbed.clear();
        self.refill.is_filled = false;
        self.fill_afresh();
    }

    /// Lets the links at which flows came or went take their turns where their levels are expected; returns the first
    /// place at which that makes a difference.
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

    /// Adds a turn after those of lower levels, and returns its place.
    fn add_turn(&mut self, turn: Turn) -> usize {
        self.refill.stages[turn.link as usize].is_in_turn = true;
        self.refill.rooms[turn.link as usize] = f64::INFINITY;
        let place = self.refill.turns.partition_point(|other| other.level <= turn.level);
        self.refill.turns.insert(place, turn);
        place
    }

    /// Lets all flows rise from where the links before this place have filled.
    fn open_lids_from(&mut self, place: usize) {
        if place == 0 {
            return self.open_lids();
        }
        for turn in &self.refill.turns[place..] {
            self.refill.lids[turn.link as usize] = Lid::OPEN;
        }
    }

    /// Lets all flows rise from nothing, but those that are kept down by links that the solve does not take into account.
    fn open_lids(&mut self) {
        for (lid, link) in self.refill.lids.iter_mut().zip(&self.links) {
            *lid = if link.mark.left_out { Lid::shut(link.level) } else { Lid::OPEN };
        }
    }

    /// Fills all links, each of which is expected at the level that it would have if no other one was full.
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
        debug_assert!(has_ended, "links take turns for ever");
        if has_ended { self.settle_links() } else { self.repair_afresh() }
    }

    /// Returns how many steps a filling from lower bounds takes at most.
    ///
    /// A step fills a link, takes it out, lets it wait, or leaves flows at their ceilings. Each link is filled or taken out
    /// once. It waits where its level has risen, and so a flow of it has been frozen since it was looked at: not more often
    /// than it has flows. Each flow is left at its ceiling once. Rounding
    /// may let a link go back or come later, and others have another turn: all of them once more is enough for that.
    fn steps_afresh(&self) -> usize {
        let waits: usize = self.links.iter().map(|link| link.members.len()).sum();
        2 * (waits + self.links.len() + self.flows.len())
    }

    /// Does what [`MaxMin::refill`] does by a sweep over all links, which ends whatever rounding does: there each link fills
    /// once. Flows are not grouped any more.
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

    /// Lets the links fill one after the other, from this place on; one that turns out to be so many times as high as the next one
    /// waits. Returns whether that came to an end in so many steps.
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

    /// Fills the link whose turn it is; returns the place of the next one.
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

    /// Gives a link its turn after those that are expected to be lower.
    fn wait(&mut self, place: usize, level: f64) {
        let turns = &mut self.refill.turns[place..];
        turns[0].level = level;
        // It hardly ever moves far.
        let lower = turns[1..].iter().take_while(|turn| turn.level < level).count();
        turns[..=lower].rotate_left(1);
    }

    /// Gives a link its turn before those that are higher, and these another one after it; returns its place.
    fn go_back(&mut self, place: usize, level: f64) -> usize {
        let turns = &mut self.refill.turns[..=place];
        let higher = turns[..place].iter().rev().take_while(|turn| turn.level * (1.0 - TOLERANCE) > level);
        let first = place - higher.count();
        turns[first..].rotate_right(1);
        turns[first..].iter().for_each(|turn| self.refill.lids[turn.link as usize] = Lid::OPEN);
        self.refill.first_change = self.refill.first_change.min(first);
        first
    }

    /// Returns how many times its level of the last solve the level of any flow is at most, new ones aside; at least 1.
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

    /// Forgets which links have room.
    fn forget_rooms(&mut self) {
        self.refill.growth = 1.0;
        self.refill.rooms.fill(0.0);
    }

    /// Gives turns to the links that carry too much, now that all that had turns are full and flows have grown by so much;
    /// returns the first place from which to go on.
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
            // These rooms count from levels that will be others.
            looked_at.iter().for_each(|&link| self.refill.rooms[link as usize] = 0.0);
        }
        self.refill.looked_at = looked_at;
        let later = &self.refill.turns[first?..];
        later.iter().for_each(|turn| self.refill.lids[turn.link as usize] = Lid::OPEN);
        self.refill.first_change = self.refill.first_change.min(first?);
        first
    }

    /// Gives the links that are full their levels, and notes which of these are new.
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

    /// The way out of a filling that does not end, which no input is known to take.
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
