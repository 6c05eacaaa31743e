//! Progress of flows and their arrivals, in virtual time.
//!
//! All flows of one bottleneck have one level, so that one number measures the progress of all: the integral of the level
//! over time, their *virtual time*. A flow has arrived when the virtual time has grown by its *length*, its bytes times its
//! penalty. So a change of level costs the same for one flow and for a thousand (Parekh and Gallager, "A Generalized
//! Processor Sharing Approach to Flow Control", IEEE/ACM TON 1(3), 1993, section III). A flow at its bound is tracked
//! individually.

use pdes_core::SimTime;

use super::agenda::Earliest;
use super::{PICOS, later};
use crate::MaxMin;
use crate::maxmin::FlowIndex;

/// The progress of all flows.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Flow groups by link.
    convoys: Vec<Convoy>,
    /// Progress of each flow, by flow.
    travellers: Vec<Traveller>,
    /// Earliest arrival of each flow group and of each single flow.
    arrivals: Earliest,
    /// Links whose groups changed since the next arrival was last computed.
    changed: Vec<u32>,
}

/// The flows of one bottleneck.
#[derive(Debug)]
struct Convoy {
    /// Level: growth rate of the virtual time [1/ps].
    level: f64,
    /// Virtual time at `since`; reset to zero when the first arrival is searched among all members.
    gone: f64,
    since: SimTime,
    members: Vec<Member>,
    /// Least virtual finish time of the members, or of one that has left; infinite if there are none.
    least_goal: f64,
    /// The earliest arrival must be recomputed; if the first member has left, among all members.
    has_changed: bool,
    has_lost_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: FlowIndex,
    /// Virtual time at which the flow arrives.
    goal: f64,
}

/// Progress of a flow.
#[derive(Clone, Copy, Debug)]
enum Traveller {
    /// Member of a link's group, at this position.
    Joined { link: u32, place: u32 },
    /// Single flow, with this length left at `since` and this level [1/ps].
    Alone { left: f64, since: SimTime, level: f64 },
}

/// Returns the event key of a flow group. Keys of groups are even, those of single flows odd.
fn convoy(link: u32) -> u32 {
    link << 1
}

fn alone(flow: FlowIndex) -> u32 {
    (flow.index() as u32) << 1 | 1
}

impl Progress {
    /// Begins a flow, whose level is zero until [`Progress::apply_solve`].
    pub(super) fn begin(&mut self, now: SimTime, flow: FlowIndex, length: f64) {
        let traveller = Traveller::Alone { left: length, since: now, level: 0.0 };
        match self.travellers.get_mut(flow.index()) {
            Some(place) => *place = traveller,
            None => self.travellers.push(traveller),
        }
    }

    /// Returns the earliest arrival.
    pub(super) fn next(&mut self) -> Option<SimTime> {
        for link in self.changed.drain(..) {
            self.arrivals.set(convoy(link), self.convoys[link as usize].first_arrival());
        }
        self.arrivals.next()
    }

    /// Finds the flows that arrive before `end`, possibly none. The caller must end each.
    pub(super) fn take_before(&mut self, end: SimTime, mut arrives: impl FnMut(SimTime, FlowIndex)) {
        while let Some(group) = self.arrivals.take_before(end) {
            if group & 1 == 1 {
                let flow = FlowIndex::new(group >> 1);
                arrives(self.arrival_alone(flow), flow);
                continue;
            }
            // If the group has advanced since, rounding may move its first arrival to a later picosecond than the one
            // in the heap, which then must be set again.
            self.note_change(group >> 1);
            let convoy = &self.convoys[(group >> 1) as usize];
            let arrivals = convoy.members.iter().map(|member| (convoy.arrival(member.goal), member.flow));
            arrivals.filter(|&(at, _)| at < end).for_each(|(at, flow)| arrives(at, flow));
        }
    }

    /// Returns the length left of a flow at an instant until which its level does not change.
    pub(super) fn left(&self, at: SimTime, flow: FlowIndex) -> f64 {
        match self.travellers[flow.index()] {
            Traveller::Alone { left, since, level } => left - level * (at - since).as_picos() as f64,
            Traveller::Joined { link, place } => {
                let Convoy { level, gone, since, ref members, .. } = self.convoys[link as usize];
                members[place as usize].goal - gone - level * (at - since).as_picos() as f64
            }
        }
    }

