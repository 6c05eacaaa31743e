//! Loading of schedule files of any format.

use std::path::Path;

use crate::archive;
use crate::binary;
use crate::error::{FileError, FileProblem};
use crate::mapping;
use crate::schedule::Schedule;
use crate::text;

impl Schedule {
    /// Loads a schedule from a file: an archive, LogGOPSim's binary format or text, recognised by the first bytes.
    ///
    /// An archive is checked on up to `threads` threads, and its checksum on one more.
    ///
    /// Nobody may write to the file until it is loaded or, if it is an archive, while the schedule is in use: archives
    /// are memory-mapped.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has none of the three formats.
    ///
    /// # Panics
    /// Panics if `threads` is 0.
    pub fn load(path: &Path, threads: usize) -> Result<Self, FileError> {
        assert!(threads > 0, "loading needs at least one thread");
        let load = || -> Result<Self, FileProblem> {
            let map = mapping::map(path)?;
            if map.starts_with(&archive::MAGIC) {
                return Ok(archive::from_map(map, threads)?);
            }
            if binary::is_binary(&map) {
                return Ok(binary::read_binary(&map)?);
            }
            Ok(text::read_text(&map)?)
        };
        load().map_err(|problem| FileError { file: path.to_owned(), problem })
    }
}

/// Returns whether the first bytes of a file are those of a schedule in any of the three formats.
pub fn is_schedule(head: &[u8]) -> bool {
    head.starts_with(&archive::MAGIC)
        || binary::is_binary(head)
        || head.trim_ascii_start().starts_with(b"num_ranks")
}

/// Returns whether a file is a schedule, by its first bytes.
pub fn is_schedule_file(path: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && is_schedule(&head)
}
