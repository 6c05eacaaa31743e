//! Irregular lines of a file.

use std::path::Path;

use trace_mmap::{Location, RankBuilders, Warning};

/// Number of lines of one kind, and the number of the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCount {
    lines: u64,
    first: u64,
}

impl LineCount {
    /// Counts a line.
    pub(crate) fn count(&mut self, line: u64) {
        if self.lines == 0 {
            self.first = line;
        }
        self.lines += 1;
    }

    fn locate(self, file: &Path) -> Option<(u64, Location)> {
        (self.lines > 0).then(|| (self.lines, Location { file: file.to_path_buf(), line: self.first }))
    }
}

/// The irregular lines of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileWarnings {
    pub(crate) extra_fields: LineCount,
    pub(crate) communicators: LineCount,
    pub(crate) no_newline: LineCount,
}

impl FileWarnings {
    /// Reports the lines as warnings, one of each kind.
    pub(crate) fn report(self, file: &Path, ranks: &mut RankBuilders<'_>) {
        if let Some((lines, first)) = self.extra_fields.locate(file) {
            ranks.warn(Warning::ExtraFields { lines, first });
        }
        if let Some((lines, first)) = self.communicators.locate(file) {
            ranks.warn(Warning::Communicators { lines, first });
        }
        if let Some((lines, first)) = self.no_newline.locate(file) {
            ranks.warn(Warning::NoNewline { lines, first });
        }
    }
}
