//! Scope of a solve: the links that a change reaches, or the subset that SimGrid would mark.
//!
//! SimGrid (lmm/System.cpp of 3.32: `expand`, `enable_var`, `var_free`, `update_modified_set`) solves the links that it
//! has marked since the last solve, its *modified set*. Marking a link marks everything that the flows on it reach, unless
//! the link is marked already. A flow that begins marks its first link only. If several flows from one host begin at one
//! instant, the first of them marks the link that they share, and the next one finds it marked: its other links may
//! be left out of the solve, and the flows there keep their rates until a later change reaches them. Such links are
//! *skipped* here.
//!
//! Flows are followed lazily, only if a link may be skipped: otherwise both scopes give the same rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MaxMin, Member};
use crate::Sharing;

/// Links that a solve takes into account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every link that a change reaches: the allocation is max-min fair after every solve.
    #[default]
    Complete,
    /// The links that SimGrid marks: if several flows begin at one instant, links may be overloaded for a while.
    Marked,
}

/// Links marked since the last solve.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ModifiedSet {
    pub(super) scope: Scope,
    /// Number of the next solve.
    round: u64,
    /// Last round in which each link was marked.
    links: Vec<u64>,
    /// Last round in which each flow was followed.
    flows: Vec<u64>,
    /// Links to mark, with everything that the flows on them reach.
    roots: Vec<u32>,
    /// Marked links whose flows have not been followed yet.
    open: Vec<u32>,
    /// Links of new flows that were not marked when the flow began.
    pub(super) unmarked: Vec<u32>,
    /// Last flow with such links, if marked links were open then: it is not followed from these.
    deferred_flow: Option<u32>,
    /// Links that were left out of a solve and not solved since.
    pub(super) skipped: Vec<u32>,
}

/// Number of flows of a link that are tested for a marked link before open links are followed.
const PROBED_FLOWS: usize = 4;

impl ModifiedSet {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, round: 1, ..Self::default() }
    }

    fn is_marked(&self, link: u32) -> bool {
        self.links.get(link as usize) == Some(&self.round)
    }

    /// Marks a link; returns whether it was not marked before.
    fn mark(&mut self, link: u32) -> bool {
        let round = self.round;
        std::mem::replace(&mut self.links[link as usize], round) != round
    }

    /// Records that a flow is followed; returns whether it was not before.
    fn follow(&mut self, flow: u32) -> bool {
        let round = self.round;
        std::mem::replace(&mut self.flows[flow as usize], round) != round
    }
}

impl MaxMin {
    /// Schedules links to be marked.
    pub(super) fn mark_modified(&mut self, links: impl Iterator<Item = u32>) {
        if self.modified.scope == Scope::Marked {
            self.modified.roots.extend(links);
        }
    }

    /// Marks the links that a new flow of this number marks, before it is added to its links.
    pub(super) fn mark_new_flow(&mut self, flow: u32, links: impl Iterator<Item = u32> + Clone) {
        if self.modified.scope == Scope::Complete {
            return;
        }
        if let Some(followed) = self.modified.flows.get_mut(flow as usize) {
            // Another flow may have had this number in this round.
            *followed = 0;
        }
        self.follow_before_deferred();
        self.follow_roots(links.clone(), self.modified.unmarked.is_empty());
        if !links.clone().next().is_some_and(|first| self.modified.is_marked(first)) {
            self.modified.roots.extend(links);
            return;
        }
        let known = self.modified.unmarked.len();
        for link in links {
            if !self.modified.is_marked(link) {
                self.modified.unmarked.push(link);
            }
        }
        if self.modified.unmarked.len() > known && !self.modified.open.is_empty() {
            self.modified.flows.resize(self.flows.len(), 0);
            self.modified.follow(flow);
            self.modified.deferred_flow = Some(flow);
        }
    }

