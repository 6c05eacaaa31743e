//! The files that a command reads and writes: an output that is an input is refused before anything runs.

use std::path::Path;

use outputs::{FileConflict, FileRoles};
use pdes_replay::Config;

use super::Misuse;

/// Adds the files that a run reads, and those that it writes.
pub(crate) fn add_run(roles: &mut FileRoles, config: &Config) {
    for (role, path) in config.input_files() {
        if role == "trace" {
            add_trace(roles, &path);
        } else {
            roles.input(role, &path);
        }
    }
    config.output_files().iter().for_each(|(role, path)| roles.output(role, path));
}

/// Adds all files of a trace.
pub(crate) fn add_trace(roles: &mut FileRoles, trace: &Path) {
    trace_tools::trace_files(trace).iter().for_each(|file| roles.input("trace", file));
}

/// Checks a command with one trace and one output.
pub(crate) fn check_output(trace: &Path, output: &Path) -> Result<(), Misuse> {
    let mut roles = FileRoles::default();
    add_trace(&mut roles, trace);
    roles.output("output", output);
    Ok(roles.check()?)
}

impl From<FileConflict> for Misuse {
    fn from(conflict: FileConflict) -> Self {
        Self(conflict.to_string())
    }
}
