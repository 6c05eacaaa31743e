//! Critical paths that have been sent along with messages, until the messages are received.
//!
//! They lie beside the tokens, which are as large with them as without: a token between ranks of one process of the operating
//! system finds its path on the receiver's shelf; to another process the path goes in pieces, before the token.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pdes_core::{Rank, SimTime, Wire};
use rustc_hash::FxHashMap;
use trace_mmap::{CommId, PortId};

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
pub(super) struct Shelves(Vec<Option<Mutex<Shelf>>>);

/// What is under way to a rank.
#[derive(Debug, Default)]
struct Shelf {
    /// By port, with their rounds; they were posted when the paths end. Messages of a port are received in their order, but
    /// where receives ask for tags.
    ports: Vec<VecDeque<(u32, CriticalPath)>>,
    others: FxHashMap<Key, CriticalPath>,
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

impl ToPort {
    #[inline]
    fn is(self, (round, path): &(u32, CriticalPath)) -> bool {
        path.end() == self.posted && *round == self.round
    }
}

impl Shelves {
    /// Makes the shelves of these ranks, of so many.
    pub(super) fn new(of: impl Iterator<Item = Rank>, ranks: u32) -> Self {
        let mut shelves: Vec<_> = (0..ranks).map(|_| None).collect();
        of.for_each(|rank| shelves[rank.index()] = Some(Mutex::default()));
        Self(shelves)
    }

    /// Puts the path to a message to a port on the shelf of a rank; returns whether that is here.
    #[inline(always)]
    pub(super) fn put_to_port(&self, to: Rank, port: PortId, round: u32, path: &CriticalPath) -> bool {
        let Some(mut shelf) = self.of(to) else { return false };
        shelf.port(port).push_back((round, path.clone()));
        true
    }

    /// Puts a path on the shelf of a rank; returns whether that is here.
    pub(super) fn put(&self, to: Rank, key: Key, path: &CriticalPath) -> bool {
        if let Key::Port(ToPort { port, posted, round }) = key {
            debug_assert_eq!(posted, path.end(), "a path leads to the post of its message");
            return self.put_to_port(to, port, round, path);
        }
        let Some(mut shelf) = self.of(to) else { return false };
        let before = shelf.others.insert(key, path.clone());
        debug_assert!(before.is_none(), "two paths for rank {to} have the key {key:?}");
        true
    }

    /// Takes a path from the shelf of a rank that is here. O(1) unless the message is not the first one of its port.
    #[inline]
    pub(super) fn take(&self, of: Rank, key: Key) -> Option<CriticalPath> {
        let mut shelf = self.of(of)?;
        match key {
            Key::Port(message) => shelf.take(message),
            Key::Message { .. } | Key::Arrival(_) => shelf.others.remove(&key),
        }
    }

    /// Looks at a path on the shelf of a rank that is here.
    pub(super) fn get(&self, of: Rank, key: Key) -> Option<CriticalPath> {
        let mut shelf = self.of(of)?;
        match key {
            Key::Port(message) => {
                let place = shelf.place(message)?;
                Some(shelf.port(message.port)[place].1.clone())
            }
            Key::Message { .. } | Key::Arrival(_) => shelf.others.get(&key).cloned(),
        }
    }

    /// Takes paths from the shelf of a rank that is here, for nobody.
    pub(super) fn clear(&self, of: Rank, messages: impl Iterator<Item = ToPort>) {
        let Some(mut shelf) = self.of(of) else { return };
        messages.for_each(|message| {
            let path = shelf.take(message);
            debug_assert!(path.is_some(), "a path comes with each message");
        });
    }

    #[inline]
    fn of(&self, rank: Rank) -> Option<MutexGuard<'_, Shelf>> {
        Some(self.0[rank.index()].as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shelf {
    #[inline]
    fn port(&mut self, port: PortId) -> &mut VecDeque<(u32, CriticalPath)> {
        if self.ports.len() <= port.index() {
            self.ports.resize_with(port.index() + 1, VecDeque::new);
        }
        &mut self.ports[port.index()]
    }

    #[inline]
    fn take(&mut self, message: ToPort) -> Option<CriticalPath> {
        let waiting = self.port(message.port);
        let taken = match waiting.front() {
            Some(first) if message.is(first) => waiting.pop_front(),
            _ => {
                let place = self.place(message)?;
                self.port(message.port).remove(place)
            }
        };
        taken.map(|(_, path)| path)
    }

    #[cold]
    fn place(&mut self, message: ToPort) -> Option<usize> {
        self.port(message.port).iter().position(|waiting| message.is(waiting))
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

    #[test]
    fn shelves_keep_what_is_put_on_them_here() {
        let shelves = Shelves::new([Rank::new(1)].into_iter(), 2);
        let path = CriticalPath::new(Rank::new(0));
        let to_port = |round| Key::Port(ToPort { port: PortId::new(2), posted: SimTime::ZERO, round });
        for key in [to_port(5), Key::Arrival(Requests::new(1).send())] {
            assert!(!shelves.put(Rank::new(0), key, &path), "the rank is elsewhere");
            assert!(shelves.put(Rank::new(1), to_port(4), &path));
            assert!(shelves.put(Rank::new(1), key, &path));
            assert_eq!(shelves.get(Rank::new(1), key).as_ref(), Some(&path));
            assert_eq!(shelves.take(Rank::new(1), key).as_ref(), Some(&path));
            assert_eq!(shelves.take(Rank::new(1), key), None);
            assert_eq!(shelves.take(Rank::new(1), to_port(4)).as_ref(), Some(&path), "it was passed over");
        }
    }
}
