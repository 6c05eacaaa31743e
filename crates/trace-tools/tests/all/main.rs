//! Tests of sources, generators and consistent cuts.

mod acquired;
mod actions;
mod call_programs;
mod calls;
mod consistent_cut;
mod corpus;
mod darshan;
mod dimemas;
mod dumpi;
mod errors;
mod formats;
mod generate;
mod hdtrace;
mod liballprof;
mod measured;
#[cfg(feature = "otf2")]
mod otf2;
mod paraver;
mod round_trip;
mod schedule;
mod shapes;
#[path = "../../../../tests/shared.rs"]
mod shared;
mod simai;
mod transform;
mod windows;

use trace_mmap::{Location, TraceError};
use trace_tools::TextError;

/// Returns the error of a line and its place; panics if it is another error.
fn line_error(error: &TraceError) -> (&Location, &TextError) {
    match (error, error.kind()) {
        (TraceError::Action { location, .. }, Some(kind)) => (location, kind),
        _ => panic!("{error:?}"),
    }
}
