//! The `.pcf` of a trace: names of the values of events.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use trace_mmap::TraceError;

use super::fields::{invalid, parse};
use super::{LineError, ParaverError};
use crate::error::InputError;
use crate::text::Lines;
use crate::timed::Function;

/// Types of the events of MPI: point-to-point, collective, other, one-sided, files.
pub(super) const MPI_EVENTS: std::ops::RangeInclusive<u64> = 50_000_001..=50_000_005;

/// Returns whether events of a type are the begins and ends of calls of MPI.
pub(super) fn is_mpi(event: u64) -> bool {
    MPI_EVENTS.contains(&event)
}

/// Returns the path of the `.pcf` of a trace.
pub(super) fn path_beside(trace: &Path) -> PathBuf {
    let is_compressed = trace.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
    let plain = if is_compressed { trace.with_extension("") } else { trace.to_path_buf() };
    plain.with_extension("pcf")
}

/// The functions of MPI that the `.pcf` names. Values differ between traces.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Index of the name of each type and value.
    by_value: FxHashMap<(u64, u64), LabelId>,
    names: Vec<(String, Function)>,
}

/// The name of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelId(u32);

impl Labels {
    /// Reads the `.pcf` of a trace.
    pub(super) fn read(path: &Path, trace: &Path) -> Result<Self, TraceError> {
        if !path.exists() {
            let (trace, labels) = (trace.to_path_buf(), path.to_path_buf());
            return Err(InputError::LabelsMissing { trace, labels }.into());
        }
        let mut labels = Self::default();
        let (mut types, mut has_values) = (Vec::new(), false);
        let mut lines = Lines::open(path)?;
        while let Some(line) = lines.next()? {
            let (number, text) = (line.number, line.text);
            if text == b"VALUES" {
                has_values = true;
            } else if text[0].is_ascii_uppercase() {
                // Any other heading, among them that of the next types.
                types.clear();
                has_values = false;
            } else if has_values {
                labels.add(&types, text).map_err(|kind| LineError { line: number, kind }.locate(path))?;
            } else {
                types.extend(words(text).nth(1).and_then(parse).filter(|event| is_mpi(*event)));
            }
        }
        Ok(labels)
    }

    /// Adds the name of a value of some types.
    fn add(&mut self, types: &[u64], text: &[u8]) -> Result<(), ParaverError> {
        let mut fields = words(text);
        let value = fields.next().unwrap_or_default();
        for &event in types {
            let Some(number) = parse(value) else {
                return Err(invalid("value of an event", value, "a number"));
            };
            let name =
                fields.clone().next().ok_or(ParaverError::MissingField { field: "name of the value" })?;
            self.insert(event, number, name.escape_ascii().to_string());
        }
        Ok(())
    }

    /// Names a value of a type of event.
    pub(super) fn insert(&mut self, event: u64, value: u64, name: String) {
        self.by_value.insert((event, value), LabelId(self.names.len() as u32));
        let function = Function::of(&name);
        self.names.push((name, function));
    }

    /// Finds the function of a value other than 0 of a type of event.
    pub(super) fn find(&self, event: u64, value: u64) -> Result<LabelId, ParaverError> {
        let found = self.by_value.get(&(event, value));
        found.copied().ok_or(ParaverError::UnnamedCall { event, value })
    }

    /// Returns the name of a function, such as `MPI_Send`.
    pub(super) fn name(&self, id: LabelId) -> &str {
        &self.names[id.0 as usize].0
    }

    /// Returns a function.
    pub(super) fn function(&self, id: LabelId) -> Function {
        self.names[id.0 as usize].1
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
