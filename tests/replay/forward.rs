//! Fast-forwarding: the results are those of the complete replay.

#[path = "forward/contention.rs"]
pub(crate) mod contention;
#[path = "forward/epochs.rs"]
mod epochs;
#[path = "forward/nested.rs"]
mod nested;
#[path = "forward/programs.rs"]
pub(crate) mod programs;
#[path = "forward/windows.rs"]
mod windows;

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::time::Duration;

use mpi_model::{ActionKind, Breakdown, Statistics};
use pdes_core::{Bytes, Cluster, Progress, Rank};
use pdes_replay::{Config, Digest, FastForward, Outcome, RunError, Simulation, StopHandle};
use proptest::prelude::*;
use trace_mmap::{ArchiveWriter, ConvertOptions, Folding, Item, Op, flatten};
use trace_tools::generate::{
    Class, Generator, Jitter, JitterScope, NpbLu, NpbLuParameters, Ring, RingParameters,
};
use trace_tools::{TextLine, convert};

use crate::command_line::{DONE, Folder, command};
use crate::determinism::committed_platform;
use programs::{Phase, message, phase, program};

/// Eager messages, so that senders and receivers need not meet: their delays circulate.
const EAGER: &str = "mpi.eager_below_bytes=65536";
/// Moments at which data move: after both posts, after the send, or while the receiver is in a call.
pub(crate) const PROTOCOLS: [&str; 3] = ["mpi.eager_below_bytes=0", EAGER, "mpi.progress='calls'"];

fn config(trace: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &committed_platform("torus-5g.toml"));
    config.set("network.model=contention-free").unwrap();
    config.set("analysis.matrix=true").unwrap();
    // More threads than there are cores, too.
    config.set("parallel.oversubscribe=true").unwrap();
    if !settings.contains(&"analysis.waits=false") {
        config.set("analysis.histograms=true").unwrap();
    }
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

fn replay(trace: &Path, settings: &[&str]) -> Outcome {
    let simulation = Simulation::load(&config(trace, settings).resolve().unwrap()).unwrap();
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

pub(crate) fn digest(outcome: &Outcome) -> Digest {
    Digest::of(outcome.program().ends.iter().copied().zip(&outcome.program().statistics))
}

/// Replays with fast-forwarding in as many runs as necessary, each stopped after a moment, with checkpoints in between.
fn replay_in_parts(mut config: Config) -> Outcome {
    let folder = Folder::new();
    config.set("engine.fast_forward=true").unwrap();
    config.set("checkpoint.every=1ms").unwrap();
    config.set_path("checkpoint", "directory", &folder.path("checkpoints"));
    config.set("checkpoint.resume=true").unwrap();
    let mut simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    for run in 0.. {
        let stop = StopHandle::default();
        simulation = simulation.with_threads([1, 3, 2][run as usize % 3]).with_stop(stop.clone());
        // Some runs stop as soon as they can.
        let moments = [0, 0, 100, 300, 1_000, 5_000];
        let moment =
            Duration::from_micros(moments[RandomState::new().hash_one(run) as usize % moments.len()]);
        let replayed = std::thread::scope(|scope| {
            if moment.is_zero() {
                stop.request();
            }
            let (ended, timer) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                // A run that has ended needs no stop.
                let _ = timer.recv_timeout(moment);
                stop.request();
            });
            let replayed = simulation.replay(&Progress::new(3));
            drop(ended);
            replayed
        });
        match replayed {
            Err(RunError::Stopped { .. }) => {}
            ended => return ended.unwrap(),
        }
    }
    unreachable!("each run comes further")
}

/// Replays to the first possible checkpoint, and from there to the end; returns the summary of the iterations skipped.
fn check_resumed(mut config: Config) -> FastForward {
    let folder = Folder::new();
    config.set("engine.fast_forward=true").unwrap();
    config.set_path("checkpoint", "directory", &folder.path("checkpoints"));
    config.set("checkpoint.resume=true").unwrap();
    let stop = StopHandle::default();
    stop.request();
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap().with_stop(stop);
    let stopped = simulation.replay(&Progress::new(1));
    assert!(matches!(stopped, Err(RunError::Stopped { .. })), "{stopped:?}");
    let outcome = simulation.with_stop(StopHandle::default()).replay(&Progress::new(1)).unwrap();
    assert!(outcome.checkpoints.expect("they were asked for").resumed_from.is_some());
    outcome.fast_forward.expect("it was asked for")
}

