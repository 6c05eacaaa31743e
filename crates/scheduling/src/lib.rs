//! Schedulers of batch jobs on the nodes of a machine.
//!
//! A [`Workload`] is a list of jobs, read from the Standard Workload Format ([`read_swf`]) or from Batsim's JSON
//! ([`read_batsim`]). [`simulate`] runs it on a machine under a [`Policy`], of which [`POLICIES`] are known, and returns a
//! [`Schedule`]: when each job started, on which nodes, and when it ended.
//!
//! A [`Scheduler`] knows no run times: it is told what is submitted and what ends, and says what starts. [`simulate`] drives it
//! by the run times of a workload; a simulation in which jobs slow each other down can do so as well.
//!
//! Times are whole microseconds, so that no order of events depends on rounding.
//!
//! # Features
//! - `pictures`: the page of a schedule, [`Schedule::write_page`].
//!
//! # Example
//! ```
//! use scheduling::{Reservations, find_policy, read_swf, simulate};
//!
//! // Number, submission, wait, run time, processors; requested time is the ninth of 18 fields.
//! let workload = read_swf(
//!     "1 0 -1 10 3 -1 -1 -1 10 -1 -1 -1 -1 -1 -1 -1 -1 -1\n\
//!      2 1 -1 10 4 -1 -1 -1 10 -1 -1 -1 -1 -1 -1 -1 -1 -1\n\
//!      3 2 -1  5 1 -1 -1 -1  5 -1 -1 -1 -1 -1 -1 -1 -1 -1\n",
//! )?;
//! // The third job fits beside the first one before the second can start.
//! let easy = find_policy("easy").unwrap().policy(Reservations::Named);
//! let schedule = simulate(&workload.jobs, 4, easy)?;
//! let starts: Vec<f64> = schedule.runs.iter().map(|run| run.start.seconds()).collect();
//! assert_eq!(starts, [0.0, 10.0, 2.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod date;
mod job;
mod nodes;
#[cfg(feature = "pictures")]
mod page;
mod policy;
mod schedule;
mod scheduler;
mod workload;

pub use date::{Date, Span};
pub use job::{Job, JobId, Work};
pub use nodes::NodeSet;
pub use policy::{POLICIES, Policy, PolicyEntry, Reservations, Start, View, find_policy};
pub use schedule::{Run, Schedule, Summary};
pub use scheduler::{Running, ScheduleError, Scheduler, simulate};
pub use workload::batsim::{NodeRates, RunTimes, read as read_batsim};
pub use workload::swf::read as read_swf;
pub use workload::{Workload, WorkloadError};
