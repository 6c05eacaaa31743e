//! Schedules, the settings that must not change a result, and runs of a network under all of them.

use std::sync::mpsc;
use std::time::Duration;

use pdes_core::{
    Cluster, ClusterError, Ending, Engine, Fault, LpId, Partition, Progress, Run, RunAhead, SimDuration,
    SimTime,
};

use super::station::{Failure, Log, Op, Phase, State, Station};

/// A network: one program for each process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) programs: Vec<Vec<Phase>>,
}

/// The result of a run of a network.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) ending: Ending<Failure>,
    pub(crate) states: Vec<State>,
    pub(crate) log: Vec<(SimTime, LpId)>,
    /// Maximum number of unread tokens at each process; the only field that depends on the schedule.
    pub(crate) peaks: Vec<usize>,
}

impl Network {
    /// Makes a network of processes that run their operations once.
    pub(crate) fn of(programs: impl IntoIterator<Item = Vec<Op>>) -> Self {
        Self::repeated(1, programs)
    }

    /// Makes a network of processes that run their operations `laps` times.
    pub(crate) fn repeated(laps: u64, programs: impl IntoIterator<Item = Vec<Op>>) -> Self {
        Self { programs: programs.into_iter().map(|ops| vec![Phase { ops, laps }]).collect() }
    }

    /// Runs the network, and checks that all counts of steps agree.
    pub(crate) fn run(&self, engine: &Engine) -> Outcome {
        let log = Log::default();
        let stations = self.stations((0..self.programs.len() as u32).map(LpId::new), &log);
        let progress = Progress::new(engine.workers());
        let run = engine.run_with_progress(stations, &progress);
        let steps: u64 = run.processes.iter().map(|station| station.state.steps).sum();
        assert_eq!((run.steps, progress.steps()), (steps, steps), "steps of the run, and as published");
        let clocks = run.processes.iter().map(|station| station.state.clock);
        assert_eq!(progress.reached(), clocks.max().unwrap_or_default(), "time reached, as published");
        let peaks = run.processes.iter().map(|station| station.peak).collect();
        let states = run.processes.into_iter().map(|station| station.state).collect();
        let log = log.lock().unwrap().clone();
        Outcome { ending: run.ending, states, log, peaks }
    }

    fn stations(&self, lps: impl IntoIterator<Item = LpId>, log: &Log) -> Vec<Station> {
        let station = |me: LpId| Station::new(me.get(), self.programs[me.index()].clone(), log.clone());
        lps.into_iter().map(station).collect()
    }

    fn lps(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Runs this member's part of the network, and checks its counts of steps.
    pub(crate) fn run_part(
        &self,
        engine: &Engine,
        cluster: &mut Cluster,
        log: &Log,
    ) -> Result<Run<Station, Option<Failure>>, ClusterError> {
        let lps = self.lps();
        let stations = self.stations(engine.lps(cluster.member(), cluster.members(), lps), log);
        let progress = Progress::new(engine.workers());
        let run = engine.run_distributed(cluster, lps, stations, &progress)?;
        let steps: u64 = run.processes.iter().map(|station| station.state.steps).sum();
        let published = if cluster.member() == 0 { run.steps } else { steps };
        assert_eq!(progress.steps(), published, "steps as published");
        Ok(run)
    }

    /// Runs this member's part of the network under a schedule, and checks it against the expected outcome.
    pub(crate) fn check_part(
        &self,
        cluster: &mut Cluster,
        schedule: &Schedule,
        expected: &Outcome,
        name: &str,
    ) {
        let engine = schedule.engine(self.lps());
        let log = Log::default();
        let run = self.run_part(&engine, cluster, &log).expect("all members do the same");
        let place = format!("{name} on member {} under {schedule:?}", cluster.member());
        let mine = engine.lps(cluster.member(), cluster.members(), self.lps());
        let events = expected.log.iter().filter(|(_, lp)| mine.contains(lp));
        let log = std::mem::take(&mut *log.lock().unwrap());
        assert!(events.eq(&log), "conditional events of {place}");
        match (&run.ending, &expected.ending) {
            (Ending::Completed, Ending::Completed) => {}
            (Ending::Deadlocked(lps), Ending::Deadlocked(expected)) => {
                assert_eq!(lps, expected, "{place}")
            }
            (Ending::Failed(lp, fault), Ending::Failed(of, expected)) => {
                let error = mine.contains(lp).then_some(expected.error);
                let key = (lp, fault.at, fault.order, fault.error);
                assert_eq!(key, (of, expected.at, expected.order, error), "{place}");
                return;
            }
            (ending, expected) => panic!("{place}: {ending:?} and not {expected:?}"),
        }
        let states = run.processes.iter().map(|station| &station.state);
        assert!(states.eq(mine.iter().map(|lp| &expected.states[lp.index()])), "final states of {place}");
    }

    /// Runs the network on a cluster of threads, and checks that its members agree.
    fn run_on_cluster(&self, engine: &Engine, members: usize) -> Outcome {
        let log = Log::default();
        let parts = Cluster::in_memory(members, |mut cluster| {
            self.run_part(engine, &mut cluster, &log).expect("all members do the same")
        });
        let parts: Vec<_> = parts.into_iter().map(|part| part.expect("no member panics")).collect();
        let mut stations: Vec<Option<Station>> = (0..self.lps()).map(|_| None).collect();
        let mut ending = None;
        let all_steps = parts[0].steps;
        for (member, part) in parts.into_iter().enumerate() {
            assert_eq!(part.steps, all_steps);
            for (lp, station) in engine.lps(member, members, self.lps()).into_iter().zip(part.processes) {
                stations[lp.index()] = Some(station);
            }
            ending = Some(agreed(ending, part.ending));
        }
        let stations: Vec<Station> =
            stations.into_iter().map(|station| station.expect("a member has it")).collect();
        let peaks = stations.iter().map(|station| station.peak).collect();
        let states: Vec<State> = stations.into_iter().map(|station| station.state).collect();
        assert_eq!(states.iter().map(|state| state.steps).sum::<u64>(), all_steps, "steps of the run");
        let ending = match ending.expect("a cluster has members") {
            Ending::Completed => Ending::Completed,
            Ending::StoppedAtCheckpoint => Ending::StoppedAtCheckpoint,
            Ending::Deadlocked(lps) => Ending::Deadlocked(lps),
            Ending::Failed(lp, Fault { at, order, error }) => {
                let error = error.expect("one member has the error");
                Ending::Failed(lp, Fault { at, order, error })
            }
        };
        let log = log.lock().unwrap().clone();
        Outcome { ending, states, log, peaks }
    }

    /// Runs the network under a schedule.
    pub(crate) fn run_in(&self, schedule: &Schedule) -> Outcome {
        match schedule.members {
            1 => self.run(&schedule.engine(self.lps())),
            members => self.run_on_cluster(&schedule.engine(self.lps()), members),
        }
    }

    /// Runs the network under every schedule, and checks that all outcomes agree; returns the outcome.
    pub(crate) fn run_everywhere(&self) -> Outcome {
        self.run_under(Schedule::all())
    }

    /// Runs the network under these schedules, and checks that their outcomes agree with the sequential one; returns it.
    pub(crate) fn run_under(&self, schedules: impl IntoIterator<Item = Schedule>) -> Outcome {
        let expected = self.run(&Engine::new(1));
        for schedule in schedules {
            let found = self.run_in(&schedule);
            assert_eq!(found.ending, expected.ending, "the ending under {schedule:?}");
            assert_eq!(found.log, expected.log, "conditional events under {schedule:?}");
            // The state of a process past the time of a failure depends on when it learns of the failure.
            if !matches!(expected.ending, Ending::Failed(..)) {
                assert_eq!(found.states, expected.states, "the final states under {schedule:?}");
            }
        }
        expected
    }
}

/// Returns the ending on which both members agree; one of them has the error of a failure.
fn agreed(one: Option<Ending<Option<Failure>>>, other: Ending<Option<Failure>>) -> Ending<Option<Failure>> {
    match (one, other) {
        (None, other) => other,
        (Some(Ending::Failed(lp, one)), Ending::Failed(of, other)) => {
            assert_eq!((lp, one.at, one.order), (of, other.at, other.order));
            assert!(one.error.is_none() || other.error.is_none(), "two members have the error");
            Ending::Failed(lp, Fault { error: one.error.or(other.error), ..other })
        }
        (Some(one), other) => {
            assert_eq!(one, other);
            other
        }
    }
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) members: usize,
    pub(crate) workers: usize,
    pub(crate) run_ahead: RunAhead,
    pub(crate) batch: usize,
    pub(crate) jitter: Option<u64>,
    /// True if processes are assigned to workers by a hash, false if in blocks.
    pub(crate) shuffle: bool,
}

