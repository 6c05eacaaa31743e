//! Counters: values over time of something other than a rank.

use std::borrow::Cow;

use pdes_core::SimTime;

/// Values over time of a part of the machine, such as an I/O server.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The part of the machine; counters of one part are shown together.
    pub part: String,
    /// Name of the quantity, with its unit.
    pub name: Cow<'static, str>,
    /// Values, each from an instant on, in the order of time.
    pub values: Vec<(SimTime, f64)>,
}
