//! The endpoint of a worker: batches of tokens over channels to workers of this member, frames to those of other members.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::frame::Codec;
use super::gateway::{Arrival, Gateway};
use super::horizon::Floors;
use super::partition::Share;
use super::quiescence::{Quiescence, Verdict};
use super::worker::Commons;
use crate::cluster::patience::Patience;
use crate::{Rank, SimTime};

/// Maximum size of a frame with tokens \[B\]: it fills a message.
const FRAME_BYTES: usize = 3_900;
/// Number of turns between two polls of other members, and between two flushes of the tokens for them.
const TURNS_PER_LOOK: u32 = 64;
/// Bytes that may wait to be sent to other members before workers stop producing more \[B\].
const BACKLOG_BYTES: usize = 4 << 20;
/// Number of polls of other members before this one reports that it is idle.
const LOOKS_BEFORE_REPORT: u32 = 20;

/// A message between two workers of one member.
pub(crate) enum Message<T> {
    /// Tokens for processes of the receiver, in the order in which they were sent.
    Batch(Vec<(Rank, T)>),
    /// Encoded tokens from another member.
    Frame(Vec<u8>),
    /// To the first worker: a frame for another member.
    Parcel { member: usize, frame: Vec<u8> },
    /// The conditional event of this process is committed.
    Commit(Rank),
    /// To the first worker: all workers of the member are idle.
    Quiet,
    /// The run is over.
    Stop,
}

/// The destination of the tokens for one worker.
enum Endpoint<T> {
    /// A thread of this member, perhaps this one.
    Thread(Sender<Message<T>>),
    /// A worker of another member.
    Member { member: usize, worker: usize, codec: Codec<T> },
}

/// The builder of an endpoint, which can be sent to the thread of its worker.
pub(crate) struct Seat<T> {
    me: usize,
    inbox: Receiver<Message<T>>,
    peers: Vec<Sender<Message<T>>>,
}

/// The endpoint of one worker: its inbox and its destinations. `me` and `peers` count the workers of this member, the
/// destinations and the outgoing batches those of all members.
pub(crate) struct Exchange<'a, T> {
    me: usize,
    share: Share,
    inbox: Receiver<Message<T>>,
    peers: Vec<Sender<Message<T>>>,
    endpoints: Vec<Endpoint<T>>,
    outgoing: Vec<Vec<(Rank, T)>>,
    batch: usize,
    /// Maximum number of tokens in a frame to another member.
    batch_abroad: usize,
    traffic: Traffic,
    floors: &'a Floors,
    codec: Option<Codec<T>>,
    backlog: &'a Backlog,
    /// Gateway to other members; only the first worker of a member of a cluster has it.
    gateway: Option<Gateway<'a>>,
    turns: u32,
}

/// Numbers of counted messages that a worker has sent and received since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Bytes that wait to be sent from the workers of a member to other members. Relaxed throughout: it only throttles workers.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Bytes in transit to the first worker.
    parcels: AtomicUsize,
    /// Bytes that the transport of the first worker has queued.
    waiting: AtomicUsize,
}

impl Backlog {
    fn is_long(&self) -> bool {
        self.parcels.load(Ordering::Relaxed) + self.waiting.load(Ordering::Relaxed) > BACKLOG_BYTES
    }
}

/// Returns the builders of the connected endpoints of a member's workers.
pub(crate) fn connect<T>(workers: usize) -> Vec<Seat<T>> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded()).unzip();
    let seat = |(me, inbox)| Seat { me, inbox, peers: peers.clone() };
    inboxes.into_iter().enumerate().map(seat).collect()
}

impl<T> Seat<T> {
    /// Builds the endpoint. In a cluster there is a codec, and the first worker has the gateway.
    pub(crate) fn take<'a>(
        self,
        share: &Share,
        batch: usize,
        codec: Option<Codec<T>>,
        commons: &'a Commons,
        gateway: Option<Gateway<'a>>,
    ) -> Exchange<'a, T> {
        let (here, _) = share.seat(share.first_worker());
        let endpoint = |worker| match (share.seat(worker), codec) {
            ((member, worker), Some(codec)) if member != here => Endpoint::Member { member, worker, codec },
            ((_, worker), _) => Endpoint::Thread(self.peers[worker].clone()),
        };
        let packet_bytes = codec.map_or(1, |codec| size_of::<u32>() + codec.token_bytes as usize);
        Exchange {
            endpoints: (0..share.whole.workers()).map(endpoint).collect(),
            outgoing: (0..share.whole.workers()).map(|_| Vec::new()).collect(),
            me: self.me,
            share: share.clone(),
            inbox: self.inbox,
            peers: self.peers,
            batch,
            batch_abroad: batch.min(FRAME_BYTES / packet_bytes).max(1),
            traffic: Traffic::default(),
            floors: &commons.floors,
            codec,
            backlog: &commons.backlog,
            gateway,
            turns: 0,
        }
    }
}

