//! Energy of the hosts and links of a machine ([`Energy`]), [`noise`] of its operating systems, and [`failure`]s.
//!
//! The core does not know this crate: it records the loads of hosts and links ([`RunSpec::host_loads`](replay::RunSpec::host_loads)),
//! and a platform has the power of both ([`netmodel::Power`]), which a configuration may set ([`PowerByName`]);
//! it asks a [`HostNoise`](replay::HostNoise) by how much computations become longer.
#![forbid(unsafe_code)]

mod carbon;
mod checkpoint_restart;
mod energy;
mod energy_section;
mod energy_shares;
pub mod failure;
pub mod noise;
mod power_by_name;
mod power_counters;
mod time_distribution;

pub use carbon::CarbonIntensity;
pub use checkpoint_restart::{CheckpointRestart, Ensemble, RestartError, RestartedRun};
pub use energy::Energy;
pub use energy_section::{CarbonEntry, EnergyPart, EnergySection, EnergySectionError};
pub use energy_shares::EnergyShares;
pub use power_by_name::{MessageEnergy, PowerByName, PowerError};
pub use time_distribution::TimeDistribution;
