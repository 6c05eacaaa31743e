//! Progress of flows and their arrivals, in virtual time.
//!
//! All flows of one bottleneck have one level, so that one number measures the progress of all: the integral of the level
//! over time, their *virtual time*. A flow has arrived when the virtual time has grown by its *length*, its bytes times its
//! penalty. So a change of level costs the same for one flow and for a thousand (Parekh and Gallager, "A Generalized
//! Processor Sharing Approach to Flow Control", IEEE/ACM TON 1(3), 1993, section III). A flow at its bound is tracked
//! individually.

use pdes_core::{IndexedEventHeap, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::{PICOS, later};
use crate::MaxMin;
use crate::maxmin::{Component, FlowIndex, LinkIndex, Relocation};

/// The progress of all flows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Flow groups by link.
    groups: Vec<FlowGroup>,
    /// Progress of each flow, by flow.
    flows: Vec<FlowProgress>,
    /// Earliest arrival of each flow group and of each single flow.
    arrivals: IndexedEventHeap,
    /// Links whose groups changed since the next arrival was last computed.
    changed: Vec<u32>,
}

/// The flows of one bottleneck.
#[derive(Debug, Serialize, Deserialize, State)]
struct FlowGroup {
    /// Level: growth rate of the virtual time [1/ps].
    level: f64,
    /// Virtual time at `since`; reset to zero when the first arrival is searched among all members.
    virtual_time: f64,
    since: SimTime,
    members: Vec<Member>,
    /// Least virtual finish time of the members, or of one that has left; infinite if there are none.
    least_finish: f64,
    /// The earliest arrival must be recomputed; if the first member has left, among all members.
    has_changed: bool,
    has_first_left: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Member {
    #[state(saved = "a number that is reused")]
    flow: FlowIndex,
    /// Virtual time at which the flow arrives.
    virtual_finish: f64,
}

/// Progress of a flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
enum FlowProgress {
    /// Member of a link's group, at this position.
    Grouped { link: u32, place: u32 },
    /// Single flow, with this length left at `since` and this level [1/ps].
    Single { left: f64, since: SimTime, level: f64 },
}

/// Returns the event key of a flow group. Keys of groups are even, those of single flows odd.
fn group_key(link: u32) -> u32 {
    link << 1
}

fn single_key(flow: FlowIndex) -> u32 {
    (flow.index() as u32) << 1 | 1
}

/// Once the next arrival is known. The progress of each flow is [visited](Progress::visit_flow) apart.
impl State for Progress {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { groups, flows: _, arrivals, changed: _ } = self;
        // An empty group begins anew.
        for (link, group) in (0_u32..).zip(groups).filter(|(_, group)| !group.members.is_empty()) {
            visitor.compare(&link);
            group.visit(visitor);
            // Rounding may have moved the arrival since it was computed.
            arrivals.of_group(group_key(link)).visit(visitor);
        }
        visitor.compare(&u32::MAX);
        arrivals.visit(visitor);
    }
}

impl Progress {
    /// Begins a flow, whose level is zero until [`Progress::apply_solve`].
    pub(super) fn begin(&mut self, now: SimTime, flow: FlowIndex, length: f64) {
        let progress = FlowProgress::Single { left: length, since: now, level: 0.0 };
        match self.flows.get_mut(flow.index()) {
            Some(place) => *place = progress,
            None => self.flows.push(progress),
        }
    }

    /// Returns the earliest arrival.
    pub(super) fn next(&mut self) -> Option<SimTime> {
        for link in self.changed.drain(..) {
            self.arrivals.set(group_key(link), self.groups[link as usize].first_arrival());
        }
        self.arrivals.next()
    }

    /// Finds the flows that arrive before `end`, possibly none. The caller must end each.
    pub(super) fn pop_before(&mut self, end: SimTime, mut arrives: impl FnMut(SimTime, FlowIndex)) {
        while let Some(group) = self.arrivals.pop_before(end) {
            if group & 1 == 1 {
                let flow = FlowIndex::new(group >> 1);
                arrives(self.single_arrival(flow), flow);
                continue;
            }
            // If the group has advanced since, rounding may move its first arrival to a later picosecond than the one
            // in the heap, which then must be set again.
            self.note_change(group >> 1);
            let flow_group = &self.groups[(group >> 1) as usize];
            let arrivals = flow_group
                .members
                .iter()
                .map(|member| (flow_group.arrival(member.virtual_finish), member.flow));
            arrivals.filter(|&(at, _)| at < end).for_each(|(at, flow)| arrives(at, flow));
        }
    }

