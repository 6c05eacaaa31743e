//! Contention in epochs: one result on any number of threads and processes, close to that of the exact model.
//!
//! Processes are emulated by threads here; the module `processes` uses those of `mpirun`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pdes_core::{Cluster, Progress};
use pdes_replay::{CheckpointPlan, Config, Outcome, Report, RunError, RunSpec, Simulation, StopHandle};

use crate::command_line::Folder;
use crate::determinism::{all_calls, tests_of_requests};
use crate::matrix::{digest, results};
use crate::reference;
use crate::trace_commands::trace;

pub(crate) const TREE: &str = "kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 4, parents = 2 }, { children = 4, parents = 2 }]";
pub(crate) const TORUS: &str = "kind = 'torus', dims = [4, 4, 4]";
pub(crate) const DRAGONFLY: &str =
    "kind = 'dragonfly', groups = 4, blue = 1, chassis = 1, black = 1, blades = 4, green = 1, nodes = 4";

/// Returns the setting of a platform of this shape.
pub(crate) fn platform(topology: &str) -> String {
    format!("platform.topology={{ {topology}, speed = '10Gf', bandwidth = '10GBps', latency = '500ns' }}")
}

pub(crate) fn spec(trace: &Path, topology: &str, settings: &[&str]) -> RunSpec {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set(&platform(topology)).unwrap();
    config.set("network.preset='raw'").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config.resolve().unwrap()
}

