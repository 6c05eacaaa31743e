//! The origin of a trace: its files, to locate the line of an action or to detect a change.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use pdes_core::Rank;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Location, TraceError};
use crate::text::{Fields, Lines, Source, read_rank};

/// Displayed name of a text that is not in a file.
const TEXT_NAME: &str = "<text>";

/// The origin of a trace.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A file per rank.
    PerRank(Vec<PathBuf>),
    /// A merged file.
    Merged(PathBuf),
    /// A merged text in memory.
    Text(String),
    /// An archive, which has no lines of text.
    Archive(PathBuf),
}

impl Origin {
    /// Returns the name of the file with the lines of a rank.
    ///
    /// # Panics
    /// If there is a file per rank, but none for this one.
    pub(super) fn file(&self, rank: Rank) -> &Path {
        match self {
            Self::PerRank(files) => &files[rank.index()],
            Self::Merged(file) | Self::Archive(file) => file,
            Self::Text(_) => Path::new(TEXT_NAME),
        }
    }

    /// Opens the merged text. Not for [`Self::PerRank`].
    pub(super) fn merged_lines(&self) -> Result<Lines<'_>, TraceError> {
        self.lines(Rank::new(0))
    }

    fn lines(&self, rank: Rank) -> Result<Lines<'_>, TraceError> {
        match self {
            Self::Text(text) => Lines::new(Source::from_text(Path::new(TEXT_NAME), text)),
            _ => Lines::open(self.file(rank)),
        }
    }

    /// Returns a hash of the present contents of the files.
    pub(crate) fn fingerprint(&self) -> Result<u64, TraceError> {
        let mut hash = Xxh3::new();
        match self {
            Self::PerRank(files) => files.iter().try_for_each(|file| hash_file(file, &mut hash))?,
            Self::Merged(file) | Self::Archive(file) => hash_file(file, &mut hash)?,
            Self::Text(text) => hash.update(text.as_bytes()),
        }
        Ok(hash.digest())
    }

    /// Finds the line of an action by reading the text from the start.
    pub(crate) fn locate(&self, rank: Rank, action: u64) -> Result<Location, TraceError> {
        if let Self::Archive(file) = self {
            return Err(TraceError::NoLines { file: file.clone() });
        }
        let missing = TraceError::NoSuchAction { rank, action };
        if matches!(self, Self::PerRank(files) if rank.index() >= files.len()) {
            return Err(missing);
        }
        let mut lines = self.lines(rank)?;
        let mut left = action;
        while let Some(line) = lines.next()? {
            let number = line.number;
            if read_rank(&mut Fields::new(line.text)) != Ok(u64::from(rank.get())) {
                continue;
            }
            if left == 0 {
                return Ok(Location { file: lines.file().to_path_buf(), line: number });
            }
            left -= 1;
        }
        Err(missing)
    }
}

fn hash_file(file: &Path, hash: &mut Xxh3) -> Result<(), TraceError> {
    let io = |source| TraceError::Io { file: file.to_path_buf(), source };
    let mut reader = File::open(file).map_err(io)?;
    let mut bytes = vec![0; 1 << 16];
    loop {
        match reader.read(&mut bytes).map_err(io)? {
            0 => return Ok(()),
            len => hash.update(&bytes[..len]),
        }
    }
}
