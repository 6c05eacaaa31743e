//! The core of a conservative parallel discrete-event simulation: simulated time, logical processes (LPs), and the
//! engines that run them on threads and on several processes of the operating system.
//!
//! # Where to start
//! Implement [`Process`], the logical process, and run a list of them with one of three engines:
//!
//! | engine | runs | uses |
//! |---|---|---|
//! | [`Engine`] | LPs that exchange tokens only | threads, cluster members |
//! | [`OrderedEngine`] | LPs and one [`Region`] for all, such as a network with contention, in the order of time | one thread |
//! | [`RegionalEngine`] | LPs and a network that is cut into [`Region`]s, in epochs | threads, cluster members |
//!
//! A run returns the processes in their final states and an [`Ending`]. A [`Cluster`] connects the processes of the
//! operating system (its members) that run one simulation: see [`Engine::run_distributed`].
//!
//! # How it synchronises
//! A [`Process`] is a sequential program with a clock of its own that exchanges timestamped tokens with others. It
//! runs until a token that it needs is missing, however far it is ahead of the other processes; a token's timestamp
//! is a value computed by its sender, not a position in a queue. Such a system is a Kahn process network: every
//! schedule, on any number of threads, gives the same answer, and neither an event queue nor time windows are needed
//! (Kahn 1974; used for MPI by Bagrodia, Prakash and Deelman, MPI-SIM, TSE 26(5) 2000). Only a conditional event
//! (Chandy and Sherman) depends on the order of time; the engine commits it at global quiescence: see
//! [`Pause::Conditional`].
//!
//! # Example
//! ```
//! use std::convert::Infallible;
//! use pdes_core::{Ending, Engine, Fault, Outbox, Pause, Process, LpId, SimDuration, SimTime, Turn, Wake};
//!
//! /// Adds a nanosecond to every token that comes by and passes it on, three times around the ring.
//! struct Station { me: u32, size: u32, clock: SimTime, inbox: Vec<SimTime>, laps: u32 }
//!
//! impl Process for Station {
//!     type Token = SimTime;
//!     type WorkRequest = Infallible;
//!     type Error = Infallible;
//!
//!     fn deliver(&mut self, token: SimTime, _: &mut Outbox<SimTime>) -> Result<Wake, Fault<Self::Error>> {
//!         self.inbox.push(token);
//!         Ok(Wake::Ready)
//!     }
//!
//!     fn resume(&mut self, _: &mut Turn, outbox: &mut Outbox<SimTime>) -> Result<Pause, Fault<Self::Error>> {
//!         let next = LpId::new((self.me + 1) % self.size);
//!         if self.me == 0 && self.laps == 0 && self.clock == SimTime::ZERO {
//!             self.clock += SimDuration::from_picos(1_000);
//!             outbox.send(next, self.clock);
//!         }
//!         while let Some(token) = self.inbox.pop() {
//!             self.laps += 1;
//!             self.clock = token + SimDuration::from_picos(1_000);
//!             if self.laps < 3 || self.me != 0 {
//!                 outbox.send(next, self.clock);
//!             }
//!         }
//!         Ok(if self.laps == 3 { Pause::Finished } else { Pause::Blocked })
//!     }
//!
//!     fn clock(&self) -> SimTime { self.clock }
//! }
//!
//! let station = |me| Station { me, size: 4, clock: SimTime::ZERO, inbox: Vec::new(), laps: 0 };
//! for threads in 1..=3 {
//!     let run = Engine::new(threads).run((0..4).map(station).collect());
//!     assert!(matches!(run.ending, Ending::Completed));
//!     assert_eq!(run.processes[0].clock.as_picos(), 13_000);
//! }
//! ```
#![deny(unsafe_code)]

// The macros name this crate as others do.
extern crate self as pdes_core;

mod barrier;
mod cluster;
mod engine;
mod event_queue;
mod interrupt;
mod ordered;
mod outside;
mod prefetch;
mod process;
mod profile;
mod progress;
mod quantity;
mod random;
mod regional;
mod resource_run_queue;
mod state;
mod time;

pub use barrier::Barrier;
#[cfg(feature = "mpi")]
pub use cluster::MpiError;
pub use cluster::{Cluster, ClusterError, RunParameters};
pub use engine::{Ending, Engine, Partition, Run, RunAhead};
pub use event_queue::{EventQueue, IndexedEventHeap};
pub use interrupt::Interrupt;
pub use ordered::OrderedEngine;
pub use pdes_core_derive::State;
pub use prefetch::prefetch;
pub use process::{Fault, Outbox, Pause, Process, Turn, Wake};
pub use profile::{Costs, Emulation, Profile, ProfileLevel, Profiled, TokenWithDepth, measure_token_latency};
pub use progress::Progress;
pub use quantity::{Bytes, LpId, Rank};
pub use random::{GOLDEN_GAMMA, mix};
pub use regional::{
    ExchangeCounts, Region, RegionBlocks, RegionIndex, RegionalEngine, RegionalLevel, RegionalMemberRun,
    RegionalRun, RegionalTiming, SubmittedWork, UnorderedConditional,
};
pub use state::{
    BaseName, Counter, ForeignState, Observation, Repetition, State, StateVisitor, Total, load_state,
    save_state,
};
pub use time::{SimDuration, SimTime};
