//! The components that the flows of a window join, found by all threads at once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::LinkId;

/// The links of a platform: disjoint sets of those that flows of the present window join (without locks; Jayanti and Tarjan,
/// "Concurrent Disjoint Set Union", Distributed Computing 34, 2021), and where flows are under way.
///
/// The root of a set is its link of the smallest number, and the target of a root is the largest that was proposed, so nothing
/// depends on the order of calls. All accesses are relaxed: each round of an exchange reads what the rounds before it wrote, and
/// the engine orders these; within a round, whatever ancestor of a link is read, it is one for good.
#[derive(Debug)]
pub(super) struct Components {
    links: Box<[LinkState]>,
}

#[derive(Debug)]
struct LinkState {
    /// Another link of the set, of a smaller number, or the link itself.
    parent: AtomicU32,
    /// Subnetwork of the flows on the link.
    subnetwork: AtomicU32,
    /// Number of flows on the link that are assigned to the subnetwork and have not arrived.
    flows: AtomicU32,
    /// Target of the set; 0 if none was proposed, and for all links but roots.
    target: AtomicU64,
}

/// A subnetwork to which a component may go. The subnetwork with most flows is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    flows: u32,
    subnetwork: u32,
}

impl Target {
    /// The subnetwork near the ranks of a flow, if the component is in none.
    pub(super) fn near(subnetwork: u32) -> Self {
        Self { flows: 0, subnetwork }
    }

    /// A subnetwork that has a part of the component, and this many flows.
    pub(super) fn under_way(subnetwork: u32, flows: u32) -> Self {
        Self { flows, subnetwork }
    }

    /// Encodes the target, in its order and above 0.
    fn encode(self) -> u64 {
        u64::from(self.flows) << 32 | u64::from(self.subnetwork + 1)
    }

    fn decode(code: u64) -> Option<Self> {
        let subnetwork = (code as u32).checked_sub(1)?;
        Some(Self { flows: (code >> 32) as u32, subnetwork })
    }
}

impl Components {
    pub(super) fn new(links: usize) -> Self {
        let link = |number| LinkState {
            parent: AtomicU32::new(number),
            subnetwork: AtomicU32::new(0),
            flows: AtomicU32::new(0),
            target: AtomicU64::new(0),
        };
        Self { links: (0..links as u32).map(link).collect() }
    }

    fn link(&self, link: LinkId) -> &LinkState {
        &self.links[link.index()]
    }

    fn parent(&self, link: LinkId) -> LinkId {
        LinkId::new(self.link(link).parent.load(Ordering::Relaxed))
    }

    /// Returns the root of the set of a link.
    pub(super) fn root(&self, mut link: LinkId) -> LinkId {
        loop {
            let parent = self.parent(link);
            if parent == link {
                return link;
            }
            // Halves the path.
            let above = self.parent(parent);
            self.link(link).parent.store(above.get(), Ordering::Relaxed);
            link = above;
        }
    }

    /// Joins the sets of two links.
    pub(super) fn join(&self, one: LinkId, other: LinkId) {
        loop {
            let (one, other) = (self.root(one), self.root(other));
            if one == other {
                return;
            }
            let (root, joined) = (one.min(other), one.max(other));
            let parent = &self.link(joined).parent;
            let was_root =
                parent.compare_exchange(joined.get(), root.get(), Ordering::Relaxed, Ordering::Relaxed);
            if was_root.is_ok() {
                return;
            }
        }
    }

    /// Proposes a target for the set of a root; returns whether flows of the set are under way in another subnetwork, too.
    pub(super) fn propose(&self, root: LinkId, target: Target) -> bool {
        let before = self.link(root).target.fetch_max(target.encode(), Ordering::Relaxed);
        Target::decode(before)
            .is_some_and(|known| known.flows > 0 && target.flows > 0 && known.subnetwork != target.subnetwork)
    }

    /// Returns the subnetwork to which the set of a link goes, if one was proposed.
    pub(super) fn target(&self, link: LinkId) -> Option<u32> {
        let root = self.root(link);
        Target::decode(self.link(root).target.load(Ordering::Relaxed)).map(|target| target.subnetwork)
    }

    /// Sets the subnetwork to which the set of a link goes.
    pub(super) fn set_target(&self, link: LinkId, subnetwork: u32) {
        let root = self.root(link);
        self.link(root).target.store(Target::near(subnetwork).encode(), Ordering::Relaxed);
    }

