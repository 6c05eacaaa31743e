//! Names of rows of the registries, and the sections of single network models and of extensions.

use std::collections::BTreeMap;
use std::error::Error;

use machine::EnergySection;
use machine::failure::{FailureList, FailuresSection};
use machine::noise::NoiseSection;
use replay::{MODELS, Model, ModelSection, NetworkPreset, PRESETS, RunSpec};
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

/// Extension that the core does not know: a section of the configuration, and its effect on the specification of a run.
pub(super) struct Extension {
    pub(super) name: &'static str,
    section: ModelSection,
    pub(super) apply: fn(toml::Value, &mut RunSpec) -> Applied,
}

/// Success of an extension.
type Applied = Result<(), Box<dyn Error>>;

/// All extensions.
pub(super) static EXTENSIONS: [Extension; 4] = [
    Extension {
        name: EnergySection::NAME,
        section: ModelSection::of::<EnergySection>(),
        apply: |section, spec| Ok(section.try_into::<EnergySection>()?.apply(spec)?),
    },
    Extension {
        name: NoiseSection::NAME,
        section: ModelSection::of::<NoiseSection>(),
        apply: |section, spec| Ok(section.try_into::<NoiseSection>()?.apply(spec)?),
    },
    Extension {
        name: FailureList::NAME,
        section: ModelSection::of::<FailureList>(),
        apply: |section, spec| Ok(section.try_into::<FailureList>()?.apply(spec)?),
    },
    Extension {
        name: FailuresSection::NAME,
        section: ModelSection::of::<FailuresSection>(),
        apply: |section, spec| Ok(section.try_into::<FailuresSection>()?.check(spec)?),
    },
];

/// Returns the sections of single models and of extensions, by name.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, ModelSection)> {
    Model::sections().chain(EXTENSIONS.iter().map(|extension| (extension.name, extension.section)))
}

/// Reads the sections of single models and of extensions.
pub(super) fn read_named_sections<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<BTreeMap<String, toml::Value>, D::Error> {
    let sections: BTreeMap<String, toml::Value> = BTreeMap::deserialize(input)?;
    for (name, value) in &sections {
        let (_, section) = self::sections()
            .find(|(key, _)| key == name)
            .ok_or_else(|| serde::de::Error::custom(format!("there is no section [{name}]")))?;
        (section.check)(value.clone()).map_err(|error| serde::de::Error::custom(error.message()))?;
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
