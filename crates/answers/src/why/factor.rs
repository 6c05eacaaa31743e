//! Factors: the parts in which the configurations of two runs may differ.

use mpi_model::Parameters;
use replay::RunSpec;

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

    /// Gives a run this factor of another one. The values of links and hosts are those of a platform, and stay.
    pub(super) fn take(self, spec: &mut RunSpec, other: &RunSpec) {
        match self {
            Self::Program => {
                (spec.trace, spec.code) = (other.trace.clone(), other.code.clone());
                spec.other_programs.clone_from(&other.other_programs);
                (spec.ranks, spec.memory_budget, spec.trace_speed) =
                    (other.ranks, other.memory_budget, other.trace_speed);
            }
            Self::Computation => {
                let Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, .. } =
                    other.mpi.clone();
                spec.mpi =
                    Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, ..spec.mpi.clone() };
            }
            Self::Latency | Self::Bandwidth => {}
            Self::Topology => {
                spec.platform = other.platform.clone();
                (spec.routing, spec.link_scale) = (other.routing, other.link_scale);
                spec.platform_changes.clone_from(&other.platform_changes);
                spec.changes.clone_from(&other.changes);
                spec.profiles.clone_from(&other.profiles);
            }
            Self::NetworkModel => {
                (spec.model, spec.preset, spec.epoch) = (other.model, other.preset, other.epoch);
                spec.model_parameters = other.model_parameters.clone();
                spec.replaced_factors.clone_from(&other.replaced_factors);
                spec.network = other.network.clone();
                spec.regions = other.regions.clone();
            }
            Self::Library => {
                let Parameters { region_speeds, bytes_per_flop, region_bytes_per_flop, .. } =
                    spec.mpi.clone();
                let Parameters { collectives, collective_io, .. } = spec.mpi.clone();
                spec.mpi = Parameters {
                    region_speeds,
                    bytes_per_flop,
                    region_bytes_per_flop,
                    collectives,
                    collective_io,
                    ..other.mpi.clone()
                };
                spec.polling = other.polling;
            }
            Self::Algorithms => {
                spec.mpi.collectives = other.mpi.collectives.clone();
                spec.mpi.collective_io = other.mpi.collective_io;
            }
            Self::Placement => (spec.hosts, spec.placement) = (other.hosts.clone(), other.placement),
        }
    }

    /// Returns whether two runs differ in this factor, the values of links and hosts aside.
    pub(super) fn differs(self, one: &RunSpec, other: &RunSpec) -> bool {
        let mut changed = one.clone();
        self.take(&mut changed, other);
        format!("{changed:?}") != format!("{one:?}")
    }
}
