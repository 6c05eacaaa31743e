//! Standard input in place of a file.

use std::io::{self, Seek};
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

/// Copies standard input to a file without a name, since formats look at their inputs more than once; returns a path to it. The file lives as long
/// as the program.
///
/// # Errors
/// Fails if the temporary file cannot be written.
pub(super) fn spool() -> io::Result<PathBuf> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(PathBuf::from(format!("/dev/fd/{}", file.into_raw_fd())))
}
