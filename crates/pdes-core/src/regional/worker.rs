//! The workers of the regional engine, and the phases in which they run all region groups.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::balance::LoadBalance;
use super::contribution::{Contribution, WORDS};
use super::gateway::RegionGateway;
use super::mailboxes::{Mailboxes, OutgoingBuffers, RegionMessages};
use super::region_group::RegionGroup;
use super::team::{Pace, Team};
use super::timing::Stopwatch;
use super::{ExchangeCounts, ProcessLocation, Region, RegionIndex};
use crate::{Barrier, Interrupt, Process, Progress, SimDuration, SimTime};

/// The state that the workers of a member share.
pub(super) struct SharedState<'a, P: Process, R: Region<P>> {
    /// Region groups of this member.
    groups: &'a [Mutex<RegionGroup<P, R>>],
    /// Indices of the regions of this member.
    regions: Range<RegionIndex>,
    locations: &'a [ProcessLocation],
    mailboxes: &'a Mailboxes<P::Token, R::Message>,
    /// Last phase in which each region group was claimed by a worker.
    claims: Box<[AtomicU64]>,
    balance: LoadBalance,
    barrier: Barrier<WORDS>,
    team: Team<Position>,
    epoch: SimDuration,
    /// Cut from which the run continues.
    origin: Option<SimTime>,
    /// True if other members have regions, too; the first worker communicates with them.
    is_distributed: bool,
    interrupt: &'a Interrupt,
    progress: &'a Progress,
}

/// The task of all region groups in a phase.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Run the events before the end of the epoch.
    Run,
    /// Deliver the messages that were sent in the phase before.
    Deliver,
    /// Take part in a round of an exchange.
    ExchangeRound { exchange: u32, round: u32 },
    /// Begin the next epoch.
    BeginEpoch,
}

/// The position of a worker in the run, which is that of all workers that take part.
#[derive(Clone, Copy, Debug)]
struct Position {
    phase: u64,
    epochs: u64,
    barriers: usize,
    end: SimTime,
    cut: Option<SimTime>,
    failure: SimTime,
}

/// A worker: a thread that claims region groups and runs them, phase by phase.
pub(super) struct RegionWorker<'c, 'a, 'g, P: Process, R: Region<P>> {
    shared: &'c SharedState<'a, P, R>,
    me: usize,
    phase: u64,
    epochs: u64,
    /// Region group that this worker claims first in each phase.
    first_group: usize,
    barriers: usize,
    /// Boundary at the end of the present epoch.
    end: SimTime,
    /// Instant of the cut at which the run ends, once a process has come to a checkpoint.
    cut: Option<SimTime>,
    /// Time of the earliest known failure of all members.
    failure: SimTime,
    steps: u64,
    counts: ExchangeCounts,
    stop: Option<Stop>,
    messages: RegionMessages<P::Token, R::Message>,
    outgoing: OutgoingBuffers<P::Token, R::Message>,
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) gateway: Option<RegionGateway<'g, P::Token, R::Message>>,
    /// Pace of the first worker, if there are others.
    pub(super) pace: Option<Pace>,
    /// The others take no part.
    is_alone: bool,
    /// Number of calls that this worker has followed.
    calls: u64,
}

/// A run that ends before its events do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was interrupted.
    Interrupted,
    /// It has come to the cut at this instant.
    AtCut(SimTime),
}

/// The result of a worker.
pub(super) struct WorkerResult<'a, T, M> {
    pub(super) exchange_counts: ExchangeCounts,
    pub(super) stop: Option<Stop>,
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) gateway: Option<RegionGateway<'a, T, M>>,
}

impl<'a, P: Process, R: Region<P>> SharedState<'a, P, R> {
    pub(super) fn new(
        groups: &'a [Mutex<RegionGroup<P, R>>],
        own: Range<RegionIndex>,
        locations: &'a [ProcessLocation],
        mailboxes: &'a Mailboxes<P::Token, R::Message>,
        (epoch, origin, workers): (SimDuration, Option<SimTime>, usize),
        interrupt: &'a Interrupt,
        progress: &'a Progress,
    ) -> Self {
        let claims = groups.iter().map(|_| AtomicU64::new(0)).collect();
        let balance = LoadBalance::new(groups.len(), workers);
        let (barrier, is_distributed) = (Barrier::new(workers), false);
        Self {
            groups,
            regions: own,
            locations,
            mailboxes,
            claims,
            balance,
            barrier,
            team: Team::new(),
            epoch,
            origin,
            is_distributed,
            interrupt,
            progress,
        }
    }

