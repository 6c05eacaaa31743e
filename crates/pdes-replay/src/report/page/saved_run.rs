//! The part of a report that a page shows; missing fields are left out.

use std::path::Path;

use netmodel::Layout;
use serde::Deserialize;

use super::super::saved::{self, ReportError};
use super::super::{Breakdown, CriticalPath, Histograms, Imbalance, Links};

/// The data of a run that a page shows.
#[derive(Clone, Debug, Deserialize)]
pub struct SavedRun {
    pub(super) simulated_time_s: f64,
    pub(super) ranks: u32,
    pub(super) actions: u64,
    pub(super) messages: u64,
    pub(super) message_bytes: u64,
    pub(super) digest: String,
    pub(super) time_by_action: Vec<ActionTime>,
    #[serde(default)]
    pub(super) imbalance: Option<Imbalance>,
    #[serde(default)]
    pub(super) breakdown: Option<Breakdown>,
    #[serde(default)]
    pub(super) histograms: Option<Histograms>,
    #[serde(default)]
    pub(super) critical_path: Option<CriticalPath>,
    #[serde(default)]
    pub(super) links: Option<Links>,
    #[serde(default)]
    pub(super) topology: Option<Layout>,
    /// All parameters that can change the result, including those unknown to this version.
    pub(super) parameters: serde_json::Value,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

/// The total of one kind of action.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ActionTime {
    pub(super) action: String,
    pub(super) count: u64,
    pub(super) time_s: f64,
}

impl SavedRun {
    /// Reads a report.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a report of this version.
    pub fn from_path(path: &Path) -> Result<Self, ReportError> {
        saved::read(path)
    }

    /// Returns a parameter that identifies the run, such as its trace.
    pub(super) fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).and_then(serde_json::Value::as_str).unwrap_or("-")
    }

    /// Returns the file name of the trace or the platform, which distinguishes runs at a glance.
    pub(super) fn file_name(&self, name: &str) -> String {
        let whole = self.parameter(name);
        Path::new(whole).file_name().map_or(whole.to_owned(), |last| last.to_string_lossy().into_owned())
    }
}
