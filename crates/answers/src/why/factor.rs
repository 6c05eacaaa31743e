//! Factors: the parts in which the configurations of two runs may differ.

use mpi_model::Parameters;
use replay::Job;

/// A part of a run that another run may have otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Factor {
    /// The trace, and those of other programs on the machine.
    Program,
    /// Speeds and memory of hosts, and of regions of the program on them.
    Computation,
    /// Latencies of links.
    Latency,
    /// Bandwidths of links.
    Bandwidth,
    /// Hosts, links, routes and storage, and what changes in the course of the run.
    Topology,
    /// Model and parameters of the network: contention, factors, epochs.
    NetworkModel,
    /// Thresholds and costs of the MPI library.
    Library,
    /// Algorithms of collective operations.
    Algorithms,
    /// Hosts of ranks.
    Placement,
}

impl Factor {
    /// All factors, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::Program,
        Self::Computation,
        Self::Latency,
        Self::Bandwidth,
        Self::Topology,
        Self::NetworkModel,
        Self::Library,
        Self::Algorithms,
        Self::Placement,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Computation => "computation",
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
            Self::Topology => "topology",
            Self::NetworkModel => "network model",
            Self::Library => "library",
            Self::Algorithms => "algorithms",
            Self::Placement => "placement",
        }
    }

    /// Returns the factor with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|factor| factor.name() == name)
    }

    /// Gives a job this factor of another one. The values of links and hosts are those of a platform, and stay.
    pub(super) fn take(self, job: &mut Job, other: &Job) {
        match self {
            Self::Program => {
                (job.trace, job.code) = (other.trace.clone(), other.code.clone());
                job.other_programs.clone_from(&other.other_programs);
                (job.ranks, job.memory_budget, job.trace_speed) =
                    (other.ranks, other.memory_budget, other.trace_speed);
            }
            Self::Computation => {
                let Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, .. } =
                    other.mpi.clone();
                job.mpi =
                    Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, ..job.mpi.clone() };
            }
            Self::Latency | Self::Bandwidth => {}
            Self::Topology => {
                job.platform = other.platform.clone();
                (job.routing, job.link_scale) = (other.routing, other.link_scale);
                job.platform_changes.clone_from(&other.platform_changes);
                job.changes.clone_from(&other.changes);
            }
            Self::NetworkModel => {
                (job.model, job.preset, job.epoch) = (other.model, other.preset, other.epoch);
                job.model_parameters = other.model_parameters.clone();
                job.replaced_factors.clone_from(&other.replaced_factors);
                job.network = other.network.clone();
                job.regions = other.regions.clone();
            }
            Self::Library => {
                let Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, .. } = job.mpi.clone();
                let Parameters { collectives, collective_io, .. } = job.mpi.clone();
                job.mpi = Parameters {
                    region_speeds,
                    bytes_per_flop,
                    region_bytes_per_flop,
                    collectives,
                    collective_io,
                    ..other.mpi.clone()
                };
                job.polling = other.polling;
            }
            Self::Algorithms => {
                job.mpi.collectives = other.mpi.collectives.clone();
                job.mpi.collective_io = other.mpi.collective_io;
            }
            Self::Placement => (job.hosts, job.placement) = (other.hosts.clone(), other.placement),
        }
    }

    /// Returns whether two jobs differ in this factor, the values of links and hosts aside.
    pub(super) fn differs(self, one: &Job, other: &Job) -> bool {
        let mut changed = one.clone();
        self.take(&mut changed, other);
        format!("{changed:?}") != format!("{one:?}")
    }
}
