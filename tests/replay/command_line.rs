//! The command as a user types it: output, report, errors, exit status.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, ends_with};

use crate::reference::repository;

pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const MISUSE: i32 = 2;

/// A folder with valid and invalid traces and platforms.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

/// Says why a test does nothing: a tool is absent. Fails where all have to be there, so that no test passes without.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn skip(why: &str) {
    let is_required = std::env::var_os("PDES_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!is_required, "PDES_REQUIRE_TOOLS=1: {why} (tests/prepare installs tools)");
    eprintln!("SKIPPED: {why}");
}

/// The program, which is killed if it takes minutes: a test that hangs would hold up all others.
pub(crate) fn command() -> Command {
    let mut command = Command::cargo_bin("pdes-replay").unwrap();
    command.env_remove("RUST_LOG").timeout(Duration::from_secs(300));
    command
}

fn replay(trace: &Path) -> Command {
    let mut command = command();
    command.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml"));
    command.arg("--trace").arg(trace);
    command
}

/// Replays an invalid merged trace and expects an error with these words.
fn expect_failure(text: &str, words: &[&str]) {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", text);
    let mut assert = replay(&trace).assert().code(FAILED).stdout("");
    for &word in words {
        assert = assert.stderr(contains(word));
    }
}

#[test]
fn the_first_command_of_the_readme() {
    let config = repository().join("configs/lu-s-8.toml");
    let assert = command().arg("--config").arg(config).assert().code(DONE);
    assert
        .stdout(contains("8 ranks, 33969 actions"))
        .stdout(contains("slowest rank"))
        .stdout(contains("fastest rank"))
        .stdout(contains("recv"))
        .stdout(ends_with("simulated time: 0.001141198 s\n"));
}

#[test]
fn quiet_prints_the_simulated_time_only() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n0 compute 1e10\n0 finalize");
    replay(&trace).arg("--quiet").assert().code(DONE).stdout("simulated time: 1.000000000 s\n").stderr("");
}

#[test]
fn the_report_has_the_documented_fields() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 100\n1 recv 0 0 100\n1 compute 1e10\n");
    let report = folder.path("report.json");
    let preset = "--set=network.preset=smpi";
    replay(&trace).args(["--threads=2", preset, "--report"]).arg(&report).assert().code(DONE);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    for field in ["wall_time_s", "load_s", "replay_s", "actions_per_s", "simulated_time_s", "parameters"] {
        assert!(!report[field].is_null(), "{field} is missing");
    }
    assert_eq!(report["version"], 1);
    assert_eq!(report["ranks"], 2);
    assert_eq!(report["actions"], 5);
    assert_eq!(report["messages"], 1);
    assert_eq!(report["message_bytes"], 100);
    assert_eq!(report["threads"], 2);
    assert_eq!(report["processes"], 1);
    assert_eq!(report["digest"].as_str().unwrap().len(), 64);
    assert_eq!(report["parameters"]["network"]["weight_s"], 8775.0);
    assert_eq!(report["slowest_rank"]["rank"], 1);
    // Torus hosts 0 and 1 are one link of 500 ns and 5 GB/s apart; 116 B have the factors 2.01467 and 0.812084.
    let expected = 500e-9 * 2.01467 + 116.0 / (5e9 * 0.812084) + 1.0;
    assert!((report["simulated_time_s"].as_f64().unwrap() - expected).abs() < 1e-12);
}

