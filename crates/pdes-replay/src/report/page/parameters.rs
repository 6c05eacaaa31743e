//! Table of all parameters that can change the result.

use figures::{Section, table};
use serde_json::Value;

use super::SavedReport;

pub(super) fn section(run: &SavedReport) -> Section {
    let mut section = Section::new("parameters", "Parameters");
    let rows: Vec<_> = flat(&run.parameters).into_iter().map(|(key, value)| vec![key, value]).collect();
    section.rest = maud::html! { details { summary { (rows.len()) " parameters of the run" } (table(&["parameter", "value"], 2, &rows)) } };
    section
}

/// Flattens a JSON value to rows of the path of keys and the value, in the order of the report.
pub(super) fn flat(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    collect(value, String::new(), &mut rows);
    rows
}

fn collect(value: &Value, path: String, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(value, path, rows);
            }
        }
        Value::String(text) => rows.push((path, text.clone())),
        Value::Null => rows.push((path, "-".to_owned())),
        other => rows.push((path, other.to_string())),
    }
}
