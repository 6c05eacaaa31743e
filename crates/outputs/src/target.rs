//! Targets of paths: a file, standard output, or a stream such as a pipe or a device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names of standard output.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Largest number of symbolic links that lead to a file, as in Linux.
const MAX_LINKS: usize = 40;

/// Returns whether a path stands for standard output: `-`, or one of the system's names for it.
pub fn is_stdout(path: &Path) -> bool {
    STDOUT.iter().any(|name| path == Path::new(name))
}

/// The meaning of a path.
pub(crate) enum Target {
    Stdout,
    /// A pipe, a device or a socket.
    Stream,
    /// A regular file, or one that does not exist yet, after all symbolic links.
    File(PathBuf),
}

impl Target {
    /// Follows the symbolic links of a path, also to a file that does not exist yet.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self::Stdout);
        }
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => return Ok(Self::Stream),
            Ok(_) | Err(_) => {}
        }
        let mut file = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            match fs::read_link(&file) {
                Ok(next) => file = directory_of(&file).join(next),
                Err(_) => return Ok(Self::File(file)),
            }
        }
        Err(io::Error::other("found too many symbolic links"))
    }
}

/// Returns the directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
