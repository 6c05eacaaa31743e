//! The command that schedules workloads of batch jobs.

use std::collections::BTreeMap;

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::{Row, rows};
use crate::shared::shared;

/// Three jobs of which the third is backfilled.
const WORKLOAD: &str = r#"{"nb_res": 4, "jobs": [
    {"id": "a", "subtime": 0, "walltime": 10, "res": 3, "profile": "p"},
    {"id": "b", "subtime": 1, "walltime": 10, "res": 4, "profile": "p"},
    {"id": "c", "subtime": 2, "walltime": 5, "res": 1, "profile": "q"}],
    "profiles": {"p": {"type": "delay", "delay": 10}, "q": {"type": "delay", "delay": 4.5}}}"#;

#[test]
fn a_workload_becomes_a_table_and_a_page() {
    let folder = Folder::new();
    let workload = folder.write("w.json", WORKLOAD);
    for (flags, expected) in [
        (
            &["--policy", "easy"][..],
            "a,0.000000,10.000000,0-2\nc,2.000000,6.500000,3\nb,10.000000,20.000000,0-3\n",
        ),
        (
            &["--policy", "fcfs", "--nodes", "8"],
            "a,0.000000,10.000000,0-2\nb,1.000000,11.000000,3-6\nc,2.000000,6.500000,7\n",
        ),
    ] {
        let output = folder.path("out");
        let measures = contains("makespan: ").and(contains("bounded")).and(contains("utilisation: "));
        let mut schedule = command();
        schedule.arg("schedule").arg(&workload).args(flags).arg("-o").arg(&output);
        schedule.assert().code(DONE).stdout(measures);
        let table = std::fs::read_to_string(output.join("jobs.csv")).unwrap();
        assert_eq!(table, format!("job,start,finish,nodes\n{expected}"));
        assert!(std::fs::read_to_string(output.join("schedule.html")).unwrap().contains("Gantt"));
    }
}

#[test]
fn broken_workloads_are_refused_by_name() {
    let folder = Folder::new();
    let line = "1 0 -1 10 8 -1 -1 -1 10 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
    let refuse = |name: &str, text: &str, flags: &[&str], status: i32, words: &str| {
        let workload = folder.write(name, text);
        let mut schedule = command();
        schedule.arg("schedule").arg(workload).args(flags).arg("-o").arg(folder.path("out"));
        schedule.assert().code(status).stdout("").stderr(contains(words));
    };
    refuse("w.swf", &format!("{line}2 0 -1 x\n"), &["--nodes", "8"], FAILED, "line 2: found 4 fields");
    refuse("w.swf", line, &["--nodes", "4"], FAILED, "job 1 needs 8 nodes, and the machine has 4");
    refuse("w.swf", line, &[], MISUSE, "give --nodes");
    refuse("w.txt", line, &[], MISUSE, "name it .swf");
    refuse("w.json", "{]", &[], FAILED, "line 1");
    refuse("w.swf", line, &["--policy", "lottery"], MISUSE, "conservative");
}

/// A machine of one switch, on which a megabyte takes a millisecond.
const SWITCH: &str = "[platform]\ntopology = { kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }\n\
    [mpi]\nenvelope_bytes = 0\n[network]\npreset = 'raw'\n";

/// Schedules a workload on a machine; returns the table of the jobs without its header.
fn simulate(folder: &Folder, workload: &str, machine: &str, flags: &[&str]) -> String {
    let (workload, config) = (folder.write("w.json", workload), folder.write("machine.toml", machine));
    let output = folder.path("simulated");
    let mut schedule = command();
    schedule.arg("schedule").arg(workload).arg("--config").arg(config).args(flags).arg("-o").arg(&output);
    let done = schedule.assert().code(DONE).stdout(contains("utilisation: "));
    // No job has hosts before it starts, and each has a core for each rank then.
    done.stderr(contains("share cores").not());
    let table = std::fs::read_to_string(output.join("jobs.csv")).unwrap();
    table.strip_prefix("job,start,finish,nodes\n").unwrap().to_owned()
}

/// Jobs that only wait have the same schedule on a platform as without, under all policies and models.
#[test]
fn jobs_with_fixed_run_times_have_the_same_schedule_on_a_platform() {
    let folder = Folder::new();
    let expected = "a,0.000000,10.000000,0-2\nc,2.000000,6.500000,3\nb,10.000000,20.000000,0-3\n";
    for model in ["model = 'flow'", "model = 'contention-free'", "model = 'flow'\nepoch_s = 'auto'"] {
        // Epochs need a latency.
        let machine = SWITCH.replace("'0s'", "'1us'") + model;
        for policy in ["easy", "conservative", "sjbf"] {
            assert_eq!(
                simulate(&folder, WORKLOAD, &machine, &["--policy", policy]),
                expected,
                "{model}, {policy}"
            );
        }
    }
}

