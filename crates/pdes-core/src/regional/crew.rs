//! The workers, and the phases through which they take all domains.

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

/// What the workers share.
pub(super) struct Commons<'a, P: Process, R: Region<P>> {
    /// The domains of this process, and the numbers of their regions.
    domains: &'a [Mutex<Domain<P, R>>],
    own: Range<RegionIndex>,
    seats: &'a [Seat],
    office: &'a PostOffice<P::Token, R::Mail>,
    /// The last phase in which each domain has been taken care of.
    claims: Box<[AtomicU64]>,
    balance: Balance,
    meeting: Meeting<WORDS>,
    epoch: SimDuration,
    /// Whether there are regions elsewhere, which the first worker speaks to.
    is_part: bool,
    progress: &'a Progress,
}

/// What is done with domains in a phase.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Runs what happens before the end of the epoch.
    Run,
    /// Acts on what processes have sent each other.
    TakeIn,
    /// Takes part in a conversation.
    Converse { conversation: u32, round: u32 },
    /// Begins the next epoch.
    Enter,
}

/// A worker.
pub(super) struct Crew<'c, 'a, 'g, P: Process, R: Region<P>> {
    commons: &'c Commons<'a, P, R>,
    me: usize,
    phase: u64,
    epochs: u64,
    /// Where this worker begins.
    first: usize,
    meetings: usize,
    /// The boundary at the end of the epoch in progress.
    end: SimTime,
    /// The earliest failure of all, as far as is known.
    failure: SimTime,
    steps: u64,
    counts: Crossings,
    letters: Letters<P::Token, R::Mail>,
    bags: Bags<P::Token, R::Mail>,
    pub(super) stopwatch: Option<Stopwatch>,
    pub(super) gateway: Option<Gateway<'g, P::Token, R::Mail>>,
}

/// What a worker leaves behind.
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

    /// Has the first worker speak to regions elsewhere through its [gateway](Crew::gateway), or not.
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

    /// Runs domains until nothing happens any more, or a worker panics, or another process has gone.
    pub(super) fn run(mut self) -> Trail<'g, P::Token, R::Mail> {
        while self.epoch().is_some() {}
        let Self { counts: crossings, stopwatch, gateway, .. } = self;
        Trail { crossings, stopwatch, gateway }
    }

    /// Takes all domains through an epoch and over the boundary at its end; returns whether there is another one.
    fn epoch(&mut self) -> Option<()> {
        let mut all = self.phase(Task::Run)?;
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

    /// Returns the end of the next epoch in which something happens; `None` where the run is over.
    fn next_end(&self, all: Standing) -> Option<SimTime> {
        let next = all.event.min(all.boundary);
        if next == SimTime::MAX || next > all.failure || all.failure < self.end {
            return None;
        }
        let epoch = self.commons.epoch.as_picos();
        let of_event = (all.event.as_picos() / epoch).saturating_add(1).saturating_mul(epoch);
        Some(SimTime::from_picos(of_event).min(all.boundary))
    }

    /// Does something with all domains that it concerns, together with the other workers.
    fn phase(&mut self, task: Task) -> Option<Standing> {
        let _guard = self.commons.meeting.break_up_on_panic();
        self.phase += 1;
        let count = self.commons.domains.len();
        // Each worker begins with domains of its own, and then helps others with theirs.
        let first = self.first;
        let mut brought = Standing::NOTHING;
        for number in (first..count).chain(0..first) {
            let claim = &self.commons.claims[number];
            // Relaxed: the lock of the domain orders what is done with it.
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

    /// Meets the other workers of this process.
    fn meet(&mut self, brought: Standing) -> Option<Standing> {
        let brought = self.commons.meeting.hold(self.meetings, self.me, brought.words());
        self.meetings += 1;
        brought.map(Standing::of)
    }

    /// Learns how the regions of all processes stand, those here being like this, and gets their letters.
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
