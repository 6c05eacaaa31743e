//! Programs that start during the run: repetitions of jobs, and jobs that a scheduler starts.

use serde_json::Value;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::jobs::{each, report, seconds};
use predicates::str::contains;

/// Ways of execution: settings of the network, and numbers of threads.
const WAYS: [(&str, &[u32]); 4] = [
    ("model = 'contention-free'", &[1, 2, 3]),
    ("model = 'flow'", &[1, 2]),
    ("model = 'flow'\nepoch_s = 'auto'", &[1, 2]),
    ("model = 'packets'", &[1, 2]),
];

/// A cluster on which a megabyte takes a millisecond.
const CLUSTER: &str = "[platform]\ntopology = { kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n\
    [mpi]\nenvelope_bytes = 0\n[parallel]\noversubscribe = true\n[network]\npreset = 'raw'\n";

/// Returns the start, the end and the digest of each job.
fn jobs(report: &Value) -> Vec<(f64, f64, String)> {
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.map(|job| (seconds(&job["start_s"]), seconds(&job["end_s"]), job["digest"].to_string())).collect()
}

/// Each repetition is the job that starts at the end of the former one, in all ways of execution.
#[test]
fn repetitions_begin_when_the_former_has_ended() {
    let folder = Folder::new();
    let trace = folder.write(
        "trace.txt",
        "0 init\n1 init\n0 compute 1e6\n0 send 1 0 1000000\n1 recv 0 0 1000000\n1 barrier\n0 barrier\n",
    );
    let hosts = |name: &str, hosts: &str| folder.write(name, hosts);
    let (own, other) = (hosts("own.txt", "node-0\nnode-1\n"), hosts("other.txt", "node-2\nnode-1\n"));
    let job = |name: &str, hosts: &std::path::Path, rest: &str| {
        format!("[[job]]\nname = '{name}'\ntrace = {trace:?}\nhosts = {hosts:?}\n{rest}\n")
    };
    let beside = job("b", &other, "start = '2.5ms'");
    for (settings, threads) in WAYS {
        let base = format!("{CLUSTER}{settings}\n");
        let repeated = base.clone() + &job("a", &own, "repetitions = 3\nstart = '0.5ms'") + &beside;
        let found = report(&folder, &repeated, &[]);
        assert_eq!(each(&found, "name"), ["a", "a (2)", "a (3)", "b"]);
        let parts = jobs(&found);
        assert_eq!([parts[0].0, parts[1].0, parts[2].0], [5e-4, parts[0].1, parts[1].1], "{settings}");
        assert!(parts[1].1 > parts[1].0 + 2e-3, "{settings}: {parts:?}");
        let alone: String = (0..3)
            .map(|index| job(&format!("a{index}"), &own, &format!("start = {}", parts[index].0)))
            .collect();
        let explicit = report(&folder, &(base + &alone + &beside), &[]);
        assert_eq!(jobs(&explicit), parts, "{settings}");
        assert_eq!(explicit["digest"], found["digest"], "{settings}");
        for threads in threads {
            let other = report(&folder, &repeated, &[&format!("--threads={threads}")]);
            assert_eq!(jobs(&other), parts, "{settings}, {threads} threads");
        }
        // b meets the second repetition where messages share links.
        let is_shared = !settings.contains("free");
        assert_eq!(
            parts[1].1 - parts[1].0 > parts[0].1 - parts[0].0 + 1e-5,
            is_shared,
            "{settings}: {parts:?}"
        );
    }
}

#[test]
fn what_repetitions_do_not_go_with_is_refused() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n0 compute 1e6\n");
    let job = format!("{CLUSTER}[[job]]\nname = 'a'\ntrace = {trace:?}\n");
    let run = |rest: &str| folder.write("run.toml", &(job.clone() + rest));
    for (rest, flags, code, words) in [
        ("repetitions = 0\n", &[][..], MISUSE, "repetitions: found 0"),
        ("repetitions = 2\n", &["--slowdown"], MISUSE, "the job \"a\" runs 2 times"),
        (
            "repetitions = 2\n",
            &["--checkpoint=checkpoints"],
            FAILED,
            "which programs have started is not saved",
        ),
    ] {
        command().arg("run").arg(run(rest)).args(flags).assert().code(code).stderr(contains(words));
    }
    // Several threads do not help, which a warning says.
    let contended = run("repetitions = 2\n");
    command()
        .args(["run", "--set", "network.model='flow'", "--threads=2"])
        .arg(contended)
        .assert()
        .code(DONE)
        .stderr(contains("in one order of events"));
    // A repetition that never ends keeps the next one from its start, which is a deadlock of the first one alone.
    let stuck =
        folder.write("stuck.txt", "0 init\n1 init\n0 recv 1 0 4\n0 send 1 0 4\n1 recv 0 0 4\n1 send 0 0 4\n");
    let config = format!("{CLUSTER}[[job]]\ntrace = {stuck:?}\nrepetitions = 2\n");
    command()
        .arg("run")
        .arg(folder.write("stuck.toml", &config))
        .assert()
        .code(FAILED)
        .stderr(contains("deadlock"));
}
