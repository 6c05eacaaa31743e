//! Presentation of reports: one HTML page, or pictures, of one run or of the difference between two.

mod comparison;
mod critical_path;
mod grid;
mod histograms;
mod links;
mod network;
mod parameters;
mod part;
mod parts;
mod ranks;
mod saved_run;
mod sites;
mod summary;
mod timeline;
mod waits;

use std::path::{Path, PathBuf};

use maud::html;

use crate::drawing::{DrawingError, Figure, Image, Scale};
use crate::page::{Page, Section};

pub use saved_run::SavedRun;
pub use timeline::{Timeline, TimelineError};

/// Script that shows the values of map pixels.
const HINT_SCRIPT: &str = include_str!("page/hint.js");
/// Script that zooms the timeline.
const TIMELINE_SCRIPT: &str = include_str!("page/timeline.js");

/// The presentation of a run, or of the difference between two runs, as a page or as pictures.
#[derive(Debug)]
pub struct Presentation {
    run: SavedRun,
    other: Option<SavedRun>,
    timeline: Option<Timeline>,
}

/// File format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Scalable vector graphics, with text as text.
    Svg,
    /// Pixels, two per unit of the drawing in each direction.
    Png,
}

/// The reason why a page or pictures cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PresentationError {
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A figure cannot be drawn.
    #[error("the figure {name}: {source}")]
    Draw {
        /// Name of the figure.
        name: String,
        /// Cause.
        source: DrawingError,
    },
}

impl Presentation {
    /// Creates the presentation of a run, with a timeline if there is one.
    pub fn new(run: SavedRun, timeline: Option<Timeline>) -> Self {
        Self { run, other: None, timeline }
    }

    /// Creates the presentation of the changes from the first run to the second.
    pub fn comparison(run: SavedRun, other: SavedRun) -> Self {
        Self { run, other: Some(other), timeline: None }
    }

    /// Writes the HTML page.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or the file cannot be written.
    pub fn write_page(&self, path: &Path) -> Result<(), PresentationError> {
        let draw = |source| PresentationError::Draw { name: "on the page".to_owned(), source };
        let text = self.page().map_err(draw)?;
        std::fs::write(path, text)
            .map_err(|source| PresentationError::Write { path: path.to_owned(), source })
    }

    /// Writes each figure to a file in a directory, which is created if necessary; returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn, or a file cannot be written.
    pub fn write_pictures(
        &self,
        directory: &Path,
        format: PictureFormat,
    ) -> Result<Vec<PathBuf>, PresentationError> {
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
        let mut sections = vec![summary::section(run), parts::section(run)];
        sections.extend(ranks::section(run));
        sections.extend(waits::section(run));
        sections.extend(sites::section(run));
        sections.extend(critical_path::section(run));
        sections.extend(links::section(run));
        sections.extend(network::section(run));
        sections.extend(histograms::section(run));
        sections.extend(self.timeline.as_ref().map(timeline::section));
        sections.push(parameters::section(run));
        sections
    }

    fn page(&self) -> Result<String, DrawingError> {
        let run = &self.run;
        let sections = self.sections();
        let palette = palette();
        let mut scripts = vec![palette.as_str(), HINT_SCRIPT];
        if self.timeline.is_some() {
            scripts.push(TIMELINE_SCRIPT);
        }
        let (title, lead) = match &self.other {
            Some(other) => comparison::title(run, other),
            None => {
                let title = format!("{} on {}", run.file_name("trace"), run.file_name("platform"));
                (
                    title,
                    html! { p.note { "What a replay found, with the model " (run.parameter("model")) "." } },
                )
            }
        };
        Page { title: &title, lead, sections: &sections, scripts: &scripts }.text()
    }
}

/// Writes each figure to a file in a directory, which is created if necessary; returns the paths of the files.
pub(crate) fn write_figures<'a>(
    figures: impl Iterator<Item = &'a Figure>,
    directory: &Path,
    format: PictureFormat,
) -> Result<Vec<PathBuf>, PresentationError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| PresentationError::Write { path, source }
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let write = |figure: &Figure| {
        let (bytes, ending) = picture(figure, format)
            .map_err(|source| PresentationError::Draw { name: figure.name.to_string(), source })?;
        let path = directory.join(format!("{}.{ending}", figure.name));
        std::fs::write(&path, bytes).map_err(failed(&path))?;
        Ok(path)
    };
    figures.map(write).collect()
}

fn picture(figure: &Figure, format: PictureFormat) -> Result<(Vec<u8>, &'static str), DrawingError> {
    let drawing = (figure.draw)(crate::drawing::WIDE)?;
    match format {
        PictureFormat::Svg => Ok((drawing.file().into_bytes(), "svg")),
        PictureFormat::Png => Ok((drawing.png()?, "png")),
    }
}

/// Returns the colours of maps, from which a script recovers the values of pixels.
fn palette() -> String {
    let hex = |scale| Image::palette(scale).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("const palettes=[\"{}\",\"{}\"];", hex(Scale::Sequential), hex(Scale::Diverging))
}
