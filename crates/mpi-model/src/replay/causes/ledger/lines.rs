//! Endpoints of the path channels to and from a rank.

use pdes_core::{Rank, SimTime};
use rustc_hash::FxHashMap;
use trace_mmap::{OutIdx, PortId};

use crate::critical_path::CriticalPath;
use crate::replay::line::{Receiver, Sender};
use crate::replay::shelf::{Key, Shelf, Shelves, ToPort};

/// Endpoints of the path channels to and from a rank.
pub(in crate::replay::causes) struct Lines<'t> {
    /// Receiver of each port of the rank; `None` where messages may be received in another order than they were sent.
    to_ports: Box<[Option<Receiver<'t>>]>,
    /// Path channel of each outgoing channel, up to the last one used.
    ways: Vec<Way>,
    senders: Vec<Sender<'t>>,
    /// Index of the sender of each destination; several outgoing channels may lead to one port.
    places: FxHashMap<(Rank, PortId), usize>,
}

/// Path channel of an outgoing channel.
#[derive(Clone, Copy, Debug)]
enum Way {
    Unknown,
    Line(usize),
    /// None: the channel leads to another process of the operating system, or to a port where messages are received in any order.
    Other,
}

impl<'t> Lines<'t> {
    pub(super) fn new(shelf: &'t Shelf) -> Self {
        Self {
            to_ports: shelf.lines().iter().map(|line| line.as_ref().map(Receiver::new)).collect(),
            ways: Vec::new(),
            senders: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// Sends the path to a message of an outgoing channel, which leads to a port of a rank; returns whether there is a path channel.
    #[inline(always)]
    pub(in crate::replay::causes) fn put(
        &mut self,
        channel: OutIdx,
        (to, port): (Rank, PortId),
        path: &CriticalPath,
        shelves: &'t Shelves,
    ) -> bool {
        let way = match self.ways.get(channel.index()) {
            None | Some(Way::Unknown) => self.find_way(channel, (to, port), shelves),
            Some(&way) => way,
        };
        let Way::Line(place) = way else { return false };
        self.senders[place].put(path);
        true
    }

    #[cold]
    fn find_way(&mut self, channel: OutIdx, to: (Rank, PortId), shelves: &'t Shelves) -> Way {
        let way = self.place(to, shelves).map_or(Way::Other, Way::Line);
        if self.ways.len() <= channel.index() {
            self.ways.resize(channel.index() + 1, Way::Unknown);
        }
        self.ways[channel.index()] = way;
        way
    }

    /// Returns the index of the sender to a port of a rank, created on first use.
    fn place(&mut self, (to, port): (Rank, PortId), shelves: &'t Shelves) -> Option<usize> {
        let line = shelves.of(to)?.lines().get(port.index())?.as_ref()?;
        Some(*self.places.entry((to, port)).or_insert_with(|| {
            self.senders.push(Sender::new(line));
            self.senders.len() - 1
        }))
    }

    /// Stores a path from a rank of another process of the operating system; returns whether it has a channel.
    pub(in crate::replay::causes) fn take_in(
        &mut self,
        me: Rank,
        key: Key,
        path: &CriticalPath,
        shelves: &'t Shelves,
    ) -> bool {
        let Key::Port(ToPort { port, .. }) = key else { return false };
        let place = self.place((me, port), shelves);
        place.map(|place| self.senders[place].put(path)).is_some()
    }

    /// Returns the receiver of a port, if its messages are received in the order of sending.
    #[inline(always)]
    pub(in crate::replay::causes) fn to(&mut self, port: usize) -> Option<&mut Receiver<'t>> {
        self.to_ports.get_mut(port)?.as_mut()
    }

    /// Returns the receiver of the path with this key, and the time of the post.
    pub(super) fn of(&mut self, key: Key) -> Option<(&mut Receiver<'t>, SimTime)> {
        let Key::Port(ToPort { port, posted, .. }) = key else { return None };
        self.to(port.index()).map(|line| (line, posted))
    }
}
