//! Timelines of replays, in the formats of viewers and of tools for data.
//!
//! Ranks record events as they come to pass (`mpi_model::Event`), each in its own time and some far ahead of others. A
//! [`Spool`] takes them from all threads, sorts them, and keeps what is too much for memory in a temporary file; a
//! [`Writer`] then gets them in order, one after the other. What it writes depends on the events and on nothing else.
//!
//! ```
//! use mpi_model::{ActionKind, Event, EventSink};
//! use pdes_core::{Rank, SimTime};
//! use timeline::{Format, Spool, Writer};
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("run.csv");
//! let format = Format::of(&path).unwrap();
//! let spool = Spool::new(format.order(), directory.path());
//! let at = SimTime::from_picos;
//! for (begin, end) in [(5, 9), (0, 5)] {
//!     let (rank, kind) = (Rank::new(0), ActionKind::Compute);
//!     spool.take(&[Event::State { rank, kind, begin: at(begin), end: at(end) }]);
//! }
//! let mut sorted = spool.finish()?;
//! let ranks: Vec<Rank> = sorted.ranks().collect();
//! let mut writer = Writer::create(format, &path, &ranks)?;
//! while let Some(record) = sorted.next()? {
//!     writer.write(&record)?;
//! }
//! assert_eq!(writer.finish()?.states, 2);
//! let text = std::fs::read_to_string(&path)?;
//! assert_eq!(text, "rank,state,begin_ps,end_ps\n0,compute,0,5\n0,compute,5,9\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod chrome;
mod columnar;
mod draft;
mod error;
mod format;
mod merge;
#[cfg(feature = "otf2")]
mod otf2;
mod paje;
mod record;
#[cfg(test)]
mod sample;
mod spool;
mod table;
mod writer;

pub use error::TimelineError;
pub use format::Format;
pub use merge::{Merge, Streams};
pub use record::{Order, Record};
pub use spool::{Sorted, Spool};
pub use writer::{Summary, Writer};