/// A pipeline of four ranks and 100 rounds, in which rank `r` can begin when the first round has passed `r` ranks.
#[test]
fn the_profile_shows_the_parallelism_of_a_pipeline() {
    let folder = Folder::new();
    let round = |rank: u32| {
        let receive = if rank > 0 { format!("{rank} recv {} 0 100\n", rank - 1) } else { String::new() };
        let send = if rank < 3 { format!("{rank} send {} 0 100\n", rank + 1) } else { String::new() };
        format!("{receive}{rank} compute 1e7\n{send}")
    };
    let lines: String = (0..4).map(|rank| format!("{rank} init\n{}", round(rank).repeat(100))).collect();
    let (trace, path) = (folder.write("trace.txt", &lines), folder.path("profile.json"));
    let digest = |arguments: &[&str]| {
        let report = folder.path("report.json");
        replay(&trace)
            .args(["--model=contention-free", "--set=network.preset=raw"])
            .args(arguments)
            .arg("--report")
            .arg(&report)
            .assert()
            .code(DONE);
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        report["digest"].clone()
    };
    assert_eq!(digest(&[]), digest(&[&format!("--profile={}", path.display())]));
    let profile: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(profile["actions"], 4 + 2 * 200 + 2 * 300);
    assert_eq!(profile["tokens"], 300);
    // The first round of rank 0, all rounds of rank 1, and the last ones of ranks 2 and 3.
    assert_eq!(profile["critical_path"], 3 + 300 + 3 + 2);
    let cuts: Vec<_> =
        profile["predicted"].as_array().unwrap().iter().map(|row| &row["cut_tokens"]).collect();
    assert_eq!(cuts, [100, 300]);
    for row in profile["predicted"].as_array().unwrap() {
        let times: Vec<f64> =
            row["replay_s"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert!(times[0] <= times[1] && times[1] <= times[2], "{row}");
    }
    let missing = folder.path("trace.txt/profile.json");
    replay(&trace)
        .args(["--model=contention-free", "--profile"])
        .arg(&missing)
        .assert()
        .code(FAILED)
        .stderr(contains("the directory of the profile"));
    let new = folder.path("new/deep/profile.json");
    replay(&trace).args(["--model=contention-free", "--profile"]).arg(&new).assert().code(DONE);
    assert!(new.is_file());
    replay(&trace)
        .args(["--model=flow", "--profile=profile.json", "--set=network.preset=smpi"])
        .assert()
        .code(FAILED)
        .stderr(contains("network.precision_s above 0").and(contains("network.epoch_s")));
}

#[test]
fn settings_override_the_configuration_and_paths_are_relative_to_it() {
    let folder = Folder::new();
    folder.write("inner/trace.txt", "0 init\n0 compute 1e9\n");
    folder.write("inner/hosts.txt", "# the fast one\nnode-1\n");
    let config = folder.write(
        "inner/run.toml",
        "[trace]\npath = 'trace.txt'\n[platform]\nhosts = 'hosts.txt'\n\
         topology = { kind = 'graph' }\nhost = [{ name = 'node-0', speed = '1Gf' }, { name = 'node-1', speed = '4Gf' }]\n\
         [output]\nreport = 'report.json'\n",
    );
    command().arg("--config").arg(&config).assert().code(DONE).stdout(ends_with("0.250000000 s\n"));
    assert!(folder.path("inner/report.json").is_file());
    let slow = folder.write("slow.txt", "node-0");
    let setting = format!("platform.hosts={}", slow.display());
    command()
        .arg("--config")
        .arg(&config)
        .arg("--set")
        .arg(setting)
        .assert()
        .stdout(ends_with("1.000000000 s\n"));
}

#[test]
fn collective_algorithms_are_configured_and_reported() {
    let folder = Folder::new();
    let trace = folder
        .write("trace.txt", "0 init\n1 init\n2 init\n0 allreduce 8 0\n1 allreduce 8 0\n2 allreduce 8 0\n");
    let path = folder.path("report.json");
    let with = |settings: &[&str]| {
        let mut command = replay(&trace);
        command.arg("--report").arg(&path);
        for setting in settings {
            command.arg("--set").arg(setting);
        }
        command
    };
    let table = "mpi.table={ bcast = [{ ranks_below = 9, algorithm = \"NTSL\" }] }";
    with(&["mpi.collectives=ompi", "mpi.allreduce=redbcast", table]).assert().code(DONE);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mpi = &report["parameters"]["mpi"];
    assert_eq!((&mpi["collectives"], &mpi["algorithms"]["allreduce"]), (&"ompi".into(), &"redbcast".into()));
    let row = serde_json::json!({ "ranks_below": 9, "bytes_below": null, "algorithm": "NTSL" });
    assert_eq!(mpi["table"]["bcast"], serde_json::json!([row]));

    with(&["mpi.collectives=lam"]).assert().code(MISUSE).stderr(contains("\"mvapich2\""));
    with(&["mpi.allreduce=redbcost"]).assert().code(MISUSE).stderr(contains("did you mean \"redbcast\""));
    with(&["mpi.table={ scan = [] }"])
        .assert()
        .code(MISUSE)
        .stderr(contains("expected \"barrier\", \"bcast\""));
    with(&["mpi.allreduce=rab1"]).assert().code(FAILED).stderr(contains("a power of two of ranks, found 3"));
}

#[test]
fn misuse_and_failure_have_different_exit_statuses() {
    let cases: [(&[&str], &str); 7] = [
        (&[], "nothing to replay"),
        (&["--bogus"], "--bogus"),
        (&["--trace", "Cargo.toml"], "[platform] file: is missing"),
        (
            &["--platform", "x", "--set", "trace.pth=1"],
            "--set trace.pth=1: [trace] has no key \"pth\"; did you mean \"path\"?",
        ),
        (&["--trace", "x", "--platform", "x", "--set", "nonsense"], "section.key=value"),
        (
            &["--trace", "x", "--platform", "x", "--threads", "0"],
            "found 0, expected a whole number from 1 to",
        ),
        (
            &["--trace", "x", "--platform", "x", "--model", "fluid"],
            "expected \"flow\", \"contention-free\", \"packets\" or \"loggops\"",
        ),
    ];
    for (arguments, words) in cases {
        command().args(arguments).assert().code(MISUSE).stdout("").stderr(contains(words));
    }
}

#[test]
fn a_wrong_configuration_file_is_shown_with_its_line() {
    let folder = Folder::new();
    let config = folder.write("run.toml", "[trace]\npath = 'x'\n[engine]\nthreads = 'two'\n");
    let told = "run.toml:4:11: [engine] threads: found \"two\", expected a whole number from 1 to 1024\n";
    command().arg("--config").arg(config).assert().code(MISUSE).stderr(ends_with(told));
    let typo = folder.write("typo.toml", "[trace]\npath = 'x'\n  [network]\n  preset = 'lv8'\n");
    let told = "typo.toml:4:12: [network] preset: found \"lv8\"; did you mean \"lv08\"?";
    command().arg("--config").arg(typo).assert().code(MISUSE).stderr(contains(told));
    let platform = folder.write("tree.toml", "[topology]\nkind = 'cluster'\nhosts = 2\n  bandwith = 1e9\n");
    let told = "tree.toml:4:3: [topology] has no key \"bandwith\"; did you mean \"bandwidth\"?";
    command().args(["platform", "check"]).arg(&platform).assert().code(FAILED).stderr(contains(told));
    let trace = folder.write("trace.txt", "0 init\n0 finalize\n");
    let mut replay = command();
    replay.arg("--platform").arg(platform).arg("--trace").arg(trace);
    replay.assert().code(FAILED).stderr(contains(told));
}

#[test]
fn missing_inputs_are_named() {
    let folder = Folder::new();
    replay(&folder.path("absent")).assert().code(FAILED).stderr(contains("absent"));
    std::fs::create_dir(folder.path("empty")).unwrap();
    replay(&folder.path("empty")).assert().code(FAILED).stderr(contains("no rank files"));
    let trace = folder.write("trace.txt", "0 init\n");
    command()
        .args(["--platform", "absent.xml", "--trace"])
        .arg(&trace)
        .assert()
        .code(FAILED)
        .stderr(contains("absent.xml"));
    let report = trace.join("report.json");
    replay(&trace)
        .arg("--report")
        .arg(report)
        .assert()
        .code(FAILED)
        .stderr(contains("directory of the report"));
    let hosts = folder.write("hosts.txt", "node-0\nnode-999\n");
    let two = folder.write("two.txt", "0 init\n1 init\n");
    let setting = format!("platform.hosts={}", hosts.display());
    replay(&two).arg("--set").arg(setting).assert().code(FAILED).stderr(contains("hosts.txt:2"));
}

#[test]
fn wrong_traces_are_named_with_file_line_and_what_was_expected() {
    expect_failure("0 init\n0 Compute 5\n", &["trace.txt:2", "\"Compute\"", "compute"]);
    expect_failure("0 init\n0 compute\n", &["trace.txt:2", "the line ends before the amount of computation"]);
    expect_failure("0 init\n0 compute -5\n", &["trace.txt:2", "-5"]);
    expect_failure("0 init\n0 send 7 0 1\n", &["trace.txt:2", "7"]);
    expect_failure(
        "0 init\n1 init\n1 recv 0 0 1\n",
        &["trace.txt:3", "receives 1 message from rank 0", "but none is sent"],
    );
    expect_failure("0 init\n0 wait 0 0 0\n", &["trace.txt:2", "no request"]);
    expect_failure(
        "0 init\n1 init\n1 recv -555 0 1\n",
        &["trace.txt:3", "receives 1 message from all ranks", "but none is sent"],
    );
}

#[test]
fn a_truncated_file_is_named() {
    let folder = Folder::new();
    let traces = repository().join("configs/traces/lu.S.8");
    for rank in 0..8 {
        let name = format!("rank-{rank}.txt.gz");
        let whole = std::fs::read(traces.join(&name)).unwrap();
        let kept = if rank == 0 { whole.len() / 2 } else { whole.len() };
        std::fs::write(folder.path(&name), &whole[..kept]).unwrap();
    }
    replay(folder.0.path())
        .assert()
        .code(FAILED)
        .stderr(contains("rank-0.txt.gz"))
        .stderr(contains("cut short"));
}

#[test]
fn a_message_longer_than_its_receive_is_named() {
    expect_failure(
        "0 init\n1 init\n0 send 1 0 100\n1 recv 0 0 99\n",
        &["trace.txt:4", "rank 1, action 1", "100 B", "99 B"],
    );
}

#[test]
fn a_generated_master_is_checked_dumped_and_replayed() {
    let folder = Folder::new();
    let archive = folder.path("master.pdt");
    let mut generate = command();
    generate.args([
        "trace",
        "generate",
        "master-worker",
        "--ranks=4",
        "--tasks=8",
        "--jitter=0.5",
        "--output",
    ]);
    generate.arg(&archive).assert().code(DONE);
    command().args(["trace", "check"]).arg(&archive).assert().code(DONE);
    let dump = folder.path("dump");
    command().args(["trace", "dump"]).arg(&archive).arg("--output").arg(&dump).assert().code(DONE);
    let master = std::fs::read_to_string(dump.join("rank-0.txt")).unwrap();
    assert_eq!(master.matches("0 recv -555 1 8192 6\n").count(), 8);
    let digest = |trace: &Path| {
        let output = replay(trace).assert().code(DONE).get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        text.lines().find(|line| line.starts_with("digest: ")).map(str::to_owned).unwrap()
    };
    assert_eq!(digest(&archive), digest(&dump));
}

#[test]
fn ranks_in_different_collectives_are_named() {
    expect_failure("0 init\n1 init\n0 bcast 10\n1 barrier\n", &["trace.txt:", "barrier", "bcast"]);
}

#[test]
fn a_deadlock_shows_call_sites_and_receives_from_any_source() {
    expect_failure(
        "0 init\n1 init\n0 location solver.f90 42\n0 recv 1 0 8\n0 send 1 0 8\n1 recv 0 0 8\n1 send 0 0 8\n",
        &[
            "2 ranks wait for each other",
            "rank 0 waits in action 2 at",
            "called at solver.f90:42 for a message from rank 1",
        ],
    );
    expect_failure(
        "0 init\n1 init\n0 recv -555 0 8\n0 send 1 0 8\n1 recv 0 0 8\n1 send 0 0 8\n",
        &["2 ranks wait for ever", "for a message from any rank"],
    );
}

#[test]
fn requests_that_are_never_completed_are_warned_about() {
    let folder = Folder::new();
    let trace = folder.path("trace.txt");
    std::fs::write(&trace, "0 init\n1 init\n0 isend 1 0 8 req=1\n1 irecv 0 0 8 req=7\n").unwrap();
    let warning = "2 requests of 2 ranks, the first of rank 0, are not completed by the program";
    replay(&trace).assert().code(DONE).stderr(contains(warning));
}

#[test]
fn an_algorithm_that_does_not_suit_a_communicator_is_refused() {
    let folder = Folder::new();
    let trace = folder.path("trace.txt");
    let split = "comm_split new=1 members=0-2";
    let text: String = (0..4)
        .map(|rank| match rank {
            3 => "3 init\n3 comm_split comm=0\n".to_owned(),
            _ => format!("{rank} init\n{rank} {split}\n{rank} allgather 8 8 6 6 comm=1\n"),
        })
        .collect();
    std::fs::write(&trace, text).unwrap();
    replay(&trace)
        .args(["--set", "mpi.allgather=rhv"])
        .assert()
        .failure()
        .stderr(contains("needs a power of two of ranks, found 3"));
}

#[test]
fn a_deadlock_shows_its_cycle() {
    let large = "0 init\n1 init\n2 init\n0 send 1 0 70000\n1 send 2 0 70000\n2 send 0 0 70000\n\
                 0 recv 2 0 70000\n1 recv 0 0 70000\n2 recv 1 0 70000\n";
    expect_failure(
        large,
        &[
            "3 ranks wait for each other",
            "rank 0 waits in action 1 at",
            "for rank 1 to receive its message",
            "for rank 2 to receive its message",
            "for rank 0 to receive its message",
            "raise it if the MPI library of the program keeps larger messages",
        ],
    );
}

#[test]
fn a_wait_for_a_finished_rank_shows_its_chain() {
    expect_failure(
        "0 init\n1 init\n2 init\n0 send 1 0 70000\n0 send 2 0 1\n2 recv 0 0 1\n1 compute 1\n",
        &["2 ranks wait for ever", "rank 0 waits in action 1 at", "rank 1 has finished"],
    );
}

#[test]
fn ranks_that_share_a_core_are_warned_of() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n1 init\n");
    let hosts = folder.write("hosts.txt", "node-5:2\n");
    let setting = format!("platform.hosts={}", hosts.display());
    replay(&trace)
        .args(["--quiet", "--model", "contention-free", "--set"])
        .arg(setting)
        .assert()
        .code(DONE)
        .stderr(contains("node-5 has 2 ranks for 1 core"));
}

