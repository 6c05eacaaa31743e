//! Timelines of replays, in the formats of trace viewers and data tools.
//!
//! Ranks record events (`mpi_model::Event`), each in its own time order and some far ahead of others. An external merge
//! sort puts them in one order within bounded memory, and a writer turns them into Chrome trace events, Paje, OTF2, CSV
//! or Parquet. The output depends only on the events, not on threads or their timing.
//!
//! # Where to start
//! - [`Format`]: the file formats; [`Format::from_path`] chooses one by the file name.
//! - [`Spool`]: takes events from all threads; [`Spool::finish`] returns them as [`SortedRecords`].
//! - [`Writer`]: takes the sorted [`Record`]s of all processes and writes the files. [`Merge`] merges the sorted
//!   streams of several processes.
//!
//! # Example
//! ```
//! use mpi_model::{ActionKind, Event, EventSink};
//! use pdes_core::{Rank, SimTime};
//! use timeline::{Format, SiteNames, Spool, Writer};
//! use trace_mmap::LocationId;
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("run.csv");
//! let format = Format::from_path(&path).unwrap();
//! let spool = Spool::new(format.order(), directory.path());
//! let at = SimTime::from_picos;
//! for (begin, end) in [(5, 9), (0, 5)] {
//!     let (rank, kind, site) = (Rank::new(0), ActionKind::Compute, Some(LocationId::new(0)));
//!     spool.record(&[Event::State { rank, kind, site, begin: at(begin), end: at(end) }]);
//! }
//! let mut sites = SiteNames::default();
//! sites.add(Rank::new(0), vec!["main.c:3".to_owned()]);
//! let mut sorted = spool.finish()?;
//! let ranks: Vec<Rank> = sorted.ranks().collect();
//! let mut writer = Writer::create(format, &path, &ranks, sites)?;
//! while let Some(record) = sorted.next()? {
//!     writer.write(&record)?;
//! }
//! assert_eq!(writer.end_events()?.finish()?.states, 2);
//! let text = std::fs::read_to_string(&path)?;
//! assert_eq!(text, "rank,state,begin_ps,end_ps,site\n0,compute,0,5,main.c:3\n0,compute,5,9,main.c:3\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod chrome;
mod counter;
mod error;
mod format;
mod merge;
#[cfg(feature = "otf2")]
mod otf2;
mod paje;
#[cfg(feature = "parquet")]
mod parquet_table;
mod record;
#[cfg(test)]
mod sample;
mod site_names;
mod spool;
mod table;
mod writer;

pub use counter::Counter;
pub use error::TimelineError;
pub use format::Format;
pub use merge::{Merge, RecordStreams};
pub use record::{Order, Record};
pub use site_names::SiteNames;
pub use spool::{SavedSpool, SortedRecords, Spool};
pub use writer::{CounterWriter, Summary, Writer};