impl<'a, T> Exchange<'a, T> {
    /// Returns the index of this worker among those of the member.
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// Returns the index of this worker among those of all members.
    pub(crate) fn number(&self) -> usize {
        self.share.first_worker() + self.me
    }

    /// Returns the first slot of this worker.
    pub(crate) fn first_place(&self) -> u32 {
        self.share.whole.places(self.number()).start
    }

    /// Returns the slot of a rank.
    #[inline]
    pub(crate) fn place(&self, rank: Rank) -> u32 {
        self.share.whole.place(rank)
    }

    /// Returns the rank in a slot.
    #[inline]
    pub(crate) fn rank(&self, place: u32) -> Rank {
        self.share.whole.rank(place)
    }

    pub(crate) fn all_workers(&self) -> usize {
        self.endpoints.len()
    }

    /// Queues a token for a process of another worker, and sends the batch if it is full.
    pub(crate) fn post(&mut self, to: Rank, token: T) {
        let owner = self.share.whole.worker(to);
        let batch = &mut self.outgoing[owner];
        batch.push((to, token));
        let full = match self.endpoints[owner] {
            Endpoint::Thread(_) => self.batch,
            Endpoint::Member { .. } => self.batch_abroad,
        };
        if batch.len() >= full {
            self.send(owner);
        }
    }

    /// Sends all queued tokens. A worker must do so before it waits, else the run could deadlock.
    pub(crate) fn flush(&mut self) {
        self.send_where(|_, _| true);
    }

    /// Sends the tokens queued for idle workers, and every 64th time those for other members, whose workers may be idle.
    pub(crate) fn feed_idle(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        let abroad = self.turns.is_multiple_of(TURNS_PER_LOOK);
        self.send_where(|exchange, worker| match exchange.endpoints[worker] {
            Endpoint::Thread(_) => exchange.floors.is_idle(exchange.share.seat(worker).1),
            Endpoint::Member { .. } => abroad,
        });
    }

    fn send_where(&mut self, which: impl Fn(&Self, usize) -> bool) {
        for worker in 0..self.outgoing.len() {
            if !self.outgoing[worker].is_empty() && which(self, worker) {
                self.send(worker);
            }
        }
    }

    fn send(&mut self, worker: usize) {
        match &self.endpoints[worker] {
            Endpoint::Thread(peer) => {
                let room = Vec::with_capacity(self.batch.min(256));
                let batch = std::mem::replace(&mut self.outgoing[worker], room);
                self.traffic.sent += 1;
                self.floors.announce(self.me, worker - self.share.first_worker());
                let _ = peer.send(Message::Batch(batch));
            }
            &Endpoint::Member { member, worker: of_member, codec } => {
                let frame = codec.frame(of_member, &self.outgoing[worker]);
                self.outgoing[worker].clear();
                self.floors.announce_abroad(self.me, member);
                self.send_abroad(member, frame);
            }
        }
    }

    fn send_abroad(&mut self, member: usize, frame: Vec<u8>) {
        match &mut self.gateway {
            Some(gateway) => gateway.send(member, &frame),
            None => {
                self.backlog.parcels.fetch_add(frame.len(), Ordering::Relaxed);
                self.pass_on(0, Message::Parcel { member, frame });
            }
        }
    }

    /// Sends a counted message to a worker of this member.
    fn pass_on(&mut self, worker: usize, message: Message<T>) {
        self.traffic.sent += 1;
        self.tell(worker, message);
    }

    /// Sends a message that is not counted. Errors are ignored: a peer whose inbox is closed has panicked, and reports that
    /// itself.
    fn tell(&self, worker: usize, message: Message<T>) {
        let _ = self.peers[worker].send(message);
    }

    /// Stops the workers of this member.
    pub(crate) fn stop_all(&self) {
        for worker in 0..self.peers.len() {
            self.tell(worker, Message::Stop);
        }
    }

    /// Returns true if too many bytes wait to be sent to other members. Other members receive in every state, so this
    /// cannot last.
    pub(crate) fn is_congested(&self) -> bool {
        self.codec.is_some() && self.backlog.is_long()
    }

    /// Returns the next message; polls other members every 64 turns only.
    pub(crate) fn try_receive(&mut self) -> Option<Message<T>> {
        if let Some(message) = self.try_receive_here() {
            return Some(message);
        }
        let gateway = self.gateway.as_mut()?;
        if self.turns.is_multiple_of(TURNS_PER_LOOK) || gateway.is_reading() {
            self.turns = self.turns.wrapping_add(1);
            return self.try_receive_abroad();
        }
        None
    }

    /// Returns the next message; polls other members if there is none of this member.
    pub(crate) fn look(&mut self) -> Option<Message<T>> {
        self.try_receive_here().or_else(|| self.try_receive_abroad())
    }

    fn try_receive_here(&mut self) -> Option<Message<T>> {
        loop {
            let message = self.inbox.try_recv().ok()?;
            if let Some(message) = self.accept(message) {
                return Some(message);
            }
        }
    }

