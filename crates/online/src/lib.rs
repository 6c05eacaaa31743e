//! Programs online: unmodified MPI programs in simulated time.
//!
//! The ranks of a [`Program`] are processes of the system. A library that is loaded before all others takes their calls of MPI: it hands
//! them to the simulator as the actions of a trace, and moves the data of messages itself, through shared memory. So models, engines,
//! analyses and reports are those of replays. The entry point is [`Program::start`].
//!
//! # Determinism
//! A rank and the logical process that stands for it take turns: while a rank computes, its logical process waits, so that what a rank does
//! depends on what it is told alone. With computations that are not measured, results are the same bits for any number of threads.

mod agreement;
mod binary;
mod collective;
mod computing;
mod describe;
mod exchange;
mod extrapolate;
mod layout;
mod memory;
mod polling;
mod program;
mod record;
mod run;
mod samples;
mod shim;
mod source;
mod turns;

pub use binary::{BinaryError, Library};
pub use extrapolate::{Extrapolation, ExtrapolationRule};
pub use program::{Clocks, Computation, Program, Settings, StartError};
pub use record::Recording;
pub use samples::SampledBlock;
pub use shim::{ShimError, headers, shim};
