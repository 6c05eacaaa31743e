//! Breakdowns: in the report, on the terminal, and without effect on the result.

use std::path::Path;

use mpi_model::Statistics;
use pdes_core::Progress;
use pdes_replay::{Breakdown, Config, Histogram, Histograms, Outcome, Report, SavedReport, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::determinism::all_calls;
use crate::matrix::{Way, digest, results};

/// Two links of 1 us each and 1 GB/s; 984 and 16 bytes take 1 us more.
const CLUSTER: &str =
    "platform.topology={ kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";

/// Rank 1 waits a millisecond for rank 0, which then waits half of one for rank 1, in two call sites.
const TRACE: &str = "0 init\n1 init\n0 compute 1e6\n0 location a.c 1\n0 send 1 0 984\n1 location a.c 2\n1 recv 0 0 984\n\
                     0 send 1 0 999984\n1 location b.c 3\n1 compute 500000\n1 recv 0 0 999984\n";

fn simulation_of(trace: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&[CLUSTER, "network.preset='raw'"], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn replay(simulation: &Simulation) -> Outcome {
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

/// Replays, writes the report, and reads it again.
fn breakdown(folder: &Folder, trace: &str, settings: &[&str]) -> Breakdown {
    let simulation = simulation_of(&folder.write("trace.txt", trace), settings);
    let report = Report::new(&simulation, &replay(&simulation));
    report.write(&folder.path("report.json")).unwrap();
    let saved = SavedReport::from_path(&folder.path("report.json")).unwrap();
    assert_eq!(saved.sections.breakdown, report.sections.breakdown);
    assert_eq!(saved.imbalance, report.imbalance);
    saved.sections.breakdown.expect("it is asked for by default")
}

#[test]
fn the_report_says_who_waits_for_whom() {
    let folder = Folder::new();
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let Breakdown { total, calls, regions, ranks, rank_calls } = breakdown(&folder, TRACE, &[model]);
        // 1 ms, 3 us for the small message; 0.5 ms, 1.002 ms for the large one.
        let (late, transfer) = (1_000_000_000, 1_002_000_000);
        assert_eq!(ranks.end_ps[..], [2_505_000_000; 2], "{model}");
        assert_eq!(ranks.compute_ps[..], [late, late / 2]);
        assert_eq!(ranks.late_sender_ps[..], [0, late]);
        // Rank 0 posts its large message at once, rank 1 is ready for it after 3 us and half a millisecond.
        assert_eq!(ranks.late_receiver_ps[..], [3_000_000 + late / 2, 0]);
        assert_eq!(ranks.transfer_ps[..], [transfer, 3_000_000 + transfer]);
        assert_eq!(ranks.library_ps[..], [0, 0]);
        assert!((total.time_s - 0.00501).abs() < 1e-12 && (total.waiting_s - 0.001503).abs() < 1e-12);
        let named: f64 = total.named().iter().map(|(_, time)| time).sum();
        assert!((named - total.time_s).abs() < 1e-12);
        let call = calls.iter().zip(&rank_calls).find(|(call, _)| call.action == "recv").unwrap();
        assert_eq!((call.0.count, &call.1.time_ps[..]), (2, &[0, late + 3_000_000 + transfer][..]));
        assert_eq!(call.1.waiting_ps[..], [0, late]);
        let sites: Vec<_> = regions.iter().map(|region| (region.site.as_deref(), region.ranks)).collect();
        let expected = [(Some("a.c:1"), 1), (Some("b.c:3"), 1), (Some("a.c:2"), 1), (None, 2)];
        assert_eq!(sites.len(), expected.len());
        assert!(expected.iter().all(|site| sites.contains(site)), "{sites:?}");
    }
}

/// The longest computation of ranks 0, 1 and 2 is 3, the mean 2.
#[test]
fn imbalance_compares_with_the_mean() {
    let folder = Folder::new();
    let trace = "0 init\n1 init\n2 init\n0 compute 2e6\n1 compute 3e6\n2 compute 1e6\n0 barrier\n1 barrier\n2 barrier\n";
    let found = breakdown(&folder, trace, &["network.model='contention-free'", "mpi.collectives='analytic'"]);
    assert_eq!(found.ranks.wait_at_barrier_ps[..], [1_000_000_000, 0, 2_000_000_000]);
    assert_eq!(found.regions.len(), 1);
    assert!((found.regions[0].imbalance - 0.5).abs() < 1e-12);
    let imbalance = SavedReport::from_path(&folder.path("report.json")).unwrap().imbalance.unwrap();
    assert_eq!((imbalance.rank, imbalance.compute), (1, 0.5));
}

/// Analyses change no result, for any program.
#[test]
fn analyses_do_not_change_results() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let with = replay(&simulation_of(&trace, &[model]));
        let without = replay(&simulation_of(&trace, &[model, "analysis.waits=false"]));
        assert_eq!(digest(&with), digest(&without), "{model}");
        assert!(without.program().statistics.iter().all(|rank| rank.breakdown().is_none()));
        assert!(results(&with).1.len() > without.program().statistics.len());
        assert!(with.program().statistics.iter().any(|rank| rank.breakdown().is_some_and(waits)));
        assert!(Report::new(&simulation_of(&trace, &[model]), &without).sections.breakdown.is_none());
    }
}

