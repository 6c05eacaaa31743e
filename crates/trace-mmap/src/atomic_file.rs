//! Files that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that gets its name when it is complete, and is removed if it is dropped before. A file that had the name stays
/// until then.
///
/// It is written in its final directory, to the name `.NAME.` with six more characters and `.part`, by which a user
/// recognizes what a killed program has left.
///
/// ```
/// use std::io::Write;
/// use trace_mmap::AtomicFile;
///
/// # fn main() -> std::io::Result<()> {
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("run.json");
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"text")?;
/// assert!(!path.exists());
/// assert_eq!(file.commit()?, 4);
/// assert_eq!(std::fs::read(&path)?, b"text");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    writer: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl AtomicFile {
    /// Creates an empty file for a path, in a directory that is created if necessary.
    ///
    /// # Errors
    /// Fails if the directory, or no file in it, can be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory_of(path))?;
        let prefix = temporary_prefix(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            // The umask applies, as to any other file; tempfile would make it 0600.
            let permissions: fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            builder.permissions(permissions);
        }
        let temporary = builder.tempfile_in(directory_of(path))?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 16, temporary), path: path.to_path_buf() })
    }

    /// Returns the path that the file gets.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is buffered, and waits until all is on the drive.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().as_file().sync_all()
    }

    /// Replaces the first bytes of the file; what is written later continues there.
    pub(crate) fn write_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.seek(SeekFrom::Start(0))?;
        self.writer.write_all(bytes)
    }

    /// Sets the length of the file \[B\].
    pub(crate) fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().as_file().set_len(len)
    }

    /// Waits until the file is on the drive, and renames it to its path; returns its size \[B\].
    ///
    /// # Errors
    /// Fails if the file cannot be written or renamed.
    pub fn commit(mut self) -> io::Result<u64> {
        self.sync()?;
        let Self { writer, path } = self;
        let temporary = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        let file = temporary.persist(&path)?;
        // The rename is durable once the directory is synced. Systems on which directories cannot be opened do not need it.
        File::open(directory_of(&path)).map_or(Ok(()), |directory| directory.sync_all())?;
        Ok(file.metadata()?.len())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a prefix of the name of the temporary file.
fn temporary_prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Names have at most 255 bytes, and characters up to four.
    format!(".{}.", name.chars().take(50).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_committed_or_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/run.json");
        drop(AtomicFile::create(&path).unwrap());
        fs::write(&path, "before").unwrap();
        let names = || fs::read_dir(directory.path().join("new")).unwrap().count();
        let mut dropped = AtomicFile::create(&path).unwrap();
        dropped.write_all(b"some").unwrap();
        assert_eq!(names(), 2);
        drop(dropped);
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"before".to_vec()));
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(file.commit().unwrap(), 4);
        assert_eq!((names(), fs::read(&path).unwrap()), (1, b"text".to_vec()));
    }
}
