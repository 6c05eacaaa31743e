//! The parallel discrete-event core of pdes-replay.
#![forbid(unsafe_code)]

mod quantity;
mod time;

pub use quantity::{Bytes, Rank};
pub use time::{SimDuration, SimTime};
