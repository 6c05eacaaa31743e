//! The table of what can be combined: the program's choice of the mode of execution, for each model and all pairs and triples of features.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use netmodel::flow::windows::WindowError;
use pdes_core::SimDuration;
use pdes_replay::{Execution, Feature, Model};

use super::Page;

/// The rows of the table, in the order of the type, with the pages of the book.
const FEATURES: [(Feature, &str, &str); 29] = [
    (Feature::Threads, "threads", "parallel.md"),
    (Feature::Processes, "processes", "parallel.md#processes"),
    (Feature::Checkpoints, "checkpoints", "checkpoints.md"),
    (Feature::FastForward, "fast-forward", "fast-forward.md"),
    (Feature::LinkLoads, "link loads", "links.md"),
    (Feature::HostLoads, "energy", "energy.md"),
    (Feature::Noise, "noise", "noise.md"),
    (Feature::Offload, "accelerators", "model.md#accelerators"),
    (Feature::SharedAccelerators, "accelerators of several hosts", "model.md#accelerators"),
    (Feature::Changes, "changes of resources", "jobs.md#profiles"),
    (Feature::MessageRouting, "chosen routes", "model.md#messages-that-share-links-flow"),
    (Feature::CriticalPath, "critical path", "critical-path.md"),
    (Feature::Timeline, "timeline", "timelines.md"),
    (Feature::Profile, "profile", "parallel.md#profile"),
    (Feature::Certificate, "certificate", "certificates.md"),
    (Feature::Partition, "partition", "parallel.md#partitions"),
    (Feature::RegionCosts, "region costs", "epochs.md#on-several-threads-and-processes"),
    (Feature::Text, "text", "traces.md"),
    (Feature::Code, "programs in code", "traces.md#programs-in-code"),
    (Feature::Graph, "GOAL schedules", "goal.md"),
    (Feature::Files, "files on devices", "storage.md"),
    (Feature::FileSystems, "file systems", "storage.md"),
    (Feature::RemoteFiles, "devices of other hosts", "storage.md#what-it-works-with"),
    (Feature::SharedPointers, "shared pointers", "storage.md#calls"),
    (Feature::Locks, "locks of windows", "model.md#one-sided-communication"),
    (Feature::Programs, "several programs", "jobs.md"),
    (Feature::Launches, "repetitions of jobs", "jobs.md#repetitions"),
    (Feature::Scheduling, "scheduled jobs", "scheduling.md"),
    (Feature::Deaths, "deaths of hosts", "failures.md#several-jobs"),
];

/// A model and its parameters: a column of the table.
struct Column {
    heading: &'static str,
    model: &'static str,
    has_epochs: bool,
    window: Result<SimDuration, WindowError>,
}

#[test]
fn the_combinations_are_those_of_the_program() {
    let (window, merged) = (Ok(SimDuration::from_picos(1)), Err(WindowError::Inseparable));
    let column = |heading, model, has_epochs, window| Column { heading, model, has_epochs, window };
    let columns = [
        column("`contention-free`", "contention-free", false, window),
        column("exact `flow`", "flow", false, merged),
        column("exact `flow`, [separable](parallel.md#exact-contention-on-threads)", "flow", false, window),
        column("`flow` with [epochs](epochs.md)", "flow", true, window),
        column("[`packets`](packets.md)", "packets", false, merged),
        column("[`loggops`](goal.md)", "loggops", false, merged),
    ];
    // Epochs are a column.
    assert_eq!(FEATURES.len(), Feature::Deaths as usize, "the last feature");
    let mut reasons = Vec::new();
    let mut text = format!("| | {} |\n", columns.each_ref().map(|column| column.heading).join(" | "));
    writeln!(text, "|---|{}", "---|".repeat(columns.len())).unwrap();
    for (feature, name, page) in FEATURES {
        let cells = columns.each_ref().map(|column| column.cell(feature, &mut reasons));
        write!(text, "| [{name}]({page}) |").unwrap();
        for (index, cell) in cells.iter().enumerate() {
            let is_repeated =
                cell.starts_with("not") && index.checked_sub(1).is_some_and(|left| cells[left] == *cell);
            write!(text, " {} |", if is_repeated { "←" } else { cell.as_str() }).unwrap();
        }
        text.push('\n');
    }
    text.push('\n');
    (1..).zip(&reasons).for_each(|(number, reason)| writeln!(text, "{number}. {reason}").unwrap());
    Page("limits.md").check(&text);
}

impl Column {
    /// Returns the reason why a feature cannot be had beside others.
    fn obstacle(&self, feature: Feature, others: &[Feature]) -> Option<String> {
        let mut features: BTreeSet<Feature> = others.iter().copied().chain([feature]).collect();
        features.extend(self.has_epochs.then_some(Feature::Epochs));
        let model = Model::find(self.model).expect("it is in the registry");
        let execution = Execution::of(model, &features, 2, || self.window);
        execution.obstacle(feature).map(ToString::to_string)
    }

    /// Returns what this model has of a feature, and the numbers of the reasons against it.
    fn cell(&self, feature: Feature, reasons: &mut Vec<String>) -> String {
        let mut number = |reason: String| {
            let known = reasons.iter().position(|known| *known == reason);
            known.unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            }) + 1
        };
        if let Some(reason) = self.obstacle(feature, &[]) {
            return format!("no ({})", number(reason));
        }
        // What the model does not have at all needs no pairs, and what is in a pair no triples.
        let has = |other: &(Feature, &str, &str)| other.0 != feature && self.obstacle(other.0, &[]).is_none();
        let mut conflicts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut others = Vec::new();
        for (other, name, _) in FEATURES.into_iter().filter(has) {
            match self.obstacle(feature, &[other]) {
                Some(reason) => conflicts.entry(number(reason)).or_default().push(name.to_owned()),
                None => others.push((other, name)),
            }
        }
        for (index, (one, name)) in others.iter().enumerate() {
            for (other, other_name) in &others[index + 1..] {
                if let Some(reason) = self.obstacle(feature, &[*one, *other]) {
                    conflicts.entry(number(reason)).or_default().push(format!("{name} and {other_name}"));
                }
            }
        }
        let list = |(number, others): (usize, Vec<String>)| format!("{} ({number})", others.join(", "));
        let conflicts: Vec<String> = conflicts.into_iter().map(list).collect();
        if conflicts.is_empty() { "yes".to_owned() } else { format!("not with {}", conflicts.join("; ")) }
    }
}
