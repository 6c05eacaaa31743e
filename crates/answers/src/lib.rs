//! Answers for planners: what follows from changes of a run.
//!
//! Replays have no noise: two of them differ by what was changed, to the picosecond.
#![forbid(unsafe_code)]

mod link_group;
mod parameter;
mod placement;

pub use link_group::LinkGroup;
pub use parameter::Parameter;
pub use placement::{HopBytes, PlaceError, place};
