//! The workers of the regional engine, and the phases in which they run all region groups.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::balance::Balance;
use super::domain::Domain;
use super::gateway::Gateway;
use super::post::{Bags, Letters, PostOffice};
use super::standing::{Standing, WORDS};
use super::timing::Stopwatch;
use super::{Crossings, Region, RegionIndex, Seat};
use crate::{Meeting, Process, Progress, SimDuration, SimTime};

/// The state that the workers of a member share.
pub(super) struct Commons<'a, P: Process, R: Region<P>> {
    /// Region groups of this member.
    domains: &'a [Mutex<Domain<P, R>>],
    /// Indices of the regions of this member.
    own: Range<RegionIndex>,
    seats: &'a [Seat],
    office: &'a PostOffice<P::Token, R::Mail>,
    /// Last phase in which each region group was claimed by a worker.
    claims: Box<[AtomicU64]>,
    balance: Balance,
    meeting: Meeting<WORDS>,
    epoch: SimDuration,
    /// True if other members have regions, too; the first worker communicates with them.
    is_part: bool,
    progress: &'a Progress,
}

/// The task of all region groups in a phase.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Run the events before the end of the epoch.
    Run,
    /// Deliver the messages that were sent in the phase before.
    TakeIn,
    /// Take part in a round of an exchange.
    Converse { conversation: u32, round: u32 },
    /// Begin the next epoch.
    Enter,
}

/// A worker: a thread that claims region groups and runs them, phase by phase.
pub(super) struct Crew<'c, 'a, 'g, P: Process, R: Region<P>> {
    commons: &'c Commons<'a, P, R>,
    me: usize,
    phase: u64,
    epochs: u64,
    /// Region group that this worker claims first in each phase.
    first: usize,
    meetings: usize,
    /// Boundary at the end of the present epoch.
    end: SimTime,
    /// Time of the earliest known failure of all members.
    failure: SimTime,
    steps: u64,
    counts: Crossings,
    letters: Letters<P::Token, R::Mail>,
    bags: Bags<P::Token, R::Mail>,
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) gateway: Option<Gateway<'g, P::Token, R::Mail>>,
}

/// The result of a worker.
pub(super) struct Trail<'a, T, M> {
    pub(super) crossings: Crossings,
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) gateway: Option<Gateway<'a, T, M>>,
}

impl<'a, P: Process, R: Region<P>> Commons<'a, P, R> {
    pub(super) fn new(
        domains: &'a [Mutex<Domain<P, R>>],
        own: Range<RegionIndex>,
        seats: &'a [Seat],
        office: &'a PostOffice<P::Token, R::Mail>,
        (epoch, workers): (SimDuration, usize),
        progress: &'a Progress,
    ) -> Self {
        let claims = domains.iter().map(|_| AtomicU64::new(0)).collect();
        let balance = Balance::new(domains.len(), workers);
        let (meeting, is_part) = (Meeting::new(workers), false);
        Self { domains, own, seats, office, claims, balance, meeting, epoch, is_part, progress }
    }

    /// Sets whether the first worker communicates with other members through its [gateway](RegionWorker::gateway).
    pub(super) fn with_regions_elsewhere(self, is_part: bool) -> Self {
        Self { is_part, ..self }
    }
}

impl<'c, 'a, 'g, P: Process, R: Region<P>> Crew<'c, 'a, 'g, P, R> {
    pub(super) fn new(commons: &'c Commons<'a, P, R>, me: usize) -> Self {
        let end = SimTime::ZERO.saturating_add(commons.epoch);
        let (failure, letters) = (SimTime::MAX, Vec::new());
        let counts = Crossings::default();
        let bags = Bags::new(commons.office.regions());
        Self {
            commons,
            me,
            phase: 0,
            epochs: 0,
            first: commons.balance.first(me),
            meetings: 0,
            end,
            failure,
            steps: 0,
            counts,
            letters,
            bags,
            stopwatch: None,
            gateway: None,
        }
    }