fn waits(breakdown: &mpi_model::Breakdown) -> bool {
    breakdown.all().waited() > pdes_core::SimDuration::ZERO
}

/// Two messages, and two waits: 1 ms for the first message, and 3 us and half a millisecond for the second receive.
#[test]
fn waits_of_many_ranks_are_analysed_on_request() {
    let folder = Folder::new();
    for (ranks, setting, looks) in [
        (1 << 16, None, true),
        ((1 << 16) + 1, None, false),
        ((1 << 16) + 1, Some("analysis.waits=true"), true),
        ((1 << 16) + 1, Some("analysis.histograms=true"), true),
    ] {
        let settings = [&format!("trace.ranks={ranks}"), "network.model='contention-free'"];
        let settings: Vec<&str> = settings.into_iter().chain(setting).collect();
        let outcome = replay(&simulation_of(&folder.write("trace.txt", TRACE), &settings));
        assert_eq!(
            outcome.program().statistics[0].breakdown().is_some(),
            looks,
            "{ranks} ranks, {setting:?}"
        );
    }
}

#[test]
fn messages_and_waits_are_counted() {
    let folder = Folder::new();
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let simulation =
            simulation_of(&folder.write("trace.txt", TRACE), &[model, "analysis.histograms=true"]);
        let report = Report::new(&simulation, &replay(&simulation));
        report.write(&folder.path("report.json")).unwrap();
        let saved = SavedReport::from_path(&folder.path("report.json")).unwrap();
        assert_eq!(saved.sections.histograms, report.sections.histograms);
        let Histograms { message_bytes, latency_ps, waiting_ps } = saved.sections.histograms.unwrap();
        let check = |found: &Histogram, expected: [u64; 2]| {
            assert_eq!((found.count, &found.counts[..]), (2, &[1, 1][..]), "{model}");
            for (found, expected) in found.values.iter().zip(expected) {
                assert!(*found <= expected && expected - found <= expected / 1000, "{found} {expected}");
            }
            assert_eq!((found.min, found.max), (found.values[0], found.values[1]));
            assert_eq!((found.p50, found.p99), (found.min, found.max));
        };
        check(&message_bytes, [984, 999_984]);
        // The second one is sent at 1 ms and arrives at 2.505 ms.
        check(&latency_ps, [3_000_000, 1_505_000_000]);
        check(&waiting_ps, [503_000_000, 1_000_000_000]);
    }
}

/// Includes eager messages, whose data arrive before their receives, and those of operations beside the program.
#[test]
fn counts_do_not_depend_on_the_division() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        let analyses = ["analysis.histograms=true", "analysis.matrix=true", "analysis.matrix_groups=2"];
        let settings = [&[model, "mpi.eager_below_bytes=2000"], &analyses[..]].concat();
        let (mut found, mut matrices) = (Vec::new(), Vec::new());
        let mut simulation = simulation_of(&trace, &settings);
        for way in Way::all().step_by(101) {
            simulation = simulation.with_threads(way.threads);
            let findings = way.replay(&simulation).into_program().findings;
            found.push(findings.distributions.expect("it is asked for"));
            matrices.push(findings.matrix.expect("it is asked for"));
        }
        assert!(matrices.iter().all(|other| *other == matrices[0]), "{model}");
        let counted: u64 = matrices[0].cells.values().map(|traffic| traffic.messages).sum();
        assert_eq!((matrices[0].group_size, counted), (3, found[0].bytes.len()), "{model}");
        assert!(found.iter().all(|other| *other == found[0]), "{model}");
        let outcome = replay(&simulation);
        assert_eq!(outcome.program().findings.distributions.as_ref(), Some(&found[0]));
        assert_eq!(found[0].bytes.len(), found[0].latency.len(), "each message arrives");
        let sent: u64 = outcome.program().statistics.iter().map(|rank| rank.messages).sum();
        assert_eq!(found[0].bytes.len(), sent, "and is received");
        let others = self::simulation_of(&trace, &[model, "mpi.eager_below_bytes=2000"]);
        assert_eq!(digest(&outcome), digest(&replay(&others)));
    }
}

