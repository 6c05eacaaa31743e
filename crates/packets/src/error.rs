//! Errors of the model.

use netmodel::GraphError;
use thiserror::Error;

/// The reason why the model cannot simulate a platform.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// Links form no graph.
    #[error("model packets: {0}")]
    Graph(#[from] GraphError),
    /// A link has no latency, which is the lookahead.
    #[error(
        "model packets: the link {link:?} has no latency, within which the node behind it is independent: give it some picoseconds or more"
    )]
    NoLatency {
        /// The link.
        link: String,
    },
    /// A route of the platform is no path.
    #[error(
        "model packets: on the route from {src:?} to {dst:?} the link {link:?} does not begin where the one before ends, as on SimGrid's \
         routes in some dragonflies: set platform.routing = \"textbook\""
    )]
    BrokenRoute {
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
        /// The link.
        link: String,
    },
    /// A packet carries nothing.
    #[error("packets.packet_bytes is 0, expected the payload of a packet, such as 4096")]
    EmptyPackets,
    /// A header and a payload are too long.
    #[error(
        "packets.packet_bytes and packets.header_bytes are {found} bytes together, expected at most {}",
        u32::MAX
    )]
    LongPackets {
        /// Their sum.
        found: u64,
    },
    /// No node has a choice.
    #[error(
        "packets.routing = {routing:?} chooses among shortest ways, and this platform has one between any two hosts: set \"minimal\""
    )]
    NoChoice {
        /// The routing.
        routing: String,
    },
    /// The table of outputs would take too much memory.
    #[error(
        "packets.routing = {routing:?} needs a table of {entries} outputs, expected at most {most}: set \"minimal\", which needs none"
    )]
    LargeTable {
        /// The routing.
        routing: String,
        /// Entries that the table would have.
        entries: u64,
        /// Most entries.
        most: u64,
    },
}
