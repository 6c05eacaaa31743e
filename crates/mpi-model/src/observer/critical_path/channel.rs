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

use crate::critical_path::{CriticalPath, InlineSums, SharedSums};

/// State shared by the two endpoints of a channel; there must be one of each. Messages are numbered from 0 in the order of
/// sending.
#[derive(Debug, Default)]
pub(super) struct PathChannel {
    /// Number of messages sent. Only the sender writes it.
    sent: AtomicU64,
    /// Number of messages received. Only the receiver writes it.
    received: AtomicU64,
    handover: Mutex<Handover>,
}

/// Rings and shared sums that the sender has begun to use, and the receiver not yet.
#[derive(Debug, Default)]
struct Handover {
    rings: VecDeque<Arc<Ring>>,
    sums: VecDeque<SentSums>,
    /// Number of shared sums sent.
    sums_sent: u64,
}

/// Ring of slots: the slot of a message is its number modulo the number of slots, a power of two. When no slot is free the
/// sender continues with another ring; both endpoints begin with an empty one.
#[derive(Debug, Default)]
struct Ring {
    slots: Box<[Slot]>,
    /// Number of the first message in a later ring.
    end: AtomicU64,
}

/// Inline sums of a path, and the number of its shared sums in the channel. The counters of the channel and the tokens of the
/// messages order all accesses, so that the words are accessed with relaxed atomics.
#[derive(Debug, Default)]
struct Slot {
    words: [AtomicU64; InlineSums::WORDS],
    sums: AtomicU64,
}

/// Shared sums that are first used by `message`.
#[derive(Debug)]
struct SentSums {
    number: u64,
    message: u64,
    sums: Arc<SharedSums>,
}

/// Sending endpoint of a channel.
#[derive(Debug)]
pub(super) struct Sender<'t> {
    channel: &'t PathChannel,
    ring: Arc<Ring>,
    /// Number of the first message in the ring.
    first: u64,
    sent: u64,
    /// Number of the first message for which no slot is known to be free.
    limit: u64,
    sums: Option<Arc<SharedSums>>,
    /// Number of these shared sums in the channel.
    sums_number: u64,
}

/// Receiving endpoint of a channel.
#[derive(Debug)]
pub(super) struct Receiver<'t> {
    channel: &'t PathChannel,
    ring: Arc<Ring>,
    received: u64,
    sums: Option<Arc<SharedSums>>,
    /// Number of these shared sums in the channel.
    sums_number: u64,
}

/// Number of slots of the first ring of a channel; each further one is twice as large, up to the maximum. Where many messages
/// queue up once, their rings are freed when they have been received.
const FIRST_RING_SLOTS: usize = 4;
const MAX_RING_SLOTS: usize = 64;

impl Handover {
    /// Frees shared sums that no message from number `received` on can use: a later entry begins at or before it.
    fn free_sums(&mut self, received: u64) {
        while self.sums.get(1).is_some_and(|second| second.message <= received) {
            self.sums.pop_front();
        }
    }
}

impl Ring {
    /// Returns whether a message is in a later ring.
    #[inline(always)]
    fn ends_before(&self, message: u64) -> bool {
        // Acquire: pairs with the store of `end` in `Sender::add_ring`; the sender has published the later ring before the message.
        message >= self.end.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn slot(&self, message: u64) -> &Slot {
        &self.slots[message as usize & (self.slots.len() - 1)]
    }
}

impl Slot {
    #[inline(always)]
    fn write(&self, recent: &InlineSums, past: u64) {
        recent.write_words(|word, value| self.words[word].store(value, Ordering::Relaxed));
        self.sums.store(past, Ordering::Relaxed);
    }

    #[inline(always)]
    fn word(&self, word: usize) -> u64 {
        self.words[word].load(Ordering::Relaxed)
    }

    fn sums(&self) -> u64 {
        self.sums.load(Ordering::Relaxed)
    }
}

impl PathChannel {
    /// Fills the channel, which has no sender yet, with the paths under way at a checkpoint.
    pub(super) fn restore<'p>(&self, paths: impl Iterator<Item = &'p CriticalPath>) {
        let mut sender = Sender::new(self);
        paths.for_each(|path| sender.send(path));
        sender.ring.end.store(sender.sent, Ordering::Release);
    }
}