/// Two jobs of one switch: their messages share the link of the third node, so that both take longer than alone, and a fourth job starts later.
#[test]
fn scheduled_jobs_slow_each_other_down() {
    let folder = Folder::new();
    // Each of two ranks sends to the other one at once, so that a link carries 10 MB each way: 10 ms.
    folder.write("swap.txt", "0 init\n1 init\n0 isend 1 0 10000000\n0 recv 1 0 10000000\n0 waitall\n1 isend 0 0 10000000\n1 recv 0 0 10000000\n1 waitall\n");
    let workload = r#"{"nb_res": 4, "jobs": [
        {"id": "a", "subtime": 0, "walltime": 1, "res": 2, "profile": "swap"},
        {"id": "b", "subtime": 0.001, "walltime": 1, "res": 2, "profile": "swap"},
        {"id": "c", "subtime": 0.002, "walltime": 1, "res": 4, "profile": "mixed"},
        {"id": "d", "subtime": 0.003, "walltime": 1, "res": 1, "profile": "delay"}],
        "profiles": {"swap": {"type": "trace", "trace": "swap.txt"}, "delay": {"type": "delay", "delay": 0.001},
            "mixed": {"type": "parallel_homogeneous", "cpu": 5e6, "com": 1000000}}}"#;
    // c computes for 5 ms, and sends 3 MB through each link in 3 ms meanwhile. d would delay it.
    let expected =
        "a,0.000000,0.010000,0-1\nb,0.001000,0.011000,2-3\nc,0.011000,0.016000,0-3\nd,0.016000,0.017000,0\n";
    assert_eq!(simulate(&folder, workload, SWITCH, &[]), expected);
    let report = std::fs::read(folder.path("simulated").join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(
        (&report["jobs"][2]["placement"], &report["jobs"][2]["ranks"]),
        (&"scheduled".into(), &4.into())
    );
    // On a line of switches of which one cable has the messages of both, the second half of a and the first one of b take twice as long.
    let cable = "[platform]\ntopology = { kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 1 }], \
        speed = '1Gf', bandwidth = '1GBps', latency = '0s' }\n[mpi]\nenvelope_bytes = 0\n[network]\npreset = 'raw'\n";
    let spread = r#"{"nb_res": 4, "jobs": [
        {"id": "short", "subtime": 0, "walltime": 1, "res": 1, "profile": "delay"},
        {"id": "a", "subtime": 0, "walltime": 1, "res": 2, "profile": "swap"},
        {"id": "b", "subtime": 0.001, "walltime": 1, "res": 2, "profile": "swap"}],
        "profiles": {"swap": {"type": "trace", "trace": "swap.txt"}, "delay": {"type": "delay", "delay": 0.001}}}"#;
    // a has the nodes 1 and 2, b 0 and 3: alone for 1 ms, both at half the rate until 19 ms, b alone until 20 ms.
    let expected = "short,0.000000,0.001000,0\na,0.000000,0.019000,1-2\nb,0.001000,0.020000,0 3\n";
    for flags in [&[][..], &["--set", "engine.threads=2"]] {
        assert_eq!(simulate(&folder, spread, cable, flags), expected);
    }
    let contention_free = cable.replace("preset = 'raw'", "preset = 'raw'\nmodel = 'contention-free'");
    let expected = "short,0.000000,0.001000,0\na,0.000000,0.010000,1-2\nb,0.001000,0.011000,0 3\n";
    for flags in [&[][..], &["--set", "engine.threads=3", "--set", "parallel.oversubscribe=true"]] {
        assert_eq!(simulate(&folder, spread, &contention_free, flags), expected);
    }
}

/// The schedule of ten jobs is one on any number of threads, and jobs that share links take longer than alone.
#[test]
fn ten_jobs_have_one_schedule() {
    let folder = Folder::new();
    let ring: String = (0..4)
        .map(|rank| {
            let (next, last) = ((rank + 1) % 4, (rank + 3) % 4);
            format!("{rank} init\n{rank} compute 1e6\n{rank} isend {next} 0 4000000\n{rank} recv {last} 0 4000000\n{rank} waitall\n{rank} barrier\n")
        })
        .collect();
    folder.write("ring.txt", &ring);
    let jobs: Vec<String> = (0..10)
        .map(|job| {
            let (nodes, walltime) = ([4, 2, 3][job % 3], [0.02, 0.01, 0.015][job % 3]);
            format!(r#"{{"id": "{job}", "subtime": {}, "walltime": {walltime}, "res": {nodes}, "profile": "ring"}}"#, 0.0005 * job as f64)
        })
        .collect();
    let workload = format!(
        r#"{{"nb_res": 8, "jobs": [{}], "profiles": {{"ring": {{"type": "smpi", "trace": "ring.txt"}}}}}}"#,
        jobs.join(",")
    );
    let machine = "[platform]\ntopology = { kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 1 }, \
        { children = 2, parents = 1 }], speed = '1Gf', cores = 2, bandwidth = '1GBps', latency = '1us' }\n[parallel]\noversubscribe = true\n";
    let times = |table: &str| -> Vec<f64> {
        let time = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            fields[2].parse::<f64>().unwrap() - fields[1].parse::<f64>().unwrap()
        };
        table.lines().map(time).collect()
    };
    let sum = |model: &str| {
        let run = |threads: u32| {
            simulate(
                &folder,
                &workload,
                machine,
                &["--set", model, "--set", &format!("engine.threads={threads}")],
            )
        };
        let table = run(1);
        assert_eq!(table.lines().count(), 10);
        (2..=3).for_each(|threads| assert_eq!(run(threads), table, "{model}, {threads} threads"));
        times(&table).iter().sum::<f64>()
    };
    assert!(sum("network.model='flow'") > sum("network.model='contention-free'"));
}

