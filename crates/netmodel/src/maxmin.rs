//! Weighted max-min fair sharing, kept up to date while flows come and go.
//!
//! # The equation
//! Flow `f` has a penalty `w_f > 0`, a rate limit `b_f` and, for each link `l` that it uses, a weight `a_lf > 0`. Rates
//! `x_f` are the max-min fair allocation of `y_f = w_f x_f`, the flow's *level*, under
//!
//! - `sum_f a_lf x_f <= C_l` on a shared link,
//! - `max_f a_lf x_f <= C_l` on a fat pipe,
//! - `x_f <= b_f`:
//!
//! no level can be raised without lowering one that is not higher. Progressive filling finds it (Bertsekas and
//! Gallager, "Data Networks", 2nd ed., 6.5.2): all levels rise together until a link is full; the flows that are not yet
//! frozen on it freeze there, and the others go on. The *level of a link* is where it fills; a flow freezes at the least
//! level of its links, or at its own ceiling `w_f b_f`.
//!
//! A fat pipe is full when its most demanding flow that is not yet frozen fills it, and then freezes all of them: that is
//! what SimGrid does (lmm/maxmin.cpp), and differs from giving each flow the whole capacity only where penalties differ.
//!
//! # Incremental repair
//! [`MaxMin::solve`] replays progressive filling as a sweep over levels, restricted to what a change can reach: a link
//! whose flows keep their rates below some level fills as before up to that level, so changes propagate upward only.
//! A link is *disturbed* where a flow came, went, or changed its rate; `maxmin/repair.rs` has the sweep. Where
//! everything is disturbed this is progressive filling with a heap of link levels.
//!
//! In dense traffic nothing of a solution is kept but its shape. Then flows that one link freezes are one to the others
//! (`maxmin/group.rs`), and links fill in the order of the last solve (`maxmin/refill.rs`): a solve costs as many steps as
//! pairs of links have flows in common, one of the two being the bottleneck, and not as there are flows.
//!
//! # Determinism
//! The result depends on the sequence of calls only. Levels that differ by less than a part in 10^11 count as equal,
//! and a flow whose level moves by less than a part in 10^14 keeps its rate, so that rounding does not travel.

mod certificate;
mod group;
mod level;
mod refill;
mod repair;
mod scope;

pub use certificate::Violation;
use group::Stage;
use refill::{Lid, Refill};
use repair::Sweep;
use scope::Marks;
pub use scope::Scope;

use crate::Sharing;

/// Levels closer than this, relatively, are equal.
const TOLERANCE: f64 = 1e-11;

/// A flow whose level moves by less than this, relatively, keeps its rate. Far below [`TOLERANCE`], because what is kept
/// of the error is a part of the link's capacity: a flow that takes 1/27,000 of its link, as one of far lower penalty
/// beside it leaves it, sees 27,000 times as much.
const UNCHANGED: f64 = 1e-14;

/// One solve in so many is checked in release builds; in debug builds each is.
const CHECKED_SOLVES: u64 = if cfg!(debug_assertions) { 1 } else { 4096 };

/// A set of links and the flows that share them.
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
#[derive(Debug, Default)]
pub struct MaxMin {
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// The level up to which each flow is known not to be frozen elsewhere; apart from the flows, because the sums over
    /// the flows of a link read it alone. While flows are grouped, their ceilings.
    limits: Vec<f64>,
    vacant: Vec<u32>,
    /// The flows added since the last solve.
    begun: Vec<u32>,
    /// Links whose flows came or went since the last solve.
    disturbed: Vec<u32>,
    sweep: Sweep,
    refill: Refill,
    marks: Marks,
    solves: u64,
}

/// Names a link of a [`MaxMin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(u32);

/// Names a flow of a [`MaxMin`], from its addition to its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(u32);

/// How much of a link a flow takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// The link.
    pub link: LinkIndex,
    /// What the link carries per unit of the flow's rate; greater than zero.
    pub weight: f64,
}

#[derive(Debug)]
struct Link {
    capacity: f64,
    sharing: Sharing,
    /// The level at which it is full; infinite where no flow is frozen by it.
    level: f64,
    members: Vec<Member>,
    /// The flows whose home the link is; none while flows are grouped.
    home: Vec<u32>,
    /// Where the link stands in the sweep.
    mark: repair::Mark,
}

/// A flow as a link sees it.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u32,
    /// The place of this link among those of the flow.
    place: u32,
    /// What the link carries per unit of the flow's level: weight over penalty.
    share: f64,
}

