//! Runs that end with a checkpoint, and runs that resume from it: the results are those of an uninterrupted run.

#[path = "checkpoints/killed.rs"]
mod killed;
#[path = "checkpoints/refused.rs"]
mod refused;

use std::path::{Path, PathBuf};

use mpi_model::collective::Operation;
use pdes_core::{Cluster, Progress};
use pdes_replay::{Config, ExecutionMode, Outcome, RunError, RunSpec, Simulation, StopHandle};
use proptest::prelude::*;
use trace_mmap::Item;

use crate::collectives::call;
use crate::command_line::Folder;
use crate::determinism::{all_calls, committed_platform, operations_among_probes, tests_of_requests};
use crate::forward::programs::{Phase, phase, program};
use crate::forward::{PROTOCOLS, digest_of_one, fold, write};
use crate::matrix::digest;
use crate::reference::is_campaign;
use crate::trace_commands::trace;

/// Generators and their arguments: programs short enough to stop each of them some hundred times.
const GENERATED: [(&str, &[&str]); 7] = [
    ("npb-lu", &["--class=S", "--ranks=8", "--steps=1"]),
    (
        "halo3d",
        &["--cells=24,24,24", "--processes=3,3,3", "--iterations=2", "--jitter=0.3", "--jitter-per=action"],
    ),
    ("random-sparse", &["--ranks=24", "--steps=4", "--rounds=2"]),
    ("allreduce-loop", &["--ranks=13", "--iterations=3", "--jitter=0.2"]),
    ("alltoall-fft", &["--ranks=8"]),
    ("master-worker", &["--ranks=6", "--tasks=30"]),
    ("ring", &["--ranks=9", "--rounds=8", "--jitter=0.2"]),
];

fn generate(folder: &Folder, (program, arguments): (&str, &[&str])) -> PathBuf {
    let path = folder.path(&format!("{program}.pdt"));
    trace(&[&["generate", program], arguments, &["--output"]].concat(), &[&path]).success();
    path
}

fn config(trace: &Path, platform: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    config.set("network.model=contention-free").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

/// Stops of a replay outside of campaigns, which stop wherever they can.
const MAX_STOPS: u64 = 48;

/// Replays in as many runs as necessary, each stopped as soon as possible; returns the outcome of the last one, and the number of runs
/// that were stopped before.
pub(crate) fn replay_in_parts(mut config: Config, folder: &Folder) -> (Result<Outcome, RunError>, u64) {
    config.set_path("checkpoint", "directory", &folder.path("checkpoints"));
    config.insert("checkpoint", "resume", true.into());
    replay_spec_in_parts(&config.resolve().unwrap())
}

/// Replays a run that writes checkpoints as [`replay_in_parts`] does.
pub(crate) fn replay_spec_in_parts(spec: &RunSpec) -> (Result<Outcome, RunError>, u64) {
    let stop = StopHandle::default();
    stop.request();
    let mut simulation = Simulation::load(spec).unwrap().with_stop(stop);
    let mut last = None;
    for run in 0.. {
        if run == MAX_STOPS && !is_campaign() {
            simulation = simulation.with_stop(StopHandle::default());
        }
        // With a perturbed schedule activations are short; without, programs make progress.
        let jitter = (run < 12 || run % 5 == 0).then_some(run);
        simulation = simulation.with_threads([1, 3, 2][run as usize % 3]).with_jitter(jitter);
        let mut outcomes = Cluster::in_memory([1, 2, 1, 3][run as usize % 4], |mut cluster| {
            simulation.run(&mut cluster, &Progress::new(3))
        });
        match outcomes.remove(0).expect("no process panics").map(|outcome| outcome.expect("it is the first"))
        {
            Err(RunError::Stopped { actions, checkpoint }) => {
                assert!(checkpoint.is_file());
                assert!(last.is_none_or(|last| last <= actions), "{last:?} before, {actions} now");
                last = Some(actions);
            }
            ended => {
                if let Ok(outcome) = &ended {
                    let summary = outcome.checkpoints.expect("they were asked for");
                    assert_eq!((summary.resumed_from, summary.written), (last, 0));
                }
                return (ended, run);
            }
        }
    }
    unreachable!("each run comes further")
}

/// Analyses whose results depend on the whole run.
const ANALYSES: [&str; 4] = [
    "analysis.histograms=true",
    "analysis.matrix=true",
    "analysis.critical_path=true",
    "timeline.collectives=true",
];

/// Replays at once and in parts, and expects one result; returns the number of runs that were stopped. Where messages of collective
/// operations are to be in a timeline, there is one.
fn check(trace: &Path, platform: &Path, settings: &[&str]) -> u64 {
    let folder = Folder::new();
    let config = |timeline: &str| {
        let mut config = config(trace, platform, settings);
        if settings.contains(&ANALYSES[3]) {
            config.set_path("timeline", "file", &folder.path(timeline));
        }
        config
    };
    let whole = Simulation::load(&config("whole.json").resolve().unwrap()).unwrap();
    let expected = whole.replay(&Progress::new(1)).unwrap();
    let (outcome, stopped) = replay_in_parts(config("parts.json"), &folder);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.program().ends, expected.program().ends, "{settings:?}");
    let ranks = outcome.program().statistics.iter().zip(&expected.program().statistics).enumerate();
    for (rank, (statistics, expected)) in ranks {
        assert_eq!(digest_of_one(statistics), digest_of_one(expected), "rank {rank} {settings:?}");
        assert_eq!(statistics.outcomes(), expected.outcomes(), "rank {rank} {settings:?}");
    }
    assert_eq!(digest(&outcome), digest(&expected));
    assert_eq!(outcome.links, expected.links, "{settings:?}");
    assert_eq!(
        outcome.program().findings.distributions,
        expected.program().findings.distributions,
        "{settings:?}"
    );
    assert_eq!(outcome.program().findings.matrix, expected.program().findings.matrix, "{settings:?}");
    assert_eq!(
        outcome.program().findings.critical_path,
        expected.program().findings.critical_path,
        "{settings:?}"
    );
    assert_eq!(outcome.program().timeline, expected.program().timeline, "{settings:?}");
    if expected.program().timeline.is_some() {
        let timeline = |name| std::fs::read(folder.path(name)).unwrap();
        assert!(timeline("parts.json") == timeline("whole.json"), "{settings:?}");
    }
    stopped
}

