//! Changes that make runs shorter, beside all possibilities.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use answers::{Caveat, Freedom, Optimum};
use mpi_model::collective::Operation;
use pdes_core::Progress;
use pdes_replay::{RunSpec, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use super::{CLUSTER, TREE, config, exchanges, program, time, transpose};
use crate::command_line::{DONE, Folder, MISUSE, command};

/// Two leaves of four hosts with one uplink each: hosts of a leaf are alike, and so are the leaves.
const SLIM_TREE: &str = "{ kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 1 }], speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";

fn optimum(spec: &RunSpec, freedom: Freedom) -> Optimum {
    let found = Optimum::of(spec, &[freedom], 5000, Caveat::default(), 2, &AtomicU64::new(0)).unwrap();
    assert_eq!(found.before_ps, time(spec));
    let saved: u64 = found.changes.iter().map(|change| change.saved_ps).sum();
    assert_eq!((found.before_ps - saved, found.is_local_optimum), (found.after_ps, true));
    found
}

/// All placements of eight ranks on a tree of two leaves of four hosts, which are alike.
#[test]
fn the_placement_is_the_best_of_all() {
    // Ranks talk to that at a distance of four, which is in the other leaf, and a little to the next one.
    let trace = program(|rank| {
        let exchange =
            |other: u32, bytes: u32| format!("irecv {other} 0 {bytes};isend {other} 0 {bytes};waitall;");
        (exchange((rank + 4) % 8, 400_000 + 20_000 * (rank % 4)) + &exchange(rank ^ 1, 50_000)).repeat(2)
    });
    let folder = Folder::new();
    let mut config = config(&folder, &trace, SLIM_TREE, "flow");
    let found = optimum(&config.clone().resolve().unwrap(), Freedom::Placement);
    let mut best = u64::MAX;
    // Ranks of the first leaf, without those that only exchange the leaves.
    for leaf in (0_u32..256).filter(|leaf| leaf.count_ones() == 4 && leaf & 1 == 1) {
        let (mut first, mut second) = (0, 4);
        let hosts: String = (0..8)
            .map(|rank| {
                let next = if leaf & (1 << rank) != 0 { &mut first } else { &mut second };
                *next += 1;
                format!("node-{}\n", *next - 1)
            })
            .collect();
        let path = folder.write("hosts.txt", &hosts);
        config.set_path("platform", "hosts", &path);
        best = best.min(time(&config.clone().resolve().unwrap()));
    }
    assert_eq!(found.after_ps, best);
    assert!(found.after_ps < found.before_ps);
    // The hosts that are told give this time.
    let hosts = found.hosts.unwrap();
    assert_eq!(hosts.iter().collect::<BTreeSet<_>>().len(), 8);
    config.set_path("platform", "hosts", &folder.write("found.txt", &hosts.join("\n")));
    assert_eq!(time(&config.resolve().unwrap()), best);
}

/// All pairs of algorithms of the two operations of a program.
#[test]
fn the_algorithms_are_the_best_of_all() {
    let folder = Folder::new();
    let config = config(&folder, &transpose(), CLUSTER, "contention-free");
    let spec = config.clone().resolve().unwrap();
    let found = optimum(&spec, Freedom::Algorithms);
    let is_real = |name: &&str| !["automatic", "analytic"].contains(name);
    let mut best = u64::MAX;
    for alltoall in Operation::Alltoall.algorithms().filter(is_real) {
        for bcast in Operation::Bcast.algorithms().filter(is_real) {
            let mut spec = spec.clone();
            spec.mpi.collectives.choose(Operation::Alltoall, alltoall).unwrap();
            spec.mpi.collectives.choose(Operation::Bcast, bcast).unwrap();
            // Those that do not suit the program are left out by name.
            let outcome = Simulation::load(&spec).and_then(|simulation| simulation.replay(&Progress::new(1)));
            match outcome {
                Ok(outcome) => best = best.min(outcome.simulated_time().as_picos()),
                Err(_) => assert!(
                    found.refused.keys().any(|name| name.ends_with(alltoall) || name.ends_with(bcast))
                ),
            }
        }
    }
    assert_eq!(found.after_ps, best);
    assert!(found.after_ps < found.before_ps && !found.settings.is_empty());
    let mut config = config;
    found.settings.iter().for_each(|setting| config.set(setting).unwrap());
    assert_eq!(time(&config.resolve().unwrap()), best);
}

/// A budget ends the search, and is told.
#[test]
fn a_search_ends_with_its_budget() {
    let folder = Folder::new();
    let spec = config(&folder, &exchanges(), TREE, "flow").resolve().unwrap();
    let found = Optimum::of(&spec, &Freedom::ALL, 5, Caveat::default(), 2, &AtomicU64::new(0)).unwrap();
    assert_eq!((found.replays, found.is_local_optimum), (5, false));
}

#[test]
fn the_command_writes_text_json_and_a_page() {
    let folder = Folder::new();
    config(&folder, &exchanges(), TREE, "contention-free");
    let path = |name: &str| folder.path(name);
    let (run, json, hosts) = (path("run.toml"), path("optimum.json"), path("hosts.txt"));
    let mut answers = Vec::new();
    for (threads, jobs) in [("1", "1"), ("3", "2")] {
        let mut optimize = command();
        optimize.arg("optimize").arg(&run).args(["--threads", threads, "--jobs", jobs, "--json"]).arg(&json);
        optimize.arg("--hosts").arg(&hosts);
        if cfg!(feature = "pictures") {
            optimize.arg("--page").arg(path("optimum.html"));
        }
        optimize.assert().code(DONE).stdout(contains("allreduce by").and(contains("causes in the model")));
        answers.push(std::fs::read_to_string(&json).unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    let mut wrong = command();
    wrong
        .arg("optimize")
        .arg(&run)
        .args(["--allow", "weather"])
        .assert()
        .code(MISUSE)
        .stderr(contains("placement"));
}
