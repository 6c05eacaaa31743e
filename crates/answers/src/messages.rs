//! Messages of a program, by the region or call site of their sends, whose sizes are changed.

use std::path::Path;
use std::sync::Arc;

use replay::RunSpec;
use tempfile::TempPath;
use trace_mmap::{ConvertOptions, LoadOptions, PairTraffic, Trace, TraceError};
use trace_tools::transform::{Hypothesis, TransformError};

/// Messages between two ranks that are sent in one place of a program, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageGroup {
    /// Region, or call site `file:line`; `None` for all messages.
    place: Option<String>,
    /// Payload of all messages of the program, and of those of the group \[B\].
    bytes: [u64; 2],
}

/// The reason why messages cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// The trace cannot be loaded.
    #[error("the trace: {0}")]
    Trace(#[from] TraceError),
    /// The messages cannot be told from others, or the changed trace cannot be written.
    #[error(transparent)]
    Transform(#[from] TransformError),
    /// A temporary file cannot be made.
    #[error("a temporary file: {0}")]
    File(#[from] std::io::Error),
}

impl MessageError {
    /// Returns whether the change does not suit the program, rather than a file that cannot be read or written.
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::Transform(error) if error.is_misuse())
    }
}

impl MessageGroup {
    /// Finds the messages that the program of a run sends in a place, or all of them. `None` if there are none of any size. Reads the trace
    /// twice.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, or the messages cannot be told from others.
    pub fn new(spec: &RunSpec, place: Option<&str>) -> Result<Option<Self>, MessageError> {
        let all = payload(&trace_tools::load(&spec.trace, &spec.load_options())?)?;
        if all == 0 {
            return Ok(None);
        }
        let emptied = transformed(spec, &[resize(place, 0.0)])?;
        let own = all - payload(&trace_tools::load(&emptied, &spec.load_options())?)?;
        Ok((own > 0).then(|| Self { place: place.map(str::to_owned), bytes: [all, own] }))
    }

    /// Returns the region or the call site; `None` if the group has all messages.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Writes the trace of a run with messages of so many times their sizes, rounded to whole bytes; returns the factor of all of their bytes
    /// together, too.
    pub(crate) fn resized(&self, spec: &RunSpec, factor: f64) -> Result<(TempPath, f64), MessageError> {
        let trace = transformed(spec, &[resize(self.place(), factor)])?;
        let [all, own] = self.bytes;
        let changed = payload(&trace_tools::load(&trace, &spec.load_options())?)?;
        Ok((trace, 1.0 + (changed as f64 - all as f64) / own as f64))
    }
}

fn resize(place: Option<&str>, factor: f64) -> toml::Table {
    transform("resize", [place.map(selector), Some(("factor", factor.into()))])
}

/// Returns the key of a selector of a place, with its value.
pub(crate) fn selector(place: &str) -> (&'static str, toml::Value) {
    let is_site = place.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    (if is_site { "site" } else { "region" }, place.into())
}

/// Returns the table of a transformation of programs.
pub(crate) fn transform<const N: usize>(kind: &str, keys: [Option<(&str, toml::Value)>; N]) -> toml::Table {
    let keys = keys.into_iter().flatten().map(|(key, value)| (key.to_owned(), value));
    keys.chain([("kind".to_owned(), kind.into())]).collect()
}

/// Returns the text of a file with one hypothesis.
pub(crate) fn hypothesis(name: &str, settings: &[String], transforms: &[toml::Table]) -> String {
    let mut hypothesis = toml::Table::from_iter([("name".to_owned(), name.into())]);
    if !settings.is_empty() {
        hypothesis.insert("set".to_owned(), settings.to_vec().into());
    }
    if !transforms.is_empty() {
        hypothesis.insert("transform".to_owned(), transforms.to_vec().into());
    }
    toml::Table::from_iter([("hypothesis".to_owned(), vec![hypothesis].into())]).to_string()
}

/// Writes the trace of a run with some transformations to a temporary archive.
pub(crate) fn transformed(spec: &RunSpec, transforms: &[toml::Table]) -> Result<TempPath, MessageError> {
    let hypotheses = Hypothesis::from_text(&hypothesis("changed", &[], transforms), Path::new("changes"))?;
    let load = spec.load_options();
    let trace = Arc::new(trace_tools::load(&spec.trace, &load)?);
    let output = tempfile::Builder::new().suffix(".pdt").tempfile()?.into_temp_path();
    let options = ConvertOptions { load: LoadOptions { ranks: None, ..load }, ..Default::default() };
    hypotheses[0].write(&trace, &spec.trace, &output, &options)?;
    Ok(output)
}

/// Returns the bytes of all messages between two ranks.
fn payload(trace: &Trace) -> Result<u64, TraceError> {
    Ok(PairTraffic::all(trace)?.iter().map(|pair| pair.bytes.get()).sum())
}