    /// Returns the subnetwork of the flows on a link, if there are any.
    pub(super) fn subnetwork(&self, link: LinkId) -> Option<u32> {
        let link = self.link(link);
        (link.flows.load(Ordering::Relaxed) > 0).then(|| link.subnetwork.load(Ordering::Relaxed))
    }

    /// Sets the subnetwork of the flows on a link.
    pub(super) fn set_subnetwork(&self, link: LinkId, subnetwork: u32) {
        self.link(link).subnetwork.store(subnetwork, Ordering::Relaxed);
    }

    /// Counts a flow that is assigned to a subnetwork.
    pub(super) fn begin_flow(&self, links: impl Iterator<Item = LinkId>, subnetwork: u32) {
        for link in links {
            self.set_subnetwork(link, subnetwork);
            self.link(link).flows.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a flow that has arrived.
    pub(super) fn end_flow(&self, links: impl Iterator<Item = LinkId>) {
        for link in links {
            self.link(link).flows.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Makes each of some links a set of its own, without target; nobody uses the sets in this round.
    pub(super) fn separate(&self, links: &[LinkId]) {
        for &link in links {
            self.link(link).parent.store(link.get(), Ordering::Relaxed);
            self.link(link).target.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINKS: u32 = 40;

    /// Returns the root and the target of each link after flows on pairs of links have joined these, on some threads.
    fn find(pairs: &[(u32, u32)], threads: usize) -> Vec<(LinkId, Option<u32>)> {
        let components = Components::new(LINKS as usize);
        let in_parallel = |f: &(dyn Fn(u32, LinkId, LinkId) + Sync)| {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let part = (0..).zip(pairs).skip(thread).step_by(threads);
                    scope.spawn(move || {
                        part.for_each(|(number, &(one, other))| {
                            f(number, LinkId::new(one), LinkId::new(other))
                        });
                    });
                }
            });
        };
        in_parallel(&|_, one, other| components.join(one, other));
        in_parallel(&|number, one, _| {
            components.propose(components.root(one), Target::near(number));
        });
        (0..LINKS).map(LinkId::new).map(|link| (components.root(link), components.target(link))).collect()
    }

    /// The smallest link that is connected with each, by repeated relaxation.
    fn smallest(pairs: &[(u32, u32)]) -> Vec<LinkId> {
        let mut smallest: Vec<u32> = (0..LINKS).collect();
        for _ in 0..LINKS {
            for &(one, other) in pairs {
                let least = smallest[one as usize].min(smallest[other as usize]);
                (smallest[one as usize], smallest[other as usize]) = (least, least);
            }
        }
        smallest.into_iter().map(LinkId::new).collect()
    }

    proptest! {
        #[test]
        fn any_number_of_threads_finds_the_components(pairs in prop::collection::vec((0..LINKS, 0..LINKS), 1..60)) {
            let found = find(&pairs, 1);
            let roots: Vec<LinkId> = found.iter().map(|&(root, _)| root).collect();
            prop_assert_eq!(&roots, &smallest(&pairs));
            for link in 0..LINKS {
                let last = (0..).zip(&pairs).filter(|&(_, &(one, _))| roots[one as usize] == roots[link as usize]).last();
                prop_assert_eq!(found[link as usize].1, last.map(|(number, _)| number), "the largest target");
            }
            prop_assert_eq!(found, find(&pairs, 3));
        }
    }

    #[test]
    fn subnetworks_conflict_if_both_have_flows_of_a_component() {
        let components = Components::new(2);
        let [one, other] = [0, 1].map(LinkId::new);
        components.join(one, other);
        let root = components.root(other);
        assert!(!components.propose(root, Target::near(9)));
        assert!(!components.propose(root, Target::under_way(3, 1)));
        assert!(!components.propose(root, Target::under_way(3, 1)));
        assert!(!components.propose(root, Target::near(9)));
        assert!(components.propose(root, Target::under_way(2, 5)));
        assert_eq!(components.target(other), Some(2), "the smaller part follows");
        components.separate(&[one, other]);
        assert_eq!((components.root(other), components.target(other)), (other, None));
    }

    #[test]
    fn a_link_has_a_subnetwork_while_it_has_flows() {
        let components = Components::new(2);
        let [one, other] = [0, 1].map(LinkId::new);
        components.begin_flow([one, other].into_iter(), 4);
        components.begin_flow([other].into_iter(), 4);
        components.end_flow([one, other].into_iter());
        assert_eq!((components.subnetwork(one), components.subnetwork(other)), (None, Some(4)));
    }
}
