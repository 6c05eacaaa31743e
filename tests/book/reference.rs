//! The tables of keys in the book are generated from the types that read the files.

mod combinations;

use std::fmt::Write as _;
use std::path::Path;

use pdes_replay::{Rule, Scope};
use serde_json::Value;
use trace_tools::transform::{Subject, TRANSFORMS};

use crate::{read, repository};

const BEGIN: &str = "<!-- Made from the program's types by: UPDATE_BOOK=1 cargo test -p pdes-replay --test book reference -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_configuration_is_that_of_the_program() {
    let schema = pdes_replay::config_schema();
    let page = Page("configuration.md");
    let mut text = String::new();
    for (name, section) in schema["properties"].as_object().unwrap() {
        let (heading, keys) = heading(name, section);
        writeln!(text, "\n### `{heading}`\n\n{}{}\n", sentence(section), page.link(section)).unwrap();
        page.table(keys, &format!("{name}."), &mut text);
    }
    page.check(&text);
}

#[test]
fn the_fields_of_platforms_are_those_of_the_program() {
    let schema = pdes_replay::platform_schema();
    let page = Page("platforms.md");
    let mut text = String::new();
    for (name, field) in schema["properties"].as_object().unwrap() {
        let (heading, fields) = heading(name, field);
        writeln!(text, "\n### `{heading}`\n\n{}\n", sentence(field)).unwrap();
        page.table(fields, "", &mut text);
    }
    page.check(&text);
}

#[test]
fn the_transformations_are_those_of_the_program() {
    let mut text = String::new();
    for kind in &TRANSFORMS {
        let keys = kind.keys.iter().map(|key| format!("`{}`", key.name));
        let about: Vec<String> = [kind.subject.name().to_owned()].into_iter().chain(keys).collect();
        writeln!(text, "- **`{}`** ({}): {}", kind.key, about.join(", "), kind.semantics).unwrap();
    }
    text.push_str("\nKeys of selectors:\n\n");
    for subject in [
        Subject::Computations,
        Subject::Messages,
        Subject::Collectives,
        Subject::Polls,
        Subject::Receives,
        Subject::Creations,
        Subject::Accesses,
        Subject::Visits,
    ] {
        let keys: Vec<String> = subject.keys().iter().map(|key| format!("`{key}`")).collect();
        writeln!(text, "- {}: {}", subject.name(), keys.join(", ")).unwrap();
    }
    Page("what-if.md").check(&text);
}

#[test]
fn the_problems_and_variables_are_those_of_the_program() {
    let mut text = String::new();
    for (scope, of) in Scope::NAMED.map(|(_, scope)| scope_name(scope)) {
        writeln!(text, "\nProblems of {of}:\n").unwrap();
        for rule in Rule::own().iter().filter(|rule| rule.scope == scope) {
            writeln!(text, "- **{}**: {}", rule.name, rule.description).unwrap();
        }
    }
    let run = Scope::Run.variables();
    for (scope, of) in Scope::NAMED.map(|(_, scope)| scope_name(scope)) {
        writeln!(text, "\nVariables of {of}:\n").unwrap();
        let is_own = |name: &str| scope == Scope::Run || run.iter().all(|(known, _)| *known != name);
        let own: Vec<_> = scope.variables().into_iter().filter(|(name, _)| is_own(name)).collect();
        for same in own.chunk_by(|(_, one), (_, next)| one == next) {
            let names: Vec<String> = same.iter().map(|(name, _)| format!("`{name}`")).collect();
            writeln!(text, "- {}: {}", names.join(", "), same[0].1.trim()).unwrap();
        }
    }
    Page("diagnosis.md").check(&text);
}

fn scope_name(scope: Scope) -> (Scope, &'static str) {
    let name = match scope {
        Scope::Place => "a place",
        Scope::Link => "a link",
        Scope::Run => "the run",
    };
    (scope, name)
}

