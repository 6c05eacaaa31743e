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
    /// Last round in which each flow began with some links marked and some not, and the positions of the latter in `unmarked`.
    late: Vec<LateFlow>,
    /// Links that were left out of a solve and not solved since.
    pub(super) skipped: Vec<u32>,
    #[serde(skip)]
    search: BackwardSearch,
}

/// A flow that began when some of its links were marked: it is followed from the others only, once they are marked.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct LateFlow {
    round: u64,
    unmarked: (u32, u32),
}

/// Search for a marked link from one that is not, against the direction in which flows are followed; buffers.
#[derive(Debug, Default)]
struct BackwardSearch {
    /// Number of the search.
    number: u64,
    /// Last search that found each link and each flow.
    links: Vec<u64>,
    flows: Vec<u64>,
    /// Links found, of which those before `next` are done.
    found: Vec<u32>,
    next: usize,
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

    /// Returns whether a flow is followed from a link of it, once this is marked: not if it was marked before the flow began.
    fn is_followed_from(&self, flow: u32, link: u32) -> bool {
        match self.late.get(flow as usize) {
            Some(&LateFlow { round, unmarked: (begin, end) }) if round == self.round => {
                self.unmarked[begin as usize..end as usize].contains(&link)
            }
            _ => true,
        }
    }
}

impl BackwardSearch {
    fn begin(&mut self, wanted: u32, links: usize, flows: usize) {
        self.number += 1;
        self.links.resize(links, 0);
        self.flows.resize(flows, 0);
        self.links[wanted as usize] = self.number;
        self.found.clear();
        self.found.push(wanted);
        self.next = 0;
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
        // Another flow may have had this number in this round.
        if let Some(followed) = self.modified.flows.get_mut(flow as usize) {
            *followed = 0;
        }
        if let Some(late) = self.modified.late.get_mut(flow as usize) {
            late.round = 0;
        }
        self.follow_roots(links.clone());
        if !links.clone().next().is_some_and(|first| self.modified.is_marked(first)) {
            self.modified.roots.extend(links);
            return;
        }
        let known = self.modified.unmarked.len() as u32;
        for link in links {
            if !self.modified.is_marked(link) {
                self.modified.unmarked.push(link);
            }
        }
        let unmarked = (known, self.modified.unmarked.len() as u32);
        if unmarked.0 < unmarked.1 {
            self.modified.late.resize(self.flows.len(), LateFlow::default());
            self.modified.late[flow as usize] = LateFlow { round: self.modified.round, unmarked };
        }
    }

    /// Follows the flows of one open link; returns whether there was one.
    fn follow_one(&mut self) -> bool {
        let Self { links, flows, modified, .. } = self;
        let Some(link) = modified.open.pop() else { return false };
        for member in &links[link as usize].members {
            if modified.is_followed_from(member.flow, link) && modified.follow(member.flow) {
                for reached in &flows[member.flow as usize].uses {
                    if modified.mark(reached.link) {
                        modified.open.push(reached.link);
                    }
                }
            }
        }
        true
    }

    /// Marks the roots and the links that flows reach from there, until it is known which of the `wanted` links are
    /// marked: in dense traffic all are, which a few flows show, and a link without flows is not reached. The
    /// remaining links are followed on demand: a flow that begins meanwhile has marked links only, or is
    /// [late](ModifiedSet::late), and one that ends makes all its links roots.
    fn follow_roots(&mut self, wanted: impl Iterator<Item = u32>) {
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
            let Self { links, flows, modified, .. } = self;
            let members = &links[wanted as usize].members;
            if modified.is_marked(wanted) || members.is_empty() {
                continue;
            }
            let is_reached = |member: &Member| {
                let mut uses = flows[member.flow as usize].uses.iter();
                uses.any(|used| {
                    modified.is_marked(used.link) && modified.is_followed_from(member.flow, used.link)
                })
            };
            if members.iter().take(PROBED_FLOWS).any(is_reached) {
                modified.mark(wanted);
                modified.open.push(wanted);
                continue;
            }
            self.follow_until_known(wanted);
        }
    }

    /// Follows flows until it is known whether a link is marked. It is searched from both ends: in dense traffic these meet soon, and
    /// a part of the network without marked links is mostly small.
    fn follow_until_known(&mut self, wanted: u32) {
        self.modified.search.begin(wanted, self.links.len(), self.flows.len());
        while self.follow_one() && !self.modified.is_marked(wanted) {
            match self.search_backward() {
                Some(true) => {
                    self.modified.mark(wanted);
                    self.modified.open.push(wanted);
                    return;
                }
                Some(false) => {}
                None => return,
            }
        }
    }

    /// Searches a marked link from which the next of the links found so far is reached; returns whether there is one, `None` if
    /// no link is left.
    fn search_backward(&mut self) -> Option<bool> {
        let Self { links, flows, modified, .. } = self;
        let link = *modified.search.found.get(modified.search.next)?;
        modified.search.next += 1;
        for &Member { flow, .. } in &links[link as usize].members {
            if std::mem::replace(&mut modified.search.flows[flow as usize], modified.search.number)
                == modified.search.number
            {
                continue;
            }
            for used in &flows[flow as usize].uses {
                if !modified.is_followed_from(flow, used.link) {
                    continue;
                }
                if modified.is_marked(used.link) {
                    return Some(true);
                }
                let known = &mut modified.search.links[used.link as usize];
                if std::mem::replace(known, modified.search.number) != modified.search.number {
                    modified.search.found.push(used.link);
                }
            }
        }
        Some(false)
    }

    /// Selects the links that the solve skips, and the formerly skipped links that it solves now.
    pub(super) fn limit_scope(&mut self) {
        let unmarked = self.modified.unmarked.iter().copied();
        let mut missed: Vec<u32> = unmarked.filter(|&link| !self.has_room_at_ceilings(link)).collect();
        if !missed.is_empty() || !self.modified.skipped.is_empty() {
            let mut owed = std::mem::take(&mut self.modified.skipped);
            self.follow_roots(owed.iter().chain(&missed).copied());
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
        self.modified.unmarked.clear();
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
