//! Changes of resources at boundaries: each counts from the first boundary on that is not before it.

use pdes_core::SimTime;

use super::region::{RegionState, tell_busy};
use super::route::{NetworkContext, RegionRoute};
use super::solver::{Bottleneck, RegionSolver};
use super::unit::{self, UNLIMITED, filling_level};
use crate::{Resource, ResourceChange};

impl<T: Copy> RegionState<T> {
    /// Applies the changes until a boundary, before flows are announced there.
    pub(super) fn apply_changes(&mut self, context: &NetworkContext<'_>, now: SimTime) {
        let due = self.changes.pass(context.platform, &context.changes, now);
        if due.is_empty() {
            return;
        }
        self.change_resources(context, now, &due);
        self.routes.change(context, now);
        for flow in 0..self.transfers.len() as u32 {
            let transfer = &self.transfers[flow as usize];
            if transfer.is_over || !self.routes.route(transfer.route).is_changing {
                continue;
            }
            let terms = self.routes.terms(context, transfer.route, (transfer.key.begin, now));
            self.solver.renew(flow, &terms);
        }
    }

    /// Applies the changes until the boundary before an instant at which something begins: there are some only where nothing was in progress.
    #[inline]
    pub(super) fn catch_up(&mut self, context: &NetworkContext<'_>, at: SimTime) {
        if let Some(next) = self.changes.next() {
            let boundary = self.boundary_before(at);
            if next <= boundary {
                self.apply_changes(context, boundary);
            }
        }
    }

    /// Returns the next boundary at which resources change if it may matter to what is in progress.
    pub(super) fn next_change(&self, context: &NetworkContext<'_>) -> Option<SimTime> {
        let next = self.changes.next()?;
        let has_flows = !self.ends.is_empty()
            || !self.ending.is_empty()
            || !self.short_ends.is_empty()
            || !self.beginning.is_empty();
        // Computations at speed 0 have no end.
        let moves = has_flows || self.cpus.ends().any(|end| end < SimTime::MAX);
        let waits = || self.cpus.ends().next().is_some() && context.changes.any_returns(self.changes.last());
        (moves || waits()).then_some(next)
    }

    /// Sets the capacities and speeds of the links and hosts of the region.
    fn change_resources(&mut self, context: &NetworkContext<'_>, now: SimTime, changes: &[ResourceChange]) {
        for &ResourceChange { resource, value, .. } in changes {
            match resource {
                Resource::Bandwidth(link) => {
                    let member = context.regions.link_slot(link);
                    if member.region == self.id {
                        self.solver.set_capacity(member.slot, unit::capacity(value));
                    }
                }
                Resource::Speed(host) => {
                    let member = context.regions.host_slot(host);
                    if member.region == self.id {
                        let busy = tell_busy(&mut self.hosts, &self.messages_sent);
                        self.cpus.set_speed(now, member.slot, value, busy);
                    }
                }
                Resource::Latency(_) => {}
            }
        }
    }

    /// Applies the changes before the present in a state that is being loaded.
    pub(super) fn restore_changes(&mut self, context: &NetworkContext<'_>) {
        self.change_resources(context, SimTime::ZERO, &self.changes.past(&context.changes));
        self.routes.change(context, self.changes.last());
    }
}

impl RegionSolver {
    /// Sets the capacity of a link from now on.
    fn set_capacity(&mut self, number: u32, capacity: u64) {
        let link = &mut self.links[number as usize];
        link.count_load(self.now, self.epoch);
        let before = std::mem::replace(&mut link.capacity, capacity);
        link.meter.change_capacity(before, capacity, self.epoch);
        link.integrator.iter_mut().for_each(|integrator| integrator.change_capacity(before, capacity));
        if link.is_idle() {
            return;
        }
        let room = before.min(capacity).saturating_add_signed(-link.reserve.max(0));
        let at = filling_level(room, link.shares).min(link.level);
        // There may be a debt at the next boundary.
        if link.load > capacity && !link.is_fat_pipe && !std::mem::replace(&mut link.has_reserve_entry, true)
        {
            self.reserve_links.push(number);
        }
        self.mark(number, at);
    }

    /// Sets the share and the bounds of a flow, as if it were new; it keeps its rate until the next solve.
    fn renew(&mut self, index: u32, &RegionRoute { share, bound, ceiling, .. }: &RegionRoute) {
        let flow = &mut self.flows[index as usize];
        let (rate, level) = (flow.rate, flow.level);
        (flow.share, flow.bound, flow.ceiling, flow.level) = (share, bound, ceiling, ceiling);
        let was = std::mem::replace(&mut flow.bottleneck, Bottleneck::New);
        if was != Bottleneck::New {
            self.new_flows.push(index);
            self.new_alive += 1;
        }
        for place in 0..self.flows[index as usize].uses.len() {
            let used = self.flows[index as usize].uses[place];
            let (load, shares) = (rate * u64::from(used.weight), share * u64::from(used.weight));
            let link = &mut self.links[used.link as usize];
            let before = std::mem::replace(&mut link.members[used.place as usize].shares, shares);
            link.shares = link.shares - before + shares;
            if was == Bottleneck::New || was == Bottleneck::Link(used.link) {
                (link.open_load, link.open_shares) = (link.open_load - load, link.open_shares - before);
            }
            (link.open_load, link.open_shares) = (link.open_load + load, link.open_shares + shares);
            let full = link.level;
            if was != Bottleneck::New && full != UNLIMITED {
                self.mark(used.link, level.min(full));
            }
        }
    }
}
