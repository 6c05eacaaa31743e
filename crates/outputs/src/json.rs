//! Values as JSON.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::AtomicFile;

/// Writes a value as JSON to a file, completely or not at all.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_json(value: &impl Serialize, path: &Path) -> std::io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.commit().map(drop)
}
