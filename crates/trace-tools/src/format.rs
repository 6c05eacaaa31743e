//! The formats of traces: a registry with a row for each.
//!
//! A format is one file, which implements [`TraceSource`], and one row of [`FORMATS`].

use std::fs::File;
use std::io::Read;
use std::path::Path;

use trace_mmap::{ARCHIVE_MAGIC, Trace, TraceError, TraceSource};

use crate::error::InputError;
use crate::{darshan, files, foreign, goal, paraver};

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name, for errors and documentation.
    pub name: &'static str,
    /// Returns whether a file has this format, by its first bytes, up to [`HEAD`]; those of a directory are empty.
    pub knows: fn(path: &Path, head: &[u8]) -> bool,
    /// Opens a trace of this format.
    pub open: fn(path: &Path) -> Result<Input, TraceError>,
}

/// An opened trace.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, which is taken apart at once")]
pub enum Input {
    /// An archive, which is mapped; no rank is loaded.
    Archive(Trace),
    /// A trace whose actions are to be read.
    Source(Box<dyn TraceSource>),
}

/// Number of bytes by which formats are distinguished \[B\].
pub const HEAD: u64 = 64;

/// All formats, in the order in which they are asked. The last one takes what no other knows.
pub static FORMATS: [Format; 6] = [
    Format {
        name: "archive",
        knows: |_, head| head.starts_with(&ARCHIVE_MAGIC),
        open: |path| Ok(Input::Archive(Trace::open(path)?)),
    },
    Format {
        name: "shard",
        knows: |_, head| head.starts_with(ti_shard::MAGIC.as_bytes()),
        open: |path| files::merged(path).map(Input::Source),
    },
    Format {
        name: "goal",
        knows: |_, head| ::goal::is_schedule(head),
        open: |path| goal::open(path).map(Input::Source),
    },
    Format { name: "paraver", knows: paraver::knows, open: |path| Ok(Input::Source(paraver::open(path))) },
    Format {
        name: "darshan",
        knows: |_, head| darshan::knows(head),
        open: |path| darshan::open(path).map(Input::Source),
    },
    Format { name: "text", knows: |_, _| true, open: |path| files::detect(path).map(Input::Source) },
];

/// Opens a trace in the first format that knows it.
///
/// # Errors
/// Fails if the file cannot be read, or if no format knows it.
pub fn open_input(path: &Path, formats: &[Format]) -> Result<Input, TraceError> {
    let mut head = Vec::new();
    if !path.is_dir() {
        let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        read.map_err(InputError::io(path))?;
    }
    match formats.iter().find(|format| (format.knows)(path, &head)) {
        Some(format) => (format.open)(path),
        None => {
            let found = foreign::recognise(&head).unwrap_or(foreign::UNKNOWN);
            Err(InputError::Foreign { file: path.to_path_buf(), found }.into())
        }
    }
}
