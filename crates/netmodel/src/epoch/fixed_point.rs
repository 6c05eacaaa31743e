//! Solution of the fixed point of levels in a region.
//!
//! Links whose levels may be wrong wait in a queue, by the least level at which something changed. A link is evaluated
//! from the levels that its flows have elsewhere; if that moves flows, their other links are marked at the lower of the
//! old and new levels of each. A mark never lies below the level of the present evaluation, so that, as in progressive
//! filling, a level is final when the queue has passed it: each link is evaluated at most once for each level at which
//! something changes on it.

use std::cmp::Reverse;

use super::solver::{Bottleneck, Flow, Member, RegionSolver, Use};
use super::unit::{UNLIMITED, filling_level, rate_at};

/// A flow on the link that is being evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    member: Member,
    /// Level that the rest of its route allows.
    cap: u64,
    /// Bottleneck at that level.
    bottleneck: Bottleneck,
}

impl RegionSolver {
    /// Solves the levels of the region for the present caps of other regions.
    pub(super) fn solve(&mut self) {
        self.add_new_flows();
        while let Some(Reverse((at, number))) = self.dirty_links.pop() {
            let from = &mut self.links[number as usize].dirty_from;
            // Other entries are stale: the link was evaluated, or marked at a lower level, since.
            if *from == at {
                *from = UNLIMITED;
                self.evaluate(number);
            }
        }
    }

    /// Sets the level that other regions allow a flow.
    pub(super) fn set_cap(&mut self, index: u32, cap: u64) {
        let flow = &mut self.flows[index as usize];
        flow.cap = cap;
        if !matches!(flow.bottleneck, Bottleneck::New | Bottleneck::Ending)
            && (cap < flow.level || flow.bottleneck == Bottleneck::OtherRegion)
        {
            let (level, bottleneck) = self.level_elsewhere(index, None);
            self.move_flow(index, level, bottleneck, None);
        }
    }

    /// Sets the level of new flows as if they were alone, and marks their links.
    fn add_new_flows(&mut self) {
        let mut new_flows = std::mem::take(&mut self.new_flows);
        self.new_alive = 0;
        for index in new_flows.drain(..) {
            let flow = &self.flows[index as usize];
            // The number may have been reused for another flow, which then is listed twice.
            if !flow.is_alive || flow.bottleneck != Bottleneck::New {
                continue;
            }
            let (level, bottleneck) = self.level_elsewhere(index, None);
            self.move_flow(index, level, bottleneck, None);
            for place in 0..self.flows[index as usize].uses.len() {
                let number = self.flows[index as usize].uses[place].link;
                let link = &self.links[number as usize];
                if link.level != UNLIMITED || !link.has_spare_capacity() {
                    let at = filling_level(link.room(), link.shares);
                    self.mark(number, at);
                }
            }
        }
        self.new_flows = new_flows;
    }

    /// Returns the level of a flow without one link, and its bottleneck then.
    #[inline]
    fn level_elsewhere(&self, index: u32, but_for: Option<u32>) -> (u64, Bottleneck) {
        let Flow { ceiling, cap, ref uses, .. } = self.flows[index as usize];
        let own = if cap < ceiling { (cap, Bottleneck::OtherRegion) } else { (ceiling, Bottleneck::Bound) };
        uses.iter().filter(|used| Some(used.link) != but_for).fold(own, |least, used| {
            let level = self.links[used.link as usize].level;
            if level < least.0 { (level, Bottleneck::Link(used.link)) } else { least }
        })
    }

