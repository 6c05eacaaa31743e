//! Writer of archives.

mod archive;
mod definitions;
mod ffi;

pub use archive::{Archive, Otf2Error};
pub use definitions::{Definitions, Role};
