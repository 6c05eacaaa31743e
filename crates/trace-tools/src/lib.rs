//! Tools for traces of MPI programs: sources of any format (text, shards, Paraver, Dimemas, OTF2, DUMPI, HDTrace, liballprof), generators, consistent cuts, transformations.
//!
//! ```
//! use pdes_core::Rank;
//!
//! let text = "0 init\n0 send 1 7 4096\n1 init\n1 recv 0 7 4096\n";
//! let trace = trace_tools::from_text(text)?;
//! assert_eq!((trace.ranks(), trace.actions()), (2, 4));
//!
//! let mut written = Vec::new();
//! trace_tools::write_text(&trace, Rank::new(1), &mut written, None)?;
//! assert_eq!(written, b"1 init\n1 recv 0 7 4096 6\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to start
//!
//! - [`load`] and [`open`] read a trace of any format, [`convert`] makes an archive of it.
//! - [`FORMATS`] is the registry of formats. To add one, write a file that implements [`TraceSource`](trace_mmap::TraceSource) and
//!   add a row; `tests/all/formats.rs` adds a toy.
//! - [`dump`], [`write_text`] and [`TextLine`] write text, [`EXPORTS`] other formats; [`generate`] makes programs of known structure;
//!   [`write_consistent_cut`] and [`recover`] repair the trace of a killed program.
//! - [`extrapolate()`] makes the trace of more ranks of traces of fewer, or of one.
//! - [`lint`] finds what is suspicious in a trace; [`LINTS`] is the registry.
//! - [`transform`] changes a program by a hypothesis; [`transform::TRANSFORMS`] is the registry of changes.
//!
//! # Files
//!
//! [`load`] reads archives, which [`convert`] and [`ArchiveWriter`](trace_mmap::ArchiveWriter) write, shards, and time-independent text, the format of
//! SimGrid's `smpi_replay`, in four file layouts:
//!
//! - a directory with `rank-0.txt`, `rank-1.txt`, ... (also `.txt.gz`, `.txt.zst`);
//! - a list: each line is the path of a file, relative to the list; line `i` (from 0) names the file of rank `i`;
//! - a list of one merged file, which has the lines of all ranks;
//! - a merged file itself, distinguished from a list by its first line, which is a number and at least one more field.
//!
//! Each file may be a shard, or text, which may be plain, gzip or zstd; the format is detected from the first bytes, not from the name. Files are
//! streamed, never read into memory as a whole.
//!
//! Besides, [`load`] reads traces of Extrae in Paraver's format, of Dimemas, DUMPI, HDTrace and liballprof, workloads of SimAI,
//! and with the feature `otf2` archives of OTF2.
//! `docs/traces.md` has the rules.
//!
//! # Text
//!
//! Each line is `rank action field...`; fields are separated by spaces or tabs; empty lines and lines that start with `#`
//! are ignored. Every other line is one [`Action`](trace_mmap::Action), even if it takes no time, so that the index of an action is the
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
//! | fields beyond those of the action | ignores them | ignores them, with a [`Warning`](trace_mmap::Warning) |
//! | `comm_split`, `comm_dup` without named fields | replays all on the world communicator | the same, with a [`Warning`](trace_mmap::Warning) |
//! | named fields such as `comm=3`, calls such as `waitany` | aborts | reads them |
//!
//! Beyond SimGrid's format, lines may have named fields, `key=value`, and there are actions for nearly all of MPI; `docs/traces.md`
//! lists them:
//!
//! ```
//! use trace_mmap::{Action, Call, Slot};
//! let trace = trace_tools::from_text(
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
//! # Guarantees
//!
//! The trace does not depend on the number of threads that read it, nor on where its actions are stored. No text, no shard
//! and no trace of another format makes this crate panic.
#![forbid(unsafe_code)]

mod consistent_cut;
mod darshan;
mod dump;
mod dumpi;
mod error;
mod export;
mod extrapolate;
mod files;
mod foreign;
mod format;
pub mod generate;
mod goal;
mod hdtrace;
mod liballprof;
mod line;
mod lint;
mod load;
#[cfg(feature = "otf2")]
mod otf2;
mod paraver;
mod schedule;
mod shard;
mod simai;
mod text;
mod timed;
pub mod transform;

pub use consistent_cut::{Recovered, RemovedActions, recover, write_consistent_cut};
pub use darshan::DarshanError;
pub use dump::{dump, write_text};
pub use dumpi::DumpiError;
pub use error::InputError;
pub use export::{EXPORTS, Export, ExportError, Exported};
pub use extrapolate::{Extrapolated, ExtrapolationError, ExtrapolationOptions, Scaling, extrapolate};
pub use files::trace_files;
pub use foreign::Foreign;
pub use format::{Candidate, FORMATS, Format, HEAD, Input, open_input};
pub use hdtrace::HdtraceError;
pub use liballprof::LiballprofError;
pub use line::TextLine;
pub use lint::{LINTS, Lint, SCHEDULE_LINTS, ScheduleFacts, Suspicion, TraceFacts, lint, lint_schedule};
#[cfg(feature = "otf2")]
pub use load::convert_counted;
pub use load::{convert, from_text, load, load_as, open};
#[cfg(feature = "otf2")]
pub use otf2::Otf2ProgramError;
pub use paraver::ParaverError;
pub use schedule::{ScheduleOfTraceError, Scheduled, schedule};
pub use simai::SimaiError;
pub use text::{Field, TextError, Unsupported};
pub use timed::{CallsError, CommunicatorError};
