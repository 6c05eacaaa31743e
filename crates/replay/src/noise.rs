//! Noise of the operating systems of hosts.

use std::fmt::Debug;
use std::ops::Range;

use mpi_model::ComputationNoise;
use netmodel::HostId;
use pdes_core::{SimDuration, SimTime};

/// Noise of the operating systems of hosts, which makes computations longer.
///
/// # Laws
/// The answer depends on the arguments alone, the delay not on what is known. Equal texts of [`Debug`] are equal noise: processes compare their specifications by
/// them, and checkpoints those of their runs.
pub trait HostNoise: Debug + Send + Sync {
    /// Returns the noise in a computation on a host that begins at an instant and takes a time without noise, which is not zero. The host
    /// is quiet in the time that is `known` of an earlier answer, which may save this one work.
    fn in_computation(
        &self,
        host: HostId,
        begin: SimTime,
        length: SimDuration,
        known: &Range<SimTime>,
    ) -> ComputationNoise;

    /// Returns by how much such a computation is longer; one that takes no time is not.
    fn delay(&self, host: HostId, begin: SimTime, length: SimDuration) -> SimDuration {
        match length {
            SimDuration::ZERO => SimDuration::ZERO,
            _ => self.in_computation(host, begin, length, &(SimTime::ZERO..SimTime::ZERO)).delay,
        }
    }
}
