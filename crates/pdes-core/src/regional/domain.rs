//! A region and the processes that live there.

use std::collections::VecDeque;

use super::meeting::Standing;
use super::post::{Letter, Letters};
use super::{Filed, Region, RegionIndex, Seat};
use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::{Outbox, Pause, Process, Rank, SimTime, Turn, Wake};

/// Steps of one turn: a bound on the time between two looks of whoever watches.
const STEPS_PER_TURN: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Blocked,
    /// Past the failure that ends the run.
    Parked,
    Finished,
    Failed,
}

/// What a domain sends to others.
pub(super) struct Sent<T, M> {
    pub(super) tokens: Vec<(RegionIndex, Rank, T)>,
    pub(super) mail: Vec<(RegionIndex, M)>,
}

impl<T, M> Sent<T, M> {
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RegionIndex, Letter<T, M>)> + '_ {
        let tokens = self.tokens.drain(..).map(|(home, to, token)| (home, Letter::Token(to, token)));
        tokens.chain(self.mail.drain(..).map(|(to, mail)| (to, Letter::Mail(mail))))
    }
}

/// A region with its processes.
pub(super) struct Domain<P: Process, R: Region<P>> {
    index: RegionIndex,
    region: R,
    ranks: Vec<Rank>,
    processes: Vec<P>,
    states: Vec<State>,
    ready: VecDeque<u32>,
    fault: FirstFault<P::Error>,
    /// When a process paused for a conditional event.
    conditional: Option<(SimTime, Rank)>,
    outbox: Outbox<P::Token, P::Order>,
    pub(super) sent: Sent<P::Token, R::Mail>,
    pub(super) steps: u64,
    jitter: Option<Jitter>,
}

/// What is left of a domain after a run.
pub(super) struct Left<P: Process, R> {
    pub(super) region: R,
    pub(super) processes: Vec<P>,
    pub(super) waiting: Vec<Rank>,
    pub(super) fault: FirstFault<P::Error>,
    pub(super) steps: u64,
    pub(super) conditional: Option<(SimTime, Rank)>,
}

impl<P: Process, R: Region<P>> Domain<P, R> {
    pub(super) fn new(index: RegionIndex, region: R, residents: Vec<(Rank, P)>, jitter: Option<u64>) -> Self {
        let (ranks, processes): (Vec<Rank>, Vec<P>) = residents.into_iter().unzip();
        Self {
            index,
            region,
            states: vec![State::Ready; ranks.len()],
            ready: (0..ranks.len() as u32).collect(),
            ranks,
            processes,
            fault: FirstFault::none(),
            conditional: None,
            outbox: Outbox::new(),
            sent: Sent { tokens: Vec::new(), mail: Vec::new() },
            steps: 0,
            jitter: jitter.map(|seed| Jitter::new(seed, index as usize)),
        }
    }

    /// How the domain stands, but for the letters that it has sent.
    pub(super) fn standing(&mut self) -> Standing {
        let failure = self.fault.cutoff();
        let event = self.region.next().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let boundary = self.region.next_boundary().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let conditional = self.conditional.map_or(SimTime::MAX, |(at, _)| at);
        Standing { letters: 0, event, boundary, failure, conditional }
    }

    /// Runs all that happens before an instant, unless it lies after a failure.
    pub(super) fn run(&mut self, end: SimTime, cutoff: SimTime, seats: &[Seat]) {
        let cutoff = cutoff.min(self.fault.cutoff());
        self.run_processes(cutoff, seats);
        while let Some(at) = self.region.next()
            && at < end
            && at <= cutoff.min(self.fault.cutoff())
        {
            if let Err((rank, fault)) = self.region.advance(&mut self.outbox) {
                // What the region does after that is nothing that matters.
                self.fault.record(rank, fault);
                return;
            }
            self.dispatch(seats);
            self.run_processes(cutoff, seats);
        }
    }

