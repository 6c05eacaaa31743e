//! The assignment of components to pockets.

use parking_lot::MutexGuard;
use pdes_core::SimTime;

use super::{Routed, StartingFlow};
use crate::LinkId;
use crate::flow::FlowNetwork;

/// The pocket of each link, and the components that the flows of a window join.
#[derive(Debug)]
pub(super) struct Assignment {
    links: Box<[LinkAssignment]>,
    /// Number of the present window.
    window: u32,
    /// Links of the flows that begin in it, each once.
    touched: Vec<LinkId>,
}

#[derive(Clone, Copy, Debug)]
struct LinkAssignment {
    /// Pocket that got a flow of the link last.
    pocket: u32,
    /// Last window in which a flow begins on the link.
    window: u32,
    /// Another link of the same component in that window, or the link itself (a disjoint-set forest).
    parent: LinkId,
    /// Pocket of the component, once known; of its root only.
    target: u32,
}

const NONE: u32 = u32::MAX;

/// A pocket while flows are assigned.
type Pocket<'a, 'p, T> = MutexGuard<'a, FlowNetwork<'p, Routed<T>>>;

impl Assignment {
    pub(super) fn new(links: usize) -> Self {
        let link =
            |number| LinkAssignment { pocket: NONE, window: 0, parent: LinkId::new(number), target: NONE };
        Self { links: (0..links as u32).map(link).collect(), window: 0, touched: Vec::new() }
    }

    /// Gives the flows that begin in a window to pockets, so that each component is in one pocket.
    pub(super) fn assign<T: Copy>(
        &mut self,
        begin_of_window: SimTime,
        flows: &mut Vec<StartingFlow<T>>,
        pockets: &mut [Pocket<'_, '_, T>],
    ) {
        self.window += 1;
        self.touched.clear();
        for flow in flows.iter() {
            let first = flow.links[0];
            for &link in &*flow.links {
                self.touch(link);
                self.join(first, link);
            }
        }
        while self.gather(begin_of_window, pockets) {}
        for StartingFlow { begin, message, links } in flows.drain(..) {
            let root = self.root(links[0]);
            if self.links[root.index()].target == NONE {
                // Nothing is under way in the component yet: it begins near its ranks.
                self.links[root.index()].target = message.tag.regions[0];
            }
            let target = self.links[root.index()].target;
            links.iter().for_each(|link| self.links[link.index()].pocket = target);
            pockets[target as usize].schedule_flow(begin, message);
        }
    }

    fn touch(&mut self, link: LinkId) {
        let assignment = &mut self.links[link.index()];
        if assignment.window != self.window {
            (assignment.window, assignment.parent, assignment.target) = (self.window, link, NONE);
            self.touched.push(link);
        }
    }

    fn root(&mut self, mut link: LinkId) -> LinkId {
        loop {
            let parent = self.links[link.index()].parent;
            if parent == link {
                return link;
            }
            // Halves the path.
            let above = self.links[parent.index()].parent;
            self.links[link.index()].parent = above;
            link = above;
        }
    }

    fn join(&mut self, one: LinkId, other: LinkId) -> LinkId {
        let (one, other) = (self.root(one), self.root(other));
        self.links[other.index()].parent = one;
        one
    }

    /// Chooses the pockets of components that are under way, and moves parts of one component to one pocket; returns whether
    /// that joined components, so that the choice must be made again.
    fn gather<T: Copy>(&mut self, now: SimTime, pockets: &mut [Pocket<'_, '_, T>]) -> bool {
        let mut flowing = Vec::new();
        for place in 0..self.touched.len() {
            let link = self.touched[place];
            let pocket = self.links[link.index()].pocket;
            if pocket == NONE || !pockets[pocket as usize].has_flows_on(link) {
                continue;
            }
            flowing.push(link);
            // The smaller parts follow the largest.
            let root = self.root(link);
            let flows = |pocket: u32| pockets.get(pocket as usize).map_or(0, |pocket| pocket.flow_count());
            let target = &mut self.links[root.index()].target;
            if *target == NONE || flows(*target) < flows(pocket) {
                *target = pocket;
            }
        }
        let mut has_joined = false;
        for link in flowing {
            let root = self.root(link);
            let (pocket, target) = (self.links[link.index()].pocket, self.links[root.index()].target);
            if target != pocket {
                has_joined |= self.relocate(now, link, (pocket, target), pockets);
            }
        }
        has_joined
    }

    /// Moves the component under way that a link belongs to; returns whether flows that begin in this window join it elsewhere, too.
    fn relocate<T: Copy>(
        &mut self,
        now: SimTime,
        link: LinkId,
        (pocket, target): (u32, u32),
        pockets: &mut [Pocket<'_, '_, T>],
    ) -> bool {
        let [from, to] = pockets
            .get_disjoint_mut([pocket as usize, target as usize])
            .expect("these are two of the pockets");
        let moved = from.move_component(now, link, to);
        let mut has_joined = false;
        for other in moved {
            self.links[other.index()].pocket = target;
            if self.links[other.index()].window == self.window {
                let roots = (self.root(link), self.root(other));
                if roots.0 != roots.1 {
                    let known = self.links[roots.1.index()].target;
                    let root = self.join(link, other);
                    self.links[root.index()].target = target;
                    // What had gone to another pocket must follow.
                    has_joined |= known != NONE && known != target;
                }
            }
        }
        has_joined
    }
}
