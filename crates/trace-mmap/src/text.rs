//! Parser of time-independent text.

mod call;
mod collective;
mod error;
mod fields;
mod keys;
mod lines;
mod list;
mod point_to_point;
mod reader;
mod source;
mod verb;

pub(crate) use call::CallReader;
pub(crate) use collective::CollectiveReader;
pub use error::{Field, TextError, Unsupported};
pub(crate) use fields::Fields;
pub(crate) use lines::{Line, Lines};
pub(crate) use list::{NumberList, RankRanges};
pub(crate) use reader::{read_action, read_rank};
pub(crate) use source::Source;
