//! Failures of hosts and links in replays, and ensembles of them.

use std::fmt::Write as _;

use pdes_core::Progress;
use pdes_replay::{Config, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::checkpoints::replay_in_parts;
use crate::command_line::{FAILED, Folder, MISUSE, command};
use crate::jobs::{report, seconds};

/// Four leaf switches of two hosts each below two others: two ways between leaves. The first leaf has the cables `link_from_15_11_8`, for
/// messages to even hosts, and `link_from_15_10_9`.
const TREE: &str = "{ kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 4, parents = 2 }], \
    speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
const STAR: &str = "{ kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '2us' }";

/// Hosts 0 and 1 send a megabyte each to hosts 2 and 3 on another leaf.
const PAIRS: &str = "0 init\n1 init\n2 init\n3 init\n0 send 2 0 999984\n2 recv 0 0 999984\n1 send 3 0 999984\n3 recv 1 0 999984\n";

fn config(folder: &Folder, (topology, model, trace): (&str, &str, &str), failures: &str) -> String {
    let trace = folder.write("trace.txt", trace);
    format!(
        "trace.path = {trace:?}\nnetwork = {{ model = {model:?}, preset = 'raw' }}\nplatform.topology = {topology}\n{failures}"
    )
}

fn time(report: &Value) -> f64 {
    seconds(&report["simulated_time_s"])
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

/// By hand: a megabyte takes four links of 1 us and 1 ms. After 0.5 ms 504 kB are left of both messages, which share the other way.
#[test]
fn messages_go_around_a_link_that_is_off() {
    let folder = Folder::new();
    for (model, failure, expected) in [
        ("flow", "", 1.004e-3),
        ("flow", "[[failure]]\nlink = 'link_from_15_11_8'\nat = '500us'\n", 1.508e-3),
        ("contention-free", "[[failure]]\nlink = 'link_from_15_11_8'\nat = '500us'\n", 1.004e-3),
        // From the begin on, both share it: 2 MB at 1 GB/s.
        ("flow", "[[failure]]\nlink = 'link_from_15_11_8'\nat = 0\n", 2.004e-3),
        // Half of the bandwidth for the second half of the message.
        ("flow", "[[failure]]\nlink = 'link_from_15_11_8'\nat = '500us'\nbandwidth = 0.5\n", 1.508e-3),
        // Cables of hosts have no way around: 0.5 ms until they are repaired.
        ("flow", "[[failure]]\nlink = 'link_from_0_*'\nat = '500us'\nrepair = '500us'\n", 1.504e-3),
        (
            "contention-free",
            "[[failure]]\nlink = 'link_from_0_*'\nat = '500us'\nrepair = '500us'\n",
            1.504e-3,
        ),
        // A rendezvous begins a latency of 4 us later, and packets of 4096 B cross three links more.
        ("packets", "[[failure]]\nlink = 'link_from_0_*'\nat = '500us'\nrepair = '500us'\n", 1.520_288e-3),
    ] {
        let found = report(&folder, &config(&folder, (TREE, model, PAIRS), failure), &[]);
        assert!((time(&found) - expected).abs() < 1e-9, "{model} {failure}: {}", time(&found));
        assert_eq!(found["failures"].is_null(), failure.is_empty());
    }
    for model in ["flow", "packets"] {
        let dead = config(&folder, (STAR, model, PAIRS), "[[failure]]\nlink = '*_1'\nat = '500us'\n");
        let dead = folder.write("dead.toml", &dead);
        command().arg("run").arg(dead).assert().code(FAILED).stderr(contains("what needs it never ends"));
    }
}

/// What is left of both messages shares the other way: more than half of them, since packets wait for each other before; from the begin on,
/// it would be 2 ms.
#[test]
fn packets_go_around_a_link_that_is_off() {
    let folder = Folder::new();
    let failure = "[packets]\nrouting = 'spray'\n[[failure]]\nlink = 'link_from_15_11_8'\nat = '500us'\n";
    let found = time(&report(&folder, &config(&folder, (TREE, "packets", PAIRS), failure), &[]));
    assert!((1.504e-3..1.9e-3).contains(&found), "{found}");
}

/// Ten rounds: each of eight ranks computes for 10 ms and sends a megabyte around a ring.
fn ring() -> String {
    let mut text: String = (0..8).fold(String::new(), |text, rank| text + &format!("{rank} init\n"));
    for _ in 0..10 {
        for rank in 0..8 {
            let (next, before) = ((rank + 1) % 8, (rank + 7) % 8);
            writeln!(text, "{rank} compute 1e7\n{rank} sendRecv 1000000 {next} 1000000 {before} 6 6")
                .unwrap();
        }
    }
    text
}

/// Random failures of links and hosts: the same bits with other threads and processes, and in parts between checkpoints.
#[test]
fn failures_are_the_same_on_threads_and_processes_and_with_checkpoints() {
    let failures = "[[failure]]\nlink = 'link_from_1*'\nmtbf = '20ms'\nrepair = '5ms'\n\
        [[failure]]\nhost = '*'\nmtbf = '100ms'\nrepair = '10ms'\nspeed = 0.25\n";
    for model in ["flow", "contention-free"] {
        let folder = Folder::new();
        let text = config(&folder, (TREE, model, &ring()), failures);
        let path = folder.write("run.toml", &text);
        let ends = |threads: i64| {
            let mut config = Config::from_path(&path).unwrap();
            config.insert("engine", "threads", threads.into());
            let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
            simulation.replay(&Progress::new(threads as usize)).unwrap().into_program().ends
        };
        let whole = ends(1);
        assert_eq!(whole, ends(3), "{model}");
        let (parts, stops) = replay_in_parts(Config::from_path(&path).unwrap(), &folder);
        assert_eq!(parts.unwrap().into_program().ends, whole, "{model}");
        assert!(stops > 0);
        let without = folder.write("without.toml", &config(&folder, (TREE, model, &ring()), ""));
        let without = Simulation::load(&Config::from_path(&without).unwrap().resolve().unwrap()).unwrap();
        assert!(
            without.replay(&Progress::new(1)).unwrap().into_program().ends.iter().max() < whole.iter().max()
        );
    }
}

/// Two ranks compute for 100 s, of which 20 are work between checkpoints.
const COMPUTE: &str = "0 init\n1 init\n0 compute 1e11\n1 compute 1e11\n";

/// By hand, with checkpoints of 2 s and restarts of 5 s. The failure at 50 s loses 6 s, since the checkpoint of 44 s: the rest of 60 s of work
/// takes three checkpoints more.
#[test]
fn a_job_ends_or_goes_on_when_its_host_dies() {
    let folder = Folder::new();
    let failures = "[[failure]]\nhost = 'node-1'\nat = 50\n[failures]\ninterval = 20\ncheckpoint = 2\nrestart = 5\nrecovery = ";
    let of_job = |recovery: &str| {
        let job = format!("[[job]]\nname = 'a'\ntrace = {:?}\n", folder.path("trace.txt"));
        let text = config(&folder, (STAR, "flow", COMPUTE), &format!("{failures}{recovery}\n{job}"));
        report(&folder, text.split_once('\n').unwrap().1, &[])
    };
    let ended = of_job("'end'");
    assert_eq!(ended["jobs"][0]["failed"], serde_json::json!({ "host": "node-1", "at_s": 50.0 }));
    assert_near(seconds(&ended["failures"]["job"]["time_s"]), 50.0);
    assert_near(time(&ended), 100.0);
    for (recovery, expected) in [
        ("'restart'", 50.0 + 5.0 + 66.0),
        ("'spare'\nspares = ['node-2']", 50.0 + 5.0 + 66.0),
        // Both ranks on one core: the 60 s take 120, with six checkpoints.
        ("'shrink'", 50.0 + 5.0 + 120.0 + 12.0),
    ] {
        let found = of_job(recovery);
        assert!(found["jobs"][0]["failed"].is_null(), "{recovery}");
        let job = &found["failures"]["job"];
        assert_near(seconds(&job["time_s"]), expected);
        assert_near(seconds(&job["lost_s"]), 6.0);
        assert_near(seconds(&job["goodput"]), 100.0 / expected);
        assert_eq!(job["failures"][0]["component"], "node-1");
    }
}

/// A day of work on two hosts of which each fails every two hours: Daly's expectation within the interval of confidence, the worst case named.
#[test]
fn an_ensemble_agrees_with_the_closed_form() {
    let folder = Folder::new();
    let failures = "[[failure]]\nhost = 'node-*'\nmtbf = '2h'\n[failures]\ninterval = 618\ncheckpoint = 60\nrestart = 120\nrecovery = 'restart'\n";
    let text = config(
        &folder,
        (STAR, "contention-free", "0 init\n1 init\n0 compute 8.64e13\n1 compute 8.64e13\n"),
        failures,
    );
    let (run, output) = (folder.write("run.toml", &text), folder.path("seeds"));
    let printed = contains("1000 runs by 1 replays").and(contains("expected 107837.3"));
    let arguments = ["--seeds", "1000", "-o"];
    command().arg("ensemble").arg(&run).args(arguments).arg(&output).assert().success().stdout(printed);
    let read = |folder: &std::path::Path| -> Value {
        serde_json::from_slice(&std::fs::read(folder.join("ensemble.json")).unwrap()).unwrap()
    };
    let found = read(&output);
    let (mean, confidence) = (seconds(&found["times"]["mean_s"]), seconds(&found["times"]["confidence_s"]));
    let expected = seconds(&found["expected_s"]);
    assert!(
        (mean - expected).abs() < confidence && confidence < 400.0,
        "{mean} +- {confidence}, not {expected}"
    );
    assert!(std::fs::read_to_string(output.join("ensemble.html")).unwrap().contains("1000 runs"));
    // The worst run, by itself.
    let setting = found["worst"]["setting"].as_str().unwrap().strip_prefix("--set ").unwrap();
    let alone = report(&folder, &text, &["--set", setting]);
    assert_eq!(alone["failures"]["job"]["time_s"], found["worst"]["time_s"]);
}

/// Two jobs that die in the course of the replay: each run is what `run` finds under its seed, and those that a failure ends count apart.
#[test]
fn an_ensemble_of_several_jobs_replays_each_seed() {
    let folder = Folder::new();
    let trace = folder.write("ring.txt", &ring());
    let job = |name: &str| format!("[[job]]\nname = {name:?}\ntrace = {trace:?}\nplacement = 'block'\n");
    let text = |recovery: &str| {
        format!(
            "network = {{ model = 'contention-free', preset = 'raw' }}\nplatform.topology = {}\n{}{}\
             [[failure]]\nhost = '*'\nmtbf = '1s'\n[failures]\ninterval = '7ms'\ncheckpoint = '500us'\n{recovery}",
            TREE.replace("speed", "cores = 2, speed"),
            job("a"),
            job("b")
        )
    };
    let ensemble = |recovery: &str| -> Value {
        let (run, output) = (folder.write("run.toml", &text(recovery)), folder.path("seeds"));
        command().arg("ensemble").arg(run).args(["--seeds", "4", "-o"]).arg(&output).assert().success();
        serde_json::from_slice(&std::fs::read(output.join("ensemble.json")).unwrap()).unwrap()
    };
    let found = ensemble("recovery = 'restart'\n");
    assert_eq!((&found["replays"], &found["ended"]), (&5.into(), &0.into()));
    for (seed, run) in (1..).zip(found["runs"].as_array().unwrap()) {
        let alone = report(&folder, &text(&format!("recovery = 'restart'\nseed = {seed}\n")), &[]);
        assert_near(seconds(&run["time_s"]), time(&alone));
        assert_eq!(run["failures"], alone["failures"]["of_jobs"]);
    }
    let without = seconds(&found["without_failures_s"]);
    assert!(seconds(&found["worst"]["time_s"]) > without && seconds(&found["worst"]["lost_s"]) > 0.0);
    let ended = ensemble("recovery = 'end'\n");
    assert!(ended["ended"].as_u64().unwrap() > 0 && ended["runs"][0]["error"].is_null());
}

/// Cables above leaf switches have another way, those of hosts do not.
#[test]
fn each_link_fails_once() {
    let folder = Folder::new();
    let run = folder.write("run.toml", &config(&folder, (TREE, "flow", PAIRS), ""));
    let output = folder.path("links");
    command().arg("ensemble").arg(&run).args(["--each-link", "-o"]).arg(&output).assert().success();
    let found: Value = serde_json::from_slice(&std::fs::read(output.join("ensemble.json")).unwrap()).unwrap();
    assert_eq!(found["runs"].as_array().unwrap().len(), 16);
    // The hosts of four ranks.
    assert_eq!((&found["failed"], &found["ended"]), (&4.into(), &0.into()));
    assert_near(seconds(&found["worst"]["time_s"]), 2.004e-3);
    assert!(found["worst"]["name"].as_str().unwrap().starts_with("link link_from_1"), "{found}");
    command()
        .arg("ensemble")
        .arg(&run)
        .arg("-o")
        .arg(&output)
        .assert()
        .code(MISUSE)
        .stderr(contains("nothing fails by chance"));
}

/// Runs an ensemble, from states of the run without failures or each from its begin; returns the results.
fn ensemble(folder: &Folder, text: &str, arguments: &[&str]) -> Value {
    let (run, output) = (folder.write("run.toml", text), folder.path("ensemble"));
    command().arg("ensemble").arg(run).args(arguments).arg("-o").arg(&output).assert().success();
    serde_json::from_slice(&std::fs::read(output.join("ensemble.json")).unwrap()).unwrap()
}

/// Runs whose links and hosts fail later have the results, to the last bit, of runs from the begin.
#[test]
fn runs_go_on_from_the_past_that_they_share() {
    let folder = Folder::new();
    let failures = "[[failure]]\nlink = 'link_from_1*'\nmtbf = '1s'\nrepair = '5ms'\n\
        [[failure]]\nhost = '*'\nmtbf = '1s'\nrepair = '10ms'\nspeed = 0.25\n";
    let profile = "[[profile]]\nlink = 'link_from_0_*'\nquantity = 'latency'\npoints = [['3ms', '2us']]\n";
    // Ranks are ahead of the network by the overheads of their library.
    let overheads = "[mpi]\nsend_overhead = '20us'\nreceive_overhead = '10us'\n";
    for (preset, more) in [("raw", ""), ("smpi", overheads), ("raw", profile)] {
        let text = config(&folder, (TREE, "flow", &ring()), failures);
        let text = format!("{}{more}", text.replace("'raw'", &format!("{preset:?}")));
        for (arguments, text, least) in [
            (&["--seeds", "60"][..], text.clone(), 10),
            (&["--each-link", "--at", "50ms"], text.replace(failures, ""), 2),
        ] {
            let shared = ensemble(&folder, &text, arguments);
            let alone = ensemble(&folder, &text, &[arguments, &["--from-begin"]].concat());
            assert_eq!(shared["runs"], alone["runs"]);
            let (replays, resumed) =
                (shared["replays"].as_u64().unwrap(), shared["resumed"].as_u64().unwrap());
            assert!(replays > 15 && resumed + 4 > replays, "{resumed} of {replays} replays");
            assert_eq!((&alone["replays"], &alone["resumed"]), (&replays.into(), &0.into()));
            let digests: std::collections::BTreeSet<_> =
                shared["runs"].as_array().unwrap().iter().map(|run| run["digest"].to_string()).collect();
            assert!(digests.len() >= least, "{digests:?}");
        }
    }
    for (model, more, expected) in [
        ("contention-free", "", "the model \"contention-free\" looks ahead"),
        ("flow", "[noise]\nkind = 'periodic'\nperiod_s = '1ms'\nlength_s = '10us'\n", "noise looks ahead"),
        ("flow", "[mpi]\nbarrier = 'analytic'\n", "in closed form"),
    ] {
        let text = config(&folder, (TREE, model, &ring()), &format!("{failures}{more}"));
        let found = ensemble(&folder, &text, &["--seeds", "2"]);
        assert!(found["not_shared"].as_str().is_some_and(|why| why.contains(expected)), "{found}");
    }
}

#[test]
fn wrong_failures_are_refused() {
    let folder = Folder::new();
    for (failures, expected) in [
        ("[[failure]]\nat = 1\n", "expected one of host, link, hosts, leaf and group"),
        ("[[failure]]\nhost = 'node-0'\n", "expected either at or mtbf"),
        ("[[failure]]\nhost = 'node-0'\nmtbf = 0\n", "mtbf: found 0 s, expected a time above 0"),
        ("[[failure]]\nhost = 'node-0'\nat = 1\nspeed = -1\n", "speed: found -1"),
        ("[[failure]]\nlink = '*'\nat = 1\nspeed = 0.5\n", "speed: hosts have a speed, links a bandwidth"),
        ("[[failure]]\nhost = 'n'\nat = 1\n", "the platform has no such host; its first is \"node-0\""),
        ("[failures]\nseed = 2\n", "there is no [[failure]]"),
        (
            "[[failure]]\nhost = '*'\nat = 1\n[failures]\nrecovery = 'shrink'\n[[job]]\nname = 'b'\ntrace = 't'\n[[job]]\nname = 'c'\ntrace = 't'\n",
            "\"shrink\": with several jobs, one that loses a host goes on on as many hosts",
        ),
        (
            "[[failure]]\nhost = '*'\nat = 1\n[jobs]\nslowdown = true\n[[job]]\nname = 'b'\ntrace = 't'\n[[job]]\nname = 'c'\ntrace = 't'\n",
            "hosts die, and slowdowns are those of jobs that do their whole work",
        ),
        (
            "[[failure]]\nhost = '*'\nat = 1\n[failures]\nrecovery = 'spare'\n",
            "needs the names of spare hosts",
        ),
        (
            "[[failure]]\nhost = '*'\nat = 1\n[failures]\nspares = ['node-3']\n",
            "spares: expected recovery = \"spare\"",
        ),
        (
            "[[failure]]\nhost = '*'\nat = 1\n[[failure]]\nlink = '*'\nat = 1\n[failures]\nrecovery = 'restart'\n",
            "[failures] recovery: resources change in the run",
        ),
        (
            "[[failure]]\nhost = '*'\nmtbf = 1\n[failures]\nrecovery = 'restart'\n",
            "hardly any gets through; set failures.interval to less",
        ),
        (
            "[[failure]]\nhost = 'node-0'\nat = 1\nspeed = 0.5\n[[profile]]\nhost = '*'\nquantity = 'speed'\npoints = [[0, 1.0]]\n",
            "the speed of the host \"node-0\" is in another [[failure]] or a profile",
        ),
    ] {
        let mut text = config(&folder, (STAR, "flow", COMPUTE), failures);
        if failures.contains("[[job]]") {
            text = text.split_once('\n').unwrap().1.to_owned();
        }
        let run = folder.write("run.toml", &text);
        command().arg("run").arg(run).assert().failure().stderr(contains(expected));
    }
}

/// A job `a` from node 0 to node 2, and a job `b` from node 1, of which each sends 2 MB there; with further keys of `a`.
fn two_senders(folder: &Folder, model: &str, (of_a, failures): (&str, &str)) -> String {
    let trace = folder.write("pair.txt", "0 init\n1 init\n0 send 1 0 1999984\n1 recv 0 0 1999984\n");
    let job = |name: &str, host: &str, rest: &str| {
        let hosts = folder.write(&format!("{name}.txt"), &format!("{host}\nnode-2\n"));
        format!("[[job]]\nname = {name:?}\ntrace = {trace:?}\nhosts = {hosts:?}\n{rest}")
    };
    format!(
        "network = {{ model = {model:?}, preset = 'raw' }}\nplatform.topology = {STAR}\nparallel.oversubscribe = true\n{}{}{failures}",
        job("a", "node-0", of_a),
        job("b", "node-1", "")
    )
}

/// By hand: both jobs send at 0.5 GB/s until node 0 dies at 1 ms, and again when `a` has begun anew; without contention at 1 GB/s.
#[test]
fn a_job_dies_and_the_other_ones_go_on() {
    let folder = Folder::new();
    let death = "[[failure]]\nhost = 'node-0'\nat = '1ms'\n[failures]\nrestart = '1ms'\nrecovery = ";
    let spare = "'spare'\nspares = ['node-3']";
    for (model, recovery, ends) in [
        ("flow", "'end'", [1.0, 2.5]),
        ("flow", "'restart'", [4.5, 3.0]),
        ("flow", spare, [4.5, 3.0]),
        ("contention-free", "'end'", [1.0, 2.0]),
        ("contention-free", "'restart'", [4.0, 2.0]),
        ("contention-free", spare, [4.0, 2.0]),
    ] {
        let text = two_senders(&folder, model, ("", &format!("{death}{recovery}\n")));
        let found = report(&folder, &text, &[]);
        for (job, end_ms) in found["jobs"].as_array().unwrap().iter().zip(ends) {
            let end = seconds(&job["end_s"]);
            assert!((end - 1e-3 * end_ms).abs() < 2e-5, "{model} {recovery}: {end} s, expected {end_ms} ms");
        }
        let (a, b) = (&found["jobs"][0], &found["jobs"][1]);
        let failure = &a["failures"][0];
        assert_eq!(
            (&failure["component"], &failure["at_s"], &failure["lost_s"]),
            (&"node-0".into(), &1e-3.into(), &1e-3.into())
        );
        assert_eq!(failure["resumed_s"].is_null(), recovery == "'end'");
        assert_eq!(failure["replaced"].as_array().unwrap().len(), usize::from(recovery == spare));
        assert_eq!(a["failed"].is_null(), recovery != "'end'", "{a}");
        assert!(b["failures"].as_array().unwrap().is_empty() && b["failed"].is_null());
        assert_eq!(found["failures"]["of_jobs"], 1);
        for threads in [2, 3] {
            let other = report(&folder, &text, &[&format!("--threads={threads}")]);
            assert_eq!(other["jobs"], found["jobs"], "{model} {recovery}, {threads} threads");
        }
    }
}

/// What does not die is what it was: a death after the end changes no bit, and one in the first of two repetitions begins the second one.
#[test]
fn deaths_concern_what_runs_then() {
    let folder = Folder::new();
    let jobs = |of_a: &str, at: &str| {
        let death = format!("[[failure]]\nhost = 'node-0'\nat = '{at}'\n");
        let text = two_senders(&folder, "flow", (of_a, if at.is_empty() { "" } else { &death }));
        report(&folder, &text, &[])["jobs"].clone()
    };
    assert_eq!(jobs("", "1h"), jobs("", ""));
    let repeated = jobs("repetitions = 2\n", "1ms");
    assert_eq!(repeated[0]["failed"]["at_s"], 1e-3);
    assert_eq!((&repeated[1]["start_s"], &repeated[1]["failed"]), (&1e-3.into(), &Value::Null));
    assert_eq!(repeated[1]["actions"], 4);
    let early = jobs("repetitions = 2\n", "0s");
    assert_eq!((&early[0]["end_s"], &early[1]["start_s"]), (&0.0.into(), &0.0.into()));
    assert!((seconds(&early[1]["end_s"]) - 4e-3).abs() < 2e-5, "{early}");
}

/// By hand, with checkpoints of 3 s that are due 14 s (29 s) after the start and the checkpoint before; `b` computes elsewhere.
#[test]
fn a_job_of_several_goes_on_from_its_last_checkpoint() {
    let folder = Folder::new();
    let run = |model: &str, trace: &str, failures: &str| {
        let trace = folder.write("work.txt", trace);
        let other = folder.write("other.txt", "0 init\n0 compute 1e10\n");
        let hosts = folder.write("work-hosts.txt", "node-0\nnode-1\n");
        let text = format!(
            "network = {{ model = {model:?}, preset = 'raw' }}\nplatform.topology = {STAR}\n\
             [[job]]\nname = 'a'\ntrace = {trace:?}\nhosts = {hosts:?}\n[[job]]\nname = 'b'\ntrace = {other:?}\n\
             [failures]\nrecovery = 'restart'\ncheckpoint = 3\nrestart = 5\n{failures}"
        );
        report(&folder, &text, &[])["jobs"].clone()
    };
    // Rank 0 computes nine times 10 s, of which rank 1 waits for each: checkpoints of rank 0 end at 23, 36 and 59 s.
    let steps = "0 compute 1e10\n0 send 1 0 8\n1 recv 0 0 8\n".repeat(9);
    // A message of 2 GB that is sent at the begin is received after the checkpoint that rank 1 writes from 40 to 43 s.
    let late = "0 isend 1 0 2000000000\n".to_owned()
        + &"0 compute 1e10\n".repeat(5)
        + "0 waitall 1\n1 compute 2e10\n1 compute 2e10\n1 recv 0 0 2000000000\n1 compute 2.5e10\n";
    // A poll of 1 s before each computation of rank 0, which finds its message: checkpoints end at 25, 39 and 53 s.
    let polls = "1 send 0 1 8\n0 irecv 1 1 8\n0 test 1 0 1\n0 wait 1 0 1\n0 compute 1e10\n".repeat(9);
    for model in ["flow", "contention-free"] {
        let node = |at: u32, interval: u32| {
            format!("interval = {interval}\n[[failure]]\nhost = 'node-1'\nat = {at}\n")
        };
        // From 55 s on six steps are left, with checkpoints after the second, third, fifth and sixth: 60 and 12 s.
        let found = run(model, &format!("0 init\n1 init\n{steps}"), &node(50, 14));
        assert!((seconds(&found[0]["end_s"]) - 127.0).abs() < 1e-3, "{model}: {found}");
        assert_near(seconds(&found[0]["failures"][0]["lost_s"]), 50.0 - 34.0);
        assert_eq!((&found[0]["actions"], &found[1]["end_s"]), (&29.into(), &10.0.into()));
        // From 65 s on four polls and computations are repeated in no time; five are left, with four checkpoints between.
        let poll = "[mpi]\ntest_s = 1\ntest_grows = false\n";
        let found = run(model, &format!("0 init\n1 init\n{polls}"), &(node(60, 14) + poll));
        assert!((seconds(&found[0]["end_s"]) - 129.0).abs() < 1e-3, "{model}: {found}");
        // From 51 s on the message is there, and rank 1 has its last computation before it.
        let found = run(model, &format!("0 init\n1 init\n{late}"), &node(46, 29));
        assert!((seconds(&found[0]["end_s"]) - 76.0).abs() < 1e-3, "{model}: {found}");
        // Without the checkpoint all of it: four computations and both messages.
        let found = run(model, &format!("0 init\n1 init\n{late}"), &node(42, 29));
        assert!(
            (seconds(&found[0]["end_s"]) - (47.0 + 43.0 + 2.0 + 25.0 + 3.0)).abs() < 0.1,
            "{model}: {found}"
        );
    }
}

/// Computations that end when checkpoints are due: the time is that of the same job by itself, which is counted.
#[test]
fn several_jobs_agree_with_one_on_checkpoints() {
    let folder = Folder::new();
    let work: String = (0..60)
        .fold("0 init\n1 init\n".to_owned(), |text, action| text + &format!("{} compute 1e10\n", action % 2));
    let failures = "[[failure]]\nhost = 'node-*'\nmtbf = 300\nrepair = 20\n\
        [failures]\nrecovery = 'restart'\ninterval = 20\ncheckpoint = 2\nrestart = 5\nseed = ";
    let alone = config(&folder, (STAR, "contention-free", &work), failures);
    let other = folder.write("other.txt", "0 init\n0 compute 1e10\n");
    let hosts = folder.write("work-hosts.txt", "node-0\nnode-1\n");
    let (trace, rest) = alone.split_once('\n').unwrap();
    let job = trace.replace("trace.path", "trace");
    let jobs = format!(
        "{rest}\n[[job]]\nname = 'a'\n{job}\nhosts = {hosts:?}\n[[job]]\nname = 'b'\ntrace = {other:?}\n"
    );
    let mut deaths = 0;
    for seed in 1..6 {
        let one = report(&folder, &format!("{alone}{seed}\n"), &[]);
        let several = report(&folder, &jobs.replacen("seed = ", &format!("seed = {seed}"), 1), &[]);
        let (one, several) = (&one["failures"]["job"], &several["jobs"][0]);
        assert_near(seconds(&several["end_s"]), seconds(&one["time_s"]));
        assert_eq!(several["start_s"], 0.0);
        let own = |run: &Value, key: &str| -> Vec<f64> {
            run["failures"].as_array().unwrap().iter().map(|failure| seconds(&failure[key])).collect()
        };
        for key in ["at_s", "resumed_s"] {
            own(several, key).into_iter().zip(own(one, key)).for_each(|(at, of_one)| assert_near(at, of_one));
        }
        deaths += several["failures"].as_array().unwrap().len();
    }
    assert!(deaths > 5, "{deaths}");
}

/// Two rings on all hosts, which die at random and come back: the same bits in any order of turns, and on threads.
#[test]
fn deaths_are_the_same_in_any_schedule() {
    let folder = Folder::new();
    let trace = folder.write(
        "ring.txt",
        &(ring() + &(0..8).map(|rank| format!("{rank} allreduce 4000 0\n")).collect::<String>()),
    );
    let hosts = folder.write("hosts.txt", &(0..8).map(|host| format!("node-{host}\n")).collect::<String>());
    let job = |name: &str| format!("[[job]]\nname = {name:?}\ntrace = {trace:?}\nhosts = {hosts:?}\n");
    let checkpoints = "interval = '7ms'\ncheckpoint = '500us'\n";
    for (model, checkpoints) in
        [("flow", ""), ("contention-free", ""), ("flow", checkpoints), ("contention-free", checkpoints)]
    {
        let text = format!(
            "network = {{ model = {model:?}, preset = 'raw' }}\nplatform.topology = {TREE}\n{}{}start = '35ms'\n\
             [[failure]]\nhost = '*'\nmtbf = '2s'\nrepair = '5ms'\n[failures]\nrecovery = 'restart'\nseed = 4\n{checkpoints}",
            job("a"),
            job("b")
        );
        let path = folder.write("run.toml", &text);
        let run = |threads: i64, jitter: Option<u64>| {
            let mut config = Config::from_path(&path).unwrap();
            config.insert("engine", "threads", threads.into());
            let simulation = Simulation::load(&config.resolve().unwrap()).unwrap().with_jitter(jitter);
            let programs = simulation.replay(&Progress::new(threads as usize)).unwrap().programs;
            programs
                .into_iter()
                .map(|program| (program.ends, program.deaths, program.start))
                .collect::<Vec<_>>()
        };
        let whole = run(1, None);
        let deaths: usize = whole.iter().map(|(_, deaths, _)| deaths.len()).sum();
        assert!(deaths > 1, "{model}: {deaths}");
        for (threads, jitter) in [(3, None), (1, Some(1)), (2, Some(2))] {
            assert_eq!(run(threads, jitter), whole, "{model}, {threads} threads, {jitter:?}");
        }
    }
}
