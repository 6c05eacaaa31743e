//! Endpoints of the path channels to and from a rank.

use pdes_core::{Rank, SimTime};
use rustc_hash::FxHashMap;
use trace_mmap::{OutIdx, PortId};

use crate::critical_path::CriticalPath;
use crate::observer::critical_path::channel::{Receiver, Sender};
use crate::observer::critical_path::store::{PathKey, PathStore, PathStores, PortMessage};

/// Endpoints of the path channels to and from a rank.
pub(in crate::observer::critical_path) struct ChannelEndpoints<'t> {
    /// Receiver of each port of the rank; `None` where messages may be received in another order than they were sent.
    receivers: Box<[Option<Receiver<'t>>]>,
    /// Path channel of each outgoing channel, up to the last one used.
    uses: Vec<ChannelUse>,
    senders: Vec<Sender<'t>>,
    /// Index of the sender of each destination; several outgoing channels may lead to one port.
    sender_of: FxHashMap<(Rank, PortId), usize>,
}

/// Path channel of an outgoing channel.
#[derive(Clone, Copy, Debug)]
enum ChannelUse {
    Unknown,
    Sender(usize),
    /// None: the channel leads to another process of the operating system, or to a port where messages are received in any order.
    Unavailable,
}

impl<'t> ChannelEndpoints<'t> {
    pub(super) fn new(store: &'t PathStore) -> Self {
        Self {
            receivers: store.channels().iter().map(|channel| channel.as_ref().map(Receiver::new)).collect(),
            uses: Vec::new(),
            senders: Vec::new(),
            sender_of: FxHashMap::default(),
        }
    }

    /// Sends the path to a message of an outgoing channel, which leads to a port of a rank; returns whether there is a path channel.
    #[inline(always)]
    pub(in crate::observer::critical_path) fn send(
        &mut self,
        channel: OutIdx,
        (to, port): (Rank, PortId),
        path: &CriticalPath,
        stores: &'t PathStores,
    ) -> bool {
        let channel_use = match self.uses.get(channel.index()) {
            None | Some(ChannelUse::Unknown) => self.find_channel(channel, (to, port), stores),
            Some(&channel_use) => channel_use,
        };
        let ChannelUse::Sender(index) = channel_use else { return false };
        self.senders[index].send(path);
        true
    }

    #[cold]
    fn find_channel(&mut self, channel: OutIdx, to: (Rank, PortId), stores: &'t PathStores) -> ChannelUse {
        let channel_use = self.sender_index(to, stores).map_or(ChannelUse::Unavailable, ChannelUse::Sender);
        if self.uses.len() <= channel.index() {
            self.uses.resize(channel.index() + 1, ChannelUse::Unknown);
        }
        self.uses[channel.index()] = channel_use;
        channel_use
    }

    /// Returns the index of the sender to a port of a rank, created on first use.
    fn sender_index(&mut self, (to, port): (Rank, PortId), stores: &'t PathStores) -> Option<usize> {
        let channel = stores.of(to)?.channels().get(port.index())?.as_ref()?;
        Some(*self.sender_of.entry((to, port)).or_insert_with(|| {
            self.senders.push(Sender::new(channel));
            self.senders.len() - 1
        }))
    }

    /// Stores a path from a rank of another process of the operating system; returns whether it has a channel.
    pub(in crate::observer::critical_path) fn store(
        &mut self,
        me: Rank,
        key: PathKey,
        path: &CriticalPath,
        stores: &'t PathStores,
    ) -> bool {
        let PathKey::Port(PortMessage { port, .. }) = key else { return false };
        let index = self.sender_index((me, port), stores);
        index.map(|index| self.senders[index].send(path)).is_some()
    }

    /// Returns the receiver of a port, if its messages are received in the order of sending.
    #[inline(always)]
    pub(in crate::observer::critical_path) fn receiver(&mut self, port: usize) -> Option<&mut Receiver<'t>> {
        self.receivers.get_mut(port)?.as_mut()
    }

    /// Returns the receiver of each port.
    pub(super) fn receivers(&self) -> impl ExactSizeIterator<Item = Option<&Receiver<'t>>> {
        self.receivers.iter().map(Option::as_ref)
    }

    /// Returns the receiver of the path with this key, and the time of the post.
    pub(super) fn receiver_of(&mut self, key: PathKey) -> Option<(&mut Receiver<'t>, SimTime)> {
        let PathKey::Port(PortMessage { port, posted, .. }) = key else { return None };
        self.receiver(port.index()).map(|channel| (channel, posted))
    }
}
