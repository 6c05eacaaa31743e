//! GOAL communication schedules, and their simulation under the LogGOPS model.
//!
//! A GOAL schedule (Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language, ICPP 2009) is one dependency graph
//! per rank: sends, receives and computations, and the edges that order them. This crate reads schedules as text and in
//! LogGOPSim's binary format, stores them in memory-mapped archives, and simulates them with the integer arithmetic of
//! LogGOPSim.
//!
//! # Where to start
//! - [`Schedule`]: the schedule. [`Schedule::load`] opens a file of any format, [`read_text`] and [`read_binary`] parse
//!   bytes, [`ScheduleBuilder`] builds one rank by rank, [`pattern`] generates known communication patterns.
//! - [`simulate`]: runs a schedule with the parameters in [`LogGops`] and returns an [`Outcome`]; [`simulate_with_noise`] with [`Noise`].
//! - [`write_text`] and [`write_archive`] store a schedule; [`is_schedule`] recognises an archive.
//!
//! # Example
//! ```
//! use goal::{LogGops, read_text, simulate};
//!
//! let schedule = read_text(b"num_ranks 2\nrank 0 {\n send 1b to 1\n}\nrank 1 {\n recv 1b from 0\n}\n")?;
//! let outcome = simulate(&schedule, &LogGops::default(), 1)?;
//! // The send takes o = 1500 ns. The receive ends after o + L + o = 1500 + 2500 + 1500 ns.
//! assert_eq!(outcome.ends, [1_500_000, 5_500_000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod archive;
mod binary;
mod error;
mod file;
mod introsort;
mod mapping;
mod noise;
mod parameters;
pub mod pattern;
mod schedule;
mod simulation;
mod text;
mod threads;

pub use archive::write_archive;
pub use binary::read_binary;
pub use error::{ArchiveError, BinaryError, FileError, FileProblem, ScheduleError, TextError, TextProblem};
pub use file::{is_schedule, is_schedule_file};
pub use noise::{Noise, NoiseError, NoiseTrace, RecurringNoise};
pub use parameters::{EmptyMessage, LogGops, NANOSECOND};
pub use schedule::{After, Extent, Kind, Operation, RankBuilder, Schedule, ScheduleBuilder};
pub use simulation::{Outcome, SimulationError, Unmatched, simulate, simulate_with_noise};
pub use text::{read_text, write_text};
