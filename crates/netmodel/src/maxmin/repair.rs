//! Incremental repair of an allocation: a sweep over levels.
//!
//! A link is *marked* when it may fill at another level than before. From then on the flows that it froze may rise to
//! their ceilings as far as the link knows: their limits say so. Two kinds of events wait in a heap, ordered by level:
//!
//! - *fill*: a marked link is full; its flows that could rise further freeze. A flow that thereby changes its rate marks
//!   its other links. The event's level is a lower bound, because freezing a flow elsewhere leaves more room: it is
//!   recomputed when the event comes up, and inserted again if it has risen.
//! - *release*: the sweep passes the old level of a marked link that is not full yet. The flows that it froze rise, so
//!   that their other links are marked.
//!
//! The sweep skips links that cannot fill: a link that is not full and only loses flows, and a link that has room for all
//! its flows at their limits.
//!
//! Every link fills at most once per sweep. When a link is marked at some level of the sweep, its own level, the old one
//! and the new one, is at or above that: below, its load has not changed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::{FlowIndex, Link, MaxMin, TOLERANCE, UNCHANGED, Use};
use crate::Sharing;

/// Largest number of flows of a link for which a rising flow triggers a test for room.
const FEW_FLOWS: usize = 4;

/// The state of a sweep; kept between sweeps for its memory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sweep {
    /// Number of the sweep, from 1.
    pub(super) number: u64,
    /// Number of marks and evaluations so far.
    step: u64,
    events: BinaryHeap<Reverse<Event>>,
    /// Flows that may rise: new ones, and those that a marked link froze.
    pub(super) rising: Vec<u32>,
    /// Links whose level changed.
    pub(super) changed: Vec<u32>,
    /// Links that stopped being a bottleneck.
    pub(super) freed: Vec<u32>,
    /// Flows whose bottleneck changed.
    pub(super) moved: Vec<u32>,
    /// Their levels before, while flows are grouped.
    pub(super) levels_before: Vec<f64>,
    /// Marked links.
    marked: Vec<u32>,
    /// Number of flow limits read so far.
    pub(super) work: usize,
}

/// State of a link in the sweep.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SweepState {
    /// Last sweep that marked the link.
    sweep: u64,
    /// Last sweep that must mark the link whether it is full or not, and last sweep that found room for all its
    /// flows.
    pub(super) due_sweep: u64,
    roomy_sweep: u64,
    full: bool,
    /// The solve skips the link.
    pub(super) is_skipped: bool,
    /// A flow of the link was frozen elsewhere since the last evaluation.
    stale: bool,
    /// Level of its valid fill event, and start of the search for the next one.
    pub(super) level: f64,
    /// Steps at which the link was marked and evaluated.
    marked_at: u64,
    evaluated_at: u64,
}

/// An event in one number, for fast comparison: ordered by level, fills before releases, then by the number of the link.
/// The upper half holds the level and the kind; levels are not negative, so that their bits without the sign are ordered as
/// they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Event(u128);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fill,
    Release,
}

impl Event {
    fn new(level: f64, kind: Kind, number: u32, link: u32) -> Self {
        let key = level.to_bits() << 1 | u64::from(kind == Kind::Release);
        Self(u128::from(key) << 64 | u128::from(number) << 32 | u128::from(link))
    }

    fn level(self) -> f64 {
        f64::from_bits((self.0 >> 65) as u64)
    }

    fn kind(self) -> Kind {
        if self.0 >> 64 & 1 == 0 { Kind::Fill } else { Kind::Release }
    }

    fn link(self) -> u32 {
        self.0 as u32
    }
}

impl MaxMin {
    pub(super) fn repair(&mut self) {
        self.begin_sweep();
        // New flows first: links without room for them become due, and are marked below even if they were not full.
        self.raise_new_flows();
        let mut disturbed = std::mem::take(&mut self.dirty_links);
        for index in disturbed.drain(..) {
            let link = &self.links[index as usize];
            if link.level.is_finite() || link.sweep_state.due_sweep == self.sweep.number {
                self.mark(index);
            }
        }
        self.dirty_links = disturbed;
        // Only now: marking a link raises the limits of its flows, which the levels of the others depend on.
        for index in 0..self.sweep.marked.len() {
            self.evaluate(self.sweep.marked[index]);
        }
        while let Some(Reverse(event)) = self.sweep.events.pop() {
            match event.kind() {
                Kind::Fill => self.fill(event.link(), event.level()),
                Kind::Release => self.release(event.link()),
            }
        }
        self.end_sweep();
    }

