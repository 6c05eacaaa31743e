//! Comparison of a predicted run with that of the program as it was really modified.

use std::collections::BTreeMap;

use serde::Serialize;

use super::HypothesisResult;

/// Comparison of a predicted run with that of the modified program. Times other than the run time are sums over all ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    /// End time of the last rank.
    pub run_time: Deviation,
    /// Time that the program takes less.
    pub gain: Deviation,
    /// Time by sort of action: computation, point-to-point, collective, files, other.
    pub sorts: Vec<Deviation>,
    /// Time by kind of action.
    pub calls: Vec<Deviation>,
    /// Time by wait state; null if waits are not analysed.
    pub wait_states: Option<Vec<Deviation>>,
}

/// A predicted time, and that of the modified program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deviation {
    /// Name of the time.
    pub name: String,
    /// Predicted time \[s\].
    pub predicted_s: f64,
    /// Time of the modified program \[s\].
    pub modified_s: f64,
    /// Predicted over modified time, minus 1; null if the latter is zero.
    pub deviation: Option<f64>,
}

impl Deviation {
    fn new(name: impl Into<String>, predicted_s: f64, modified_s: f64) -> Self {
        let deviation = (modified_s != 0.0).then(|| predicted_s / modified_s - 1.0);
        Self { name: name.into(), predicted_s, modified_s, deviation }
    }

    /// Returns the deviation in percent.
    pub fn describe(&self) -> String {
        match self.deviation {
            Some(deviation) => format!("{:+.4} %", 100.0 * deviation),
            None if self.predicted_s == 0.0 => "0".to_owned(),
            None => "-".to_owned(),
        }
    }
}

impl Verification {
    /// Compares a hypothesis with the modified program; `None` if a replay failed.
    pub(super) fn new(
        predicted: &HypothesisResult,
        original: &HypothesisResult,
        modified: &HypothesisResult,
    ) -> Option<Self> {
        let (own, truth) = (predicted.simulated_time_s?, modified.simulated_time_s?);
        let before = original.simulated_time_s?;
        let times = |result: &HypothesisResult, name: fn(&'static str) -> &'static str| {
            let mut times = BTreeMap::<&str, f64>::new();
            for action in &result.actions {
                *times.entry(name(action.action)).or_default() += action.time_s;
            }
            times
        };
        let by = |name| deviations(&times(predicted, name), &times(modified, name));
        let wait_states = predicted.wait_states.as_ref().zip(modified.wait_states.as_ref());
        Some(Self {
            run_time: Deviation::new("run time", own, truth),
            gain: Deviation::new("gain", before - own, before - truth),
            sorts: by(sort),
            calls: by(|name| name),
            wait_states: wait_states.map(|(own, truth)| deviations(own, truth)),
        })
    }

    /// Returns the comparisons that fit a short table: of the run as a whole, by sort of action, and by wait state.
    pub fn rows(&self) -> impl Iterator<Item = &Deviation> {
        let states = self.wait_states.iter().flatten();
        [&self.run_time, &self.gain].into_iter().chain(&self.sorts).chain(states)
    }
}

/// Compares times by name, those that are zero on both sides left out; the longest first.
fn deviations(predicted: &BTreeMap<&str, f64>, modified: &BTreeMap<&str, f64>) -> Vec<Deviation> {
    let mut names: Vec<&str> = predicted.keys().chain(modified.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let time = |times: &BTreeMap<&str, f64>, name: &str| times.get(name).copied().unwrap_or_default();
    let all = names.into_iter().map(|name| Deviation::new(name, time(predicted, name), time(modified, name)));
    let mut all: Vec<_> = all.filter(|times| times.predicted_s != 0.0 || times.modified_s != 0.0).collect();
    // The sort is stable: equal times keep the order of their names.
    all.sort_by(|one, other| other.modified_s.total_cmp(&one.modified_s));
    all
}

/// Returns the sort of a kind of action.
fn sort(action: &'static str) -> &'static str {
    match action {
        "compute" | "sleep" => "computation",
        "send" | "isend" | "recv" | "irecv" | "sendRecv" | "wait" | "waitall" | "test" | "waitany"
        | "waitsome" | "probe" | "iprobe" | "start" | "cancel" => "point-to-point",
        "marker" | "finalize" | "comm_split" => "other",
        action if action.starts_with("io-") => "files",
        _ => "collective",
    }
}