/// Returns the heading of a section in TOML, and the schema of its keys, of which a list has several.
fn heading<'s>(name: &str, section: &'s Value) -> (String, &'s Value) {
    match section["items"].is_object() {
        true => (format!("[[{name}]]"), &section["items"]),
        false => (format!("[{name}]"), section),
    }
}

/// A page with generated tables.
struct Page(&'static str);

impl Page {
    /// Compares the tables in the page with generated ones, or replaces them.
    fn check(&self, made: &str) {
        let path = repository().join("docs").join(self.0);
        let text = read(&path);
        let (before, rest) = text.split_once(BEGIN).unwrap_or_else(|| panic!("{} lacks: {BEGIN}", self.0));
        let (found, after) = rest.split_once(END).unwrap_or_else(|| panic!("{} lacks: {END}", self.0));
        let made = format!("\n{}\n", made.trim_start());
        if std::env::var_os("UPDATE_BOOK").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
            return;
        }
        let differs = found.lines().zip(made.lines()).find(|(found, made)| found != made);
        assert!(
            found == made,
            "docs/{} is not what the types say: UPDATE_BOOK=1 cargo test -p pdes-replay --test book reference\n{differs:#?}",
            self.0
        );
    }

    fn table(&self, section: &Value, prefix: &str, text: &mut String) {
        let required: Vec<&Value> = section["required"].as_array().into_iter().flatten().collect();
        text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        for (key, schema) in section["properties"].as_object().unwrap() {
            let default = if required.iter().any(|name| *name == key) {
                "required".to_owned()
            } else {
                default(schema)
            };
            let (value, meaning, link) = (value(schema), sentence(schema), self.link(schema));
            writeln!(text, "| `{prefix}{key}` | {value} | {default} | {meaning}{link} |").unwrap();
        }
    }

    fn link(&self, schema: &Value) -> String {
        let page = schema["x-page"].as_str().filter(|page| !page.starts_with(self.0));
        page.map_or(String::new(), |page| {
            let name = Path::new(page.split('#').next().unwrap()).file_stem().unwrap().to_str().unwrap();
            format!(" ([{name}]({page}))")
        })
    }
}

/// Returns the form of a value: its choices if they are few, otherwise its type; and the unit of a number.
fn value(schema: &Value) -> String {
    let unit = schema["x-unit"].as_str().map_or(String::new(), |unit| format!(" [{unit}]"));
    let mut kinds = kinds(schema);
    for kind in kinds.iter_mut().filter(|kind| ["number", "integer"].contains(&kind.as_str())) {
        kind.push_str(&unit);
    }
    kinds.join(", ")
}

fn kinds(schema: &Value) -> Vec<String> {
    if let Some(alternatives) = ["oneOf", "anyOf"].iter().find_map(|list| schema[list].as_array()) {
        return alternatives.iter().flat_map(kinds).collect();
    }
    match (&schema["const"], &schema["enum"]) {
        (Value::String(name), _) => vec![format!("`{name:?}`")],
        (_, Value::Array(names)) if names.len() > 8 => vec!["name".to_owned()],
        (_, Value::Array(names)) => names.iter().map(|name| format!("`{name}`")).collect(),
        _ => vec![schema["type"].as_str().map_or("table", kind).to_owned()],
    }
}

/// Returns the name of a type in TOML.
fn kind(name: &str) -> &str {
    match name {
        "object" => "table",
        "array" => "list",
        other => other,
    }
}

fn default(schema: &Value) -> String {
    match (&schema["default"], &schema["x-default"]) {
        (Value::Null, Value::String(text)) => text.clone(),
        (Value::Null, _) => "none".to_owned(),
        (Value::Number(number), _) if number.is_f64() => format!("`{:e}`", number.as_f64().unwrap()),
        (value, _) => format!("`{value}`"),
    }
}

/// Returns the description as one line of a table.
fn sentence(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_else(|| panic!("no description: {schema}"))
}
