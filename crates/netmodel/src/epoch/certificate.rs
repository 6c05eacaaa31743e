//! Verification that the rates at a boundary are max-min fair.

use thiserror::Error;

use super::EpochNetwork;
use super::solver::{Bottleneck, Flow, Link, RegionSolver};
use super::unit::UNLIMITED;
use crate::region::RegionId;

/// Violation of max-min fairness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EpochViolation {
    /// A link is overloaded by more than a unit of load for each flow.
    #[error("link {link} of region {region} carries {load} of {capacity}")]
    Overload {
        /// The region.
        region: u32,
        /// The number of the link in the region.
        link: u32,
        /// Load, in 1/20 of 2^-40 B/ps.
        load: u64,
        /// Capacity.
        capacity: u64,
    },
    /// A flow has no bottleneck: it is below its own limit, and each of its links has room or a flow of a higher
    /// level.
    #[error("flow {flow} of region {region} has level {level} and no bottleneck")]
    Starved {
        /// The region.
        region: u32,
        /// The number of the flow in the region.
        flow: u32,
        /// Its level.
        level: u64,
    },
    /// Two regions have different rates for a common flow.
    #[error("a flow has the rate {rate} in region {region} and another one elsewhere")]
    Disagreement {
        /// The region.
        region: u32,
        /// The rate there.
        rate: u64,
    },
}

impl<T: Copy> EpochNetwork<'_, T> {
    /// Checks the rates of the last boundary by the definition of max-min fairness (Bertsekas and Gallager, "Data
    /// Networks", 6.5.2), up to two units of rate for each flow of a link. Must be called before anything begins or
    /// ends. Costs the number of usages of all flows.
    ///
    /// # Errors
    /// The first violation.
    pub(super) fn check(&self) -> Result<(), EpochViolation> {
        for (region, state) in (0..).zip(&self.regions) {
            for (link, found) in (0..).zip(&state.solver.links) {
                let &Link { load, capacity, weights, is_fat_pipe, .. } = found;
                let ending = state.solver.ending_load(found);
                if !is_fat_pipe && load > found.room().max(ending) + weights {
                    return Err(EpochViolation::Overload { region, link, load, capacity });
                }
            }
        }
        for (region, state) in (0..).zip(&self.regions) {
            let flows = (0..).zip(&state.solver.flows);
            // Flows that have not begun have no uses, nor have flows that only end in this region.
            for (number, flow) in flows.filter(|(_, flow)| flow.is_alive && !flow.uses.is_empty()) {
                self.check_flow(region, number, flow)?;
            }
        }
        Ok(())
    }

    fn check_flow(&self, region: u32, number: u32, flow: &Flow) -> Result<(), EpochViolation> {
        let Flow { level, rate, .. } = *flow;
        let transfer = &self.regions[region as usize].transfers[number as usize];
        let cross_region_states = &self.regions[region as usize].cross_region_states;
        let state = transfer.is_cross_region.then(|| &cross_region_states[number as usize]);
        let others = state.into_iter().flat_map(|state| &state.adverts);
        let mut is_ending = flow.bottleneck == Bottleneck::Ending;
        let mut has_bottleneck = level >= flow.ceiling || self.has_bottleneck(region, flow);
        for &(other, _) in others {
            let copy = self.copy_of(other, transfer.key);
            if copy.rate != rate {
                return Err(EpochViolation::Disagreement { region, rate });
            }
            has_bottleneck |= self.has_bottleneck(other.get(), copy);
            // A region without part in this boundary has not recorded that the flow ends.
            is_ending |= copy.bottleneck == Bottleneck::Ending;
        }
        if !is_ending && (flow.bottleneck == Bottleneck::New || !has_bottleneck) {
            return Err(EpochViolation::Starved { region, flow: number, level });
        }
        Ok(())
    }

    fn copy_of(&self, region: RegionId, key: super::message::FlowKey) -> &Flow {
        let region = &self.regions[region.index()];
        &region.solver.flows[region.cross_region_flows[&key] as usize]
    }

    /// Returns whether a flow has its bottleneck in a region.
    fn has_bottleneck(&self, region: u32, flow: &Flow) -> bool {
        let solver = &self.regions[region as usize].solver;
        flow.uses.iter().any(|used| {
            let link = &solver.links[used.link as usize];
            let members = || link.members.iter().map(|member| &solver.flows[member.flow as usize]);
            let is_full = link.is_fat_pipe || link.load + 2 * link.weights >= link.room();
            let is_highest =
                |other: &Flow| other.bottleneck == Bottleneck::Ending || other.level <= flow.level;
            link.level != UNLIMITED && is_full && members().all(is_highest)
        })
    }
}

impl RegionSolver {
    /// Returns the load on a link of flows that keep their rates because they end in the epoch.
    fn ending_load(&self, link: &Link) -> u64 {
        let load = |member: &super::solver::Member| {
            let flow = &self.flows[member.flow as usize];
            if flow.bottleneck == Bottleneck::Ending { flow.rate * u64::from(member.weight) } else { 0 }
        };
        link.members.iter().map(load).sum()
    }
}
