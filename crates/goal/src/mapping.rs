//! Mapped files: the one place with unsafe code.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// Maps a file for reading.
///
/// Whoever opens a schedule promises that nobody writes to its file meanwhile: a file that is made shorter raises
/// `SIGBUS` on the next access beyond its end, and bytes that change behind the checks may end the program with a panic.
pub(crate) fn map(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    // SAFETY: the map is read-only. That no other process changes the file is the promise of the caller, as documented at
    // `Schedule::load`; it cannot be enforced.
    unsafe { Mmap::map(&file) }
}
