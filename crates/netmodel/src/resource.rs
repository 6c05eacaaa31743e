//! Resources of a machine: hosts that compute and links that carry messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine that computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The name, unique in the platform.
    pub name: String,
    /// Speed of one core [flop/s]; greater than zero.
    pub speed: f64,
    /// The number of cores; at least one.
    pub cores: u32,
    /// Bandwidth of the memory, which the cores share \[B/s\]; greater than zero, `None` where it limits nothing.
    pub memory_bandwidth: Option<f64>,
}

/// A resource that messages cross.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name, unique in the platform.
    pub name: String,
    /// Capacity [B/s]; greater than zero.
    pub bandwidth: f64,
    /// Latency \[s\]; zero or more.
    pub latency: f64,
    /// Sharing of the link by simultaneous flows.
    pub sharing: Sharing,
}

/// Sharing of the capacity of a link by its flows.
///
/// A split-duplex link `X` is two shared links, `X_UP` and `X_DOWN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// The flows divide the capacity among them.
    #[default]
    Shared,
    /// Each flow may use the whole capacity, regardless of the number of flows.
    FatPipe,
}