impl Schedule {
    /// Returns 200 schedules for `tests/campaign`: 4 numbers of workers, 3 bounds on run-ahead, 3 sizes of batches, 5 kinds of
    /// perturbation; and a seventh of those with 3 sizes of clusters. Otherwise 46 of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        // 7 is coprime to the number of schedules, so that all choices still meet each other.
        let every = if is_campaign() { 1 } else { 7 };
        let alone = [1, 2, 3, 7].into_iter().flat_map(|workers| Self::of(1, workers)).step_by(every);
        let clusters = [(2, 1), (3, 2), (4, 1)].into_iter();
        alone.chain(clusters.flat_map(|(members, workers)| Self::of(members, workers)).step_by(7))
    }

    /// Returns 45 schedules for a number of members and of their workers.
    pub(crate) fn of(members: usize, workers: usize) -> impl Iterator<Item = Self> {
        let window = |picos| RunAhead::Window(SimDuration::from_picos(picos));
        let run_aheads = [RunAhead::Auto, window(0), window(u64::MAX)];
        let jitters =
            [(None, false), (None, true), (Some(1), false), (Some(0xDECAF), true), (Some(u64::MAX), false)];
        run_aheads.into_iter().flat_map(move |run_ahead| {
            [1, 3, 256].into_iter().flat_map(move |batch| {
                jitters.into_iter().map(move |(jitter, shuffle)| Self {
                    members,
                    workers,
                    run_ahead,
                    batch,
                    jitter,
                    shuffle,
                })
            })
        })
    }

    /// Makes the engine for a network of `lps` processes.
    pub(crate) fn engine(&self, lps: u32) -> Engine {
        let mut engine = Engine::new(self.workers).run_ahead(self.run_ahead).batch(self.batch);
        if self.shuffle {
            let workers = self.members * self.workers;
            let owner = |lp: u32| (lp.wrapping_mul(0x9E37_79B9) >> 16) % workers as u32;
            let owners: Vec<u32> = (0..lps).map(owner).collect();
            engine = engine.partition(Partition::new(&owners, workers));
        }
        match self.jitter {
            Some(seed) => engine.jitter(seed),
            None => engine,
        }
    }
}

/// Returns whether `tests/campaign` runs: then everything is tested, otherwise a part of it.
pub(crate) fn is_campaign() -> bool {
    std::env::var_os("PDES_CAMPAIGN").is_some()
}

/// Runs a test that could hang, and fails if it does.
pub(crate) fn guarded(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_secs(120)) {
        panic!("the run hangs");
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
