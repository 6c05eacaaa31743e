//! Communicators: the trace has the handles of calls on them, but not the handles that the calls that make them return.

use std::path::Path;

use rustc_hash::FxHashMap;
use trace_mmap::TraceError;

use super::line::{CallLine, LiballprofError, RawCommunicator};
use crate::text::Lines;
use crate::timed::{Creation, Handle, Made, Split};

/// Names of `MPI_COMM_WORLD` and `MPI_COMM_SELF`; the communicator of creation `n` of a rank is [`FIRST`] + n.
pub(super) const PREDEFINED: [Handle; 2] = [0, 1];
const FIRST: Handle = 2;

/// Finds the communicators of handles. A handle that occurs first belongs to the oldest communicator without one that can have its
/// number of ranks, else to `MPI_COMM_WORLD` or `MPI_COMM_SELF`.
pub(super) struct Names {
    ranks: u32,
    known: FxHashMap<i64, (Handle, i64)>,
    /// Communicators without a handle, each with its number of ranks if that is known.
    unnamed: Vec<(Handle, Option<i64>)>,
    created: u64,
    /// True if a handle could belong to several communicators.
    pub(super) is_ambiguous: bool,
}

impl Names {
    pub(super) fn new(ranks: u32) -> Self {
        Self { ranks, known: FxHashMap::default(), unnamed: Vec::new(), created: 0, is_ambiguous: false }
    }

    /// Returns the name of a communicator.
    pub(super) fn find(
        &mut self,
        name: &str,
        RawCommunicator { handle, size }: RawCommunicator,
    ) -> Result<Handle, LiballprofError> {
        if let Some((known, _)) = self.known.get(&handle).filter(|(_, of_known)| *of_known == size) {
            return Ok(*known);
        }
        let fits = |(_, expected): &(Handle, Option<i64>)| expected.is_none_or(|expected| expected == size);
        let unnamed = self.unnamed.iter().position(fits);
        self.is_ambiguous = self.unnamed.iter().filter(|unnamed| fits(unnamed)).count() > 1;
        let found = match unnamed {
            Some(index) => self.unnamed.remove(index).0,
            None if size == i64::from(self.ranks) => PREDEFINED[0],
            None if size == 1 => PREDEFINED[1],
            None => return Err(LiballprofError::Communicator { name: name.to_owned(), handle, size }),
        };
        self.known.insert(handle, (found, size));
        Ok(found)
    }

    /// Notes the communicator of the next call. Returns what it makes, if it makes one whose members are known.
    pub(super) fn note(
        &mut self,
        call: &mut CallLine<'_>,
    ) -> Result<Option<(Handle, Option<Handle>, Split)>, LiballprofError> {
        if !matches!(call.name, "MPI_Comm_dup" | "MPI_Comm_split" | "MPI_Cart_create" | "MPI_Graph_create") {
            return call.peek_communicator().map_or(Ok(None), |raw| self.find(call.name, raw).map(|_| None));
        }
        let raw = call.communicator()?;
        let parent = self.find(call.name, raw)?;
        let new = FIRST + self.created;
        self.created += 1;
        let (split, size) = match call.name {
            "MPI_Comm_dup" => (Split::Dup, Some(raw.size)),
            "MPI_Comm_split" => {
                (Split::Color { color: call.number("color")?, key: call.number("key")? }, None)
            }
            _ => (Split::SameOrder, Some(raw.size)),
        };
        // A negative color is MPI_UNDEFINED.
        let has_new = !matches!(split, Split::Color { color: ..0, .. });
        self.unnamed.extend(has_new.then_some((new, size)));
        Ok(Some((parent, has_new.then_some(new), split)))
    }
}

/// Reads the calls of a rank that make communicators.
pub(super) fn made(file: &Path, ranks: u32) -> Result<Vec<Creation>, TraceError> {
    let (mut names, mut creations) = (Names::new(ranks), Vec::new());
    let mut lines = Lines::open(file)?;
    while let Some(line) = lines.next()? {
        let found = CallLine::parse(line.number, line.text)
            .and_then(|mut call| Ok(names.note(&mut call)?.map(|made| (static_name(call.name), made))));
        let found = found.map_err(|kind| CallLine::locate(file, line.number, kind))?;
        creations.extend(found.map(|(name, (parent, new, by))| {
            let made = Made::Communicator { parent, new, by };
            Creation { name, line: line.number, made }
        }));
    }
    Ok(creations)
}

fn static_name(name: &str) -> &'static str {
    match name {
        "MPI_Comm_dup" => "MPI_Comm_dup",
        "MPI_Comm_split" => "MPI_Comm_split",
        "MPI_Cart_create" => "MPI_Cart_create",
        _ => "MPI_Graph_create",
    }
}
