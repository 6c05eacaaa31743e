//! Traces of MPI programs, ready for replay: actions, the table of calls, memory-mapped archives, cursors over the actions of each
//! rank. Sources in other formats are built into traces; the crate `trace-tools` has those for text and for shards.
//!
//! ```
//! use trace_mmap::{Action, Collective};
//!
//! let trace = trace_tools::from_text(
//!     "0 init
//!      0 compute 1.5e6
//!      0 isend 1 7 4096
//!      0 wait 0 1 7
//!      0 allreduce 8 0
//!      1 init
//!      1 recv 0 7 4096
//!      1 allreduce 8 0",
//! )?;
//! assert_eq!((trace.ranks(), trace.actions()), (2, 8));
//!
//! let sender = trace.rank(pdes_core::Rank::new(0));
//! let mut cursor = sender.cursor().skip(2);
//! let Some(Action::Isend { to, bytes, slot }) = cursor.next() else { panic!("the third line is an isend") };
//! assert_eq!((sender.outgoing()[to.index()].tag.get(), bytes.get()), (7, 4096));
//! assert_eq!(cursor.next(), Some(Action::Wait { slot }));
//! let Some(Action::Collective(id)) = cursor.next() else { panic!("the fifth line is a collective") };
//! assert!(matches!(sender.collective(id), Collective::Allreduce { count: 8, .. }));
//! # Ok::<(), trace_mmap::TraceError>(())
//! ```
//!
//! # Where to start
//!
//! - [`Trace`] is the trace of all ranks; [`Trace::load`] maps an archive, [`Trace::read`] reads any other [`TraceSource`].
//! - [`RankTrace`] has the channels, communicators and side tables of a rank, to which the indices in its actions refer.
//! - [`Cursor`] yields the [`Action`]s of a rank in program order; [`Call`] has the MPI calls that do not fit into an action.
//! - [`RankBuilder`] takes the operations of a rank from a source; [`table`] has the names and fields of calls for its reader.
//! - [`ArchiveWriter`], [`convert`] and [`write_archive`] write archives.
//!
//! # Archives
//!
//! An archive (`.pdt`) is mapped and read in place. Opening it costs time in the size of its tables, not in the number of its
//! actions: a loop is stored once, a program once for all ranks of equal structure, and amounts of computation in packed columns,
//! exact to the bit. `docs/archive-format.md` describes the format, and the guarantees for damaged, forged and changed files.
//!
//! | to | use |
//! |---|---|
//! | convert a source; fold or flatten an archive | [`convert`]; [`write_archive`] |
//! | write programs whose loops are known | [`ArchiveWriter`], [`Item`] |
//! | summarize, check, cut | [`Info`], [`check`], [`cut`] |
//! | verify after a run that no action was damaged | [`Trace::integrity`] |
//!
//! # Memory
//!
//! An action that is read takes 16 bytes. Channels, requests, communicators, collectives, calls and call sites are resolved to
//! indices while the source is read; equal ones are stored once per rank. Actions beyond [`LoadOptions::memory_budget`] are stored
//! in a memory-mapped temporary file.
//!
//! # Guarantees
//!
//! The trace does not depend on the number of threads that read it, nor on where its actions are stored. No archive makes
//! this crate panic.
#![deny(unsafe_code)]

mod action;
mod any_source;
mod archive;
mod builder;
mod call;
mod channel;
mod collective;
mod column;
mod communicator;
mod datatype;
mod error;
mod fold;
pub mod folded;
mod graph;
mod link;
mod measured;
mod open_files;
mod provenance;
mod record;
mod side_tables;
mod source;
mod store;
mod structure;
mod trace;
mod transfer;
mod unmodelled;
mod warning;
mod window;

pub use action::{Action, CollectiveId, LocationId, SendRecv, SendRecvId};
pub use archive::{
    AmountChange, AmountSum, ArchiveError, ArchiveWriter, CheckReport, ConvertOptions, Converted, Cut,
    Damage, Finding, Folding, Info, IterationBoundary, IterationInProgress, LoopRun, MAGIC as ARCHIVE_MAGIC,
    MessageChange, PairTraffic, SentMessage, Storage, StructureError, Summary, UnmodelledCalls, WriteError,
    check, check_collectives, convert, cut, sum_amounts, write_archive, write_programs, write_with_amounts,
    write_with_measured_times, write_with_messages,
};
pub use builder::{OpError, RankBuilder, RequestKey, check_amount, check_size, explain_peer};
pub use call::{
    BlockRun, Call, CallError, CallId, CallOp, CommunicatorCall, FileCall, FileDirection, FileHints,
    FileName, FileView, NumberHint, SendMode, Source, Switch, SwitchHint, WindowAccess, WindowCall,
    WindowFetch, WindowSync,
};
pub use channel::{Arrival, InIdx, Incoming, OutIdx, Outgoing, PortId, Slot, Tag};
pub use collective::Collective;
pub use communicator::{CommId, CommIdx, Communicator, Group, RankRange};
pub use datatype::Datatype;
pub use error::{Location, TraceError};
pub use graph::{Dependent, GraphFilter, GraphMessage, GraphOperation, OperationGraph};
pub use link::CommunicatorConflict;
pub use measured::{MAX_NANOS, TimedActions, nanos};
pub use open_files::{FileMisuse, FileState, FileUse};
pub use provenance::{NoteKind, Provenance, RecordingNote, WorkMetric};
pub use source::{LoadOptions, MAX_RANKS, RankBuilders, TraceSource, read_unlinked};
pub use structure::{Direction, Item, Op, Peer, RecvFrom, Request, RequestName, SendTo, flatten};
pub use trace::{Cursor, CursorPosition, OpDecoder, Ops, RankTrace, TableWriter, Trace};
pub use unmodelled::{Unmodelled, UnmodelledError};
pub use warning::{Unreceived, Warning};
pub use window::Window;

/// The tables of calls and of collective operations, for readers and writers of formats that name them.
pub mod table {
    pub use crate::call::{
        CallKind, Completion, Form, Indexed, MAX_OFFSET, Named, ReadCall, RequestUse, Visit,
    };
    pub use crate::collective::{Amount, CollectiveKind, ReadCollective};
}
