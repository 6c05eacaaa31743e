//! JSON schemas of the files that users write, generated from the types that read them.

use std::sync::LazyLock;

use netmodel::PlatformDescription;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::sections::Sections;
use crate::models::Model;

/// Schema that all configurations are checked against.
pub(crate) static CONFIG_SCHEMA: LazyLock<Value> = LazyLock::new(all_sections);

/// Returns the JSON schema (draft 7) of configurations.
///
/// In addition to the keywords of JSON schema, `x-unit` is the unit of a number, `x-default` a default that is not a value, and `x-page`
/// the page of the documentation with details.
///
/// ```
/// let schema = pdes_replay::config_schema();
/// assert_eq!(schema["properties"]["mpi"]["properties"]["envelope_bytes"]["default"], 16);
/// ```
pub fn config_schema() -> Value {
    CONFIG_SCHEMA.clone()
}

/// Returns the JSON schema (draft 7) of platforms in TOML.
pub fn platform_schema() -> Value {
    let mut schema = generate::<PlatformDescription>();
    schema["title"] = json!("pdes-replay platform");
    schema
}

/// Returns the schema of all sections: those of the program, and those of single models.
fn all_sections() -> Value {
    let mut schema = generate::<Sections>();
    for (name, section) in Model::sections() {
        let mut section = (section.schema)();
        for key in ["$schema", "title"] {
            section.as_object_mut().map(|section| section.remove(key));
        }
        schema["properties"][name] = section;
    }
    schema
}

/// Generates the schema of a type, without references and, because TOML has none, without `null`.
pub(crate) fn generate<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(remove_null));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

fn remove_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default") == Some(&Value::Null) {
        object.remove("default");
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    for list in ["type", "enum", "anyOf"] {
        let Some(Value::Array(values)) = object.get_mut(list) else { continue };
        values.retain(|value| *value != Value::Null && *value != "null" && value["type"] != "null");
        if list != "enum" && values.len() == 1 {
            replace_alternatives(object, list);
        }
    }
}

/// Replaces a list of one alternative by that alternative; keys beside the list take precedence.
fn replace_alternatives(object: &mut Map<String, Value>, list: &str) {
    match object.remove(list).as_mut().map(|values| values[0].take()) {
        Some(Value::Object(only)) => {
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
        Some(only) => {
            object.insert(list.to_owned(), only);
        }
        None => {}
    }
}
