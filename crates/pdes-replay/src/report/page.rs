//! Presentation of reports: one HTML page, or pictures, of one run or of the difference between two.

mod comparison;
pub(super) mod critical_path;
mod grid;
pub(super) mod histograms;
pub(super) mod links;
pub(super) mod network;
mod parameters;
mod part;
mod parts;
pub(super) mod ranks;
pub(super) mod sites;
mod summary;
mod timeline;
pub(super) mod waits;

use std::path::{Path, PathBuf};

use figures::{Page, PictureFormat, Scale, Section, WriteError, write_figures};
use maud::html;

use super::SavedReport;
use crate::diagnosis::Diagnosis;

pub(crate) use ranks::map as rank_map;
pub use timeline::{Timeline, TimelineError};

/// Text at the end of pages.
pub(crate) const FOOTER: &str = concat!("pdes-replay ", env!("CARGO_PKG_VERSION"));
/// Script that shows the values of map pixels.
const HINT_SCRIPT: &str = include_str!("page/hint.js");
/// Script that zooms the timeline.
const TIMELINE_SCRIPT: &str = include_str!("page/timeline.js");

/// The presentation of a run, or of the difference between two runs, as a page or as pictures.
#[derive(Debug)]
pub struct Presentation {
    run: SavedReport,
    other: Option<SavedReport>,
    timeline: Option<Timeline>,
    diagnosis: Option<Diagnosis>,
}

impl Presentation {
    /// Creates the presentation of a run, with a timeline if there is one.
    pub fn new(run: SavedReport, timeline: Option<Timeline>) -> Self {
        Self { run, other: None, timeline, diagnosis: None }
    }

    /// Adds the sections of a diagnosis of the run, after the summary.
    pub fn with_diagnosis(mut self, diagnosis: Option<Diagnosis>) -> Self {
        self.diagnosis = diagnosis;
        self
    }

    /// Creates the presentation of the changes from the first run to the second.
    pub fn comparison(run: SavedReport, other: SavedReport) -> Self {
        Self { run, other: Some(other), timeline: None, diagnosis: None }
    }

    /// Writes the HTML page.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or the file cannot be written.
    pub fn write_page(&self, path: &Path) -> Result<(), WriteError> {
        let run = &self.run;
        let palette = palette();
        let mut scripts = map_scripts(&palette).to_vec();
        if self.timeline.is_some() {
            scripts.push(TIMELINE_SCRIPT);
        }
        let (title, lead) = match &self.other {
            Some(other) => comparison::title(run, other),
            None => {
                let title = format!("{} on {}", file_name(run, "trace"), file_name(run, "platform"));
                (
                    title,
                    html! { p.note { "What a replay found, with the model " (run.parameter("model")) "." } },
                )
            }
        };
        let page =
            Page { title: &title, lead, sections: &self.sections(), scripts: &scripts, footer: FOOTER };
        page.write(path)
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
        let sections = self.sections();
        write_figures(sections.iter().flat_map(|section| &section.figures), directory, format)
    }

    fn sections(&self) -> Vec<Section> {
        match &self.other {
            Some(other) => comparison::sections(&self.run, other),
            None => self.run_sections(),
        }
    }

    fn run_sections(&self) -> Vec<Section> {
        let run = &self.run;
        let mut sections = vec![summary::section(run)];
        sections.extend(self.diagnosis.iter().flat_map(Diagnosis::sections));
        sections.push(parts::section(run));
        sections.extend(run.sections.on_page(run));
        sections.extend(self.timeline.as_ref().map(timeline::section));
        sections.push(parameters::section(run));
        sections
    }
}

/// Returns the file name of the trace or the platform, which distinguishes runs at a glance.
fn file_name(run: &SavedReport, name: &str) -> String {
    let whole = run.parameter(name);
    Path::new(whole).file_name().map_or(whole.to_owned(), |last| last.to_string_lossy().into_owned())
}

/// Returns the scripts of pages with maps, with [`palette`].
pub(crate) fn map_scripts(palette: &str) -> [&str; 2] {
    [palette, HINT_SCRIPT]
}

/// Returns the colours of maps, from which a script recovers the values of pixels.
pub(crate) fn palette() -> String {
    let hex = |scale: Scale| scale.palette().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("const palettes=[\"{}\",\"{}\"];", hex(Scale::Sequential), hex(Scale::Diverging))
}
