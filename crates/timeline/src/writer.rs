//! Writer of timelines, for all formats.

use std::path::{Path, PathBuf};

use mpi_model::Event;
use pdes_core::Rank;

use crate::chrome::ChromeWriter;
use crate::counter::Counter;
use crate::error::TimelineError;
use crate::format::Format;
#[cfg(feature = "otf2")]
use crate::otf2::Otf2Writer;
use crate::paje::PajeWriter;
#[cfg(feature = "parquet")]
use crate::parquet_table::ParquetTable;
use crate::record::{Order, Record};
use crate::site_names::SiteNames;
use crate::table::{CsvTable, Tables};

/// Writes a timeline, one event at a time.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    order: Order,
    backend: Backend,
    sites: SiteNames,
    summary: Summary,
}

#[derive(Debug)]
enum Backend {
    Chrome(Box<ChromeWriter>),
    Csv(Box<Tables<CsvTable>>),
    Paje(Box<PajeWriter>),
    #[cfg(feature = "parquet")]
    Parquet(Box<Tables<ParquetTable>>),
    #[cfg(feature = "otf2")]
    Otf2(Box<Otf2Writer>),
}

/// Contents of a written timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of states of ranks.
    pub states: u64,
    /// Number of wait states inside states.
    pub waits: u64,
    /// Number of messages.
    pub messages: u64,
    /// Size of all files \[B\].
    pub bytes: u64,
}

impl Writer {
    /// Creates a timeline that shows these ranks in order, and names their call sites.
    ///
    /// # Errors
    /// Fails if a file cannot be created, or the program was built without the format.
    pub fn create(
        format: Format,
        path: &Path,
        ranks: &[Rank],
        sites: SiteNames,
    ) -> Result<Self, TimelineError> {
        let kind = match format {
            Format::Chrome => {
                ChromeWriter::create(path, ranks).map(|chrome| Backend::Chrome(Box::new(chrome)))
            }
            Format::Csv => Tables::create(path).map(|tables| Backend::Csv(Box::new(tables))),
            Format::Paje => PajeWriter::create(path, ranks).map(|paje| Backend::Paje(Box::new(paje))),
            #[cfg(feature = "parquet")]
            Format::Parquet => Tables::create(path).map(|tables| Backend::Parquet(Box::new(tables))),
            #[cfg(feature = "otf2")]
            Format::Otf2 => Otf2Writer::create(path, ranks).map(|otf2| Backend::Otf2(Box::new(otf2))),
            #[cfg(not(all(feature = "otf2", feature = "parquet")))]
            format => return Err(TimelineError::NotBuilt { format }),
        };
        let kind = kind.map_err(|source| TimelineError::write(path, source))?;
        let (order, summary) = (format.order(), Summary::default());
        Ok(Self { path: path.to_owned(), order, backend: kind, sites, summary })
    }

    /// Writes an event. Events must come in the [order](Format::order) of the format.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or the record is not valid in that order.
    pub fn write(&mut self, record: &Record) -> Result<(), TimelineError> {
        let event = record.decode(self.order).ok_or(TimelineError::InvalidRecord)?;
        match event {
            Event::State { .. } => self.summary.states += 1,
            Event::Wait { .. } => self.summary.waits += 1,
            Event::Message { .. } => self.summary.messages += u64::from(!record.is_receipt()),
        }
        let site = self.sites.of_event(&event);
        let written = match &mut self.backend {
            Backend::Chrome(chrome) => chrome.write(&event, site),
            Backend::Csv(tables) => tables.write(&event, site),
            Backend::Paje(paje) => paje.write(&event),
            #[cfg(feature = "parquet")]
            Backend::Parquet(tables) => tables.write(&event, site),
            #[cfg(feature = "otf2")]
            Backend::Otf2(otf2) => otf2.write(&event, record.is_receipt()),
        };
        written.map_err(|source| TimelineError::write(&self.path, source))
    }

    /// Ends the events of the timeline, which counters may follow; completes a file whose format has none. A timeline that is dropped instead
    /// leaves no file.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn end_events(self) -> Result<CounterWriter, TimelineError> {
        let bytes = match self.backend {
            Backend::Chrome(chrome) => {
                return Ok(CounterWriter { path: self.path, chrome: Some(chrome), summary: self.summary });
            }
            Backend::Csv(tables) => tables.finish(),
            Backend::Paje(paje) => paje.finish(),
            #[cfg(feature = "parquet")]
            Backend::Parquet(tables) => tables.finish(),
            #[cfg(feature = "otf2")]
            Backend::Otf2(otf2) => otf2.finish(),
        };
        let bytes = bytes.map_err(|source| TimelineError::write(&self.path, source))?;
        Ok(CounterWriter { path: self.path, chrome: None, summary: Summary { bytes, ..self.summary } })
    }
}

/// Writes the counters of a timeline, in Chrome's format; the others leave them out. A timeline that is dropped leaves no file in that format.
#[derive(Debug)]
pub struct CounterWriter {
    path: PathBuf,
    chrome: Option<Box<ChromeWriter>>,
    summary: Summary,
}

impl CounterWriter {
    /// Writes a counter.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, counter: &Counter) -> Result<(), TimelineError> {
        let written = self.chrome.as_mut().map_or(Ok(()), |chrome| chrome.write_counter(counter));
        written.map_err(|source| TimelineError::write(&self.path, source))
    }

    /// Completes the timeline.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(self) -> Result<Summary, TimelineError> {
        let Self { path, chrome, summary } = self;
        let Some(chrome) = chrome else { return Ok(summary) };
        let bytes = chrome.finish().map_err(|source| TimelineError::write(&path, source))?;
        Ok(Summary { bytes, ..summary })
    }
}
