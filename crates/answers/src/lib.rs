//! Answers for planners: what each part of a machine is [worth](Prices) to a run, why two runs [differ](Why), and what to
//! [change](Optimum).
//!
//! Replays have no noise: two of them differ by what was changed, to the picosecond. The answers of this crate are differences between
//! exact replays of changed [`RunSpec`](replay::RunSpec)s, the same for any number of threads and of replays at a time. They are about the model;
//! each of them says so, with the error of the model where it is known ([`Caveat`]).
//!
//! # Features
//! - `pictures`: pages of answers.
#![forbid(unsafe_code)]

mod answer;
mod caveat;
mod curve;
mod delays;
mod limit;
mod link_group;
mod messages;
mod optimize;
mod parameter;
mod placement;
mod prices;
mod replayed;
mod shapley;
mod why;

pub use answer::Answer;
pub use caveat::{Caveat, CaveatError};
pub use curve::CurvePoint;
pub use delays::delays;
pub use limit::Limit;
pub use link_group::LinkGroup;
pub use messages::{MessageError, MessageGroup};
pub use optimize::{Allowed, Change, Freedom, Optimum, OptimumError, Slack};
pub use parameter::{Parameter, ScaledRun};
pub use placement::{HopBytes, PlaceError, place};
pub use prices::{Costs, CostsError, Method, Price, Prices, PricesError};
pub use why::{Cause, ComparedRun, Factor, FirstDifference, PathLink, PathPart, Paths, Step, Why, WhyError};
