//! Critical paths in flight: sent along with messages and not received yet.
//!
//! They are kept beside the tokens, whose size does not grow: the receiver of a token from a rank of its own process of the
//! operating system finds the path in its store; to another process the path is sent in fragments, before the token.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pdes_core::{Rank, SimTime};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use trace_mmap::{CommId, PortId, RankTrace, Trace};

use super::channel::PathChannel;
use crate::critical_path::CriticalPath;
use crate::point_to_point::RequestId;
use crate::token::{Fragment, Message, ReceiveQueue};

/// Key of a path in flight to a rank: the message or arrival with which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum PathKey {
    /// A message to a port of the trace.
    Port(PortMessage),
    /// Another message: no two posts of a rank have one round and instant, and no member sends another the same time twice.
    Message { from: Rank, round: u32, posted: SimTime, tag: u32, communicator: CommId },
    /// Arrival of the message that a request of the rank has sent.
    Arrival(RequestId),
}

/// Key of a message to a port, by the time and round of its post: all messages to a port are from one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct PortMessage {
    pub(super) port: PortId,
    pub(super) posted: SimTime,
    pub(super) round: u32,
}

/// Stores of the ranks of this process of the operating system; `None` for other ranks.
#[derive(Debug)]
pub(crate) struct PathStores {
    of_rank: Vec<Option<PathStore>>,
    /// Number of fragments sent to other processes.
    fragments: AtomicU64,
}

/// Paths in flight to one rank.
#[derive(Debug)]
pub(super) struct PathStore {
    /// Channel of each port; `None` where messages may be received in another order than they were sent: their paths are in
    /// `others`.
    channels: Box<[Option<PathChannel>]>,
    others: Mutex<FxHashMap<PathKey, CriticalPath>>,
}

impl PathKey {
    #[inline]
    pub(super) fn of(queue: ReceiveQueue, message: &Message) -> Self {
        let Message { posted, tag, communicator, round, .. } = *message;
        match queue {
            ReceiveQueue::Port(port) => Self::Port(PortMessage { port, posted, round }),
            ReceiveQueue::Collective(from) | ReceiveQueue::Mailbox(from) | ReceiveQueue::Time(from) => {
                Self::Message { from: Rank::new(from), round, posted, tag, communicator }
            }
        }
    }
}

impl PathStores {
    /// Creates the stores of these ranks of a trace.
    pub(crate) fn new(of: impl Iterator<Item = Rank>, trace: &Trace) -> Self {
        let mut stores: Vec<_> = (0..trace.ranks()).map(|_| None).collect();
        of.for_each(|rank| stores[rank.index()] = Some(PathStore::of_rank(trace.rank(rank))));
        Self { of_rank: stores, fragments: AtomicU64::new(0) }
    }

    /// Counts fragments that are sent to another process.
    pub(super) fn count_fragments(&self, fragments: usize) {
        self.fragments.fetch_add(fragments as u64, Ordering::Relaxed);
    }

    /// Returns the number of fragments sent to other processes.
    pub(crate) fn fragments(&self) -> u64 {
        self.fragments.load(Ordering::Relaxed)
    }

    /// Stores a path for a rank, of a message without a channel; returns whether the rank is in this process.
    pub(super) fn insert(&self, to: Rank, key: PathKey, path: &CriticalPath) -> bool {
        let store = self.of(to);
        if let Some(store) = store {
            store.insert(key, path);
        }
        store.is_some()
    }

    /// Returns the store of a rank of this process.
    #[inline]
    pub(super) fn of(&self, rank: Rank) -> Option<&PathStore> {
        self.of_rank[rank.index()].as_ref()
    }
}

impl PathStore {
    fn of_rank(trace: &RankTrace) -> Self {
        let mut channels = vec![0_u32; trace.ports() as usize];
        trace.incoming().iter().for_each(|incoming| channels[incoming.port.index()] += 1);
        // A port of several channels has receives that ask for tags.
        Self::new(channels.into_iter().map(|channels| channels == 1))
    }

    /// Creates the store of a rank whose ports receive messages in the order of sending, or not.
    fn new(in_order: impl Iterator<Item = bool>) -> Self {
        let channels = in_order.map(|in_order| in_order.then(PathChannel::default)).collect();
        Self { channels, others: Mutex::default() }
    }

    /// Returns the channel of each port, where its messages are received in the order of sending.
    pub(super) fn channels(&self) -> &[Option<PathChannel>] {
        &self.channels
    }

    /// Stores a path of a message without a channel.
    pub(super) fn insert(&self, key: PathKey, path: &CriticalPath) {
        let before = self.others.lock().insert(key, path.clone());
        debug_assert!(before.is_none(), "two paths have the key {key:?}");
    }

    /// Stores a path from a checkpoint; `None` if there is one with its key.
    pub(super) fn insert_new(&self, key: PathKey, path: &CriticalPath) -> Option<()> {
        self.others.lock().insert(key, path.clone()).is_none().then_some(())
    }

