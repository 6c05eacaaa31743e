//! Parser of time-independent text.

mod call;
mod collective;
mod error;
mod fields;
mod keys;
mod lines;
mod list;
mod point_to_point;
mod read;
mod reader;
mod stream;
mod verb;
mod warnings;
mod zstd;

pub use error::{Field, TextError, Unsupported};
pub(crate) use fields::Fields;
pub(crate) use lines::{Line, Lines, check_nanos};
pub(crate) use list::{NumberList, RankRanges};
pub(crate) use point_to_point::{message_size, number, recv_from, send_to};
pub(crate) use read::{count_ranks, error, locate, not_wanted, read};
pub(crate) use reader::{RankText, read_action, read_rank};
pub(crate) use stream::Stream;
pub(crate) use warnings::FileWarnings;
