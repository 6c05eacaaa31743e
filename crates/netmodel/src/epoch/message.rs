//! Messages between regions at a boundary.

use pdes_core::{Bytes, SimTime, State, StateVisitor};
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

/// Base of the [numbers](StateVisitor::number_on) of the messages of hosts.
pub(super) const MESSAGES_SENT: u32 = u32::from_be_bytes(*b"sent");

impl State for FlowKey {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if visitor.saves_whole(self) {
            return;
        }
        let Self { begin, src, count } = self;
        begin.visit(visitor);
        visitor.plain(src);
        visitor.number_on((MESSAGES_SENT, src.get()), count);
    }
}

/// A message whose flow has not begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) struct MessageSpec<T> {
    #[state(plain)]
    pub(super) src: HostId,
    #[state(plain)]
    pub(super) dst: HostId,
    pub(super) size: Bytes,
    pub(super) tag: T,
}

/// Message between regions, about a flow that concerns both.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(super) enum FlowUpdate<T> {
    /// From the region of the source: the flow begins in the coming epoch.
    Announcement { flow: FlowKey, spec: MessageSpec<T> },
    /// Initial rate that the links of the sender allow the flow.
    Offer { flow: FlowKey, rate: u64 },
    /// Level that the links of the sender allow the flow.
    Advert {
        flow: FlowKey,
        #[state(plain)]
        from: RegionId,
        level: u64,
    },
}

/// Outgoing messages with their destinations.
pub(super) type Outbox<T> = Vec<(RegionId, FlowUpdate<T>)>;