    pub(super) fn begin_sweep(&mut self) {
        self.sweep.number += 1;
        self.sweep.work = 0;
        self.sweep.changed.clear();
        self.sweep.moved.clear();
        self.sweep.levels_before.clear();
        self.sweep.marked.clear();
        let mut begun = std::mem::take(&mut self.new_flows);
        for index in begun.drain(..) {
            if !self.flows[index as usize].uses.is_empty() {
                self.note_move(index);
                self.sweep.rising.push(index);
            }
        }
        self.new_flows = begun;
    }

    /// Raises new flows to their ceilings at once if no link of theirs is full then. Links without room for that
    /// become due.
    fn raise_new_flows(&mut self) {
        let mut begun = std::mem::take(&mut self.sweep.rising);
        begun.retain(|&flow| {
            let uses = self.flows[flow as usize].uses.len();
            let mut is_free = true;
            for place in 0..uses {
                let link = self.flows[flow as usize].uses[place].link;
                is_free &= self.test_room_for_all(link);
            }
            if is_free {
                self.flows[flow as usize].frozen_sweep = self.sweep.number;
            }
            !is_free
        });
        self.sweep.rising = begun;
    }

    /// Returns whether a link that was not full remains so with all its flows at their limits. Each link is tested
    /// once, however many flows begin there.
    fn test_room_for_all(&mut self, index: u32) -> bool {
        let number = self.sweep.number;
        let mark = &self.links[index as usize].sweep_state;
        if mark.due_sweep == number || mark.roomy_sweep == number {
            return mark.due_sweep != number;
        }
        let has_room = self.has_room_for_all(index);
        let mark = &mut self.links[index as usize].sweep_state;
        *if has_room { &mut mark.roomy_sweep } else { &mut mark.due_sweep } = number;
        has_room
    }

    fn has_room_for_all(&self, index: u32) -> bool {
        let link = &self.links[index as usize];
        if link.level != f64::INFINITY || link.sweep_state.is_skipped {
            return false;
        }
        match link.sharing {
            Sharing::Shared => link.has_room(|member| self.limits[member.flow as usize]),
            // One flow that just fills the pipe freezes all others.
            Sharing::FatPipe => self.level_of(index) == f64::INFINITY,
        }
    }

    /// Records that a flow is new or changes its bottleneck.
    pub(super) fn note_move(&mut self, index: u32) {
        if self.flows[index as usize].moved_sweep == self.sweep.number {
            return;
        }
        self.flows[index as usize].moved_sweep = self.sweep.number;
        self.sweep.moved.push(index);
        if self.filling.is_grouped {
            self.sweep.levels_before.push(self.level(FlowIndex(index)));
        }
    }

    /// Marks a link unless the sweep has done so; returns whether it did now.
    fn mark(&mut self, index: u32) -> bool {
        let link = &mut self.links[index as usize];
        if link.sweep_state.sweep == self.sweep.number || link.sweep_state.is_skipped {
            return false;
        }
        self.sweep.step += 1;
        link.sweep_state.sweep = self.sweep.number;
        link.sweep_state.marked_at = self.sweep.step;
        link.sweep_state.full = false;
        // The search starts from the last solution: an earlier sweep's last step could be any, and round otherwise.
        link.sweep_state.level = link.level;
        self.sweep.marked.push(index);
        if link.level.is_finite() {
            for &flow in &link.bottlenecked {
                self.limits[flow as usize] = self.flows[flow as usize].ceiling;
                self.sweep.rising.push(flow);
            }
            // A level that is equal up to rounding must fill before it releases.
            let level = link.level * (1.0 + TOLERANCE);
            self.sweep.events.push(Reverse(Event::new(level, Kind::Release, link.number, index)));
        }
        true
    }

    /// Computes the level of a marked link and inserts its fill event.
    fn evaluate(&mut self, index: u32) {
        let level = self.level_of(index);
        self.sweep.step += 1;
        self.sweep.work += self.links[index as usize].members.len();
        let Link { number, sweep_state, .. } = &mut self.links[index as usize];
        (sweep_state.level, sweep_state.stale, sweep_state.evaluated_at) = (level, false, self.sweep.step);
        if level.is_finite() {
            self.sweep.events.push(Reverse(Event::new(level, Kind::Fill, *number, index)));
        }
    }

