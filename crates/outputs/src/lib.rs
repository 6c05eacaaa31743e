//! Files that commands write: whole or not at all ([`AtomicFile`]), and never over their inputs ([`FileRoles`]); and how
//! [quantities](quantity) with units are written.

mod atomic_file;
mod json;
pub mod quantity;
mod roles;
mod target;

pub use atomic_file::{AtomicFile, write_file};
pub use json::write_json;
pub use roles::{FileConflict, FileRoles};
pub use target::is_stdout;
