//! The registry of network models: the choices of `network.model`, the networks of replays, whole or in regions, and the texts about what
//! a model cannot do come from its rows.
//!
//! A model with contention is one file, which implements [`NetworkModel`](netmodel::NetworkModel), and one row.

use std::fmt;
use std::sync::Once;

use netmodel::epoch::{EpochCounts, EpochMachine, EpochRegion, EpochSummary};
use netmodel::{
    Capabilities, EpochNetwork, FlowNetwork, HostId, LinkId, LinkLoads, LinkTotals, NetworkModel, Platform,
    UncontendedNetwork, WindowMachine,
};
use packets::{
    PacketError, PacketMachine, PacketParameters, PacketRegion, PacketRouting, PacketStatistics, Queues,
};
use pdes_core::{ExchangeCounts, RegionIndex, SimDuration};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contention::RegionPlan;
use crate::loggops::LogGopsSection;
use crate::schema::generate;
use crate::simulation::{OrderedReplay, Outcome, RegionalOutcome, RegionalReplay, RunError};
use crate::spec::RunSpec;

/// A row of the registry.
#[derive(Clone)]
pub struct Model {
    /// Name in configurations, flags and reports.
    pub key: &'static str,
    /// Former name, which is still accepted.
    pub former_key: Option<&'static str>,
    /// Description in one sentence.
    pub description: &'static str,
    /// Section of the configuration with parameters of this model only, named like the model; `None` if it has those of `[network]` only.
    pub section: Option<ModelSection>,
    /// The network of traces, whose rates change at every event; `None` if the model is for GOAL schedules.
    pub network: Option<Network>,
    /// The network whose rates change at epoch boundaries only; `None` if there are no epochs.
    pub with_epochs: Option<Network>,
    /// How threads share a replay without epochs.
    pub parallelism: Parallelism,
    /// Says whether the model can go wrong on a platform, and what it needs there; `None` if it has nothing to say.
    pub check: Option<PlatformCheck>,
    /// Says which programs repeat their states, where many do not; `None` if nearly all do.
    pub recurrence: Option<&'static str>,
}

/// Checks a platform: a line about it, or what can go wrong there.
pub type PlatformCheck = fn(&Platform) -> Result<String, String>;

/// Section of the configuration that belongs to one model: a type that is read from it.
#[derive(Clone, Copy)]
pub struct ModelSection {
    /// Returns the JSON schema, whose description is the section's.
    pub schema: fn() -> Value,
    /// Reads the section, a table or an array of tables, to find out whether it can be read.
    pub check: fn(toml::Value) -> Result<(), toml::de::Error>,
    /// Keys of files that the model reads, whose contents belong to the identity of a run.
    pub files: &'static [&'static str],
    /// Returns keys that have no effect beside the others of a section, each with the setting that they are for.
    pub unused: fn(&toml::Table) -> Vec<(&'static str, &'static str)>,
}

impl ModelSection {
    /// Returns the section that a type describes.
    pub const fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self {
            schema: generate::<T>,
            check: |section| section.try_into::<T>().map(drop),
            files: &[],
            unused: |_| Vec::new(),
        }
    }
}

/// How threads share the replays of a model without epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// They do not: there is one order of events.
    None,
    /// Parts of the network that share no links run in [windows](netmodel::WindowMachine).
    Windows,
    /// Regions run in the order of time each, and depend on each other a lookahead later.
    Regions,
    /// Every message has its route to itself, so that its sender knows its arrival at once. Only queues of file systems have an order.
    Uncontended,
}

/// A network: how a replay runs on it.
#[derive(Clone, Copy)]
pub struct Network {
    /// Abilities, on which the [execution](crate::Execution) depends.
    pub capabilities: Capabilities,
    /// Loads of links, if it has them, cost little: they are recorded where there are not many links.
    pub records_links: bool,
    /// Runs a replay on one thread, in the order of time, on the whole network.
    pub replay: Replayer,
    /// How a replay runs region by region, if the network has regions.
    pub regions: Option<RegionalNetwork>,
}

/// A network in regions.
#[derive(Clone, Copy)]
pub struct RegionalNetwork {
    /// Cuts the platform into regions; `None` for [windows](Parallelism::Windows), which threads share.
    pub plan: Option<RegionPlanner>,
    /// Runs a replay.
    pub replay: RegionalReplayer,
}

/// Cuts the platform of a run into regions that depend on each other a lookahead later; `None` if they do not. A model whose results do not
/// depend on the cut joins regions, so that so many workers have one each: the hosts of the ranks, and the workers.
pub type RegionPlanner =
    fn(&RunSpec, &Platform, Option<(&[HostId], usize)>) -> Result<Option<RegionPlan>, RunError>;