    /// Sets whether the first worker communicates with other members through its [gateway](RegionWorker::gateway).
    pub(super) fn with_distributed(self, is_distributed: bool) -> Self {
        Self { is_distributed, ..self }
    }
}

impl<'c, 'a, 'g, P: Process, R: Region<P>> RegionWorker<'c, 'a, 'g, P, R> {
    pub(super) fn new(shared: &'c SharedState<'a, P, R>, me: usize) -> Self {
        let end = shared.origin.unwrap_or(SimTime::ZERO.saturating_add(shared.epoch));
        let (failure, messages) = (SimTime::MAX, Vec::new());
        let counts = ExchangeCounts::default();
        let outgoing = OutgoingBuffers::new(shared.mailboxes.regions());
        Self {
            shared,
            me,
            phase: 0,
            epochs: 0,
            first_group: shared.balance.first_group(me),
            barriers: 0,
            end,
            cut: None,
            failure,
            steps: 0,
            counts,
            stop: None,
            messages,
            outgoing,
            stopwatch: None,
            gateway: None,
            pace: None,
            is_alone: false,
            calls: 0,
        }
    }

    /// Runs epochs until no event is left, or the run is interrupted, or a worker panics, or another member has left.
    pub(super) fn run(mut self) -> WorkerResult<'g, P::Token, R::Message> {
        let _guard = self.shared.barrier.abort_on_panic();
        let _end = (self.me == 0).then(|| self.shared.team.end_on_drop());
        while self.takes_part() && self.run_epoch().is_some() {}
        let Self { counts, stop, stopwatch, gateway, .. } = self;
        WorkerResult { exchange_counts: counts, stop, stopwatch, gateway }
    }

    /// Decides whether this worker runs the next epoch: the first one always does, the others wait until it calls them. Returns false if
    /// the run has ended without this worker.
    fn takes_part(&mut self) -> bool {
        let team = &self.shared.team;
        if self.me > 0 {
            return !team.is_alone_from(self.epochs) || self.follow_call().is_some();
        }
        let Some(pace) = &mut self.pace else { return true };
        self.is_alone |= team.is_alone_from(self.epochs);
        let changes = self.epochs > 0 && pace.count_epoch();
        if changes && self.is_alone {
            self.is_alone = false;
            let Self { phase, epochs, barriers, end, cut, failure, .. } = *self;
            team.call(Position { phase, epochs, barriers, end, cut, failure });
        } else if changes {
            team.dismiss_after(self.epochs);
        }
        true
    }

    /// Waits for the next call of the first worker, and continues from its position.
    fn follow_call(&mut self) -> Option<()> {
        let Position { phase, epochs, barriers, end, cut, failure } =
            self.shared.team.wait_for_call(self.calls)?;
        self.calls += 1;
        (self.phase, self.epochs, self.barriers) = (phase, epochs, barriers);
        (self.end, self.cut, self.failure) = (end, cut, failure);
        self.first_group = self.shared.balance.first_group(self.me);
        Some(())
    }

    /// Runs all region groups through an epoch and the exchanges at its end; returns `None` if it was the last one.
    fn run_epoch(&mut self) -> Option<()> {
        let mut all = self.run_phase(Task::Run)?;
        if !self.delivers_in_next_epoch(all) {
            all = self.deliver_all(all)?;
        }
        if all.conditional != SimTime::MAX {
            return None;
        }
        if self.cut.is_none() && all.checkpoint != SimTime::MAX {
            self.cut = Some(self.cut_after(all.checkpoint));
        }
        if let Some(cut) = self.next_cut().filter(|&cut| cut <= self.end) {
            self.stop = Some(Stop::AtCut(cut));
            return None;
        }
        if all.boundary <= self.end && all.failure >= self.end {
            self.counts.boundaries += 1;
            for (exchange, &most) in (0..).zip(R::MAX_ROUNDS) {
                for round in 0..most {
                    let all = self.run_phase(Task::ExchangeRound { exchange, round })?;
                    if all.messages == 0 {
                        break;
                    }
                    self.count(all);
                }
            }
            all = self.run_phase(Task::BeginEpoch)?;
            all = self.deliver_all(all)?;
        }
        self.shared.progress.publish(self.me, self.steps, self.end);
        if self.shared.balance.is_sampled(self.epochs) {
            self.first_group = self.shared.balance.first_group(self.me);
        }
        self.epochs += 1;
        self.end = self.next_epoch_end(all)?;
        // A run that continues an earlier one begins with an epoch without events, and makes some progress in the next one.
        let is_stopped = all.is_interrupted && all.failure == SimTime::MAX && self.epochs > 1;
        self.stop = is_stopped.then_some(Stop::Interrupted);
        (!is_stopped).then_some(())
    }

    /// Returns whether the messages of regions are delivered as the next epoch is run, which saves a barrier, and counts them then: it begins
    /// whatever they are, and they change nothing elsewhere before its end. Processes that get tokens may answer for earlier instants.
    fn delivers_in_next_epoch(&mut self, all: Contribution) -> bool {
        let Contribution { messages, event, .. } = all;
        let has_events_only = all == Contribution { messages, event, ..Contribution::IDENTITY };
        let has_no_exchanges = R::BEGINS_ANYWHERE && R::MAX_ROUNDS.is_empty();
        let longest = self.end.saturating_add(self.shared.epoch);
        let is_next = || self.next_epoch_end(all).is_some_and(|end| end <= longest);
        let is_so = has_no_exchanges && messages > 0 && has_events_only && self.cut.is_none() && is_next();
        if is_so {
            self.count(all);
        }
        is_so
    }

    /// Delivers what region groups have sent in a phase, until none is sent: a process that gets a token may send further ones.
    fn deliver_all(&mut self, mut all: Contribution) -> Option<Contribution> {
        while all.messages > 0 {
            self.count(all);
            all = self.run_phase(Task::Deliver)?;
        }
        Some(all)
    }

    /// Returns the instant of the cut after a checkpoint. It depends on the checkpoint alone where epochs may begin at any instant.
    fn cut_after(&self, checkpoint: SimTime) -> SimTime {
        match R::BEGINS_ANYWHERE {
            true => checkpoint.saturating_add(self.shared.epoch).max(self.end),
            false => self.end,
        }
    }

    /// Returns the instant of the next cut; there is none after a failure.
    fn next_cut(&self) -> Option<SimTime> {
        self.cut.filter(|_| self.failure == SimTime::MAX)
    }

    /// Returns the epoch that begins at the end of the present one.
    fn next_epoch(&self) -> Range<SimTime> {
        let end = self.end.saturating_add(self.shared.epoch);
        self.end..self.next_cut().map_or(end, |cut| end.min(cut))
    }

    fn count(&mut self, all: Contribution) {
        self.counts.rounds += 1;
        self.counts.messages += all.messages;
    }

    /// Returns the end of the next epoch that has an event or an active boundary; `None` if the run is over.
    fn next_epoch_end(&self, all: Contribution) -> Option<SimTime> {
        let next = all.event.min(all.boundary);
        if next == SimTime::MAX || next > all.failure || all.failure < self.end {
            return None;
        }
        let (epoch, origin) =
            (self.shared.epoch.as_picos(), self.shared.origin.unwrap_or_default().as_picos());
        let epochs = (all.event.as_picos().saturating_sub(origin) / epoch).saturating_add(1);
        let of_event = epochs.saturating_mul(epoch).saturating_add(origin);
        let next = SimTime::from_picos(of_event).min(all.boundary);
        Some(match self.next_cut() {
            // A boundary that has passed is that of an epoch which the cut divides: its work comes after the cut.
            Some(cut) if next <= self.end || next > cut => cut,
            _ => next,
        })
    }

    /// Runs a task on all region groups, together with the other workers; returns the reduction over all members.
    fn run_phase(&mut self, task: Task) -> Option<Contribution> {
        self.phase += 1;
        let count = self.shared.groups.len();
        // Work stealing: each worker begins with its own block of region groups, and then claims those of others.
        let first = self.first_group;
        let mut contribution = Contribution::IDENTITY;
        for number in (first..count).chain(0..first) {
            let claim = &self.shared.claims[number];
            // Relaxed: the mutex of the region group orders accesses to it.
            if claim.load(Ordering::Relaxed) < self.phase
                && claim.fetch_max(self.phase, Ordering::Relaxed) < self.phase
            {
                contribution.merge(self.run_group(number, task));
            }
        }
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.end_phase();
        }
        contribution.is_interrupted = self.shared.interrupt.is_requested();
        let mut all = self.reduce_workers(contribution)?;
        if self.shared.is_distributed {
            all = self.reduce_members(all)?;
        }
        self.failure = all.failure;
        Some(all)
    }

    /// Reduces the contributions of this member's workers.
    fn reduce_workers(&mut self, contribution: Contribution) -> Option<Contribution> {
        if self.is_alone {
            return Some(contribution);
        }
        let contribution = self.shared.barrier.all_reduce(self.barriers, self.me, contribution.words());
        self.barriers += 1;
        contribution.map(Contribution::reduce)
    }

    /// Reduces the contributions of all members, of which `here` is that of this one, and receives the messages of their
    /// regions. The first worker does so; a second barrier passes the result on to the other workers.
    fn reduce_members(&mut self, here: Contribution) -> Option<Contribution> {
        let result = match &mut self.gateway {
            Some(gateway) => {
                let all = gateway.all_reduce(self.shared.mailboxes, self.phase + 1, here);
                if all.is_none() {
                    self.shared.barrier.abort();
                }
                all?
            }
            None => Contribution::IDENTITY,
        };
        self.reduce_workers(result)
    }

    fn run_group(&mut self, index: usize, task: Task) -> Contribution {
        let SharedState { groups, locations, mailboxes, .. } = *self.shared;
        let number = self.shared.regions.start + index as RegionIndex;
        let mut group = groups[index].lock();
        let has_messages = mailboxes.has_messages(self.phase, number);
        let is_called = has_messages
            || match task {
                Task::Run => !group.is_idle_until(self.end),
                Task::BeginEpoch | Task::ExchangeRound { round: 0, .. } => !group.is_inactive(),
                Task::Deliver | Task::ExchangeRound { .. } => false,
            };
        if !is_called {
            return group.contribution();
        }
        let is_sampled = self.shared.balance.is_sampled(self.epochs);
        let started = (is_sampled || self.stopwatch.is_some()).then(Instant::now);
        let before = group.steps();
        if has_messages {
            mailboxes.take(self.phase, number, &mut self.messages);
            group.deliver_messages(&mut self.messages, self.failure, locations);
        }
        match task {
            Task::Run => group.run(self.end, self.failure, locations),
            Task::Deliver => group.settle(),
            Task::ExchangeRound { exchange, round } => {
                group.exchange_round(self.next_epoch(), exchange, round);
            }
            Task::BeginEpoch => group.begin_epoch(self.next_epoch()),
        }
        self.steps += group.steps() - before;
        let outgoing = group.outgoing();
        let has_tokens = outgoing.has_tokens();
        let messages = if outgoing.is_empty() {
            0
        } else {
            mailboxes.send(self.phase, number, outgoing.drain(), &mut self.outgoing)
        };
        let contribution = Contribution { messages, has_tokens, ..group.contribution() };
        if let Some(started) = started {
            let taken = started.elapsed().as_nanos() as u64;
            if let Some(stopwatch) = &mut self.stopwatch {
                stopwatch.add(index, taken);
            }
            if is_sampled {
                self.shared.balance.add(index, self.epochs, taken);
            }
        }
        contribution
    }
}
