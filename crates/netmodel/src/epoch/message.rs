//! Messages between regions at a boundary.

use pdes_core::{Bytes, SimTime};
use serde::{Deserialize, Serialize};

use crate::HostId;
use crate::region::RegionId;

/// Key of a flow, the same in all regions. Orders flows by the instant at which they begin, their source, and a count
/// of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct FlowKey {
    pub(super) begin: SimTime,
    pub(super) src: HostId,
    pub(super) count: u32,
}

/// A message whose flow has not begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MessageSpec<T> {
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) size: Bytes,
    pub(super) tag: T,
}

/// Message between regions, about a flow that concerns both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum FlowUpdate<T> {
    /// From the region of the source: the flow begins in the coming epoch.
    Announcement { flow: FlowKey, spec: MessageSpec<T> },
    /// Initial rate that the links of the sender allow the flow.
    Offer { flow: FlowKey, rate: u64 },
    /// Level that the links of the sender allow the flow.
    Advert { flow: FlowKey, from: RegionId, level: u64 },
}

/// Outgoing messages with their destinations.
pub(super) type Outbox<T> = Vec<(RegionId, FlowUpdate<T>)>;
