//! Packets and messages.

use netmodel::HostId;
use pdes_core::{BaseName, GOLDEN_GAMMA, SimTime, StateVisitor, mix};
use serde::{Deserialize, Serialize};

/// A message by its ends and its number among the messages between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MessageKey {
    /// The host that sends it.
    pub src: HostId,
    /// The host that receives it; beyond all hosts, a communicator between whose hosts switches combine or copy it.
    pub dst: HostId,
    /// Number among the messages of this pair of hosts.
    pub number: u32,
}

/// Bit of the destinations that are communicators.
const COMMUNICATOR: u32 = 1 << 31;

/// Kind of the base of the numbers of operations on a communicator, on which ranks count them.
const OPERATIONS: u32 = 1;

/// Base of the numbers of messages from one host to another.
pub(crate) fn messages_between(src: HostId, dst: HostId) -> BaseName {
    // Other bases have small names.
    (1 << 31 | src.get(), dst.get())
}

impl MessageKey {
    /// Makes the part of a host in an operation of the switches between the hosts of a communicator.
    pub(crate) fn of_operation(src: HostId, communicator: u32, number: u32) -> Self {
        Self { src, dst: HostId::new(COMMUNICATOR | communicator), number }
    }

    /// Returns the communicator in whose operation switches combine or copy the message.
    #[inline]
    pub(crate) fn communicator(self) -> Option<u32> {
        let dst = self.dst.get();
        (dst & COMMUNICATOR != 0).then_some(dst & !COMMUNICATOR)
    }

    pub(crate) fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { src, dst, number: _ } = self;
        visitor.plain(src);
        visitor.plain(dst);
        let base = match self.communicator() {
            Some(communicator) => (OPERATIONS, communicator),
            None => messages_between(self.src, self.dst),
        };
        visitor.number_on(base, &mut self.number);
    }
}

/// A packet on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// Instant at which the node may send it on: when all of it is there or, with cut-through, its header \[ps\].
    pub(crate) at: u64,
    /// Instant at which it could leave its host, where that decides who goes first \[ps\].
    pub(crate) born: u64,
    pub(crate) message: MessageKey,
    /// Number in its message; the highest bit marks the last packet, the next one those that are acknowledged, the next one those that
    /// have met a long queue.
    number: u32,
    /// Payload and header.
    pub(crate) bytes: u32,
    /// Place of its next port among the static routes of the region; between regions, the number of links behind it. With `reps` the upper
    /// half is its entropy. In an operation of switches, the way through their tree.
    pub(crate) path: u32,
}

const _: () = assert!(size_of::<Packet>() == 40);

/// Largest number of packets of a message.
pub(crate) const MAX_PACKETS: u64 = MARKED as u64;
const LAST: u32 = 1 << 31;
const ACKNOWLEDGED: u32 = 1 << 30;
const MARKED: u32 = 1 << 29;

impl Packet {
    pub(crate) fn new(at: u64, message: MessageKey, number: u32, is_last: bool, bytes: u32) -> Self {
        Self { at, born: 0, message, number: if is_last { number | LAST } else { number }, bytes, path: 0 }
    }

    /// Returns the packet with another arrival and path.
    #[inline]
    pub(crate) fn moved(self, (at, path): (u64, u32)) -> Self {
        Self { at, path, ..self }
    }

    /// Returns the number in the message, from 0.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.number & (MARKED - 1)
    }

    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.number & LAST != 0
    }

    /// Returns the number by which nodes choose with `reps`.
    #[inline]
    pub(crate) fn entropy(&self) -> u16 {
        (self.path >> u16::BITS) as u16
    }

    /// Returns the packet with a number by which nodes choose.
    pub(crate) fn with_entropy(self, entropy: u16) -> Self {
        Self { path: u32::from(entropy) << u16::BITS | self.path, ..self }
    }

    /// Returns the packet, marked if its arrival is to be acknowledged.
    pub(crate) fn acknowledged_if(self, is_acknowledged: bool) -> Self {
        Self { number: if is_acknowledged { self.number | ACKNOWLEDGED } else { self.number }, ..self }
    }

    /// Marks the packet: it has met a long queue.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.number |= MARKED;
    }

    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.number & MARKED != 0
    }

    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.number & ACKNOWLEDGED != 0
    }

    /// Visits a packet whose path is the number of links behind it.
    pub(crate) fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visit_picos(&mut self.at, visitor);
        self.visit_waiting(visitor);
    }

    /// Visits a packet that waits: its arrival makes no difference any more.
    pub(crate) fn visit_waiting(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { at: _, born, message, number, bytes, path } = self;
        visitor.compare(&(*born > 0));
        if *born > 0 {
            visit_picos(born, visitor);
        }
        message.visit(visitor);
        visitor.plain(number);
        visitor.plain(bytes);
        visitor.plain(path);
    }
}

/// Visits an instant in picoseconds.
pub(crate) fn visit_picos(picos: &mut u64, visitor: &mut StateVisitor<'_>) {
    let mut at = SimTime::from_picos(*picos);
    visitor.time(&mut at);
    *picos = at.as_picos();
}

/// Visits an instant until which something is busy, which makes no difference if it lies before the horizon.
pub(crate) fn visit_busy_until(picos: &mut u64, horizon: u64, visitor: &mut StateVisitor<'_>) {
    let mut at = SimTime::from_picos(*picos);
    visitor.time_from(SimTime::from_picos(horizon), &mut at);
    *picos = at.as_picos();
}

/// Returns the hash by which a node chooses for a flow, or for one packet of a message. Absolute numbers of messages are not part of
/// it: what happens again would be another thing each time.
#[inline]
pub(crate) fn choice(seed: u64, MessageKey { src, dst, .. }: MessageKey, packet: u32, node: u32) -> u64 {
    let flow = u64::from(src.get()) << 32 | u64::from(dst.get());
    mix(mix(flow ^ seed.wrapping_mul(GOLDEN_GAMMA)) ^ u64::from(packet) << 32 ^ u64::from(node))
}

/// Returns a number below `count` from a hash.
#[inline]
pub(crate) fn below(count: usize, hash: u64) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}
