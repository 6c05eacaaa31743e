//! What a run has done.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Packets of a run, and the speed of its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketStatistics {
    /// Packets that arrived at hosts.
    pub packets: u64,
    /// Links that packets crossed, with those of iterations that were not simulated.
    pub hops: u64,
    /// Hops in a second of wall-clock time \[1/s\].
    pub hops_per_s: f64,
}

impl PacketStatistics {
    /// Sums up the [counts](crate::PacketRegion::counts) of the regions of a run that took so long.
    pub fn new(counts: impl IntoIterator<Item = (u64, u64)>, wall_time: Duration) -> Self {
        let sum = |sum: (u64, u64), counts: (u64, u64)| (sum.0 + counts.0, sum.1 + counts.1);
        let (packets, hops) = counts.into_iter().fold((0, 0), sum);
        Self { packets, hops, hops_per_s: hops as f64 / wall_time.as_secs_f64().max(f64::MIN_POSITIVE) }
    }
}
