//! The JSON schema of configurations.

use std::sync::LazyLock;

use replay::schema::generate;
use serde_json::Value;

use super::registries;
use super::sections::Sections;

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

/// Returns the schema of all sections: those of the program, and those of single models and of extensions.
fn all_sections() -> Value {
    let mut schema = generate::<Sections>();
    for (name, section) in registries::sections() {
        let mut section = (section.schema)();
        for key in ["$schema", "title"] {
            section.as_object_mut().map(|section| section.remove(key));
        }
        schema["properties"][name] = section;
    }
    schema
}
