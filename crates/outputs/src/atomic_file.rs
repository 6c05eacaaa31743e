//! Files that are written completely or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Stdout, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::target::{Target, directory_of};

/// A file that gets its name when it is complete, and is removed if it is dropped before. A file that had the name stays
/// until then; its permissions are those of the new one. Symbolic links are followed. Pipes and devices are written to as they are, and
/// `-` or `/dev/stdout` is standard output.
///
/// A file is written in its final directory, to the name `.NAME.` with six more characters and `.part`, by which a user
/// recognizes what a killed program has left.
///
/// ```
/// use std::io::Write;
/// use outputs::AtomicFile;
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
    writer: BufWriter<Sink>,
    /// Path as given.
    path: PathBuf,
    /// Number of bytes written to a stream \[B\].
    streamed: u64,
}

#[derive(Debug)]
enum Sink {
    Temporary {
        file: NamedTempFile,
        /// Path without links.
        path: PathBuf,
        /// Permissions of the file that had the path.
        permissions: Option<Permissions>,
    },
    Stream(File),
    Stdout(Stdout),
}

impl AtomicFile {
    /// Creates an empty file for a path, in a directory that is created if necessary, or opens the stream that the path names.
    ///
    /// # Errors
    /// Fails if the directory, or no file in it, can be created, or if the path is a directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        let sink = match Target::of(path)? {
            Target::Stdout => Sink::Stdout(io::stdout()),
            Target::Stream => Sink::Stream(OpenOptions::new().write(true).open(path)?),
            Target::File(file) => Sink::temporary(file)?,
        };
        Ok(Self { writer: BufWriter::with_capacity(1 << 16, sink), path: path.to_path_buf(), streamed: 0 })
    }

    /// Creates an empty file as [`create`](Self::create), of which parts are written again.
    ///
    /// # Errors
    /// Fails also if the path names a stream.
    pub fn create_seekable(path: &Path) -> io::Result<Self> {
        let file = Self::create(path)?;
        match file.writer.get_ref() {
            Sink::Temporary { .. } => Ok(file),
            Sink::Stream(_) | Sink::Stdout(_) => Err(io::Error::new(
                io::ErrorKind::NotSeekable,
                "found a pipe or a device, expected the name of a file, which is written in more than one pass",
            )),
        }
    }

    /// Returns the path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is buffered, and waits until all is on the drive.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        match self.writer.get_ref() {
            Sink::Temporary { file, .. } => file.as_file().sync_all(),
            Sink::Stream(_) | Sink::Stdout(_) => Ok(()),
        }
    }

    /// Replaces the first bytes of the file; what is written later continues there.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or is a stream.
    pub fn write_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.flush()?;
        self.temporary()?.seek(SeekFrom::Start(0))?;
        self.writer.write_all(bytes)
    }

    /// Sets the length of the file \[B\].
    ///
    /// # Errors
    /// Fails if the file cannot be written, or is a stream.
    pub fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.writer.flush()?;
        self.temporary()?.as_file().set_len(len)
    }

    fn temporary(&mut self) -> io::Result<&mut NamedTempFile> {
        match self.writer.get_mut() {
            Sink::Temporary { file, .. } => Ok(file),
            Sink::Stream(_) | Sink::Stdout(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }

    /// Waits until the file is on the drive, and renames it to its path; returns its size \[B\].
    ///
    /// # Errors
    /// Fails if the file cannot be written or renamed.
    pub fn commit(mut self) -> io::Result<u64> {
        self.sync()?;
        let Self { writer, streamed, .. } = self;
        let Sink::Temporary { file, path, permissions } =
            writer.into_inner().map_err(io::IntoInnerError::into_error)?
        else {
            return Ok(streamed);
        };
        permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
        let file = file.persist(&path)?;
        // The rename is durable once the directory is synced. Systems on which directories cannot be opened do not need it.
        File::open(directory_of(&path)).map_or(Ok(()), |directory| directory.sync_all())?;
        Ok(file.metadata()?.len())
    }
}

impl Sink {
    fn temporary(path: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(directory_of(&path))?;
        let prefix = temporary_prefix(&path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".part");
        #[cfg(unix)]
        {
            // The umask applies, as to any other file; tempfile would make it 0600.
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        }
        let file = builder.tempfile_in(directory_of(&path))?;
        let permissions = fs::metadata(&path).ok().map(|found| found.permissions());
        Ok(Self::Temporary { file, path, permissions })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Temporary { file, .. } => file.write(bytes),
            Self::Stream(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary { file, .. } => file.flush(),
            Self::Stream(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Writes a whole file as an [`AtomicFile`].
///
/// # Errors
/// Fails if the file cannot be written; a file that had the name stays.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit().map(drop)
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.streamed += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
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

    #[test]
    #[cfg(unix)]
    fn links_are_followed_and_permissions_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("real"), "before").unwrap();
        fs::set_permissions(path("real"), Permissions::from_mode(0o640)).unwrap();
        symlink("real", path("link")).unwrap();
        write_file(&path("link"), b"after").unwrap();
        assert!(path("link").is_symlink());
        assert_eq!(fs::read(path("real")).unwrap(), b"after");
        assert_eq!(fs::metadata(path("real")).unwrap().permissions().mode() & 0o777, 0o640);
        symlink("new", path("dangling")).unwrap();
        write_file(&path("dangling"), b"text").unwrap();
        assert_eq!(fs::read(path("new")).unwrap(), b"text");
        symlink("ring", path("ring")).unwrap();
        assert!(write_file(&path("ring"), b"").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_stay_devices() {
        use std::os::unix::fs::FileTypeExt;

        write_file(Path::new("/dev/null"), b"text").unwrap();
        assert_eq!(
            write_file(Path::new("/dev/full"), b"text").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        for device in ["/dev/null", "/dev/full"] {
            assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
        assert!(AtomicFile::create_seekable(Path::new("/dev/null")).is_err());
        assert!(AtomicFile::create(Path::new("/")).is_err());
    }
}
