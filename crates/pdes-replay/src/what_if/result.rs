//! Results of the program and of hypotheses about it, as written in JSON.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;
use trace_tools::transform::ORIGINAL;

use super::{HopBytes, Verification};
use crate::report::{ActionTotal, CriticalPath, Parts, RegionParts, Report};

/// Number of parts of a time that are no wait states, before these.
pub(super) const OTHER_PARTS: usize = 4;

/// The results of the program and of hypotheses about it, as written in JSON.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfResults {
    /// The program itself, named `original`, and then the hypotheses in their order.
    pub hypotheses: Vec<HypothesisResult>,
    /// The program as it was really modified; null if its trace was not given.
    pub modified: Option<HypothesisResult>,
}

/// The result of the program, or of a hypothesis.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HypothesisResult {
    /// Name of the hypothesis.
    pub name: String,
    /// Source of the outcomes that depend on time: `"reenact"` or `"recorded"`.
    pub outcomes: &'static str,
    /// End time of the last rank \[s\]; null if the replay failed.
    pub simulated_time_s: Option<f64>,
    /// End time of the last rank \[ps\], exact.
    pub simulated_time_ps: Option<u64>,
    /// Change of the simulated time relative to that of the program: -0.1 is a tenth less.
    pub change: Option<f64>,
    /// Energy of the run \[J\]; null unless `energy.enabled` is set.
    pub energy_j: Option<f64>,
    /// True if all results of all ranks are those of the program.
    pub is_same: bool,
    /// A hash over the results of all ranks.
    pub digest: Option<String>,
    /// Time of all ranks in each wait state \[s\]; null if waits are not analysed.
    pub wait_states: Option<BTreeMap<&'static str, f64>>,
    /// Number of messages sent, point-to-point and inside collectives.
    pub messages: Option<u64>,
    /// Payload of these messages \[B\].
    pub message_bytes: Option<u64>,
    /// Bytes times links of messages between two ranks; null if ranks are placed as in the program.
    pub hop_bytes: Option<HopBytes>,
    /// Number of outcomes that simulated time has decided.
    pub decided_outcomes: u64,
    /// Number of these that differ from the recorded run.
    pub different_outcomes: u64,
    /// Warnings that a user should know before trusting the result.
    pub warnings: Vec<String>,
    /// Cause, if the replay failed, as in a deadlock.
    pub error: Option<String>,
    /// Comparison with the modified program; null if its trace was not given.
    pub verification: Option<Verification>,
    /// The result with the other source of outcomes than configured; null if the course of the program does not depend on time.
    pub other_outcomes: Option<Box<HypothesisResult>>,
    /// Time of all ranks by part, if waits are analysed.
    #[serde(skip)]
    pub total: Option<Parts>,
    /// The same by call site.
    #[serde(skip)]
    pub sites: Vec<RegionParts>,
    /// Time of all ranks by kind of action.
    #[serde(skip)]
    pub actions: Vec<ActionTotal>,
    /// The critical path, if it is analysed.
    #[serde(skip)]
    pub critical_path: Option<CriticalPath>,
}

impl HypothesisResult {
    pub(super) fn new(name: &str, report: Report) -> Self {
        let (total, sites) = match report.sections.breakdown {
            Some(breakdown) => (Some(breakdown.total), breakdown.regions),
            None => (None, Vec::new()),
        };
        Self {
            name: name.to_owned(),
            outcomes: report.parameters.mpi.outcomes,
            simulated_time_s: Some(report.simulated_time_s),
            simulated_time_ps: Some(report.simulated_time_ps),
            energy_j: report.sections.energy.map(|energy| energy.total_j),
            digest: Some(report.digest),
            wait_states: total.map(|total| total.named().into_iter().skip(OTHER_PARTS).collect()),
            messages: Some(report.messages),
            message_bytes: Some(report.message_bytes),
            decided_outcomes: report.outcomes.decided,
            different_outcomes: report.outcomes.different,
            warnings: report.warnings,
            total,
            sites,
            actions: report.time_by_action,
            critical_path: report.sections.critical_path,
            ..Self::default()
        }
    }

    pub(super) fn failed(name: &str, outcomes: &'static str, error: &impl Display) -> Self {
        Self { name: name.to_owned(), outcomes, error: Some(error.to_string()), ..Self::default() }
    }

    /// Returns the result, and that with the other source of outcomes, with their titles.
    pub fn titled(&self) -> impl Iterator<Item = (String, &Self)> {
        let other = |other: &Self| match other.outcomes {
            "recorded" => format!("{}, as recorded", self.name),
            _ => format!("{}, decided by time", self.name),
        };
        let others = self.other_outcomes.as_deref().map(|result| (other(result), result));
        std::iter::once((self.name.clone(), self)).chain(others)
    }

    /// Compares the result with those of the program and, if there is one, of the modified program.
    fn compare(&mut self, original: &Self, modified: Option<&Self>) {
        let other = original.other_outcomes.as_deref();
        // With the same source of outcomes, as far as it matters to the program.
        let original = other.filter(|other| other.outcomes == self.outcomes).unwrap_or(original);
        self.is_same = self.digest.is_some() && self.digest == original.digest;
        self.change = match (self.simulated_time_s, original.simulated_time_s) {
            (Some(own), Some(all)) if all > 0.0 => Some(own / all - 1.0),
            _ => self.is_same.then_some(0.0),
        };
        let predicts = self.name != ORIGINAL;
        self.verification =
            modified.filter(|_| predicts).and_then(|modified| Verification::new(self, original, modified));
    }

    /// Returns the change in words.
    pub fn describe_change(&self) -> String {
        match self.change {
            _ if self.is_same && self.name != ORIGINAL => "changes nothing".to_owned(),
            Some(change) => format!("{:+.2} %", 100.0 * change),
            None => "-".to_owned(),
        }
    }
}

impl WhatIfResults {
    pub(super) fn new(mut hypotheses: Vec<HypothesisResult>, mut modified: Option<HypothesisResult>) -> Self {
        let original = hypotheses[0].clone();
        for result in &mut hypotheses {
            if let Some(other) = &mut result.other_outcomes {
                other.compare(&original, modified.as_ref());
            }
            result.compare(&original, modified.as_ref());
        }
        if let Some(modified) = &mut modified {
            modified.compare(&original, None);
        }
        Self { hypotheses, modified }
    }

    /// Returns the program and then the hypotheses, those that save most first and failed ones last.
    pub fn by_gain(&self) -> Vec<&HypothesisResult> {
        let mut sorted: Vec<&HypothesisResult> = self.hypotheses.iter().collect();
        // The sort is stable: equal times keep their order.
        sorted[1..].sort_by_key(|result| result.simulated_time_ps.unwrap_or(u64::MAX));
        sorted
    }

    /// Returns the number of replays that failed.
    pub fn failures(&self) -> usize {
        self.hypotheses.iter().chain(&self.modified).filter(|result| result.error.is_some()).count()
    }
}
