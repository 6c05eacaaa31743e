//! Programs that start during the run: when others end, when a scheduler decides, or again after a host has died.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpi_model::{CheckpointTimes, Launcher};
use netmodel::{HostId, Platform};
use pdes_core::{LpId, SimDuration, SimTime};

use crate::host_deaths::{HostDeathsRun, ProgramDeath, Recovery};
use crate::placement::{LpHosts, Placement};
use crate::programs::{Program, Programs};
use crate::simulation::Outcome;
use crate::spec::RunSpec;

/// Largest number of deaths of a program in a run: by then it hardly ever ends.
pub const MAX_DEATHS: usize = 1000;

/// When a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// At an instant that is known before the run; until then its ranks sleep.
    At(SimTime),
    /// When another program, which comes earlier in the run and has this number there, has ended; on the hosts of that program.
    After(usize),
    /// When the [scheduler](crate::RunSpec::scheduler) decides after its submission at this instant, on the hosts that it chooses.
    Submitted(SimTime),
}

/// At the beginning of the run.
impl Default for Start {
    fn default() -> Self {
        Self::At(SimTime::ZERO)
    }
}

/// A scheduler of the programs of a run on its hosts.
pub trait JobScheduler: fmt::Debug + Send + Sync {
    /// Returns the scheduler of an idle machine, for one run.
    fn begin(&self) -> Box<dyn SchedulerRun + '_>;
}

/// A scheduler during a run. It is told all that happens at an instant, in the order of instants, and then asked what starts.
///
/// # Laws
/// Its decisions depend on nothing else. Each program that is submitted starts once, when all others have ended at the latest.
pub trait SchedulerRun: Send {
    /// Takes notice that a program is submitted.
    fn submit(&mut self, program: usize);

    /// Takes notice that a program has ended, whose hosts are free.
    fn end(&mut self, program: usize);

    /// Returns the programs that start now, each with its hosts, on which its ranks are placed in equal blocks.
    fn start(&mut self, now: SimTime) -> Vec<(usize, Vec<HostId>)>;
}

/// The starts and the deaths of the programs of one run.
pub(crate) struct Launches<'a> {
    programs: &'a Programs,
    lp_hosts: &'a LpHosts,
    placements: Vec<Placement>,
    lives: Vec<Mutex<Life>>,
    pending: Mutex<Pending<'a>>,
}

/// The life of a program, as far as it is known.
#[derive(Clone, Debug, Default)]
struct Life {
    /// Last start, and the number of starts.
    start: Option<SimTime>,
    starts: u32,
    /// Instant at which the program dies unless it ends before.
    death: Option<SimTime>,
    /// Instant at which it starts again.
    restart: Option<SimTime>,
    checkpoints: Option<CheckpointTimes>,
    /// Number of checkpoints that all ranks have written since the start at its end, and that at which the start begins.
    written: u32,
    recovered: u32,
    /// Deaths so far.
    deaths: Vec<ProgramDeath>,
}

/// Events that no decision has taken into account.
struct Pending<'a> {
    scheduler: Option<Box<dyn SchedulerRun + 'a>>,
    deaths: Option<Box<dyn HostDeathsRun>>,
    /// Ends, submissions and restarts, each with its program.
    ends: BTreeSet<(SimTime, usize)>,
    submissions: BTreeSet<(SimTime, usize)>,
    restarts: BTreeSet<(SimTime, usize)>,
}

