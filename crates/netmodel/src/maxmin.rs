//! Weighted max-min fair sharing of links, solved incrementally as flows come and go. [`MaxMin`] has the equation.
//!
//! # Incremental repair
//! [`MaxMin::solve`] replays progressive filling as a sweep over levels, restricted to the part that a change can reach: a
//! link whose flows keep their rates below some level fills as before up to that level, so changes propagate upward only.
//! A link is *dirty* if a flow came, went, or changed its rate there; `maxmin/repair.rs` has the sweep. If every link is
//! dirty this is progressive filling with a heap of link levels.
//!
//! In dense traffic a change moves nearly all rates but hardly the order in which links fill. Then the flows of one
//! bottleneck count as one flow on other links (`maxmin/group.rs`), and links fill in the order of the last solve
//! (`maxmin/filling.rs`): a solve costs a step per pair of links that share flows of which one is the bottleneck,
//! instead of a step per flow.
//!
//! # Determinism
//! The result depends on the sequence of calls only. Levels that differ by less than a part in 10^11 count as equal,
//! and a flow whose level moves by less than a part in 10^14 keeps its rate, so that rounding does not propagate.

mod certificate;
mod component;
mod filling;
mod group;
mod level;
mod repair;
mod scope;
mod state;

pub use certificate::Violation;
pub(crate) use component::{Component, Relocation};
use filling::{Filling, FrozenLevel};
use group::LinkState;
use repair::Sweep;
use scope::ModifiedSet;
pub use scope::Scope;

use serde::{Deserialize, Serialize};

use crate::Sharing;

/// Relative distance below which levels are equal.
const TOLERANCE: f64 = 1e-11;

/// Relative change of level below which a flow keeps its rate. Far below [`TOLERANCE`], because the remaining error
/// is a part of the link's capacity: a flow that takes 1/27,000 of its link, beside one of far lower penalty, sees
/// 27,000 times as much.
const UNCHANGED: f64 = 1e-14;

/// Number of solves per check of the solution: 4096 in release builds, 1 in debug builds.
const CHECKED_SOLVES: u64 = if cfg!(debug_assertions) { 1 } else { 4096 };

/// A set of links and the flows that share them, with weighted max-min fair rates.
///
/// # Equation
/// Flow `f` has a penalty `w_f > 0`, a rate limit `b_f` and, for each link `l` that it uses, a weight `a_lf > 0`. Rates
/// `x_f` are the max-min fair allocation of the *levels* `y_f = w_f x_f` under
///
/// - `sum_f a_lf x_f <= C_l` on a shared link,
/// - `max_f a_lf x_f <= C_l` on a fat pipe,
/// - `x_f <= b_f`:
///
/// no level can be raised without lowering one that is not higher. Equivalently, each flow is at its own limit or has a
/// *bottleneck*: a full link on which no flow has a higher level. [`MaxMin::check`] verifies this.
///
/// # Algorithm
/// Progressive filling (Bertsekas and Gallager, "Data Networks", 2nd ed., 6.5.2): all levels rise together until a link is
/// full; the flows that are not yet frozen on it freeze there, and the others continue to rise. The *level of a link* is
/// the level at which it fills; a flow freezes at the least level of its links, or at its own *ceiling* `w_f b_f`.
///
/// The model is that of SimGrid's LMM solver (lmm/maxmin.cpp, System.cpp of 3.32; Casanova, Giersch, Legrand, Quinson and
/// Suter, "Versatile, Scalable, and Accurate Simulation of Distributed Applications and Platforms", JPDC 74(10), 2014):
/// its constraints are the links, its variables the flows, its elements the weights, its sharing penalty is `w_f`. As
/// there, a fat pipe is full when its most demanding unfrozen flow fills it, and then freezes all its flows. This differs
/// from giving each flow the whole capacity only if penalties differ.
///
/// ```
/// use netmodel::{MaxMin, Sharing, Usage};
/// let mut sharing = MaxMin::default();
/// let (near, far) = (sharing.add_link(10.0, Sharing::Shared), sharing.add_link(4.0, Sharing::Shared));
/// let whole = |link| Usage { link, weight: 1.0 };
/// let long = sharing.add_flow(&[whole(near), whole(far)], 1.0, f64::INFINITY);
/// let short = sharing.add_flow(&[whole(near)], 1.0, f64::INFINITY);
/// sharing.solve();
/// assert_eq!((sharing.rate(long), sharing.rate(short)), (4.0, 6.0));
/// sharing.remove_flow(long);
/// sharing.solve();
/// assert_eq!(sharing.rate(short), 10.0);
/// ```
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MaxMin {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// Level up to which each flow is known not to be frozen elsewhere, by flow; the ceiling while flows are grouped.
    /// Separate from the flows, because the sums over the flows of a link read it alone.
    limits: Vec<f64>,
    free_slots: Vec<u32>,
    /// Flows added since the last solve.
    new_flows: Vec<u32>,
    /// Links whose flows came or went since the last solve.
    dirty_links: Vec<u32>,
    sweep: Sweep,
    filling: Filling,
    modified: ModifiedSet,
    solves: u64,
}