    /// Returns the length left of a flow at an instant until which its level does not change.
    pub(super) fn left(&self, at: SimTime, flow: FlowIndex) -> f64 {
        match self.flows[flow.index()] {
            FlowProgress::Single { left, since, level } => left - level * (at - since).as_picos() as f64,
            FlowProgress::Grouped { link, place } => {
                let FlowGroup { level, virtual_time, since, ref members, .. } = self.groups[link as usize];
                members[place as usize].virtual_finish - virtual_time - level * (at - since).as_picos() as f64
            }
        }
    }

    /// Visits the progress of a flow: its own, or its place in a group.
    pub(super) fn visit_flow(&mut self, flow: FlowIndex, visitor: &mut StateVisitor<'_>) {
        self.flows[flow.index()].visit(visitor);
    }

    /// Changes the arrival of a flow, to test that it shows in the state; returns false where there is none.
    #[cfg(test)]
    pub(super) fn change_a_finish(&mut self) -> bool {
        let member = self.groups.iter_mut().flat_map(|group| &mut group.members).next();
        member.map(|member| member.virtual_finish = member.virtual_finish.next_up()).is_some()
    }

    /// Moves the flows of a component to another network, where links and flows have other indices. The next arrival of both is
    /// known.
    pub(super) fn move_component(&mut self, component: &Component, to: &mut Self, relocation: &Relocation) {
        let (links, flows) = (&relocation.links, &relocation.flows);
        let most = |indices: &mut dyn Iterator<Item = usize>| indices.max().map_or(0, |most| most + 1);
        let link_count = most(&mut links.values().map(|link| link.index())).max(to.groups.len());
        let flow_count = most(&mut flows.values().map(|flow| flow.index())).max(to.flows.len());
        to.groups.resize_with(link_count, FlowGroup::default);
        to.flows.resize(flow_count, FlowProgress::Single { left: 0.0, since: SimTime::ZERO, level: 0.0 });
        to.arrivals.grow(2 * link_count.max(flow_count));
        let mut move_arrival = |from: u32, key: u32| {
            to.arrivals.set(key, self.arrivals.of_group(from));
            self.arrivals.set(from, None);
        };
        for flow in &component.flows {
            let moved = flows[flow];
            to.flows[moved.index()] = match self.flows[flow.index()] {
                FlowProgress::Grouped { link, place } => {
                    FlowProgress::Grouped { link: links[&LinkIndex::new(link)].get(), place }
                }
                single => {
                    move_arrival(single_key(*flow), single_key(moved));
                    single
                }
            };
        }
        for link in &component.links {
            let moved = links[link];
            if let Some(group) = self.groups.get_mut(link.index()) {
                debug_assert!(!group.has_changed, "the next arrival is known");
                let mut group = std::mem::take(group);
                group.members.iter_mut().for_each(|member| member.flow = flows[&member.flow]);
                to.groups[moved.index()] = group;
                move_arrival(group_key(link.get()), group_key(moved.get()));
            }
        }
    }

    /// Changes the penalty of a flow by a factor, and with it the length left, which is the bytes left times the penalty. The level is
    /// zero until [`Progress::apply_solve`].
    pub(super) fn scale(&mut self, now: SimTime, flow: FlowIndex, factor: f64) {
        let left = self.leave(now, flow);
        self.begin(now, flow, left * factor);
    }

    /// Ends a flow.
    pub(super) fn end(&mut self, now: SimTime, flow: FlowIndex) {
        self.leave(now, flow);
    }

