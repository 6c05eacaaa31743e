//! Runs of a trace on all engines.

use std::convert::Infallible;

use mpi_model::{
    Breakdown, CriticalPath, Machine, Outcomes, Parameters, PathParts, Progress, RankProcess, Replay,
    ReplayErrorKind, WaitReason,
};
use pdes_core::{Bytes, Ending, Engine, Process, Rank, SimDuration, SimTime};
use trace_mmap::Trace;

/// Every message takes a microsecond and a nanosecond per byte; two ranks share a node.
pub(crate) struct Simple;

impl Machine for Simple {
    type Route = ();
    type WorkRequest = Infallible;
    type Error = Infallible;

    fn route(&self, _: Rank, _: Rank) -> Result<(), Infallible> {
        Ok(())
    }

    fn transfer(&self, (): (), bytes: Bytes, _: SimTime) -> Option<SimDuration> {
        Some(SimDuration::from_picos(1_000_000 + 1_000 * bytes.get()))
    }

    fn speed(&self, _: Rank, _: SimTime) -> f64 {
        1e9
    }

    fn node(&self, rank: Rank) -> u32 {
        rank.get() / 2
    }
}

/// Result of a run: the end of each rank [ns] and the number of outcomes that were decided and that differed, or the failure.
#[derive(Debug, PartialEq)]
pub(crate) enum RunResult {
    Ends { ns: Vec<f64>, decided: u64, different: u64 },
    Stalled(Vec<Option<WaitReason>>),
    Failed(u32, u64, ReplayErrorKind<Infallible>),
}

/// Breakdown of the time of a rank, and the critical path to its end.
type Analysis = (Breakdown, CriticalPath);

fn once(trace: &Trace, parameters: &Parameters, engine: &Engine) -> (RunResult, Vec<Analysis>) {
    let ranks = (0..trace.ranks()).map(Rank::new);
    let world = Replay::new(trace, &Simple, parameters).with_breakdowns(true).with_critical_paths(ranks);
    let run = engine.run(world.processes().unwrap());
    let outcomes = |process: &RankProcess<'_, Simple>| process.statistics().outcomes();
    let found = |process: &RankProcess<'_, Simple>| {
        Some((process.statistics().breakdown()?.clone(), process.critical_path()?.clone()))
    };
    let found = run.processes.iter().filter_map(found).collect();
    let answer = match run.ending {
        Ending::Completed => RunResult::Ends {
            ns: run.processes.iter().map(|process| process.clock().as_picos() as f64 / 1e3).collect(),
            decided: run.processes.iter().map(|process| outcomes(process).decided).sum(),
            different: run.processes.iter().map(|process| outcomes(process).different).sum(),
        },
        Ending::StoppedAtCheckpoint => unreachable!("no rank was asked to halt"),
        Ending::Deadlocked(_) => {
            RunResult::Stalled(run.processes.iter().map(RankProcess::wait_reason).collect())
        }
        Ending::Failed(rank, fault) => RunResult::Failed(rank.get(), fault.error.action, fault.error.kind),
    };
    (answer, found)
}

/// Checks that the parts of each rank's time, and those of its critical path, add up to its end, to the picosecond.
fn check_sums(answer: &RunResult, found: &[Analysis], progress: Progress) {
    let RunResult::Ends { ns, .. } = answer else { return };
    for (end, (breakdown, path)) in ns.iter().zip(found) {
        let all = breakdown.all();
        assert_eq!(all.time.as_picos() as f64 / 1e3, *end);
        assert_eq!(all.waited() + all.transfer + all.own(), all.time);
        assert_eq!(path.end().as_picos() as f64 / 1e3, *end);
        assert_eq!(path.calls().map(|(_, time)| time).sum::<SimDuration>(), all.time);
        let PathParts { compute, sleep, library, latency, bandwidth, waiting } = path.parts();
        assert_eq!(compute + sleep + library + latency + bandwidth + waiting, all.time);
        let is_alone = progress == Progress::Asynchronous;
        assert!(!is_alone || waiting == SimDuration::ZERO, "messages share nothing here");
    }
    assert_eq!(found.len(), ns.len());
}

