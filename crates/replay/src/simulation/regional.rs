//! Replays region by region, on any network.

use std::ops::Range;
use std::time::Instant;

use netmodel::{HostId, HostLoads, HostTotals, NetworkModel, NetworkParameters, Platform, Regions};
use pdes_core::{
    Cluster, ExchangeCounts, LpId, Progress, RegionBlocks, RegionIndex, RegionalEngine, RegionalTiming,
    SimDuration, SimTime,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::outcome::Part as OutcomePart;
use super::{Outcome, RunError, Simulation, agree, gather};
use crate::checkpoint::CheckpointPlan;
use crate::contention::{RegionPlan, SharedMachine};
use crate::fast_forward::{ForwardedRun, run_forwarded};
use crate::network_tag::NetworkTag;
use crate::placement::LpHosts;
use crate::region_adapter::{InRegions, Part, RegionAdapter};

/// A replay region by region that lacks the networks of its regions only.
pub struct RegionalReplay<'a> {
    pub(super) simulation: &'a Simulation,
    pub(super) cluster: &'a mut Cluster,
    pub(super) engine: &'a RegionalEngine,
    pub(super) plan: &'a RegionPlan,
    /// Regions of each process.
    pub(super) blocks: &'a RegionBlocks,
    pub(super) checkpoints: Option<&'a CheckpointPlan>,
    /// Skips iterations that repeat.
    pub(super) forwards: bool,
    pub(super) is_on_trial: bool,
    /// Ranks with a host of their own advance past their computations at once.
    pub(super) computes_ahead: bool,
    pub(super) progress: &'a Progress,
}

/// What the regions of this process have done.
pub struct RegionsDone<'a, N> {
    /// Networks of the regions.
    pub networks: Vec<N>,
    pub(crate) exchange_counts: ExchangeCounts,
    /// Outcome, on the first process.
    outcome: Option<Outcome>,
    timing: Option<RegionalTiming>,
    cluster: &'a mut Cluster,
}

/// The outcome of a replay region by region, on the first process, and the times of its regions if they were measured.
pub struct RegionalOutcome {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) timing: Option<RegionalTiming>,
}

