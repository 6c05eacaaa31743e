//! Writer of timelines, for all formats.

use std::path::{Path, PathBuf};

use mpi_model::Event;
use pdes_core::Rank;

use crate::chrome::Chrome;
use crate::columnar::ParquetTable;
use crate::error::TimelineError;
use crate::format::Format;
#[cfg(feature = "otf2")]
use crate::otf2::Otf2;
use crate::paje::Paje;
use crate::record::{Order, Record};
use crate::table::{CsvTable, Tables};

/// Writes a timeline, one event at a time.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    order: Order,
    kind: Kind,
    summary: Summary,
}

#[derive(Debug)]
enum Kind {
    Chrome(Box<Chrome>),
    Csv(Box<Tables<CsvTable>>),
    Paje(Box<Paje>),
    Parquet(Box<Tables<ParquetTable>>),
    #[cfg(feature = "otf2")]
    Otf2(Box<Otf2>),
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
    /// Creates a timeline that shows these ranks in order.
    ///
    /// # Errors
    /// Fails if a file cannot be created, or the program was built without the format.
    pub fn create(format: Format, path: &Path, ranks: &[Rank]) -> Result<Self, TimelineError> {
        let kind = match format {
            Format::Chrome => Chrome::create(path, ranks).map(|chrome| Kind::Chrome(Box::new(chrome))),
            Format::Csv => Tables::create(path).map(|tables| Kind::Csv(Box::new(tables))),
            Format::Paje => Paje::create(path, ranks).map(|paje| Kind::Paje(Box::new(paje))),
            Format::Parquet => Tables::create(path).map(|tables| Kind::Parquet(Box::new(tables))),
            #[cfg(feature = "otf2")]
            Format::Otf2 => Otf2::create(path, ranks).map(|otf2| Kind::Otf2(Box::new(otf2))),
            #[cfg(not(feature = "otf2"))]
            Format::Otf2 => return Err(TimelineError::NotBuilt { format }),
        };
        let kind = kind.map_err(|source| TimelineError::write(path, source))?;
        Ok(Self { path: path.to_owned(), order: format.order(), kind, summary: Summary::default() })
    }

    /// Writes an event. Events must come in the [order](Format::order) of the format.
    ///
    /// # Errors
    /// Fails if the file cannot be written, or the record is not valid in that order.
    pub fn write(&mut self, record: &Record) -> Result<(), TimelineError> {
        let event = record.event(self.order).ok_or(TimelineError::Garbled)?;
        match event {
            Event::State { .. } => self.summary.states += 1,
            Event::Wait { .. } => self.summary.waits += 1,
            Event::Message { .. } => self.summary.messages += u64::from(!record.is_receipt()),
        }
        let written = match &mut self.kind {
            Kind::Chrome(chrome) => chrome.write(&event),
            Kind::Csv(tables) => tables.write(&event),
            Kind::Paje(paje) => paje.write(&event),
            Kind::Parquet(tables) => tables.write(&event),
            #[cfg(feature = "otf2")]
            Kind::Otf2(otf2) => otf2.write(&event, record.is_receipt()),
        };
        written.map_err(|source| TimelineError::write(&self.path, source))
    }

    /// Completes the timeline. A timeline that is dropped instead leaves no file.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn finish(self) -> Result<Summary, TimelineError> {
        let bytes = match self.kind {
            Kind::Chrome(chrome) => chrome.finish(),
            Kind::Csv(tables) => tables.finish(),
            Kind::Paje(paje) => paje.finish(),
            Kind::Parquet(tables) => tables.finish(),
            #[cfg(feature = "otf2")]
            Kind::Otf2(otf2) => otf2.finish(),
        };
        let bytes = bytes.map_err(|source| TimelineError::write(&self.path, source))?;
        Ok(Summary { bytes, ..self.summary })
    }
}
