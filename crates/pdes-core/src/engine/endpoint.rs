//! The endpoint of a worker: batches of tokens over channels to workers of this member, frames to those of other members.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::conditional_events::Candidate;
use super::frame::{decode_tokens, encode_tokens};
use super::gateway::{Arrival, ClusterGateway};
use super::partition::MemberPartition;
use super::quiescence::{Decision, Quiescence};
use super::run_ahead::LowerBounds;
use super::worker::SharedState;
use crate::LpId;
use crate::cluster::backoff::Backoff;

/// Maximum size of the tokens of a frame in memory \[B\]: encoded they are smaller, and fit into a message.
const FRAME_BYTES: usize = 3_900;
/// Number of turns between two polls of other members, and between two flushes of the tokens for them.
const TURNS_PER_POLL: u32 = 64;
/// Bytes that may wait to be sent to other members before workers stop producing more \[B\].
const BACKLOG_BYTES: usize = 4 << 20;
/// Number of polls of other members before this one reports that it is idle.
const POLLS_BEFORE_REPORT: u32 = 20;

/// A message between two workers of one member.
pub(crate) enum Message<T> {
    /// Tokens for processes of the receiver, in the order in which they were sent.
    Batch(Vec<(LpId, T)>),
    /// Encoded tokens from another member.
    Frame(Vec<u8>),
    /// To the first worker: a frame for another member.
    Forward { member: usize, frame: Vec<u8> },
    /// The conditional event of this process is committed.
    Commit(LpId),
    /// To the first worker: all workers of the member are idle.
    Quiescent,
    /// The run is over.
    Stop,
    /// To the first worker: the run is over for all members.
    StopEverywhere,
}

/// The destination of the tokens for one worker.
enum Destination<T> {
    /// A thread of this member, perhaps this one.
    Thread(Sender<Message<T>>),
    /// A worker of another member.
    Member { member: usize, worker: usize },
}

/// The builder of an endpoint, which can be sent to the thread of its worker.
pub(crate) struct EndpointBuilder<T> {
    me: usize,
    inbox: Receiver<Message<T>>,
    peers: Vec<Sender<Message<T>>>,
}

/// The endpoint of one worker: its inbox and its destinations. `me` and `peers` count the workers of this member, the
/// destinations and the outgoing batches those of all members.
pub(crate) struct WorkerEndpoint<'a, T> {
    me: usize,
    partition: MemberPartition,
    inbox: Receiver<Message<T>>,
    peers: Vec<Sender<Message<T>>>,
    destinations: Vec<Destination<T>>,
    outgoing: Vec<Vec<(LpId, T)>>,
    batch: usize,
    /// Maximum number of tokens in a frame to another member.
    member_batch: usize,
    counts: MessageCounts,
    lower_bounds: &'a LowerBounds,
    /// True if there are workers of other members.
    is_distributed: bool,
    backlog: &'a Backlog,
    /// Gateway to other members; only the first worker of a member of a cluster has it.
    gateway: Option<ClusterGateway<'a>>,
    turns: u32,
}

/// Numbers of counted messages that a worker has sent and received since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageCounts {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Bytes that wait to be sent from the workers of a member to other members. Relaxed throughout: it only throttles workers.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Bytes in transit to the first worker.
    to_first_worker: AtomicUsize,
    /// Bytes that the transport of the first worker has queued.
    queued: AtomicUsize,
}

impl Backlog {
    fn is_long(&self) -> bool {
        self.to_first_worker.load(Ordering::Relaxed) + self.queued.load(Ordering::Relaxed) > BACKLOG_BYTES
    }
}

/// Returns the builders of the connected endpoints of a member's workers.
pub(crate) fn connect<T>(workers: usize) -> Vec<EndpointBuilder<T>> {
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded()).unzip();
    let builder = |(me, inbox)| EndpointBuilder { me, inbox, peers: peers.clone() };
    inboxes.into_iter().enumerate().map(builder).collect()
}

impl<T> EndpointBuilder<T> {
    /// Builds the endpoint. In a cluster the first worker has the gateway.
    pub(crate) fn build<'a>(
        self,
        share: &MemberPartition,
        batch: usize,
        shared: &'a SharedState,
        gateway: Option<ClusterGateway<'a>>,
    ) -> WorkerEndpoint<'a, T> {
        let (here, _) = share.locate_worker(share.first_worker());
        let endpoint = |worker| match share.locate_worker(worker) {
            (member, worker) if member != here => Destination::Member { member, worker },
            (_, worker) => Destination::Thread(self.peers[worker].clone()),
        };
        WorkerEndpoint {
            destinations: (0..share.global.workers()).map(endpoint).collect(),
            outgoing: (0..share.global.workers()).map(|_| Vec::new()).collect(),
            me: self.me,
            partition: share.clone(),
            inbox: self.inbox,
            is_distributed: share.global.workers() > self.peers.len(),
            peers: self.peers,
            batch,
            member_batch: batch.min(FRAME_BYTES / size_of::<(LpId, T)>()).max(1),
            counts: MessageCounts::default(),
            lower_bounds: &shared.lower_bounds,
            backlog: &shared.backlog,
            gateway,
            turns: 0,
        }
    }
}

