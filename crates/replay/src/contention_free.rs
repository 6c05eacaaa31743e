//! The machine without contention that the MPI model uses: a platform, a network model, and the placement of ranks.

use std::convert::Infallible;
use std::ops::Range;

use mpi_model::{
    Accelerator, ComputationNoise, DeviceHistory, FileAccess, FilePlace, Machine, UncontendedTransfer,
};
use netmodel::{AccessHistory, ContentionFree, HostId, Platform, Resource, RouteError, UncontendedRoute};
use pdes_core::{Bytes, Rank, SimDuration, SimTime};

use crate::Placement;
use crate::noise::HostNoise;
use crate::offload::Accelerators;
use crate::storage::{addressed, find_file};

/// A platform with placed ranks, without contention.
#[derive(Debug)]
pub struct ContentionFreeMachine<'a> {
    platform: &'a Platform,
    placement: &'a Placement,
    model: ContentionFree,
    noise: Option<&'a dyn HostNoise>,
    accelerators: Option<&'a Accelerators>,
}

impl<'a> ContentionFreeMachine<'a> {
    /// Creates the machine of ranks placed on a platform.
    pub fn new(platform: &'a Platform, placement: &'a Placement, model: ContentionFree) -> Self {
        Self { platform, placement, model, noise: None, accelerators: None }
    }

    /// Adds noise to the computations of ranks.
    pub fn with_noise(self, noise: Option<&'a dyn HostNoise>) -> Self {
        Self { noise, ..self }
    }

    /// Adds accelerators that compute for ranks.
    pub(crate) fn with_accelerators(self, accelerators: Option<&'a Accelerators>) -> Self {
        Self { accelerators, ..self }
    }
}

impl Machine for ContentionFreeMachine<'_> {
    type Route = UncontendedRoute;
    type WorkRequest = Infallible;
    type Error = RouteError;

    fn route(&self, from: Rank, to: Rank) -> Result<UncontendedRoute, RouteError> {
        self.model.route(self.platform, self.placement.host(from), self.placement.host(to))
    }

    #[inline]
    fn transfer(&self, route: UncontendedRoute, bytes: Bytes, begin: SimTime) -> Option<SimDuration> {
        self.model.transfer(self.platform, route, bytes, begin)
    }

    fn uncontended(&self, route: UncontendedRoute, bytes: Bytes, begin: SimTime) -> UncontendedTransfer {
        UncontendedTransfer::new(
            self.transfer(route, bytes, begin),
            self.model.latency_at(self.platform, route, bytes, begin),
        )
    }

    fn next_change(&self, after: SimTime) -> Option<SimTime> {
        self.platform.changes().next_instant(after)
    }

    fn find_file(&self, rank: Rank, file: &str) -> Result<Option<FilePlace<UncontendedRoute>>, RouteError> {
        let host = self.placement.host(rank);
        find_file(self.platform, host, file, |from, to| self.model.route(self.platform, from, to))
    }

    fn access_time(
        &self,
        access: &FileAccess,
        begin: SimTime,
        DeviceHistory { last, cache_empty_at }: &mut DeviceHistory,
    ) -> Option<SimDuration> {
        let (device, access) = addressed(access);
        let mut history = AccessHistory { last: *last, cache_empty_at: *cache_empty_at };
        let duration = self.platform.storage().duration_after(device, &mut history, begin, &access);
        (*last, *cache_empty_at) = (history.last, history.cache_empty_at);
        duration
    }

    fn has_file_positions(&self) -> bool {
        // Each rank has its devices for itself, with their arms.
        self.platform.storage().has_positions()
    }

    fn speed(&self, rank: Rank, at: SimTime) -> f64 {
        self.platform.speed(self.placement.host(rank), at)
    }

    fn has_changing_speed(&self, rank: Rank) -> bool {
        self.platform.changes().includes(Resource::Speed(self.placement.host(rank)))
    }

    fn compute_time(&self, rank: Rank, flops: f64, begin: SimTime) -> Option<SimDuration> {
        self.platform.compute_time(self.placement.host(rank), flops, begin)
    }

    fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    fn noise(
        &self,
        rank: Rank,
        begin: SimTime,
        length: SimDuration,
        known: &Range<SimTime>,
    ) -> ComputationNoise {
        let noise = self.noise.expect("there is noise");
        noise.in_computation(self.placement.host(rank), begin, length, known)
    }

    fn has_accelerators(&self) -> bool {
        self.accelerators.is_some()
    }

    fn accelerator(&self, rank: Rank, region: &str) -> Option<Accelerator<UncontendedRoute>> {
        self.accelerators?.find((self.platform, self.placement), rank, region, |src, dst| {
            self.model.route(self.platform, src, dst)
        })
    }

    fn accelerator_time(
        &self,
        accelerator: &Accelerator<UncontendedRoute>,
        flops: f64,
        begin: SimTime,
    ) -> Option<SimDuration> {
        self.platform.compute_time(HostId::new(accelerator.host), flops, begin)
    }

    fn memory_bandwidth(&self, rank: Rank) -> f64 {
        self.placement.memory_bandwidth(self.platform, rank)
    }

    fn node(&self, rank: Rank) -> u32 {
        self.placement.host(rank).get()
    }
}
