//! The registry of network models: the choices of `network.model`, the networks of replays in time order, and the texts about what a
//! model cannot do come from its rows.
//!
//! A model with contention is one file, which implements [`NetworkModel`](netmodel::NetworkModel), and one row.

use std::fmt;
use std::sync::Once;

use netmodel::{Capabilities, EpochNetwork, FlowNetwork, UncontendedNetwork};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contention::EpochPlan;
use crate::loggops::LogGopsSection;
use crate::schema::generate;
use crate::simulation::{OrderedReplay, Outcome, RunError};

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
    pub network: Option<OrderedNetwork>,
    /// The network whose rates change at epoch boundaries only; `None` if there are no epochs.
    pub with_epochs: Option<OrderedNetwork>,
    /// How threads share a replay without epochs.
    pub parallelism: Parallelism,
}

/// Section of the configuration that belongs to one model: a type that is read from it.
#[derive(Clone, Copy)]
pub struct ModelSection {
    /// Returns the JSON schema, whose description is the section's.
    pub schema: fn() -> Value,
    /// Reads the section, to find out whether it can be read.
    pub check: fn(toml::Table) -> Result<(), toml::de::Error>,
}

impl ModelSection {
    /// Returns the section that a type describes.
    pub const fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self { schema: generate::<T>, check: |table| table.try_into::<T>().map(drop) }
    }
}

/// How threads share the replays of a model without epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallelism {
    /// They do not: there is one order of events.
    None,
    /// Parts of the network that share no links run in [windows](netmodel::WindowMachine).
    Windows,
    /// Every message has its route to itself, so that its sender knows its arrival at once. Only queues of file systems have an order.
    Uncontended,
}

/// A network on one thread, in the order of time.
#[derive(Clone, Copy)]
pub struct OrderedNetwork {
    /// Abilities, on which the [execution](crate::Execution) depends.
    pub capabilities: Capabilities,
    /// Runs a replay.
    pub replay: Replayer,
}

/// Abilities of flows, at every event and in epochs.
const FLOWS: Capabilities = Capabilities { checkpoint: true, fast_forward: true, links: true, cores: true };

/// Creates the network of a replay in time order, runs the replay [on](OrderedReplay::on) it, and adds to the outcome what the
/// network says of itself.
///
/// The call through a pointer happens once per replay; each instance of [`OrderedReplay::on`] is compiled for its network.
pub type Replayer = fn(OrderedReplay<'_>) -> Result<Outcome, RunError>;

/// All network models, the default first.
pub static MODELS: [Model; 3] = [
    Model {
        key: "flow",
        former_key: None,
        description: "Messages share links, computations share cores.",
        section: None,
        network: Some(OrderedNetwork {
            capabilities: FLOWS,
            replay: |replay| {
                let network = FlowNetwork::new(replay.platform(), replay.parameters());
                replay.on(network).map(|(outcome, _)| outcome)
            },
        }),
        with_epochs: Some(OrderedNetwork {
            capabilities: FLOWS,
            replay: |replay| {
                let EpochPlan { regions, epoch, .. } = replay.epochs();
                let network =
                    EpochNetwork::new(replay.platform(), replay.parameters(), regions.clone(), *epoch)?;
                let (outcome, network) = replay.on(network)?;
                Ok(Outcome { epochs: Some(network.summary()), ..outcome })
            },
        }),
        parallelism: Parallelism::Windows,
    },
    Model {
        key: "contention-free",
        former_key: Some("loggps"),
        description: "No contention.",
        section: None,
        network: Some(OrderedNetwork {
            capabilities: Capabilities { checkpoint: true, fast_forward: true, ..Capabilities::NONE },
            replay: |replay| {
                let network = UncontendedNetwork::new(replay.platform(), replay.parameters());
                replay.on(network).map(|(outcome, _)| outcome)
            },
        }),
        with_epochs: None,
        parallelism: Parallelism::Uncontended,
    },
    Model {
        key: "loggops",
        former_key: None,
        description: "GOAL schedules with the costs of LogGOPSim.",
        section: Some(ModelSection::of::<LogGopsSection>()),
        network: None,
        with_epochs: None,
        parallelism: Parallelism::None,
    },
];

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
    pub(crate) fn uncontended() -> &'static Self {
        let is_uncontended = |model: &&Self| model.parallelism == Parallelism::Uncontended;
        MODELS.iter().find(is_uncontended).expect("there is a model without contention")
    }

    /// Returns the network with epochs or without, if there is one.
    pub(crate) fn network(&self, has_epochs: bool) -> Option<&OrderedNetwork> {
        if has_epochs { self.with_epochs.as_ref() } else { self.network.as_ref() }
    }

    /// Returns the names of the models for traces that have a capability, for messages: `"one" or "other"`.
    pub fn names_with(has: impl Fn(&Capabilities) -> bool) -> String {
        let fits = |model: &&Self| model.network.is_some_and(|network| has(&network.capabilities));
        let names = MODELS.iter().filter(fits).map(|model| format!("{model:?}"));
        names.collect::<Vec<_>>().join(" or ")
    }
}

/// Prints the name: processes compare the text of their jobs.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}
