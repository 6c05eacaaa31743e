//! Sorted runs of records in files, which a run of the program can leave to the next one.

use std::fs::File;
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

/// Sorted runs: all but the last in files, the last in memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Files that were saved before this spool was made, which are only read, with what they contain.
    earlier: Vec<(File, SavedFile)>,
    file: Option<File>,
    /// Name of the file, if it can be kept.
    path: Option<TempPath>,
    /// Hash of its bytes, if it can be kept.
    hasher: blake3::Hasher,
    /// End of each run in the file \[B\].
    ends: Vec<u64>,
    /// Unread bytes of each run: the index of its file, with the own one after the earlier ones, and the range there.
    unread: Vec<(usize, Range<u64>)>,
    pub(super) last: Vec<Record>,
}

/// State of a [`Spool`](crate::Spool), or of those of several processes: the names of files, and what they contain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedSpool {
    files: Vec<SavedFile>,
    /// For each rank, true if it has an event or an end of a message.
    seen: Vec<bool>,
}

/// A file with runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFile {
    /// Its name in its directory.
    name: String,
    /// End of each run \[B\].
    ends: Vec<u64>,
    hash: [u8; 32],
}

impl SavedSpool {
    /// Returns whether a file has events.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// Returns the number of ranks up to the last one that has events.
    pub fn ranks(&self) -> usize {
        self.seen.len()
    }

    /// Adds the state of the spool of another process.
    pub fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        if self.seen.len() < other.seen.len() {
            self.seen.resize(other.seen.len(), false);
        }
        self.seen.iter_mut().zip(other.seen).for_each(|(seen, other)| *seen |= other);
    }

    /// Returns the part of one of several processes, which together continue with all files.
    #[must_use]
    pub fn part(self, process: usize, processes: usize) -> Self {
        let files = self.files.into_iter().skip(process).step_by(processes.max(1)).collect();
        Self { files, seen: if process == 0 { self.seen } else { Vec::new() } }
    }

    pub(super) fn into_seen(self) -> Vec<bool> {
        self.seen
    }
}

impl SavedFile {
    /// Returns the range of each run \[B\].
    fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| start..end)
    }

    /// Opens the file, and checks what it contains; bytes after the last run are those of a run of the program that was killed.
    fn open(&self, directory: &Path) -> Result<File, TimelineError> {
        let path = directory.join(&self.name);
        let foreign = || TimelineError::ForeignEvents { path: path.clone() };
        let is_run = |run: Range<u64>| run.start < run.end && run.end.is_multiple_of(Record::SIZE as u64);
        // A name with a directory is of another program.
        if !self.runs().all(is_run) || Path::new(&self.name).file_name() != Some(self.name.as_ref()) {
            return Err(foreign());
        }
        let length = self.ends.last().copied().unwrap_or_default();
        let spool = |source| TimelineError::Spool { directory: directory.to_owned(), source };
        let mut file = File::open(&path).map_err(spool)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader((&mut file).take(length)).map_err(spool)?;
        if hasher.count() != length || hasher.finalize() != blake3::Hash::from_bytes(self.hash) {
            return Err(foreign());
        }
        Ok(file)
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
        let start = self.ends.last().copied().unwrap_or_default();
        let end = start + bytes.len() as u64;
        self.unread.push((self.earlier.len(), start..end));
        self.ends.push(end);
        self.file = Some(file);
        Ok(())
    }

    /// Writes a run, forces all to the disk, and keeps the file.
    pub(super) fn save(&mut self, run: &[Record], directory: &Path, seen: &[bool]) -> io::Result<SavedSpool> {
        if !run.is_empty() {
            self.write(run, directory, true)?;
        }
        let mut files: Vec<SavedFile> = self.earlier.iter().map(|(_, saved)| saved.clone()).collect();
        if let (Some(file), Some(path)) = (&self.file, &mut self.path)
            && let Some(name) = path.file_name()
        {
            let name = name.to_string_lossy().into_owned();
            files.push(SavedFile { name, ends: self.ends.clone(), hash: self.hasher.finalize().into() });
            file.sync_data()?;
            path.disable_cleanup(true);
        }
        Ok(SavedSpool { files, seen: seen.to_vec() })
    }

    /// Opens the files of saved runs.
    pub(super) fn restore(saved: &SavedSpool, directory: &Path) -> Result<Self, TimelineError> {
        let mut runs = Self::default();
        for saved in &saved.files {
            let index = runs.earlier.len();
            runs.unread.extend(saved.runs().map(|run| (index, run)));
            runs.earlier.push((saved.open(directory)?, saved.clone()));
        }
        Ok(runs)
    }
}

impl RecordStreams for Runs {
    type Error = io::Error;

    fn next_batch(&mut self, stream: usize) -> io::Result<Vec<Record>> {
        let Some((index, place)) = self.unread.get_mut(stream) else {
            return Ok(std::mem::take(&mut self.last));
        };
        let file = self.earlier.get_mut(*index).map(|(file, _)| file).or(self.file.as_mut());
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let length = (place.end - place.start).min((BATCH_RECORDS * Record::SIZE) as u64);
        let mut bytes = vec![0; length as usize];
        file.seek(SeekFrom::Start(place.start))?;
        file.read_exact(&mut bytes)?;
        place.start += length;
        Ok(Record::from_bytes(&bytes))
    }
}
