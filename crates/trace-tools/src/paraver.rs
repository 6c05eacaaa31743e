//! Traces of Extrae in Paraver's format: `.prv`, plain or compressed, and beside it the `.pcf` with the names of calls.
//!
//! The actions of a rank are what its first thread did, each with its measured time \[ns\], so that the times of a rank add up to the
//! end of its last state or call:
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
mod error;
mod fields;
mod header;
mod labels;
mod messages;
mod program;
mod recording;

pub use error::ParaverError;

use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{Location, RankBuilders, TraceError, TraceSource, WorkMetric};

use crate::files::fingerprint;
use crate::text::Stream;
use collectives::Rounds;
use error::LineError;
use program::{NANOS, Step};
use recording::Recording;

/// First bytes of a trace.
pub(crate) const MAGIC: &[u8] = b"#Paraver ";

/// Returns whether a file is a trace, by its first bytes, which may be compressed.
pub(crate) fn knows(path: &Path, head: &[u8]) -> bool {
    if !Stream::is_compressed(head) {
        return head.starts_with(MAGIC);
    }
    let Ok(mut stream) = Stream::open(path) else { return false };
    let (mut found, mut len) = ([0; MAGIC.len()], 0);
    while len < found.len() {
        match stream.read(&mut found[len..]) {
            Ok(read) if read > 0 => len += read,
            _ => return false,
        }
    }
    found == MAGIC
}

/// Opens a trace, of which nothing is read yet.
pub(crate) fn open(path: &Path) -> Box<dyn TraceSource> {
    Box::new(Paraver { path: path.to_path_buf(), labels: labels::path_beside(path) })
}

/// A trace.
#[derive(Debug)]
struct Paraver {
    path: PathBuf,
    /// The `.pcf`.
    labels: PathBuf,
}

impl Paraver {
    /// Reads all records, and matches the collective calls of all ranks.
    fn record(&self) -> Result<(Recording, Rounds), TraceError> {
        let recording = Recording::read(&self.path, &self.labels)?;
        let rounds = Rounds::new(&recording).map_err(|error| self.error(error))?;
        Ok((recording, rounds))
    }

    fn error(&self, error: LineError) -> TraceError {
        error.locate(&self.path)
    }
}

impl TraceSource for Paraver {
    fn path(&self) -> &Path {
        &self.path
    }

    fn ranks(&self) -> Result<u64, TraceError> {
        recording::count_tasks(&self.path).map(u64::from)
    }

    fn is_interleaved(&self) -> bool {
        true
    }

    fn work_metric(&self) -> Option<WorkMetric> {
        Some(WorkMetric::Time { rate: NANOS })
    }

    fn read(&self, ranks: &mut RankBuilders<'_>) -> Result<(), TraceError> {
        let (recording, rounds) = self.record()?;
        let (asked, found) = (ranks.ranks(), recording.tasks.len() as u32);
        for rank in 0..found {
            let Some(builder) = ranks.get(rank.into()) else {
                return Err(TraceError::TooFewRanks { path: self.path.clone(), asked, found });
            };
            let steps = program::steps(&recording, &rounds, Rank::new(rank));
            for Step { op, nanos, line } in steps.map_err(|error| self.error(error))? {
                let resolved = builder.resolve(&op);
                let action =
                    resolved.map_err(|kind| self.error(LineError { line, kind: ParaverError::Op(kind) }))?;
                builder.push(action, Some(nanos))?;
            }
        }
        Ok(())
    }

    fn locate(&self, rank: Rank, index: u64) -> Result<Location, TraceError> {
        let (recording, rounds) = self.record()?;
        let missing = TraceError::NoSuchAction { rank, action: index };
        if rank.index() >= recording.tasks.len() {
            return Err(missing);
        }
        let steps = program::steps(&recording, &rounds, rank).map_err(|error| self.error(error))?;
        let step = usize::try_from(index).ok().and_then(|index| steps.get(index)).ok_or(missing)?;
        Ok(Location { file: self.path.clone(), line: step.line })
    }

    fn fingerprint(&self) -> Result<u64, TraceError> {
        fingerprint(&[&self.path, &self.labels])
    }
}
