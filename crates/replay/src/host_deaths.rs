//! Hosts that die during a run.

use std::error::Error;
use std::fmt;

use mpi_model::CheckpointTimes;
use netmodel::{HostId, Platform};
use pdes_core::{SimDuration, SimTime};

/// Hosts that die, and what becomes of programs with ranks there.
///
/// # Laws
/// As of [`PlatformChange`](crate::PlatformChange): equal texts of [`Debug`](fmt::Debug) are equal deaths.
pub trait HostDeaths: fmt::Debug + Send + Sync {
    /// Checks that the deaths fit a platform.
    ///
    /// # Errors
    /// If the platform lacks a host.
    fn check(&self, platform: &Platform) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Returns the deaths in one run on a platform, whose hosts in use are these.
    fn begin(&self, platform: &Platform, in_use: &[HostId]) -> Box<dyn HostDeathsRun>;
}

/// Hosts that die during one run.
///
/// # Laws
/// Answers depend on the arguments, and on which programs have [recovered](Self::recover) before, alone.
pub trait HostDeathsRun: Send {
    /// Returns the first instant from another one on at which one of some hosts dies.
    fn next(&mut self, hosts: &[HostId], from: SimTime) -> Option<SimTime>;

    /// Returns the times of the checkpoints of a program whose ranks run on some hosts; `None` if it writes none.
    fn checkpoints(&self, hosts: &[HostId]) -> Option<CheckpointTimes>;

    /// Returns what becomes of a program whose ranks run on some hosts, of which one dies at an instant.
    fn recover(&mut self, hosts: &[HostId], at: SimTime) -> Recovery;
}

/// What becomes of a program that loses a host.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Name of what fails: the host, or hosts that fail together.
    pub component: String,
    /// Instant at which the program starts again, and the host of each of its ranks; `None` if it does not.
    pub restart: Option<(SimTime, Vec<HostId>)>,
    /// Hosts that take the place of others, each with the name of that one.
    pub replaced: Vec<(String, String)>,
}

/// A death of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramDeath {
    /// Name of what has failed.
    pub component: String,
    /// The start of the program before it.
    pub start: SimTime,
    /// Its instant.
    pub at: SimTime,
    /// Work that is lost: the time since the last checkpoint, or since the program was started; 0 if it waited for that.
    pub lost: SimDuration,
    /// Instant at which the program starts again; `None` if it does not.
    pub restart: Option<SimTime>,
    /// Hosts that take the place of others, each with the name of that one.
    pub replaced: Vec<(String, String)>,
}
