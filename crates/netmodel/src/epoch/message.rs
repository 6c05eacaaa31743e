//! What regions say to each other at a boundary.

use pdes_core::{Bytes, SimTime};

use crate::HostId;
use crate::region::RegionId;

/// Names a flow, the same in all regions, and orders flows: by the instant at which it begins, its source, and how many
/// its source has begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FlowKey {
    pub(super) begin: SimTime,
    pub(super) src: HostId,
    pub(super) count: u32,
}

/// A message whose data have not begun to flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure<T> {
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) size: Bytes,
    pub(super) tag: T,
}

/// A message between regions, about a flow that concerns both.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<T> {
    /// From the region of the source: the flow begins in the epoch that begins.
    Announcement { flow: FlowKey, departure: Departure<T> },
    /// The rate at which the links of the sender let the flow begin.
    Offer { flow: FlowKey, rate: u64 },
    /// The level that the links of the sender allow the flow.
    Advert { flow: FlowKey, from: RegionId, level: u64 },
}

/// Messages that wait to be sent.
pub(super) type Outbox<T> = Vec<(RegionId, Message<T>)>;