#[test]
fn the_matrix_has_bytes_messages_and_times_in_transfer() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    for model in ["network.model='contention-free'", "network.model='flow'"] {
        for (groups, size, pair) in [("512", 1, (0, 1)), ("1", 2, (0, 0))] {
            let setting = format!("analysis.matrix_groups={groups}");
            let simulation = simulation_of(&trace, &[model, "analysis.matrix=true", &setting]);
            let report = Report::new(&simulation, &replay(&simulation));
            report.write(&folder.path("report.json")).unwrap();
            let saved = SavedReport::from_path(&folder.path("report.json")).unwrap();
            let matrix = saved.sections.communication.unwrap();
            assert_eq!((matrix.group_size, matrix.groups), (size, 2 / size), "{model}");
            assert_eq!((&matrix.from[..], &matrix.to[..]), (&[pair.0][..], &[pair.1][..]));
            assert_eq!((&matrix.bytes[..], &matrix.messages[..]), (&[984 + 999_984][..], &[2][..]));
            // The small message flies for 3 us. The large one waits for its receive, at 1.503 ms, and arrives at 2.505 ms.
            assert_eq!(matrix.transfer_ps[..], [3_000_000 + 1_002_000_000]);
        }
    }
    let mut misuse = command();
    misuse.arg("--trace").arg(&trace).args(["--set", CLUSTER, "--set", "analysis.matrix_groups=0"]);
    misuse.assert().code(MISUSE).stderr(contains("found 0, expected a whole number from 1 to 16384"));
}

#[test]
fn call_trees_add_up() {
    let folder = Folder::new();
    let simulation = simulation_of(&folder.write("trace.txt", TRACE), &["network.model='flow'"]);
    let sections = Report::new(&simulation, &replay(&simulation)).sections;
    let (tree, breakdown) = (sections.call_tree.unwrap(), sections.breakdown.unwrap());
    let node = |site: Option<&str>, action: &str| {
        let found = tree.nodes.iter().find(|node| node.site.as_deref() == site && node.action == action);
        found.unwrap_or_else(|| panic!("{site:?} {action}: {:?}", tree.nodes))
    };
    assert_eq!(tree.group_size, 1);
    assert_eq!(node(None, "compute").time_ps[..], [1_000_000_000, 0]);
    let waits = node(Some("a.c:2"), "recv");
    assert_eq!((waits.count, &waits.time_ps[..]), (1, &[0, 1_003_000_000][..]));
    assert_eq!(waits.waiting_ps[..], [0, 1_000_000_000]);
    for rank in 0..2 {
        let sum: u64 = tree.nodes.iter().map(|node| node.time_ps[rank]).sum();
        assert_eq!(sum, breakdown.ranks.end_ps[rank]);
    }
}

#[test]
fn histograms_need_waits() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let mut misuse = command();
    misuse.arg("--trace").arg(trace).args(["--set", CLUSTER, "--set", "analysis.histograms=true"]);
    misuse
        .args(["--set", "analysis.waits=false"])
        .assert()
        .code(MISUSE)
        .stderr(contains("analysis.waits = true"));
}

#[test]
fn totals_of_other_versions_are_refused() {
    let mut bytes = postcard::to_stdvec(&Statistics::default()).unwrap();
    *bytes.last_mut().unwrap() = 2;
    assert!(postcard::from_bytes::<Statistics>(&bytes).is_err());
}

#[test]
fn the_table_shows_parts_calls_ranks_and_sites() {
    let folder = Folder::new();
    breakdown(&folder, TRACE, &["network.model='contention-free'"]);
    let mut table = command();
    table.arg("report").arg(folder.path("report.json")).assert().code(DONE).stdout(
        contains("2 ranks, 0.002505000 s")
            .and(contains("late_sender             0.001000000 s  20.0 %"))
            .and(contains("recv                        2        0.002005000 s     0.0 %    50.1 %    49.9 %  late_sender"))
            .and(contains("1                       0.001000000 s        0.002505000 s    39.9 %  late_sender"))
            .and(contains("b.c:3")),
    );
}

#[test]
fn invalid_reports_are_reported() {
    let folder = Folder::new();
    let expect = |name: &str, text: Option<&str>, words: &str| {
        let path = text.map_or(folder.path(name), |text| folder.write(name, text));
        command().arg("report").arg(path).assert().code(FAILED).stderr(contains(name).and(contains(words)));
    };
    expect("none.json", None, "No such file");
    expect("text.json", Some("hello"), "expected a report that pdes-replay wrote");
    expect("profile.json", Some("{\"format\": \"other\", \"version\": 1}"), "found the format \"other\"");
    let later = "{\"format\": \"pdes-replay report\", \"version\": 77}";
    expect("later.json", Some(later), "found version 77 of the format, expected 1");
    let settings = ["network.model='contention-free'", "analysis.waits=false"];
    let simulation = simulation_of(&folder.write("trace.txt", TRACE), &settings);
    Report::new(&simulation, &replay(&simulation)).write(&folder.path("without.json")).unwrap();
    expect("without.json", None, "replay with analysis.waits = true");
}
