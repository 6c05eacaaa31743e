//! Platform files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use netmodel::{Platform, PlatformError};

use super::{ConfigError, names, schema};
use crate::file_kind::{FileKind, PLATFORM, recognize};

/// The reason why a platform cannot be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum PlatformFileError {
    /// A TOML file has an unknown key or choice.
    #[error(transparent)]
    Unknown(#[from] ConfigError),
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

/// Number of bytes in which the first character of XML is looked for \[B\].
const HEAD: u64 = 4096;

/// Returns whether a file is in SimGrid's XML, whose conventions then hold; `false` if it cannot be read, which is reported later.
pub(super) fn is_simgrid_xml(path: &Path) -> bool {
    if path.extension().is_some_and(|extension| extension == "xml") {
        return true;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    read.is_ok() && head.trim_ascii_start().starts_with(b"<")
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
