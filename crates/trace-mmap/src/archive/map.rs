//! Memory-mapped files, and the records in them.
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
    /// # Safety
    /// Nobody may write to the file or truncate it while it is mapped. No system enforces this: whoever names the file to
    /// [`Trace::load`](crate::Trace::load) promises it, as documented there.
    ///
    /// If the promise is broken, every read is still checked against the length at the opening, and every index against the
    /// tables in memory: changed bytes are found by a checksum, by [`MappedFile::is_unchanged`], or not at all, but never
    /// lead outside of the map. Accesses beyond the end of a truncated file raise `SIGBUS`.
    pub(crate) unsafe fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
        }
        // SAFETY: the map is read-only and lives no longer than its handle; the caller promises that the file stays as it is.
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
    bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<Record>() * size_of::<Record>()])
}
