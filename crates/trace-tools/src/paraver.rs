//! Traces of Extrae in Paraver's format: `.prv`, plain or compressed, and beside it the `.pcf` with the names of calls.
//!
//! A rank is the first thread of a task, a source of [timed calls](crate::timed):
//!
//! | in the trace | action | in a replay |
//! |---|---|---|
//! | state 1 (running) outside MPI | `compute`, 1 flop per nanosecond | at 1 Gflop/s as recorded |
//! | any other state outside MPI, or none | `sleep` | as recorded |
//! | call of MPI that communicates | the call | modelled |
//! | `MPI_Comm_rank`, `MPI_Cart_create`, `MPI_Type_commit`, ... | `comm_size` | takes no time |
//! | other functions of MPI | `unmodelled` with the name | takes no time |
//!
//! Counters of instructions are not read: the trace does not have the rate at which a host would execute them.
//!
//! # Messages
//! A message belongs to the call of its sender that can send and has the logical time of its send, and to such a receiving call of
//! its receiver. A call without a message has the peer `MPI_PROC_NULL`. The trace has neither communicators of
//! messages nor wildcards: messages are on the world communicator, and a receive names the sender that it had.
//!
//! # Requests
//! Nor has the trace requests. A receive is complete at the physical time of its message; nothing tells when a send or a nonblocking
//! collective operation is. So a wait completes
//!
//! | call | requests |
//! |---|---|
//! | `MPI_Wait`, `MPI_Waitany` | the receive that was complete first by the end of the call, else the oldest other request |
//! | `MPI_Waitsome` | the receives that were complete by its end, else the oldest other request |
//! | `MPI_Waitall` | the receives that were complete by its end, and all other requests |
//! | `MPI_Test`, `MPI_Testany` | the receive that was complete first by its end |
//! | `MPI_Testsome` | the receives that were complete by its end |
//! | `MPI_Testall` | as `MPI_Waitall`, if a receive was complete by its end |
//!
//! A test that completes nothing is `unmodelled`, as are probes. Requests that remain are waited for at the end of the rank.
//!
//! # Collective operations
//! Calls on a communicator match in their order. The root is the rank that says so, and the counts of the others come from their own
//! calls. `MPI_Alltoallv` and `MPI_Alltoallw` have only sums: a rank sends as much to each rank, up to a byte. Reductions compute
//! nothing. A communicator other than the world is created right before its first use, in no measured time.

mod call;
mod collectives;
pub(crate) mod dimemas;
mod error;
mod fields;
mod header;
mod labels;
mod messages;
mod program;
mod recording;
mod writer;

pub use error::ParaverError;
pub(crate) use writer::write;

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{TraceError, TraceSource};

use crate::timed::{TimedCalls, TimedProgram, source};
use collectives::Rounds;
use error::LineError;
use recording::Recording;

/// First bytes of a trace.
pub(crate) const MAGIC: &[u8] = b"#Paraver ";

/// Opens a trace, of which nothing is read yet.
pub(crate) fn open(path: &Path) -> Box<dyn TraceSource> {
    source(Paraver { path: path.to_path_buf(), labels: labels::path_beside(path) })
}

/// A trace.
#[derive(Debug)]
struct Paraver {
    path: PathBuf,
    /// The `.pcf`.
    labels: PathBuf,
}

impl TimedCalls for Paraver {
    /// All records, and the collective calls of all ranks.
    type Shared = (Recording, Rounds);

    fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> Vec<&Path> {
        vec![&self.path, &self.labels]
    }

    fn file(&self, _: Rank) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u32, TraceError> {
        recording::count_tasks(&self.path)
    }

    fn is_interleaved(&self) -> bool {
        true
    }

    fn shared(&self) -> Result<Self::Shared, TraceError> {
        let recording = Recording::read(&self.path, &self.labels)?;
        let rounds = Rounds::new(&recording).map_err(|error| error.locate(&self.path))?;
        Ok((recording, rounds))
    }

    fn write(
        &self,
        (recording, rounds): &Self::Shared,
        program: &mut TimedProgram<'_>,
    ) -> Result<(), TraceError> {
        program::write(recording, rounds, program)
    }
}
