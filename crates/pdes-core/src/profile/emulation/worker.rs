//! An emulated worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::convert::Infallible;

use crate::engine::RunAhead;
use crate::engine::run_queue::RunQueue;
use crate::{LpId, Process, SimTime};

/// A message in flight to a worker, ordered by (arrival, number).
pub(super) struct InFlightMessage<T> {
    pub(super) arrives: SimTime,
    /// Number of messages on the chain that led to this one.
    pub(super) hops: u64,
    /// Sequence number among all messages.
    pub(super) number: u64,
    pub(super) packets: Vec<(LpId, T)>,
}

impl<T> InFlightMessage<T> {
    fn key(&self) -> (SimTime, u64) {
        (self.arrives, self.number)
    }
}

impl<T> PartialEq for InFlightMessage<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for InFlightMessage<T> {}

impl<T> PartialOrd for InFlightMessage<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for InFlightMessage<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Busy,
    /// A turn has ended: the tokens queued for idle workers are sent next.
    AfterTurn,
    /// The worker waits for a message, or for slower workers.
    Waiting,
}

pub(super) struct EmulatedWorker<P: Process> {
    first: u32,
    pub(super) run_queue: RunQueue<P>,
    pub(super) phase: Phase,
    /// Emulated wall-clock time of the worker.
    pub(super) now: SimTime,
    /// Number of messages, each waited for, on the chain that led here.
    pub(super) hops: u64,
    /// Number of the next action.
    pub(super) action: u64,
    inbox: BinaryHeap<Reverse<InFlightMessage<P::Token>>>,
    /// Queued tokens, by receiving worker.
    queued: BTreeMap<u32, Vec<(LpId, P::Token)>>,
}

impl<P: Process<WorkRequest = Infallible>> EmulatedWorker<P> {
    pub(super) fn new(first: u32, processes: Vec<P>) -> Self {
        Self {
            first,
            run_queue: RunQueue::new(processes, RunAhead::Auto, None),
            phase: Phase::Busy,
            now: SimTime::ZERO,
            hops: 0,
            action: 0,
            inbox: BinaryHeap::new(),
            queued: BTreeMap::new(),
        }
    }

    /// Returns the local index of a process of this worker.
    pub(super) fn local(&self, lp: LpId) -> u32 {
        lp.get() - self.first
    }

    fn owns(&self, lp: LpId) -> bool {
        (self.first..self.first + self.run_queue.processes.len() as u32).contains(&lp.get())
    }

    /// Resumes a process; returns the number of its steps.
    pub(super) fn resume(&mut self, local: u32, granted: bool) -> u64 {
        let before = self.run_queue.steps;
        let lp = LpId::new(self.first + local);
        // Ignored: the process has failed already in the run that is emulated.
        let _ = self.run_queue.resume(local, lp, SimTime::MAX, granted);
        if self.run_queue.is_at_checkpoint(local) {
            self.run_queue.leave_checkpoint(local, lp);
        }
        self.run_queue.steps - before
    }

    /// Delivers a token to a process of this worker.
    pub(super) fn deliver(&mut self, to: LpId, token: P::Token) {
        let _ = self.run_queue.deliver(self.local(to), to, token);
    }

    /// Delivers the tokens of the outbox, or queues them for the workers that own their receivers; returns the number of
    /// queued ones.
    pub(super) fn dispatch(&mut self, owner: impl Fn(LpId) -> u32) -> u64 {
        let (mut next, mut abroad) = (0, 0);
        while let Some((to, token)) = self.run_queue.outbox.token_at(next) {
            next += 1;
            if self.owns(to) {
                self.deliver(to, token);
            } else {
                abroad += 1;
                self.queued.entry(owner(to)).or_default().push((to, token));
            }
        }
        self.run_queue.outbox.clear();
        abroad
    }

    /// Returns the workers for which at least `tokens` tokens are queued.
    pub(super) fn workers_with_queued(&self, tokens: usize) -> Vec<u32> {
        let queued = self.queued.iter();
        queued.filter(|(_, packets)| packets.len() >= tokens).map(|(&worker, _)| worker).collect()
    }

    /// Takes the tokens queued for a worker.
    pub(super) fn take_queued(&mut self, worker: u32) -> Vec<(LpId, P::Token)> {
        self.queued.remove(&worker).unwrap_or_default()
    }

    pub(super) fn push_message(&mut self, message: InFlightMessage<P::Token>) {
        self.inbox.push(Reverse(message));
    }

    pub(super) fn next_arrival(&self) -> Option<SimTime> {
        self.inbox.peek().map(|Reverse(message)| message.arrives)
    }

    /// Takes the next message that has arrived.
    pub(super) fn next_message(&mut self) -> Option<InFlightMessage<P::Token>> {
        self.next_arrival().filter(|&arrives| arrives <= self.now)?;
        self.inbox.pop().map(|Reverse(message)| message)
    }
}