    fn fill(&mut self, index: u32, level: f64) {
        let SweepState { full, stale, level: valid, .. } = self.links[index as usize].sweep_state;
        // An event is stale if the link is full or was evaluated again: the heap has no removal.
        if full || valid.to_bits() != level.to_bits() {
            return;
        }
        if stale {
            self.evaluate(index);
            // Its event has just been inserted; it comes up next unless the level has risen.
            return;
        }
        self.links[index as usize].sweep_state.full = true;
        let most = level * (1.0 + TOLERANCE);
        let (before, level) = self.set_level(index, level);
        let mut freezes = false;
        // The bottlenecked flows first: nearly all of them freeze here again, and nearly all others are frozen
        // already, so that each loop's branch is predictable.
        for place in 0..self.links[index as usize].bottlenecked.len() {
            let flow = self.links[index as usize].bottlenecked[place];
            if self.limits[flow as usize] > most {
                freezes = true;
                self.freeze(flow, before, level, Some(index));
            }
        }
        for place in 0..self.links[index as usize].members.len() {
            let flow = self.links[index as usize].members[place].flow;
            if self.limits[flow as usize] > most {
                freezes = true;
                let before = self.level(FlowIndex(flow));
                self.freeze(flow, before, level, Some(index));
            }
        }
        if !freezes {
            self.links[index as usize].level = before;
            self.sweep.changed.pop_if(|changed| *changed == index);
        }
    }

    /// Sets the level of a full link, unless it differs from the one before by rounding only. Returns the old and the
    /// new level.
    fn set_level(&mut self, index: u32, level: f64) -> (f64, f64) {
        let link = &mut self.links[index as usize];
        let before = link.level;
        if differs(level, before) {
            link.level = level;
            self.sweep.changed.push(index);
        }
        (before, link.level)
    }

    fn freeze(&mut self, index: u32, before: f64, level: f64, home: Option<u32>) {
        let flow = &mut self.flows[index as usize];
        flow.frozen_sweep = self.sweep.number;
        self.limits[index as usize] = level;
        if flow.bottleneck != home {
            self.note_move(index);
            self.set_bottleneck(index, home);
        }
        let (changes, rises) = (differs(level, before), level > before);
        for place in 0..self.flows[index as usize].uses.len() {
            let Use { link, .. } = self.flows[index as usize].uses[place];
            if changes && self.may_fill(link, rises) && self.mark(link) {
                self.evaluate(link);
            } else {
                let Link { members, sweep_state, .. } = &mut self.links[link as usize];
                sweep_state.stale = true;
                if members.len() == 1 && sweep_state.sweep == self.sweep.number {
                    // Its only flow does not fill it any more.
                    sweep_state.level = f64::INFINITY;
                }
            }
        }
    }

    /// Returns whether an unmarked link may fill at another level after a flow of it rises or falls. A link that is
    /// not full stays so when a flow falls; for a link with few flows a test for room is faster than marking it.
    fn may_fill(&self, index: u32, rises: bool) -> bool {
        let link = &self.links[index as usize];
        link.level.is_finite() || rises && (link.members.len() > FEW_FLOWS || !self.has_room_for_all(index))
    }

    /// Releases the flows that a link froze beyond its old level.
    fn release(&mut self, index: u32) {
        if self.links[index as usize].sweep_state.full {
            return;
        }
        let marked_at = self.links[index as usize].sweep_state.marked_at;
        for member in 0..self.links[index as usize].bottlenecked.len() {
            let flow = self.links[index as usize].bottlenecked[member];
            for place in 0..self.flows[flow as usize].uses.len() {
                let link = self.flows[flow as usize].uses[place].link;
                let mark = &self.links[link as usize].sweep_state;
                if mark.sweep != self.sweep.number {
                    if self.may_fill(link, true) && self.mark(link) {
                        self.evaluate(link);
                    }
                } else if link != index && !mark.full && mark.evaluated_at < marked_at {
                    self.evaluate(link);
                }
            }
        }
    }

    /// Ends the sweep: links that are not full freeze no flow, and flows that no link has frozen rise to their
    /// ceilings.
    fn end_sweep(&mut self) {
        let mut rising = std::mem::take(&mut self.sweep.rising);
        for flow in rising.drain(..) {
            let state = &self.flows[flow as usize];
            if state.frozen_sweep != self.sweep.number && !state.uses.is_empty() {
                let (before, ceiling) = (self.level(FlowIndex(flow)), state.ceiling);
                self.freeze(flow, before, ceiling, None);
            }
        }
        for &index in &self.sweep.marked {
            let link = &mut self.links[index as usize];
            if link.bottlenecked.is_empty() && link.level < f64::INFINITY {
                link.level = f64::INFINITY;
                self.sweep.freed.push(index);
            }
        }
        self.sweep.rising = rising;
        debug_assert!(
            self.sweep.events.is_empty(),
            "flows that rise to their ceilings have marked their links"
        );
    }
}

/// Returns whether a level differs from the one before by more than rounding.
pub(super) fn differs(level: f64, before: f64) -> bool {
    (level - before).abs() > level * UNCHANGED
}
