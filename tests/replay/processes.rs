//! The command under `mpirun`, or under the launcher that the variable `MPIRUN` names.

#[path = "processes/calibration.rs"]
mod calibration;
#[path = "processes/resumed.rs"]
mod resumed;

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use pdes_replay::Report;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::determinism::{all_calls, tests_of_requests};
use crate::epochs;
use crate::matrix::{Way, digest, simulation_of};
use crate::reference::{is_campaign, repository};
use crate::storage::regions;
use crate::timeline::with_places;

/// Options for Open MPI: more processes than cores, as any user.
pub(crate) const OVERSUBSCRIBED: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_mpi_yield_when_idle", "1"),
];

/// Runs the command on this many processes, all of which work in a replay.
pub(crate) fn mpirun(processes: usize, arguments: &[&str]) -> Assert {
    match arguments {
        [flag, ..] if flag.starts_with("--") => {
            mpirun_by_cores(processes, &[arguments, &["--set=parallel.oversubscribe=true"]].concat())
        }
        _ => mpirun_by_cores(processes, arguments),
    }
}

/// Runs the command on this many processes.
fn mpirun_by_cores(processes: usize, arguments: &[&str]) -> Assert {
    let launcher = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let mut mpirun = Command::new(&launcher);
    mpirun.args(["-np", &processes.to_string()]).arg(command().get_program()).args(arguments);
    mpirun.envs(OVERSUBSCRIBED);
    // Longer than any of these runs takes on a busy machine.
    mpirun.env_remove("RUST_LOG").timeout(Duration::from_secs(120)).assert()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn replay<'a>(trace: &'a str, platform: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["--trace", trace, "--platform", platform, "--set=network.model=contention-free"], more].concat()
}

fn platform() -> String {
    text(&repository().join("configs/platforms/fattree-hdr.toml"))
}

/// Returns the error of a process that was started alone with the launcher's variables.
#[test]
#[cfg_attr(feature = "mpi", ignore = "the program has MPI")]
fn a_program_without_mpi_says_so_under_mpirun() {
    for (size, number) in [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK")] {
        let start = |me: &str| {
            let mut command = command();
            command.arg("--config").arg(repository().join("configs/lu-s-8.toml"));
            command.env(size, "2").env(number, me).assert().code(FAILED).stdout("")
        };
        start("0").stderr(contains("started as one of 2 processes")).stderr(contains("--features mpi"));
        start("1").stderr("");
    }
}

/// A diagonal of the matrix of divisions of a replay.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn one_digest() {
    let folder = Folder::new();
    let traces = [
        repository().join("configs/traces/lu.S.8"),
        folder.write("calls.txt", &all_calls(3)),
        folder.write("tests.txt", &tests_of_requests()),
    ];
    for (number, trace) in traces.into_iter().enumerate() {
        let simulation = simulation_of(&trace, "contention-free");
        let outcome = simulation.replay(&pdes_core::Progress::new(1)).unwrap();
        let expected = digest(&outcome).to_string();
        let breakdown = serde_json::to_value(Report::new(&simulation, &outcome).sections.breakdown).unwrap();
        for way in Way::part(121, number, 3) {
            let report = folder.path("report.json");
            let partition = way.partition(simulation.trace().ranks(), &folder).name();
            let settings = [
                format!("--threads={}", way.threads),
                format!("--set=parallel.partition={partition:?}"),
                format!("--report={}", report.display()),
            ];
            let (trace, platform) = (text(&trace), platform());
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let assert = mpirun(way.processes, &replay(&trace, &platform, &settings));
            assert.code(DONE);
            let report: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
            assert_eq!(report["digest"], expected.as_str(), "{trace} {way:?}");
            assert_eq!(report["processes"], way.processes, "{trace} {way:?}");
            assert_eq!(report["breakdown"], breakdown, "{trace} {way:?}");
        }
    }
}

/// Returns the arguments of a replay with contention, in epochs, on a platform of this shape.
fn in_epochs(trace: &Path, topology: &str, more: &[String]) -> Vec<String> {
    let settings =
        [epochs::platform(topology), "network.preset='raw'".into(), "network.epoch_s='auto'".into()];
    let settings = settings.iter().map(|setting| format!("--set={setting}"));
    [format!("--trace={}", text(trace))].into_iter().chain(settings).chain(more.iter().cloned()).collect()
}