#[derive(Debug)]
struct Flow {
    penalty: f64,
    /// The level at which the flow reaches its own limit.
    ceiling: f64,
    /// The link that keeps the flow from a higher rate; none where that is its own limit.
    home: Option<u32>,
    /// Its place there.
    home_place: u32,
    /// The sweep that gave the flow its home.
    moved_in: u64,
    /// The sweep that froze the flow last.
    frozen_in: u64,
    uses: Vec<Use>,
}

/// A link as a flow sees it.
#[derive(Clone, Copy, Debug)]
struct Use {
    link: u32,
    /// The place of the flow among the link's members.
    place: u32,
    /// What the link carries per unit of the flow's level, as in [`Member`].
    share: f64,
}

impl LinkIndex {
    /// Names the link of this number: links are numbered from 0 in the order of their addition.
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
    /// Names the flow of this number.
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the flow; numbers of removed flows are used again.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl MaxMin {
    /// Makes a set of no links that is solved in this scope.
    pub fn new(scope: Scope) -> Self {
        Self { marks: Marks::new(scope), ..Self::default() }
    }

    /// Returns the number of links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Adds a link of this capacity, which may be infinite.
    ///
    /// # Panics
    /// Where the capacity is not greater than zero.
    pub fn add_link(&mut self, capacity: f64, sharing: Sharing) -> LinkIndex {
        assert!(capacity > 0.0, "a link of capacity {capacity}");
        let mark = repair::Mark::default();
        self.links.push(Link {
            capacity,
            sharing,
            level: f64::INFINITY,
            members: Vec::new(),
            home: Vec::new(),
            mark,
        });
        if self.refill.is_grouped {
            self.refill.stages.push(Stage::default());
            self.refill.lids.push(Lid::OPEN);
            self.refill.rooms.push(0.0);
            if !self.refill.places.has_room(self.links.len()) {
                self.refill.places.index(&self.refill.stages);
            }
        }
        LinkIndex(self.links.len() as u32 - 1)
    }

    /// Adds a flow that begins now; until the next solve its rate is its bound. Costs the number of usages.
    ///
    /// `bound` is the most that the flow's rate may be, or infinity.
    ///
    /// # Panics
    /// Where a penalty, a bound or a weight is not greater than zero, a link occurs twice, or there is no usage.
    pub fn add_flow(&mut self, usages: &[Usage], penalty: f64, bound: f64) -> FlowIndex {
        assert!(penalty > 0.0 && bound > 0.0, "a flow of penalty {penalty} and bound {bound}");
        assert!(!usages.is_empty(), "a flow uses at least one link");
        let index = self.vacant_flow(penalty, penalty * bound);
        self.mark_beginning(index, usages.iter().map(|usage| usage.link.0));
        let (links, flow) = (&mut self.links, &mut self.flows[index as usize]);
        flow.uses.extend((0..).zip(usages).map(|(place, &Usage { link, weight })| {
            assert!(weight > 0.0, "a weight of {weight}");
            let members = &mut links[link.index()].members;
            let share = weight / penalty;
            members.push(Member { flow: index, place, share });
            Use { link: link.0, place: members.len() as u32 - 1, share }
        }));
        self.disturbed.extend(usages.iter().map(|usage| usage.link.0));
        if self.refill.is_grouped {
            self.enter(index);
            usages.iter().for_each(|usage| self.refill.rooms[usage.link.index()] = 0.0);
        }
        FlowIndex(index)
    }

    /// Announces a flow that will begin later. It matters to [`Scope::Marked`] only: there, that marks its links.
    pub fn announce(&mut self, usages: &[Usage]) {
        self.mark_links(usages.iter().map(|usage| usage.link.0));
    }

    fn vacant_flow(&mut self, penalty: f64, ceiling: f64) -> u32 {
        let index = self.vacant.pop().unwrap_or(self.flows.len() as u32);
        match self.flows.get_mut(index as usize) {
            Some(flow) => (flow.penalty, flow.ceiling, flow.frozen_in) = (penalty, ceiling, 0),
            None => {
                let (home, home_place, moved_in, frozen_in) = (None, 0, 0, 0);
                let uses = Vec::new();
                self.flows.push(Flow { penalty, ceiling, home, home_place, moved_in, frozen_in, uses });
                self.limits.push(ceiling);
            }
        }
        self.limits[index as usize] = ceiling;
        self.begun.push(index);
        index
    }

    /// Removes a flow. Costs the number of its usages.
    ///
    /// # Panics
    /// Where the flow was removed before and its number not used again.
    pub fn remove_flow(&mut self, flow: FlowIndex) {
        assert!(!self.flows[flow.index()].uses.is_empty(), "flow {} is removed twice", flow.0);
        if self.refill.is_grouped {
            self.leave(flow.0);
        }
        self.follow_before_late();
        let mut uses = std::mem::take(&mut self.flows[flow.index()].uses);
        self.mark_links(uses.iter().map(|used| used.link));
        for &Use { link, place, .. } in &uses {
            let members = &mut self.links[link as usize].members;
            members.swap_remove(place as usize);
            if let Some(&moved) = members.get(place as usize) {
                self.flows[moved.flow as usize].uses[moved.place as usize].place = place;
            }
            if members.is_empty() {
                self.links[link as usize].level = f64::INFINITY;
            } else {
                self.disturbed.push(link);
            }
        }
        if self.refill.is_grouped {
            self.flows[flow.index()].home = None;
        } else {
            self.move_home(flow.0, None);
        }
        uses.clear();
        self.flows[flow.index()].uses = uses;
        self.vacant.push(flow.0);
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
        flow.home.map_or(flow.ceiling, |home| self.links[home as usize].level)
    }

    /// Returns the link that keeps a flow from a higher rate as of the last solve; none where the flow is at its bound. All
    /// flows with one bottleneck have one level.
    #[inline]
    pub fn bottleneck(&self, flow: FlowIndex) -> Option<LinkIndex> {
        self.flows[flow.index()].home.map(LinkIndex)
    }

    /// Returns the level of the flows whose bottleneck is this link; infinite where there is none.
    #[inline]
    pub fn level_at(&self, link: LinkIndex) -> f64 {
        self.links[link.index()].level
    }

    /// Returns whether a solve may change a rate.
    #[inline]
    pub fn is_disturbed(&self) -> bool {
        !self.disturbed.is_empty() || !self.marks.owed.is_empty()
    }

    /// Stands for a solve that changes no rate. It matters to [`Scope::Marked`] only, whose marks last until the next
    /// solve.
    #[inline]
    pub fn skip_solve(&mut self) {
        debug_assert!(!self.is_disturbed(), "a solve may change a rate");
        self.forget_marks();
    }

    /// Moves a flow to a home, or to none, while flows are not grouped.
    fn move_home(&mut self, index: u32, to: Option<u32>) {
        let flow = &mut self.flows[index as usize];
        let left = std::mem::replace(&mut flow.home, to);
        let place = flow.home_place;
        if let Some(to) = to {
            let home = &mut self.links[to as usize].home;
            flow.home_place = home.len() as u32;
            home.push(index);
        }
        let Some(left) = left else { return };
        let home = &mut self.links[left as usize].home;
        home.swap_remove(place as usize);
        if let Some(&moved) = home.get(place as usize) {
            self.flows[moved as usize].home_place = place;
        }
    }

    /// Brings the rates up to date.
    ///
    /// Costs the sum over the disturbed links of the number of their groups, a few times, `O(log n)` per such link, and for a
    /// flow whose bottleneck changes the number of groups on its links.
    ///
    /// # Panics
    /// Where a solution fails the check of [`MaxMin::check`], which is made after every solve in debug builds and after
    /// one in 4096 in release builds: that would be an error of this module.
    pub fn solve(&mut self) {
        self.limit_scope();
        if self.refill.is_grouped {
            self.refill()
        } else {
            self.repair()
        }
        self.choose_grouping();
        self.end_solve();
    }

    fn end_solve(&mut self) {
        self.solves += 1;
        if self.solves.is_multiple_of(CHECKED_SOLVES)
            && self.marks.owed.is_empty()
            && let Err(violation) = self.check()
        {
            panic!("the allocation is not max-min fair: {violation}");
        }
    }

    /// Returns the links at which the last solve changed the [level](MaxMin::level_at), each once: with it, the rates of
    /// all flows that have their [bottleneck](MaxMin::bottleneck) there.
    pub fn changed_links(&self) -> impl Iterator<Item = LinkIndex> + '_ {
        self.sweep.changed.iter().copied().map(LinkIndex)
    }

    /// Returns the flows that the last solve gave another bottleneck, each once, those that it met for the first time
    /// included. The rates of all others that are at their bounds are unchanged.
    pub fn moved_flows(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        self.sweep.moved.iter().copied().map(FlowIndex)
    }

    /// Solves from scratch: forgets all rates and fills progressively. The result is that of [`MaxMin::solve`], to a
    /// part in 10^11.
    pub fn solve_afresh(&mut self) {
        if !self.refill.is_grouped {
            self.group_flows();
        }
        for index in 0..self.flows.len() as u32 {
            if self.flows[index as usize].home.is_some() {
                self.regroup(index, None);
            }
            self.begun.push(index);
        }
        self.links.iter_mut().for_each(|link| link.level = f64::INFINITY);
        self.refill_afresh();
        self.end_solve();
    }
}
