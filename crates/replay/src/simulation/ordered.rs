//! Replays on one thread, in time order, on any network.

use std::time::Instant;

use netmodel::{HostId, HostLoads, NetworkModel, NetworkParameters, Platform};
use pdes_core::{Cluster, LpId, OrderedEngine, Progress};

use super::{Outcome, RunError, Simulation};
use crate::certificate::{CertifiedNetwork, Rates, TaggedWork};
use crate::checkpoint::{CheckpointPlan, InTimeOrder};
use crate::contention::RegionPlan;
use crate::fast_forward::{ForwardedRun, run_forwarded};
use crate::network_tag::NetworkTag;
use crate::placement::LpHosts;
use crate::region_adapter::RegionAdapter;

/// A replay in time order that lacks its network only.
#[derive(Debug)]
pub struct OrderedReplay<'a> {
    pub(super) simulation: &'a Simulation,
    pub(super) started: Instant,
    pub(super) progress: &'a Progress,
    /// Skips iterations that repeat.
    pub(super) forwards: bool,
    /// Checkpoints, if any are written.
    pub(super) checkpoints: Option<&'a CheckpointPlan>,
}

impl<'a> OrderedReplay<'a> {
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

    /// Returns the epochs, which a model with epochs has.
    pub(crate) fn epochs(&self) -> &'a RegionPlan {
        self.simulation.epochs().expect("the model was chosen because there are epochs")
    }

    /// Returns whether the run has a certificate.
    pub(crate) fn is_certified(&self) -> bool {
        self.simulation.certificate.is_some()
    }

    /// Replays all ranks on an idle network, and writes the certificate.
    pub(crate) fn certified_on<N>(self, network: N) -> Result<Outcome, RunError>
    where
        N: NetworkModel<TaggedWork> + Rates + Send,
    {
        let simulation = self.simulation;
        let recorder = simulation.certificate.as_ref().expect("the run has a certificate");
        recorder.begin(simulation)?;
        let network = CertifiedNetwork::new(network, self.platform(), self.parameters(), recorder);
        let (outcome, _) = self.on(network)?;
        Ok(Outcome { certificate: Some(recorder.finish(simulation)?), ..outcome })
    }

    /// Replays all ranks on an idle network, and returns it with the outcome.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn on<N: NetworkModel<NetworkTag> + Send>(self, network: N) -> Result<(Outcome, N), RunError> {
        let Self { simulation, started, progress, forwards, checkpoints } = self;
        let lp_hosts = LpHosts::new(simulation.programs.lp_hosts());
        let launches = simulation.launches(&lp_hosts);
        let machines = simulation.shared_machines(launches.as_ref());
        let spool = simulation.spool();
        let lps: Vec<LpId> = (0..simulation.programs.lps()).map(LpId::new).collect();
        let worlds = simulation.worlds(&machines, (&lps, &[]), spool.as_ref(), forwards, launches.as_ref());
        let records_links = simulation.records_links();
        let network = if records_links { network.with_link_loads() } else { network };
        let network = if simulation.spec.host_loads { network.with_host_loads() } else { network };
        let storage = simulation.region_storage(&simulation.file_rules(), None);
        let mut region = RegionAdapter::new(network, storage, &lp_hosts, None);
        let engine = OrderedEngine::default();
        let engine = simulation.jitter.map_or(engine.clone(), |seed| engine.jitter(seed));
        let mut in_order = InTimeOrder { engine, region: &mut region };
        let sources = (&*worlds, spool.as_ref(), &*lps);
        let alone = &mut Cluster::alone();
        let ForwardedRun { run, checkpoints, fast_forward } =
            run_forwarded(simulation, alone, checkpoints, forwards, &mut in_order, sources, progress)?;
        let own = region.server_use().collect();
        let file_servers = simulation.gather_server_use(alone, own, spool.as_ref())?;
        let sources = (&*worlds, spool.as_ref(), lps);
        let outcome = simulation.collect(alone, started, sources, run)?;
        let mut outcome = outcome.expect("the first process gets the outcome");
        launches.iter().for_each(|launches| launches.complete(&mut outcome));
        let mut network = region.into_network();
        let links = if records_links { network.link_loads(outcome.simulated_time()) } else { None };
        let host_loads = || HostLoads::new(outcome.simulated_time(), network.host_totals());
        let hosts = simulation.spec.host_loads.then(host_loads);
        Ok((Outcome { links, hosts, file_servers, fast_forward, checkpoints, ..outcome }, network))
    }
}
