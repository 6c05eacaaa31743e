//! Traces of MPI programs, ready for replay: parsing of time-independent text, memory-mapped archives, cursors over the
//! actions of each rank.
//!
//! ```
//! use trace_mmap::{Action, Collective, Trace};
//!
//! let trace = Trace::from_text(
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
//! - [`Trace`] is the trace of all ranks; [`Trace::load`] with [`LoadOptions`] reads one of any format.
//! - [`RankTrace`] has the channels, communicators and side tables of a rank, to which the indices in its actions refer.
//! - [`Cursor`] yields the [`Action`]s of a rank in program order; [`Call`] has the MPI calls that do not fit into an action.
//! - [`ArchiveWriter`] and [`convert`] write archives; [`generate`] makes programs of known structure.
//!
//! # Files
//!
//! [`Trace::load`] reads archives, which [`convert`] and [`ArchiveWriter`] write, and time-independent text, the format of
//! SimGrid's `smpi_replay`, in four file layouts:
//!
//! - a directory with `rank-0.txt`, `rank-1.txt`, ... (also `.txt.gz`, `.txt.zst`);
//! - a list: each line is the path of a file, relative to the list; line `i` (from 0) names the file of rank `i`;
//! - a list of one merged file, which has the lines of all ranks;
//! - a merged file itself, distinguished from a list by its first line, which is a number and at least one more field.
//!
//! Each text file may be plain, gzip or zstd; the format is detected from the first bytes, not from the name. Files are
//! streamed, never read into memory as a whole.
//!
//! # Text
//!
//! Each line is `rank action field...`; fields are separated by spaces or tabs; empty lines and lines that start with `#`
//! are ignored. Every other line is one [`Action`], even if it takes no time, so that the index of an action is the
//! index of its line among the lines of the rank. Differences from SimGrid 3.32:
//!
//! | text | SimGrid | this crate |
//! |---|---|---|
//! | last line without newline | drops it | reads it |
//! | carriage return before a newline | belongs to the last field | is white space |
//! | a rank `00` | never runs the line | is rank 0 |
//! | a line of a rank that does not exist | never runs it | error |
//! | a line of another rank in a rank's own file | warns | error |
//! | count `1.5` | truncates it | error (but `5e4` and `1e6` are counts) |
//! | tag, rank or count of a vector `5e1` | reads 5 | reads 50 |
//! | tag, rank or count of a vector `12x` | reads 12 | error |
//! | hexadecimal number (`0x10`) | reads 16, or 0 as a tag, rank or count of a vector | error |
//! | count or size of 2^31 or more | wraps around | reads it, up to 2^48 bytes |
//! | negative count, amount or root | various | error |
//! | unknown datatype, peer out of range | crashes | error |
//! | datatype left out before `init` | crashes | error |
//! | default datatype | of the last `init` of any rank | of the rank's own `init` |
//! | `allgatherv` on one rank with types only | aborts | reads them |
//! | `allgatherv` on one rank with one more field | a send type | a displacement |
//! | `wait`, `test` without a pending request | returns, or aborts if none at all is pending | error |
//! | `recv` of unknown size | probes | error [`TextError::Unsupported`] |
//! | more receives than sends of a channel, or from any source than sends to the rank | deadlocks in the end | error |
//! | fields beyond those of the action | ignores them | ignores them, with a [`Warning`] |
//! | `comm_split`, `comm_dup` without named fields | replays all on the world communicator | the same, with a [`Warning`] |
//! | named fields such as `comm=3`, calls such as `waitany` | aborts | reads them |
//!
//! Beyond SimGrid's format, lines may have named fields, `key=value`, and there are actions for nearly all of MPI; `docs/traces.md`
//! lists them:
//!
//! ```
//! use trace_mmap::{Action, Call, Slot, Trace};
//! let trace = Trace::from_text(
//!     "0 init
//!      0 comm_split new=1 members=0-1
//!      0 irecv 1 7 8 6 comm=1 req=4
//!      0 ibcast 64 1 6 comm=1 req=5
//!      0 waitany req=4,5 done=5
//!      0 wait req=4
//!      1 init
//!      1 comm_split new=1 members=0-1
//!      1 ssend 0 7 8 6 comm=1
//!      1 ibcast 64 1 6 comm=1 req=1
//!      1 waitall",
//! )?;
//! let rank = trace.rank(pdes_core::Rank::new(0));
//! let Some(Action::Call(id)) = rank.cursor().nth(4) else { panic!("the fifth line is a call") };
//! let slots = [Slot::new(0), Slot::new(1)].into();
//! assert_eq!(*rank.call(id), Call::Waitany { slots, done: Some(Slot::new(1)) });
//! # Ok::<(), trace_mmap::TraceError>(())
//! ```
//!
//! # Archives
//!
//! An archive (`.pdt`) is mapped and read in place. Opening it costs time in the size of its tables, not in the number of its
//! actions: a loop is stored once, a program once for all ranks of equal structure, and amounts of computation in packed columns,
//! exact to the bit. `docs/archive-format.md` describes the format, and the guarantees for damaged, forged and changed files.
//!
//! | to | use |
//! |---|---|
//! | convert text, or fold or flatten an archive | [`convert`] |
//! | write programs whose loops are known | [`ArchiveWriter`], [`Item`], [`generate`] |
//! | summarize, check, write as text, cut | [`Info`], [`check`], [`dump`], [`cut`] |
//! | verify after a run that no action was damaged | [`Trace::integrity`] |
//!
//! # Memory
//!
//! An action read from text takes 16 bytes. Channels, requests, communicators, collectives, calls and call sites are resolved to
//! indices while the text is read; equal ones are stored once per rank. Actions beyond [`LoadOptions::memory_budget`] are stored
//! in a memory-mapped temporary file.
//!
//! # Guarantees
//!
//! The trace does not depend on the number of threads that read it, nor on where its actions are stored. No text and no
//! archive makes this crate panic.
#![deny(unsafe_code)]

