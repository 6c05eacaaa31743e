//! Model of an MPI library: replays the actions of a trace, matches messages, completes requests, and turns collective
//! operations into point-to-point steps.
//!
//! # Where to start
//! - [`Replay`] puts a [`Trace`](trace_mmap::Trace) on a machine and makes one [`RankProcess`] per rank, a logical process of an
//!   engine of `pdes-core`. A machine that answers at once runs on any engine; a machine with shared resources needs one that
//!   serves requests in the order of time.
//! - [`Machine`] is the trait of the hardware: implement it to couple another network or host model.
//! - [`Parameters`] are those of the library: envelope, eager and rendezvous thresholds, overheads, collective algorithms.
//! - Results: [`Statistics`] of each rank, and on request its [`Breakdown`] into wait states, its [`CriticalPath`],
//!   [`Distributions`] of all ranks, and a timeline of [`Event`]s.
//! - [`ActionSource`] is the trait of programs that are no traces: they decide by what they are told.
//! - [`Observer`] is the trait of analyses: implement it to follow the events of ranks.
//! - [`collective`] holds the algorithms of collective operations; they need no replay.
//!
//! # Example
//! ```
//! use std::convert::Infallible;
//! use mpi_model::{Machine, Parameters, Replay};
//! use pdes_core::{Bytes, Ending, Engine, Process, Rank, SimDuration, SimTime};
//! use trace_mmap::Trace;
//!
//! /// Every message takes a microsecond and a nanosecond per byte.
//! struct Simple;
//!
//! impl Machine for Simple {
//!     type Route = ();
//!     type WorkRequest = Infallible;
//!     type Error = Infallible;
//!     fn route(&self, _: Rank, _: Rank) -> Result<(), Infallible> { Ok(()) }
//!     fn transfer(&self, _: (), bytes: Bytes, _: SimTime) -> Option<SimDuration> {
//!         Some(SimDuration::from_picos(1_000_000 + 1_000 * bytes.get()))
//!     }
//!     fn speed(&self, _: Rank, _: SimTime) -> f64 { 1e9 }
//!     fn node(&self, rank: Rank) -> u32 { rank.get() }
//! }
//!
//! let trace = trace_tools::from_text("0 init\n1 init\n0 compute 2000\n0 send 1 7 84\n1 recv 0 7 84\n")?;
//! let parameters = Parameters::default();
//! let replay = Replay::new(&trace, &Simple, &parameters);
//! let run = Engine::new(2).run(replay.processes().unwrap());
//! assert!(matches!(run.ending, Ending::Completed));
//! // 2 us of computation, then 1 us and 84 + 16 ns for the message and its envelope.
//! assert_eq!(run.processes[1].clock().as_picos(), 3_100_000);
//! # Ok::<(), trace_mmap::TraceError>(())
//! ```
#![forbid(unsafe_code)]

mod breakdown;
mod cause;
mod charged_call;
pub mod collective;
mod communication_matrix;
mod completion;
mod context;
mod critical_path;
mod distribution;
mod error;
mod launcher;
mod locks;
mod machine;
mod observer;
mod overhead;
mod parameters;
mod point_to_point;
mod rank;
mod replay;
#[cfg(test)]
mod round_trip;
mod source;
mod statistics;
mod timeline;
mod token;
mod wait_state;

pub use breakdown::{Breakdown, Delay, Region, Share, region_name};
pub use cause::Cause;
pub use charged_call::ChargedCall;
pub use collective::{Selection, Selector};
pub use communication_matrix::{CommunicationMatrix, Traffic};
pub use completion::Completion;
pub use critical_path::{CriticalPath, PathParts, Segment};
pub use distribution::Distributions;
pub use error::{ReplayError, ReplayErrorKind, RestoreError};
pub use launcher::{CheckpointTimes, Launcher};
pub use locks::{LockCall, LockMessage, LockName};
pub use machine::{
    Accelerator, ComputationNoise, DeviceHistory, FileAccess, FileOperation, FilePlace, Machine, StorageKind,
    SwitchOperation, UncontendedTransfer, Work,
};
pub use observer::{
    ActionSpan, Analyses, Analysis, Carrier, Findings, Match, Network, ObservedRank, Observer, Peer,
    RankAnalyses, Sent, SentTime, UncontendedMessages, Wait,
};
pub use overhead::{Overhead, OverheadError};
pub use parameters::{CollectiveIo, Outcomes, Parameters, Progress};
pub use point_to_point::{Awaited, OperationIndex, RequestId, Status};
pub use rank::{Interval, RankAtCut, RankProcess, WaitReason};
pub use replay::Replay;
pub use source::{ActionSource, ActionSources, CallEnd, Decision, Quiet, Reply};
pub use statistics::{ActionKind, OutcomeCount, Statistics};
pub use timeline::{Event, EventSink, Excerpt, Recording};
pub use token::{EagerMessageId, Fragment, Message, ReceiveQueue, Side, Token};
pub use wait_state::WaitState;