/// Identifier of a link of a [`MaxMin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkIndex(u32);

/// Identifier of a flow of a [`MaxMin`], from its addition to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowIndex(u32);

/// Use of a link by a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// The link.
    pub link: LinkIndex,
    /// Load of the link per unit of the flow's rate; greater than zero.
    pub weight: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Link {
    /// Tie-break among links that fill at one level.
    number: u32,
    capacity: f64,
    sharing: Sharing,
    /// Level at which the link is full; infinite if it freezes no flow.
    level: f64,
    members: Vec<Member>,
    /// Flows whose bottleneck is this link; empty while flows are grouped.
    bottlenecked: Vec<u32>,
    /// State of the link in the sweep.
    sweep_state: repair::SweepState,
}

/// A flow as a link sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Member {
    flow: u32,
    /// Position of this link in [`Flow::uses`].
    place: u32,
    /// Load of the link per unit of the flow's level: weight over penalty.
    share: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Flow {
    penalty: f64,
    /// Level at which the flow reaches its own rate limit.
    ceiling: f64,
    /// Link that keeps the flow from a higher rate; `None` if that is its own limit.
    bottleneck: Option<u32>,
    /// Position in [`Link::bottlenecked`] of that link.
    bottleneck_place: u32,
    /// Number of the sweep that set the bottleneck.
    moved_sweep: u64,
    /// Number of the last sweep that froze the flow.
    frozen_sweep: u64,
    uses: Vec<Use>,
}

/// A link as a flow sees it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Use {
    link: u32,
    /// Position of the flow in [`Link::members`].
    place: u32,
    /// Load of the link per unit of the flow's level, as in [`Member`].
    share: f64,
}