/// Abilities of flows, at every event and in epochs.
const FLOWS: Capabilities = Capabilities {
    checkpoint: true,
    fast_forward: true,
    links: true,
    cores: true,
    host_loads: true,
    changes: true,
    factors: true,
    certificate: true,
    foresees_no_changes: false,
    abandonment: true,
    switch_operations: false,
};

/// Creates the network of a replay in time order, runs the replay [on](OrderedReplay::on) it, and adds to the outcome what the
/// network says of itself.
///
/// The call through a pointer happens once per replay; each instance of [`OrderedReplay::on`] is compiled for its network.
pub type Replayer = fn(OrderedReplay<'_>) -> Result<Outcome, RunError>;

/// Creates the networks of the regions of this process, runs the replay [on](RegionalReplay::on) them, and adds to the outcome what
/// they say of themselves.
pub type RegionalReplayer = fn(RegionalReplay<'_>) -> Result<RegionalOutcome, RunError>;

/// All network models, the default first.
pub static MODELS: [Model; 4] = [
    Model {
        key: "flow",
        former_key: None,
        description: "Messages share links, computations share cores.",
        section: None,
        network: Some(Network {
            capabilities: Capabilities { foresees_no_changes: true, ..FLOWS },
            records_links: true,
            replay: |replay| {
                let (platform, parameters) = (replay.platform(), replay.parameters());
                if replay.is_certified() {
                    return replay.certified_on(FlowNetwork::new(platform, parameters));
                }
                replay.on(FlowNetwork::new(platform, parameters)).map(|(outcome, _)| outcome)
            },
            regions: Some(RegionalNetwork { plan: None, replay: in_windows }),
        }),
        with_epochs: Some(Network {
            capabilities: Capabilities { abandonment: false, ..FLOWS },
            records_links: true,
            replay: |replay| {
                let RegionPlan { span, regions, .. } = replay.epochs();
                let regions = regions.clone().expect("links belong to regions");
                let network = EpochNetwork::new(replay.platform(), replay.parameters(), regions, *span)?;
                let (outcome, network) = replay.on(network)?;
                Ok(Outcome { epochs: Some(network.summary()), ..outcome })
            },
            regions: Some(RegionalNetwork { plan: Some(RegionPlan::with_epochs), replay: in_epochs }),
        }),
        parallelism: Parallelism::Windows,
        check: None,
        recurrence: None,
    },
    Model {
        key: "contention-free",
        former_key: Some("loggps"),
        description: "No contention.",
        section: None,
        network: Some(Network {
            capabilities: Capabilities { links: false, cores: false, ..FLOWS },
            records_links: false,
            replay: |replay| {
                let (platform, parameters) = (replay.platform(), replay.parameters());
                if replay.is_certified() {
                    return replay.certified_on(UncontendedNetwork::new(platform, parameters));
                }
                replay.on(UncontendedNetwork::new(platform, parameters)).map(|(outcome, _)| outcome)
            },
            regions: Some(RegionalNetwork {
                plan: Some(RegionPlan::without_contention),
                replay: |replay| {
                    let (platform, parameters) = (replay.platform(), replay.parameters());
                    let (hosts, span) = (replay.hosts(), replay.span());
                    let region =
                        |index| UncontendedNetwork::new(platform, parameters).of_region(index, hosts, span);
                    let networks = replay.numbers().map(region).collect();
                    Ok(replay.on(networks)?.into_outcome(|outcome| outcome))
                },
            }),
        }),
        with_epochs: None,
        parallelism: Parallelism::Uncontended,
        check: None,
        recurrence: None,
    },
    Model {
        key: "packets",
        former_key: None,
        description: "Packets wait in the queues of switches, computations share cores.",
        section: Some(ModelSection {
            files: PacketParameters::FILES,
            unused: |section| {
                let parameters = PacketParameters::deserialize(section.clone());
                parameters.iter().flat_map(PacketParameters::unused_keys).collect()
            },
            ..ModelSection::of::<PacketParameters>()
        }),
        network: Some(Network {
            capabilities: Capabilities {
                factors: false,
                certificate: false,
                abandonment: false,
                switch_operations: true,
                ..FLOWS
            },
            // Each packet costs half as much again.
            records_links: false,
            replay: |replay| {
                let hosts = vec![0; replay.platform().hosts().len()];
                let machine = packets_on(
                    (replay.platform(), replay.model_parameters()),
                    (&hosts, 1),
                    replay.switch_communicators(),
                )?;
                let region = machine.make_regions(0..1).remove(0);
                let (outcome, region) = replay.on(region)?;
                let statistics = PacketStatistics::new([region.counts()], outcome.replay_time);
                Ok(Outcome { model_statistics: serde_json::to_value(statistics).ok(), ..outcome })
            },
            regions: Some(RegionalNetwork {
                plan: Some(|spec, platform, workers| {
                    let plan = RegionPlan::of_regions(
                        spec.regions.partition(platform)?,
                        platform,
                        SimDuration::ZERO,
                    );
                    let plan = match workers {
                        Some((ranks, workers)) => plan.joined(ranks, workers as u32),
                        None => plan,
                    };
                    let machine =
                        packets_on((platform, &spec.model_parameters), (&plan.hosts, plan.count), &[])?;
                    let span = machine.span();
                    Ok((plan.count > 1).then_some(RegionPlan { span, ..plan }))
                }),
                replay: |replay| {
                    let hosts = (replay.hosts(), replay.count());
                    let machine = packets_on(
                        (replay.platform(), replay.model_parameters()),
                        hosts,
                        replay.switch_communicators(),
                    )?;
                    let mut networks = machine.make_regions(replay.numbers());
                    let (platform, records_links) = (replay.platform(), replay.records_links());
                    if records_links {
                        networks = networks.into_iter().map(NetworkModel::with_link_loads).collect();
                    }
                    let mut done = replay.on(networks)?;
                    let own: Vec<(u64, u64)> = done.networks.iter().map(PacketRegion::counts).collect();
                    let counts = done.gather(own)?.into_iter().flatten();
                    let end = done.end()?;
                    let own = done.networks.iter_mut().flat_map(|region| region.link_totals(end)).collect();
                    let totals: Vec<Vec<LinkTotals<'_>>> = done.gather(own)?;
                    Ok(done.into_outcome(|outcome| {
                        let statistics = PacketStatistics::new(counts, outcome.replay_time);
                        let totals = totals.into_iter().flatten();
                        let links = records_links.then(|| LinkLoads::new(platform, end, totals));
                        Outcome { links, model_statistics: serde_json::to_value(statistics).ok(), ..outcome }
                    }))
                },
            }),
        }),
        with_epochs: None,
        parallelism: Parallelism::Regions,
        check: Some(check_channels),
        recurrence: Some(
            "packets recur where iterations end with a barrier or an allreduce, elsewhere with few routings",
        ),
    },
    Model {
        key: "loggops",
        former_key: None,
        description: "GOAL schedules with the costs of LogGOPSim.",
        section: Some(ModelSection::of::<LogGopsSection>()),
        network: None,
        with_epochs: None,
        parallelism: Parallelism::None,
        check: None,
        recurrence: None,
    },
];

/// Replays with exact contention in windows.
fn in_windows(replay: RegionalReplay<'_>) -> Result<RegionalOutcome, RunError> {
    let (platform, parameters, span) = (replay.platform(), replay.parameters(), replay.span());
    let regions = (replay.hosts(), replay.count());
    let windows = WindowMachine::new(platform, parameters, span, regions, replay.records_links());
    let windows = if replay.is_on_trial() { windows.on_trial() } else { windows };
    let mut done = match replay.on(windows.make_regions()) {
        Err(RunError::Unordered(_)) if windows.is_futile() => return Err(RunError::Futile),
        done => done?,
    };
    let end = done.end()?;
    let links = windows.link_loads(done.networks.iter(), end);
    Ok(done.into_outcome(|outcome| Outcome { links, ..outcome }))
}

/// Replays with contention in epochs.
fn in_epochs(replay: RegionalReplay<'_>) -> Result<RegionalOutcome, RunError> {
    let (platform, parameters, span) = (replay.platform(), replay.parameters(), replay.span());
    let machine = EpochMachine::new(platform, parameters, replay.regions().clone(), span);
    let (numbers, records_links) = (replay.numbers(), replay.records_links());
    let mut replay = replay.computing_ahead();
    let machine = replay.agree(machine.map_err(RunError::from))?.with_link_loads(records_links);
    let mut done = replay.on(machine.make_regions(numbers.clone()))?;
    let ExchangeCounts { boundaries, rounds, messages } = done.exchange_counts;
    let mut counts = EpochCounts { boundaries, rounds, messages, ..EpochCounts::default() };
    for region in &done.networks {
        let (settlements, evaluations) = region.solve_counts();
        counts.solves += settlements;
        counts.evaluations += evaluations;
    }
    let capacity_violation = done.networks.iter().map(EpochRegion::capacity_violation).fold(0.0, f64::max);
    let epochs = done.merge(EpochSummary { counts, capacity_violation })?;
    let links = if records_links {
        let end = done.end()?;
        let own = machine.link_totals(numbers, done.networks.iter_mut(), end);
        let totals = done.gather(own)?.into_iter().flatten().collect();
        Some(machine.combine_link_totals(totals, end).ok_or(RunError::ProcessMismatch)?)
    } else {
        None
    };
    Ok(done.into_outcome(|outcome| Outcome { epochs, links, ..outcome }))
}

/// Makes the machine of the model `packets`, whose section of the configuration was checked.
fn packets_on<'p>(
    (platform, parameters): (&'p Platform, &toml::Table),
    hosts: (&[RegionIndex], u32),
    communicators: &[(u32, Vec<HostId>)],
) -> Result<PacketMachine<'p>, RunError> {
    let parameters: PacketParameters = parameters.clone().try_into().expect("the section was checked");
    let machine = PacketMachine::new(platform, &parameters, hosts);
    let machine = machine.and_then(|machine| machine.with_communicators(communicators.iter().cloned()));
    machine.map_err(|error| RunError::Network(Box::new(error)))
}

/// Largest number of hosts, two of each switch, between which the shortest ways of packets are followed.
const CHECKED_HOSTS: usize = 600;
/// Largest number of hosts between which ways over third groups, switches and hosts are followed: there are as many more as of these.
const CHECKED_BY_DETOURS: usize = 256;

/// Finds the virtual channels that each routing of packets needs on a platform, and proves that buffers do not wait for each other in a
/// circle.
fn check_channels(platform: &Platform) -> Result<String, String> {
    let hosts = vec![0; platform.hosts().len()];
    let (mut channels, mut unchecked) = (Vec::new(), Vec::new());
    // Choices among all shortest ways have the same ways, which are followed once.
    let mut knows_shortest = false;
    for routing in PacketRouting::ALL {
        let parameters = PacketParameters { queues: Queues::Credits, routing, ..PacketParameters::default() };
        let machine = match PacketMachine::new(platform, &parameters, (&hosts, 1)) {
            Ok(machine) => machine,
            // Without a choice, or with queues that have no channels.
            Err(PacketError::NoChoice { .. } | PacketError::NoGroups { .. } | PacketError::NoFeedback) => {
                continue;
            }
            Err(error) => return Ok(error.to_string()),
        };
        if machine.representatives().len() > CHECKED_HOSTS {
            return Ok(format!("ways are followed between up to {CHECKED_HOSTS} hosts, two of each switch"));
        }
        let is_shortest = routing == PacketRouting::Minimal || routing.avoids_links();
        if !is_shortest && hosts.len() > CHECKED_BY_DETOURS {
            unchecked.push(routing.name());
            continue;
        }
        let is_known = routing.avoids_links() && std::mem::replace(&mut knows_shortest, true);
        if !is_known && let Some(circle) = machine.find_circular_wait().map_err(|error| error.to_string())? {
            let link = |&(link, channel): &(LinkId, u32)| {
                format!("{} (channel {channel})", platform.link(link).name)
            };
            let circle: Vec<String> = circle.iter().map(link).collect();
            let routing = routing.name();
            return Err(format!(
                "buffers can wait for each other in a circle under {routing:?}: {}",
                circle.join(", ")
            ));
        }
        channels.push(format!("{} {}", routing.name(), machine.virtual_channels()));
    }
    let unchecked = match unchecked.join(", ") {
        none if none.is_empty() => none,
        some => format!("; not followed between more than {CHECKED_BY_DETOURS} hosts: {some}"),
    };
    Ok(format!("no deadlocks with virtual channels: {}{unchecked}", channels.join(", ")))
}

impl Model {
    /// Returns the model with a name; a former name is answered by one hint on stderr, unless the command is quiet.
    pub fn find(name: &str) -> Option<&'static Self> {
        static HINT: Once = Once::new();
        MODELS.iter().find(|model| model.key == name).or_else(|| {
            let model = MODELS.iter().find(|model| model.former_key == Some(name))?;
            HINT.call_once(|| {
                tracing::info!("the model {name:?} is called {:?} now: change network.model", model.key);
            });
            Some(model)
        })
    }

    /// Returns the sections of the configuration that belong to one model, by name.
    pub fn sections() -> impl Iterator<Item = (&'static str, ModelSection)> {
        MODELS.iter().filter_map(|model| Some((model.key, model.section?)))
    }

    /// Returns the first model without contention.
    pub fn uncontended() -> &'static Self {
        let is_uncontended = |model: &&Self| model.parallelism == Parallelism::Uncontended;
        MODELS.iter().find(is_uncontended).expect("there is a model without contention")
    }

    /// Returns the network with epochs or without, if there is one.
    pub(crate) fn network(&self, has_epochs: bool) -> Option<&Network> {
        if has_epochs { self.with_epochs.as_ref() } else { self.network.as_ref() }
    }

    /// Returns the names of the models for traces that have a capability, for messages: `"one" or "other"`.
    pub fn names_with(has: impl Fn(&Capabilities) -> bool) -> String {
        let fits = |model: &&Self| model.network.is_some_and(|network| has(&network.capabilities));
        let names = MODELS.iter().filter(fits).map(|model| format!("{model:?}"));
        names.collect::<Vec<_>>().join(" or ")
    }
}

/// Prints the name: processes compare the text of their specifications.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}
