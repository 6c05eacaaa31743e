//! The critical path of a run: independent of the division of the run, as long as the run, and in the report.

use std::path::Path;

use mpi_model::PathParts;
use pdes_core::{Progress, SimDuration};
use pdes_replay::{Config, CriticalPath, Outcome, PathRank, Report, SavedReport, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use proptest::prelude::*;
use trace_mmap::Item;

use crate::command_line::{DONE, Folder, command};
use crate::determinism::{all_calls, committed_platform, operations_among_probes};
use crate::forward::programs::{phase, program};
use crate::forward::write;
use crate::matrix::{Way, digest};

/// Two links of 1 us each and 1 GB/s; 984 and 16 bytes take 1 us more.
const CLUSTER: &str =
    "platform.topology={ kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
const ASKED: &str = "analysis.critical_path=true";
const LOGGPS: &str = "network.model='contention-free'";
const FLOW: &str = "network.model='flow'";

/// Rank 1 waits a millisecond for rank 0, which then waits half of one for rank 1.
const TRACE: &str = "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n0 send 1 0 999984\n1 compute 500000\n\
                     1 recv 0 0 999984\n";

fn simulation_of(trace: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&[CLUSTER, "network.preset='raw'", ASKED], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// Returns the critical path of a run, which must be as long as the run.
fn path_of(outcome: &Outcome) -> &mpi_model::CriticalPath {
    let path = outcome.program().findings.critical_path.as_ref().expect("it is asked for");
    let (slowest, _) = outcome.program().slowest_and_fastest().unwrap();
    assert_eq!((path.rank(), path.end()), (slowest, outcome.simulated_time()));
    let all = SimDuration::from_picos(path.end().as_picos());
    assert_eq!(path.calls().map(|(_, time)| time).sum::<SimDuration>(), all);
    let PathParts { compute, sleep, library, latency, bandwidth, waiting } = path.parts();
    assert_eq!(compute + sleep + library + latency + bandwidth + waiting, all);
    let segments = path.segments();
    assert!(segments.len() <= 129 && segments.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(segments.iter().map(|part| part.to - part.from).sum::<SimDuration>(), all);
    path
}

/// Replays, writes the report, and reads it again.
fn reported(folder: &Folder, trace: &str, settings: &[&str]) -> CriticalPath {
    let simulation = simulation_of(&folder.write("trace.txt", trace), settings);
    let outcome = replay(&simulation);
    path_of(&outcome);
    let report = Report::new(&simulation, &outcome);
    report.write(&folder.path("report.json")).unwrap();
    let saved = SavedReport::from_path(&folder.path("report.json")).unwrap();
    assert_eq!(saved.sections.critical_path, report.sections.critical_path);
    saved.sections.critical_path.expect("it is asked for")
}

#[test]
fn the_report_has_the_critical_path() {
    let folder = Folder::new();
    for model in [LOGGPS, FLOW] {
        let CriticalPath { rank, time_ps, time_s, hops, parts, calls, ranks, segments } =
            reported(&folder, TRACE, &[model]);
        assert_eq!((rank, time_ps, time_s, hops), (0, 2_505_000_000, 0.002505, 2), "{model}");
        let expected = [
            ("compute", 1_500_000_000),
            ("sleep", 0),
            ("library", 0),
            ("latency", 4_000_000),
            ("bandwidth", 1_001_000_000),
            ("waiting", 0),
        ];
        assert_eq!(parts.named(), expected);
        let calls: Vec<_> = calls.iter().map(|call| (&*call.call, call.time_ps)).collect();
        assert_eq!(calls, [("compute", 1_500_000_000), ("send", 1_002_000_000), ("recv", 3_000_000)]);
        // Bins of 2^25 ps. The transfer of the large message is time of rank 0, which waits for it.
        let bin = 1 << 25;
        let [first, second, last] = segments[..] else { panic!("{segments:?}") };
        assert_eq!((first.from_ps, first.to_ps, first.rank), (0, 29 * bin, 0));
        assert_eq!((second.to_ps, second.rank, last.to_ps, last.rank), (44 * bin, 1, time_ps, 0));
        let on = |rank, time_ps| PathRank { rank, time_ps };
        assert_eq!(ranks, [on(0, time_ps - 15 * bin), on(1, 15 * bin)]);
    }
}

/// Two messages of a megabyte share the link of the receiver: each alone would take a millisecond.
#[test]
fn messages_wait_for_those_with_which_they_share_links() {
    let trace = "0 init\n1 init\n2 init\n0 send 2 0 999984\n1 send 2 0 999984\n2 irecv 0 0 999984\n2 irecv 1 0 999984\n2 waitall\n";
    let folder = Folder::new();
    for (settings, shared) in [
        (&[LOGGPS][..], 0),
        (&[FLOW, "network.cross_traffic=false"], 1_000_000_000),
        (&[FLOW, "network.cross_traffic=false", "network.epoch_s='auto'"], 1_000_000_000),
    ] {
        let parts = reported(&folder, trace, settings).parts;
        assert_eq!((parts.latency_ps, parts.bandwidth_ps), (2_000_000, 1_000_000_000), "{settings:?}");
        assert!(parts.waiting_ps.abs_diff(shared) <= 1_000_000, "{settings:?}: {parts:?}");
    }
}

#[test]
fn the_path_does_not_depend_on_how_a_run_is_divided() {
    let folder = Folder::new();
    let traces = [all_calls(3), operations_among_probes()];
    for (trace, every) in traces.iter().zip([83, 211]) {
        let trace = folder.write("calls.txt", trace);
        let settings = ["mpi.collectives='ompi'", "mpi.collectives='analytic'", "mpi.eager_below_bytes=2000"];
        for (number, setting) in settings.into_iter().enumerate() {
            let mut simulation =
                simulation_of(&trace, &[LOGGPS, setting, "mpi.isend_overhead='0:1us:0.1ns'"]);
            let expected = replay(&simulation);
            path_of(&expected);
            for way in Way::part(every, number, 3) {
                let partition = way.partition(simulation.trace().ranks(), &folder);
                simulation = simulation.with_threads(way.threads).with_partition(partition);
                let found = way.replay(&simulation);
                assert_eq!(
                    found.program().findings.critical_path,
                    expected.program().findings.critical_path,
                    "{setting} {way:?}"
                );
            }
        }
    }
}

#[test]
fn the_path_with_contention_does_not_depend_on_threads() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for settings in [&[FLOW, "mpi.eager_below_bytes=2000"][..], &[FLOW, "network.epoch_s='auto'"]] {
        let mut simulation = simulation_of(&trace, settings);
        let expected = replay(&simulation);
        path_of(&expected);
        for (threads, jitter) in [(1, Some(1)), (2, None), (3, Some(7))] {
            simulation = simulation.with_threads(threads).with_jitter(jitter);
            assert_eq!(
                replay(&simulation).program().findings.critical_path,
                expected.program().findings.critical_path,
                "{settings:?}"
            );
        }
    }
}

#[test]
fn critical_paths_do_not_change_results() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for model in [LOGGPS, FLOW] {
        let without = replay(&simulation_of(&trace, &[model, "analysis.critical_path=false"]));
        assert_eq!(without.program().findings.critical_path, None);
        assert_eq!(digest(&replay(&simulation_of(&trace, &[model]))), digest(&without), "{model}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Paths of any program are as long as the run, with any library and on any machine, and the same on three threads and on two
    /// processes.
    #[test]
    fn paths_of_any_program_are_as_long_as_the_run(
        ranks in 2_u32..9,
        count in 1_u64..12,
        before in prop::collection::vec(phase(), 0..3),
        body in prop::collection::vec(phase(), 1..5),
        eager in prop::sample::select(vec![0, 65536]),
        overhead in prop::sample::select(vec!["0:0:0", "0:1us:1ns"]),
        collectives in prop::sample::select(vec!["default", "mpich", "analytic"]),
        model in prop::sample::select(vec![LOGGPS, FLOW]),
    ) {
        let folder = Folder::new();
        let programs: Vec<Vec<Item>> =
            (0..ranks).map(|me| program(me, ranks, &before, (count, &body), &[])).collect();
        let settings = [
            model,
            &format!("mpi.eager_below_bytes={eager}"),
            &format!("mpi.send_overhead='{overhead}'"),
            &format!("mpi.isend_overhead='{overhead}'"),
            &format!("mpi.receive_overhead='{overhead}'"),
            &format!("mpi.collectives='{collectives}'"),
        ];
        let mut simulation = simulation_of(&write(&folder, &programs), &settings);
        let first = replay(&simulation);
        let parts = path_of(&first).parts();
        prop_assert!(model == FLOW || parts.waiting == SimDuration::ZERO);
        let ways = Way::all().filter(|way| [(3, 1), (1, 2)].contains(&(way.threads, way.processes)));
        for way in ways.step_by(31) {
            simulation = simulation.with_threads(way.threads);
            prop_assert_eq!(&way.replay(&simulation).into_program().findings.critical_path, &first.program().findings.critical_path);
        }
    }
}

#[test]
fn critical_paths_disable_fast_forwarding() {
    let folder = Folder::new();
    let simulation = simulation_of(&folder.write("trace.txt", TRACE), &[LOGGPS, "engine.fast_forward=true"]);
    assert_eq!(replay(&simulation).fast_forward, None);
    assert!(simulation.warnings().iter().any(|warning| warning.contains("a critical path goes through")));
}

#[test]
fn the_table_shows_the_path() {
    let folder = Folder::new();
    let platform = committed_platform("torus-5g.toml");
    let mut run = command();
    run.arg("--trace").arg(folder.write("trace.txt", TRACE)).arg("--platform").arg(platform);
    run.args([
        "--model",
        "contention-free",
        "--set",
        ASKED,
        "--set",
        "analysis.waits=false",
        "--quiet",
        "--report",
    ]);
    run.arg(folder.path("report.json")).assert().code(DONE);
    let path = SavedReport::from_path(&folder.path("report.json")).unwrap().sections.critical_path.unwrap();
    let mut table = command();
    table.arg("report").arg(folder.path("report.json")).assert().code(DONE).stdout(
        contains(format!("critical path to the end of rank 0: {:.9} s, 2 hops between ranks", path.time_s))
            .and(contains(format!("compute          {:>18.9} s", path.parts.compute_ps as f64 / 1e12)))
            .and(contains("rank                      on the path   share")),
    );
}