    /// Returns a function of each path of a message without a channel, with its key.
    pub(super) fn others<T>(&self, mut of: impl FnMut(&CriticalPath) -> T) -> Vec<(PathKey, T)> {
        self.others.lock().iter().map(|(key, path)| (*key, of(path))).collect()
    }

    /// Removes and returns a path, if it is there. O(1).
    pub(super) fn take(&self, key: PathKey) -> Option<CriticalPath> {
        self.others.lock().remove(&key)
    }

    /// Returns a copy of a path, if it is there.
    pub(super) fn peek(&self, key: PathKey) -> Option<CriticalPath> {
        self.others.lock().get(&key).cloned()
    }
}

/// Splits a path and its key into fragments for another process, the first of which begins with their length.
pub(super) fn split(key: PathKey, path: &CriticalPath) -> Vec<Fragment> {
    let mut bytes = postcard::to_extend(&(key, path), vec![0; size_of::<u16>()]).expect("a vector grows");
    let length = (bytes.len() as u16).to_le_bytes();
    bytes[..length.len()].copy_from_slice(&length);
    let fragment = |bytes: &[u8]| {
        let mut fragment = Fragment::default();
        fragment[..bytes.len()].copy_from_slice(bytes);
        fragment
    };
    bytes.chunks(Fragment::default().len()).map(fragment).collect()
}

/// Appends a fragment; returns the path and its key after the last one.
///
/// # Panics
/// The fragments are malformed.
pub(super) fn join(bytes: &mut Vec<u8>, fragment: Fragment) -> Option<(PathKey, CriticalPath)> {
    bytes.extend(fragment);
    let (length, rest) = bytes.split_first_chunk()?;
    if bytes.len() < usize::from(u16::from_le_bytes(*length)) {
        return None;
    }
    let (found, _) = postcard::take_from_bytes(rest)
        .expect("fragments arrive in order, from a process of the same version");
    bytes.clear();
    Some(found)
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::*;
    use crate::point_to_point::Requests;

    #[test]
    fn paths_come_back_from_their_pieces() {
        let (mut bytes, mut path) = (Vec::new(), CriticalPath::new(Rank::new(7)));
        let message = Message {
            posted: SimTime::from_picos(5),
            bytes: Bytes::ZERO,
            tag: 9,
            communicator: CommId::new(3),
            reply: None,
            round: 4,
            cause: crate::Cause::default(),
        };
        let sent = [ReceiveQueue::Port(PortId::new(3)), ReceiveQueue::Collective(7)]
            .map(|queue| PathKey::of(queue, &message));
        for key in [sent[0], sent[1], PathKey::Arrival(Requests::new(1).blocking_send())] {
            path.spend(crate::ActionKind::Compute, SimTime::from_picos(1000));
            let fragments = split(key, &path);
            let (last, others) = fragments.split_last().unwrap();
            assert!(others.iter().all(|&fragment| join(&mut bytes, fragment).is_none()));
            assert_eq!(join(&mut bytes, *last), Some((key, path.clone())));
        }
    }

    fn path_to(picos: u64) -> CriticalPath {
        let mut path = CriticalPath::new(Rank::new(0));
        path.spend(crate::ActionKind::Compute, SimTime::from_picos(picos));
        path
    }

    fn to_port(picos: u64, round: u32) -> PathKey {
        PathKey::Port(PortMessage { port: PortId::new(0), posted: SimTime::from_picos(picos), round })
    }

    #[test]
    fn shelves_keep_what_is_put_on_them_here() {
        let store = PathStore::new([false].into_iter());
        let stores = PathStores { of_rank: vec![None, Some(store)], fragments: AtomicU64::new(0) };
        for key in [to_port(7, 5), PathKey::Arrival(Requests::new(1).blocking_send())] {
            assert!(!stores.insert(Rank::new(0), key, &path_to(7)), "the rank is in another process");
            assert!(stores.insert(Rank::new(1), key, &path_to(7)));
            let store = stores.of(Rank::new(1)).unwrap();
            assert_eq!(store.peek(key), Some(path_to(7)));
            assert_eq!(store.take(key), Some(path_to(7)));
            assert_eq!(store.peek(key), None);
        }
    }

    #[test]
    fn messages_are_received_in_any_order_where_receives_ask_for_tags() {
        let store = PathStore::new([false].into_iter());
        let stores = PathStores { of_rank: vec![Some(store)], fragments: AtomicU64::new(0) };
        let store = stores.of(Rank::new(0)).unwrap();
        for round in [4, 5] {
            assert!(stores.insert(Rank::new(0), to_port(7, round), &path_to(7)));
        }
        for round in [5, 4] {
            assert_eq!(store.take(to_port(7, round)), Some(path_to(7)));
            assert_eq!(store.take(to_port(7, round)), None);
        }
    }
}
