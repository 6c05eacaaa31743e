//! The JSON schemas: all files that users write are valid, and mistakes are not.

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;
use trace_tools::transform::Hypothesis;

use crate::command_line::{DONE, command};
use crate::reference::repository;

fn validator(document: &str) -> Validator {
    let output = command().args(["schema", document]).assert().code(DONE).get_output().stdout.clone();
    let schema: Value = serde_json::from_slice(&output).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

/// Returns the schema that a file of `configs` follows.
fn document(path: &Path, table: &toml::Table) -> &'static str {
    if path.parent().unwrap().ends_with("platforms") {
        "platform"
    } else if table.contains_key("config") {
        "sweep"
    } else {
        "config"
    }
}

fn errors(validator: &Validator, text: &str) -> Vec<String> {
    let value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn every_file_of_configs_follows_its_schema() {
    let configs = repository().join("configs");
    let mut seen = Vec::new();
    for folder in [configs.clone(), configs.join("platforms")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let table: toml::Table = toml::from_str(&text).unwrap();
            // Hypotheses and rules have no schema: what reads them checks them.
            if table.contains_key("hypothesis") {
                Hypothesis::from_text(&text, &path).unwrap();
                continue;
            } else if table.contains_key("problem") {
                pdes_replay::Rule::own_and_from_path(&path).unwrap();
                continue;
            }
            let document = document(&path, &table);
            assert_eq!(errors(&validator(document), &text), Vec::<String>::new(), "{}", path.display());
            seen.push(document);
        }
    }
    for document in ["config", "sweep", "platform"] {
        assert!(seen.contains(&document), "configs/ has no {document}");
    }
}

#[test]
fn the_schema_refuses_what_a_run_refuses() {
    let config = validator("config");
    for (text, place) in [
        ("[trace]\npth = 'x'", "/trace"),
        ("[network]\npreset = 'lv8'", "/network/preset"),
        ("[network]\nepoch_s = 'never'", "/network/epoch_s"),
        ("[network]\nweight_s = -1", "/network/weight_s"),
        ("[engine]\nthreads = 0", "/engine/threads"),
        ("[engine]\nthreads = 'two'", "/engine/threads"),
        ("[mpi]\nbcast = 'flatree'", "/mpi/bcast"),
        ("[mpi.table]\nscan = []", "/mpi/table"),
        ("[[mpi.table.bcast]]\nranks_below = 8", "/mpi/table/bcast/0"),
        ("[platform.topology]\nkind = 'ring'", "/platform/topology/kind"),
        ("[loggops]\nempty = 'none'", "/loggops/empty"),
    ] {
        let errors = errors(&config, text);
        assert!(errors.len() == 1 && errors[0].starts_with(&format!("{place}: ")), "{text}: {errors:?}");
    }
    assert_eq!(errors(&validator("sweep"), "[grid]\nnetwork.latency_factor = 2").len(), 1);
    assert_eq!(
        errors(&validator("sweep"), "[[axis]]\nname = 'x'\nvalues = [{ network.preset = 'raw' }]").len(),
        1
    );
    let graph = "topology = { kind = 'graph' }\nhost = [{ name = 'a', sped = '1Gf' }]";
    assert_eq!(errors(&validator("platform"), graph).len(), 2);
}

/// Every key can be written in a file: a schema with a key that the program does not read would mislead editors, and the reverse
/// would hide a key.
#[test]
fn every_key_has_a_meaning() {
    fn descend(schema: &Value, place: &str) {
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{key}");
            assert!(schema["description"].is_string(), "{place} has no description");
            descend(schema, &place);
            descend(&schema["items"], &place);
        }
    }
    for schema in [pdes_replay::config_schema(), pdes_replay::sweep_schema(), pdes_replay::platform_schema()]
    {
        descend(&schema, schema["title"].as_str().unwrap());
    }
}

/// A default in the schema that is a value can be written without a change: the schema and the program agree.
#[test]
fn defaults_are_valid_values() {
    let schema = pdes_replay::config_schema();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    for (section, keys) in schema["properties"].as_object().unwrap() {
        for (key, value) in keys["properties"].as_object().unwrap() {
            let names = ["default", "x-default"].map(|name| !value[name].is_null());
            assert!(names[0] != names[1], "[{section}] {key} has no default, or two");
            if names[0] {
                let config = serde_json::json!({ section: { key: value["default"] } });
                assert!(validator.is_valid(&config), "{config}");
            }
        }
    }
}