impl<'a> Launches<'a> {
    /// Makes the starts of programs; `None` if all are known before the run, and none dies.
    pub(crate) fn of(
        programs: &'a Programs,
        lp_hosts: &'a LpHosts,
        platform: &Platform,
        spec: &'a RunSpec,
    ) -> Option<Self> {
        let submission = |(number, program): (usize, &Program)| match program.spec.start {
            Start::Submitted(at) => Some((at, number)),
            Start::At(_) | Start::After(_) => None,
        };
        (programs.are_launched() || spec.deaths.is_some()).then(|| {
            let deaths = spec.deaths.as_deref();
            let mut pending = Pending {
                scheduler: spec.scheduler.as_deref().map(JobScheduler::begin),
                deaths: deaths.map(|deaths| deaths.begin(platform, programs.lp_hosts())),
                ends: BTreeSet::new(),
                submissions: programs.iter().enumerate().filter_map(submission).collect(),
                restarts: BTreeSet::new(),
            };
            let placements: Vec<Placement> = programs.placements().cloned().collect();
            let lives = programs.iter().zip(&placements).map(|(program, placement)| {
                let mut life = Life::default();
                if let Start::At(at) = program.spec.start {
                    life.start(at, at, placement, pending.deaths.as_deref_mut());
                }
                Mutex::new(life)
            });
            let lives = lives.collect();
            Self { programs, lp_hosts, placements, lives, pending: Mutex::new(pending) }
        })
    }

    /// Returns the placement of each program.
    pub(crate) fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Adds the starts, the deaths and the placements of programs to an outcome.
    pub(crate) fn complete(&self, outcome: &mut Outcome) {
        for (number, program) in outcome.programs.iter_mut().enumerate() {
            let Life { start, deaths, .. } = self.life(number).clone();
            program.start = start.expect("all programs of a run that has ended have started");
            program.deaths = deaths;
            program.placement = Some(self.placements[number].clone());
        }
    }

    fn life(&self, program: usize) -> MutexGuard<'_, Life> {
        self.lives[program].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the programs that start when another one ends.
    fn followers(&self, of: usize) -> impl Iterator<Item = usize> {
        let programs = self.programs.iter().enumerate();
        programs.filter(move |(_, program)| program.spec.start == Start::After(of)).map(|(number, _)| number)
    }

    /// Moves the ranks of a program to hosts, unless they are there.
    fn move_to(&self, number: usize, hosts: &[HostId]) {
        let placement = &self.placements[number];
        if placement.hosts() != hosts {
            self.lp_hosts.place(self.programs.of(number).first_lp, hosts);
            let mut moved = Placement::repeat(hosts, hosts.len() as u32);
            moved.set_residents(&self.lp_hosts.all());
            placement.choose(moved);
        }
    }

    /// Takes notice of the end of a program; returns whether it starts again, as it has died.
    fn rises_after(&self, number: usize, at: SimTime, pending: &mut Pending<'_>) -> bool {
        let mut life = self.life(number);
        let Some(deaths) = pending.deaths.as_deref_mut().filter(|_| life.death == Some(at)) else {
            return false;
        };
        let placement = &self.placements[number];
        let start = life.start.expect("a program that has ended was started");
        let since = life.last_checkpoint(start);
        let restart = life.recover(at, since, placement.hosts().to_vec(), deaths);
        life.restart = restart.as_ref().map(|(restart, _)| *restart);
        let Some((restart, hosts)) = restart else { return false };
        self.move_to(number, &hosts);
        pending.restarts.insert((restart, number));
        true
    }
}

