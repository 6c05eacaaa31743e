//! Packets on their way to an input port.

use serde::{Deserialize, Serialize};

use crate::packet::Packet;

/// A queue of packets in a ring of a power of two of places.
///
/// Packets of a network are most of its memory, and each hop takes one out of a ring and puts it into another one. A deque of the standard
/// library is longer, and takes more instructions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Packet>", into = "Vec<Packet>")]
pub(super) struct Ring {
    places: Box<[Packet]>,
    /// Place of the first packet.
    first: u32,
    len: u32,
}

/// Places of a ring that gets its first packet.
const LEAST: usize = 4;

impl Ring {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the place of the packet after so many others.
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        self.first.wrapping_add(number) as usize & self.places.len().wrapping_sub(1)
    }

    /// Returns the packet after so many others.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&Packet> {
        if number < self.len { self.places.get(self.place(number)) } else { None }
    }

    /// Returns the first packet.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&Packet> {
        self.get(0)
    }

    /// Takes the first packet.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = *self.front()?;
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(packet)
    }

    /// Adds a packet with another arrival and path. They are written after it, as a copy by wide loads would wait for narrow stores.
    #[inline(always)]
    pub(super) fn push(&mut self, packet: &Packet, (at, path): (u64, u32)) {
        if self.len() == self.places.len() {
            self.grow(packet);
        }
        let place = self.place(self.len);
        let added = &mut self.places[place];
        *added = *packet;
        (added.at, added.path) = (at, path);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self, filler: &Packet) {
        let mut places: Vec<Packet> = self.iter().copied().collect();
        places.resize((2 * places.len()).max(LEAST), *filler);
        (self.places, self.first) = (places.into(), 0);
    }

    /// Lists the packets in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        (0..self.len).filter_map(|number| self.get(number))
    }

    /// Lists the packets in their order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        let (first, len) = (self.place(0), self.len());
        let (before, after) = self.places.split_at_mut(first);
        after.iter_mut().chain(before).take(len)
    }
}

impl From<Vec<Packet>> for Ring {
    fn from(packets: Vec<Packet>) -> Self {
        let mut ring = Self::default();
        packets.iter().for_each(|packet| ring.push(packet, (packet.at, packet.path)));
        ring
    }
}

impl From<Ring> for Vec<Packet> {
    fn from(ring: Ring) -> Self {
        ring.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use netmodel::HostId;

    use super::*;
    use crate::packet::MessageKey;

    #[test]
    fn a_ring_keeps_the_order_of_packets_as_it_grows() {
        let mut ring = Ring::default();
        let ends = [0, 1].map(HostId::new);
        let packet = Packet::new(0, MessageKey { src: ends[0], dst: ends[1], number: 0 }, 0, false, 1);
        let ats = |ring: &mut Ring| -> Vec<u64> { ring.iter_mut().map(|packet| packet.at).collect() };
        assert_eq!((ats(&mut ring), ring.pop()), (vec![], None));
        let mut taken = 0;
        for at in 0..100 {
            ring.push(&packet, (at, 1));
            if at % 3 == 0 {
                assert_eq!(ring.pop().map(|packet| packet.at), Some(taken));
                taken += 1;
            }
            assert_eq!(ats(&mut ring), (taken..=at).collect::<Vec<_>>());
        }
        let saved = Vec::from(ring.clone());
        assert_eq!(ats(&mut Ring::from(saved)), ats(&mut ring));
    }
}
