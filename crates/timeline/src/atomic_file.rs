//! Files that appear only when they are complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that gets its name when it is complete; until then the name ends in `.part`.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    file: BufWriter<File>,
    path: PathBuf,
    part: PathBuf,
    bytes: u64,
    is_complete: bool,
}

impl AtomicFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let file = BufWriter::with_capacity(1 << 16, File::create(&part)?);
        Ok(Self { file, path: path.to_owned(), part, bytes: 0, is_complete: false })
    }

    /// Renames the complete file to its final name and returns its size \[B\].
    pub(crate) fn commit(mut self) -> io::Result<u64> {
        self.file.flush()?;
        std::fs::rename(&self.part, &self.path)?;
        self.is_complete = true;
        Ok(self.bytes)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes an incomplete file.
impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // An error is ignored: drop has nobody to report it to.
            drop(std::fs::remove_file(&self.part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_committed_or_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.json");
        let mut dropped = AtomicFile::create(&path).unwrap();
        dropped.write_all(b"some").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut draft = AtomicFile::create(&path).unwrap();
        draft.write_all(b"text").unwrap();
        assert_eq!(draft.commit().unwrap(), 4);
        assert_eq!(std::fs::read(&path).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
