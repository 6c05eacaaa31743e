//! Files of figures.

use std::path::{Path, PathBuf};

use crate::drawing::{DrawingError, Figure, WIDE};

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
pub enum WriteError {
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

/// Writes each figure to a file in a directory, which is created if necessary; returns the paths of the files.
///
/// # Errors
/// Returns an error if a figure cannot be drawn, or a file cannot be written.
pub fn write_figures<'a>(
    figures: impl Iterator<Item = &'a Figure>,
    directory: &Path,
    format: PictureFormat,
) -> Result<Vec<PathBuf>, WriteError> {
    let write = |figure: &Figure| {
        let (bytes, ending) = picture(figure, format)
            .map_err(|source| WriteError::Draw { name: figure.name.to_string(), source })?;
        let path = directory.join(format!("{}.{ending}", figure.name));
        write_file(&path, &bytes)?;
        Ok(path)
    };
    figures.map(write).collect()
}

/// Writes a file, whole or not at all, in a directory that is created if necessary.
///
/// # Errors
/// Returns an error if the directory or the file cannot be written.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    outputs::write_file(path, bytes).map_err(|source| WriteError::Write { path: path.to_owned(), source })
}

fn picture(figure: &Figure, format: PictureFormat) -> Result<(Vec<u8>, &'static str), DrawingError> {
    let drawing = (figure.draw)(WIDE)?;
    match format {
        PictureFormat::Svg => Ok((drawing.file(&figure.title).into_bytes(), "svg")),
        PictureFormat::Png => Ok((drawing.png()?, "png")),
    }
}
