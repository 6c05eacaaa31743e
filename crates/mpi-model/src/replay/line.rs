//! Path channel: a single-producer single-consumer queue of the critical paths of messages that are received in the order in
//! which they were sent.
//!
//! Most paths are never used. So sending a path is little more than storing it, and skipping one than counting it: neither takes
//! a lock or writes a counter that the other side writes. The shared sums of paths are sent beside them, under a lock, when they
//! differ from those of the message before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pdes_core::SimTime;

use crate::critical_path::{CriticalPath, Past, Recent};

/// State shared by the two endpoints of a channel; there must be one of each. Messages are numbered from 0 in the order of
/// sending.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Number of messages sent. Only the sender writes it.
    sent: AtomicU64,
    /// Number of messages received. Only the receiver writes it.
    received: AtomicU64,
    middle: Mutex<Middle>,
}

/// Rings and shared sums that the sender has begun to use, and the receiver not yet.
#[derive(Debug, Default)]
struct Middle {
    rings: VecDeque<Arc<Ring>>,
    pasts: VecDeque<SentPast>,
}

/// Ring of slots: the slot of a message is its number modulo the number of slots, a power of two. When no slot is free the
/// sender continues with another ring; both endpoints begin with an empty one.
#[derive(Debug, Default)]
struct Ring {
    places: Box<[Place]>,
    /// Number of the first message in a later ring.
    end: AtomicU64,
}

/// Inline sums of a path, and the number of its shared sums in the channel. The counters of the channel and the tokens of the
/// messages order all accesses, so that the words are accessed with relaxed atomics.
#[derive(Debug, Default)]
struct Place {
    words: [AtomicU64; Recent::WORDS],
    past: AtomicU64,
}

/// Shared sums that are first used by `message`.
#[derive(Debug)]
struct SentPast {
    number: u64,
    message: u64,
    past: Arc<Past>,
}

/// Sending endpoint of a channel.
#[derive(Debug)]
pub(super) struct Sender<'t> {
    line: &'t Line,
    ring: Arc<Ring>,
    /// Number of the first message in the ring.
    first: u64,
    sent: u64,
    /// Number of the first message for which no slot is known to be free.
    limit: u64,
    past: Option<Arc<Past>>,
    /// Number of shared sums sent.
    pasts: u64,
}

/// Receiving endpoint of a channel.
#[derive(Debug)]
pub(super) struct Receiver<'t> {
    line: &'t Line,
    ring: Arc<Ring>,
    received: u64,
    past: Option<Arc<Past>>,
    /// Number of these shared sums in the channel.
    pasts: u64,
}

/// Number of slots of the first ring of a channel; each further one is twice as large, up to the maximum. Where many messages
/// queue up once, their rings are freed when they have been received.
const PLACES: usize = 4;
const MOST_PLACES: usize = 64;

impl Middle {
    /// Frees shared sums that no message from number `received` on can use: a later entry begins at or before it.
    fn forget_pasts(&mut self, received: u64) {
        while self.pasts.get(1).is_some_and(|second| second.message <= received) {
            self.pasts.pop_front();
        }
    }
}

impl Ring {
    /// Returns whether a message is in a later ring.
    #[inline(always)]
    fn is_before(&self, message: u64) -> bool {
        // Acquire: pairs with the store of `end` in `Sender::add_ring`; the sender has published the later ring before the message.
        message >= self.end.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn place(&self, message: u64) -> &Place {
        &self.places[message as usize & (self.places.len() - 1)]
    }
}

impl Place {
    #[inline(always)]
    fn write(&self, recent: &Recent, past: u64) {
        recent.write_words(|word, value| self.words[word].store(value, Ordering::Relaxed));
        self.past.store(past, Ordering::Relaxed);
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    fn past(&self) -> u64 {
        self.past.load(Ordering::Relaxed)
    }
}

impl<'t> Sender<'t> {
    pub(super) fn new(line: &'t Line) -> Self {
        Self { line, ring: Arc::default(), first: 0, sent: 0, limit: 0, past: None, pasts: 0 }
    }

    /// Sends the path to the next message.
    #[inline(always)]
    pub(super) fn put(&mut self, path: &CriticalPath) {
        if !self.past.as_ref().is_some_and(|past| Arc::ptr_eq(past, path.past())) {
            self.put_past(path.past());
        }
        if self.sent == self.limit {
            self.find_places();
        }
        self.ring.place(self.sent).write(path.recent(), self.pasts);
        self.sent += 1;
        // Release: pairs with `Receiver::peek`. Other reads are ordered by the token of the message.
        self.line.sent.store(self.sent, Ordering::Release);
    }

    #[cold]
    fn put_past(&mut self, past: &Arc<Past>) {
        self.pasts += 1;
        self.past = Some(Arc::clone(past));
        let mut middle = self.line.middle.lock();
        middle.forget_pasts(self.line.received.load(Ordering::Relaxed));
        middle.pasts.push_back(SentPast { number: self.pasts, message: self.sent, past: Arc::clone(past) });
    }

    /// Updates `limit` from the progress of the receiver; continues with another ring when no slot is free.
    #[cold]
    fn find_places(&mut self) {
        // Acquire: pairs with `Receiver::skip`; slots of received messages are not read any more.
        let received = self.line.received.load(Ordering::Acquire);
        let places = self.ring.places.len();
        self.limit = received.max(self.first) + places as u64;
        if self.sent == self.limit {
            self.go_on_with((2 * places).clamp(PLACES, MOST_PLACES));
        }
    }

