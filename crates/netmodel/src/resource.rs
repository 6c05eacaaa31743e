//! What a machine is made of: hosts that compute and links that carry.

use schemars::JsonSchema;
use serde::Deserialize;

/// A machine that computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The name, unique in the platform.
    pub name: String,
    /// What one core computes [flop/s]; greater than zero.
    pub speed: f64,
    /// The number of cores; at least one.
    pub cores: u32,
}

/// A resource that messages cross.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name, unique in the platform.
    pub name: String,
    /// Capacity [B/s]; greater than zero.
    pub bandwidth: f64,
    /// Latency in seconds; zero or more.
    pub latency: f64,
    /// How flows that cross the link at the same time share it.
    pub sharing: Sharing,
}

/// How the flows on a link share its capacity.
///
/// A split-duplex link `X` is two shared links, `X_UP` and `X_DOWN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// The flows divide the capacity among them.
    #[default]
    Shared,
    /// Each flow may use the whole capacity, however many there are.
    FatPipe,
}
