//! Critical paths that have been sent along with messages, until the messages are received.
//!
//! They lie beside the tokens, which are as large with them as without: a token between ranks of one process of the operating
//! system finds its path on the receiver's shelf; to another process the path goes in pieces, before the token.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use pdes_core::{Rank, SimTime, Wire};
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, PortId, RankTrace, Trace};

use crate::critical_path::CriticalPath;
use crate::request::RequestId;
use crate::token::{Lane, Message, Piece};

/// Names what a path came with, among all that is under way to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A message to a port of the trace.
    Port(ToPort),
    /// Another message: a rank posts no two of one round at one instant, and tells no member the same twice.
    Message { from: Rank, round: u32, posted: SimTime, tag: u32, communicator: CommId },
    /// The arrival of what a request of the rank has sent.
    Arrival(RequestId),
}

/// Names a message to a port, by when it was posted and in which round: all messages to a port are from one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ToPort {
    pub(super) port: PortId,
    pub(super) posted: SimTime,
    pub(super) round: u32,
}

/// The shelves of the ranks of a process of the operating system; `None` for those of others.
#[derive(Debug)]
pub(super) struct Shelves(Vec<Option<Shelf>>);

/// What is under way to a rank.
#[derive(Debug)]
pub(super) struct Shelf {
    /// By port.
    rows: Box<[Row]>,
    others: Mutex<FxHashMap<Key, CriticalPath>>,
}

/// What is under way to a port of the trace, in the order in which it was sent.
///
/// Nobody goes on from most messages: what has been received stays where it is until the sender needs its place.
#[derive(Debug)]
struct Row {
    /// Whether messages are received in that order, too; else they are among the others.
    in_order: bool,
    /// How many have been received. The receiver alone changes it.
    received: AtomicUsize,
    sent: Mutex<Sent>,
}

/// The paths to messages, by their numbers modulo the places, which are a power of two, or none. The messages were posted when
/// the paths end.
#[derive(Debug, Default)]
struct Sent {
    /// How many have been sent.
    count: usize,
    places: Vec<CriticalPath>,
}

impl Key {
    #[inline]
    pub(super) fn of(lane: Lane, message: &Message) -> Self {
        let Message { posted, tag, communicator, round, .. } = *message;
        match lane {
            Lane::Port(port) => Self::Port(ToPort { port, posted, round }),
            Lane::Collective(from) | Lane::Mailbox(from) | Lane::Time(from) => {
                Self::Message { from: Rank::new(from), round, posted, tag, communicator }
            }
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Port(ToPort { port, posted, round }) => {
                (2_u8, port.get(), round).write(bytes);
                posted.write(bytes);
            }
            Self::Message { from, round, posted, tag, communicator } => {
                (0_u8, from, round).write(bytes);
                (posted, tag, communicator.get()).write(bytes);
            }
            Self::Arrival(request) => (1_u8, request.number()).write(bytes),
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        match u8::read(bytes)? {
            0 => {
                let (from, round) = Wire::read(bytes)?;
                let (posted, tag, communicator) = Wire::read(bytes)?;
                Some(Self::Message { from, round, posted, tag, communicator: CommId::new(communicator) })
            }
            2 => {
                let (port, round): (u32, u32) = Wire::read(bytes)?;
                Some(Self::Port(ToPort { port: PortId::new(port), posted: Wire::read(bytes)?, round }))
            }
            1 => RequestId::from_number(Wire::read(bytes)?).map(Self::Arrival),
            _ => None,
        }
    }
}

impl Shelves {
    /// Makes the shelves of these ranks of a trace.
    pub(super) fn new(of: impl Iterator<Item = Rank>, trace: &Trace) -> Self {
        let mut shelves: Vec<_> = (0..trace.ranks()).map(|_| None).collect();
        of.for_each(|rank| shelves[rank.index()] = Some(Shelf::of_rank(trace.rank(rank))));
        Self(shelves)
    }

    /// Puts the path to a message to a port on the shelf of a rank; returns whether that is here, and messages are received in
    /// their order.
    #[inline(always)]
    pub(super) fn put_in_order(&self, to: Rank, port: PortId, path: &CriticalPath) -> bool {
        let row = self.of(to).and_then(|shelf| shelf.row(port.index()));
        if let Some(row) = row {
            row.put(path);
        }
        row.is_some()
    }

    /// Puts a path on the shelf of a rank; returns whether that is here.
    pub(super) fn put(&self, to: Rank, key: Key, path: &CriticalPath) -> bool {
        let shelf = self.of(to);
        if let Some(shelf) = shelf {
            shelf.put(key, path);
        }
        shelf.is_some()
    }