/// Replays with and without fast-forwarding, and expects one result; returns the summary of the iterations skipped.
fn check(trace: &Path, settings: &[&str]) -> FastForward {
    let expected = replay(trace, settings);
    let mut found = Vec::new();
    let forwarded = ["engine.threads=1", "engine.threads=3"]
        .map(|threads| replay(trace, &[settings, &[threads, "engine.fast_forward=true"]].concat()));
    let forwards = config(trace, &[settings, &["engine.fast_forward=true"]].concat());
    let simulation = Simulation::load(&forwards.resolve().unwrap()).unwrap();
    let on_processes = [2, 3].map(|processes| {
        let mut outcomes =
            Cluster::in_memory(processes, |mut cluster| simulation.run(&mut cluster, &Progress::new(1)));
        outcomes.remove(0).expect("no process panics").unwrap().expect("it is the first")
    });
    // Stopping a large program again and again would take long.
    let in_parts = (expected.program().ends.len() < 100).then(|| replay_in_parts(config(trace, settings)));
    for outcome in forwarded.into_iter().chain(on_processes).chain(in_parts) {
        assert_eq!(outcome.program().ends, expected.program().ends);
        for (rank, (statistics, expected)) in
            outcome.program().statistics.iter().zip(&expected.program().statistics).enumerate()
        {
            assert_eq!(digest_of_one(statistics), digest_of_one(expected), "rank {rank}");
            assert_eq!(statistics.outcomes(), expected.outcomes(), "rank {rank}");
        }
        assert_eq!(digest(&outcome), digest(&expected));
        assert_eq!(outcome.program().findings.distributions, expected.program().findings.distributions);
        assert_eq!(outcome.program().findings.matrix, expected.program().findings.matrix);
        found.push(outcome.fast_forward.expect("it was asked for"));
    }
    assert!(
        found[..4].iter().all(|other| *other == found[0]),
        "{found:?}: whatever the threads and processes"
    );
    found[0]
}

/// Returns everything that is reported of a rank, in one order whatever came first.
pub(crate) fn digest_of_one(statistics: &Statistics) -> Vec<u8> {
    let kinds: Vec<_> =
        ActionKind::ALL.iter().map(|&kind| (statistics.count(kind), statistics.time(kind))).collect();
    let regions: Vec<_> = statistics
        .breakdown()
        .into_iter()
        .flat_map(Breakdown::regions)
        .map(|region| (region.site(), region.shares().collect::<Vec<_>>()))
        .collect();
    postcard::to_stdvec(&(kinds, statistics.messages, statistics.bytes, statistics.outcomes(), regions))
        .unwrap()
}