/// Each process runs regions of its own.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn one_digest_of_regions() {
    let folder = Folder::new();
    let generated = |name, arguments| epochs::generated(&folder, name, arguments);
    let lu = generated("lu", &["npb-lu", "--class=S", "--ranks=16", "--steps=2"]);
    let halo = generated("halo", &["halo3d", "--cells=64,64,64", "--processes=4,4,4", "--iterations=3"]);
    let fft = generated("fft", &["alltoall-fft", "--ranks=32", "--grid=32,32,32", "--steps=2"]);
    // Neighbouring ranks are on distant hosts, so that most messages cross regions, and all regions have ranks.
    let hosts: String = (0..64).map(|rank| format!("node-{}\n", rank * 29 % 64)).collect();
    let hosts = format!("platform.hosts={:?}", folder.write("hosts.txt", &hosts));
    let ways = [
        (&lu, epochs::TREE, (2, 1)),
        (&halo, epochs::DRAGONFLY, (3, 1)),
        (&fft, epochs::TORUS, (4, 2)),
        (&lu, epochs::TORUS, (3, 1)),
        (&lu, epochs::DRAGONFLY, (4, 2)),
        (&halo, epochs::TREE, (4, 2)),
        (&halo, epochs::TORUS, (2, 1)),
        (&fft, epochs::TREE, (3, 1)),
        (&fft, epochs::DRAGONFLY, (2, 1)),
    ];
    for (trace, topology, way) in ways.into_iter().take(if is_campaign() { 9 } else { 3 }) {
        let (processes, threads) = way;
        let settings = ["network.epoch_s='auto'", "network.regions=4", &hosts];
        let simulation = epochs::simulation_of(trace, topology, &settings);
        let outcome = simulation.replay(&pdes_core::Progress::new(1)).unwrap();
        let expected = serde_json::to_value(Report::new(&simulation, &outcome)).unwrap();
        let file = folder.path("report.json");
        let more = [
            "--set=network.regions=4".to_owned(),
            format!("--set={hosts}"),
            format!("--threads={threads}"),
            format!("--report={}", file.display()),
        ];
        let arguments = in_epochs(trace, topology, &more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let assert = mpirun(processes, &arguments);
        assert.code(DONE);
        let found: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for part in ["digest", "epochs", "breakdown", "links", "warnings", "time_by_action"] {
            assert_eq!(found[part], expected[part], "{part} of {} {topology} {way:?}", trace.display());
        }
        assert_eq!((&found["processes"], &found["threads"]), (&processes.into(), &threads.into()));
        assert!(found["epochs"]["exchange_messages"].as_u64() > Some(0), "{}", found["epochs"]);
    }
}

/// Processes without cores of their own have no ranks and no regions.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn processes_without_cores_wait() {
    let folder = Folder::new();
    let trace = epochs::generated(&folder, "lu", &["npb-lu", "--class=S", "--ranks=16", "--steps=2"]);
    // The threads of the first process take all cores.
    let threads = format!("--threads={}", std::thread::available_parallelism().unwrap());
    let settings = ["network.epoch_s='auto'", "network.regions=4"];
    let with_epochs = epochs::simulation_of(&trace, epochs::TREE, &settings);
    let more = ["--set=network.regions=4".to_owned(), threads.clone()];
    let in_epochs = in_epochs(&trace, epochs::TREE, &more);
    let text = text(&trace);
    let platform = platform();
    let partition = "--set=parallel.partition=auto";
    for (simulation, arguments) in [
        (with_epochs, in_epochs.iter().map(String::as_str).collect()),
        (simulation_of(&trace, "contention-free"), replay(&text, &platform, &[&threads, partition])),
    ] {
        let expected = digest(&simulation.replay(&pdes_core::Progress::new(1)).unwrap()).to_string();
        let assert = mpirun_by_cores(3, &arguments);
        assert.code(DONE).stdout(contains(expected)).stderr(contains("2 of 3 processes wait"));
    }
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn failures_in_regions_are_told_once() {
    let folder = Folder::new();
    let cluster = "kind = 'cluster', hosts = 6";
    let regions = ["--set=network.regions=3".to_owned(), "--threads=2".to_owned()];
    let expect = |trace: &Path, words: &str| {
        let arguments = in_epochs(trace, cluster, &regions);
        expect_failure(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), FAILED, words);
    };
    let inits: String = (0..6).map(|me| format!("{me} init\n")).collect();
    let truncated =
        folder.write("truncated.txt", &format!("{inits}4 send 5 0 100\n5 recv 4 0 10\n0 send 3 0 8\n"));
    expect(&truncated, "truncated.txt:8: rank 5, action 1");
    let waits =
        |me: u32| format!("{me} init\n{me} recv {} 0 8\n{me} send {} 0 8\n", (me + 1) % 6, (me + 5) % 6);
    let cycle = folder.write("cycle.txt", &(0..6).map(waits).collect::<String>());
    expect(&cycle, "6 ranks wait for each other\n  rank 0 waits in action 1 at ");
}

