//! State of regions between two epochs, and of all of them between two events, for checkpoints.

use pdes_core::SimTime;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::EpochNetwork;
use super::parallel::{EpochRegion, PendingRequest};
use super::region::{Region, Transfer};
use super::route::{NetworkContext, RouteCache};
use super::solver::{Link, RegionSolver};
use crate::flow::event_queue::EventQueue;
use crate::network_model::read_state;
use crate::{ForeignState, HostId};

impl<T: Copy> Region<T> {
    /// Encodes the state. Routes are saved by their ends, in the order of their numbers.
    fn to_bytes(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        let Self { solver, transfers, short_ends, ends, ending, prepared, events, event_store, cpus, .. } =
            self;
        let flows = (self.routes.all_ends(), solver, transfers, short_ends, ends, ending);
        let scheduled = (prepared, events, event_store, cpus, &self.unannounced, &self.messages_sent);
        let cross_region = (&self.cross_region_flows, &self.cross_region_states);
        let of_boundary = (&self.arrivals, &self.to_advertise, &self.beginning, self.events_before);
        let state = (flows, scheduled, cross_region, of_boundary);
        postcard::to_stdvec(&state).expect("the state is encoded in memory")
    }

    /// Restores a state into an idle region.
    fn restore_bytes(&mut self, context: &NetworkContext<'_>, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        let (flows, scheduled, cross_region, of_boundary) = read_state(state)?;
        let ends: Vec<(HostId, HostId)>;
        let solver: RegionSolver;
        let messages_sent: Vec<u32>;
        (ends, solver, self.transfers, self.short_ends, self.ends, self.ending) = flows;
        (self.prepared, self.events, self.event_store, self.cpus, self.unannounced, messages_sent) =
            scheduled;
        (self.cross_region_flows, self.cross_region_states) = cross_region;
        (self.arrivals, self.to_advertise, self.beginning, self.events_before) = of_boundary;
        self.routes = RouteCache::default();
        for (number, &(src, dst)) in ends.iter().enumerate() {
            let hosts = context.platform.hosts().len();
            let is_known = src.index() < hosts && dst.index() < hosts;
            let route = is_known.then(|| self.routes.find(context, self.id, src, dst).ok()).flatten();
            if route != Some(number as u32) {
                return Err(ForeignState);
            }
        }
        let fits = solver.is_of(&self.solver)
            && messages_sent.len() == self.messages_sent.len()
            && self.transfers.len() == solver.flows.len()
            && self.transfers.iter().all(|&Transfer { route, .. }| (route as usize) < ends.len());
        (self.solver, self.messages_sent) = (solver, messages_sent);
        if fits { Ok(()) } else { Err(ForeignState) }
    }
}

impl<T: Copy> EpochNetwork<'_, T> {
    /// Encodes the state between two events.
    pub(super) fn to_bytes(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        let Self { timers, next_events, now, stale, counts, .. } = self;
        let regions: Vec<Vec<u8>> = self.regions.iter().map(Region::to_bytes).collect();
        let stale_regions: Vec<bool> = self.regions.iter().map(|region| region.is_stale).collect();
        let state = (regions, stale_regions, timers, next_events, now, stale, counts);
        postcard::to_stdvec(&state).expect("the state is encoded in memory")
    }

    /// Restores a state into an idle network.
    pub(super) fn restore_bytes(&mut self, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        let (regions, stale_regions, timers, next_events, now, stale, counts) = read_state(state)?;
        let (regions, stale_regions): (Vec<Vec<u8>>, Vec<bool>) = (regions, stale_regions);
        let stale: Vec<u32> = stale;
        let count = self.regions.len();
        let fits = regions.len() == count
            && stale_regions.len() == count
            && stale.iter().all(|&region| (region as usize) < count);
        if !fits {
            return Err(ForeignState);
        }
        for ((region, state), is_stale) in self.regions.iter_mut().zip(&regions).zip(stale_regions) {
            region.restore_bytes(&self.context, state)?;
            region.is_stale = is_stale;
        }
        (self.timers, self.next_events, self.now) = (timers, next_events, now);
        (self.stale, self.counts) = (stale, counts);
        Ok(())
    }
}

impl RegionSolver {
    /// Returns whether a solver has the links of another one, and flows over these only.
    fn is_of(&self, other: &Self) -> bool {
        let is_same = |(link, other): (&Link, &Link)| {
            (link.capacity, link.is_fat_pipe) == (other.capacity, other.is_fat_pipe)
                && link.integrator.is_some() == other.integrator.is_some()
                && link.members.iter().all(|member| (member.flow as usize) < self.flows.len())
        };
        let uses_links =
            |flow: &super::solver::Flow| flow.uses.iter().all(|used| (used.link as usize) < self.links.len());
        self.epoch == other.epoch
            && self.links.len() == other.links.len()
            && self.links.iter().zip(&other.links).all(is_same)
            && self.flows.iter().all(uses_links)
    }
}

impl<T: Copy> EpochRegion<'_, '_, T> {
    pub(super) fn to_bytes(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        let Self { requests, first_request, timers, now, done, solves, .. } = self;
        let state = (self.region.to_bytes(), requests, first_request, timers, now, done, solves);
        postcard::to_stdvec(&state).expect("the state is encoded in memory")
    }

    pub(super) fn restore_bytes(&mut self, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        type State<T> =
            (Vec<u8>, Vec<PendingRequest<T>>, Option<SimTime>, EventQueue<T>, SimTime, Vec<T>, u64);
        let (region, requests, first_request, timers, now, done, solves): State<T> = read_state(state)?;
        self.region.restore_bytes(&self.machine.context, &region)?;
        (self.requests, self.first_request, self.timers) = (requests, first_request, timers);
        (self.now, self.done, self.solves, self.upcoming) = (now, done, solves, None);
        Ok(())
    }
}
