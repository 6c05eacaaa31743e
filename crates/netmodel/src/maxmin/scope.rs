//! Which links a solve takes into account: all that a change reaches, or those that SimGrid's would.
//!
//! SimGrid (lmm/System.cpp of 3.32: `expand`, `enable_var`, `var_free`, `update_modified_set`) solves the links that it
//! has marked since the last solve. To mark a link marks all that the flows on it reach, unless it is marked already. A
//! flow that begins marks its first link only. Where several flows from one host begin at one instant, the first of them
//! marks the link that they share, and the next one finds it marked: the other links of that one may be left out, and
//! the flows there keep their rates until a later change reaches them. Such links are *owed* here.
//!
//! The flows are followed only where a link may be left out: elsewhere both scopes give the same rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MaxMin, Member};

/// Which links a solve takes into account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All that a change reaches: the allocation is max-min fair after every solve.
    #[default]
    Complete,
    /// Those that SimGrid marks: where several flows begin at one instant, links may be overloaded for a while.
    Marked,
}

/// The marks since the last solve.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) scope: Scope,
    /// The number of the next solve.
    round: u64,
    /// The last round in which each link was marked.
    links: Vec<u64>,
    /// The last round in which each flow was followed.
    flows: Vec<u64>,
    /// Links to mark, with all that the flows on them reach.
    roots: Vec<u32>,
    /// Links that are marked, whose flows have not been followed yet.
    open: Vec<u32>,
    /// Links that flows brought with them and that were not marked then.
    missed: Vec<u32>,
    /// Links that have been left out of a solve, and not been solved since.
    pub(super) owed: Vec<u32>,
}

/// How many flows of a link are asked whether they reach a marked one, before the others are followed from there.
const LOOKED_AT: usize = 4;

impl Marks {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, round: 1, ..Self::default() }
    }

    fn is_marked(&self, link: u32) -> bool {
        self.links.get(link as usize) == Some(&self.round)
    }

    /// Marks a link; returns whether it was not marked.
    fn mark(&mut self, link: u32) -> bool {
        let round = self.round;
        std::mem::replace(&mut self.links[link as usize], round) != round
    }

    /// Notes that a flow is followed; returns whether it was not before.
    fn follow(&mut self, flow: u32) -> bool {
        let round = self.round;
        std::mem::replace(&mut self.flows[flow as usize], round) != round
    }
}

impl MaxMin {
    /// Marks these links.
    pub(super) fn mark_links(&mut self, links: impl Iterator<Item = u32>) {
        if self.marks.scope == Scope::Marked {
            self.marks.roots.extend(links);
        }
    }

    /// Marks what a flow marks that begins now, before it is on its links.
    pub(super) fn mark_beginning(&mut self, links: impl Iterator<Item = u32> + Clone) {
        if self.marks.scope == Scope::Complete {
            return;
        }
        self.follow_roots(links.clone(), self.marks.missed.is_empty());
        if links.clone().next().is_some_and(|first| self.marks.is_marked(first)) {
            for link in links {
                if !self.marks.is_marked(link) {
                    self.marks.missed.push(link);
                }
            }
        } else {
            self.marks.roots.extend(links);
        }
    }

    /// Marks the roots and what flows reach from there, until it is known which of these links are marked: in dense traffic
    /// all are, as a few flows show. What is left is followed when it is asked for; a flow that begins meanwhile has only
    /// links that are marked, and one that ends makes all its links roots. It is faster where no flow has begun in this round
    /// that missed a mark.
    fn follow_roots(&mut self, wanted: impl Iterator<Item = u32>, none_missed: bool) {
        let Self { links, flows, marks, .. } = self;
        if marks.roots.is_empty() && marks.open.is_empty() {
            return;
        }
        marks.links.resize(links.len(), 0);
        marks.flows.resize(flows.len(), 0);
        let mut open = std::mem::take(&mut marks.open);
        let mut roots = std::mem::take(&mut marks.roots);
        open.extend(roots.drain(..).filter(|&root| marks.mark(root)));
        marks.roots = roots;
        for wanted in wanted {
            if marks.is_marked(wanted) {
                continue;
            }
            // A flow that reaches a marked link is reached from there, unless that was marked before the flow began.
            let is_reached = |member: &Member| {
                flows[member.flow as usize].uses.iter().any(|used| marks.is_marked(used.link))
            };
            let members = &links[wanted as usize].members;
            if none_missed && members.iter().take(LOOKED_AT).any(is_reached) && marks.mark(wanted) {
                open.push(wanted);
            }
            while !open.is_empty() && !marks.is_marked(wanted) {
                let followed = open.pop().into_iter().flat_map(|link| &links[link as usize].members);
                for member in followed {
                    if marks.follow(member.flow) {
                        let reached = flows[member.flow as usize].uses.iter().map(|reached| reached.link);
                        open.extend(reached.filter(|&link| marks.mark(link)));
                    }
                }
            }
        }
        marks.open = open;
    }

    /// Decides which links the solve leaves out, and which of those left out before it makes good.
    pub(super) fn limit_scope(&mut self) {
        if !self.marks.missed.is_empty() || !self.marks.owed.is_empty() {
            let mut owed = std::mem::take(&mut self.marks.owed);
            let missed = std::mem::take(&mut self.marks.missed);
            self.follow_roots(owed.iter().chain(&missed).copied(), missed.is_empty());
            self.marks.missed = missed;
            for &link in owed.iter().filter(|&&link| self.marks.is_marked(link)) {
                self.disturbed.push(link);
                self.links[link as usize].mark.due_in = self.sweep.number + 1;
            }
            owed.append(&mut self.marks.missed);
            owed.iter().for_each(|&link| self.links[link as usize].mark.left_out = false);
            owed.retain(|&link| {
                let owes = !self.marks.is_marked(link);
                owes && !std::mem::replace(&mut self.links[link as usize].mark.left_out, true)
            });
            self.marks.owed = owed;
        }
        self.forget_marks();
    }

    /// Ends a round.
    pub(super) fn forget_marks(&mut self) {
        self.marks.roots.clear();
        self.marks.open.clear();
        self.marks.round += 1;
    }
}