    /// Follows the links that were open when the deferred flow began. Called before other links are marked, from
    /// which that flow is followed, and before flows leave their links.
    pub(super) fn follow_before_deferred(&mut self) {
        let Some(late) = self.modified.deferred_flow.take() else { return };
        while self.follow_one() {}
        self.modified.flows[late as usize] = 0;
    }

    /// Follows the flows of one open link; returns whether there was one.
    fn follow_one(&mut self) -> bool {
        let Self { links, flows, modified: marks, .. } = self;
        let Some(link) = marks.open.pop() else { return false };
        for member in &links[link as usize].members {
            if marks.follow(member.flow) {
                for reached in &flows[member.flow as usize].uses {
                    if marks.mark(reached.link) {
                        marks.open.push(reached.link);
                    }
                }
            }
        }
        true
    }

    /// Marks the roots and the links that flows reach from there, until it is known which of the `wanted` links are
    /// marked: in dense traffic all are, which a few flows show, and a link without flows is not reached. The
    /// remaining links are followed on demand; a flow that begins meanwhile has marked links only, or is
    /// [deferred](ModifiedSet::deferred_flow), and one that ends makes all its links roots. Faster if no flow of this
    /// round had unmarked links (`none_missed`).
    fn follow_roots(&mut self, wanted: impl Iterator<Item = u32>, none_missed: bool) {
        if self.modified.roots.is_empty() && self.modified.open.is_empty() {
            return;
        }
        self.modified.links.resize(self.links.len(), 0);
        self.modified.flows.resize(self.flows.len(), 0);
        let mut roots = std::mem::take(&mut self.modified.roots);
        for root in roots.drain(..) {
            if self.modified.mark(root) {
                self.modified.open.push(root);
            }
        }
        self.modified.roots = roots;
        for wanted in wanted {
            let Self { links, flows, modified: marks, .. } = self;
            let members = &links[wanted as usize].members;
            if marks.is_marked(wanted) || members.is_empty() {
                continue;
            }
            // A flow that reaches a marked link is reached from it, unless the link was marked before the flow began.
            let is_reached = |member: &Member| {
                flows[member.flow as usize].uses.iter().any(|used| marks.is_marked(used.link))
            };
            if none_missed && members.iter().take(PROBED_FLOWS).any(is_reached) && marks.mark(wanted) {
                marks.open.push(wanted);
            }
            while !self.modified.is_marked(wanted) && self.follow_one() {}
        }
    }

    /// Selects the links that the solve skips, and the formerly skipped links that it solves now.
    pub(super) fn limit_scope(&mut self) {
        let mut missed = std::mem::take(&mut self.modified.unmarked);
        missed.retain(|&link| !self.has_room_at_ceilings(link));
        if !missed.is_empty() || !self.modified.skipped.is_empty() {
            self.follow_before_deferred();
            let mut owed = std::mem::take(&mut self.modified.skipped);
            self.follow_roots(owed.iter().chain(&missed).copied(), missed.is_empty());
            for &link in owed.iter().filter(|&&link| self.modified.is_marked(link)) {
                self.dirty_links.push(link);
                self.links[link as usize].sweep_state.due_sweep = self.sweep.number + 1;
            }
            owed.append(&mut missed);
            owed.iter().for_each(|&link| self.links[link as usize].sweep_state.is_skipped = false);
            owed.retain(|&link| {
                let owes = !self.modified.is_marked(link);
                owes && !std::mem::replace(&mut self.links[link as usize].sweep_state.is_skipped, true)
            });
            self.modified.skipped = owed;
        }
        self.modified.unmarked = missed;
        self.clear_marks();
    }

    /// Returns whether a link is the bottleneck of no flow at any rates of the others: skipping it changes nothing
    /// until another flow begins there, which marks it or finds it unmarked again.
    fn has_room_at_ceilings(&self, index: u32) -> bool {
        let link = &self.links[index as usize];
        link.sharing == Sharing::Shared && link.has_room(|member| self.flows[member.flow as usize].ceiling)
    }

