//! Engines, clusters and their laws, under all schedules.

mod checkpoints;
mod cluster;
mod conditional;
mod determinism;
mod endings;
mod interrupts;
#[cfg(feature = "mpi")]
mod mpi;
mod network {
    pub(crate) mod catalogue;
    pub(crate) mod schedule;
    pub(crate) mod station;
}
mod ordered;
mod regional;
mod run_ahead;
mod token_bus;
