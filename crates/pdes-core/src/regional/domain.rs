//! A region group: a region and the logical processes that belong to it.

use super::post::{Letter, Letters};
use super::standing::Standing;
use super::{Region, RegionIndex, Seat};
use crate::engine::first_fault::FirstFault;
use crate::engine::jitter::Jitter;
use crate::turns::Turns;
use crate::{Process, Rank, SimTime, Wake};

/// The outgoing tokens and messages of a region group.
pub(super) struct Sent<T, M> {
    pub(super) tokens: Vec<(RegionIndex, Rank, T)>,
    pub(super) mail: Vec<(RegionIndex, M)>,
}

impl<T, M> Sent<T, M> {
    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.mail.is_empty()
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RegionIndex, Letter<T, M>)> + '_ {
        let tokens = self.tokens.drain(..).map(|(home, to, token)| (home, Letter::Token(to, token)));
        tokens.chain(self.mail.drain(..).map(|(to, mail)| (to, Letter::Mail(mail))))
    }
}

/// A region with its processes: the unit that a worker claims and runs.
pub(super) struct Domain<P: Process, R: Region<P>> {
    index: RegionIndex,
    region: R,
    ranks: Vec<Rank>,
    turns: Turns<P>,
    /// First conditional event for which a process has paused; it ends the run.
    conditional: Option<(SimTime, Rank)>,
    pub(super) sent: Sent<P::Token, R::Mail>,
    /// Contribution after the last task.
    standing: Standing,
    /// True if the group has no event and no active boundary, unless a message comes.
    is_dormant: bool,
}

/// The result of a region group.
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
            ranks,
            turns: Turns::new(processes, jitter.map(|seed| Jitter::new(seed, index as usize))),
            conditional: None,
            sent: Sent { tokens: Vec::new(), mail: Vec::new() },
            standing: Standing { event: SimTime::ZERO, ..Standing::NOTHING },
            is_dormant: false,
        }
    }

    /// Returns the number of steps of its processes.
    pub(super) fn steps(&self) -> u64 {
        self.turns.steps
    }

    /// Returns the contribution of the group, without the number of messages that it has sent.
    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    /// Returns true if the group has no event before an instant, unless a message comes.
    pub(super) fn rests_until(&self, end: SimTime) -> bool {
        self.standing.event >= end
    }

    /// Returns true if the group is inactive at boundaries, unless a message comes.
    pub(super) fn is_dormant(&self) -> bool {
        self.is_dormant
    }

    /// Updates the contribution after a task.
    pub(super) fn take_stock(&mut self) {
        let failure = self.turns.fault.cutoff();
        let event = self.region.next().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let boundary = self.region.next_boundary().filter(|&at| at <= failure).unwrap_or(SimTime::MAX);
        let conditional = self.conditional.map_or(SimTime::MAX, |(at, _)| at);
        self.standing = Standing { letters: 0, event, boundary, failure, conditional };
    }

    /// Runs all events before an instant and not after a failure.
    pub(super) fn run(&mut self, end: SimTime, cutoff: SimTime, seats: &[Seat]) {
        let cutoff = cutoff.min(self.turns.fault.cutoff());
        self.run_processes(cutoff, seats);
        while let Some(at) = self.region.next()
            && at < end
            && at <= cutoff.min(self.turns.fault.cutoff())
        {
            if let Err((rank, fault)) = self.region.advance(&mut self.turns.outbox) {
                // Later events of the region do not matter any more.
                self.turns.fault.record(rank, fault);
                break;
            }
            self.dispatch(seats);
            self.run_processes(cutoff, seats);
        }
        self.take_stock();
        self.is_dormant = self.region.next().is_none() && self.region.next_boundary().is_none();
    }

    /// Delivers messages, and runs the processes that they make ready.
    pub(super) fn take_in(
        &mut self,
        letters: &mut Letters<P::Token, R::Mail>,
        cutoff: SimTime,
        seats: &[Seat],
    ) {
        self.is_dormant = false;
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

    /// Takes part in a round of an exchange.
    pub(super) fn converse(&mut self, boundary: SimTime, conversation: u32, round: u32) {
        self.region.converse(boundary, conversation, round, &mut self.sent.mail);
        self.take_stock();
    }

    pub(super) fn enter(&mut self, boundary: SimTime) {
        self.region.enter(boundary);
        self.take_stock();
    }

    #[inline]
    fn run_processes(&mut self, cutoff: SimTime, seats: &[Seat]) {
        if self.turns.has_work() {
            self.run_ready_processes(cutoff, seats);
        }
    }

    fn run_ready_processes(&mut self, cutoff: SimTime, seats: &[Seat]) {
        while let Some(place) = self.turns.next_ready() {
            let rank = self.ranks[place as usize];
            if let Some(at) = self.turns.turn(place, rank, cutoff, false) {
                self.conditional.get_or_insert((at, rank));
            }
            self.dispatch(seats);
        }
        self.turns.sort_orders();
        for &filed in &self.turns.outbox.orders {
            self.region.file(filed, &mut self.sent.mail);
        }
        self.turns.outbox.orders.clear();
    }

    /// Delivers the tokens of the outbox, and those that their receivers send in response; keeps those for other regions.
    fn dispatch(&mut self, seats: &[Seat]) {
        let mut next = 0;
        while let Some((to, token)) = self.turns.outbox.packet(next) {
            next += 1;
            let home = seats[to.index()].home;
            if home == self.index {
                self.deliver(to, token, seats);
            } else {
                self.sent.tokens.push((home, to, token));
            }
        }
        self.turns.outbox.clear();
    }

    fn deliver(&mut self, to: Rank, token: P::Token, seats: &[Seat]) {
        if let Wake::Conditional(at) = self.turns.deliver(seats[to.index()].place, to, token) {
            self.conditional.get_or_insert((at, to));
        }
    }

    pub(super) fn finish(self) -> Left<P, R> {
        let waiting = self.turns.unfinished().map(|place| self.ranks[place]).collect();
        let Self { region, turns: Turns { processes, fault, steps, .. }, conditional, .. } = self;
        Left { region, processes, waiting, fault, steps, conditional }
    }
}
