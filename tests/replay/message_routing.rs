//! Messages that choose their routes with exact contention: threads, fast-forward, checkpoints, refusals.

use std::path::{Path, PathBuf};

use pdes_core::{Bytes, Progress};
use pdes_replay::{Config, Simulation};
use trace_tools::generate::{AllreduceLoop, AllreduceLoopParameters, Halo3d, Halo3dParameters};

use crate::command_line::Folder;
use crate::forward::contention::{check, generated};
use crate::forward::digest;

/// 32 hosts of four groups, which have one cable to each other group.
const DRAGONFLY: &str = "platform.topology={ kind = 'dragonfly', groups = 4, chassis = 2, blades = 2, nodes = 2, speed = '10Gf', \
                         bandwidth = '1GBps', latency = '500ns' }";
/// As many hosts below three spines, over the first of which lead the messages to three of eight hosts.
const TREE: &str = "platform.topology={ kind = 'fat_tree', levels = [{ children = 8, parents = 1 }, { children = 4, parents = 3 }], \
                    speed = '10Gf', bandwidth = '1GBps', latency = '500ns' }";
const ROUTINGS: [&str; 3] =
    ["network.routing='valiant'", "network.routing='ugal'", "network.routing='spray'"];

fn halo(folder: &Folder, iterations: u64) -> PathBuf {
    let parameters = Halo3dParameters {
        cells: [64, 64, 64],
        processes: [4, 4, 2],
        periodic: true,
        iterations,
        cell_bytes: Bytes::new(80),
        ..Halo3dParameters::default()
    };
    generated(folder, "halo.pdt", &Halo3d::new(parameters).unwrap(), None)
}

fn load(trace: &Path, settings: &[&str]) -> Result<Simulation, String> {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&["parallel.oversubscribe=true"], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).map_err(|error| error.to_string())
}

/// Each pair of hosts takes turns between eight ways, so that iterations which drain the network repeat after at most eight; loads of links
/// are those of the complete run.
#[test]
fn iterations_with_chosen_routes_are_skipped_exactly() {
    let folder = Folder::new();
    let parameters =
        AllreduceLoopParameters { ranks: 32, iterations: 60, ..AllreduceLoopParameters::default() };
    let generator = AllreduceLoop::new(parameters).unwrap();
    let trace = generated(&folder, "allreduce.pdt", &generator, None);
    for routing in ROUTINGS {
        for preset in ["network.preset='raw'", "network.preset='smpi'"] {
            let found = check(&trace, &[DRAGONFLY, preset, routing]);
            assert!(found.skipped_iterations > 0 && found.period <= 8, "{routing} {preset}: {found:?}");
        }
    }
    let found = check(&trace, &[TREE, ROUTINGS[2], "network.routing_parts=3"]);
    assert!(found.skipped_iterations > 0, "{found:?}");
}

#[test]
fn several_threads_say_why_they_are_one_and_change_nothing() {
    let folder = Folder::new();
    let trace = halo(&folder, 4);
    let mut times = Vec::new();
    for routing in [&["network.routing='minimal'"], &ROUTINGS[..]].concat() {
        let [one, three] = ["engine.threads=1", "engine.threads=3"].map(|threads| {
            let simulation = load(&trace, &[DRAGONFLY, routing, threads]).unwrap();
            let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
            (digest(&outcome), outcome.simulated_time(), simulation.warnings())
        });
        assert_eq!((one.0, one.1), (three.0, three.1), "{routing}");
        assert!(three.2.iter().any(|warning| warning.contains("on one thread")), "{routing}: {:?}", three.2);
        times.push(one.1);
    }
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), 4, "each routing has effects");
}

#[test]
fn messages_in_one_part_change_nothing_and_in_three_relieve_a_spine() {
    let folder = Folder::new();
    let trace = halo(&folder, 2);
    let outcomes = [
        &["network.routing='minimal'"][..],
        &[ROUTINGS[2], "network.routing_parts=1"],
        &[ROUTINGS[2], "network.routing_parts=3"],
    ]
    .map(|routing| {
        let simulation = load(&trace, &[&[TREE], routing].concat()).unwrap();
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        (digest(&outcome), outcome.simulated_time())
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[2].1 < outcomes[0].1, "{outcomes:?}");
}

#[test]
fn what_has_one_route_for_each_pair_refuses_by_name() {
    let folder = Folder::new();
    let trace = halo(&folder, 1);
    for (settings, why) in [
        (
            &[DRAGONFLY, "network.model='contention-free'"][..],
            "the model \"contention-free\" gives messages the routes",
        ),
        (&[DRAGONFLY, "network.model='packets'"], "or packets those of packets.routing"),
        (&[DRAGONFLY, "network.epoch_s='auto'"], "set network.epoch_s = 0"),
        (&[DRAGONFLY, "output.certificate='c.txt'"], "the checker knows one route for each pair of hosts"),
        (&[TREE], "set platform.routing = \"random\""),
    ] {
        let error = load(&trace, &[settings, &[ROUTINGS[1]]].concat()).unwrap_err();
        assert!(error.contains(why), "{error}");
        if settings != [TREE] {
            let error = load(&trace, &[settings, &[ROUTINGS[2]]].concat()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        load(&trace, &[settings, &["network.routing='minimal'"]].concat()).unwrap();
    }
    let flat = "platform.topology={ kind = 'cluster', hosts = 32, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
    let error = load(&trace, &[flat, ROUTINGS[2]]).unwrap_err();
    assert!(error.contains("have one route: expected one fat tree"), "{error}");
    assert!(!error.contains("  "), "{error}");
    let mut config = Config::default();
    config.set_path("trace", "path", &trace);
    for setting in [TREE, ROUTINGS[2], "network.routing_parts=0"] {
        config.set(setting).unwrap();
    }
    let error = config.resolve().unwrap_err().to_string();
    assert!(error.contains("routing_parts") && error.contains("from 1 to 64"), "{error}");
}
