//! Traces in the Open Trace Format 2, through its C library.
//!
//! What is there is what a timeline of an MPI program needs: an archive takes the events of one location after the other,
//! then the definitions of what they name. Without the feature `library` the crate is empty.
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

let mut definitions = archive.define()?;
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
