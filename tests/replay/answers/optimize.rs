//! Changes that make runs shorter, beside all possibilities.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use answers::{Allowed, Caveat, Costs, Freedom, Optimum};
use mpi_model::collective::Operation;
use pdes_core::Progress;
use pdes_replay::{RunSpec, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use super::{CLUSTER, DRAGONFLY, TREE, config, exchanges, program, time, transpose};
use crate::command_line::{DONE, Folder, MISUSE, command};

/// Two leaves of four hosts with one uplink each: hosts of a leaf are alike, and so are the leaves.
const SLIM_TREE: &str = "{ kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 1 }], speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";

fn optimum(spec: &RunSpec, freedom: Freedom) -> Optimum {
    let allowed = Allowed { freedoms: vec![freedom], replays: 5000, ..Allowed::default() };
    allowed_optimum(spec, &allowed)
}

fn allowed_optimum(spec: &RunSpec, allowed: &Allowed) -> Optimum {
    let found = Optimum::of(spec, allowed, Caveat::default(), 2, &AtomicU64::new(0)).unwrap();
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
    let is_real = |name: &&str| !["automatic", "analytic", "in_network"].contains(name);
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

fn costs(text: &str) -> Costs {
    Costs::from_text(&format!("currency = 'EUR'\n{text}"), "costs.toml".as_ref()).unwrap()
}

/// All numbers of spines that the budget allows: cables between leaves and spines cost 100 each.
#[test]
fn the_taper_is_the_best_within_the_budget() {
    let trace = program(|rank| {
        let exchange = |other: u32| format!("irecv {other} 0 400000;isend {other} 0 400000;waitall;");
        exchange((rank + 4) % 8)
            + &exchange((rank + 5) % 8)
                .replace(&format!("irecv {}", (rank + 5) % 8), &format!("irecv {}", (rank + 3) % 8))
    });
    let folder = Folder::new();
    let config = config(&folder, &trace, TREE, "flow");
    let spec = config.clone().resolve().unwrap();
    let with = |parents: u32| {
        let mut config = config.clone();
        let levels = format!("[{{ children = 4, parents = 1 }}, {{ children = 2, parents = {parents} }}]");
        config.set(&format!("platform.topology.levels = {levels}")).unwrap();
        time(&config.resolve().unwrap())
    };
    for budget in [0, 200, 400] {
        let costs = costs(&format!("budget = {budget}\n[[cable]]\nplace = 'leaf to spine'\neach = 100\n"));
        let allowed = Allowed { freedoms: vec![Freedom::Cables], costs: Some(costs), ..Allowed::default() };
        let found = allowed_optimum(&spec, &allowed);
        // Two leaves, and at first two spines: each further one takes two cables.
        let best = (1..=2 + budget / 200).map(with).min().unwrap();
        assert_eq!(found.after_ps, best, "{budget}: {found:?}");
        assert!(found.cost.unwrap_or(0.0) <= f64::from(budget), "{found:?}");
        let mut config = config.clone();
        found.settings.iter().for_each(|setting| config.set(setting).unwrap());
        assert_eq!(time(&config.resolve().unwrap()), best);
    }
    let unknown = costs("[[cable]]\nplace = 'dimension 1'\neach = 1\n");
    let allowed = Allowed { freedoms: vec![Freedom::Cables], costs: Some(unknown), ..Allowed::default() };
    let error = Optimum::of(&spec, &allowed, Caveat::default(), 2, &AtomicU64::new(0)).unwrap_err();
    assert!(error.to_string().contains("leaf to spine"), "{error}");
}

/// All numbers of cables of a dragonfly up to six of each kind that cost no more than its own; the local search may end above the best of them, by no
/// more than a twentieth.
#[test]
fn cables_move_to_where_they_help() {
    let folder = Folder::new();
    let config = config(&folder, &transpose(), DRAGONFLY, "flow");
    let spec = config.clone().resolve().unwrap();
    let text = "budget = 30\n[[cable]]\nplace = 'between groups'\neach = 10\n[[cable]]\nplace = 'between chassis'\neach = 3\n[[cable]]\nplace = 'inside chassis'\neach = 2\n";
    let allowed = Allowed { freedoms: vec![Freedom::Cables], costs: Some(costs(text)), ..Allowed::default() };
    let found = allowed_optimum(&spec, &allowed);
    let mut best = u64::MAX;
    for (blue, black, green) in
        (1..=4).flat_map(|blue| (1..=3).flat_map(move |black| (1..=3).map(move |green| (blue, black, green))))
    {
        // One cable between the groups, two between the chassis of each of two groups, one inside each of four chassis.
        if 10 * (blue - 1) + 4 * 3 * (black - 1) + 4 * 2 * (green - 1) > 30 {
            continue;
        }
        let mut config = config.clone();
        for (key, value) in [("blue", blue), ("black", black), ("green", green)] {
            config.set(&format!("platform.topology.{key} = {value}")).unwrap();
        }
        best = best.min(time(&config.resolve().unwrap()));
    }
    assert!(found.after_ps < found.before_ps && found.cost.unwrap() <= 30.0, "{found:?}");
    assert!(found.after_ps as f64 <= 1.05 * best as f64, "{} and {best}", found.after_ps);
}

/// Eight short messages in a row become one; the hypothesis that is told has the run time that is told.
#[test]
fn messages_are_aggregated_and_the_patch_is_exact() {
    let sends = |to: u32| format!("isend {to} 0 1000;").repeat(8);
    let receives = |from: u32| format!("irecv {from} 0 1000;").repeat(8);
    let trace = program(|rank| match rank {
        0 => format!("location faces 0;{}waitall;", sends(1)),
        1 => format!("location faces 0;{}waitall;location answer 0;isend 2 0 5000;waitall;", receives(0)),
        2 => "irecv 1 0 5000;waitall;".to_owned(),
        _ => String::new(),
    });
    let folder = Folder::new();
    let mut config = config(&folder, &trace, CLUSTER, "contention-free");
    config.set("mpi.isend_overhead = '0:5ms:0'").unwrap();
    let found = optimum(&config.clone().resolve().unwrap(), Freedom::Aggregation);
    assert!(found.after_ps < found.before_ps, "{found:?}");
    assert!(found.changes[0].name.contains("become one"), "{found:?}");
    let run = folder.write(
        "patched.toml",
        &std::fs::read_to_string(folder.path("run.toml"))
            .unwrap()
            .replace("[platform]", "[mpi]\nisend_overhead = '0:5ms:0'\n[platform]"),
    );
    let (patch, results) = (folder.write("patch.toml", &found.patch), folder.path("results"));
    command().arg("what-if").arg(patch).arg("--config").arg(run).arg("-o").arg(&results).assert().code(DONE);
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(results.join("summary.json")).unwrap()).unwrap();
    let times: Vec<u64> = summary["hypotheses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["simulated_time_ps"].as_u64().unwrap())
        .collect();
    assert_eq!(times, [found.before_ps, found.after_ps]);
}

/// Hosts that wait at a barrier may be slower as long as they come no later than the last one.
#[test]
fn slack_is_used_for_lower_frequencies() {
    let work = [1000, 450, 550, 620, 720, 830, 980, 1000];
    let trace = program(|rank| format!("compute {};barrier;", work[rank as usize] * 1000));
    let folder = Folder::new();
    let config = config(&folder, &trace, CLUSTER, "contention-free");
    let found = optimum(&config.clone().resolve().unwrap(), Freedom::Frequency);
    assert_eq!(found.before_ps, found.after_ps);
    let slack = found.slack.unwrap();
    let expected = [("node-1", 0.5), ("node-2", 0.6), ("node-3", 0.7), ("node-4", 0.8), ("node-5", 0.9)];
    assert!(slack.hosts.iter().map(|(host, part)| (host.as_str(), *part)).eq(expected), "{slack:?}");
    let saved = |(host, part): (&str, f64)| {
        f64::from(work[host[5..].parse::<usize>().unwrap()]) * (1.0 - part * part)
    };
    let share = expected.into_iter().map(saved).sum::<f64>() / f64::from(work.iter().sum::<u32>());
    assert!(
        (slack.saved_share - share).abs() < 1e-12 && slack.saved_j.is_none(),
        "{slack:?}, expected {share}"
    );
    // With power the same in joules: 60 W for 1 s at full frequency.
    let mut config = config;
    config.set("energy.enabled = true").unwrap();
    config.set("energy.hosts = { '*' = { idle = 40, all_cores = 100 } }").unwrap();
    config.set("network.model = 'flow'").unwrap();
    let slack = optimum(&config.resolve().unwrap(), Freedom::Frequency).slack.unwrap();
    let all_j = 60.0 * f64::from(work.iter().sum::<u32>()) / 1000.0;
    assert!((slack.saved_j.unwrap() - slack.saved_share * all_j).abs() < 1e-9, "{slack:?}");
}

/// A budget ends the search, and is told.
#[test]
fn a_search_ends_with_its_budget() {
    let folder = Folder::new();
    let spec = config(&folder, &exchanges(), TREE, "flow").resolve().unwrap();
    let allowed = Allowed { freedoms: Freedom::ALL.to_vec(), replays: 5, ..Allowed::default() };
    let found = Optimum::of(&spec, &allowed, Caveat::default(), 2, &AtomicU64::new(0)).unwrap();
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
    let mut without_costs = command();
    without_costs
        .arg("optimize")
        .arg(&run)
        .args(["--allow", "cables"])
        .assert()
        .code(MISUSE)
        .stderr(contains("--costs"));
    let mut fast = command();
    fast.arg("optimize")
        .arg(&run)
        .args(["--frequencies", "1.5"])
        .assert()
        .code(MISUSE)
        .stderr(contains("below 1"));
}
