//! Noise of the operating systems of hosts.

use std::fmt::Debug;

use netmodel::HostId;
use pdes_core::{SimDuration, SimTime};

/// Noise of the operating systems of hosts, which makes computations longer.
///
/// # Laws
/// The answer depends on the arguments alone. Equal texts of [`Debug`] are equal noise: processes compare their specifications by
/// them, and checkpoints those of their runs.
pub trait HostNoise: Debug + Send + Sync {
    /// Returns by how much a computation on a host is longer that begins at an instant and takes a time without noise.
    fn delay(&self, host: HostId, begin: SimTime, length: SimDuration) -> SimDuration;
}
