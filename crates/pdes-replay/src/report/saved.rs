//! Reading of reports written by earlier runs.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Breakdown, CriticalPath, FORMAT, Histograms, Imbalance, Links, VERSION};

/// The analyses of a report that was read from a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SavedReport {
    /// End time of the last rank \[s\].
    pub simulated_time_s: f64,
    /// Number of ranks of the run.
    pub ranks: u32,
    /// Parameters that identify the run.
    pub parameters: SavedParameters,
    /// Load imbalance of the ranks.
    #[serde(default)]
    pub imbalance: Option<Imbalance>,
    /// Breakdown of the time; `None` if not requested in the run.
    #[serde(default)]
    pub breakdown: Option<Breakdown>,
    /// Histograms of messages and waits; `None` if not requested in the run.
    #[serde(default)]
    pub histograms: Option<Histograms>,
    /// Critical path to the end of the last rank; `None` if not requested in the run.
    #[serde(default)]
    pub critical_path: Option<CriticalPath>,
    /// Loads of links; `None` if not requested in the run.
    #[serde(default)]
    pub links: Option<Links>,
}

/// The parameters that identify a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SavedParameters {
    /// Path of the trace, as given.
    pub trace: String,
    /// Path of the platform, or `"inline"`.
    pub platform: String,
    /// The network model.
    pub model: String,
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
    /// The report has another version of the format.
    #[error("the report {}: found version {found} of the format, expected {VERSION}: write it anew", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the format in the file.
        found: u32,
    },
}

impl SavedReport {
    /// Reads a report.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a report of this version.
    pub fn from_path(path: &Path) -> Result<Self, ReportError> {
        read(path)
    }
}

/// Reads those fields of a report that `T` has.
pub(super) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ReportError::Read { path: path.to_owned(), source })?;
    let other = |message: String| ReportError::NotAReport { path: path.to_owned(), message };
    let heading: Header = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
    if heading.format != FORMAT {
        return Err(other(format!("found the format {:?}", heading.format)));
    }
    if heading.version != VERSION {
        return Err(ReportError::Version { path: path.to_owned(), found: heading.version });
    }
    serde_json::from_str(&text).map_err(|error| other(error.to_string()))
}
