//! Journal of the results of a sweep, from which an interrupted sweep continues.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use replay::RunSpec;
use serde::{Deserialize, Serialize};

use super::{RunResult, SweepError};
use crate::config::Config;

/// File name of the journal in the directory of the results.
pub(super) const FILE_NAME: &str = "runs.jsonl";

/// A file with a line for each successful run.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: BTreeMap<String, RunResult>,
}

/// The first line of a journal.
#[derive(Serialize, Deserialize)]
struct JournalHeader {
    /// Path of the sweep, without links.
    sweep: String,
}

#[derive(Serialize, Deserialize)]
struct JournalEntry {
    key: String,
    result: RunResult,
}

impl Journal {
    /// Opens the journal of a sweep in a directory, which no other process can open until it is dropped.
    pub(super) fn open(directory: &Path, sweep: &Path, afresh: bool) -> Result<Self, SweepError> {
        let path = directory.join(FILE_NAME);
        let error = |source| SweepError::File { path: path.clone(), source };
        fs::create_dir_all(directory)
            .map_err(|source| SweepError::File { path: directory.to_owned(), source })?;
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(SweepError::Busy { directory: directory.to_path_buf() });
            }
            Err(TryLockError::Error(source)) => return Err(error(source)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(error)?;
        let own = JournalHeader { sweep: sweep.to_string_lossy().into_owned() };
        let header = text.lines().find_map(|line| serde_json::from_str::<JournalHeader>(line).ok());
        let header = header.filter(|_| !afresh);
        if let Some(JournalHeader { sweep }) = &header
            && *sweep != own.sweep
        {
            return Err(SweepError::OtherSweep { directory: directory.to_path_buf(), other: sweep.clone() });
        }
        // A truncated last line, from an interrupted write, is dropped: its run is repeated.
        text.truncate(if afresh { 0 } else { text.rfind('\n').map_or(0, |end| end + 1) });
        file.set_len(text.len() as u64).map_err(error)?;
        if header.is_none() {
            write(&mut file, &own).map_err(error)?;
        }
        let lines = text.lines().filter_map(|line| serde_json::from_str::<JournalEntry>(line).ok());
        let known = lines.map(|line| (line.key, line.result)).collect();
        Ok(Self { file: Mutex::new(file), known, path })
    }

    /// Returns the result of a run in an earlier call.
    pub(super) fn find(&self, key: &str) -> Option<RunResult> {
        self.known.get(key).cloned()
    }

    pub(super) fn add(&self, key: &str, found: &RunResult) -> Result<(), SweepError> {
        let line = JournalEntry { key: key.to_owned(), result: found.clone() };
        let file = &mut *self.file.lock().expect("no run has panicked while it wrote");
        write(file, &line).map_err(|source| SweepError::File { path: self.path.clone(), source })
    }
}

fn write(file: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line).map_err(std::io::Error::from)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// Returns the key of a run: a hash of the program's version, of the configuration without sections that cannot change the result,
/// and of the sizes and modification times of the input files.
pub(super) fn key(config: &Config, spec: &RunSpec) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(config.relevant_text().as_bytes());
    // Values that are not set: defaults may change.
    hasher.update(format!("{:?} {:?} {:?}", spec.network, spec.mpi, spec.placement).as_bytes());
    for path in config.inputs() {
        hasher.update(stamp(&path).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

fn stamp(path: &Path) -> String {
    let Ok(meta) = fs::metadata(path) else { return "none".to_owned() };
    let age = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", meta.len(), age.unwrap_or_default().as_nanos())
}