    /// Takes letters in, and lets the processes act on them.
    pub(super) fn take_in(
        &mut self,
        letters: &mut Letters<P::Token, R::Mail>,
        cutoff: SimTime,
        seats: &[Seat],
    ) {
        for (_, letter) in letters.drain(..) {
            match letter {
                Letter::Token(to, token) => {
                    self.deliver(to, token, seats);
                    self.dispatch(seats);
                }
                Letter::Mail(mail) => self.region.receive(mail),
            }
        }
        self.run_processes(cutoff, seats);
    }

    /// Takes part in a round of a conversation.
    pub(super) fn converse(&mut self, boundary: SimTime, conversation: u32, round: u32) {
        self.region.converse(boundary, conversation, round, &mut self.sent.mail);
    }

    pub(super) fn enter(&mut self, boundary: SimTime) {
        self.region.enter(boundary);
    }

    fn run_processes(&mut self, cutoff: SimTime, seats: &[Seat]) {
        while let Some(place) = self.next_ready() {
            self.turn(place, cutoff, seats);
        }
        let orders = &mut self.outbox.orders;
        // Stable: the orders of one process at one time and place stay as they were filed.
        orders.sort_by_key(|filed| (filed.at, filed.place, filed.from));
        for Filed { at, place, from, order } in orders.drain(..) {
            self.region.file(Filed { at, place, from, order }, &mut self.sent.mail);
        }
    }

    fn next_ready(&mut self) -> Option<u32> {
        if let Some(jitter) = &mut self.jitter
            && !self.ready.is_empty()
        {
            let pick = jitter.below(self.ready.len());
            self.ready.swap(0, pick);
        }
        self.ready.pop_front()
    }

    fn turn(&mut self, place: u32, cutoff: SimTime, seats: &[Seat]) {
        let index = place as usize;
        let steps = self.jitter.as_mut().map_or(STEPS_PER_TURN, |jitter| 1 + jitter.below(64) as u32);
        let mut turn = Turn { horizon: cutoff.min(self.fault.cutoff()), steps, granted: false };
        self.outbox.sender = self.ranks[index];
        let result = self.processes[index].resume(&mut turn, &mut self.outbox);
        self.steps += u64::from(steps - turn.steps);
        self.states[index] = match result {
            Ok(Pause::Blocked) => State::Blocked,
            Ok(Pause::Horizon) => State::Parked,
            Ok(Pause::TurnOver | Pause::Halted) => {
                self.ready.push_back(place);
                State::Ready
            }
            Ok(Pause::Conditional(at)) => {
                self.conditional.get_or_insert((at, self.ranks[index]));
                State::Blocked
            }
            Ok(Pause::Finished) => State::Finished,
            Err(fault) => {
                self.fault.record(self.ranks[index], fault);
                State::Failed
            }
        };
        self.dispatch(seats);
    }

    /// Brings the tokens of the outbox to their receivers, and those that the receivers send in answer.
    fn dispatch(&mut self, seats: &[Seat]) {
        let mut next = 0;
        while let Some((to, token)) = self.outbox.packet(next) {
            next += 1;
            let home = seats[to.index()].home;
            if home == self.index {
                self.deliver(to, token, seats);
            } else {
                self.sent.tokens.push((home, to, token));
            }
        }
        self.outbox.clear();
    }

    fn deliver(&mut self, to: Rank, token: P::Token, seats: &[Seat]) {
        let place = seats[to.index()].place;
        self.outbox.sender = to;
        match self.processes[place as usize].deliver(token, &mut self.outbox) {
            Ok(Wake::Ready) if self.states[place as usize] == State::Blocked => {
                self.states[place as usize] = State::Ready;
                self.ready.push_back(place);
            }
            Ok(Wake::Conditional(at)) if self.states[place as usize] == State::Blocked => {
                self.conditional.get_or_insert((at, to));
            }
            Ok(_) => {}
            // The process goes on: what it does before the failure's time may lead to an earlier one.
            Err(fault) => self.fault.record(to, fault),
        }
    }

    pub(super) fn finish(self) -> Left<P, R> {
        let states = self.ranks.iter().zip(&self.states);
        let waiting = states.filter(|(_, state)| **state != State::Finished).map(|(&rank, _)| rank).collect();
        let Self { region, processes, fault, steps, conditional, .. } = self;
        Left { region, processes, waiting, fault, steps, conditional }
    }
}
