//! The critical paths to the messages of a port that are received in the order in which they were sent.
//!
//! Nobody goes on from most messages. So sending a path is little more than writing it down, and passing over one than counting
//! it: neither takes a lock or changes a count that others change. The past, which paths share, goes beside them, where it is
//! another one than with the message before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pdes_core::SimTime;

use crate::critical_path::{CriticalPath, Past, Recent};

/// What the two ends of a line share, of which each must be one only. Messages are numbered from 0 as they are sent.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// How many have been sent. Only the sender changes it.
    sent: AtomicU64,
    /// How many have been received. Only the receiver changes it.
    received: AtomicU64,
    middle: Mutex<Middle>,
}

/// What the sender has begun with, and the receiver not yet.
#[derive(Debug, Default)]
struct Middle {
    rings: VecDeque<Arc<Ring>>,
    pasts: VecDeque<SentPast>,
}

/// Places of paths that wait: that of a message is its number modulo their number, a power of two. Where none is free the
/// sender goes on with another ring; both ends begin with one of no places.
#[derive(Debug, Default)]
struct Ring {
    places: Box<[Place]>,
    /// The first message that is in a later ring.
    end: AtomicU64,
}

/// What a path keeps itself, and the number of its past on the line. Who may look at it is settled by the two counts and by the
/// tokens of the messages, so that its parts need no order.
#[derive(Debug, Default)]
struct Place {
    words: [AtomicU64; Recent::WORDS],
    past: AtomicU64,
}

/// A past that begins with a message.
#[derive(Debug)]
struct SentPast {
    number: u64,
    message: u64,
    past: Arc<Past>,
}

/// The end of a line at which paths are sent.
#[derive(Debug)]
pub(super) struct Sender<'t> {
    line: &'t Line,
    ring: Arc<Ring>,
    /// The first message of the ring.
    first: u64,
    sent: u64,
    /// The first message for which no place is known to be free.
    limit: u64,
    past: Option<Arc<Past>>,
    /// How many pasts have been sent.
    pasts: u64,
}

/// The end of a line at which they are received.
#[derive(Debug)]
pub(super) struct Receiver<'t> {
    line: &'t Line,
    ring: Arc<Ring>,
    received: u64,
    past: Option<Arc<Past>>,
    /// The number of that past.
    pasts: u64,
}

/// Places of the first ring of a line; each other one has twice as many, up to these. Where many messages wait once, their rings
/// are given up when they have been received.
const PLACES: usize = 4;
const MOST_PLACES: usize = 64;

impl Middle {
    /// Gives up pasts that begin before others which begin with one of the messages that have been received, or the next.
    fn forget_pasts(&mut self, received: u64) {
        while self.pasts.get(1).is_some_and(|second| second.message <= received) {
            self.pasts.pop_front();
        }
    }
}

impl Ring {
    /// Whether a message is in a later ring.
    #[inline(always)]
    fn is_before(&self, message: u64) -> bool {
        // Acquire: the places of a later ring are there; the sender has made it before it sent the message.
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

    /// Sends the path to a message.
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
        // Release: see `Receiver::get`. Otherwise the token of the message tells of it.
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

    /// Looks which places are free by now; goes on with another ring where none is.
    #[cold]
    fn find_places(&mut self) {
        // Acquire: what has been received is not looked at any more.
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

    /// Goes over to the path to the next message, whose token has come.
    #[inline(always)]
    pub(super) fn take(&mut self, path: &mut CriticalPath) {
        self.look_at_next();
        let place = self.ring.place(self.received);
        path.take_over(|word| place.word(word), self.past());
        self.pass_over();
    }

    /// Returns the path to the next message, whose token has come.
    pub(super) fn take_new(&mut self) -> CriticalPath {
        self.look_at_next();
        let place = self.ring.place(self.received);
        let path = CriticalPath::from_words(|word| place.word(word), self.past());
        self.pass_over();
        path
    }

    /// Takes in that nobody goes on from the next message.
    #[inline(always)]
    pub(super) fn pass_over(&mut self) {
        self.received += 1;
        // Release: see `Sender::find_places`.
        self.line.received.store(self.received, Ordering::Release);
        if self.received.is_multiple_of(MOST_PLACES as u64) {
            self.go_on();
        }
    }

    /// Goes on to the ring of the next message that will come; gives up the rings and the pasts of those before.
    #[cold]
    fn go_on(&mut self) {
        let mut middle = self.line.middle.lock();
        middle.forget_pasts(self.received);
        while self.ring.is_before(self.received) {
            self.ring = middle.rings.pop_front().expect("a ring ends where the next one begins");
        }
    }

    /// Goes on to the ring and the past of the next message.
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
                middle.pasts.pop_front().expect("a past comes before its paths");
            (self.pasts, self.past) = (number, Some(past));
        }
    }

    #[inline(always)]
    fn past(&self) -> &Arc<Past> {
        self.past.as_ref().expect("a past comes before its paths")
    }

    /// Looks at the path to a message that was posted at this instant. Those of several are the same.
    #[cold]
    pub(super) fn get(&self, posted: SimTime) -> Option<CriticalPath> {
        let middle = self.line.middle.lock();
        // Acquire: what has been sent is there.
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
        /// However many wait, whether somebody goes on from them or not, and however often the past changes.
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
