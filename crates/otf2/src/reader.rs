//! Reader of archives.

mod archive;
mod definitions;
mod ending;
mod events;
mod ffi;

pub use archive::Otf2Error;
pub use definitions::{Communicator, Counter, Definitions, Group, GroupKind, Location, Region};
pub use events::{Event, read_events};
