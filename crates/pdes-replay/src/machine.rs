//! The machine without contention that the MPI model uses: a platform, a network model, and the placement of ranks.

use std::convert::Infallible;

use mpi_model::{Machine, Passage};
use netmodel::{LogGps, PathCost, Platform, RouteError};
use pdes_core::{Bytes, Rank, SimDuration};

use crate::Placement;

/// A platform with placed ranks, without contention.
#[derive(Debug)]
pub struct PlacedMachine<'a> {
    platform: &'a Platform,
    placement: &'a Placement,
    model: LogGps,
}

impl<'a> PlacedMachine<'a> {
    /// Creates the machine of ranks placed on a platform.
    pub fn new(platform: &'a Platform, placement: &'a Placement, model: LogGps) -> Self {
        Self { platform, placement, model }
    }
}

impl Machine for PlacedMachine<'_> {
    type Path = PathCost;
    type Order = Infallible;
    type Error = RouteError;

    fn path(&self, from: Rank, to: Rank) -> Result<PathCost, RouteError> {
        self.model.path(self.platform, self.placement.host(from), self.placement.host(to))
    }

    #[inline]
    fn transfer(&self, path: PathCost, bytes: Bytes) -> Option<SimDuration> {
        self.model.try_duration(path, bytes)
    }

    fn alone(&self, path: PathCost, bytes: Bytes) -> Passage {
        Passage::new(self.transfer(path, bytes), self.model.latency(path, bytes))
    }

    fn speed(&self, rank: Rank) -> f64 {
        self.platform.host(self.placement.host(rank)).speed
    }

    fn node(&self, rank: Rank) -> u32 {
        self.placement.host(rank).get()
    }
}
