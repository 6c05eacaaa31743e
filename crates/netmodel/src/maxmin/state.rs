//! The state of the solver between solves, on which later allocations depend to the last bit.

use pdes_core::{State, StateVisitor};

use super::{Flow, FlowIndex, Link, MaxMin};

/// Visited after a solve, without the numbers of flows, which are reused: a flow is compared where it is a member of its first link.
///
/// Not compared are numbers of sweeps and rounds, which the next solve counts on, and bounds on room and growth, which only save
/// tests whose outcome is known.
impl State for MaxMin {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.context(self.links.len());
        if visitor.saves_whole(self) {
            return;
        }
        let Self {
            links,
            flows,
            limits,
            free_slots: _,
            new_flows: _,
            dirty_links: _,
            sweep: _,
            filling,
            modified,
            solves: _,
        } = self;
        for (index, link) in (0_u32..).zip(links).filter(|(_, link)| !link.members.is_empty()) {
            let Link { number: _, capacity: _, sharing: _, level, members, bottlenecked: _, sweep_state: _ } =
                link;
            visitor.compare(&(index, members.len(), *level));
            for member in members.iter().filter(|member| member.place == 0) {
                let flow = member.flow as usize;
                let Flow {
                    penalty,
                    ceiling,
                    bottleneck,
                    bottleneck_place,
                    moved_sweep: _,
                    frozen_sweep: _,
                    uses,
                } = &flows[flow];
                // While flows are grouped, links have no lists of the flows that they limit.
                let place = bottleneck.filter(|_| !filling.is_grouped).map(|_| bottleneck_place);
                visitor.compare(&(penalty, ceiling, limits[flow], bottleneck, place, uses));
            }
        }
        visitor.compare(&(u32::MAX, &modified.skipped, &modified.unmarked));
        filling.visit(visitor);
    }
}

impl MaxMin {
    /// Returns the flows in the order in which they are compared.
    pub(crate) fn flows_in_order(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        let members = self.links.iter().flat_map(|link| &link.members);
        members.filter(|member| member.place == 0).map(|member| FlowIndex(member.flow))
    }
}

/// Changes, to test that each shows in the state; they return false where there is nothing to change.
#[cfg(test)]
impl MaxMin {
    pub(crate) fn change_a_level(&mut self) -> bool {
        let link = self.links.iter_mut().find(|link| !link.members.is_empty() && link.level.is_finite());
        link.map(|link| link.level = link.level.next_up()).is_some()
    }

    pub(crate) fn change_a_limit(&mut self) -> bool {
        let flow = self.active_flows().last().copied();
        let limit = flow.map(|flow| &mut self.limits[flow as usize]).filter(|limit| limit.is_finite());
        limit.map(|limit| *limit = limit.next_up()).is_some()
    }

    /// Swaps two flows of a link, in the order in which they are summed up.
    pub(crate) fn change_the_order_of_members(&mut self) -> bool {
        let Some(link) = self.links.iter_mut().find(|link| link.members.len() > 1) else { return false };
        link.members.swap(0, 1);
        for (place, member) in (0..).zip(&link.members) {
            self.flows[member.flow as usize].uses[member.place as usize].place = place;
        }
        true
    }

    pub(crate) fn change_patience(&mut self) -> bool {
        self.filling.change_patience();
        true
    }
}
