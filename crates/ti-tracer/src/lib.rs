//! Tracer of MPI programs: records the calls of each process as a [shard](ti_shard), a time-independent event trace.
//!
//! Start at [`Recorder`], which has one method per kind of MPI call and writes to a [`ShardFile`]. With the feature `mpi`
//! this crate is a library to preload, which defines the functions of MPI and forwards the calls of the program to the
//! profiling interface (PMPI):
//!
//! ```text
//! cargo rustc -p ti-tracer --release --features mpi --crate-type cdylib
//! ```
//!
//! The functions are written in C (`shim/`) and compiled with `mpicc`, so that handles, constants and structures are those
//! of the MPI library at hand. They pass their arguments, as plain numbers, to the [`Recorder`], which does not depend on
//! MPI's header:
//!
//! ```
//! use ti_shard::{Header, TextReader};
//! use ti_tracer::{Completion, Recorder, ShardFile};
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("0.shard");
//! let header = Header { job: "job", world: 2, rank: 0, counter: "instructions", rate: 0.0, library: "any" };
//! let mut recorder = Recorder::new(ShardFile::create(&path, &header)?, 0, 2);
//! // Handles are arbitrary numbers: 77 and 78 are those of the communicators, 1000 that of a request, stored at address 5.
//! recorder.init(77, 78);
//! recorder.add_computation(1500);
//! let request = recorder.isend("isend", 1, 7, 64, 77);
//! recorder.bind(request, 1000, 5, false);
//! let mut completion = Completion::default();
//! recorder.add(&mut completion, 1000, 5);
//! recorder.complete(&mut completion, 0, None);
//! recorder.completion("wait", &completion);
//! recorder.finish()?;
//! let text = std::io::read_to_string(TextReader::new(std::fs::File::open(path)?)?)?;
//! let lines: Vec<&str> = text.lines().skip(1).collect();
//! assert_eq!(lines, ["0 init", "0 compute 1500", "0 isend 1 7 64 req=0", "0 wait req=0", "0 finalize"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! Records are complete or missing, whatever ends the process, as long as the machine is up: they are written to a mapping
//! of the file, the first word last. A process needs a window of memory of a fixed size, up to 4096 phrases, and some words
//! per pending request and communicator. If the file cannot grow, recording stops and the program continues.

mod clock;
mod communicators;
#[cfg(feature = "mpi")]
mod interface;
mod phrases;
mod recorder;
mod requests;
mod shard;
#[cfg(feature = "mpi")]
mod symbols;

pub use clock::{Clock, Counter, coarse_clock, wall_clock};
pub use recorder::{
    ANY_SOURCE, ANY_TAG, Argument, CallRecord, CollectiveForm, Completion, DurationSlot, Object, PROC_NULL,
    Recorder, Status,
};
pub use requests::RequestEntry;
pub use shard::ShardFile;