impl<'t> Sender<'t> {
    pub(super) fn new(channel: &'t PathChannel) -> Self {
        // Relaxed: paths were sent before only by a checkpoint, which was restored before the run.
        let sent = channel.sent.load(Ordering::Relaxed);
        Self { channel, ring: Arc::default(), first: sent, sent, limit: sent, sums: None, sums_number: 0 }
    }

    /// Sends the path to the next message.
    #[inline(always)]
    pub(super) fn send(&mut self, path: &CriticalPath) {
        if !self.sums.as_ref().is_some_and(|past| Arc::ptr_eq(past, path.shared_sums())) {
            self.send_sums(path.shared_sums());
        }
        if self.sent == self.limit {
            self.find_free_slots();
        }
        self.ring.slot(self.sent).write(path.inline_sums(), self.sums_number);
        self.sent += 1;
        // Release: pairs with `Receiver::peek`. Other reads are ordered by the token of the message.
        self.channel.sent.store(self.sent, Ordering::Release);
    }

    #[cold]
    fn send_sums(&mut self, past: &Arc<SharedSums>) {
        self.sums = Some(Arc::clone(past));
        let mut middle = self.channel.handover.lock();
        middle.free_sums(self.channel.received.load(Ordering::Relaxed));
        middle.sums_sent += 1;
        self.sums_number = middle.sums_sent;
        let (number, message) = (self.sums_number, self.sent);
        middle.sums.push_back(SentSums { number, message, sums: Arc::clone(past) });
    }

    /// Updates `limit` from the progress of the receiver; continues with another ring when no slot is free.
    #[cold]
    fn find_free_slots(&mut self) {
        // Acquire: pairs with `Receiver::skip`; slots of received messages are not read any more.
        let received = self.channel.received.load(Ordering::Acquire);
        let places = self.ring.slots.len();
        self.limit = received.max(self.first) + places as u64;
        if self.sent == self.limit {
            self.add_ring((2 * places).clamp(FIRST_RING_SLOTS, MAX_RING_SLOTS));
        }
    }

    fn add_ring(&mut self, places: usize) {
        let ring =
            Ring { slots: (0..places).map(|_| Slot::default()).collect(), end: AtomicU64::new(u64::MAX) };
        let ring = Arc::new(ring);
        self.channel.handover.lock().rings.push_back(Arc::clone(&ring));
        std::mem::replace(&mut self.ring, ring).end.store(self.sent, Ordering::Release);
        self.first = self.sent;
        self.limit = self.sent + places as u64;
    }
}

impl<'t> Receiver<'t> {
    pub(super) fn new(channel: &'t PathChannel) -> Self {
        Self { channel, ring: Arc::default(), received: 0, sums: None, sums_number: 0 }
    }

    /// Receives the path to the next message, whose token has arrived, into `path`.
    #[inline(always)]
    pub(super) fn receive(&mut self, path: &mut CriticalPath) {
        self.prepare_next();
        let place = self.ring.slot(self.received);
        path.assign_words(|word| place.word(word), self.current_sums());
        self.skip();
    }

    /// Receives and returns the path to the next message, whose token has arrived.
    pub(super) fn receive_new(&mut self) -> CriticalPath {
        self.prepare_next();
        let place = self.ring.slot(self.received);
        let path = CriticalPath::from_words(|word| place.word(word), self.current_sums());
        self.skip();
        path
    }

    /// Skips the path to the next message.
    #[inline(always)]
    pub(super) fn skip(&mut self) {
        self.received += 1;
        // Release: pairs with `Sender::find_free_slots`.
        self.channel.received.store(self.received, Ordering::Release);
        if self.received.is_multiple_of(MAX_RING_SLOTS as u64) {
            self.advance_ring();
        }
    }

    /// Advances to the ring of the next message; frees older rings and shared sums.
    #[cold]
    fn advance_ring(&mut self) {
        let mut middle = self.channel.handover.lock();
        middle.free_sums(self.received);
        // After the paths of a checkpoint there is no ring before the next message.
        while self.ring.ends_before(self.received)
            && let Some(next) = middle.rings.pop_front()
        {
            self.ring = next;
        }
    }

    /// Advances to the ring and the shared sums of the next message.
    #[inline(always)]
    fn prepare_next(&mut self) {
        if self.ring.ends_before(self.received) {
            self.advance_ring();
        }
        let past = self.ring.slot(self.received).sums();
        if past != self.sums_number {
            self.advance_sums(past);
        }
    }

