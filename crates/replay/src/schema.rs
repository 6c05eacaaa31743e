//! JSON schemas of the files that users write, generated from the types that read them.

use netmodel::PlatformDescription;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Returns the JSON schema (draft 7) of platforms in TOML.
pub fn platform_schema() -> Value {
    let mut schema = generate::<PlatformDescription>();
    schema["title"] = json!("pdes-replay platform");
    schema
}

/// Generates the schema of a type, without references and, because TOML has none, without `null`.
pub fn generate<T: JsonSchema>() -> Value {
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
