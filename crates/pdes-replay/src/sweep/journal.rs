//! Journal of the results of a sweep, from which an interrupted sweep continues.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use trace_mmap::AtomicFile;

use super::{RunResult, SweepError};
use crate::config::Config;

/// File name of the journal in the directory of the results.
const FILE_NAME: &str = "runs.jsonl";

/// A file with a line for each successful run.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: BTreeMap<String, RunResult>,
}

#[derive(Serialize, Deserialize)]
struct JournalEntry {
    key: String,
    result: RunResult,
}

impl Journal {
    pub(super) fn open(directory: &Path, afresh: bool) -> Result<Self, SweepError> {
        let path = directory.join(FILE_NAME);
        let error = |source| SweepError::File { path: path.clone(), source };
        fs::create_dir_all(directory)
            .map_err(|source| SweepError::File { path: directory.to_owned(), source })?;
        let text = match fs::read_to_string(&path) {
            Ok(text) if !afresh => text,
            Ok(_) => String::new(),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(error(source)),
        };
        // A truncated last line, from an interrupted write, is dropped: its run is repeated.
        let lines: Vec<JournalEntry> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut whole = AtomicFile::create(&path).map_err(error)?;
        for line in &lines {
            write(&mut whole, line).map_err(error)?;
        }
        whole.commit().map_err(error)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(error)?;
        let known = lines.into_iter().map(|line| (line.key, line.result)).collect();
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

fn write(file: &mut impl Write, line: &JournalEntry) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line).map_err(std::io::Error::from)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// Returns the key of a run: a hash of the program's version, of the configuration without sections that cannot change the result,
/// and of the sizes and modification times of the input files.
pub(super) fn key(config: &Config) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(config.relevant_text().as_bytes());
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