    /// Ends a flow.
    pub(super) fn end(&mut self, now: SimTime, flow: FlowIndex) {
        self.leave(now, flow);
    }

    /// Applies the levels of the last solve from now on.
    pub(super) fn follow(&mut self, now: SimTime, sharing: &MaxMin) {
        self.arrivals.grow(2 * sharing.links().max(self.travellers.len()));
        self.convoys.resize_with(sharing.links(), Convoy::default);
        for link in sharing.changed_links() {
            self.convoys[link.index()].go_on(now, sharing.level_at(link) / PICOS);
            self.note_change(link.get());
        }
        for flow in sharing.moved_flows() {
            let left = self.leave(now, flow);
            match sharing.bottleneck(flow) {
                Some(link) => self.join(now, flow, left, link.get()),
                None => {
                    let level = sharing.level(flow) / PICOS;
                    self.travellers[flow.index()] = Traveller::Alone { left, since: now, level };
                    self.arrivals.set(alone(flow), Some(self.arrival_alone(flow)));
                }
            }
        }
    }

    fn note_change(&mut self, link: u32) {
        if !std::mem::replace(&mut self.convoys[link as usize].has_changed, true) {
            self.changed.push(link);
        }
    }

    fn join(&mut self, now: SimTime, flow: FlowIndex, left: f64, link: u32) {
        let convoy = &mut self.convoys[link as usize];
        convoy.go_on(now, convoy.level);
        if convoy.members.is_empty() {
            (convoy.gone, convoy.least_goal, convoy.has_lost_first) = (0.0, f64::INFINITY, false);
        }
        let goal = convoy.gone + left;
        let place = convoy.members.len() as u32;
        convoy.members.push(Member { flow, goal });
        self.travellers[flow.index()] = Traveller::Joined { link, place };
        if goal < convoy.least_goal {
            convoy.least_goal = goal;
            self.note_change(link);
        }
    }

    /// Removes a flow from its group, or as a single flow; returns the length left.
    fn leave(&mut self, now: SimTime, flow: FlowIndex) -> f64 {
        match self.travellers[flow.index()] {
            Traveller::Alone { left, since, level } => {
                self.arrivals.set(alone(flow), None);
                left - level * (now - since).as_picos() as f64
            }
            Traveller::Joined { link, place } => {
                let convoy = &mut self.convoys[link as usize];
                convoy.go_on(now, convoy.level);
                let Member { goal, .. } = convoy.members.swap_remove(place as usize);
                let left = goal - convoy.gone;
                let was_first = goal <= convoy.least_goal;
                convoy.has_lost_first |= was_first;
                if let Some(moved) = convoy.members.get(place as usize) {
                    self.travellers[moved.flow.index()] = Traveller::Joined { link, place };
                }
                if was_first {
                    self.note_change(link);
                }
                left
            }
        }
    }

    fn arrival_alone(&self, flow: FlowIndex) -> SimTime {
        match self.travellers[flow.index()] {
            Traveller::Alone { left, since, level } => later(since, (left / level).max(0.0)),
            Traveller::Joined { .. } => unreachable!("the flow is on its own"),
        }
    }
}

impl Default for Convoy {
    fn default() -> Self {
        let (has_changed, has_lost_first) = (false, false);
        let (level, gone, since, least_goal) = (0.0, 0.0, SimTime::ZERO, f64::INFINITY);
        Self { level, gone, since, members: Vec::new(), least_goal, has_changed, has_lost_first }
    }
}

impl Convoy {
    /// Advances the virtual time to now and sets the level from now on.
    fn go_on(&mut self, now: SimTime, level: f64) {
        self.gone += self.level * (now - self.since).as_picos() as f64;
        self.level = level;
        self.since = now;
    }

    fn arrival(&self, goal: f64) -> SimTime {
        later(self.since, ((goal - self.gone) / self.level).max(0.0))
    }

    /// Returns the first arrival, and clears the change mark.
    fn first_arrival(&mut self) -> Option<SimTime> {
        self.has_changed = false;
        if std::mem::take(&mut self.has_lost_first) {
            self.least_goal = f64::INFINITY;
            for member in &mut self.members {
                // Counting from zero again keeps a large virtual time from absorbing small lengths.
                member.goal -= self.gone;
                self.least_goal = self.least_goal.min(member.goal);
            }
            self.gone = 0.0;
        }
        (!self.members.is_empty()).then(|| self.arrival(self.least_goal))
    }
}
