//! The results of an ensemble as one HTML page.

use std::path::Path;

use figures::{Explorer, WriteError};
use serde_json::value::to_raw_value;

use super::EnsembleResults;
use crate::report::FOOTER;

impl EnsembleResults {
    /// Writes the distribution of times and all runs as one self-contained HTML page.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_page(&self, title: &str, path: &Path) -> Result<(), WriteError> {
        let failed =
            |error: serde_json::Error| WriteError::Write { path: path.to_owned(), source: error.into() };
        let data = [("ensemble", to_raw_value(self).map_err(failed)?)];
        Explorer { title, data: &data, scripts: &[include_str!("page.js")], footer: FOOTER }.write(path)
    }
}
