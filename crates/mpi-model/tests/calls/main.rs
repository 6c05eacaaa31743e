//! Cost and effect of every call, with times derived by hand, on every engine.
//!
//! A message of n bytes takes 1000 + n + 16 ns once both sides are ready; a flop takes a nanosecond. Sends below 65,536
//! bytes do not wait. All times below are in nanoseconds.

mod arrivals;
mod closed_forms;
mod collectives;
mod completion;
mod critical_paths;
mod noise;
mod observers;
mod outcomes;
mod point_to_point;
mod progress;
mod runs;
mod sources;
mod timeline;
mod waits;
mod wildcards;
