//! Programs that start during the run: when others end, or when a scheduler decides.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use mpi_model::Launcher;
use netmodel::HostId;
use pdes_core::{LpId, SimTime};

use crate::placement::{LpHosts, Placement};
use crate::programs::{Program, Programs};
use crate::simulation::Outcome;

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

/// The starts of the programs of one run.
pub(crate) struct Launches<'a> {
    programs: &'a Programs,
    lp_hosts: &'a LpHosts,
    placements: Vec<Placement>,
    starts: Vec<OnceLock<SimTime>>,
    pending: Mutex<Pending<'a>>,
}

/// Events that no decision has taken into account.
struct Pending<'a> {
    scheduler: Option<Box<dyn SchedulerRun + 'a>>,
    /// Ends and submissions, each with its program.
    ends: BTreeSet<(SimTime, usize)>,
    submissions: BTreeSet<(SimTime, usize)>,
}

impl<'a> Launches<'a> {
    /// Makes the starts of programs; `None` if all are known before the run.
    pub(crate) fn of(
        programs: &'a Programs,
        lp_hosts: &'a LpHosts,
        scheduler: Option<&'a dyn JobScheduler>,
    ) -> Option<Self> {
        programs.are_launched().then(|| {
            let start = |program: &Program| match program.spec.start {
                Start::At(at) => OnceLock::from(at),
                Start::After(_) | Start::Submitted(_) => OnceLock::new(),
            };
            let submission = |(number, program): (usize, &Program)| match program.spec.start {
                Start::Submitted(at) => Some((at, number)),
                Start::At(_) | Start::After(_) => None,
            };
            Self {
                programs,
                lp_hosts,
                placements: programs.placements().cloned().collect(),
                starts: programs.iter().map(start).collect(),
                pending: Mutex::new(Pending {
                    scheduler: scheduler.map(JobScheduler::begin),
                    ends: BTreeSet::new(),
                    submissions: programs.iter().enumerate().filter_map(submission).collect(),
                }),
            }
        })
    }

    /// Returns the placement of each program.
    pub(crate) fn placements(&self) -> &[Placement] {
        &self.placements
    }

    /// Adds the starts and the placements of programs to an outcome.
    pub(crate) fn complete(&self, outcome: &mut Outcome) {
        let launches = self.starts.iter().zip(&self.placements);
        for (program, (start, placement)) in outcome.programs.iter_mut().zip(launches) {
            program.start = *start.get().expect("all programs of a run that has ended have started");
            program.placement = Some(placement.clone());
        }
    }

    /// Returns the programs that start when another one ends.
    fn followers(&self, of: usize) -> impl Iterator<Item = usize> {
        let programs = self.programs.iter().enumerate();
        programs.filter(move |(_, program)| program.spec.start == Start::After(of)).map(|(number, _)| number)
    }
}

/// Removes and returns the program of the first event up to an instant.
fn pop_until(events: &mut BTreeSet<(SimTime, usize)>, now: SimTime) -> Option<usize> {
    let first = events.first().filter(|(at, _)| *at <= now).copied()?;
    events.remove(&first);
    Some(first.1)
}

impl fmt::Debug for Launches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launches").field("starts", &self.starts).finish_non_exhaustive()
    }
}

impl Launcher for Launches<'_> {
    fn start(&self, program: usize) -> Option<SimTime> {
        self.starts[program].get().copied()
    }

    fn submission(&self, program: usize) -> Option<SimTime> {
        match self.programs.of(program).spec.start {
            Start::Submitted(at) => Some(at),
            Start::At(_) | Start::After(_) => None,
        }
    }

    fn end(&self, program: usize, at: SimTime) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).ends.insert((at, program));
    }

    fn launch(&self, now: SimTime) -> Vec<Range<LpId>> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Pending { scheduler, ends, submissions } = &mut *pending;
        let mut started = Vec::new();
        let mut is_news = false;
        while let Some(ended) = pop_until(ends, now) {
            is_news = true;
            started.extend(self.followers(ended));
            if let (Some(scheduler), Start::Submitted(_)) =
                (&mut *scheduler, self.programs.of(ended).spec.start)
            {
                scheduler.end(ended);
            }
        }
        if let Some(scheduler) = scheduler {
            while let Some(submitted) = pop_until(submissions, now) {
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
            self.starts[number].set(now).expect("a program starts once");
            self.programs.of(number).lps()
        };
        started.into_iter().map(launch).collect()
    }
}
