//! The results of a sweep as one HTML page, and as pictures.

use std::path::{Path, PathBuf};

use figures::{Explorer, Figure, PictureFormat, WriteError, write_figures};
use serde_json::value::to_raw_value;

use super::plot::{bars, lines};
use super::{SweepResults, SweepRow};
use crate::report::FOOTER;

impl SweepResults {
    /// Writes each figure of the comparison to a file in a directory; returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or a file cannot be written.
    pub fn write_pictures(
        &self,
        directory: &Path,
        format: PictureFormat,
    ) -> Result<Vec<PathBuf>, WriteError> {
        let figures: Vec<Figure> = bars(self).into_iter().chain(lines(self)).collect();
        write_figures(figures.iter(), directory, format)
    }

    /// Writes the comparison as one self-contained HTML page.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_page(&self, title: &str, path: &Path) -> Result<(), WriteError> {
        let failed =
            |error: serde_json::Error| WriteError::Write { path: path.to_owned(), source: error.into() };
        let data = [
            ("axes", to_raw_value(&self.axes).map_err(failed)?),
            ("varying", to_raw_value(&self.varying()).map_err(failed)?),
            (
                "positions",
                to_raw_value(&(0..self.axes.len()).map(|axis| self.positions(axis)).collect::<Vec<_>>())
                    .map_err(failed)?,
            ),
            ("rows", to_raw_value(&self.rows).map_err(failed)?),
        ];
        Explorer { title, data: &data, scripts: &[include_str!("page.js")], footer: FOOTER }.write(path)
    }

    /// Returns the name of a row: its values of these axes.
    pub(super) fn name(row: &SweepRow, axes: &[usize], between: &str) -> String {
        axes.iter().map(|&axis| row.labels[axis].as_str()).collect::<Vec<_>>().join(between)
    }
}
