//! Parameters of a machine from measurements of its messages.
//!
//! [`Measurements`] are durations of ping-pong, of calls of MPI and of streams: read from files of known benchmarks
//! ([`read`]), or, with the feature `mpi`, made by two
//! processes as a [`Plan`] says. [`Machine::fit`] finds curves that are piecewise linear in the size of a message,
//! with breakpoints where the data have them, and the sizes at which the MPI library changes its protocol;
//! [`Machine::to_toml`] writes them as a configuration that a replay can use.
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

mod configuration;
mod curve;
mod drawing;
mod format;
mod line;
mod machine;
#[cfg(feature = "mpi")]
mod measure;
mod observation;
mod page;
mod plan;
mod segmentation;
mod threshold;

pub use curve::{Curve, Residuals, Segment};
pub use format::{FormatError, read, read_text, write_observations};
pub use line::Line;
pub use machine::{Computations, FitError, Fitted, Machine};
#[cfg(feature = "mpi")]
pub use measure::{MeasureError, measure};
pub use observation::{Measurements, Observation, Operation, Point};
pub use plan::{Experiment, Plan};
pub use threshold::{Evidence, Thresholds};
