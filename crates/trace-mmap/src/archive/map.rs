//! Memory-mapped files: the only unsafe code of the archive.
#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;

use crate::record::Record;

/// A file mapped for reading.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    file: File,
    map: Mmap,
    stamp: FileStamp,
}

/// Length and modification time, which show whether a file was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok() }
    }
}

impl MappedFile {
    /// Maps a whole file.
    ///
    /// The caller promises that nobody writes to the file while it is mapped. If somebody does: every read is checked
    /// against the length at the opening and every index against the tables in memory, so that changed bytes are found
    /// by a checksum, by [`MappedFile::is_unchanged`], or not at all, but never lead outside of the map. Accesses
    /// beyond the end of a truncated file raise `SIGBUS`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
        }
        // SAFETY: the map is read-only and lives no longer than its handle. That no other process changes the file is the
        // promise of the caller of `Trace::load`, as documented there; it cannot be enforced.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { path: path.to_path_buf(), stamp: FileStamp::of(&metadata), file, map })
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Returns whether length and modification time are those of the opening.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| FileStamp::of(&metadata) == self.stamp)
    }
}

/// Returns bytes as records, without an incomplete last one.
///
/// # Panics
/// Panics if the bytes are not aligned to eight.
pub(crate) fn records(bytes: &[u8]) -> &[Record] {
    assert!(bytes.as_ptr().cast::<Record>().is_aligned(), "records lie at multiples of 8 bytes");
    // SAFETY: the pointer is aligned by the assertion; the length covers no more than the bytes; a `Record` is two `u64`
    // without padding, for which every bit pattern is valid; the lifetime is that of the bytes.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<Record>()) }
}