    #[cold]
    fn advance_sums(&mut self, wanted: u64) {
        let mut middle = self.channel.handover.lock();
        while self.sums_number != wanted {
            let SentSums { number, sums, .. } =
                middle.sums.pop_front().expect("shared sums are sent before their paths");
            (self.sums_number, self.sums) = (number, Some(sums));
        }
    }

    #[inline(always)]
    fn current_sums(&self) -> &Arc<SharedSums> {
        self.sums.as_ref().expect("shared sums are sent before their paths")
    }

    /// Returns a copy of the path to a message that was posted at this instant, if there is one; several have equal paths.
    #[cold]
    pub(super) fn peek(&self, posted: SimTime) -> Option<CriticalPath> {
        self.find_map(|path| (path.end() == posted).then_some(path))
    }

    /// Returns copies of the paths to all messages under way, in order.
    pub(super) fn paths(&self) -> Vec<CriticalPath> {
        let mut paths = Vec::new();
        self.find_map(|path| -> Option<()> {
            paths.push(path);
            None
        });
        paths
    }

    /// Returns the first result of a function of the paths to messages under way.
    fn find_map<T>(&self, mut find: impl FnMut(CriticalPath) -> Option<T>) -> Option<T> {
        let middle = self.channel.handover.lock();
        // Acquire: pairs with `Sender::send`; the slots of all messages up to `sent` are written.
        for message in self.received..self.channel.sent.load(Ordering::Acquire) {
            let mut rings = std::iter::once(&self.ring).chain(&middle.rings);
            let place = rings.find(|ring| !ring.ends_before(message))?.slot(message);
            let own = self.sums.as_ref().filter(|_| place.sums() == self.sums_number);
            let sent = || middle.sums.iter().find(|sent| sent.number == place.sums()).map(|sent| &sent.sums);
            let path = CriticalPath::from_words(|word| place.word(word), own.or_else(sent)?);
            if let Some(found) = find(path) {
                return Some(found);
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
        /// Any number of queued paths, received or skipped, with any changes of the shared sums, also across a checkpoint.
        #[test]
        fn paths_come_in_their_order(
            before_checkpoint in 0_usize..300,
            steps in prop::collection::vec((0_u8..6, prop::sample::select(ActionKind::ALL.to_vec())), 1..300),
        ) {
            let (channel, restored) = (PathChannel::default(), PathChannel::default());
            let (mut sender, mut receiver) = (Sender::new(&channel), Receiver::new(&channel));
            let mut path = CriticalPath::new(Rank::new(3));
            let mut under_way = VecDeque::new();
            for (done, (step, kind)) in steps.into_iter().enumerate() {
                if done == before_checkpoint {
                    let paths = receiver.paths();
                    prop_assert!(under_way == paths);
                    restored.restore(paths.iter());
                    (sender, receiver) = (Sender::new(&restored), Receiver::new(&restored));
                }
                let Some(first) = under_way.front().filter(|_| step >= 3) else {
                    path.spend(kind, path.end() + pdes_core::SimDuration::from_picos(1));
                    sender.send(&path);
                    under_way.push_back(path.clone());
                    continue;
                };
                for waiting in &under_way {
                    prop_assert_eq!(receiver.peek(waiting.end()), Some(waiting.clone()));
                }
                match step {
                    3 => receiver.skip(),
                    4 => prop_assert_eq!(&receiver.receive_new(), first),
                    _ => {
                        let mut other = CriticalPath::new(Rank::new(4));
                        receiver.receive(&mut other);
                        prop_assert_eq!(&other, first);
                    }
                }
                under_way.pop_front();
            }
            prop_assert_eq!(receiver.peek(SimTime::from_picos(u64::MAX)), None);
        }
    }

    #[test]
    fn a_channel_connects_two_threads() {
        let channel = PathChannel::default();
        let (told, hear) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut sender = Sender::new(&channel);
            scope.spawn(move || {
                let mut path = CriticalPath::new(Rank::new(3));
                for picos in 1..=10_000 {
                    let kind = ActionKind::ALL[picos as usize / 7 % ActionKind::ALL.len()];
                    path.spend(kind, SimTime::from_picos(picos));
                    sender.send(&path);
                    told.send(()).unwrap();
                }
            });
            let mut receiver = Receiver::new(&channel);
            for picos in 1..=10_000 {
                hear.recv().unwrap();
                let path = receiver.receive_new();
                assert_eq!(path.calls().map(|(_, time)| time.as_picos()).sum::<u64>(), picos);
                assert_eq!(path.end(), SimTime::from_picos(picos));
            }
        });
    }
}
