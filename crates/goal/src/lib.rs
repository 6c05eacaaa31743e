//! Schedules of communication in GOAL, and the model LogGOPS.
//!
//! GOAL (Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, ICPP 2009) says of each rank which messages it
//! sends and receives and what it computes, and what of that must come before what: a graph per rank. This crate reads
//! it as text ([`read_text`]) and in the binary form of LogGOPSim ([`read_binary`]), keeps it in archives that are mapped
//! ([`write_archive`], [`Schedule::load`]), and simulates it ([`simulate`]) with the integers of LogGOPSim.
//!
//! ```
//! use goal::{Engine, LogGops, read_text, simulate};
//!
//! let schedule = read_text(b"num_ranks 2\nrank 0 {\n send 1b to 1\n}\nrank 1 {\n recv 1b from 0\n}\n")?;
//! let outcome = simulate(&schedule, &LogGops::default(), Engine::Auto, 1)?;
//! // o for the send; o, L and o again for the receive: 1500 ns, and 1500 + 2500 + 1500 ns.
//! assert_eq!(outcome.ends, [1_500_000, 5_500_000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod archive;
mod binary;
mod error;
mod file;
mod mapping;
mod order;
mod parameters;
pub mod pattern;
mod schedule;
mod simulation;
mod text;
mod threads;

pub use archive::write_archive;
pub use binary::read_binary;
pub use error::{ArchiveError, BinaryError, FileError, FileProblem, ScheduleError, TextError, TextProblem};
pub use file::is_archive;
pub use parameters::{EmptyMessage, LogGops, NANOSECOND};
pub use schedule::{After, Extent, Kind, Operation, RankBuilder, Schedule, ScheduleBuilder};
pub use simulation::{Engine, Outcome, SimulationError, Unmatched, simulate};
pub use text::{read_text, write_text};