    /// Ends a round.
    pub(super) fn clear_marks(&mut self) {
        self.modified.roots.clear();
        self.modified.open.clear();
        self.modified.deferred_flow = None;
        self.modified.round += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::{FlowIndex, LinkIndex, MaxMin, Usage};
    use super::Scope;
    use crate::Sharing;

    /// Marks eagerly, as SimGrid does.
    #[derive(Default)]
    struct Eager {
        flows: BTreeMap<FlowIndex, Vec<u32>>,
        marked: BTreeSet<u32>,
        missed: Vec<u32>,
        owed: BTreeSet<u32>,
    }

    impl Eager {
        fn mark(&mut self, links: &[u32]) {
            let mut open = links.to_vec();
            while let Some(link) = open.pop() {
                if self.marked.insert(link) {
                    open.extend(self.flows.values().filter(|links| links.contains(&link)).flatten());
                }
            }
        }

        fn begin(&mut self, flow: FlowIndex, links: &[u32]) {
            self.flows.insert(flow, links.to_vec());
            if self.marked.contains(&links[0]) {
                self.missed.extend(links.iter().filter(|link| !self.marked.contains(link)));
            } else {
                self.mark(&links[..1]);
            }
        }

        fn solve(&mut self, sharing: &MaxMin) {
            self.owed.extend(self.missed.drain(..).filter(|&link| !sharing.has_room_at_ceilings(link)));
            self.owed.retain(|link| !self.marked.contains(link));
            self.marked.clear();
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(Vec<u32>, bool),
        Announce(Vec<u32>),
        End(prop::sample::Index),
        Solve,
    }

    const LINKS: u32 = 12;

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let links = || {
            let some = prop::collection::btree_set(0..LINKS, 1..4).prop_map(Vec::from_iter);
            some.prop_shuffle()
        };
        let step = prop_oneof![
            5 => (links(), any::<bool>()).prop_map(|(links, is_bounded)| Step::Begin(links, is_bounded)),
            1 => links().prop_map(Step::Announce),
            3 => any::<prop::sample::Index>().prop_map(Step::End),
            2 => Just(Step::Solve),
        ];
        prop::collection::vec(step, 1..80)
    }

    proptest! {
        /// The skipped links are those that SimGrid does not mark, however lazily flows are followed.
        #[test]
        fn unmarked_links_are_skipped(steps in steps()) {
            let mut sharing = MaxMin::new(Scope::Marked);
            for _ in 0..LINKS {
                sharing.add_link(10.0, Sharing::Shared);
            }
            let mut eager = Eager::default();
            let usages = |links: &[u32]| -> Vec<Usage> {
                links.iter().map(|&link| Usage { link: LinkIndex::new(link), weight: 1.0 }).collect()
            };
            for step in steps {
                match step {
                    Step::Begin(links, is_bounded) => {
                        let bound = if is_bounded { 3.0 } else { f64::INFINITY };
                        let flow = sharing.add_flow(&usages(&links), 1.0, bound);
                        eager.begin(flow, &links);
                    }
                    Step::Announce(links) => {
                        sharing.announce(&usages(&links));
                        eager.mark(&links);
                    }
                    Step::End(flow) if !eager.flows.is_empty() => {
                        let place = flow.index(eager.flows.len());
                        let flow = eager.flows.keys().nth(place).copied();
                        let (flow, links) = flow.and_then(|flow| eager.flows.remove_entry(&flow)).unwrap();
                        sharing.remove_flow(flow);
                        eager.mark(&links);
                    }
                    Step::End(_) => {}
                    Step::Solve => {
                        eager.solve(&sharing);
                        sharing.solve();
                        let owed: BTreeSet<u32> = sharing.modified.skipped.iter().copied().collect();
                        prop_assert_eq!(&owed, &eager.owed);
                    }
                }
            }
        }
    }
}
