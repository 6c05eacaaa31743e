//! The state of the solver between solves, on which later allocations depend to the last bit.

use pdes_core::StateWriter;

use super::{Flow, FlowIndex, MaxMin};

impl MaxMin {
    /// Writes the state after a solve. A flow is written where it is a member of its first link, without its number, which is
    /// reused; `of_flow` writes what the caller knows of it.
    ///
    /// Left out are numbers of sweeps and rounds, which the next solve counts on, and bounds on room and growth, which only save
    /// tests whose outcome is known.
    pub(crate) fn write_state(
        &self,
        state: &mut StateWriter,
        mut of_flow: impl FnMut(FlowIndex, &mut StateWriter),
    ) {
        for (number, link) in (0_u32..).zip(&self.links).filter(|(_, link)| !link.members.is_empty()) {
            state.value(&(number, link.members.len()));
            state.float(link.level);
            for member in link.members.iter().filter(|member| member.place == 0) {
                self.write_flow(member.flow, state);
                of_flow(FlowIndex(member.flow), state);
            }
        }
        state.value(&u32::MAX);
        state.value(&(&self.modified.skipped, &self.modified.unmarked));
        self.filling.write_state(state);
    }

    fn write_flow(&self, index: u32, state: &mut StateWriter) {
        let Flow { penalty, ceiling, bottleneck, bottleneck_place, ref uses, .. } =
            self.flows[index as usize];
        [penalty, ceiling, self.limits[index as usize]].into_iter().for_each(|number| state.float(number));
        // While flows are grouped, links have no lists of the flows that they limit.
        let place = bottleneck.filter(|_| !self.filling.is_grouped).map(|_| bottleneck_place);
        state.value(&(bottleneck, place, uses.len()));
        for used in uses {
            state.value(&(used.link, used.place));
            state.float(used.share);
        }
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
