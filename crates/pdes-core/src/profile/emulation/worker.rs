//! An emulated worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::convert::Infallible;

use crate::engine::RunAhead;
use crate::engine::roster::Roster;
use crate::{Process, Rank, SimTime};

/// A message in flight to a worker, ordered by (arrival, number).
pub(super) struct Letter<T> {
    pub(super) arrives: SimTime,
    /// Number of messages on the chain that led to this one.
    pub(super) hops: u64,
    /// Sequence number among all messages.
    pub(super) number: u64,
    pub(super) packets: Vec<(Rank, T)>,
}

impl<T> Letter<T> {
    fn key(&self) -> (SimTime, u64) {
        (self.arrives, self.number)
    }
}

impl<T> PartialEq for Letter<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Letter<T> {}

impl<T> PartialOrd for Letter<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Letter<T> {
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
    pub(super) roster: Roster<P>,
    pub(super) phase: Phase,
    /// Emulated wall-clock time of the worker.
    pub(super) now: SimTime,
    /// Number of messages, each waited for, on the chain that led here.
    pub(super) hops: u64,
    /// Number of the next action.
    pub(super) action: u64,
    inbox: BinaryHeap<Reverse<Letter<P::Token>>>,
    /// Queued tokens, by receiving worker.
    filed: BTreeMap<u32, Vec<(Rank, P::Token)>>,
}

impl<P: Process<Order = Infallible>> EmulatedWorker<P> {
    pub(super) fn new(first: u32, processes: Vec<P>) -> Self {
        Self {
            first,
            roster: Roster::new(processes, RunAhead::Auto, None),
            phase: Phase::Busy,
            now: SimTime::ZERO,
            hops: 0,
            action: 0,
            inbox: BinaryHeap::new(),
            filed: BTreeMap::new(),
        }
    }

    /// Returns the local index of a process of this worker.
    pub(super) fn local(&self, rank: Rank) -> u32 {
        rank.get() - self.first
    }

    fn owns(&self, rank: Rank) -> bool {
        (self.first..self.first + self.roster.processes.len() as u32).contains(&rank.get())
    }

    /// Resumes a process; returns the number of its steps.
    pub(super) fn turn(&mut self, local: u32, granted: bool) -> u64 {
        let before = self.roster.steps;
        let rank = Rank::new(self.first + local);
        // Ignored: the process has failed already in the run that is emulated.
        let _ = self.roster.turn(local, rank, SimTime::MAX, granted);
        if self.roster.has_halted(local) {
            self.roster.unhalt(local, rank);
        }
        self.roster.steps - before
    }

    /// Delivers a token to a process of this worker.
    pub(super) fn deliver(&mut self, to: Rank, token: P::Token) {
        let _ = self.roster.deliver(self.local(to), to, token);
    }

    /// Delivers the tokens of the outbox, or queues them for the workers that own their receivers; returns the number of
    /// queued ones.
    pub(super) fn dispatch(&mut self, owner: impl Fn(Rank) -> u32) -> u64 {
        let (mut next, mut abroad) = (0, 0);
        while let Some((to, token)) = self.roster.outbox.packet(next) {
            next += 1;
            if self.owns(to) {
                self.deliver(to, token);
            } else {
                abroad += 1;
                self.filed.entry(owner(to)).or_default().push((to, token));
            }
        }
        self.roster.outbox.clear();
        abroad
    }

    /// Returns the workers for which at least `tokens` tokens are queued.
    pub(super) fn filed(&self, tokens: usize) -> Vec<u32> {
        let filed = self.filed.iter();
        filed.filter(|(_, packets)| packets.len() >= tokens).map(|(&worker, _)| worker).collect()
    }

    /// Takes the tokens queued for a worker.
    pub(super) fn take_filed(&mut self, worker: u32) -> Vec<(Rank, P::Token)> {
        self.filed.remove(&worker).unwrap_or_default()
    }

    pub(super) fn take_in(&mut self, letter: Letter<P::Token>) {
        self.inbox.push(Reverse(letter));
    }

    pub(super) fn next_arrival(&self) -> Option<SimTime> {
        self.inbox.peek().map(|Reverse(letter)| letter.arrives)
    }

    /// Takes the next message that has arrived.
    pub(super) fn next_letter(&mut self) -> Option<Letter<P::Token>> {
        self.next_arrival().filter(|&arrives| arrives <= self.now)?;
        self.inbox.pop().map(|Reverse(letter)| letter)
    }
}
