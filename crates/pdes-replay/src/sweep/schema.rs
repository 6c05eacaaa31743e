//! The JSON schema of sweeps.

use std::borrow::Cow;

use replay::schema::generate;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::grid::{LabelledValue, SweepFile};
use crate::config::schema::CONFIG_SCHEMA;

/// Returns the JSON schema (draft 7) of sweeps.
pub fn sweep_schema() -> Value {
    generate::<SweepFile>()
}

/// Returns the schema of the section `[grid]`: each key of a configuration with a list of values.
pub(super) fn grid(_: &mut SchemaGenerator) -> Schema {
    let mut sections = sections();
    // Jobs and profiles are lists: an axis sets them as a whole.
    sections.retain(|_, section| section["properties"].is_object());
    for section in sections.iter_mut().flat_map(|(_, section)| section["properties"].as_object_mut()) {
        section.values_mut().for_each(list);
    }
    object(sections, &[])
}

/// Makes the schema of a key that of a list of its values, or, if they are tables, of a table with lists for their parts.
fn list(key: &mut Value) {
    let mut parts = key["properties"].clone();
    let description = key["description"].clone();
    *key = json!({ "type": "array", "minItems": 1, "items": key.take(), "description": description });
    if let Some(parts) = parts.as_object_mut() {
        parts.values_mut().for_each(list);
        key["type"] = json!(["array", "object"]);
        key["properties"] = parts.clone().into();
        key["additionalProperties"] = json!(false);
    }
}

/// The schema of a labelled value: the sections of a configuration, and a label.
impl JsonSchema for LabelledValue {
    fn schema_name() -> Cow<'static, str> {
        "Labelled".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut sections = sections();
        let label =
            json!({ "type": ["string", "number"], "description": "The name of the value in the results." });
        let cost = json!({ "type": "number", "description": "The cost of a machine with this value, in any unit; costs of several axes are added." });
        sections.insert("label".to_owned(), label);
        sections.insert("cost".to_owned(), cost);
        object(sections, &["label"])
    }
}

fn sections() -> serde_json::Map<String, Value> {
    CONFIG_SCHEMA["properties"].as_object().cloned().unwrap_or_default()
}

fn object(properties: serde_json::Map<String, Value>, required: &[&str]) -> Schema {
    schemars::json_schema!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
