//! Writer of traces in the Open Trace Format 2 (OTF2), through its C library.
//!
//! It covers what a timeline of an MPI program needs: regions, messages, and their definitions. Without the feature
//! `library` the crate is empty.
//!
//! # Where to start
//! - `Archive::create` opens an archive, which takes the events of one location after the other.
//! - `Archive::into_definitions` then returns the `Definitions` of everything that events name by number: strings,
//!   regions, locations, the communicator. `Definitions::close` completes the archive.
#![cfg_attr(
    feature = "library",
    doc = r#"
```
use otf2_writer::{Archive, Role};

let directory = tempfile::tempdir()?;
let mut archive = Archive::create(directory.path(), "run")?;
archive.begin_location(0)?;
archive.enter(5, 0)?;
archive.leave(9, 0)?;
let events = archive.end_location()?;
assert_eq!(events, 2);

let mut definitions = archive.into_definitions()?;
definitions.clock(1_000_000_000_000, 10)?;
let (machine, compute, rank) =
    (definitions.string("machine")?, definitions.string("compute")?, definitions.string("rank 0")?);
definitions.machine(machine)?;
definitions.region(0, compute, Role::User)?;
definitions.location(0, 0, rank, events)?;
definitions.close()?;
assert!(directory.path().join("run.otf2").is_file());
# Ok::<(), Box<dyn std::error::Error>>(())
```
"#
)]

#[cfg(feature = "library")]
mod archive;
#[cfg(feature = "library")]
mod definitions;
#[cfg(feature = "library")]
mod ffi;

#[cfg(feature = "library")]
pub use archive::{Archive, Otf2Error};
#[cfg(feature = "library")]
pub use definitions::{Definitions, Role};
