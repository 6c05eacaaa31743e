//! The section `[loggops]`: times in nanoseconds, or with units.

use goal::{EmptyMessage, LogGops, NANOSECOND};
use netmodel::quantity::{Nanoseconds, Size};
use schemars::JsonSchema;
use serde::Deserialize;

/// Parameters of the model `loggops`, for GOAL schedules, which are not replayed as traces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "goal.md"))]
#[expect(non_snake_case, reason = "the model's names differ in case only")]
pub struct LogGopsSection {
    /// Latency.
    #[schemars(extend("x-unit" = "ns", "default" = nanos(LogGops::default().latency)))]
    pub L: Option<Nanoseconds>,
    /// Overhead of sender and of receiver per message.
    #[schemars(extend("x-unit" = "ns", "default" = nanos(LogGops::default().overhead)))]
    pub o: Option<Nanoseconds>,
    /// Gap between messages at an interface.
    #[schemars(extend("x-unit" = "ns", "default" = nanos(LogGops::default().gap)))]
    pub g: Option<Nanoseconds>,
    /// Gap per byte beyond the first.
    #[schemars(extend("x-unit" = "ns", "default" = nanos(LogGops::default().gap_per_byte)))]
    pub G: Option<Nanoseconds>,
    /// Overhead per byte beyond the first.
    #[schemars(extend("x-unit" = "ns", "default" = nanos(LogGops::default().overhead_per_byte)))]
    pub O: Option<Nanoseconds>,
    /// Size of the largest message whose sender does not wait for the receive.
    #[schemars(extend("default" = LogGops::default().eager_up_to))]
    pub S: Option<Size>,
    /// Cost of a message of 0 bytes: a byte less than of one byte, as in LogGOPSim, where `size - 1` wraps, or the same (`one_byte`).
    #[schemars(extend("enum" = ["wraps", "one_byte"], "default" = EmptyMessage::default().name()))]
    pub empty: Option<String>,
}

/// Converts a default, which is a whole number of nanoseconds.
fn nanos(picos: u64) -> u64 {
    picos / NANOSECOND
}