    /// Evaluates a link: computes its level and moves its flows.
    fn evaluate(&mut self, number: u32) {
        let link = &self.links[number as usize];
        if link.level == UNLIMITED && link.has_spare_capacity() {
            return;
        }
        self.evaluations += 1;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let mut ending = 0;
        candidates.extend(link.members.iter().filter_map(|&member| {
            let flow = &self.flows[member.flow as usize];
            let (cap, bottleneck) = match flow.bottleneck {
                Bottleneck::Link(bottleneck) if bottleneck == number => {
                    self.level_elsewhere(member.flow, Some(number))
                }
                Bottleneck::Ending => {
                    ending += flow.rate * u64::from(member.weight);
                    return None;
                }
                bottleneck => (flow.level, bottleneck),
            };
            Some(Candidate { member, cap, bottleneck })
        }));
        let level = self.fill_level(number, ending, &mut candidates);
        let link = &mut self.links[number as usize];
        link.record_load(self.now);
        let before = std::mem::replace(&mut link.level, level);
        self.full_links = self.full_links - u32::from(before != UNLIMITED) + u32::from(level != UNLIMITED);
        if before != level && !std::mem::replace(&mut link.has_changed, true) {
            self.changed_links.push(number);
        }
        for &Candidate { member, cap, bottleneck } in &candidates {
            let was_home = self.flows[member.flow as usize].bottleneck == Bottleneck::Link(number);
            if cap > level || cap == level && was_home && level != UNLIMITED {
                self.move_flow(member.flow, level, Bottleneck::Link(number), Some(number));
            } else if was_home {
                self.move_flow(member.flow, cap, bottleneck, Some(number));
            }
        }
        self.candidates = candidates;
    }

    /// Returns the least level `x` at which the flows that are not held back below `x` fill the link: progressive
    /// filling from below, with the frozen flows at the end of the list.
    fn fill_level(&self, number: u32, ending: u64, candidates: &mut [Candidate]) -> u64 {
        let link = &self.links[number as usize];
        let mut open = candidates.len();
        let mut frozen = ending;
        let mut shares: u64 = candidates.iter().map(|candidate| candidate.member.shares).sum();
        let mut level = 0;
        loop {
            if open == 0 {
                return UNLIMITED;
            }
            if link.is_fat_pipe {
                let largest = candidates[..open].iter().map(|candidate| candidate.member.shares).max();
                level = filling_level(link.capacity, largest.unwrap_or(1)).max(level);
            } else {
                level = filling_level(link.room().saturating_sub(frozen), shares).max(level);
            }
            let before = open;
            let mut place = 0;
            while place < open {
                let Candidate { member, cap, .. } = candidates[place];
                if cap < level {
                    let flow = &self.flows[member.flow as usize];
                    let rate =
                        if cap == flow.level { flow.rate } else { rate_at(cap, flow.share, flow.bound) };
                    frozen += rate * u64::from(member.weight);
                    shares -= member.shares;
                    open -= 1;
                    candidates.swap(place, open);
                } else {
                    place += 1;
                }
            }
            if open == before {
                return level;
            }
        }
    }

    /// Sets the level and bottleneck of a flow, and marks its links, except the evaluated one, if the change may
    /// affect them.
    fn move_flow(&mut self, index: u32, level: u64, bottleneck: Bottleneck, from: Option<u32>) {
        let flow = &mut self.flows[index as usize];
        if flow.level == level && flow.bottleneck == bottleneck {
            return;
        }
        let (old, old_level, share) = (flow.rate, flow.level, flow.share);
        if level != old_level || flow.bottleneck == Bottleneck::New {
            flow.rate = rate_at(level, flow.share, flow.bound);
            if !std::mem::replace(&mut flow.has_changed, true) {
                self.changed_flows.push(index);
            }
        }
        let new = flow.rate;
        let was = std::mem::replace(&mut flow.bottleneck, bottleneck);
        flow.level = level;
        let lower = if level == old_level { UNLIMITED } else { level.min(old_level) };
        for &Use { link: number, weight, .. } in &flow.uses {
            let link = &mut self.links[number as usize];
            let (old, new) = (old * u64::from(weight), new * u64::from(weight));
            if old != new {
                link.count_load(self.now, self.epoch);
                link.load = link.load - old + new;
            }
            if was == Bottleneck::New || was == Bottleneck::Link(number) {
                (link.open_load, link.open_shares) =
                    (link.open_load - old, link.open_shares - share * u64::from(weight));
            }
            if bottleneck == Bottleneck::Link(number) {
                (link.open_load, link.open_shares) =
                    (link.open_load + new, link.open_shares + share * u64::from(weight));
            }
            let matters = lower < link.level && (link.level != UNLIMITED || !link.has_spare_capacity());
            if matters && Some(number) != from && lower < link.dirty_from {
                link.dirty_from = lower;
                self.dirty_links.push(Reverse((lower, number)));
            }
        }
    }
}
