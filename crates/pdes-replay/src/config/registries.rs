//! Names of rows of the registries, and the sections of single network models.

use std::collections::BTreeMap;

use replay::{MODELS, Model, NetworkPreset, PRESETS};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// Reads the name of a model.
pub(super) fn read_model<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'static Model>, D::Error> {
    let name = String::deserialize(input)?;
    Model::find(&name)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format!("there is no model {name:?}")))
}

/// Reads the sections of single models.
pub(super) fn read_model_sections<'de, D: Deserializer<'de>>(
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
pub(super) fn models(_: &mut SchemaGenerator) -> Schema {
    let choice =
        |model: &Model| json!({ "description": model.description, "type": "string", "const": model.key });
    let former = |model: &Model| Some((model.former_key?.to_owned(), model.key.into()));
    let former: Map<String, Value> = MODELS.iter().filter_map(former).collect();
    json_schema!({ "oneOf": MODELS.iter().map(choice).collect::<Vec<_>>(), "x-former": former })
}

/// Reads the name of a preset.
pub(super) fn read_preset<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<&'static NetworkPreset>, D::Error> {
    let name = String::deserialize(input)?;
    NetworkPreset::find(&name)
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom(format!("there is no preset {name:?}")))
}

/// Returns the schema of the name of a preset.
pub(super) fn presets(_: &mut SchemaGenerator) -> Schema {
    let choice = |preset: &NetworkPreset| json!({ "description": preset.description, "type": "string", "const": preset.key });
    json_schema!({ "oneOf": PRESETS.iter().map(choice).collect::<Vec<_>>() })
}