pub(crate) fn simulation_of(trace: &Path, topology: &str, settings: &[&str]) -> Simulation {
    Simulation::load(&spec(trace, topology, settings)).unwrap()
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// Replays on this number of processes; returns the outcome of each.
fn replay_on(processes: usize, simulation: &Simulation) -> Vec<Result<Option<Outcome>, RunError>> {
    let outcomes = Cluster::in_memory(processes, |mut cluster| {
        simulation.run(&mut cluster, &Progress::new(simulation.spec().threads))
    });
    outcomes.into_iter().map(|outcome| outcome.expect("no process panics")).collect()
}

/// Returns the outcome of the first process of a replay on this number of processes.
fn outcome_on(processes: usize, simulation: &Simulation) -> Outcome {
    let mut outcomes: Vec<Outcome> =
        replay_on(processes, simulation).into_iter().filter_map(Result::unwrap).collect();
    assert_eq!((outcomes.len(), outcomes[0].processes), (1, processes as u32));
    outcomes.remove(0)
}

/// Replays on any number of threads and processes, and with perturbed schedules; returns the outcome, which must be the same.
fn check(trace: &Path, topology: &str, settings: &[&str]) -> Outcome {
    let settings = [settings, &["network.epoch_s='auto'"]].concat();
    let mut simulation = simulation_of(trace, topology, &settings);
    let first = replay(&simulation);
    for (threads, jitters) in [(1, 2), (2, 3), (3, 2), (7, 1)] {
        for jitter in [None, Some(1), Some(u64::MAX)].into_iter().take(jitters) {
            simulation = simulation.with_threads(threads).with_jitter(jitter);
            let found = results(&replay(&simulation));
            assert!(
                found == results(&first),
                "{} {topology}, {threads} threads, {jitter:?}",
                trace.display()
            );
        }
    }
    for (processes, threads, jitter) in [(2, 1, None), (3, 1, Some(1)), (4, 2, None)] {
        simulation = simulation.with_threads(threads).with_jitter(jitter);
        let found = outcome_on(processes, &simulation);
        assert!(
            results(&found) == results(&first)
                && format!("{:?}", found.epochs) == format!("{:?}", first.epochs),
            "{} {topology}, {processes} processes, {threads} threads, {jitter:?}",
            trace.display()
        );
    }
    check_in_parts(trace, topology, &settings, &first);
    first
}

/// Replays in parts, each from the checkpoint of the one before, on any number of threads and processes, and expects this outcome.
fn check_in_parts(trace: &Path, topology: &str, settings: &[&str], expected: &Outcome) {
    let folder = Folder::new();
    let mut spec = spec(trace, topology, settings);
    let plan = CheckpointPlan {
        directory: folder.path("checkpoints"),
        interval: Duration::from_millis(1),
        resume: true,
    };
    spec.checkpoints = Some(plan);
    let mut simulation = Simulation::load(&spec).unwrap();
    let mut resumed_from = None;
    for part in 0.. {
        let stop = StopHandle::default();
        if part < 12 {
            stop.request();
        }
        let (processes, threads) = [(1, 1), (2, 1), (1, 3), (3, 2)][part % 4];
        simulation = simulation.with_threads(threads).with_stop(stop);
        let mut outcomes = replay_on(processes, &simulation);
        match outcomes.remove(0) {
            Err(RunError::Stopped { actions, .. }) => {
                resumed_from = Some(actions);
            }
            Ok(Some(outcome)) => {
                assert_eq!(outcome.checkpoints.unwrap().resumed_from, resumed_from);
                let name = format!("{} {topology}, in {part} parts", trace.display());
                assert!(results(&outcome) == results(expected), "{name}");
                assert_eq!(format!("{:?}", outcome.epochs), format!("{:?}", expected.epochs), "{name}");
                assert!(outcome.links == expected.links, "{name}: loads of links");
                return;
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn generated(folder: &Folder, name: &str, arguments: &[&str]) -> PathBuf {
    let archive = folder.path(&format!("{name}.pdt"));
    trace(&[&["generate"], arguments, &["--output"]].concat(), &[&archive]).success();
    archive
}

#[test]
fn the_profile_shows_how_regions_share_the_work() {
    let folder = Folder::new();
    let halo =
        generated(&folder, "halo", &["halo3d", "--cells=64,64,64", "--processes=4,4,4", "--iterations=3"]);
    let simulation = simulation_of(&halo, TREE, &["network.epoch_s='auto'", "engine.threads=2"]);
    let profile = simulation.profile_regions(&Progress::new(1)).unwrap();
    assert_eq!(profile.regions, 4);
    assert!(profile.barriers > 0);
    let workers: Vec<_> = profile.predicted.iter().map(|level| level.workers).collect();
    assert_eq!(workers[..3], [2, 4, 8]);
    for (level, fewer) in
        profile.predicted.iter().zip(std::iter::once(&profile.predicted[0]).chain(&profile.predicted))
    {
        // Workers beyond the number of regions are idle, and no worker is busier for having fewer regions.
        assert!(level.parallelism >= fewer.parallelism && level.parallelism <= 4.0 + 1e-9, "{level:?}");
        assert!(level.replay_s[0] <= level.replay_s[1], "{level:?}");
    }
    assert_eq!(profile.region_s.len(), 4);
    assert!((profile.region_s.iter().sum::<f64>() - profile.busy_s).abs() < 1e-6);
    let one = crate::epochs::simulation_of(&halo, TREE, &["network.epoch_s='auto'", "network.regions=1"]);
    assert!(one.profile_regions(&Progress::new(1)).unwrap_err().to_string().contains("one region"));
}

#[test]
fn programs_on_many_regions() {
    let folder = Folder::new();
    let traces = [
        generated(
            &folder,
            "halo",
            &["halo3d", "--cells=64,64,64", "--processes=4,4,4", "--periodic", "--iterations=3"],
        ),
        generated(&folder, "lu", &["npb-lu", "--class=S", "--ranks=4", "--steps=1"]),
        generated(&folder, "fft", &["alltoall-fft", "--ranks=32", "--grid=32,32,32", "--steps=2"]),
        generated(&folder, "sparse", &["random-sparse", "--ranks=64", "--steps=1", "--rounds=2"]),
        generated(&folder, "allreduce", &["allreduce-loop", "--ranks=48", "--iterations=2"]),
    ];
    for (number, trace) in traces.iter().enumerate() {
        for (place, (topology, regions)) in [(TREE, 4), (TORUS, 4), (DRAGONFLY, 4)].into_iter().enumerate() {
            if !reference::is_campaign() && place != number % 3 {
                continue;
            }
            // Neighbouring ranks are on distant hosts, so that most messages cross regions.
            let hosts: String = (0..64).map(|rank| format!("node-{}\n", rank * 29 % 64)).collect();
            let hosts = folder.write("hosts.txt", &hosts);
            let hosts = format!("platform.hosts={hosts:?}");
            let regions = format!("network.regions={regions}");
            let outcome = check(trace, topology, &[&regions, &hosts]);
            let epochs = outcome.epochs.expect("there are epochs");
            assert!(epochs.counts.boundaries > 0 && epochs.counts.messages > 0, "{epochs:?}");
            let exact = replay(&simulation_of(trace, topology, &[&hosts]));
            let (found, expected) =
                (outcome.simulated_time().as_secs_f64(), exact.simulated_time().as_secs_f64());
            assert!(
                (found / expected - 1.0).abs() < 0.1,
                "{} {topology}: {found} s, {expected} s",
                trace.display()
            );
        }
    }
}

#[test]
fn several_ranks_on_a_host() {
    let folder = Folder::new();
    let halo =
        generated(&folder, "halo", &["halo3d", "--cells=64,64,64", "--processes=8,4,4", "--iterations=2"]);
    let hosts: String = (0..128).map(|rank| format!("node-{}\n", rank * 37 % 64)).collect();
    let hosts = format!("platform.hosts={:?}", folder.write("hosts.txt", &hosts));
    for preset in ["'raw'", "'smpi'", "'cm02'"] {
        check(&halo, TREE, &[&hosts, "network.regions=4", &format!("network.preset={preset}")]);
    }
}

/// A ring of 32 ranks that compute unequal amounts, and any number of idle ones.
fn ring(idle: u32) -> String {
    let of_rank = |rank: u32| {
        let (next, before) = ((rank + 1) % 32, (rank + 31) % 32);
        let round = |round: u32| {
            let flops = 2_000 * (1 + (rank * 7 + round * 5) % 23);
            let bytes = 1_000 * (1 + (rank + round) % 40);
            let received = 1_000 * (1 + (before + round) % 40);
            format!(
                "{rank} compute {flops}\n{rank} irecv {before} 0 {received}\n{rank} isend {next} 0 {bytes}\n\
                 {rank} compute {flops}\n{rank} waitall\n"
            )
        };
        format!("{rank} init\n{}{rank} finalize\n", (0..30).map(round).collect::<String>())
    };
    let others = (32..32 + idle).map(|rank| format!("{rank} init\n{rank} finalize\n"));
    (0..32).map(of_rank).chain(others).collect()
}

/// Ranks with a host of their own compute ahead; others share a host, in time order.
#[test]
fn compute_run_ahead_does_not_change_results() {
    let folder = Folder::new();
    let hosts =
        |ranks: u32| -> String { (0..ranks).map(|rank| format!("node-{}\n", rank % 32 * 2)).collect() };
    let ends = |name: &str, idle: u32| {
        let text = folder.write(&format!("{name}.txt"), &ring(idle));
        let hosts = folder.write(&format!("{name}-hosts.txt"), &hosts(32 + idle));
        let outcome = check(&text, TREE, &["network.regions=4", &format!("platform.hosts={hosts:?}")]);
        outcome.program().ends[..32].to_vec()
    };
    assert_eq!(ends("alone", 0), ends("beside", 32));
}

/// A rank that only computes and sends runs ahead again and again.
#[test]
fn a_rank_without_waits_completes() {
    let folder = Folder::new();
    let sends: String = (0..200).map(|_| "0 compute 20000\n0 send 1 0 100\n").collect();
    let receives = "1 recv 0 0 100\n".repeat(200);
    let text = format!("0 init\n{sends}0 finalize\n1 init\n{receives}1 finalize\n");
    let outcome = check(&folder.write("stream.txt", &text), TREE, &[]);
    // 200 computations of 2 us, and the last message.
    assert!((4e-4..4.1e-4).contains(&outcome.simulated_time().as_secs_f64()), "{}", outcome.simulated_time());
}

/// Returns a report without the fields that depend on the machine and on the division of the run.
fn report(simulation: &Simulation, outcome: &Outcome) -> serde_json::Value {
    let mut report = serde_json::to_value(Report::new(simulation, outcome)).unwrap();
    let fields = report.as_object_mut().unwrap();
    for field in
        ["wall_time_s", "load_s", "replay_s", "actions_per_s", "peak_rss_bytes", "threads", "processes"]
    {
        fields.remove(field).unwrap();
    }
    report
}

#[test]
fn the_report_of_several_processes_is_that_of_one() {
    let folder = Folder::new();
    let traces = [
        generated(
            &folder,
            "halo",
            &["halo3d", "--cells=64,64,64", "--processes=4,4,4", "--iterations=3", "--jitter=0.2"],
        ),
        generated(&folder, "fft", &["alltoall-fft", "--ranks=32", "--grid=64,64,64", "--steps=2"]),
    ];
    let timeline = folder.path("timeline.json");
    let timeline_setting = format!("timeline.file={timeline:?}");
    let hosts: String = (0..64).map(|rank| format!("node-{}\n", rank * 29 % 64)).collect();
    let hosts = format!("platform.hosts={:?}", folder.write("hosts.txt", &hosts));
    let settings = [
        "network.epoch_s='auto'",
        "analysis.histograms=true",
        "analysis.matrix=true",
        "analysis.critical_path=true",
        &timeline_setting,
        &hosts,
    ];
    for (trace, topology) in traces.iter().zip([TREE, DRAGONFLY]) {
        let mut simulation = simulation_of(trace, topology, &settings);
        let expected = report(&simulation, &replay(&simulation));
        let events = std::fs::read(&timeline).unwrap();
        for part in ["epochs", "breakdown", "histograms", "communication", "critical_path", "links"] {
            assert!(!expected[part].is_null(), "{part}");
        }
        for (processes, threads) in [(1, 2), (2, 1), (3, 2), (4, 1)] {
            simulation = simulation.with_threads(threads);
            let found = report(&simulation, &outcome_on(processes, &simulation));
            assert_eq!(found, expected, "{processes} processes, {threads} threads");
            assert!(std::fs::read(&timeline).unwrap() == events, "{processes} processes, {threads} threads");
        }
    }
}

/// With more processes than regions some are idle.
#[test]
fn fewer_regions_than_processes() {
    let folder = Folder::new();
    let lu = generated(&folder, "lu", &["npb-lu", "--class=S", "--ranks=16", "--steps=1"]);
    for regions in [1, 2, 3] {
        let regions = format!("network.regions={regions}");
        let simulation = simulation_of(&lu, TORUS, &["network.epoch_s='auto'", &regions]);
        let expected = results(&replay(&simulation));
        assert!(results(&outcome_on(4, &simulation)) == expected, "{regions}");
    }
}

/// A program that depends on the global event order runs on one thread, with the same result.
#[test]
fn programs_that_depend_on_the_global_event_order() {
    let folder = Folder::new();
    for (name, text) in [("calls.txt", all_calls(0)), ("tests.txt", tests_of_requests())] {
        check(&folder.write(name, &text), TREE, &["network.regions=16"]);
    }
    let workers = generated(&folder, "workers", &["master-worker", "--ranks=9", "--tasks=40"]);
    check(&workers, TREE, &["network.regions=16"]);
}

#[test]
fn one_region_without_epochs_is_the_exact_model() {
    let trace = reference::repository().join("configs/traces/lu.S.8");
    let exact = replay(&simulation_of(&trace, TORUS, &[]));
    let same = replay(&simulation_of(&trace, TORUS, &["network.epoch_s=0"]));
    assert_eq!(digest(&same), digest(&exact));
}

#[test]
fn errors_are_those_of_one_thread() {
    let folder = Folder::new();
    let text = "0 init\n9 init\n0 recv 9 0 8\n9 compute 1e6\n9 send 0 0 800\n";
    let lines: String =
        (0..16).map(|rank| format!("{rank} init\n")).filter(|line| !text.contains(line)).collect();
    let trace = folder.write("short.txt", &format!("{lines}{text}"));
    for threads in [1, 2, 3] {
        let settings = [
            "network.regions=4",
            "network.epoch_s='auto'",
            "parallel.oversubscribe=true",
            &format!("engine.threads={threads}"),
        ];
        let simulation = simulation_of(&trace, TREE, &settings);
        let error = simulation.replay(&Progress::new(threads)).unwrap_err().to_string();
        assert!(error.contains("rank 0, action 1") && error.contains("800"), "{error}");
        told_once(replay_on(3, &simulation), &error);
    }
}

/// Checks that one process has this error, and that the others know that it failed.
fn told_once(results: Vec<Result<Option<Outcome>, RunError>>, error: &str) {
    let told = |result: Result<Option<Outcome>, RunError>| match result {
        Err(RunError::OtherProcess { .. }) => None,
        Err(error) => Some(error.to_string()),
        Ok(_) => Some("success".to_owned()),
    };
    let told: Vec<String> = results.into_iter().filter_map(told).collect();
    assert_eq!(told, [error]);
}

/// Epochs follow the latencies with which the run is made.
#[test]
fn epochs_are_those_of_the_scaled_links() {
    let folder = Folder::new();
    let trace = generated(&folder, "halo.pdt", &["halo3d", "--iterations", "2"]);
    let [slow, fast] = ["1", "0.25"].map(|scale| {
        let scale = format!("network.latency_scale={scale}");
        let simulation = simulation_of(&trace, TREE, &["network.epoch_s='auto'", &scale]);
        (simulation.epochs().unwrap().span.as_picos(), replay(&simulation).simulated_time())
    });
    assert_eq!(slow.0, 4 * fast.0);
    assert!(fast.1 < slow.1, "{} and {} s", fast.1, slow.1);
}

#[test]
fn a_deadlock_is_reported_with_its_cycle() {
    let folder = Folder::new();
    let waits =
        |me: u32| format!("{me} init\n{me} recv {} 0 8\n{me} send {} 0 8\n", (me + 1) % 64, (me + 63) % 64);
    let trace = folder.write("cycle.txt", &(0..64).map(waits).collect::<String>());
    let simulation = simulation_of(&trace, TREE, &["network.epoch_s='auto'"]);
    let error = simulation.replay(&Progress::new(1)).unwrap_err().to_string();
    assert!(error.contains("64 ranks wait for each other"), "{error}");
    told_once(replay_on(3, &simulation), &error);
}
