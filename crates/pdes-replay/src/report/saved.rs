//! Reports that were written before.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Breakdown, CriticalPath, FORMAT, Histograms, Imbalance, Links, VERSION};

/// What a report says of where the time went.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SavedReport {
    /// The end of the last rank \[s\].
    pub simulated_time_s: f64,
    /// Ranks of the run.
    pub ranks: u32,
    /// What was replayed, and on what.
    pub parameters: SavedParameters,
    /// How unequal the computations of ranks are.
    #[serde(default)]
    pub imbalance: Option<Imbalance>,
    /// Where the time went; `None` where nobody asked.
    #[serde(default)]
    pub breakdown: Option<Breakdown>,
    /// How messages and waits were distributed; `None` where nobody asked.
    #[serde(default)]
    pub histograms: Option<Histograms>,
    /// What led to the end of the last rank; `None` where nobody asked.
    #[serde(default)]
    pub critical_path: Option<CriticalPath>,
    /// What links carried; `None` where nobody asked.
    #[serde(default)]
    pub links: Option<Links>,
}

/// The parameters of a run that name it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SavedParameters {
    /// The trace, as it was named.
    pub trace: String,
    /// The platform's file, or `"inline"`.
    pub platform: String,
    /// The network model.
    pub model: String,
}

/// What every report says of itself.
#[derive(Deserialize)]
struct Heading {
    format: String,
    version: u32,
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be read.
    #[error("the report {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is no report of this program.
    #[error("{}: expected a report that pdes-replay wrote (--report FILE): {message}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The report has another version of the format.
    #[error("the report {}: found version {found} of the format, expected {VERSION}: write it anew", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl SavedReport {
    /// Reads a report.
    ///
    /// # Errors
    /// Where the file cannot be read, or is not a report of this version.
    pub fn from_path(path: &Path) -> Result<Self, ReportError> {
        read(path)
    }
}

/// Reads what a report says, as far as somebody asks.
pub(super) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ReportError::Read { path: path.to_owned(), source })?;
    let other = |message: String| ReportError::Other { path: path.to_owned(), message };
    let heading: Heading = serde_json::from_str(&text).map_err(|error| other(error.to_string()))?;
    if heading.format != FORMAT {
        return Err(other(format!("found the format {:?}", heading.format)));
    }
    if heading.version != VERSION {
        return Err(ReportError::Version { path: path.to_owned(), found: heading.version });
    }
    serde_json::from_str(&text).map_err(|error| other(error.to_string()))
}