mod action;
mod archive;
mod atomic_file;
mod builder;
mod call;
mod channel;
mod collective;
mod column;
mod communicator;
mod consistent_cut;
mod datatype;
mod error;
mod fold;
mod foreign;
pub mod generate;
mod link;
mod load;
mod measured;
mod provenance;
mod record;
mod side_tables;
mod store;
mod structure;
mod text;
mod trace;
mod transfer;
mod unmodelled;
mod warning;

pub use action::{Action, CollectiveId, LocationId, SendRecv, SendRecvId};
pub use archive::{
    ArchiveError, ArchiveWriter, CheckReport, ConvertOptions, Converted, Cut, Damage, Finding, Folding, Info,
    IterationBoundary, PairTraffic, Storage, StructureError, Summary, UnmodelledCalls, WriteError, check,
    convert, cut, dump, write_text, write_with_measured_times,
};
pub use atomic_file::AtomicFile;
pub use call::{Call, CallError, CallId, CallOp, CommunicatorCall, SendMode, Source};
pub use channel::{Arrival, InIdx, Incoming, OutIdx, Outgoing, PortId, Slot, Tag};
pub use collective::Collective;
pub use communicator::{CommId, CommIdx, Communicator, Group, RankRange};
pub use consistent_cut::{RemovedActions, write_consistent_cut};
pub use datatype::Datatype;
pub use error::{Location, TraceError};
pub use foreign::Foreign;
pub use link::CommunicatorConflict;
pub use load::LoadOptions;
pub use measured::TimedActions;
pub use provenance::{Provenance, WorkMetric};
pub use structure::{Direction, Item, Op, Peer, RecvFrom, Request, RequestName, SendTo, TextLine, flatten};
pub use text::{Field, TextError, Unsupported};
pub use trace::{Cursor, CursorPosition, Ops, RankTrace, Trace};
pub use unmodelled::Unmodelled;
pub use warning::{Unreceived, Warning};
