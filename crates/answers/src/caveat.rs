//! The caveat of all answers: they are about the model, not the machine.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Sentence that stands in every answer.
const IN_THE_MODEL: &str = "These are causes in the model, not on a real machine";

/// Known difference between the model and the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Caveat {
    /// Error of the run time that `validate` found, as a part of the measured time; null if nothing was compared.
    pub validation_error: Option<f64>,
}

/// The reason why a comparison with measured times cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaveatError {
    /// The file cannot be read.
    #[error("the comparison {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is no comparison with a measured run time.
    #[error("the comparison {}: {message}; expected the file of pdes-replay validate --report", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Content that was found.
        message: String,
    },
}

/// The part of a comparison that is read.
#[derive(Deserialize)]
struct Comparison {
    run_time: RunTime,
}

#[derive(Deserialize)]
struct RunTime {
    error: Option<f64>,
}

impl Caveat {
    /// Reads the error of the run time from a comparison that `validate` wrote.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or compares no run time.
    pub fn from_validation(path: &Path) -> Result<Self, CaveatError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| CaveatError::Read { path: path.to_owned(), source })?;
        let format = |message: String| CaveatError::Format { path: path.to_owned(), message };
        let found: Comparison = serde_json::from_str(&text).map_err(|error| format(error.to_string()))?;
        match found.run_time.error {
            Some(error) => Ok(Self { validation_error: Some(error) }),
            None => Err(format("no run time was measured".to_owned())),
        }
    }

    /// Returns the caveat as a sentence.
    pub fn sentence(&self) -> String {
        match self.validation_error {
            Some(error) => {
                format!(
                    "{IN_THE_MODEL}, whose run time was off by {:+.1} % where it was compared.",
                    100.0 * error
                )
            }
            None => format!("{IN_THE_MODEL}: validate compares the two."),
        }
    }
}
