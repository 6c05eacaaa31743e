//! The page of a report, which is explored: its data, for the scripts beside this file.

use std::collections::BTreeMap;
use std::path::Path;

use figures::{Explorer, WriteError};
use mpi_model::ActionKind;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::super::saved::flat;
use super::{FOOTER, Presentation, SavedReport, Timeline, part};
use crate::report::IdealMachines;

/// Scripts of the page, in the order in which they need each other.
const SCRIPTS: [&str; 14] = [
    include_str!("words.js"),
    include_str!("summary.js"),
    include_str!("jobs.js"),
    include_str!("ranks.js"),
    include_str!("call_tree.js"),
    include_str!("matrix.js"),
    include_str!("network.js"),
    include_str!("../../diagnosis/page.js"),
    include_str!("file_servers.js"),
    include_str!("energy.js"),
    include_str!("failures.js"),
    include_str!("timeline.js"),
    include_str!("comparison.js"),
    include_str!("report.js"),
];

/// Largest number of jobs, or of parameters that differ, in a title.
const MAX_NAMED: usize = 3;

/// Writes the page of one or two runs.
pub(super) fn write(shown: &Presentation, path: &Path) -> Result<(), WriteError> {
    let (run, other) = (&shown.run, shown.other.as_ref());
    let failed = |error: serde_json::Error| WriteError::Write { path: path.to_owned(), source: error.into() };
    let runs: Vec<&RawValue> = [Some(run), other].into_iter().flatten().map(|run| &*run.text).collect();
    let networks: Vec<_> = [Some(run), other].into_iter().flatten().map(network).collect();
    let timelines =
        shown.timelines.iter().map(Timeline::data).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let unlike = other.map(|other| run.unlike(other)).unwrap_or_default();
    let mut data = vec![
        ("runs", to_raw_value(&runs).map_err(failed)?),
        ("parts", to_raw_value(&part::colours()).map_err(failed)?),
        ("pathParts", to_raw_value(&part::path_colours()).map_err(failed)?),
        ("calls", to_raw_value(&ActionKind::ALL.map(ActionKind::name).as_slice()).map_err(failed)?),
        ("unlike", to_raw_value(&unlike).map_err(failed)?),
        ("networks", to_raw_value(&networks).map_err(failed)?),
        ("timelines", to_raw_value(&timelines).map_err(failed)?),
    ];
    if other.is_none() {
        let parts = run.sections.ideal_machines.as_ref().map(IdealMachines::parts);
        data.push(("runTimeParts", to_raw_value(&parts).map_err(failed)?));
        data.push(("verdict", to_raw_value(&run.verdict()).map_err(failed)?));
    }
    if let Some(diagnosis) = &shown.diagnosis {
        data.push(("diagnosis", to_raw_value(&diagnosis.page_data()).map_err(failed)?));
    }
    let title = other.map_or_else(|| title(run), |other| difference(run, other));
    Explorer { title: &title, data: &data, scripts: &SCRIPTS, footer: FOOTER }.write(path)
}

fn title(run: &SavedReport) -> String {
    let (trace, platform) = (programs(run), file_name(run, "platform"));
    format!("{trace} on {platform} ({}, preset {})", run.parameter("model"), run.parameter("preset"))
}

/// Returns a title that says what differs: the trace, the platform, or the parameters.
fn difference(run: &SavedReport, other: &SavedReport) -> String {
    let [trace, second_trace] = &[run, other].map(programs);
    let [platform, second_platform] = &[run, other].map(|run| file_name(run, "platform"));
    if trace != second_trace && platform == second_platform {
        return format!("{trace} and {second_trace} on {platform}");
    }
    if trace != second_trace {
        return format!("{} and {}", title(run), title(other));
    }
    if platform != second_platform {
        return format!("{trace} on {platform} and on {second_platform}");
    }
    let changed = changed_parameters(run, other);
    let named =
        changed.iter().take(MAX_NAMED).map(|(key, [a, b])| format!("{key} {} and {}", short(a), short(b)));
    let rest = changed.len().saturating_sub(MAX_NAMED);
    let with = match changed.len() {
        0 => "twice".to_owned(),
        1..=MAX_NAMED => format!("with {}", named.collect::<Vec<_>>().join(", ")),
        _ => format!("with {} and {rest} more", named.collect::<Vec<_>>().join(", ")),
    };
    format!("{trace} on {platform} {with}")
}

/// Shortens the value of a parameter, such as a table of factors.
fn short(value: &str) -> String {
    const MAX_LENGTH: usize = 24;
    match value.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

/// Returns the parameters that differ, the model and the preset first, which determine others.
fn changed_parameters(run: &SavedReport, other: &SavedReport) -> Vec<(String, [String; 2])> {
    let [a, b] = [run, other].map(|run| flat(&run.parameters));
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &BTreeMap<String, String>, key| of.get(key).cloned().unwrap_or_else(|| "-".to_owned());
    let differ = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let mut changed: Vec<_> = differ.map(|key| (key.clone(), [value(&a, key), value(&b, key)])).collect();
    let first = ["trace", "platform", "hosts", "model", "preset", "mpi.collectives"];
    changed.sort_by_key(|(key, _)| first.iter().position(|name| name == key).unwrap_or(first.len()));
    // What a preset sets goes without saying.
    if changed.iter().any(|(key, _)| key == "preset") {
        changed.retain(|(key, _)| !key.starts_with("network."));
    }
    changed
}

/// Returns the cables of a network, with the numbers of their links, and the names of its switches; null without a regular network.
fn network(run: &SavedReport) -> serde_json::Value {
    let Some(layout) = run.sections.links.as_ref().and(run.sections.topology.as_ref()) else {
        return serde_json::Value::Null;
    };
    let Some(cables) = layout.cables() else { return serde_json::Value::Null };
    json!({
        "hosts": layout.hosts(),
        "switches": layout.switches(),
        "lower": cables.iter().map(|cable| cable.lower).collect::<Vec<_>>(),
        "upper": cables.iter().map(|cable| cable.upper).collect::<Vec<_>>(),
        "up": cables.iter().map(|cable| cable.up.index()).collect::<Vec<_>>(),
        "down": cables.iter().map(|cable| cable.down.index()).collect::<Vec<_>>(),
    })
}

/// Returns the file name of the trace or the platform, which distinguishes runs at a glance.
/// Returns what runs: the jobs of several, or the name of the trace.
fn programs(run: &SavedReport) -> String {
    match run.sections.jobs.as_ref().map(|jobs| &jobs.0[..]) {
        Some(jobs @ [_, _, ..]) if jobs.len() <= MAX_NAMED => {
            jobs.iter().map(|job| &*job.name).collect::<Vec<_>>().join(", ")
        }
        Some(jobs @ [_, _, ..]) => format!("{} jobs", jobs.len()),
        _ => file_name(run, "trace"),
    }
}

fn file_name(run: &SavedReport, name: &str) -> String {
    let whole = run.parameter(name);
    Path::new(whole).file_name().map_or(whole.to_owned(), |last| last.to_string_lossy().into_owned())
}
