//! What operations of switches need of a platform.

use mpi_model::collective::{Selection, SelectionError};
use netmodel::{HostId, Layout, NetworkShape, Platform};
use pdes_core::Rank;
use thiserror::Error;

use super::RunError;
use crate::programs::{Program, Programs};
use crate::spec::RunSpec;

/// Checks that the switches of the platform form a tree, if they carry out operations.
pub(super) fn check_switch_tree(selection: &Selection, platform: &Platform) -> Result<(), RunError> {
    let Some(operation) = selection.needs_switch_tree() else { return Ok(()) };
    match Layout::of(platform).map(|layout| layout.shape) {
        Some(NetworkShape::Star { .. } | NetworkShape::FatTree { .. }) => Ok(()),
        Some(NetworkShape::Switches(shape)) if shape.has_levels() => Ok(()),
        _ => Err(SelectionError::NoSwitchTree { operation }.into()),
    }
}

/// The communicators whose operations switches carry out.
#[derive(Debug, Default)]
pub(crate) struct SwitchCommunicators {
    /// Number of the world of each program, on which those of its other communicators count; `None` if it has no such operations.
    pub(super) worlds: Vec<Option<u32>>,
    /// Hosts of each communicator on several hosts, with its number.
    pub(super) hosts: Vec<(u32, Vec<HostId>)>,
}

/// The reason why switches cannot carry out operations of a program.
#[derive(Debug, Error)]
enum SwitchError {
    #[error(
        "\"in_network\" for {0}: switches have to know the hosts of all communicators before a run, and {1}: choose an algorithm of the ranks, \
         or another network.model"
    )]
    Unknown(&'static str, &'static str),
    #[error(
        "\"in_network\": communicators have numbers up to {0}, expected below 2^31 for all programs together"
    )]
    ManyNumbers(u64),
}

impl SwitchCommunicators {
    /// Finds the communicators of programs that have operations of switches. Reads the tables of all their ranks.
    ///
    /// # Errors
    /// If communicators, or the hosts of ranks, are only known during the run.
    pub(super) fn find(spec: &RunSpec, programs: &Programs) -> Result<Self, RunError> {
        let have_switches = spec.model.network.is_some_and(|network| network.capabilities.switch_operations);
        let mut found = Self::default();
        let mut first = 0;
        for program in programs.iter() {
            let operation = program.spec.mpi.collectives.needs_switch_tree().filter(|_| have_switches);
            found.worlds.push(operation.map(|_| first));
            let Some(operation) = operation else { continue };
            let unknown = [
                (program.trace.grows(), "a program that runs in place of a trace makes them as it goes"),
                (programs.are_launched(), "a job that starts later gets its hosts then"),
            ];
            if let Some((_, why)) = unknown.into_iter().find(|(is_so, _)| *is_so) {
                return Err(network_error(SwitchError::Unknown(operation.name(), why)));
            }
            first = found.add(program, first)?;
        }
        Ok(found)
    }

    /// Adds the communicators of a program, whose numbers begin with `first`; returns the number after the last one.
    fn add(&mut self, program: &Program, first: u32) -> Result<u32, RunError> {
        let mut last = 0;
        for rank in (0..program.trace.ranks()).map(Rank::new) {
            let led = program.trace.with_rank(rank, |rank| {
                let led = rank.communicators().iter().filter(|communicator| communicator.rank == 0);
                led.cloned().collect::<Vec<_>>()
            });
            for communicator in led.map_err(trace_mmap::TraceError::from)? {
                last = last.max(communicator.id.get());
                let hosts = communicator.group.members().map(|member| program.placement.host(member));
                let mut hosts: Vec<HostId> = hosts.collect();
                hosts.sort_unstable();
                hosts.dedup();
                if hosts.len() > 1 {
                    self.hosts.push((first.wrapping_add(communicator.id.get()), hosts));
                }
            }
        }
        let next = u64::from(first) + u64::from(last) + 1;
        match u32::try_from(next) {
            Ok(next) if next <= 1 << 31 => Ok(next),
            _ => Err(network_error(SwitchError::ManyNumbers(next - 1))),
        }
    }
}

fn network_error(error: SwitchError) -> RunError {
    RunError::Network(Box::new(error))
}