    /// Counts a message of this member, and forwards it if it is for another member.
    fn accept(&mut self, message: Message<T>) -> Option<Message<T>> {
        match message {
            Message::Quiet => None,
            Message::Stop => Some(message),
            Message::Parcel { member, frame } => {
                self.traffic.received += 1;
                self.backlog.parcels.fetch_sub(frame.len(), Ordering::Relaxed);
                self.send_abroad(member, frame);
                None
            }
            Message::Batch(_) | Message::Frame(_) | Message::Commit(_) => {
                self.traffic.received += 1;
                Some(message)
            }
        }
    }

    /// Forwards arrivals from other members to their workers; returns the next one for this worker.
    fn try_receive_abroad(&mut self) -> Option<Message<T>> {
        loop {
            let gateway = self.gateway.as_mut()?;
            let arrival = gateway.poll();
            self.backlog.waiting.store(gateway.backlog(), Ordering::Relaxed);
            let (worker, message) = match arrival? {
                Arrival::Tokens { worker, packets } => (worker, Message::Frame(packets)),
                Arrival::Commit(rank) => (self.worker_here(rank), Message::Commit(rank)),
                Arrival::Stop => {
                    self.stop_all();
                    return Some(Message::Stop);
                }
            };
            if worker == self.me {
                return Some(message);
            }
            self.pass_on(worker, message);
        }
    }

    fn worker_here(&self, rank: Rank) -> usize {
        self.share.seat(self.share.whole.worker(rank)).1
    }

    /// Registers as idle and waits for a message.
    pub(crate) fn wait(&mut self, quiescence: &Quiescence, candidate: Option<(SimTime, Rank)>) -> Message<T> {
        let traffic = std::mem::take(&mut self.traffic);
        let quiet = quiescence.arrive(self.me, traffic, candidate);
        if self.gateway.is_some() {
            return self.wait_abroad(quiescence);
        }
        match quiet {
            Some(_) if self.codec.is_some() => self.tell(0, Message::Quiet),
            // The cut-off is read after all have arrived: it may be lower than when the candidate was registered.
            Some(quiet) => self.carry_out(Verdict::new(quiet.0, self.floors.cutoff()), quiescence),
            None => {}
        }
        loop {
            // This worker holds a sender to its own inbox, so the channel is never disconnected.
            let message = self.inbox.recv().expect("a worker's channel is open as long as the worker lives");
            if let Some(message) = self.accept(message) {
                return message;
            }
        }
    }

    /// Waits for a message of this or another member, and forwards those for other workers meanwhile.
    fn wait_abroad(&mut self, quiescence: &Quiescence) -> Message<T> {
        let mut patience = Patience::new();
        let mut looks = 0;
        loop {
            if let Some(message) = self.look() {
                return message;
            }
            looks += 1;
            let stirred = self.gateway.as_mut().is_some_and(Gateway::take_stirred);
            if stirred || self.traffic.sent + self.traffic.received > 0 {
                patience = Patience::new();
            }
            let quiet = quiescence.add(std::mem::take(&mut self.traffic));
            if let (Some(quiet), Some(gateway)) = (quiet, &mut self.gateway)
                && looks > LOOKS_BEFORE_REPORT
                && let Some(verdict) = gateway.report(quiet)
            {
                self.carry_out(verdict, quiescence);
                continue;
            }
            match patience.next_sleep() {
                None => std::thread::yield_now(),
                Some(sleep) => {
                    let message = self.inbox.recv_timeout(sleep).ok();
                    if let Some(message) = message.and_then(|message| self.accept(message)) {
                        return message;
                    }
                }
            }
        }
    }

    /// Executes the decision at quiescence.
    fn carry_out(&mut self, verdict: Verdict, quiescence: &Quiescence) {
        match verdict {
            Verdict::Stop => {
                if let Some(gateway) = &mut self.gateway {
                    gateway.stop();
                }
                self.stop_all();
            }
            Verdict::Commit(rank) => {
                if !self.gateway.as_mut().is_some_and(|gateway| gateway.commit(rank)) {
                    quiescence.disturb();
                    self.tell(self.worker_here(rank), Message::Commit(rank));
                }
            }
        }
    }

    /// Decodes tokens from another member; `None` if they are not tokens for processes of this worker.
    pub(crate) fn read(&self, frame: &[u8]) -> Option<Vec<(Rank, T)>> {
        let packets = self.codec.as_ref()?.packets(frame)?;
        let (whole, places) = (&self.share.whole, self.share.whole.places(self.number()));
        let is_here = |to: Rank| to.get() < whole.len() && places.contains(&whole.place(to));
        packets.iter().all(|&(to, _)| is_here(to)).then_some(packets)
    }

    /// Takes the gateway to other members out.
    pub(crate) fn take_gateway(&mut self) -> Option<Gateway<'a>> {
        self.gateway.take()
    }
}

/// Stops all other workers if this one panics, so that none waits for it for ever.
impl<T> Drop for Exchange<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop_all();
        }
    }
}