    /// Applies the levels of the last solve from now on.
    pub(super) fn apply_solve(&mut self, now: SimTime, sharing: &MaxMin) {
        self.arrivals.grow(2 * sharing.links().max(self.flows.len()));
        self.groups.resize_with(sharing.links(), FlowGroup::default);
        for link in sharing.changed_links() {
            self.groups[link.index()].advance(now, sharing.link_level(link) / PICOS);
            self.note_change(link.get());
        }
        for flow in sharing.moved_flows() {
            let left = self.leave(now, flow);
            match sharing.bottleneck(flow) {
                Some(link) => self.join_group(now, flow, left, link.get()),
                None => {
                    let level = sharing.level(flow) / PICOS;
                    self.flows[flow.index()] = FlowProgress::Single { left, since: now, level };
                    self.arrivals.set(single_key(flow), Some(self.single_arrival(flow)));
                }
            }
        }
    }

    fn note_change(&mut self, link: u32) {
        if !std::mem::replace(&mut self.groups[link as usize].has_changed, true) {
            self.changed.push(link);
        }
    }

    fn join_group(&mut self, now: SimTime, flow: FlowIndex, left: f64, link: u32) {
        let flow_group = &mut self.groups[link as usize];
        flow_group.advance(now, flow_group.level);
        if flow_group.members.is_empty() {
            (flow_group.virtual_time, flow_group.least_finish, flow_group.has_first_left) =
                (0.0, f64::INFINITY, false);
        }
        let goal = flow_group.virtual_time + left;
        let place = flow_group.members.len() as u32;
        flow_group.members.push(Member { flow, virtual_finish: goal });
        self.flows[flow.index()] = FlowProgress::Grouped { link, place };
        if goal < flow_group.least_finish {
            flow_group.least_finish = goal;
            self.note_change(link);
        }
    }

    /// Removes a flow from its group, or as a single flow; returns the length left.
    fn leave(&mut self, now: SimTime, flow: FlowIndex) -> f64 {
        match self.flows[flow.index()] {
            FlowProgress::Single { left, since, level } => {
                self.arrivals.set(single_key(flow), None);
                left - level * (now - since).as_picos() as f64
            }
            FlowProgress::Grouped { link, place } => {
                let flow_group = &mut self.groups[link as usize];
                flow_group.advance(now, flow_group.level);
                let Member { virtual_finish, .. } = flow_group.members.swap_remove(place as usize);
                let left = virtual_finish - flow_group.virtual_time;
                let was_first = virtual_finish <= flow_group.least_finish;
                flow_group.has_first_left |= was_first;
                if let Some(moved) = flow_group.members.get(place as usize) {
                    self.flows[moved.flow.index()] = FlowProgress::Grouped { link, place };
                }
                if was_first {
                    self.note_change(link);
                }
                left
            }
        }
    }

    fn single_arrival(&self, flow: FlowIndex) -> SimTime {
        match self.flows[flow.index()] {
            FlowProgress::Single { left, since, level } => later(since, (left / level).max(0.0)),
            FlowProgress::Grouped { .. } => unreachable!("the flow is on its own"),
        }
    }
}

impl Default for FlowGroup {
    fn default() -> Self {
        let (has_changed, has_lost_first) = (false, false);
        let (level, gone, since, least_goal) = (0.0, 0.0, SimTime::ZERO, f64::INFINITY);
        Self {
            level,
            virtual_time: gone,
            since,
            members: Vec::new(),
            least_finish: least_goal,
            has_changed,
            has_first_left: has_lost_first,
        }
    }
}

impl FlowGroup {
    /// Advances the virtual time to now and sets the level from now on.
    fn advance(&mut self, now: SimTime, level: f64) {
        self.virtual_time += self.level * (now - self.since).as_picos() as f64;
        self.level = level;
        self.since = now;
    }

    fn arrival(&self, goal: f64) -> SimTime {
        later(self.since, ((goal - self.virtual_time) / self.level).max(0.0))
    }

    /// Returns the first arrival, and clears the change mark.
    fn first_arrival(&mut self) -> Option<SimTime> {
        self.has_changed = false;
        if std::mem::take(&mut self.has_first_left) {
            self.least_finish = f64::INFINITY;
            for member in &mut self.members {
                // Counting from zero again keeps a large virtual time from absorbing small lengths.
                member.virtual_finish -= self.virtual_time;
                self.least_finish = self.least_finish.min(member.virtual_finish);
            }
            self.virtual_time = 0.0;
        }
        (!self.members.is_empty()).then(|| self.arrival(self.least_finish))
    }
}
