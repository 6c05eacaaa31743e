//! Files that commands write: whole or not at all ([`AtomicFile`]), and never over their inputs ([`FileRoles`]).

mod atomic_file;
mod json;
mod roles;
mod target;

pub use atomic_file::{AtomicFile, write_file};
pub use json::write_json;
pub use roles::{FileConflict, FileRoles};
pub use target::is_stdout;