    /// Returns the shelf of a rank, where that is here.
    #[inline]
    pub(super) fn of(&self, rank: Rank) -> Option<&Shelf> {
        self.0[rank.index()].as_ref()
    }
}

impl Shelf {
    fn of_rank(trace: &RankTrace) -> Self {
        let mut channels = vec![0_u32; trace.ports() as usize];
        trace.incoming().iter().for_each(|incoming| channels[incoming.port.index()] += 1);
        // A port of several channels has receives that ask for tags.
        Self::new(channels.into_iter().map(|channels| channels == 1))
    }

    /// Makes the shelf of a rank with these ports, at which messages are received in their order, or not.
    fn new(in_order: impl Iterator<Item = bool>) -> Self {
        let row = |in_order| Row { in_order, received: AtomicUsize::new(0), sent: Mutex::default() };
        Self { rows: in_order.map(row).collect(), others: Mutex::default() }
    }

    /// Returns the row of a port where messages are received in their order.
    #[inline(always)]
    fn row(&self, port: usize) -> Option<&Row> {
        self.rows.get(port).filter(|row| row.in_order)
    }

    pub(super) fn put(&self, key: Key, path: &CriticalPath) {
        if let Key::Port(message) = key
            && let Some(row) = self.row(message.port.index())
        {
            debug_assert_eq!(message.posted, path.end(), "a path leads to the post of its message");
            return row.put(path);
        }
        let before = self.others.lock().insert(key, path.clone());
        debug_assert!(before.is_none(), "two paths have the key {key:?}");
    }

    /// Whether messages to a port are received in their order, so that it is clear which is the next one.
    #[inline(always)]
    pub(super) fn is_in_order(&self, port: usize) -> bool {
        self.row(port).is_some()
    }

    /// Takes the path to the next message to a port, where it is clear which one that is.
    #[inline(always)]
    pub(super) fn take_next<T>(&self, port: usize, take: impl FnOnce(&CriticalPath) -> T) -> Option<T> {
        self.row(port).map(|row| row.take(take))
    }

    /// Takes a path from the shelf, where there is one. O(1).
    pub(super) fn take(&self, key: Key) -> Option<CriticalPath> {
        match key {
            Key::Port(message) if self.is_in_order(message.port.index()) => {
                self.take_next(message.port.index(), CriticalPath::clone)
            }
            _ => self.others.lock().remove(&key),
        }
    }

    /// Looks at the path to a message that has not been received.
    pub(super) fn get(&self, key: Key) -> Option<CriticalPath> {
        if let Key::Port(message) = key
            && let Some(row) = self.row(message.port.index())
        {
            return row.get(message.posted);
        }
        self.others.lock().get(&key).cloned()
    }

    /// Takes in that nothing goes on because of the next message to a port; returns whether it is clear which one that is.
    #[inline(always)]
    pub(super) fn pass_over(&self, port: usize) -> bool {
        let row = self.row(port);
        if let Some(row) = row {
            row.receive(row.received.load(Ordering::Relaxed));
        }
        row.is_some()
    }
}

impl Row {
    #[inline(never)]
    fn put(&self, path: &CriticalPath) {
        let mut sent = self.sent.lock();
        // Acquire: what has been received is not looked at any more.
        let received = self.received.load(Ordering::Acquire);
        if sent.count - received == sent.places.len() {
            sent.widen(received, path);
        }
        let place = sent.place(sent.count);
        sent.places[place].clone_from(path);
        sent.count += 1;
    }

    #[inline(always)]
    fn take<T>(&self, take: impl FnOnce(&CriticalPath) -> T) -> T {
        let number = self.received.load(Ordering::Relaxed);
        let sent = self.sent.lock();
        let taken = take(&sent.places[sent.place(number)]);
        drop(sent);
        self.receive(number);
        taken
    }

    #[inline(always)]
    fn receive(&self, number: usize) {
        // Release: see `put`.
        self.received.store(number + 1, Ordering::Release);
    }

    /// Of messages that were posted at one instant, the paths are the same.
    #[cold]
    fn get(&self, posted: SimTime) -> Option<CriticalPath> {
        let sent = self.sent.lock();
        let waiting = self.received.load(Ordering::Relaxed)..sent.count;
        waiting.map(|number| &sent.places[sent.place(number)]).find(|path| path.end() == posted).cloned()
    }
}

impl Sent {
    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        number & (self.places.len() - 1)
    }

    /// Makes twice as many places.
    #[cold]
    fn widen(&mut self, received: usize, filler: &CriticalPath) {
        let places = vec![filler.clone(); (2 * self.places.len()).max(1)];
        let narrow = std::mem::replace(self, Self { count: self.count, places });
        for number in received..self.count {
            let place = self.place(number);
            self.places[place].clone_from(&narrow.places[narrow.place(number)]);
        }
    }
}