    fn go_on_with(&mut self, places: usize) {
        let ring =
            Ring { places: (0..places).map(|_| Place::default()).collect(), end: AtomicU64::new(u64::MAX) };
        let ring = Arc::new(ring);
        self.line.middle.lock().rings.push_back(Arc::clone(&ring));
        std::mem::replace(&mut self.ring, ring).end.store(self.sent, Ordering::Release);
        self.first = self.sent;
        self.limit = self.sent + places as u64;
    }
}

impl<'t> Receiver<'t> {
    pub(super) fn new(line: &'t Line) -> Self {
        Self { line, ring: Arc::default(), received: 0, past: None, pasts: 0 }
    }

    /// Receives the path to the next message, whose token has arrived, into `path`.
    #[inline(always)]
    pub(super) fn take(&mut self, path: &mut CriticalPath) {
        self.look_at_next();
        let place = self.ring.place(self.received);
        path.take_over(|word| place.word(word), self.past());
        self.pass_over();
    }

    /// Receives and returns the path to the next message, whose token has arrived.
    pub(super) fn take_new(&mut self) -> CriticalPath {
        self.look_at_next();
        let place = self.ring.place(self.received);
        let path = CriticalPath::from_words(|word| place.word(word), self.past());
        self.pass_over();
        path
    }

    /// Skips the path to the next message.
    #[inline(always)]
    pub(super) fn pass_over(&mut self) {
        self.received += 1;
        // Release: pairs with `Sender::find_free_slots`.
        self.line.received.store(self.received, Ordering::Release);
        if self.received.is_multiple_of(MOST_PLACES as u64) {
            self.go_on();
        }
    }

    /// Advances to the ring of the next message; frees older rings and shared sums.
    #[cold]
    fn go_on(&mut self) {
        let mut middle = self.line.middle.lock();
        middle.forget_pasts(self.received);
        while self.ring.is_before(self.received) {
            self.ring = middle.rings.pop_front().expect("a ring ends where the next one begins");
        }
    }

    /// Advances to the ring and the shared sums of the next message.
    #[inline(always)]
    fn look_at_next(&mut self) {
        if self.ring.is_before(self.received) {
            self.go_on();
        }
        let past = self.ring.place(self.received).past();
        if past != self.pasts {
            self.catch_up(past);
        }
    }

    #[cold]
    fn catch_up(&mut self, wanted: u64) {
        let mut middle = self.line.middle.lock();
        while self.pasts != wanted {
            let SentPast { number, past, .. } =
                middle.pasts.pop_front().expect("shared sums are sent before their paths");
            (self.pasts, self.past) = (number, Some(past));
        }
    }

    #[inline(always)]
    fn past(&self) -> &Arc<Past> {
        self.past.as_ref().expect("shared sums are sent before their paths")
    }

    /// Returns a copy of the path to a message that was posted at this instant, if there is one; several have equal paths.
    #[cold]
    pub(super) fn get(&self, posted: SimTime) -> Option<CriticalPath> {
        let middle = self.line.middle.lock();
        // Acquire: pairs with `Sender::send`; the slots of all messages up to `sent` are written.
        for message in self.received..self.line.sent.load(Ordering::Acquire) {
            let mut rings = std::iter::once(&self.ring).chain(&middle.rings);
            let place = rings.find(|ring| !ring.is_before(message))?.place(message);
            let own = self.past.as_ref().filter(|_| place.past() == self.pasts);
            let sent = || middle.pasts.iter().find(|sent| sent.number == place.past()).map(|sent| &sent.past);
            let path = CriticalPath::from_words(|word| place.word(word), own.or_else(sent)?);
            if path.end() == posted {
                return Some(path);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use pdes_core::{Rank, SimTime};
    use proptest::prelude::*;

    use super::*;
    use crate::ActionKind;

    proptest! {
        /// Any number of queued paths, received or skipped, with any changes of the shared sums.
        #[test]
        fn paths_come_in_their_order(
            steps in prop::collection::vec((0_u8..6, prop::sample::select(ActionKind::ALL.to_vec())), 1..300),
        ) {
            let line = Line::default();
            let (mut sender, mut receiver) = (Sender::new(&line), Receiver::new(&line));
            let mut path = CriticalPath::new(Rank::new(3));
            let mut under_way = VecDeque::new();
            for (step, kind) in steps {
                let Some(first) = under_way.front().filter(|_| step >= 3) else {
                    path.spend(kind, path.end() + pdes_core::SimDuration::from_picos(1));
                    sender.put(&path);
                    under_way.push_back(path.clone());
                    continue;
                };
                for waiting in &under_way {
                    prop_assert_eq!(receiver.get(waiting.end()), Some(waiting.clone()));
                }
                match step {
                    3 => receiver.pass_over(),
                    4 => prop_assert_eq!(&receiver.take_new(), first),
                    _ => {
                        let mut other = CriticalPath::new(Rank::new(4));
                        receiver.take(&mut other);
                        prop_assert_eq!(&other, first);
                    }
                }
                under_way.pop_front();
            }
            prop_assert_eq!(receiver.get(SimTime::from_picos(u64::MAX)), None);
        }
    }

    #[test]
    fn a_line_leads_from_one_thread_to_another() {
        let line = Line::default();
        let (told, hear) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut sender = Sender::new(&line);
            scope.spawn(move || {
                let mut path = CriticalPath::new(Rank::new(3));
                for picos in 1..=10_000 {
                    let kind = ActionKind::ALL[picos as usize / 7 % ActionKind::ALL.len()];
                    path.spend(kind, SimTime::from_picos(picos));
                    sender.put(&path);
                    told.send(()).unwrap();
                }
            });
            let mut receiver = Receiver::new(&line);
            for picos in 1..=10_000 {
                hear.recv().unwrap();
                let path = receiver.take_new();
                assert_eq!(path.calls().map(|(_, time)| time.as_picos()).sum::<u64>(), picos);
                assert_eq!(path.end(), SimTime::from_picos(picos));
            }
        });
    }
}
