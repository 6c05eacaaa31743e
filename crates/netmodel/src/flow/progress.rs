//! How far the data of messages have come.
//!
//! All flows with one bottleneck have one level, so that one number counts for all of them: the integral of the level
//! over time, here *the way gone*. A flow has arrived when that has grown by its *length*, its bytes times its penalty. So a
//! change of level costs the same for one flow and for a thousand (virtual time; Parekh and Gallager, "A Generalized
//! Processor Sharing Approach to Flow Control", IEEE/ACM TON 1(3), 1993, section III). A flow that is at its bound goes its
//! way alone.

use pdes_core::SimTime;

use super::agenda::Earliest;
use super::{PICOS, later};
use crate::MaxMin;
use crate::maxmin::FlowIndex;

/// The progress of all flows.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// By the numbers of the links.
    convoys: Vec<Convoy>,
    /// By the numbers of the flows.
    travellers: Vec<Traveller>,
    /// The earliest arrival of each convoy and of each flow on its own.
    arrivals: Earliest,
    /// The links whose convoys have changed since the next arrival was asked for.
    changed: Vec<u32>,
}

/// The flows whose bottleneck is one link.
#[derive(Debug)]
struct Convoy {
    /// What the way gone grows by [1/ps].
    level: f64,
    /// The way gone at `since`; zero when the flow that arrives next was looked for.
    gone: f64,
    since: SimTime,
    members: Vec<Member>,
    /// The least goal of the members, or of one that has left; infinite where there is none.
    least_goal: f64,
    /// Whether the earliest arrival is to be found anew, and among all members.
    has_changed: bool,
    has_lost_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    flow: FlowIndex,
    /// The way gone at which the flow arrives.
    goal: f64,
}

/// A flow that is under way.
#[derive(Clone, Copy, Debug)]
enum Traveller {
    /// At this place in the convoy of a link.
    Joined { link: u32, place: u32 },
    /// On its own, with so far to go at an instant, at this level [1/ps].
    Alone { left: f64, since: SimTime, level: f64 },
}

/// Convoys and flows on their own have numbers of their own.
fn convoy(link: u32) -> u32 {
    link << 1
}

fn alone(flow: FlowIndex) -> u32 {
    (flow.index() as u32) << 1 | 1
}

impl Progress {
    /// Lets a flow begin, which has no level before [`Progress::follow`].
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

    /// Finds the flows that arrive before `end`, which may be none. Each is to be ended.
    pub(super) fn take_before(&mut self, end: SimTime, mut arrives: impl FnMut(SimTime, FlowIndex)) {
        while let Some(group) = self.arrivals.take_before(end) {
            if group & 1 == 1 {
                let flow = FlowIndex::new(group >> 1);
                arrives(self.arrival_alone(flow), flow);
                continue;
            }
            // Where the convoy has gone on since, the arrival of its first may be rounded to a later picosecond than that
            // under which it was noted, and is to be noted anew.
            self.note_change(group >> 1);
            let convoy = &self.convoys[(group >> 1) as usize];
            let arrivals = convoy.members.iter().map(|member| (convoy.arrival(member.goal), member.flow));
            arrivals.filter(|&(at, _)| at < end).for_each(|(at, flow)| arrives(at, flow));
        }
    }

    /// Returns how far a flow has to go at an instant until which its level does not change.
    pub(super) fn left(&self, at: SimTime, flow: FlowIndex) -> f64 {
        match self.travellers[flow.index()] {
            Traveller::Alone { left, since, level } => left - level * (at - since).as_picos() as f64,
            Traveller::Joined { link, place } => {
                let Convoy { level, gone, since, ref members, .. } = self.convoys[link as usize];
                members[place as usize].goal - gone - level * (at - since).as_picos() as f64
            }
        }
    }

    /// Forgets a flow.
    pub(super) fn end(&mut self, now: SimTime, flow: FlowIndex) {
        self.leave(now, flow);
    }

    /// Goes on from now with the levels of the last solve.
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

    /// Takes a flow out of where it is; returns how far it has to go.
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
    /// Goes on at a level from now on.
    fn go_on(&mut self, now: SimTime, level: f64) {
        self.gone += self.level * (now - self.since).as_picos() as f64;
        self.level = level;
        self.since = now;
    }

    fn arrival(&self, goal: f64) -> SimTime {
        later(self.since, ((goal - self.gone) / self.level).max(0.0))
    }

    /// Returns when the first flow arrives, and notes that this is known.
    fn first_arrival(&mut self) -> Option<SimTime> {
        self.has_changed = false;
        if std::mem::take(&mut self.has_lost_first) {
            self.least_goal = f64::INFINITY;
            for member in &mut self.members {
                // Counting from here keeps what has been gone from swallowing what is to go.
                member.goal -= self.gone;
                self.least_goal = self.least_goal.min(member.goal);
            }
            self.gone = 0.0;
        }
        (!self.members.is_empty()).then(|| self.arrival(self.least_goal))
    }
}