/// Cuts a path and its key into pieces for another process, the first of which begins with their length.
pub(super) fn cut(key: Key, path: &CriticalPath) -> Vec<Piece> {
    let mut bytes = vec![0; u16::SIZE];
    key.write(&mut bytes);
    path.write(&mut bytes);
    let length = (bytes.len() as u16).to_le_bytes();
    bytes[..length.len()].copy_from_slice(&length);
    let piece = |bytes: &[u8]| {
        let mut piece = Piece::default();
        piece[..bytes.len()].copy_from_slice(bytes);
        piece
    };
    bytes.chunks(Piece::default().len()).map(piece).collect()
}

/// Adds a piece to those before it; returns the path and its key where it was the last one.
///
/// # Panics
/// Where the pieces are none of a path.
pub(super) fn join(bytes: &mut Vec<u8>, piece: Piece) -> Option<(Key, CriticalPath)> {
    bytes.extend(piece);
    let mut rest = bytes.as_slice();
    let length = u16::read(&mut rest)?;
    if bytes.len() < usize::from(length) {
        return None;
    }
    let found = Key::read(&mut rest).zip(CriticalPath::read(&mut rest));
    bytes.clear();
    Some(found.expect("the pieces of a path come in their order, from a process of the same version"))
}

#[cfg(test)]
mod tests {
    use pdes_core::Bytes;

    use super::*;
    use crate::request::Requests;

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
        };
        let sent = [Lane::Port(PortId::new(3)), Lane::Collective(7)].map(|lane| Key::of(lane, &message));
        for key in [sent[0], sent[1], Key::Arrival(Requests::new(1).send())] {
            path.spend(crate::ActionKind::Compute, SimTime::from_picos(1000));
            let pieces = cut(key, &path);
            let (last, others) = pieces.split_last().unwrap();
            assert!(others.iter().all(|&piece| join(&mut bytes, piece).is_none()));
            assert_eq!(join(&mut bytes, *last), Some((key, path.clone())));
        }
    }

    /// At port 0 messages are received in their order, at port 1 they are not.
    fn shelf() -> Shelf {
        Shelf::new([true, false].into_iter())
    }

    fn path_to(picos: u64) -> CriticalPath {
        let mut path = CriticalPath::new(Rank::new(0));
        path.spend(crate::ActionKind::Compute, SimTime::from_picos(picos));
        path
    }

    fn to_port(port: u32, picos: u64, round: u32) -> Key {
        Key::Port(ToPort { port: PortId::new(port), posted: SimTime::from_picos(picos), round })
    }

    #[test]
    fn shelves_keep_what_is_put_on_them_here() {
        let shelves = Shelves(vec![None, Some(shelf())]);
        for key in [to_port(0, 7, 5), to_port(1, 7, 5), Key::Arrival(Requests::new(1).send())] {
            assert!(!shelves.put(Rank::new(0), key, &path_to(7)), "the rank is elsewhere");
            assert!(shelves.put(Rank::new(1), key, &path_to(7)));
            let shelf = shelves.of(Rank::new(1)).unwrap();
            assert_eq!(shelf.get(key), Some(path_to(7)));
            assert_eq!(shelf.take(key), Some(path_to(7)));
            assert_eq!(shelf.get(key), None);
        }
    }

    #[test]
    fn messages_are_received_in_any_order_where_receives_ask_for_tags() {
        let shelves = Shelves(vec![Some(shelf())]);
        let shelf = shelves.of(Rank::new(0)).unwrap();
        for round in [4, 5] {
            assert!(shelves.put(Rank::new(0), to_port(1, 7, round), &path_to(7)));
        }
        assert!(!shelf.pass_over(1), "it is not clear which one");
        for round in [5, 4] {
            assert_eq!(shelf.take(to_port(1, 7, round)), Some(path_to(7)));
            assert_eq!(shelf.take(to_port(1, 7, round)), None);
        }
    }

    proptest::proptest! {
        /// However many wait, and whether somebody goes on from them or not.
        #[test]
        fn messages_of_a_port_come_in_their_order(steps in proptest::collection::vec(0_u8..4, 1..200)) {
            let shelf = shelf();
            let (mut sent, mut received) = (0, 0);
            for step in steps {
                if step < 2 || received == sent {
                    sent += 1;
                    shelf.put(to_port(0, sent, 1), &path_to(sent));
                    continue;
                }
                for waiting in received + 1..=sent {
                    proptest::prop_assert_eq!(shelf.get(to_port(0, waiting, 1)), Some(path_to(waiting)));
                }
                received += 1;
                if step == 2 {
                    proptest::prop_assert_eq!(shelf.take(to_port(0, received, 1)), Some(path_to(received)));
                } else {
                    proptest::prop_assert!(shelf.pass_over(0));
                }
            }
        }
    }
}