impl LinkIndex {
    /// Makes the identifier of this number: links are numbered from 0 in the order of their addition.
    pub fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the link.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns the number of the link as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl FlowIndex {
    /// Makes the identifier of this number.
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the flow as an index; numbers of removed flows are reused.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl MaxMin {
    /// Makes an empty set of links that is solved in this scope.
    pub fn new(scope: Scope) -> Self {
        Self { modified: ModifiedSet::new(scope), ..Self::default() }
    }

    /// Makes an empty set of links whose flows are never grouped: rates of flows depend on links that they share with others, to
    /// the last bit, and on nothing else in the set.
    pub(crate) fn without_groups(scope: Scope) -> Self {
        let mut sharing = Self::new(scope);
        sharing.filling.never_groups = true;
        sharing
    }

    /// Returns the number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Adds a link of this capacity, which may be infinite.
    ///
    /// # Panics
    /// If the capacity is less than zero.
    pub fn add_link(&mut self, capacity: f64, sharing: Sharing) -> LinkIndex {
        self.add_numbered_link(self.links.len() as u32, capacity, sharing)
    }

    /// Adds a link with the number by which it is ordered among the links that fill at one level: its index depends on the links
    /// that were added before, which are others in each part of a network.
    pub(crate) fn add_numbered_link(&mut self, number: u32, capacity: f64, sharing: Sharing) -> LinkIndex {
        assert!(capacity >= 0.0, "a link of capacity {capacity}");
        let mark = repair::SweepState::default();
        self.links.push(Link {
            number,
            capacity,
            sharing,
            level: f64::INFINITY,
            members: Vec::new(),
            bottlenecked: Vec::new(),
            sweep_state: mark,
        });
        if self.filling.is_grouped {
            self.filling.link_states.push(LinkState::default());
            self.filling.frozen_levels.push(FrozenLevel::RISING);
            self.filling.headrooms.push(0.0);
            if !self.filling.group_index.covers(self.links.len()) {
                self.filling.group_index.rebuild(&self.filling.link_states);
            }
        }
        LinkIndex(self.links.len() as u32 - 1)
    }

    /// Adds a flow that begins now; until the next solve its rate is its bound. `O(usages)`.
    ///
    /// `bound` is the largest rate of the flow, or infinity.
    ///
    /// # Panics
    /// If a penalty, a bound or a weight is not greater than zero, a link occurs twice, or there is no usage.
    pub fn add_flow(&mut self, usages: &[Usage], penalty: f64, bound: f64) -> FlowIndex {
        assert!(penalty > 0.0 && bound > 0.0, "a flow of penalty {penalty} and bound {bound}");
        assert!(!usages.is_empty(), "a flow uses at least one link");
        let index = self.allocate_flow(penalty, penalty * bound);
        self.mark_new_flow(index, usages.iter().map(|usage| usage.link.0));
        let (links, flow) = (&mut self.links, &mut self.flows[index as usize]);
        flow.uses.extend((0..).zip(usages).map(|(place, &Usage { link, weight })| {
            assert!(weight > 0.0, "a weight of {weight}");
            let members = &mut links[link.index()].members;
            let share = weight / penalty;
            members.push(Member { flow: index, place, share });
            Use { link: link.0, place: members.len() as u32 - 1, share }
        }));
        if self.filling.is_grouped {
            self.add_to_groups(index);
        }
        self.disturb(usages.iter().map(|usage| usage.link.0));
        FlowIndex(index)
    }

    /// Announces a flow that will begin later. Only [`Scope::Marked`] uses this: it marks the links of the flow, as
    /// SimGrid does.
    pub fn announce(&mut self, usages: &[Usage]) {
        self.mark_modified(usages.iter().map(|usage| usage.link.0));
    }

    /// Sets the capacity of a link. `O(1)`, beside the next solve.
    ///
    /// # Panics
    /// If the capacity is less than zero.
    pub fn set_capacity(&mut self, link: LinkIndex, capacity: f64) {
        assert!(capacity >= 0.0, "a link of capacity {capacity}");
        let state = &mut self.links[link.index()];
        state.capacity = capacity;
        if state.members.is_empty() {
            return;
        }
        // Also if it is not full yet.
        state.sweep_state.due_sweep = self.sweep.number + 1;
        self.mark_modified([link.0].into_iter());
        self.disturb([link.0].into_iter());
    }

    /// Changes penalty and bound of a flow; until the next solve its rate is its bound. `O(usages)`.
    ///
    /// # Panics
    /// If the penalty or the bound is not greater than zero, or the usages are not those of the flow.
    pub(crate) fn change_flow(&mut self, flow: FlowIndex, usages: &[Usage], penalty: f64, bound: f64) {
        assert!(penalty > 0.0 && bound > 0.0, "a flow of penalty {penalty} and bound {bound}");
        assert_eq!(usages.len(), self.flows[flow.index()].uses.len(), "links of flow {}", flow.0);
        self.release_bottleneck(flow.0);
        let ceiling = penalty * bound;
        let state = &mut self.flows[flow.index()];
        (state.penalty, state.ceiling, self.limits[flow.index()]) = (penalty, ceiling, ceiling);
        for (used, usage) in state.uses.iter_mut().zip(usages) {
            used.share = usage.weight / penalty;
            self.links[used.link as usize].members[used.place as usize].share = used.share;
        }
        if self.filling.is_grouped {
            self.add_to_groups(flow.0);
        }
        self.new_flows.push(flow.0);
        let links = usages.iter().map(|usage| usage.link.0);
        self.mark_modified(links.clone());
        self.disturb(links);
    }

    /// Makes a flow one without a bottleneck, and without a group.
    #[inline]
    fn release_bottleneck(&mut self, index: u32) {
        if self.filling.is_grouped {
            self.remove_from_groups(index);
            self.flows[index as usize].bottleneck = None;
        } else {
            self.set_bottleneck(index, None);
        }
    }

    /// Schedules links for the next solve.
    #[inline]
    fn disturb(&mut self, links: impl Iterator<Item = u32> + Clone) {
        self.dirty_links.extend(links.clone());
        if self.filling.is_grouped {
            links.for_each(|link| self.filling.headrooms[link as usize] = 0.0);
        }
    }

    /// Returns the flows on a link.
    pub(crate) fn flows_on(&self, link: LinkIndex) -> impl Iterator<Item = FlowIndex> + '_ {
        self.links[link.index()].members.iter().map(|member| FlowIndex(member.flow))
    }

    /// Returns the capacity of a link.
    pub(crate) fn capacity(&self, link: LinkIndex) -> f64 {
        self.links[link.index()].capacity
    }

    /// Returns the penalty of a flow.
    pub(crate) fn penalty(&self, flow: FlowIndex) -> f64 {
        self.flows[flow.index()].penalty
    }

    fn allocate_flow(&mut self, penalty: f64, ceiling: f64) -> u32 {
        let index = self.place_for_flow(penalty, ceiling);
        self.new_flows.push(index);
        index
    }

    /// Returns the index for one more flow.
    fn place_for_flow(&mut self, penalty: f64, ceiling: f64) -> u32 {
        let index = self.free_slots.pop().unwrap_or(self.flows.len() as u32);
        match self.flows.get_mut(index as usize) {
            Some(flow) => {
                (flow.penalty, flow.ceiling, flow.frozen_sweep, flow.moved_sweep) = (penalty, ceiling, 0, 0)
            }
            None => {
                let (home, home_place, moved_in, frozen_in) = (None, 0, 0, 0);
                let uses = Vec::new();
                self.flows.push(Flow {
                    penalty,
                    ceiling,
                    bottleneck: home,
                    bottleneck_place: home_place,
                    moved_sweep: moved_in,
                    frozen_sweep: frozen_in,
                    uses,
                });
                self.limits.push(ceiling);
            }
        }
        self.limits[index as usize] = ceiling;
        index
    }

    /// Removes a flow. `O(usages)`.
    ///
    /// # Panics
    /// If the flow was removed before and its number was not reused.
    pub fn remove_flow(&mut self, flow: FlowIndex) {
        assert!(!self.flows[flow.index()].uses.is_empty(), "flow {} is removed twice", flow.0);
        self.release_bottleneck(flow.0);
        let mut uses = std::mem::take(&mut self.flows[flow.index()].uses);
        self.mark_modified(uses.iter().map(|used| used.link));
        for &Use { link, place, .. } in &uses {
            let members = &mut self.links[link as usize].members;
            members.swap_remove(place as usize);
            if let Some(&moved) = members.get(place as usize) {
                self.flows[moved.flow as usize].uses[moved.place as usize].place = place;
            }
            if members.is_empty() {
                self.links[link as usize].level = f64::INFINITY;
            } else {
                self.dirty_links.push(link);
            }
        }
        uses.clear();
        self.flows[flow.index()].uses = uses;
        self.free_slots.push(flow.0);
    }

    /// Returns the rate of a flow as of the last solve; its bound for one added since.
    #[inline]
    pub fn rate(&self, flow: FlowIndex) -> f64 {
        self.level(flow) / self.flows[flow.index()].penalty
    }

    /// Returns the level of a flow, its rate times its penalty.
    #[inline]
    pub fn level(&self, flow: FlowIndex) -> f64 {
        let flow = &self.flows[flow.index()];
        flow.bottleneck.map_or(flow.ceiling, |home| self.links[home as usize].level)
    }

    /// Returns the bottleneck of a flow as of the last solve; `None` if the flow is at its bound. All flows of one
    /// bottleneck have one level.
    #[inline]
    pub fn bottleneck(&self, flow: FlowIndex) -> Option<LinkIndex> {
        self.flows[flow.index()].bottleneck.map(LinkIndex)
    }

    /// Returns the level of the flows whose bottleneck is this link; infinite if there are none.
    #[inline]
    pub fn link_level(&self, link: LinkIndex) -> f64 {
        self.links[link.index()].level
    }

    /// Returns whether a solve may change a rate.
    #[inline]
    pub fn needs_solve(&self) -> bool {
        !self.dirty_links.is_empty() || !self.modified.skipped.is_empty()
    }

    /// Replaces a solve that would change no rate. Only [`Scope::Marked`] needs this: its marks last until the next
    /// solve.
    #[inline]
    pub fn skip_solve(&mut self) {
        debug_assert!(!self.needs_solve(), "a solve may change a rate");
        self.clear_marks();
    }

    /// Sets the bottleneck of a flow, while flows are not grouped.
    fn set_bottleneck(&mut self, index: u32, to: Option<u32>) {
        let flow = &mut self.flows[index as usize];
        let left = std::mem::replace(&mut flow.bottleneck, to);
        let place = flow.bottleneck_place;
        if let Some(to) = to {
            let home = &mut self.links[to as usize].bottlenecked;
            flow.bottleneck_place = home.len() as u32;
            home.push(index);
        }
        let Some(left) = left else { return };
        let home = &mut self.links[left as usize].bottlenecked;
        home.swap_remove(place as usize);
        if let Some(&moved) = home.get(place as usize) {
            self.flows[moved as usize].bottleneck_place = place;
        }
    }

    /// Updates the rates.
    ///
    /// Costs a few times the number of groups on the dirty links, `O(log n)` per such link, and for each flow whose
    /// bottleneck changes the number of groups on its links.
    ///
    /// # Panics
    /// If a solution fails [`MaxMin::check`], which runs after every solve in debug builds and after one in 4096 in
    /// release builds: that would be an error of this module.
    pub fn solve(&mut self) {
        self.sweep.freed.clear();
        self.limit_scope();
        if self.filling.is_grouped {
            self.solve_by_filling()
        } else {
            self.repair()
        }
        self.choose_method();
        self.end_solve();
    }

    fn end_solve(&mut self) {
        self.solves += 1;
        if self.solves.is_multiple_of(CHECKED_SOLVES)
            && self.modified.skipped.is_empty()
            && let Err(violation) = self.check()
        {
            panic!("the allocation is not max-min fair: {violation}");
        }
    }

    /// Returns the links that became a bottleneck in the last solve, or at which it changed the [level](MaxMin::link_level), each once:
    /// with it, the rates of all flows with this [bottleneck](MaxMin::bottleneck).
    pub fn changed_links(&self) -> impl Iterator<Item = LinkIndex> + '_ {
        self.sweep.changed.iter().copied().map(LinkIndex)
    }

    /// Returns links that stopped being a bottleneck in the last solve; links that all flows left before are not among them.
    pub fn freed_links(&self) -> impl Iterator<Item = LinkIndex> + '_ {
        self.sweep.freed.iter().copied().map(LinkIndex)
    }

    /// Returns the flows whose bottleneck changed in the last solve, each once, including new flows. The rates of all
    /// other flows at their bounds are unchanged.
    pub fn moved_flows(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        self.sweep.moved.iter().copied().map(FlowIndex)
    }

    /// Solves from scratch by progressive filling. The result is that of [`MaxMin::solve`], to a part in 10^11.
    pub fn solve_from_scratch(&mut self) {
        if !self.filling.is_grouped {
            self.group_flows();
        }
        for index in 0..self.flows.len() as u32 {
            if self.flows[index as usize].bottleneck.is_some() {
                self.change_bottleneck(index, None);
            }
            self.new_flows.push(index);
        }
        self.links.iter_mut().for_each(|link| link.level = f64::INFINITY);
        self.fill_from_scratch();
        self.end_solve();
    }
}
