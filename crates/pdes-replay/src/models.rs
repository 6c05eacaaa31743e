//! The registry of network models: the dispatch of replays, the choices of `network.model`, and the texts about what a model
//! cannot do come from its rows.
//!
//! A model with contention is one file, which implements [`NetworkModel`], and one row.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Once;

use mpi_model::Completion;
use netmodel::{Capabilities, EpochNetwork, FlowNetwork, NetworkModel, UncontendedNetwork};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::config::LogGopsSection;
use crate::config::schema::generate;
use crate::simulation::{OrderedReplay, Outcome, RunError};

/// A row of the registry.
pub struct Model {
    /// Name in configurations, flags and reports.
    pub key: &'static str,
    /// Former name, which is still accepted.
    pub former_key: Option<&'static str>,
    /// Description in one sentence.
    pub description: &'static str,
    /// Abilities, on which warnings and refusals depend.
    pub capabilities: Capabilities,
    /// Section of the configuration with parameters of this model only, named like the model; `None` if it has those of `[network]` only.
    pub section: Option<ModelSection>,
    /// Execution of a replay.
    pub execution: Execution,
    /// The model that replaces this one if rates change at epoch boundaries only; `None` if there are no epochs.
    pub with_epochs: Option<&'static Model>,
    /// The model that replaces this one if accesses to files need the order of time; `None` if it has that order, or cannot.
    pub in_time_order: Option<&'static Model>,
}

/// Section of the configuration that belongs to one model: a type that is read from it.
#[derive(Clone, Copy)]
pub struct ModelSection {
    /// Returns the JSON schema, whose description is the section's.
    pub(crate) schema: fn() -> Value,
    /// Reads the section, to find out whether it can be read.
    pub(crate) check: fn(toml::Table) -> Result<(), toml::de::Error>,
}

impl ModelSection {
    /// Returns the section that a type describes.
    pub const fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self { schema: generate::<T>, check: |table| table.try_into::<T>().map(drop) }
    }
}

/// Execution of the replays of a model.
pub enum Execution {
    /// Every message has its route to itself, so that its sender knows its arrival at once.
    Uncontended,
    /// On one thread, in time order.
    InTimeOrder(Replayer),
    /// Region by region; in time order if a rank depends on the global event order.
    ByRegions(Replayer),
    /// Not of traces, but of GOAL schedules.
    Schedules,
}

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
        capabilities: <FlowNetwork<'_, Completion> as NetworkModel<Completion>>::CAPABILITIES,
        section: None,
        execution: Execution::InTimeOrder(|replay| {
            let network = FlowNetwork::new(replay.platform(), replay.parameters());
            replay.on(network).map(|(outcome, _)| outcome)
        }),
        with_epochs: Some(&Model {
            key: "flow",
            former_key: None,
            description: "Rates change at epoch boundaries only.",
            capabilities: <EpochNetwork<'_, Completion> as NetworkModel<Completion>>::CAPABILITIES,
            section: None,
            execution: Execution::ByRegions(|replay| {
                let network = replay.epochs().network(replay.platform(), replay.parameters())?;
                let (outcome, network) = replay.on(network)?;
                Ok(Outcome { epochs: Some(network.summary()), ..outcome })
            }),
            with_epochs: None,
            in_time_order: None,
        }),
        in_time_order: None,
    },
    Model {
        key: "contention-free",
        former_key: Some("loggps"),
        description: "No contention.",
        capabilities: Capabilities {
            threads: true,
            processes: true,
            checkpoint: true,
            fast_forward: true,
            ..Capabilities::NONE
        },
        section: None,
        execution: Execution::Uncontended,
        with_epochs: None,
        in_time_order: Some(&Model {
            key: "contention-free",
            former_key: None,
            description: "No contention but that of file systems.",
            capabilities: <UncontendedNetwork<'_, Completion> as NetworkModel<Completion>>::CAPABILITIES,
            section: None,
            execution: Execution::InTimeOrder(|replay| {
                let network = UncontendedNetwork::new(replay.platform(), replay.parameters());
                replay.on(network).map(|(outcome, _)| outcome)
            }),
            with_epochs: None,
            in_time_order: None,
        }),
    },
    Model {
        key: "loggops",
        former_key: None,
        description: "GOAL schedules with the costs of LogGOPSim.",
        capabilities: Capabilities { threads: true, ..Capabilities::NONE },
        section: Some(ModelSection::of::<LogGopsSection>()),
        execution: Execution::Schedules,
        with_epochs: None,
        in_time_order: None,
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
    pub(crate) fn sections() -> impl Iterator<Item = (&'static str, ModelSection)> {
        MODELS.iter().filter_map(|model| Some((model.key, model.section?)))
    }

    /// Returns the first model without contention.
    pub(crate) fn uncontended() -> &'static Self {
        let is_uncontended = |model: &&Self| matches!(model.execution, Execution::Uncontended);
        MODELS.iter().find(is_uncontended).expect("there is a model without contention")
    }

    /// Returns the names of the models for traces that have a capability, for messages: `"one" or "other"`.
    pub(crate) fn names_with(has: impl Fn(&Capabilities) -> bool) -> String {
        let models = MODELS.iter().filter(|model| !matches!(model.execution, Execution::Schedules));
        let models = models.filter(|model| has(&model.capabilities));
        models.map(|model| format!("{:?}", model.key)).collect::<Vec<_>>().join(" or ")
    }

    /// Returns whether ranks may be assigned to any worker: on several, and not bound to regions.
    pub fn distributes_ranks(&self) -> bool {
        self.capabilities.threads && !self.capabilities.regions
    }

    /// Returns the setting with which more threads help.
    pub(crate) fn setting_for_threads(&self) -> String {
        match self.with_epochs {
            Some(_) => "epoch_s = \"auto\"".to_owned(),
            None => format!("network.model = {}", Self::names_with(|other| other.threads)),
        }
    }
}

/// Prints the name: processes compare the text of their jobs.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// Reads the name of a model.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'static Model>, D::Error> {
    let name = String::deserialize(input)?;
    Model::find(&name)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format!("there is no model {name:?}")))
}

/// Reads the sections of single models.
pub(crate) fn deserialize_sections<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<BTreeMap<String, toml::Table>, D::Error> {
    let sections: BTreeMap<String, toml::Table> = BTreeMap::deserialize(input)?;
    for (name, table) in &sections {
        let (_, section) = Model::sections()
            .find(|(key, _)| key == name)
            .ok_or_else(|| serde::de::Error::custom(format!("there is no section [{name}]")))?;
        (section.check)(table.clone()).map_err(|error| serde::de::Error::custom(error.message()))?;
    }
    Ok(sections)
}

/// Returns the schema of the name of a model; `x-former` maps former names, which are accepted, to present ones.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    let choice =
        |model: &Model| json!({ "description": model.description, "type": "string", "const": model.key });
    let former = |model: &Model| Some((model.former_key?.to_owned(), model.key.into()));
    let former: Map<String, Value> = MODELS.iter().filter_map(former).collect();
    json_schema!({ "oneOf": MODELS.iter().map(choice).collect::<Vec<_>>(), "x-former": former })
}