impl Life {
    /// Starts the program on its hosts, of which those count that die from an instant on.
    fn start(
        &mut self,
        now: SimTime,
        from: SimTime,
        placement: &Placement,
        deaths: Option<&mut (dyn HostDeathsRun + '_)>,
    ) {
        if let Some(deaths) = deaths {
            self.death = deaths.next(placement.hosts(), from);
            self.checkpoints = deaths.checkpoints(placement.hosts());
        }
        (self.start, self.restart) = (Some(now), None);
        (self.recovered, self.written) = (self.written, 0);
        self.starts += 1;
    }

    /// Returns the planned end of the last checkpoint since the start, or the start if there is none.
    fn last_checkpoint(&self, start: SimTime) -> SimTime {
        let times = self.checkpoints.filter(|_| self.written > 0);
        let end = times.and_then(|times| times.due(start, self.written)?.checked_add(times.duration));
        end.unwrap_or(start)
    }

    /// Lets a program die that has done work since an instant on some hosts, or was to be started there; returns when and where it starts again.
    fn recover(
        &mut self,
        at: SimTime,
        since: SimTime,
        hosts: Vec<HostId>,
        deaths: &mut dyn HostDeathsRun,
    ) -> Option<(SimTime, Vec<HostId>)> {
        let Recovery { component, restart, replaced } = deaths.recover(&hosts, at);
        let restart = restart.filter(|_| self.deaths.len() + 1 < MAX_DEATHS);
        // What the dead ranks have asked for is abandoned before.
        let restart = restart.map(|(restart, hosts)| (restart.max(after(at)), hosts));
        let lost = SimDuration::from_picos(at.as_picos().saturating_sub(since.as_picos()));
        let restart_at = restart.as_ref().map(|(restart, _)| *restart);
        let start = self.start.expect("a program that dies was started");
        self.deaths.push(ProgramDeath { component, start, at, lost, restart: restart_at, replaced });
        let (restart, hosts) = restart?;
        // Hosts die while the program waits, too.
        match deaths.next(&hosts, after(at)) {
            Some(death) if death <= restart => self.recover(death, restart, hosts, deaths),
            _ => Some((restart, hosts)),
        }
    }
}

/// Returns the next instant.
fn after(at: SimTime) -> SimTime {
    at.saturating_add(SimDuration::from_picos(1))
}

/// Removes and returns the first event up to an instant.
fn pop_until(events: &mut BTreeSet<(SimTime, usize)>, now: SimTime) -> Option<(SimTime, usize)> {
    let first = events.first().filter(|(at, _)| *at <= now).copied()?;
    events.remove(&first);
    Some(first)
}

impl fmt::Debug for Launches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launches").field("lives", &self.lives).finish_non_exhaustive()
    }
}

impl Launcher for Launches<'_> {
    fn start(&self, program: usize) -> Option<SimTime> {
        self.life(program).start
    }

    fn starts(&self, program: usize) -> u32 {
        self.life(program).starts
    }

    fn death(&self, program: usize) -> Option<SimTime> {
        self.life(program).death
    }

    fn restart(&self, program: usize) -> Option<SimTime> {
        self.life(program).restart
    }

    fn submission(&self, program: usize) -> Option<SimTime> {
        match self.programs.of(program).spec.start {
            Start::Submitted(at) => Some(at),
            Start::At(_) | Start::After(_) => None,
        }
    }

    fn checkpoints(&self, program: usize) -> Option<CheckpointTimes> {
        self.life(program).checkpoints
    }

    fn recovered(&self, program: usize) -> u32 {
        self.life(program).recovered
    }

    fn end(&self, program: usize, at: SimTime, checkpoints: u32) {
        self.life(program).written = checkpoints;
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).ends.insert((at, program));
    }

    fn launch(&self, now: SimTime) -> Vec<Range<LpId>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut started = Vec::new();
        let mut is_news = false;
        while let Some((at, ended)) = pop_until(&mut pending.ends, now) {
            if self.rises_after(ended, at, &mut pending) {
                continue;
            }
            is_news = true;
            for follower in self.followers(ended) {
                self.move_to(follower, self.placements[ended].hosts());
                started.push(follower);
            }
            if let (Some(scheduler), Start::Submitted(_)) =
                (&mut pending.scheduler, self.programs.of(ended).spec.start)
            {
                scheduler.end(ended);
            }
        }
        let Pending { scheduler, deaths, submissions, restarts, .. } = &mut *pending;
        started.extend(std::iter::from_fn(|| pop_until(restarts, now)).map(|(_, number)| number));
        if let Some(scheduler) = scheduler {
            while let Some((_, submitted)) = pop_until(submissions, now) {
                is_news = true;
                scheduler.submit(submitted);
            }
            for (number, hosts) in if is_news { scheduler.start(now) } else { Vec::new() } {
                let program = self.programs.of(number);
                let placement = Placement::spread(&hosts, program.trace.ranks());
                self.lp_hosts.place(program.first_lp, placement.hosts());
                self.placements[number].choose(placement);
                started.push(number);
            }
        }
        let launch = |number: usize| {
            // What has failed by now has let the program start, perhaps.
            let placement = &self.placements[number];
            self.life(number).start(now, after(now), placement, deaths.as_deref_mut());
            self.programs.of(number).lps()
        };
        started.into_iter().map(launch).collect()
    }
}
