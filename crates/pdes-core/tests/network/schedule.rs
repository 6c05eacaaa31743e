//! Everything that must not change a result, and runs of a network under all of it.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::mpsc;
use std::time::Duration;

use pdes_core::{Ending, Engine, Progress, Rank, RunAhead, SimDuration, SimTime};

use super::station::{Failure, Log, Op, Phase, State, Station};

/// A network: one program for each process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) programs: Vec<Vec<Phase>>,
}

/// What a run of a network gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) ending: Ending<Failure>,
    pub(crate) states: Vec<State>,
    pub(crate) log: Vec<(SimTime, Rank)>,
    /// The most unread tokens at each process: the one thing that depends on the schedule.
    pub(crate) peaks: Vec<usize>,
}

impl Network {
    /// Makes a network of processes that run their operations once.
    pub(crate) fn of(programs: impl IntoIterator<Item = Vec<Op>>) -> Self {
        Self::repeated(1, programs)
    }

    /// Makes a network of processes that run their operations so many times.
    pub(crate) fn repeated(laps: u64, programs: impl IntoIterator<Item = Vec<Op>>) -> Self {
        Self { programs: programs.into_iter().map(|ops| vec![Phase { ops, laps }]).collect() }
    }

    /// Runs the network, and checks that all counts of steps agree.
    pub(crate) fn run(&self, engine: &Engine) -> Outcome {
        let log = Log::default();
        let programs = self.programs.iter().zip(0..);
        let stations = programs.map(|(program, me)| Station::new(me, program.clone(), log.clone())).collect();
        let progress = Progress::new(engine.workers());
        let run = engine.run_watched(stations, &progress);
        let steps: u64 = run.processes.iter().map(|station| station.state.steps).sum();
        assert_eq!((run.steps, progress.steps()), (steps, steps), "steps of the run, and as published");
        let clocks = run.processes.iter().map(|station| station.state.clock);
        assert_eq!(progress.reached(), clocks.max().unwrap_or_default(), "time reached, as published");
        let peaks = run.processes.iter().map(|station| station.peak).collect();
        let states = run.processes.into_iter().map(|station| station.state).collect();
        let log = log.lock().unwrap().clone();
        Outcome { ending: run.ending, states, log, peaks }
    }

    /// Runs the network under every schedule; returns what all of them gave.
    pub(crate) fn run_everywhere(&self) -> Outcome {
        self.run_under(Schedule::all())
    }

    /// Runs the network under these schedules; returns what all of them, and the plain one, gave.
    pub(crate) fn run_under(&self, schedules: impl IntoIterator<Item = Schedule>) -> Outcome {
        let expected = self.run(&Engine::new(1));
        for schedule in schedules {
            let found = self.run(&schedule.engine());
            assert_eq!(found.ending, expected.ending, "the ending under {schedule:?}");
            assert_eq!(found.log, expected.log, "conditional events under {schedule:?}");
            // What a process does past the time of a failure depends on when it learns of that.
            if !matches!(expected.ending, Ending::Failed(..)) {
                assert_eq!(found.states, expected.states, "the final states under {schedule:?}");
            }
        }
        expected
    }
}

/// A way to run a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    workers: usize,
    run_ahead: RunAhead,
    batch: usize,
    jitter: Option<u64>,
}

impl Schedule {
    /// Returns 144 schedules: 4 numbers of workers, 3 bounds on run-ahead, 3 sizes of batches, 4 kinds of jitter.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let window = |picos| RunAhead::Window(SimDuration::from_picos(picos));
        let run_aheads = [RunAhead::Auto, window(0), window(u64::MAX)];
        let jitters = [None, Some(1), Some(0xDECAF), Some(u64::MAX)];
        [1, 2, 3, 7].into_iter().flat_map(move |workers| {
            run_aheads.into_iter().flat_map(move |run_ahead| {
                [1, 3, 256].into_iter().flat_map(move |batch| {
                    jitters.into_iter().map(move |jitter| Self { workers, run_ahead, batch, jitter })
                })
            })
        })
    }

    pub(crate) fn engine(&self) -> Engine {
        let engine = Engine::new(self.workers).run_ahead(self.run_ahead).batch(self.batch);
        match self.jitter {
            Some(seed) => engine.jitter(seed),
            None => engine,
        }
    }
}

/// Runs a test that could hang, and fails where it does.
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
