//! Tokens between workers: batches over channels.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::horizon::Floors;
use crate::Rank;

/// What one worker tells another.
pub(crate) enum Message<T> {
    /// Tokens for processes of the receiver, in the order in which they were sent.
    Batch(Vec<(Rank, T)>),
    /// The conditional event of this process is committed.
    Commit(Rank),
    /// The run is over.
    Stop,
}

/// One worker's endpoint. Ranks lie on workers in contiguous blocks.
pub(crate) struct Exchange<'a, T> {
    me: usize,
    /// Rank `starts[w]` is the first one of worker `w`; one entry more than workers.
    starts: Arc<[u32]>,
    inbox: Receiver<Message<T>>,
    peers: Vec<Sender<Message<T>>>,
    outgoing: Vec<Vec<(Rank, T)>>,
    batch: usize,
    traffic: Traffic,
    floors: &'a Floors,
}

/// Batches sent and received by a worker since it last reported them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl<'a, T> Exchange<'a, T> {
    /// Makes the connected endpoints of all workers.
    pub(crate) fn connect(ranks: usize, batch: usize, floors: &'a Floors) -> Vec<Self> {
        let workers = floors.workers();
        let starts: Arc<[u32]> = (0..=workers).map(|worker| (worker * ranks / workers) as u32).collect();
        let (peers, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded()).unzip();
        let endpoint = |(me, inbox)| Self {
            me,
            starts: starts.clone(),
            inbox,
            peers: peers.clone(),
            outgoing: (0..workers).map(|_| Vec::new()).collect(),
            batch,
            traffic: Traffic::default(),
            floors,
        };
        inboxes.into_iter().enumerate().map(endpoint).collect()
    }

    pub(crate) fn me(&self) -> usize {
        self.me
    }

    pub(crate) fn local_ranks(&self) -> Range<u32> {
        self.starts[self.me]..self.starts[self.me + 1]
    }

    pub(crate) fn local_count(&self) -> usize {
        self.local_ranks().len()
    }

    pub(crate) fn owner(&self, rank: Rank) -> usize {
        self.starts.partition_point(|&start| start <= rank.get()) - 1
    }

    /// Files a token for a process of another worker.
    pub(crate) fn post(&mut self, to: Rank, token: T) {
        let owner = self.owner(to);
        let batch = &mut self.outgoing[owner];
        batch.push((to, token));
        if batch.len() >= self.batch {
            self.send(owner);
        }
    }

    /// Sends everything that is filed. A worker that blocks with tokens in its hands would stop the run.
    pub(crate) fn flush(&mut self) {
        for worker in 0..self.outgoing.len() {
            if !self.outgoing[worker].is_empty() {
                self.send(worker);
            }
        }
    }

    /// Sends what is filed for workers that have nothing to do.
    pub(crate) fn feed_idle(&mut self) {
        for worker in 0..self.outgoing.len() {
            if !self.outgoing[worker].is_empty() && self.floors.is_idle(worker) {
                self.send(worker);
            }
        }
    }

    fn send(&mut self, worker: usize) {
        let batch = std::mem::replace(&mut self.outgoing[worker], Vec::with_capacity(self.batch.min(256)));
        self.traffic.sent += 1;
        self.floors.announce(self.me, worker);
        self.tell(worker, Message::Batch(batch));
    }

    /// Sends a message. A peer that has gone (it panicked, and says so itself) needs no messages.
    pub(crate) fn tell(&self, worker: usize, message: Message<T>) {
        let _ = self.peers[worker].send(message);
    }

    pub(crate) fn stop_all(&self) {
        for worker in 0..self.peers.len() {
            self.tell(worker, Message::Stop);
        }
    }

    pub(crate) fn try_receive(&mut self) -> Option<Message<T>> {
        let message = self.inbox.try_recv().ok()?;
        self.count(&message);
        Some(message)
    }

    /// Waits for a message.
    pub(crate) fn receive(&mut self) -> Message<T> {
        // Its own sender is among the peers, so that the channel is never disconnected.
        let message = self.inbox.recv().expect("a worker's channel is open as long as the worker lives");
        self.count(&message);
        message
    }

    fn count(&mut self, message: &Message<T>) {
        self.traffic.received += u64::from(matches!(message, Message::Batch(_)));
    }

    /// Returns the traffic since the last call.
    pub(crate) fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }
}

/// Stops all other workers where this one is unwinding, so that none waits for it for ever.
impl<T> Drop for Exchange<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop_all();
        }
    }
}
