//! Platform files.

use std::path::{Path, PathBuf};

use netmodel::{Platform, PlatformError};

use crate::file_kind::{FileKind, PLATFORM, recognize};
use crate::names::{self, FileMismatch};
use crate::schema;

/// The reason why a platform cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum PlatformFileError {
    /// A TOML file has an unknown key or choice.
    #[error(transparent)]
    Unknown(#[from] FileMismatch),
    /// The file is of another kind.
    #[error("{}: {found}", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// Kind of the file.
        found: FileKind,
    },
    /// Any other error.
    #[error(transparent)]
    Platform(#[from] PlatformError),
}

/// Reads a platform in SimGrid's XML or in TOML. Unlike [`Platform::from_path`], it reports an unknown name in TOML with its
/// position and the name that was probably meant.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a platform.
pub fn read_platform(path: &Path) -> Result<Platform, PlatformFileError> {
    Platform::from_path(path).map_err(|error| {
        if let Some(found) = recognize(path).filter(|kind| *kind != PLATFORM) {
            return PlatformFileError::OtherFile { path: path.to_owned(), found };
        }
        let unknown = std::fs::read_to_string(path).ok().and_then(|text| {
            let table = text.parse().ok()?;
            names::check_file(path, &text, &table, &schema::platform_schema()).err()
        });
        unknown.map_or(error.into(), PlatformFileError::Unknown)
    })
}
