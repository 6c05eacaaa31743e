//! The network as it is built: packets that switches forward, one by one, through output queues.
//!
//! Messages are cut into packets. A packet crosses link after link; at each output of a switch packets wait in a queue, and nothing is
//! dropped (as in PIOsimHD: Kunkel, "Simulating Parallel Programs on Application and System Level", 2013). Switches store a packet
//! before they forward it, or cut it through; they forward on the platform's route, or choose among all shortest ways by a hash of the
//! flow, by a hash of the packet, or by the lengths of their queues.
//!
//! ```
//! use netmodel::{HostId, Message, NetworkModel, Platform};
//! use packets::{PacketMachine, PacketParameters};
//! use pdes_core::{Bytes, SimTime};
//!
//! let text = "topology = { kind = 'cluster', hosts = 3, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
//! let platform = Platform::from_toml(text, "flat.toml")?;
//! let parameters = PacketParameters { packet_bytes: 1000, ..PacketParameters::default() };
//! let machine = PacketMachine::new(&platform, &parameters, (&[0, 0, 0], 1))?;
//! let mut region = machine.make_regions::<u32>(0..1).remove(0);
//! let host = HostId::new;
//! region.send(Message::new(SimTime::ZERO, host(0), host(2), Bytes::new(4000), 7))?;
//! let (mut left, mut arrived) = (Vec::new(), Vec::new());
//! while left.is_empty() {
//!     region.advance(&mut arrived);
//!     region.take_left(&mut left);
//! }
//! // Four packets of 1 us have left.
//! assert_eq!(region.now().as_picos(), 4_000_000);
//! while arrived.is_empty() {
//!     region.advance(&mut arrived);
//! }
//! // The last one crosses another link, and each of the two links takes 1 us more.
//! assert_eq!(region.now().as_picos(), 7_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Determinism
//! A switch forwards packets in the order of (time, input port); what chooses at random is a hash of hosts, packet and switch. Both
//! depend on nothing else, so that times are the same bits for any division into regions. Times are whole picoseconds; the time of a
//! packet on a link is rounded once.
#![forbid(unsafe_code)]

mod detours;
mod error;
mod fabric;
mod machine;
mod packet;
mod parameters;
mod region;
mod statistics;

pub use error::PacketError;
pub use fabric::PacketArrival;
pub use machine::{PacketMachine, TablePlace};
pub use packet::MessageKey;
pub use parameters::{
    Arbitration, Congestion, Crossbar, DegradedLink, InFlight, PacketParameters, PacketRouting, Queues,
    Switching, TableEntry, Weights,
};
pub use region::{PacketMessage, PacketRegion};
pub use statistics::PacketStatistics;
