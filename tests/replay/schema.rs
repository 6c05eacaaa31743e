//! The JSON schemas: all files that users write are valid, and mistakes are not.

use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;
use trace_tools::transform::{Hypothesis, KeyValues, TRANSFORMS};

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
    } else if table.contains_key("hypothesis") {
        "hypotheses"
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
            // Rules and costs have no schema: what reads them checks them.
            if table.contains_key("problem") {
                pdes_replay::Rule::own_and_from_path(&path).unwrap();
                continue;
            }
            if table.contains_key("currency") {
                answers::Costs::from_path(&path).unwrap();
                continue;
            }
            let document = document(&path, &table);
            assert_eq!(errors(&validator(document), &text), Vec::<String>::new(), "{}", path.display());
            seen.push(document);
        }
    }
    for document in ["config", "sweep", "platform", "hypotheses"] {
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

/// The schema of hypotheses and the program accept and refuse the same values, for each kind and each key.
#[test]
fn the_schema_of_hypotheses_agrees_with_the_program() {
    let schema = validator("hypotheses");
    let agrees = |transform: &str| {
        let text = format!("[[hypothesis]]\nname = 'a'\n[[hypothesis.transform]]\n{transform}");
        let read = Hypothesis::from_text(&text, Path::new("h.toml"));
        let errors = errors(&schema, &text);
        assert_eq!(read.is_ok(), errors.is_empty(), "{transform}: {read:?} {errors:?}");
        read.is_ok()
    };
    for kind in &TRANSFORMS {
        // Keys beside each other that the program wants, and the schema cannot tell.
        let others = match kind.key {
            "keep" => "region = 'r'\niterations = 0\n",
            "neighborhood" | "move" => "region = 'r'\n",
            "overlap" => "late = 1\n",
            "place" => "per_host = 1\n",
            _ => "",
        };
        let needed = |left_out: &str| -> String {
            let keys = kind.keys.iter().filter(|key| key.is_required && key.name != left_out);
            let values = keys.map(|key| format!("{} = {}\n", key.name, good_and_bad(key.values).0[0]));
            format!("kind = '{}'\n{others}", kind.key) + &values.collect::<String>()
        };
        assert!(agrees(&needed("")), "{}", kind.key);
        assert!(!agrees(&format!("{}colour = 1\n", needed(""))), "{}", kind.key);
        for key in kind.keys {
            if key.is_required {
                assert!(!agrees(&needed(key.name)), "{} needs {}", kind.key, key.name);
            }
            let is_given = others.starts_with(key.name) || kind.key == "place";
            let (good, bad) = good_and_bad(key.values);
            let needed = |left_out: &str| match (kind.key, key.name) {
                ("place", "traffic") => "kind = 'place'\nmapping = 'greedy'\n".to_owned(),
                _ => needed(left_out),
            };
            let is_given = is_given && key.name != "traffic";
            let with = |value: &&str| match is_given {
                true => format!("kind = '{}'\n{} = {value}\n", kind.key, key.name),
                false => format!("{}{} = {value}\n", needed(key.name), key.name),
            };
            assert!(good.iter().all(|value| agrees(&with(value))), "{} {}", kind.key, key.name);
            assert!(!bad.iter().any(|value| agrees(&with(value))), "{} {}", kind.key, key.name);
        }
    }
    for (selector, is_good) in [
        ("bytes = '1-8, 9,10-'", true),
        ("tag = [1, '2-3']", true),
        ("call = ['send', 'i*']", true),
        ("bytes = 'x'", false),
        ("tag = -1", false),
        ("call = ''", false),
        ("call = []", false),
    ] {
        assert_eq!(agrees(&format!("kind = 'eliminate'\n{selector}")), is_good, "{selector}");
    }
    for (text, count) in [
        ("[[hypothesis]]\nname = 'half the latency'\nset = ['network.latency_factor=0.5']", 0),
        ("[[hypothesis]]\nname = 'original'", 1),
        ("[[hypothesis]]\nname = 'a/b'", 1),
        ("[[hypothesis]]\nset = []", 1),
        ("hypothesis = []", 1),
    ] {
        assert_eq!(errors(&schema, text).len(), count, "{text}");
        assert_eq!(Hypothesis::from_text(text, Path::new("h.toml")).is_ok(), count == 0, "{text}");
    }
}

/// Values that a key takes, and ones that it does not.
fn good_and_bad(values: KeyValues) -> (Vec<&'static str>, Vec<&'static str>) {
    match values {
        KeyValues::Amount(1.0) => (vec!["0.5", "1"], vec!["-1", "1.5", "'x'"]),
        KeyValues::Amount(_) => (vec!["0.5", "3"], vec!["-1", "'x'"]),
        KeyValues::Whole(..) => (vec!["2"], vec!["0", "1.5", "-1", "'x'"]),
        KeyValues::Choice(names) => {
            let quoted: Vec<&str> = names.iter().map(|name| &*format!("'{name}'").leak()).collect();
            (quoted, vec!["'x'", "1"])
        }
        KeyValues::Reach => (vec!["1", "'place'"], vec!["-1", "'x'", "1.5"]),
        KeyValues::Flag => (vec!["true", "false"], vec!["1"]),
        KeyValues::Names => (vec!["'x'", "['x', 'y']"], vec!["''", "1", "[]"]),
        KeyValues::Numbers => (vec!["1", "'0-1'"], vec!["-1", "'x'", "[]"]),
        KeyValues::Ranks => (vec!["[1, 0]"], vec!["[1, 1]", "1", "[-1]"]),
    }
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
            for schema in schema["items"]["oneOf"].as_array().into_iter().flatten() {
                descend(schema, &format!("{place}.{}", schema["properties"]["kind"]["const"]));
            }
        }
    }
    for schema in [
        pdes_replay::config_schema(),
        pdes_replay::sweep_schema(),
        pdes_replay::platform_schema(),
        pdes_replay::hypotheses_schema(),
    ] {
        descend(&schema, schema["title"].as_str().unwrap());
    }
}

/// A default in the schema that is a value can be written without a change: the schema and the program agree.
#[test]
fn defaults_are_valid_values() {
    let schema = pdes_replay::config_schema();
    let validator = jsonschema::draft7::new(&schema).unwrap();
    for (section, keys) in schema["properties"].as_object().unwrap() {
        // A list of tables has keys that are required.
        for (key, value) in keys["properties"].as_object().into_iter().flatten() {
            let names = ["default", "x-default"].map(|name| !value[name].is_null());
            assert!(names[0] != names[1], "[{section}] {key} has no default, or two");
            if names[0] {
                let config = serde_json::json!({ section: { key: value["default"] } });
                assert!(validator.is_valid(&config), "{config}");
            }
        }
    }
}