    /// Runs epochs until no event is left, or a worker panics, or another member has left.
    pub(super) fn run(mut self) -> Trail<'g, P::Token, R::Mail> {
        while self.epoch().is_some() {}
        let Self { counts: crossings, stopwatch, gateway, .. } = self;
        Trail { crossings, stopwatch, gateway }
    }

    /// Runs all region groups through an epoch and the exchanges at its end; returns `None` if it was the last one.
    fn epoch(&mut self) -> Option<()> {
        let mut all = self.phase(Task::Run)?;
        // A process that gets a token may send further ones: repeat until none is sent.
        while all.letters > 0 {
            self.count(all);
            all = self.phase(Task::TakeIn)?;
        }
        if all.conditional != SimTime::MAX {
            return None;
        }
        if all.boundary <= self.end && all.failure >= self.end {
            self.counts.boundaries += 1;
            for (conversation, &most) in (0..).zip(R::MOST_ROUNDS) {
                for round in 0..most {
                    let all = self.phase(Task::Converse { conversation, round })?;
                    if all.letters == 0 {
                        break;
                    }
                    self.count(all);
                }
            }
            all = self.phase(Task::Enter)?;
        }
        self.commons.progress.publish(self.me, self.steps, self.end);
        if self.commons.balance.samples(self.epochs) {
            self.first = self.commons.balance.first(self.me);
        }
        self.epochs += 1;
        self.end = self.next_end(all)?;
        Some(())
    }

    fn count(&mut self, all: Standing) {
        self.counts.rounds += 1;
        self.counts.letters += all.letters;
    }

    /// Returns the end of the next epoch that has an event or an active boundary; `None` if the run is over.
    fn next_end(&self, all: Standing) -> Option<SimTime> {
        let next = all.event.min(all.boundary);
        if next == SimTime::MAX || next > all.failure || all.failure < self.end {
            return None;
        }
        let epoch = self.commons.epoch.as_picos();
        let of_event = (all.event.as_picos() / epoch).saturating_add(1).saturating_mul(epoch);
        Some(SimTime::from_picos(of_event).min(all.boundary))
    }

    /// Runs a task on all region groups, together with the other workers; returns the reduction over all members.
    fn phase(&mut self, task: Task) -> Option<Standing> {
        let _guard = self.commons.meeting.break_up_on_panic();
        self.phase += 1;
        let count = self.commons.domains.len();
        // Work stealing: each worker begins with its own block of region groups, and then claims those of others.
        let first = self.first;
        let mut brought = Standing::NOTHING;
        for number in (first..count).chain(0..first) {
            let claim = &self.commons.claims[number];
            // Relaxed: the mutex of the region group orders accesses to it.
            if claim.load(Ordering::Relaxed) < self.phase
                && claim.fetch_max(self.phase, Ordering::Relaxed) < self.phase
            {
                brought.merge(self.serve(number, task));
            }
        }
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.meet();
        }
        let mut all = self.meet(brought)?;
        if self.commons.is_part {
            all = self.meet_all(all)?;
        }
        self.failure = all.failure;
        Some(all)
    }

    /// Reduces the contributions of this member's workers.
    fn meet(&mut self, brought: Standing) -> Option<Standing> {
        let brought = self.commons.meeting.hold(self.meetings, self.me, brought.words());
        self.meetings += 1;
        brought.map(Standing::of)
    }

    /// Reduces the contributions of all members, of which `here` is that of this one, and receives the messages of their
    /// regions. The first worker does so; a second barrier passes the result on to the other workers.
    fn meet_all(&mut self, here: Standing) -> Option<Standing> {
        let told = match &mut self.gateway {
            Some(gateway) => {
                let all = gateway.meet(self.commons.office, self.phase + 1, here);
                if all.is_none() {
                    self.commons.meeting.break_up();
                }
                all?
            }
            None => Standing::NOTHING,
        };
        self.meet(told)
    }

    fn serve(&mut self, place: usize, task: Task) -> Standing {
        let Commons { domains, seats, office, .. } = *self.commons;
        let number = self.commons.own.start + place as RegionIndex;
        let mut domain = domains[place].lock().expect("no worker has panicked");
        let has_letters = office.has_letters(self.phase, number);
        let is_called = has_letters
            || match task {
                Task::Run => !domain.rests_until(self.end),
                Task::Enter | Task::Converse { round: 0, .. } => !domain.is_dormant(),
                Task::TakeIn | Task::Converse { .. } => false,
            };
        if !is_called {
            return domain.standing();
        }
        let is_sampled = self.commons.balance.samples(self.epochs);
        let started = (is_sampled || self.stopwatch.is_some()).then(Instant::now);
        let before = domain.steps();
        if has_letters {
            office.take(self.phase, number, &mut self.letters);
            domain.take_in(&mut self.letters, self.failure, seats);
        }
        match task {
            Task::Run => domain.run(self.end, self.failure, seats),
            Task::TakeIn => domain.take_stock(),
            Task::Converse { conversation, round } => domain.converse(self.end, conversation, round),
            Task::Enter => domain.enter(self.end),
        }
        self.steps += domain.steps() - before;
        let letters = if domain.sent.is_empty() {
            0
        } else {
            office.send(self.phase, number, domain.sent.drain(), &mut self.bags)
        };
        let standing = Standing { letters, ..domain.standing() };
        if let Some(started) = started {
            let taken = started.elapsed().as_nanos() as u64;
            if let Some(stopwatch) = &mut self.stopwatch {
                stopwatch.add(place, taken);
            }
            if is_sampled {
                self.commons.balance.add(place, self.epochs, taken);
            }
        }
        standing
    }
}