#[test]
fn jobs_that_cannot_run_on_a_platform_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("pair.txt", "0 init\n1 init\n0 send 1 0 10\n1 recv 0 0 10\n");
    let workload = |nodes: u32, rest: &str, profile: &str| {
        format!(
            r#"{{"jobs": [{{"id": "big", "subtime": 0, "res": {nodes}, {rest} "profile": "p"}}], "profiles": {{"p": {profile}}}}}"#
        )
    };
    let (timed, pair) = (r#""walltime": 10,"#, r#"{"type": "trace", "trace": "pair.txt"}"#);
    let with_trace = format!("[trace]\npath = 'pair.txt'\n{SWITCH}");
    let config = |text: &str| format!("--config={}", folder.write("machine.toml", text).display());
    let machine = config(SWITCH);
    for (workload, flags, status, words) in [
        (workload(1, timed, pair), vec![&*machine], FAILED, "job big: "),
        (workload(2, "", pair), vec![&*machine], FAILED, "give it one"),
        (workload(2, timed, pair), vec!["--nodes=2"], FAILED, "give --platform"),
        (workload(5, timed, pair), vec![&*machine], FAILED, "job big needs 5 nodes, and the machine has 4"),
        (workload(2, timed, pair), vec![&*machine, "--nodes=9"], MISUSE, "the platform 4 hosts"),
        (
            workload(2, timed, r#"{"type": "trace", "trace": "none.txt"}"#),
            vec![&*machine],
            FAILED,
            "none.txt",
        ),
        (workload(2, timed, pair), vec![&*machine, "--set", "checkpoint.directory=c"], FAILED, "not saved"),
    ] {
        let mut schedule = command();
        schedule
            .arg("schedule")
            .arg(folder.write("w.json", &workload))
            .args(flags)
            .arg("-o")
            .arg(folder.path("out"));
        schedule.assert().code(status).stderr(contains(words));
    }
    let machine = config(&with_trace);
    let mut schedule = command();
    schedule
        .arg("schedule")
        .arg(folder.write("w.json", WORKLOAD))
        .arg(machine)
        .arg("-o")
        .arg(folder.path("out"));
    schedule.assert().code(MISUSE).stderr(contains("leave [trace]"));
}

/// Batsim's schedule of 801 jobs, with jobs that run on a platform: start for start and node for node.
#[test_with::shared]
fn jobs_of_batsim_run_on_a_platform() {
    let folder = Folder::new();
    let rows = rows(&shared("oracle/scheduling/batsim-easy.csv"));
    let job = |row: &Row| {
        let [name, submitted, nodes, walltime] =
            ["job", "submit_s", "nodes", "walltime_s"].map(|key| &row[key]);
        format!(
            r#"{{"id": {name}, "subtime": {submitted}, "res": {nodes}, "walltime": {walltime}, "profile": "{name}"}}"#
        )
    };
    let profile =
        |row: &Row| format!(r#""{}": {{"type": "delay", "delay": {}}}"#, row["job"], row["runtime_s"]);
    let (jobs, profiles): (Vec<String>, Vec<String>) =
        rows.iter().map(|row| (job(row), profile(row))).unzip();
    let workload = format!(r#"{{"jobs": [{}], "profiles": {{{}}}}}"#, jobs.join(","), profiles.join(","));
    let machine = SWITCH.replace("hosts = 4", "hosts = 32");
    let table = simulate(&folder, &workload, &machine, &[]);
    let found: BTreeMap<&str, Vec<&str>> =
        table.lines().map(|line| line.split(',').collect::<Vec<_>>()).map(|row| (row[0], row)).collect();
    assert_eq!(found.len(), 801);
    for row in &rows {
        let found = &found[&*row["job"]];
        let [start, expected] = [found[1], &row["start_s"]].map(|date| date.parse::<f64>().unwrap());
        assert!((start - expected).abs() < 2e-6, "job {}: {start}, expected {expected}", row["job"]);
        assert_eq!(found[3], row["machines"], "job {}", row["job"]);
    }
}
