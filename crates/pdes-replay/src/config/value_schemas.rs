//! Schemas of values that cannot be derived from the types of their fields.

use mpi_model::collective::{Operation, Selector};
use netmodel::quantity::Seconds;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Returns the schema of a time in seconds or with a unit, or `"auto"`.
pub(super) fn seconds_or_auto(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [
        { "type": "number", "minimum": 0 },
        { "type": "string", "enum": ["auto"] },
        { "type": "string", "pattern": "^[0-9.]", "description": "a number with a unit of time" },
    ] })
}

/// Reads a time in seconds or with a unit; `None` for `"auto"`.
pub(super) fn read_seconds_or_auto(value: &toml::Value) -> Result<Option<f64>, String> {
    if value.as_str() == Some("auto") {
        return Ok(None);
    }
    let seconds: Result<Seconds, _> = value.clone().try_into();
    seconds.map(|seconds| Some(seconds.0)).map_err(|error| error.message().to_owned())
}

/// Returns the schema of `"auto"`, a number of regions, or a file.
pub(super) fn regions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string" }] })
}

/// Returns the schema of the selectors of collective algorithms.
pub(super) fn selectors(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": Selector::ALL.map(Selector::name) })
}

/// Adds the names of the algorithms of each operation to the section `[mpi]`.
pub(super) fn add_algorithm_names(section: &mut Schema) {
    let Some(Value::Object(keys)) = section.get_mut("properties") else { return };
    let rows = keys["table"]["additionalProperties"].take();
    let mut tables = serde_json::Map::new();
    for operation in Operation::ALL {
        let algorithms: Vec<&str> = operation.algorithms().collect();
        let key = &mut keys[operation.name()];
        key["enum"] = json!(algorithms);
        key["x-page"] = json!("collectives.md");
        key["x-default"] = json!("the selector's");
        let mut rows = rows.clone();
        rows["description"] =
            json!(format!("Rows for {}: the first that matches decides.", operation.name()));
        rows["items"]["properties"]["algorithm"]["enum"] = json!(algorithms);
        tables.insert(operation.name().to_owned(), rows);
    }
    keys["table"]["properties"] = tables.into();
    keys["table"]["additionalProperties"] = json!(false);
}
