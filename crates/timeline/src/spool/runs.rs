//! Sorted runs of records in a file, which a run of the program can leave to the next one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use crate::error::TimelineError;
use crate::merge::RecordStreams;
use crate::record::Record;

/// Records read from a run at once: 43 kB.
const BATCH_RECORDS: usize = 1 << 10;

/// Begin and end of the names of files that can be kept.
pub(super) const FILE_PREFIX: &str = "events-";
pub(super) const FILE_SUFFIX: &str = ".spool";

/// Sorted runs: all but the last in a file, the last in memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    file: Option<File>,
    /// Name of the file, if it can be kept.
    path: Option<TempPath>,
    /// Hash of its bytes, if it can be kept.
    hasher: blake3::Hasher,
    /// Unread byte range of each run in the file.
    unread: Vec<Range<u64>>,
    pub(super) last: Vec<Record>,
}

/// State of a [`Spool`](crate::Spool): the name of its file, and what it contains.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedSpool {
    /// Name of the file in its directory; `None` if there are no events.
    file: Option<String>,
    /// End of each run in the file \[B\].
    ends: Vec<u64>,
    hash: [u8; 32],
    /// For each rank, true if it has an event or an end of a message.
    seen: Vec<bool>,
}

impl SavedSpool {
    /// Returns the name of the file, if there is one.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the number of ranks up to the last one that has events.
    pub fn ranks(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn into_seen(self) -> Vec<bool> {
        self.seen
    }
}

impl Runs {
    /// Returns the number of runs.
    pub(super) fn count(&self) -> usize {
        self.unread.len() + 1
    }

    /// Writes a run to the file, which is created first if there is none, with a name or without.
    pub(super) fn write(&mut self, run: &[Record], directory: &Path, is_named: bool) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(run.len() * Record::SIZE);
        run.iter().for_each(|record| bytes.extend_from_slice(record.as_bytes()));
        let mut file = match self.file.take() {
            Some(file) => file,
            None if is_named => {
                let named = tempfile::Builder::new()
                    .prefix(FILE_PREFIX)
                    .suffix(FILE_SUFFIX)
                    .tempfile_in(directory)?;
                let (file, path) = named.into_parts();
                self.path = Some(path);
                file
            }
            None => tempfile::tempfile_in(directory)?,
        };
        file.write_all(&bytes)?;
        if is_named {
            self.hasher.update(&bytes);
        }
        let start = self.unread.last().map_or(0, |last| last.end);
        self.unread.push(start..start + bytes.len() as u64);
        self.file = Some(file);
        Ok(())
    }

    /// Writes a run, forces all to the disk, and keeps the file.
    pub(super) fn save(&mut self, run: &[Record], directory: &Path, seen: &[bool]) -> io::Result<SavedSpool> {
        if !run.is_empty() {
            self.write(run, directory, true)?;
        }
        if let (Some(file), Some(path)) = (&self.file, &mut self.path) {
            file.sync_data()?;
            path.disable_cleanup(true);
        }
        let name = self.path.as_ref().and_then(|path| path.file_name());
        Ok(SavedSpool {
            file: name.map(|name| name.to_string_lossy().into_owned()),
            ends: self.unread.iter().map(|run| run.end).collect(),
            hash: self.hasher.finalize().into(),
            seen: seen.to_vec(),
        })
    }

    /// Opens the file of saved runs, and drops all that follows them.
    pub(super) fn restore(saved: &SavedSpool, directory: &Path) -> Result<Self, TimelineError> {
        let Some(name) = &saved.file else { return Ok(Self::default()) };
        let path = directory.join(name);
        let foreign = || TimelineError::ForeignEvents { path: path.clone() };
        let starts = std::iter::once(&0).chain(&saved.ends);
        let unread: Vec<_> = starts.zip(&saved.ends).map(|(&start, &end)| start..end).collect();
        let are_runs = |run: &Range<u64>| run.start < run.end && run.end % Record::SIZE as u64 == 0;
        // A name with a directory is of another program.
        if !unread.iter().all(are_runs) || Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(foreign());
        }
        let length = unread.last().map_or(0, |last| last.end);
        let spool = |source| TimelineError::Spool { directory: directory.to_owned(), source };
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(spool)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader((&mut file).take(length)).map_err(spool)?;
        if hasher.count() != length || hasher.finalize() != blake3::Hash::from_bytes(saved.hash) {
            return Err(foreign());
        }
        file.set_len(length).map_err(spool)?;
        file.seek(SeekFrom::Start(length)).map_err(spool)?;
        let mut path = TempPath::try_from_path(path.clone()).map_err(spool)?;
        path.disable_cleanup(true);
        Ok(Self { file: Some(file), path: Some(path), hasher, unread, last: Vec::new() })
    }
}

impl RecordStreams for Runs {
    type Error = io::Error;

    fn next_batch(&mut self, stream: usize) -> io::Result<Vec<Record>> {
        let (Some(place), Some(file)) = (self.unread.get_mut(stream), &mut self.file) else {
            return Ok(std::mem::take(&mut self.last));
        };
        let length = (place.end - place.start).min((BATCH_RECORDS * Record::SIZE) as u64);
        let mut bytes = vec![0; length as usize];
        file.seek(SeekFrom::Start(place.start))?;
        file.read_exact(&mut bytes)?;
        place.start += length;
        Ok(Record::from_bytes(&bytes))
    }
}
