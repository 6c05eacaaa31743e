//! The trace of a program.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;

/// The trace of a program: a file, or one that was generated for a run, and is removed when nobody refers to it.
#[derive(Clone, Debug, Default)]
pub struct TraceFile {
    path: PathBuf,
    generated: Option<Arc<Generated>>,
}

#[derive(Debug)]
struct Generated {
    name: String,
    _file: TempPath,
}

impl TraceFile {
    /// Names a trace by what it was generated from.
    pub fn generated(name: &str, file: TempPath) -> Self {
        Self {
            path: file.to_path_buf(),
            generated: Some(Arc::new(Generated { name: name.to_owned(), _file: file })),
        }
    }
}

impl TraceFile {
    /// Returns what the trace was generated from; `None` if it was not.
    pub fn recipe(&self) -> Option<&str> {
        self.generated.as_ref().map(|generated| generated.name.as_str())
    }
}

impl<P: Into<PathBuf>> From<P> for TraceFile {
    fn from(path: P) -> Self {
        Self { path: path.into(), generated: None }
    }
}

impl Deref for TraceFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for TraceFile {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl PartialEq for TraceFile {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for TraceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.generated {
            Some(generated) => f.write_str(&generated.name),
            None => self.path.display().fmt(f),
        }
    }
}
