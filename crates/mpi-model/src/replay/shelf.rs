//! Critical paths that have been sent along with messages, until the messages are received.
//!
//! They lie beside the tokens, which are as large with them as without: a token between ranks of one process of the operating
//! system finds its path on the receiver's shelf; to another process the path goes in pieces, before the token.

use std::sync::{Arc, Mutex, PoisonError};

use pdes_core::{Rank, SimTime, Wire};
use rustc_hash::FxHashMap;
use trace_mmap::CommId;

use crate::critical_path::CriticalPath;
use crate::request::RequestId;
use crate::token::{Message, Piece};

/// Names what a path came with, among all that is under way to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A message: a rank posts no two of one round at one instant, and tells no member the same twice.
    Message { from: Rank, round: u32, posted: SimTime, tag: u32, communicator: CommId },
    /// The arrival of what a request of the rank has sent.
    Arrival(RequestId),
}

/// The shelves of the ranks of a process of the operating system; `None` for those of others.
#[derive(Debug)]
pub(super) struct Shelves(Vec<Option<Mutex<Shelf>>>);

type Shelf = FxHashMap<Key, Arc<CriticalPath>>;

impl Key {
    pub(super) fn of(from: Rank, message: &Message) -> Self {
        let Message { posted, tag, communicator, round, .. } = *message;
        Self::Message { from, round, posted, tag, communicator }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
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
            1 => RequestId::from_number(Wire::read(bytes)?).map(Self::Arrival),
            _ => None,
        }
    }
}

impl Shelves {
    /// Makes the shelves of these ranks, of so many.
    pub(super) fn new(of: impl Iterator<Item = Rank>, ranks: u32) -> Self {
        let mut shelves: Vec<_> = (0..ranks).map(|_| None).collect();
        of.for_each(|rank| shelves[rank.index()] = Some(Mutex::default()));
        Self(shelves)
    }

    /// Puts a path on the shelf of a rank; returns whether that is here.
    pub(super) fn put(&self, to: Rank, key: Key, path: &Arc<CriticalPath>) -> bool {
        let Some(shelf) = &self.0[to.index()] else { return false };
        let before = shelf.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(path));
        debug_assert!(before.is_none(), "two paths for rank {to} have the key {key:?}");
        true
    }

    /// Takes a path from the shelf of a rank that is here.
    pub(super) fn take(&self, of: Rank, key: Key) -> Option<Arc<CriticalPath>> {
        self.0[of.index()].as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).remove(&key)
    }

    /// Looks at a path on the shelf of a rank that is here.
    pub(super) fn get(&self, of: Rank, key: Key) -> Option<Arc<CriticalPath>> {
        self.0[of.index()].as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
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
        for key in [Key::of(Rank::new(7), &message), Key::Arrival(Requests::new(1).send())] {
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
        let path = Arc::new(CriticalPath::new(Rank::new(0)));
        let key = Key::Arrival(Requests::new(1).send());
        assert!(!shelves.put(Rank::new(0), key, &path), "the rank is elsewhere");
        assert!(shelves.put(Rank::new(1), key, &path));
        assert_eq!(shelves.get(Rank::new(1), key), Some(Arc::clone(&path)));
        assert_eq!(shelves.take(Rank::new(1), key), Some(path));
        assert_eq!(shelves.take(Rank::new(1), key), None);
    }
}
