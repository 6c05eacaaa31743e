//! The formats of traces: a registry with a row for each.
//!
//! A format is one file, which implements [`TraceSource`], and one row of [`FORMATS`].

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use trace_mmap::{ARCHIVE_MAGIC, Trace, TraceError, TraceSource};

use crate::error::InputError;
#[cfg(feature = "otf2")]
use crate::otf2;
use crate::text::Stream;
use crate::{darshan, dumpi, files, foreign, goal, hdtrace, liballprof, paraver, simai};

/// A row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Name, for errors and documentation.
    pub name: &'static str,
    /// Returns whether a candidate has this format.
    pub knows: fn(&Candidate) -> bool,
    /// Opens a trace of this format.
    pub open: fn(&Candidate) -> Result<Input, TraceError>,
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
pub const HEAD: usize = 4096;

/// A file or directory that may be a trace.
#[derive(Debug)]
pub struct Candidate {
    path: PathBuf,
    head: Vec<u8>,
    text: OnceCell<Vec<u8>>,
    siblings: OnceCell<Vec<PathBuf>>,
}

impl Candidate {
    /// Reads the head of a file; that of a directory is empty.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn new(path: &Path) -> Result<Self, TraceError> {
        let mut head = Vec::new();
        if !path.is_dir() {
            let read = File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
            read.map_err(InputError::io(path))?;
        }
        let (text, siblings) = (OnceCell::new(), OnceCell::new());
        Ok(Self { path: path.to_path_buf(), head, text, siblings })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the first bytes of the file, up to [`HEAD`].
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the first bytes of the file after decompression, up to [`HEAD`]; fewer if its compressed form is damaged.
    pub fn text(&self) -> &[u8] {
        if Stream::is_compressed(&self.head) {
            self.text.get_or_init(|| Stream::open(&self.path).map(Stream::into_head).unwrap_or_default())
        } else {
            &self.head
        }
    }

    /// Returns the first file of a directory whose name has this end; `None` also for a file.
    pub fn member(&self, end: &str) -> Option<Self> {
        let is_member = |file: &&PathBuf| file.to_string_lossy().ends_with(end) && file.is_file();
        let member = self.siblings().iter().find(is_member).filter(|_| self.path.is_dir());
        Self::new(member?).ok()
    }

    /// Returns the files in a directory, or beside a file and the file itself, sorted by their paths; none if they cannot be listed.
    pub fn siblings(&self) -> &[PathBuf] {
        self.siblings.get_or_init(|| {
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let dir = if self.path.is_dir() { &self.path } else { parent.unwrap_or(Path::new(".")) };
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let mut siblings: Vec<_> = entries.map(|entry| entry.path()).collect();
            siblings.sort_unstable();
            siblings
        })
    }
}

/// All formats, in the order in which they are asked. The last one takes what no other knows.
pub static FORMATS: &[Format] = &[
    Format {
        name: "archive",
        knows: |candidate| candidate.head().starts_with(&ARCHIVE_MAGIC),
        open: |candidate| Ok(Input::Archive(Trace::open(candidate.path())?)),
    },
    Format {
        name: "shard",
        knows: |candidate| candidate.head().starts_with(ti_shard::MAGIC.as_bytes()),
        open: |candidate| files::merged(candidate.path()).map(Input::Source),
    },
    Format {
        name: "goal",
        knows: |candidate| ::goal::is_schedule(candidate.head()),
        open: |candidate| goal::open(candidate.path()).map(Input::Source),
    },
    Format {
        name: "paraver",
        knows: |candidate| candidate.text().starts_with(paraver::MAGIC),
        open: |candidate| Ok(Input::Source(paraver::open(candidate.path()))),
    },
    Format {
        name: "dimemas",
        knows: |candidate| candidate.text().starts_with(paraver::dimemas::MAGIC),
        open: |candidate| Ok(Input::Source(paraver::dimemas::open(candidate.path()))),
    },
    Format {
        name: "simai",
        knows: |candidate| candidate.text().starts_with(simai::MAGIC),
        open: |candidate| simai::open(candidate.path()).map(Input::Source),
    },
    Format {
        name: "darshan",
        knows: |candidate| darshan::knows(candidate.head()),
        open: |candidate| darshan::open(candidate.path()).map(Input::Source),
    },
    Format {
        name: "dumpi",
        knows: dumpi::knows,
        open: |candidate| dumpi::open(candidate).map(Input::Source),
    },
    #[cfg(feature = "otf2")]
    Format { name: "otf2", knows: otf2::knows, open: |candidate| otf2::open(candidate).map(Input::Source) },
    Format {
        name: "hdtrace",
        knows: hdtrace::knows,
        open: |candidate| hdtrace::open(candidate).map(Input::Source),
    },
    Format {
        name: "liballprof",
        knows: liballprof::knows,
        open: |candidate| liballprof::open(candidate).map(Input::Source),
    },
    Format {
        name: "text",
        knows: |_| true,
        open: |candidate| files::detect(candidate.path()).map(Input::Source),
    },
];

/// Opens a trace in the first format that knows it.
///
/// # Errors
/// Fails if the file cannot be read, or if no format knows it.
pub fn open_input(path: &Path, formats: &[Format]) -> Result<Input, TraceError> {
    let candidate = Candidate::new(path)?;
    match formats.iter().find(|format| (format.knows)(&candidate)) {
        Some(format) => (format.open)(&candidate),
        None => {
            let found = foreign::recognise(candidate.text()).unwrap_or(foreign::UNKNOWN);
            Err(InputError::Foreign { file: path.to_path_buf(), found }.into())
        }
    }
}