#[test]
fn generated_programs() {
    let folder = Folder::new();
    let platform = committed_platform("torus-5g.toml");
    for generator in GENERATED {
        let trace = generate(&folder, generator);
        let stopped = check(&trace, &platform, &ANALYSES);
        assert!(stopped > 10, "{generator:?}: {stopped}");
        for setting in ["network.preset=smpi", "network.preset=raw"] {
            let stopped =
                check(&trace, &platform, &[&["network.model=flow", setting], &ANALYSES[..]].concat());
            assert!(stopped > 0, "{generator:?}, {setting}: {stopped}");
        }
    }
}

/// In windows a run has other regions than threads, so that it resumes on any number of them.
#[test]
fn exact_contention_in_windows() {
    let folder = Folder::new();
    let torus = "[topology]\nkind = 'torus'\ndims = [8, 4, 4]\nspeed = '10Gf'\nbandwidth = '12.5GBps'\nlatency = '500ns'\n";
    let platform = folder.write("torus.toml", torus);
    let generators: [(&str, &[&str]); 2] = [
        ("npb-lu", &["--class=S", "--ranks=16", "--steps=1"]),
        ("halo3d", &["--cells=24,24,24", "--processes=4,4,4", "--iterations=3", "--jitter=0.3"]),
    ];
    for generator in generators {
        let trace = generate(&folder, generator);
        for protocol in PROTOCOLS {
            let settings = [&["network.model=flow", "network.preset=raw", protocol], &ANALYSES[..]].concat();
            let mut config = config(&trace, &platform, &settings[..3]);
            config.set_path("checkpoint", "directory", &folder.path("unused"));
            let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
            assert!(matches!(simulation.execution(1).mode, ExecutionMode::Windows(_)));
            let stopped = check(&trace, &platform, &settings);
            assert!(stopped > 10, "{generator:?} {protocol}: {stopped}");
        }
    }
}

#[test]
fn text_resumes_in_the_middle() {
    let folder = Folder::new();
    let whole = crate::reference::repository().join("configs/traces/lu.S.8");
    let (part, text) = (folder.path("part.pdt"), folder.path("text"));
    trace(&["cut", "--iterations", "8", "--output"], &[&part, &whole]).success();
    trace(&["dump", "--output"], &[&text, &part]).success();
    assert!(check(&text, &committed_platform("torus-5g.toml"), &[]) > 10);
}