pub(crate) fn write(folder: &Folder, programs: &[Vec<Item>]) -> std::path::PathBuf {
    let path = folder.path("trace.pdt");
    let mut writer = ArchiveWriter::create(&path, programs.len() as u32, 1).unwrap();
    for (rank, program) in (0..).map(Rank::new).zip(programs) {
        writer.write_rank(rank, program).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Converts a trace to text and back, which folds it again: loops may begin anywhere in their bodies.
pub(crate) fn fold(folder: &Folder, programs: &[Vec<Item>]) -> std::path::PathBuf {
    let mut text = String::new();
    for (rank, program) in (0..).map(Rank::new).zip(programs) {
        flatten(program).for_each(|op| text += &format!("{}\n", TextLine { rank, op }));
    }
    let (source, path) = (folder.write("trace.txt", &text), folder.path("folded.pdt"));
    let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
    convert(&source, &path, &options).unwrap();
    path
}

fn generated(folder: &Folder, generator: &dyn Generator) -> std::path::PathBuf {
    let programs: Vec<Vec<Item>> =
        (0..generator.ranks()).map(|rank| generator.rank(Rank::new(rank))).collect();
    write(folder, &programs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_of_any_body(
        ranks in 2_u32..9,
        count in 3_u64..60,
        before in prop::collection::vec(phase(), 0..3),
        body in prop::collection::vec(phase(), 1..5),
        after in prop::collection::vec(phase(), 0..3),
        protocol in prop::sample::select(&PROTOCOLS[..]),
    ) {
        let folder = Folder::new();
        let programs: Vec<Vec<Item>> =
            (0..ranks).map(|me| program(me, ranks, &before, (count, &body), &after)).collect();
        check(&write(&folder, &programs), &[protocol]);
        check(&fold(&folder, &programs), &[protocol]);
    }
}

/// Bodies of each kind in which ranks wait for each other, alone and long enough that transients end. Without waits each rank
/// has its own pace; if two are slowest by almost the same, it takes long until one of them dominates.
#[test]
fn each_pattern_is_fast_forwarded() {
    for phase in Phase::COUPLED {
        for flops in [[1e6, 1e6, 1e6], [1e6, 3e6, 2e5]] {
            let body = [Phase::Compute(flops), phase];
            let folder = Folder::new();
            let programs: Vec<Vec<Item>> = (0..4).map(|me| program(me, 4, &[], (400, &body), &[])).collect();
            let found = check(&write(&folder, &programs), &[]);
            assert!(found.skipped_iterations > 300, "{phase:?} {flops:?}: {found:?}");
            assert!(found.iteration_boundaries < 100, "{phase:?} {flops:?}: {found:?}");
        }
    }
}

/// In a ring of eager messages that take longer than a computation, a rank depends on its neighbour's previous
/// iteration: after as many iterations as ranks, the effect of every start has passed around the ring.
#[test]
fn periods_of_several_iterations() {
    for ranks in [2, 3, 5, 8] {
        let folder = Folder::new();
        let body = [Phase::Ring { bytes: 60_000 }];
        let start = [Phase::Compute([1e3, 7e5, 3e5])];
        let programs: Vec<Vec<Item>> =
            (0..ranks).map(|me| program(me, ranks, &start, (200, &body), &[])).collect();
        let found = check(&write(&folder, &programs), &[EAGER]);
        assert!(found.skipped_iterations > 150, "{ranks} ranks: {found:?}");
        assert!(
            found.period > 1 && u64::from(ranks).is_multiple_of(found.period),
            "{ranks} ranks: {found:?}"
        );
    }
}

/// One iteration of a rank may correspond to two of another.
#[test]
fn loops_with_different_counts_are_fast_forwarded() {
    let folder = Folder::new();
    let pair = |me| message(0, 1, me, 3, 5000);
    let compute = |flops| vec![Item::Op(Op::Compute { flops })];
    let programs = [
        vec![Item::Loop { count: 200, body: [compute(1e5), pair(0)].concat() }],
        vec![Item::Loop { count: 100, body: [pair(1), compute(2e4), pair(1), compute(3e4)].concat() }],
    ];
    let found = check(&write(&folder, &programs), &[]);
    assert!(found.skipped_iterations > 150, "{found:?}");
    assert_eq!(found.skipped_actions % 2, 0);
}

/// Messages and receives that are pending at iteration boundaries.
#[test]
fn pending_messages_between_iterations() {
    for is_posted in [false, true] {
        for bytes in [2000, 100_000] {
            for settings in [&[][..], &[EAGER]] {
                let folder = Folder::new();
                let programs = programs::ahead(5, 150, bytes, is_posted);
                let found = check(&write(&folder, &programs), settings);
                assert!(found.skipped_iterations > 100, "{bytes} {is_posted} {settings:?}: {found:?}");
                check(&fold(&folder, &programs), settings);
            }
        }
    }
}

#[test]
fn noise_is_never_fast_forwarded() {
    let ring =
        Ring::new(RingParameters { ranks: 6, rounds: 60, bytes: Bytes::new(3000), flops: 1e6 }).unwrap();
    let folder = Folder::new();
    assert!(check(&generated(&folder, &ring), &[]).skipped_iterations > 40);
    let noise = Jitter::new(7, 0.1, JitterScope::Action).unwrap();
    let noisy = |rank| noise.apply(rank, ring.rank(rank)).unwrap();
    let programs: Vec<Vec<Item>> = (0..ring.ranks()).map(Rank::new).map(noisy).collect();
    assert_eq!(check(&write(&folder, &programs), &[]), FastForward::default());
    assert_eq!(check(&fold(&folder, &programs), &[]), FastForward::default());
}

/// A program that depends on simulated time is replayed completely.
#[test]
fn outcomes_that_depend_on_time_are_never_fast_forwarded() {
    let folder = Folder::new();
    let programs = programs::with_tests(80);
    let found = check(&write(&folder, &programs), &["mpi.test_grows=false"]);
    assert_eq!(found.skipped_iterations, 0);
    let found = check(&write(&folder, &programs::from_any(80)), &[]);
    assert_eq!(found.skipped_iterations, 0);
}

/// A failure and a deadlock after many iterations are reported as without fast-forwarding.
#[test]
fn errors_are_the_same() {
    for rest in ["0 send 1 7 100\n1 recv 0 7 10\n", "0 recv 1 7 10\n1 recv 0 7 10\n"] {
        let folder = Folder::new();
        let lines = "0 compute 1e6\n0 send 1 0 500\n1 recv 0 0 500\n".repeat(500);
        let source = folder.write("trace.txt", &format!("0 init\n1 init\n{lines}{rest}"));
        let path = folder.path("trace.pdt");
        let error = |fast_forward: &str| {
            if convert(&source, &path, &ConvertOptions::default()).is_err() {
                return None;
            }
            let mut run = command();
            run.arg("--trace").arg(&path).arg("--platform").arg(committed_platform("torus-5g.toml"));
            run.args(["--model=contention-free", "--quiet", "--set", fast_forward]);
            Some(String::from_utf8(run.assert().code(1).get_output().stderr.clone()).unwrap())
        };
        assert_eq!(error("engine.fast_forward=true"), error("engine.fast_forward=false"));
    }
}

#[test]
fn lu_of_class_c_on_1024_ranks() {
    let folder = Folder::new();
    let lu = NpbLu::new(NpbLuParameters { steps: 12, ..NpbLuParameters::new(Class::C, 1024) }).unwrap();
    let path = folder.path("lu.pdt");
    let mut writer = ArchiveWriter::create(&path, 1024, 1).unwrap();
    (0..1024).map(Rank::new).for_each(|rank| writer.write_rank(rank, &lu.rank(rank)).unwrap());
    writer.finish().unwrap();
    let topology = "platform.topology={ kind = 'fat_tree', levels = [{ children = 32, parents = 1 }, { children = 32, \
                    parents = 16 }], speed = '10Gf', bandwidth = '12.5GBps', latency = '1us' }";
    let found = check(&path, &[topology]);
    assert!(found.skipped_iterations >= 5, "{found:?}");
}

#[test]
fn a_resumed_run_is_fast_forwarded() {
    let folder = Folder::new();
    let body = [Phase::Compute([1e6, 3e6, 2e5]), Phase::COUPLED[0]];
    let programs: Vec<Vec<Item>> = (0..4).map(|me| program(me, 4, &[], (400, &body), &[])).collect();
    let trace = write(&folder, &programs);
    for model in ["network.model=contention-free", "network.model=flow"] {
        let found = check_resumed(config(&trace, &[model]));
        assert!(found.skipped_iterations > 300, "{model}: {found:?}");
    }
}

#[test]
fn the_summary_and_the_report_show_skipped_iterations() {
    let folder = Folder::new();
    let ring = Ring::new(RingParameters { ranks: 4, rounds: 1000, ..RingParameters::default() }).unwrap();
    let (trace, report) = (generated(&folder, &ring), folder.path("report.json"));
    let mut run = command();
    run.arg("--trace").arg(&trace).arg("--platform").arg(committed_platform("torus-5g.toml"));
    run.args(["--model=contention-free", "--set", "engine.fast_forward=true", "--report"]).arg(&report);
    run.assert().code(DONE).stdout(predicates::str::contains("fast-forward: 99"));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let found = &report["fast_forward"];
    assert_eq!(
        (&found["period"], found["skipped_iterations"].as_u64() > Some(990)),
        (&1.into(), true),
        "{found}"
    );
    // The same trace as text has no loops, which a warning says.
    let text = folder.write("ring.txt", "0 init\n0 compute 5\n");
    let mut run = command();
    run.arg("--trace").arg(text).arg("--platform").arg(committed_platform("torus-5g.toml"));
    run.args(["--model=contention-free", "--quiet", "--set", "engine.fast_forward=true"]);
    run.assert().code(DONE).stderr(predicates::str::contains("nothing is fast-forwarded"));
}
