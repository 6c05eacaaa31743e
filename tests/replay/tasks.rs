//! Task graphs on the command line, and a program of accelerators on the same node.

use std::path::{Path, PathBuf};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::command_line::{FAILED, Folder, MISUSE, command};
use crate::jobs::seconds;

/// Returns the path of a file of the example node.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/nodes").join(name)
}

/// All schedulers are above the bounds, and take energy for the time; what the table says is what is in the results.
#[test]
fn schedulers_stand_beside_the_bounds() {
    let folder = Folder::new();
    let (json, csv) = (folder.path("tasks.json"), folder.path("tasks.csv"));
    command()
        .arg("tasks")
        .arg(example("dgx-a100.toml"))
        .args(["--tiles", "8", "--json"])
        .arg(&json)
        .arg("--csv")
        .arg(&csv)
        .assert()
        .success()
        .stdout(contains("120 tasks").and(contains("bounds: critical path")).and(contains("dm ")));
    let results: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let bounds = &results["bounds"];
    let bound_s = seconds(&bounds["critical_path_s"]).max(seconds(&bounds["area_s"]));
    let schedulers = results["schedulers"].as_array().unwrap();
    assert_eq!(schedulers.len(), 3);
    for result in schedulers {
        let makespan_s = seconds(&result["makespan_s"]);
        assert!((makespan_s / bound_s - 1.0 - seconds(&result["above_bound"])).abs() < 1e-9);
        assert!(makespan_s >= bound_s, "{result}");
        // From the power of an idle node to that of a busy one.
        let mean_w = seconds(&result["energy_j"]) / makespan_s;
        assert!((590.0..3650.0).contains(&mean_w), "{mean_w}");
        let tasks: u64 =
            result["kinds"].as_array().unwrap().iter().map(|kind| kind["tasks"].as_u64().unwrap()).sum();
        assert_eq!(tasks, 120);
    }
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 1 + 3 * 120);
    let one =
        command().arg("tasks").arg(example("dgx-a100.toml")).args(["--tiles=8", "--scheduler=ws"]).assert();
    one.success().stdout(contains("ws ").and(contains("eager").not()));
}

/// The power of the other nodes is between that of all idle parts and that of all busy ones.
#[test]
fn nodes_of_real_machines_take_what_their_parts_take() {
    let folder = Folder::new();
    for (node, idle_w, busy_w) in [
        ("dgx-h100.toml", 200.0 + 8.0 * 70.0, 9.0 * 700.0),
        ("frontier.toml", 100.0 + 8.0 * 45.0, 9.0 * 280.0),
    ] {
        let json = folder.path("node.json");
        let arguments = ["--tiles=6", "--scheduler=dm", "--json"];
        command().arg("tasks").arg(example(node)).args(arguments).arg(&json).assert().success();
        let results: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let dm = &results["schedulers"][0];
        let mean_w = seconds(&dm["energy_j"]) / seconds(&dm["makespan_s"]);
        assert!(mean_w > idle_w && mean_w < busy_w, "{node}: {mean_w} W");
    }
}

#[test]
fn wrong_nodes_are_refused() {
    let folder = Folder::new();
    let node = |text: &str| {
        let text = format!("platform = {:?}\nmemory = 'cpu'\n{text}", example("dgx-a100-platform.toml"));
        folder.write("node.toml", &text)
    };
    for (text, expected) in [
        ("rates.cpu = { gemm = 1 }\n", "no cores have a rate for potrf"),
        ("rates = {}\nwatts = 3\n", "unknown field `watts`"),
        (
            "rates.cpu = { potrf = 1, trsm = 1, syrk = 1, gemm = 1 }\n[energy.hosts]\n'x' = { idle = 1, all_cores = 2 }\n",
            "the platform has no such host",
        ),
    ] {
        command().arg("tasks").arg(node(text)).assert().code(FAILED).stderr(contains(expected));
    }
    command().arg("tasks").arg("node.toml").args(["--scheduler", "magic"]).assert().code(MISUSE);
}

/// A step of a ring of accelerators, each with computations on a second stream: 3 MB over two links of 300 GB/s and 500 ns.
#[test]
fn a_schedule_of_accelerators_runs_on_the_node() {
    let folder = Folder::new();
    let rank = |rank: u32| {
        let (next, before) = ((rank + 1) % 8, (rank + 7) % 8);
        format!(
            "rank {rank} {{\nl1: send 3000000b to {next} tag 1 cpu 0\nl2: recv 3000000b from {before} tag 1 cpu 0\nl3: calc 5000 cpu 1\n}}\n"
        )
    };
    let schedule: String = "num_ranks 8\n".to_owned() + &(0..8).map(rank).collect::<String>();
    let schedule = folder.write("ring.goal", &schedule);
    let hosts = folder.write("gpus.txt", &(0..8).map(|gpu| format!("gpu-{gpu}\n")).collect::<String>());
    let report = folder.path("report.json");
    command()
        .arg("run")
        .arg("--trace")
        .arg(schedule)
        .arg("--platform")
        .arg(example("dgx-a100-platform.toml"))
        .arg("--set")
        .arg(format!("platform.hosts={hosts:?}"))
        .args(["--model", "flow", "--set", "network.preset=raw", "--set", "mpi.envelope_bytes=0", "--report"])
        .arg(&report)
        .assert()
        .success();
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let found = seconds(&report["simulated_time_s"]);
    assert!((found - 11e-6).abs() < 1e-7, "{found}");
}