/// A program that depends on the global event order is replayed by the first process.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn regions_of_programs_that_ask_who_comes_first() {
    let folder = Folder::new();
    let archive = epochs::generated(&folder, "workers", &["master-worker", "--ranks=9", "--tasks=40"]);
    let lines = folder.write("calls.txt", &all_calls(3));
    for trace in [archive, lines] {
        let settings = ["network.epoch_s='auto'", "network.regions=16"];
        let simulation = epochs::simulation_of(&trace, epochs::TREE, &settings);
        let expected = digest(&simulation.replay(&pdes_core::Progress::new(1)).unwrap()).to_string();
        let arguments = in_epochs(&trace, epochs::TREE, &["--set=network.regions=16".to_owned()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let assert = mpirun(3, &arguments);
        let output = assert.code(DONE).get_output().clone();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(stdout.contains(&expected), "{stdout}");
        assert_eq!(stderr.matches("which needs one thread for all regions").count(), 1, "{stderr}");
    }
}

/// Fails on three processes with this status, and reports these words once.
fn expect_failure(arguments: &[&str], status: i32, words: &str) {
    let assert = mpirun(3, arguments);
    let assert = assert.code(status).stdout("");
    let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert_eq!(stderr.matches(words).count(), 1, "{words:?} once in:\n{stderr}");
    assert_eq!(stderr.matches("pdes-replay: ").count(), 1, "{stderr}");
    assert!(!stderr.contains("MPI_ABORT"), "{stderr}");
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn failures_are_told_once() {
    let folder = Folder::new();
    let rank_3_fails =
        "0 init\n1 init\n2 init\n3 init\n0 recv 1 0 8\n2 send 3 0 100\n3 recv 2 0 10\n1 send 0 0 8\n";
    let waits =
        |me: u32| format!("{me} init\n{me} recv {} 0 8\n{me} send {} 0 8\n", (me + 1) % 6, (me + 5) % 6);
    let cycle: String = (0..6).map(waits).collect();
    let of_rank_3 = text(&folder.write("truncated.txt", rank_3_fails));
    let cycle = text(&folder.write("cycle.txt", &cycle));
    let missing = text(&folder.path("missing.txt"));
    let damaged = text(&folder.write("damaged.txt", "0 init\n0 nothing\n"));
    let platform = platform();
    expect_failure(&replay(&of_rank_3, &platform, &[]), FAILED, "truncated.txt:7: rank 3, action 1");
    let all_of_the_cycle = "6 ranks wait for each other\n  rank 0 waits in action 1 at ";
    expect_failure(&replay(&cycle, &platform, &["--threads=2"]), FAILED, all_of_the_cycle);
    expect_failure(&replay(&cycle, &platform, &["--set=network.model=flow"]), FAILED, all_of_the_cycle);
    expect_failure(&replay(&missing, &platform, &[]), FAILED, "missing.txt: No such file");
    expect_failure(&replay(&damaged, &platform, &[]), FAILED, "nothing");
    expect_failure(&replay(&cycle, &platform, &["--threads=0"]), MISUSE, "--threads: found 0");
    let below_a_file = format!("--report={cycle}/report.json");
    expect_failure(&replay(&cycle, &platform, &[&below_a_file]), FAILED, "the directory of the report");
    let partition = text(&folder.write("partition.txt", "0\n1\n2\n0\n1\n3\n"));
    let partition = format!("--set=parallel.partition={partition}");
    expect_failure(&replay(&cycle, &platform, &[&partition]), FAILED, "partition.txt:6: found \"3\"");
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn the_first_process_speaks_for_all() {
    let config = text(&repository().join("configs/lu-s-8.toml"));
    let assert = mpirun(3, &["--config", &config, "--set=parallel.partition=auto"]);
    let output = assert.code(DONE).get_output().clone();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.matches("simulated time: 0.001141198 s").count(), 1, "{stdout}");
    assert_eq!(stdout.matches("partition auto: ").count(), 1, "{stdout}");
    assert_eq!(stderr.matches("3 process(es) with 2 thread(s)").count(), 1, "{stderr}");
}

/// All events go through the first process, which writes the file, with the places of ranks that other processes have loaded.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn one_timeline() {
    let folder = Folder::new();
    let trace = text(&repository().join("configs/traces/lu.S.8"));
    write_together(&folder, &trace, 1 << 20);
    let placed = folder.write("placed.txt", &with_places(&all_calls(3)));
    let trace = folder.path("placed.pdt");
    command().args(["trace", "convert"]).arg(&placed).arg("-o").arg(&trace).assert().code(DONE);
    write_together(&folder, &text(&trace), 1 << 14);
    assert!(std::fs::read_to_string(folder.path("alone.json")).unwrap().contains("solve.c:2"));
}

/// Writes a timeline of at least some bytes on one process and on several.
fn write_together(folder: &Folder, trace: &str, least: usize) {
    let platform = platform();
    let timeline = |name: &str| format!("--timeline={}", folder.path(name).display());
    let alone = timeline("alone.json");
    command().args(replay(trace, &platform, &[&alone])).env_remove("RUST_LOG").assert().code(DONE);
    let expected = std::fs::read(folder.path("alone.json")).unwrap();
    assert!(expected.len() > least, "more than a process sends at once: {}", expected.len());
    for (processes, threads) in [(2, "--threads=2"), (3, "--threads=1")] {
        let together = timeline("together.json");
        let assert = mpirun(processes, &replay(trace, &platform, &[threads, &together]));
        let assert = assert.code(DONE);
        let stderr = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert_eq!(stderr.matches("wrote the timeline").count(), 1, "{stderr}");
        let found = std::fs::read(folder.path("together.json")).unwrap();
        assert!(found == expected, "{processes} processes, {threads}");
    }
}

/// Clients and servers of file systems live on all processes, without contention and with epochs.
#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn file_systems_have_one_digest() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &regions::on_servers(12));
    let platform = folder.write("servers.toml", regions::SERVERS);
    for model in ["network.model=\"contention-free\"", "network.epoch_s=\"auto\""] {
        let (report, mut found) = (folder.path("report.json"), Vec::new());
        for (processes, threads) in [(1, 1), (2, 1), (3, 2)] {
            let settings = ["network.preset=\"raw\"", "mpi.collective_io=\"romio\"", model];
            let settings = settings.map(|setting| format!("--set={setting}"));
            let more = [format!("--threads={threads}"), format!("--report={}", report.display())];
            let paths = ["--trace".to_owned(), text(&trace), "--platform".to_owned(), text(&platform)];
            let arguments: Vec<&str> =
                paths.iter().chain(&settings).chain(&more).map(String::as_str).collect();
            let assert = mpirun(processes, &arguments);
            assert.code(DONE);
            let report: serde_json::Value =
                serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
            assert_eq!(report["processes"], processes, "{model}");
            found.push((report["digest"].clone(), report["file_servers"].clone()));
        }
        assert!(found[0].1.to_string().contains("/fs"), "{found:?}");
        assert!(found.iter().all(|other| *other == found[0]), "{model}: {found:?}");
    }
}