impl<'a, T> WorkerEndpoint<'a, T> {
    /// Returns the index of this worker among those of the member.
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// Returns the index of this worker among those of all members.
    pub(crate) fn global_index(&self) -> usize {
        self.partition.first_worker() + self.me
    }

    /// Returns the first slot of this worker.
    pub(crate) fn first_slot(&self) -> u32 {
        self.partition.global.slots(self.global_index()).start
    }

    /// Returns the slot of a process.
    #[inline]
    pub(crate) fn slot(&self, lp: LpId) -> u32 {
        self.partition.global.slot(lp)
    }

    /// Returns the process in a slot.
    #[inline]
    pub(crate) fn lp(&self, slot: u32) -> LpId {
        self.partition.global.lp(slot)
    }

    pub(crate) fn all_workers(&self) -> usize {
        self.destinations.len()
    }

    fn send_to_member(&mut self, member: usize, frame: Vec<u8>) {
        match &mut self.gateway {
            Some(gateway) => gateway.send(member, &frame),
            None => {
                self.backlog.to_first_worker.fetch_add(frame.len(), Ordering::Relaxed);
                self.send_counted(0, Message::Forward { member, frame });
            }
        }
    }

    /// Sends a counted message to a worker of this member.
    fn send_counted(&mut self, worker: usize, message: Message<T>) {
        self.counts.sent += 1;
        self.send_uncounted(worker, message);
    }

    /// Sends a message that is not counted. Errors are ignored: a peer whose inbox is closed has panicked, and reports that
    /// itself.
    fn send_uncounted(&self, worker: usize, message: Message<T>) {
        let _ = self.peers[worker].send(message);
    }

    /// Stops the workers of this member.
    pub(crate) fn stop_all(&self) {
        for worker in 0..self.peers.len() {
            self.send_uncounted(worker, Message::Stop);
        }
    }

    /// Stops the workers of all members, at quiescence.
    pub(crate) fn stop_everywhere(&mut self) {
        match &mut self.gateway {
            Some(gateway) => gateway.stop(),
            None if self.is_distributed => return self.send_uncounted(0, Message::StopEverywhere),
            None => {}
        }
        self.stop_all();
    }

    /// Returns true if too many bytes wait to be sent to other members. Other members receive in every state, so this
    /// cannot last.
    pub(crate) fn is_congested(&self) -> bool {
        self.is_distributed && self.backlog.is_long()
    }

    /// Returns the next message; polls other members every 64 turns only.
    pub(crate) fn try_receive(&mut self) -> Option<Message<T>> {
        if let Some(message) = self.try_receive_local() {
            return Some(message);
        }
        let gateway = self.gateway.as_mut()?;
        if self.turns.is_multiple_of(TURNS_PER_POLL) || gateway.has_unread() {
            self.turns = self.turns.wrapping_add(1);
            return self.try_receive_remote();
        }
        None
    }

    /// Returns the next message; polls other members if there is none of this member.
    pub(crate) fn poll(&mut self) -> Option<Message<T>> {
        self.try_receive_local().or_else(|| self.try_receive_remote())
    }