/// Runs a trace with these parameters on 1, 2, 3 and 7 threads, with and without jitter, and expects one result.
pub(crate) fn run_with(text: &str, parameters: &Parameters) -> RunResult {
    run_and_break_down(text, parameters).0
}

fn run_and_break_down(text: &str, parameters: &Parameters) -> (RunResult, Vec<Analysis>) {
    let trace = trace_tools::from_text(text).unwrap_or_else(|error| panic!("{error}"));
    let first = once(&trace, parameters, &Engine::new(1));
    for threads in [1, 2, 3, 7] {
        for seed in 0..4 {
            let engine = Engine::new(threads).batch(1 + seed as usize);
            let engine = if seed == 0 { engine } else { engine.jitter(seed) };
            let (answer, found) = once(&trace, parameters, &engine);
            assert_eq!(answer, first.0, "{threads} threads, seed {seed}\n{text}");
            if let RunResult::Ends { .. } = answer {
                assert_eq!(found, first.1, "{threads} threads, seed {seed}\n{text}");
            }
        }
    }
    check_sums(&first.0, &first.1, parameters.progress);
    first
}

/// Returns parameters with the outcomes of the simulated run, and tests that always cost 10 ns.
pub(crate) fn reenact() -> Parameters {
    let poll_price = SimDuration::from_picos(10_000);
    Parameters {
        test: poll_price,
        iprobe: poll_price,
        test_grows: false,
        communicators_cost: false,
        ..Parameters::default()
    }
}

/// Returns the same parameters with the outcomes of the recorded run.
pub(crate) fn recorded() -> Parameters {
    Parameters { outcomes: Outcomes::Recorded, ..reenact() }
}

/// Returns the text of a trace from the lines of its ranks; each rank begins with `init`.
pub(crate) fn program(ranks: &[&str]) -> String {
    let lines = ranks.iter().enumerate().flat_map(|(rank, lines)| {
        let lines = lines.split(';').map(str::trim).filter(|line| !line.is_empty());
        std::iter::once("init").chain(lines).map(move |line| format!("{rank} {line}\n")).collect::<Vec<_>>()
    });
    lines.collect()
}

/// Runs programs, lines separated by semicolons, and returns the end of each rank [ns], and the number of outcomes that differ.
pub(crate) fn ends_with(ranks: &[&str], parameters: &Parameters) -> (Vec<f64>, u64) {
    match run_with(&program(ranks), parameters) {
        RunResult::Ends { ns, different, .. } => (ns, different),
        other => panic!("{other:?}"),
    }
}

/// Runs programs to their ends and returns the breakdown of each rank.
pub(crate) fn breakdowns(ranks: &[&str], parameters: &Parameters) -> Vec<Breakdown> {
    analyses(ranks, parameters).into_iter().map(|(breakdown, _)| breakdown).collect()
}

/// Runs programs to their ends and returns the critical path of each rank.
pub(crate) fn critical_paths(ranks: &[&str], parameters: &Parameters) -> Vec<CriticalPath> {
    analyses(ranks, parameters).into_iter().map(|(_, path)| path).collect()
}

fn analyses(ranks: &[&str], parameters: &Parameters) -> Vec<Analysis> {
    let (answer, found) = run_and_break_down(&program(ranks), parameters);
    assert!(matches!(answer, RunResult::Ends { .. }), "{answer:?}");
    found
}

/// Runs programs and returns the end of each rank [ns].
pub(crate) fn ends(ranks: &[&str]) -> Vec<f64> {
    ends_with(ranks, &reenact()).0
}

/// Runs programs that do not complete.
pub(crate) fn run_program(ranks: &[&str]) -> RunResult {
    run_with(&program(ranks), &reenact())
}
