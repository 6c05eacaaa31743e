//! Files of platforms.

use std::path::Path;

use netmodel::{Platform, PlatformError};

use super::{ConfigError, names, schema};

/// Why a file is no platform.
#[derive(Debug, thiserror::Error)]
pub enum PlatformFileError {
    /// TOML has a key or a choice that no platform has.
    #[error(transparent)]
    Unknown(#[from] ConfigError),
    /// It is something else.
    #[error(transparent)]
    Platform(#[from] PlatformError),
}

/// Reads a platform, SimGrid's XML or TOML: as [`Platform::from_path`], but a name in TOML that no platform has is told with its place and
/// with the one that was probably meant.
///
/// # Errors
/// Where the file cannot be read, or is no platform.
pub fn read_platform(path: &Path) -> Result<Platform, PlatformFileError> {
    Platform::from_path(path).map_err(|error| {
        let unknown = std::fs::read_to_string(path).ok().and_then(|text| {
            let table = text.parse().ok()?;
            names::check_file(path, &text, &table, &schema::platform_schema()).err()
        });
        unknown.map_or(error.into(), PlatformFileError::Unknown)
    })
}
