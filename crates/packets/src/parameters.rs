//! Parameters of the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the model `packets`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "packets.md"))]
pub struct PacketParameters {
    /// Where packets wait.
    pub queues: Queues,
    /// Payload of a packet; the last one of a message has what is left.
    #[schemars(extend("x-unit" = "B"))]
    pub packet_bytes: u32,
    /// Header of each packet, beside its payload.
    #[schemars(extend("x-unit" = "B"))]
    pub header_bytes: u32,
    /// When a switch sends a packet on.
    pub switching: Switching,
    /// How a packet finds its way.
    pub routing: PacketRouting,
    /// How much of a message may be on its way.
    pub in_flight: InFlight,
    /// Seed of the hashes by which `ecmp`, `spray` and `adaptive` choose.
    pub seed: u64,
}

impl Default for PacketParameters {
    fn default() -> Self {
        Self {
            queues: Queues::Fifo,
            packet_bytes: 4096,
            header_bytes: 0,
            switching: Switching::StoreAndForward,
            routing: PacketRouting::Minimal,
            in_flight: InFlight::Loop,
            seed: 1,
        }
    }
}

/// Queues of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// At each output, first come first served, without a limit: nothing is dropped.
    Fifo,
}

/// When a switch sends a packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// When all of it is there.
    StoreAndForward,
    /// When its header is there; if the output is faster than the input, later, so that the last byte is there in time (virtual
    /// cut-through: Kermani and Kleinrock, 1979).
    CutThrough,
}

/// How a packet finds its way. All ways but that of `minimal` are shortest ones in number of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketRouting {
    /// On the route of the platform, as with the model `flow`: by the destination in a fat tree, by dimension in a torus.
    Minimal,
    /// Each switch chooses by a hash of both hosts: the packets of a flow stay together.
    Ecmp,
    /// Each switch chooses by a hash of both hosts and the packet's number in its message.
    Spray,
    /// Each switch chooses the output that is free first; among equal ones by the hash of `spray`.
    Adaptive,
}

impl PacketRouting {
    /// Returns whether packets of a message arrive in their order.
    pub(crate) fn keeps_order(self) -> bool {
        matches!(self, Self::Minimal | Self::Ecmp)
    }
}

/// How much of a message may be on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// Any number of packets.
    Unlimited,
    /// As many packets as the narrowest link of the platform's route sends until an acknowledgement is back: bandwidth times delay.
    Loop,
}
