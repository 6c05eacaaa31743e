//! Components: links and flows that share nothing with others, moved from one solver to another.

use rustc_hash::FxHashMap;

use super::repair::SweepState;
use super::{Flow, FlowIndex, Link, LinkIndex, MaxMin, Member, Use};

/// A connected component of links and flows of a [`MaxMin`].
#[derive(Debug, Default)]
pub(crate) struct Component {
    pub(crate) links: Vec<LinkIndex>,
    pub(crate) flows: Vec<FlowIndex>,
}

/// New indices of the links and the flows of a component.
#[derive(Debug, Default)]
pub(crate) struct Relocation {
    pub(crate) links: FxHashMap<LinkIndex, LinkIndex>,
    pub(crate) flows: FxHashMap<FlowIndex, FlowIndex>,
}

impl Relocation {
    fn link(&self, link: u32) -> u32 {
        self.links[&LinkIndex(link)].0
    }

    fn flow(&self, flow: u32) -> u32 {
        self.flows[&FlowIndex(flow)].0
    }
}

impl MaxMin {
    /// Returns the number of a link.
    pub(crate) fn number(&self, link: LinkIndex) -> u32 {
        self.links[link.index()].number
    }

    /// Returns the number of flows.
    pub(crate) fn flow_count(&self) -> usize {
        self.flows.len() - self.free_slots.len()
    }

    /// Returns the component of a link that is in use: its flows, the links of these, and so on.
    pub(crate) fn component(&self, link: LinkIndex) -> Component {
        let mut relocation = Relocation::default();
        let mut component = Component { links: vec![link], flows: Vec::new() };
        relocation.links.insert(link, link);
        let mut next = 0;
        while let Some(&link) = component.links.get(next) {
            next += 1;
            for member in &self.links[link.index()].members {
                let flow = FlowIndex(member.flow);
                if relocation.flows.insert(flow, flow).is_some() {
                    continue;
                }
                component.flows.push(flow);
                for used in &self.flows[flow.index()].uses {
                    let link = LinkIndex(used.link);
                    if relocation.links.insert(link, link).is_none() {
                        component.links.push(link);
                    }
                }
            }
        }
        component
    }

    /// Moves a component to another solver, which has its links at the indices of `relocation`, without flows; adds the new indices
    /// of flows. Both have been solved, and neither groups flows. What happens to the component does not change by the move.
    pub(crate) fn move_component(
        &mut self,
        component: &Component,
        to: &mut Self,
        relocation: &mut Relocation,
    ) {
        debug_assert!(!self.needs_solve() && !self.filling.is_grouped && !to.filling.is_grouped);
        for &flow in &component.flows {
            let Flow { penalty, ceiling, .. } = self.flows[flow.index()];
            let moved = to.place_for_flow(penalty, ceiling);
            relocation.flows.insert(flow, FlowIndex(moved));
        }
        for &flow in &component.flows {
            let moved = relocation.flow(flow.0) as usize;
            to.limits[moved] = self.limits[flow.index()];
            let (from, to) = (&mut self.flows[flow.index()], &mut to.flows[moved]);
            to.bottleneck = from.bottleneck.take().map(|link| relocation.link(link));
            to.bottleneck_place = from.bottleneck_place;
            let uses = from.uses.drain(..);
            to.uses.extend(uses.map(|used| Use { link: relocation.link(used.link), ..used }));
            self.free_slots.push(flow.0);
        }
        for &link in &component.links {
            let to = &mut to.links[relocation.link(link.0) as usize];
            let Link { members, bottlenecked, level, sweep_state, .. } = &mut self.links[link.index()];
            debug_assert!(
                to.members.is_empty() && to.bottlenecked.is_empty(),
                "the link is not in use there"
            );
            to.level = std::mem::replace(level, f64::INFINITY);
            to.members.extend(
                members.drain(..).map(|member| Member { flow: relocation.flow(member.flow), ..member }),
            );
            to.bottlenecked.extend(bottlenecked.drain(..).map(|flow| relocation.flow(flow)));
            // Numbers of sweeps and steps are those of the solver.
            (to.sweep_state, *sweep_state) = (SweepState::default(), SweepState::default());
        }
    }
}
