//! Traces in the Open Trace Format 2 (OTF2), through its C library.
//!
//! It covers what timelines and replays of MPI programs need: regions, messages, requests, collective operations, and their definitions.
//! Without the feature `library` the crate is empty.
//!
//! # Where to start
//! - [`writer`]: `Archive::create` opens an archive, which takes the events of one location after the other. `Archive::into_definitions`
//!   then returns the `Definitions` of everything that events name by number; `Definitions::close` completes the archive.
//! - [`reader`]: `Definitions::read` reads what all locations share. `read_events` reads the events of one location, with the identifiers
//!   of the definitions and corrected times.
#![cfg_attr(
    feature = "library",
    doc = r#"
```
use otf2::reader::{Definitions, Event, read_events};
use otf2::writer::{Archive, Role};

let directory = tempfile::tempdir()?;
let mut archive = Archive::create(directory.path(), "run")?;
archive.begin_location(0)?;
archive.enter(5, 0)?;
archive.leave(9, 0)?;
let events = archive.end_location()?;
let mut definitions = archive.into_definitions()?;
definitions.clock(1_000_000_000_000, 10)?;
let (machine, compute, rank) =
    (definitions.string("machine")?, definitions.string("compute")?, definitions.string("rank 0")?);
definitions.machine(machine)?;
definitions.region(0, compute, Role::User)?;
definitions.location(0, 0, rank, events)?;
definitions.close()?;

let anchor = directory.path().join("run.otf2");
let definitions = Definitions::read(&anchor)?;
assert_eq!(definitions.regions[&0].name, "compute");
let mut events = Vec::new();
read_events(&anchor, definitions.locations[0].id, &mut |time, event| {
    events.push((time, event));
    true
})?;
assert_eq!(events, [(5, Event::Enter { region: 0 }), (9, Event::Leave { region: 0 })]);
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
)]

#[cfg(feature = "library")]
mod library;
#[cfg(feature = "library")]
pub mod reader;
#[cfg(feature = "library")]
pub mod writer;
