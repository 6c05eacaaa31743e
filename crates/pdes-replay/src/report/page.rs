//! The report as one page of HTML, or as pictures; two reports side by side.

mod detail;
mod difference;
mod grid;
mod histograms;
mod links;
mod network;
mod parameters;
mod parts;
mod path;
mod ranks;
mod share;
mod sites;
mod summary;
mod timeline;
mod waits;

use std::path::{Path, PathBuf};

use maud::html;

use crate::drawing::{DrawingError, Figure, Image, Scale};
use crate::page::{Page, Section};

pub use detail::SavedRun;
pub use timeline::{Timeline, TimelineError};

/// What reads values off maps.
const HINT_SCRIPT: &str = include_str!("page/hint.js");
/// What zooms the timeline.
const TIMELINE_SCRIPT: &str = include_str!("page/timeline.js");

/// What a page or pictures are of: a run, or what another one changes.
#[derive(Debug)]
pub struct Portrait {
    run: SavedRun,
    other: Option<SavedRun>,
    timeline: Option<Timeline>,
}

/// What pictures are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Scalable, with text as text.
    Svg,
    /// Pixels, two for each of the drawing in each direction.
    Png,
}

/// Why a page or pictures cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum PortraitError {
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A figure cannot be drawn.
    #[error("the figure {name}: {source}")]
    Draw {
        /// Its name.
        name: String,
        /// What is wrong.
        source: DrawingError,
    },
}

impl Portrait {
    /// Shows a run, and a timeline of it where there is one.
    pub fn of(run: SavedRun, timeline: Option<Timeline>) -> Self {
        Self { run, other: None, timeline }
    }

    /// Shows what the second run changes.
    pub fn difference(run: SavedRun, other: SavedRun) -> Self {
        Self { run, other: Some(other), timeline: None }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Where a figure cannot be drawn, or the file cannot be written.
    pub fn write_page(&self, path: &Path) -> Result<(), PortraitError> {
        let draw = |source| PortraitError::Draw { name: "on the page".to_owned(), source };
        let text = self.page().map_err(draw)?;
        std::fs::write(path, text).map_err(|source| PortraitError::Write { path: path.to_owned(), source })
    }

    /// Writes each figure as a file into a directory, which is made where it does not exist; returns the files.
    ///
    /// # Errors
    /// Where a figure cannot be drawn, or a file cannot be written.
    pub fn write_pictures(
        &self,
        directory: &Path,
        format: PictureFormat,
    ) -> Result<Vec<PathBuf>, PortraitError> {
        let sections = self.sections();
        write_figures(sections.iter().flat_map(|section| &section.figures), directory, format)
    }

    fn sections(&self) -> Vec<Section> {
        match &self.other {
            Some(other) => difference::sections(&self.run, other),
            None => self.run_sections(),
        }
    }

    fn run_sections(&self) -> Vec<Section> {
        let run = &self.run;
        let mut sections = vec![summary::section(run), parts::section(run)];
        sections.extend(ranks::section(run));
        sections.extend(waits::section(run));
        sections.extend(sites::section(run));
        sections.extend(path::section(run));
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
            Some(other) => difference::title(run, other),
            None => {
                let title = format!("{} on {}", run.short("trace"), run.short("platform"));
                (title, html! { p.note { "What a replay found, with the model " (run.named("model")) "." } })
            }
        };
        Page { title: &title, lead, sections: &sections, scripts: &scripts }.text()
    }
}

/// Writes each figure as a file into a directory, which is made where it does not exist; returns the files.
pub(crate) fn write_figures<'a>(
    figures: impl Iterator<Item = &'a Figure>,
    directory: &Path,
    format: PictureFormat,
) -> Result<Vec<PathBuf>, PortraitError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| PortraitError::Write { path, source }
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let write = |figure: &Figure| {
        let (bytes, ending) = picture(figure, format)
            .map_err(|source| PortraitError::Draw { name: figure.name.to_string(), source })?;
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

/// The colours of maps, by which a script finds the values of pixels again.
fn palette() -> String {
    let hex = |scale| Image::palette(scale).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("const palettes=[\"{}\",\"{}\"];", hex(Scale::Sequential), hex(Scale::Diverging))
}
