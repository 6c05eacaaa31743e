//! Presentation of reports: one HTML page, or pictures, of one run or of the difference between two.

mod comparison;
pub(super) mod critical_path;
mod explorer;
mod grid;
pub(super) mod histograms;
pub(super) mod links;
pub(super) mod network;
pub(crate) mod part;
mod parts;
pub(super) mod ranks;
pub(super) mod sites;
mod timeline;

use std::path::{Path, PathBuf};

use figures::{Figure, PictureFormat, WriteError, write_figures};

use super::SavedReport;
use crate::diagnosis::Diagnosis;

pub(crate) use ranks::map as rank_map;
pub use timeline::{Timeline, TimelineError};

/// Text at the end of pages.
pub(crate) const FOOTER: &str = concat!("pdes-replay ", env!("CARGO_PKG_VERSION"));

/// The presentation of a run, or of the difference between two runs, as a page or as pictures.
#[derive(Debug)]
pub struct Presentation {
    run: SavedReport,
    other: Option<SavedReport>,
    timelines: Vec<Timeline>,
    diagnosis: Option<Diagnosis>,
}

impl Presentation {
    /// Creates the presentation of a run.
    pub fn new(run: SavedReport) -> Self {
        Self { run, other: None, timelines: Vec::new(), diagnosis: None }
    }

    /// Adds a timeline of each run.
    pub fn with_timelines(self, timelines: Vec<Timeline>) -> Self {
        Self { timelines, ..self }
    }

    /// Adds the sections of a diagnosis of the run, after the summary.
    pub fn with_diagnosis(mut self, diagnosis: Option<Diagnosis>) -> Self {
        self.diagnosis = diagnosis;
        self
    }

    /// Creates the presentation of the changes from the first run to the second.
    pub fn comparison(run: SavedReport, other: SavedReport) -> Self {
        Self { other: Some(other), ..Self::new(run) }
    }

    /// Writes the HTML page.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write_page(&self, path: &Path) -> Result<(), WriteError> {
        explorer::write(self, path)
    }

    /// Writes each figure to a file in a directory, which is created if necessary; returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or a file cannot be written.
    pub fn write_pictures(
        &self,
        directory: &Path,
        format: PictureFormat,
    ) -> Result<Vec<PathBuf>, WriteError> {
        write_figures(self.figures().iter(), directory, format)
    }

    fn figures(&self) -> Vec<Figure> {
        let run = &self.run;
        match &self.other {
            Some(other) => comparison::figures(run, other),
            None => {
                let diagnosis = self.diagnosis.iter().flat_map(Diagnosis::figures);
                let own = parts::figures(run).into_iter().chain(run.sections.figures(run));
                diagnosis.chain(own).collect()
            }
        }
    }
}