    fn try_receive_local(&mut self) -> Option<Message<T>> {
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
            Message::Quiescent => None,
            Message::Stop | Message::StopEverywhere => Some(message),
            Message::Forward { member, frame } => {
                self.counts.received += 1;
                self.backlog.to_first_worker.fetch_sub(frame.len(), Ordering::Relaxed);
                self.send_to_member(member, frame);
                None
            }
            Message::Batch(_) | Message::Frame(_) | Message::Commit(_) => {
                self.counts.received += 1;
                Some(message)
            }
        }
    }

    /// Forwards arrivals from other members to their workers; returns the next one for this worker.
    fn try_receive_remote(&mut self) -> Option<Message<T>> {
        loop {
            let gateway = self.gateway.as_mut()?;
            let arrival = gateway.poll();
            self.backlog.queued.store(gateway.backlog(), Ordering::Relaxed);
            let (worker, message) = match arrival? {
                Arrival::Tokens { worker, packets } => (worker, Message::Frame(packets)),
                Arrival::Commit(lp) => (self.local_worker(lp), Message::Commit(lp)),
                Arrival::Stop => {
                    self.stop_all();
                    return Some(Message::Stop);
                }
            };
            if worker == self.me {
                return Some(message);
            }
            self.send_counted(worker, message);
        }
    }

    fn local_worker(&self, lp: LpId) -> usize {
        self.partition.locate_worker(self.partition.global.worker(lp)).1
    }

    /// Registers as idle and waits for a message.
    pub(crate) fn wait(&mut self, quiescence: &Quiescence, candidate: Option<Candidate>) -> Message<T> {
        let traffic = std::mem::take(&mut self.counts);
        let quiescent = quiescence.register_idle(self.me, traffic, candidate);
        if self.gateway.is_some() {
            return self.wait_with_gateway(quiescence);
        }
        match quiescent {
            Some(_) if self.is_distributed => self.send_uncounted(0, Message::Quiescent),
            // The cut-off is read after all have arrived: it may be lower than when the candidate was registered.
            Some(quiescent) => {
                self.execute(Decision::new(quiescent.0, self.lower_bounds.cutoff()), quiescence)
            }
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
    fn wait_with_gateway(&mut self, quiescence: &Quiescence) -> Message<T> {
        let mut backoff = Backoff::new();
        let mut polls = 0;
        loop {
            if let Some(message) = self.poll() {
                return message;
            }
            polls += 1;
            let has_arrivals = self.gateway.as_mut().is_some_and(ClusterGateway::take_has_arrivals);
            if has_arrivals || self.counts.sent + self.counts.received > 0 {
                backoff = Backoff::new();
            }
            let quiescent = quiescence.add_counts(std::mem::take(&mut self.counts));
            if let (Some(quiescent), Some(gateway)) = (quiescent, &mut self.gateway)
                && polls > POLLS_BEFORE_REPORT
                && let Some(decision) = gateway.report(quiescent)
            {
                self.execute(decision, quiescence);
                continue;
            }
            match backoff.next_sleep() {
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
    fn execute(&mut self, decision: Decision, quiescence: &Quiescence) {
        match decision {
            Decision::Stop => {
                if let Some(gateway) = &mut self.gateway {
                    gateway.stop();
                }
                self.stop_all();
            }
            Decision::Commit(lp) => {
                if !self.gateway.as_mut().is_some_and(|gateway| gateway.commit(lp)) {
                    quiescence.count_sent();
                    self.send_uncounted(self.local_worker(lp), Message::Commit(lp));
                }
            }
        }
    }

    /// Takes the gateway to other members out.
    pub(crate) fn take_gateway(&mut self) -> Option<ClusterGateway<'a>> {
        self.gateway.take()
    }
}

impl<T: Serialize + DeserializeOwned> WorkerEndpoint<'_, T> {
    /// Queues a token for a process of another worker, and sends the batch if it is full.
    pub(crate) fn enqueue(&mut self, to: LpId, token: T) {
        let owner = self.partition.global.worker(to);
        let batch = &mut self.outgoing[owner];
        batch.push((to, token));
        let full = match self.destinations[owner] {
            Destination::Thread(_) => self.batch,
            Destination::Member { .. } => self.member_batch,
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
    pub(crate) fn flush_to_idle(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        let abroad = self.turns.is_multiple_of(TURNS_PER_POLL);
        self.send_where(|endpoint, worker| match endpoint.destinations[worker] {
            Destination::Thread(_) => {
                endpoint.lower_bounds.is_idle(endpoint.partition.locate_worker(worker).1)
            }
            Destination::Member { .. } => abroad,
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
        match &self.destinations[worker] {
            Destination::Thread(peer) => {
                let room = Vec::with_capacity(self.batch.min(256));
                let batch = std::mem::replace(&mut self.outgoing[worker], room);
                self.counts.sent += 1;
                self.lower_bounds.lower_to_sender(self.me, worker - self.partition.first_worker());
                let _ = peer.send(Message::Batch(batch));
            }
            &Destination::Member { member, worker: of_member } => {
                let frame = encode_tokens(of_member, &self.outgoing[worker]);
                self.outgoing[worker].clear();
                self.lower_bounds.lower_member_to_sender(self.me, member);
                self.send_to_member(member, frame);
            }
        }
    }

    /// Decodes tokens from another member; `None` if they are not tokens for processes of this worker.
    pub(crate) fn read(&self, frame: &[u8]) -> Option<Vec<(LpId, T)>> {
        let packets = decode_tokens(frame)?;
        let (whole, places) = (&self.partition.global, self.partition.global.slots(self.global_index()));
        let is_here = |to: LpId| to.get() < whole.len() && places.contains(&whole.slot(to));
        packets.iter().all(|&(to, _)| is_here(to)).then_some(packets)
    }
}

/// Stops all other workers if this one panics, so that none waits for it for ever.
impl<T> Drop for WorkerEndpoint<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop_all();
        }
    }
}
