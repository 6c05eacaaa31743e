//! Reading of reports written by earlier runs.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use replay::file_kind::{FileKind, recognize};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{FORMAT, Imbalance, Sections, VERSION};

/// A report that was read from a file. Analyses that were not requested in the run are `None`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SavedReport {
    /// End time of the last rank \[s\].
    pub simulated_time_s: f64,
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Number of actions of the run.
    pub actions: u64,
    /// Number of messages sent.
    pub messages: u64,
    /// Payload of these messages \[B\].
    pub message_bytes: u64,
    /// A hash over the results of all ranks.
    pub digest: String,
    /// Simulated time by kind of action, summed over ranks.
    pub time_by_action: Vec<SavedActionTotal>,
    /// Load imbalance of the ranks.
    pub imbalance: Option<Imbalance>,
    /// Sections that not every run has.
    #[serde(skip)]
    pub sections: Sections,
    /// The text of the file.
    #[serde(skip)]
    pub(crate) text: ReportText,
    /// All parameters that can change the result, including those unknown to this version.
    pub parameters: serde_json::Value,
    /// Warnings of the run.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Text of a report.
#[derive(Clone, Debug)]
pub(crate) struct ReportText(Box<RawValue>);

impl Default for ReportText {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl Deref for ReportText {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

/// Equal fields make equal reports, whatever the layout of the text.
impl PartialEq for ReportText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The time of one kind of action in a report that was read from a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SavedActionTotal {
    /// Name of the action in a trace.
    pub action: String,
    /// Number of actions.
    pub count: u64,
    /// Simulated time spent in them \[s\].
    pub time_s: f64,
}

/// The fields that identify the format.
#[derive(Deserialize)]
struct Header {
    format: String,
    version: u32,
}

/// The reason why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be read.
    #[error("the report {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a report of this program.
    #[error("{}: expected a report that pdes-replay wrote (--report FILE): {message}", path.display())]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// Cause.
        message: String,
    },
    /// The file is of another kind.
    #[error("{}: {found}", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Kind of the file.
        found: FileKind,
    },
    /// The report has another version of the format.
    #[error("the report {}: found version {found} of the format, expected {VERSION}: write it anew", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the format in the file.
        found: u32,
    },
}

impl ReportError {
    /// Returns whether the file is of another kind: misuse rather than a failure.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::OtherFile { .. })
    }
}

impl SavedReport {
    /// Reads a report.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a report of this version.
    pub fn from_path(path: &Path) -> Result<Self, ReportError> {
        let path_of = || path.to_owned();
        let recognized = || Some(ReportError::OtherFile { path: path_of(), found: recognize(path)? });
        let invalid = |message: String| ReportError::NotAReport { path: path_of(), message };
        let other = |message: String| recognized().unwrap_or_else(|| invalid(message));
        let text = std::fs::read(path).map_err(|source| {
            recognized().unwrap_or_else(|| ReportError::Read { path: path_of(), source })
        })?;
        let text = String::from_utf8(text).map_err(|_| other("found a binary file".to_owned()))?;
        let heading: Header = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
        if heading.format != FORMAT {
            return Err(other(format!("found the format {:?}", heading.format)));
        }
        if heading.version != VERSION {
            return Err(ReportError::Version { path: path.to_owned(), found: heading.version });
        }
        // Sections apart: to flatten them, serde would copy all values.
        let read = || {
            let (sections, all) = (serde_json::from_str(&text)?, serde_json::from_str(&text)?);
            Ok(Self { sections, text: ReportText(RawValue::from_string(text.clone())?), ..all })
        };
        read().map_err(|error: serde_json::Error| invalid(error.to_string()))
    }

    /// Returns what makes another run one of another program, a sentence for each: the times of such runs are not those of the same work.
    pub fn unlike(&self, other: &Self) -> Vec<String> {
        let numbers = |of: &Self| {
            [
                ("ranks", u64::from(of.ranks)),
                ("actions", of.actions),
                ("messages", of.messages),
                ("bytes in messages", of.message_bytes),
            ]
        };
        let differ = numbers(self).into_iter().zip(numbers(other)).filter(|((_, a), (_, b))| a != b);
        let differ: Vec<String> = differ.map(|((name, a), (_, b))| format!("{name}: {a} and {b}")).collect();
        let traces = [self.parameter("trace"), other.parameter("trace")];
        let mut warnings = Vec::new();
        if !differ.is_empty() {
            warnings.push(format!("A and B are not runs of the same program: {}", differ.join("; ")));
        } else if traces[0] != traces[1] {
            let [a, b] = traces;
            warnings.push(format!(
                "A and B are runs of different traces, with as many ranks, actions and messages: {a} and {b}"
            ));
        }
        warnings
    }

    /// Returns a parameter that identifies the run: `"trace"` and `"platform"` are paths as given, `"model"` is the network model.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).and_then(serde_json::Value::as_str).unwrap_or("-")
    }
}

/// Flattens a JSON value to the path of keys and the value.
pub(super) fn flat(value: &serde_json::Value) -> BTreeMap<String, String> {
    fn collect(value: &serde_json::Value, path: &str, rows: &mut BTreeMap<String, String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(value, &path, rows);
                }
            }
            serde_json::Value::String(text) => drop(rows.insert(path.to_owned(), text.clone())),
            serde_json::Value::Null => {}
            other => drop(rows.insert(path.to_owned(), other.to_string())),
        }
    }
    let mut rows = BTreeMap::new();
    collect(value, "", &mut rows);
    rows
}