#[test]
fn platform_show_prints_measures_and_a_route() {
    let platform = repository().join("configs/platforms/torus-5g.toml");
    let mut show = command();
    show.args(["platform", "show"]).arg(&platform).args(["--route", "node-0", "node-6"]);
    show.assert()
        .code(DONE)
        .stdout(contains("hosts:     128"))
        // 4 x 4 x 8: at most 2 + 2 + 4 links; 16 cables and their 16 wrap-around cables cross the middle.
        .stdout(contains("diameter:  8 links, 4 us"))
        .stdout(contains("bisection: 160 GB/s"))
        .stdout(contains("route node-0 -> node-6: 3 link(s), 1.5 us"));
    let mut wrong = command();
    wrong.args(["platform", "show"]).arg(&platform).args(["--route", "node-0", "node-999"]);
    wrong.assert().code(MISUSE).stderr(contains("node-999"));
    command().args(["platform", "check"]).arg(&platform).assert().code(DONE).stdout(contains("128 hosts"));
}

#[test]
fn platform_check_fails_where_routes_are_missing() {
    let folder = Folder::new();
    let platform = folder.write(
        "graph.toml",
        "topology = { kind = 'graph' }\nhost = [{ name = 'a', speed = 1e9 }, { name = 'b', speed = 1e9 }]\n",
    );
    command()
        .args(["platform", "check"])
        .arg(&platform)
        .assert()
        .code(FAILED)
        .stderr(contains("2 pair(s) of hosts have no route"));
}

/// Each computation alone would end before the end of time; the two share a core.
#[test]
fn work_beyond_the_end_of_time_is_an_error() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 compute 9e16\n1 compute 9e16\n");
    let hosts = folder.write("hosts.txt", "node-5:2\n");
    let setting = format!("platform.hosts={}", hosts.display());
    let mut command = replay(&trace);
    command.args(["--quiet", "--model", "flow", "--set"]).arg(setting);
    command.assert().code(FAILED).stderr(contains("takes longer than simulated time can hold"));
}
