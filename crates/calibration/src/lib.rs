//! Calibration of a machine model: fits the parameters of network and MPI library to measurements of messages.
//!
//! Start at [`Machine::fit`]. Its input is [`Measurements`]: durations of ping-pongs, of MPI calls and of streams, read
//! from the files of known benchmarks ([`read`]), or, with the feature `mpi`, made by two processes according to a
//! [`Plan`]. It fits curves that are piecewise linear in the size of a message, with breakpoints where the data have them,
//! and the sizes at which the MPI library changes its protocol. The result is a [`Machine`]; [`Machine::to_toml`] returns
//! it as a configuration for a replay, and, with the feature `pictures`, `Machine::write_page` writes a page to explore.
//!
//! ```
//! use std::path::Path;
//! use calibration::{Machine, read_text};
//!
//! let latencies = "# OSU MPI Latency Test v7.2\n# Size  Avg Latency(us)\n0 1.00\n16 1.01\n256 1.16\n1024 1.64\n4096 3.56\n\
//!     65536 41.96\n262144 164.84\n";
//! let machine = Machine::fit(&read_text(latencies, Path::new("latency.txt"))?)?;
//! assert_eq!(format!("{:.2e} s, {:.2e} B/s", machine.latency_s(), machine.bandwidth()), "1.00e-6 s, 1.60e9 B/s");
//! assert!(machine.to_toml(&[]).contains("kind = \"cluster\""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod call;
mod configuration;
mod curve;
mod format;
mod line;
mod machine;
#[cfg(feature = "mpi")]
mod measure;
mod observation;
#[cfg(feature = "pictures")]
mod page;
mod plan;
mod segmentation;
mod threshold;

pub use call::{CallCost, CallPoint};
pub use curve::{Curve, Residuals, Segment};
pub use format::{FormatError, read, read_all, read_text, write_observations};
pub use line::Line;
pub use machine::{Computations, FitError, Fitted, Machine};
#[cfg(feature = "mpi")]
pub use measure::{MeasureError, measure, run_program};
pub use observation::{Measurements, Observation, Operation, Point};
pub use plan::{Experiment, Plan};
pub use threshold::{Evidence, Thresholds};