/// All calls, with communicators, persistent and cancelled requests, and polls whose cost depends on those of all ranks.
#[test]
fn calls_that_depend_on_time() {
    let folder = Folder::new();
    let platform = committed_platform("torus-5g.toml");
    let programs = [all_calls(0), all_calls(5), operations_among_probes(), tests_of_requests()];
    for text in &programs {
        let trace = folder.write("calls.txt", text);
        for settings in [&ANALYSES[..], &["mpi.outcomes=recorded"]] {
            assert!(check(&trace, &platform, settings) > 5, "{settings:?}");
            check(&trace, &platform, &[&["network.model=flow"], settings].concat());
        }
    }
}

/// Every algorithm in the middle of its steps, including those that depend on the arrival of ranks.
#[test]
fn every_collective_algorithm() {
    let folder = Folder::new();
    let platform = folder.write(
        "platform.toml",
        "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"10us\"\n",
    );
    let (mut checked, mut stopped) = (0, 0);
    for operation in Operation::ALL {
        for algorithm in operation.algorithms() {
            let call = call(operation.name(), 8, "100000", "0");
            let program = |rank: u32| {
                let late = rank * 7 % 8 * 100_000;
                format!("{rank} init\n{rank} compute {late}\n{rank} {call}\n{rank} {call}\n{rank} finalize\n")
            };
            let trace = folder.write("trace.txt", &(0..8).map(program).collect::<String>());
            let setting = format!("mpi.{}={algorithm}", operation.name());
            let config = config(&trace, &platform, &[&setting]);
            // Some algorithms require other numbers of ranks.
            let Ok(_) = Simulation::load(&config.resolve().unwrap()) else { continue };
            stopped += check(&trace, &platform, &[&setting]);
            checked += 1;
        }
    }
    assert!(checked > 60 && stopped > 5 * checked, "{checked} checked, {stopped} runs stopped");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_of_any_body(
        ranks in 2_u32..9,
        count in 1_u64..12,
        before in prop::collection::vec(phase(), 0..3),
        body in prop::collection::vec(phase(), 1..5),
        after in prop::collection::vec(phase(), 0..3),
        protocol in prop::sample::select(&PROTOCOLS[..]),
        has_contention: bool,
    ) {
        let folder = Folder::new();
        let programs = |before: &[Phase], body: &[Phase], after: &[Phase]| -> Vec<Vec<Item>> {
            (0..ranks).map(|me| program(me, ranks, before, (count, body), after)).collect()
        };
        let programs = programs(&before, &body, &after);
        let model: &[&str] = if has_contention { &["network.model=flow"] } else { &[] };
        let settings = &[&[protocol], model].concat();
        let platform = committed_platform("torus-5g.toml");
        check(&write(&folder, &programs), &platform, settings);
        check(&fold(&folder, &programs), &platform, settings);
    }
}

/// A failure and a deadlock are reported as in an uninterrupted run.
#[test]
fn failures_are_those_of_the_whole_run() {
    let compute = "0 compute 1e6\n1 compute 2e6\n2 compute 3e6\n".repeat(200);
    let platform = committed_platform("torus-5g.toml");
    let deadlock = "0 recv 1 0 8\n0 send 1 0 8\n1 recv 0 0 8\n1 send 0 0 8\n";
    let truncated = "0 send 1 0 100\n1 recv 0 0 50\n2 send 1 1 100\n1 recv 2 1 70\n";
    for (end, model) in
        [deadlock, truncated].into_iter().flat_map(|end| [(end, "contention-free"), (end, "flow")])
    {
        let folder = Folder::new();
        let trace = folder.write("trace.txt", &format!("0 init\n1 init\n2 init\n{compute}{end}"));
        let config = || config(&trace, &platform, &[&format!("network.model={model}")]);
        let simulation = Simulation::load(&config().resolve().unwrap()).unwrap();
        let expected = simulation.replay(&Progress::new(1)).unwrap_err().to_string();
        let (ended, stopped) = replay_in_parts(config(), &folder);
        assert_eq!((ended.unwrap_err().to_string(), stopped > 0), (expected, true), "{stopped} stopped");
    }
}
