//! Writer of archives.

mod archive;
mod definitions;
mod ffi;
mod windows;

pub use archive::{Archive, Otf2Error};
pub use definitions::{Definitions, Role};