impl<'a> RegionalReplay<'a> {
    /// Returns the platform.
    pub fn platform(&self) -> &'a Platform {
        &self.simulation.platform
    }

    /// Returns the parameters of the network.
    pub fn parameters(&self) -> &'a NetworkParameters {
        &self.simulation.spec.network
    }

    /// Returns the [section](crate::ModelSection) of the configuration that belongs to the model.
    pub fn model_parameters(&self) -> &'a toml::Table {
        &self.simulation.spec.model_parameters
    }

    /// Returns the hosts of the communicators whose operations switches carry out, by numbers.
    pub fn switch_communicators(&self) -> &'a [(u32, Vec<HostId>)] {
        &self.simulation.switch_communicators.hosts
    }

    /// Returns the region of each host.
    pub fn hosts(&self) -> &'a [RegionIndex] {
        &self.plan.hosts
    }

    /// Returns the number of regions of all processes.
    pub fn count(&self) -> u32 {
        self.plan.count
    }

    /// Returns the regions of this process.
    pub fn numbers(&self) -> Range<RegionIndex> {
        self.blocks.regions(self.cluster.member())
    }

    /// Returns the regions of hosts and links.
    pub(crate) fn regions(&self) -> &'a Regions {
        self.plan.regions.as_ref().expect("links belong to regions")
    }

    /// Returns the length of epochs or windows.
    pub fn span(&self) -> SimDuration {
        self.plan.span
    }

    /// Returns whether the loads of links are recorded.
    pub fn records_links(&self) -> bool {
        self.simulation.records_links()
    }

    /// Returns whether the replay is to end early, out of order, where it is slower than on one thread.
    pub fn is_on_trial(&self) -> bool {
        self.is_on_trial
    }

    /// Lets ranks with a host of their own advance past their computations at once: for networks in which computations elsewhere do not
    /// affect them.
    pub(crate) fn computing_ahead(self) -> Self {
        Self { computes_ahead: true, ..self }
    }

    /// Makes all processes succeed or fail together.
    pub(crate) fn agree<T>(&mut self, own: Result<T, RunError>) -> Result<T, RunError> {
        agree(self.cluster, own)
    }

    /// Replays the ranks on the hosts of the regions of this process, whose idle networks are given, and returns these.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn on<N: NetworkModel<NetworkTag> + Send>(
        self,
        networks: Vec<N>,
    ) -> Result<RegionsDone<'a, N>, RunError> {
        let started = Instant::now();
        let Self { simulation, cluster, engine, plan, blocks, checkpoints, forwards, progress, .. } = self;
        let machines = simulation.shared_machines(None);
        let records_hosts = simulation.spec.host_loads;
        // The loads of hosts include all computations.
        let machines: Vec<SharedMachine<'_>> = match self.computes_ahead && !records_hosts {
            true => machines.into_iter().map(SharedMachine::with_compute_run_ahead).collect(),
            false => machines,
        };
        let me = cluster.member();
        let spool = simulation.spool();
        let mine: Vec<LpId> = blocks.lps(me).collect();
        let others = (0..blocks.members()).filter(|&member| member != me);
        let elsewhere = others.flat_map(|other| simulation.programs.first_lps(blocks.lps(other)));
        let elsewhere: Vec<LpId> = elsewhere.collect();
        let worlds = simulation.worlds(&machines, (&mine, &elsewhere), spool.as_ref(), forwards, None);
        let rules = simulation.file_rules();
        let (lp_hosts, lp_regions) = (LpHosts::new(simulation.programs.lp_hosts()), blocks.region_of_lp());
        let adapter = |(index, network): (_, N)| {
            let network = if records_hosts { network.with_host_loads() } else { network };
            let part = Some(Part { index, hosts: &plan.hosts, lp_regions });
            RegionAdapter::new(network, simulation.region_storage(&rules, part), &lp_hosts, part)
        };
        let adapters = blocks.regions(me).zip(networks).map(adapter).collect();
        let mut regions = InRegions::new(engine.clone(), plan.span, blocks, adapters, &worlds);
        let sources = (&*worlds, spool.as_ref(), &*mine);
        let done =
            run_forwarded(simulation, cluster, checkpoints, forwards, &mut regions, sources, progress)?;
        let ForwardedRun { run, checkpoints, fast_forward } = done;
        let exchange_counts = regions.exchange_counts(cluster)?;
        let (regions, timing) = regions.into_parts();
        let own = regions.iter().flat_map(RegionAdapter::server_use).collect();
        let file_servers = simulation.gather_server_use(cluster, own, spool.as_ref())?;
        let outcome = simulation.collect(cluster, started, (&worlds, spool.as_ref(), mine), run)?;
        let networks: Vec<N> = regions.into_iter().map(RegionAdapter::into_network).collect();
        let own: Vec<HostTotals> = networks.iter().flat_map(N::host_totals).collect();
        let totals = if records_hosts { cluster.gather(own)? } else { Vec::new() };
        let outcome = outcome.map(|outcome| {
            let host_loads = || HostLoads::new(outcome.simulated_time(), totals.concat());
            let hosts = records_hosts.then(host_loads);
            Outcome { hosts, file_servers, checkpoints, fast_forward, ..outcome }
        });
        Ok(RegionsDone { networks, exchange_counts, outcome, timing, cluster })
    }
}

impl<N> RegionsDone<'_, N> {
    /// Returns the end of the run, on all processes.
    ///
    /// # Errors
    /// If the processes lose contact.
    pub fn end(&mut self) -> Result<SimTime, RunError> {
        Ok(self.cluster.broadcast(self.outcome.as_ref().map(Outcome::simulated_time))?)
    }

    /// Gathers the values of all processes, in their order, on the first one.
    ///
    /// # Errors
    /// If the processes lose contact.
    pub fn gather<T: Serialize + DeserializeOwned>(&mut self, own: T) -> Result<Vec<T>, RunError> {
        Ok(self.cluster.gather(own)?)
    }

    /// Merges the parts of all processes; the first one gets the whole.
    pub(crate) fn merge<P: OutcomePart>(&mut self, own: P) -> Result<Option<P>, RunError> {
        gather(self.cluster, Some(own))
    }

    /// Returns the outcome, to which `complete` adds on the first process.
    pub fn into_outcome(self, complete: impl FnOnce(Outcome) -> Outcome) -> RegionalOutcome {
        RegionalOutcome { outcome: self.outcome.map(complete), timing: self.timing }
    }
}
