//! Memory bandwidth that the ranks of a host share.

use predicates::prelude::*;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

const CLUSTER: &str = "[topology]\nkind = 'cluster'\nhosts = 2\ncores = 2\nspeed = '1Gf'\nmemory_bandwidth = '3GBps'\n\
                       bandwidth = '1GBps'\nlatency = '1us'\n";
const GRAPH: &str = "topology = { kind = 'graph' }\nhost = [{ name = 'a', speed = '1Gf', cores = 2, memory_bandwidth = '3GBps' }, { name = 'b', speed = '1Gf', cores = 2 }]\n\
                     link = [{ name = 'l', bandwidth = '1GBps' }]\nroute = [{ src = 'a', dst = 'b', links = ['l'] }]\n";
const XML: &str = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'>\n<platform version='4.1'>\n\
                   <cluster id='c' prefix='n' suffix='' radical='0-1' speed='1Gf' core='2' bw='1GBps' lat='1us'>\n\
                   <prop id='memory_bandwidth' value='3GBps'/></cluster>\n</platform>\n";

/// Each rank computes for a second, then for another one in a region.
fn program(ranks: u32) -> String {
    let rank = |rank: u32| {
        format!(
            "{rank} init\n{rank} compute 1e9\n{rank} location sweep 0\n{rank} compute 1e9\n{rank} finalize\n"
        )
    };
    (0..ranks).map(rank).collect()
}

/// Replays a program of some ranks; returns the simulated time \[s\].
fn time(platform: (&str, &str), ranks: u32, settings: &[&str]) -> f64 {
    let folder = Folder::new();
    let (trace, platform) =
        (folder.write("trace.txt", &program(ranks)), folder.write(platform.0, platform.1));
    let mut replay = command();
    replay.arg("--trace").arg(trace).arg("--platform").arg(platform).arg("--quiet");
    settings.iter().for_each(|setting| {
        replay.args(["--set", setting]);
    });
    let output = replay.assert().code(DONE).get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    text.trim_start_matches("simulated time: ").trim_end_matches(" s\n").parse().unwrap()
}

#[test]
fn ranks_of_a_host_share_its_memory() {
    let all = "compute.bytes_per_flop=3";
    let region = "compute.region_bytes_per_flop={ sweep = 3 }";
    for model in ["network.model=contention-free", "network.model=flow"] {
        for platform in [("p.toml", CLUSTER), ("p.toml", GRAPH), ("p.xml", XML)] {
            let time = |ranks, setting| time(platform, ranks, &[model, setting, "platform.placement=cyclic"]);
            // Alone, 3 GB at 3 GB/s are as long as the computation; two ranks have half of the bandwidth each.
            assert_eq!(
                [time(2, all), time(4, all), time(4, region)],
                [2.0, 4.0, 3.0],
                "{model}, {platform:?}"
            );
            assert_eq!(time(4, "compute.bytes_per_flop=1.5"), 2.0, "the cores are the limit");
        }
    }
    // Three ranks on two cores have neither more cores nor more bandwidth than two.
    let shared = time(("p.toml", CLUSTER), 6, &["network.model=flow", all, "platform.placement=cyclic"]);
    assert!((shared - 6.0).abs() < 1e-9, "{shared}");
}

/// Traffic with a memory that limits nothing is said to have no effect.
#[test]
fn traffic_without_a_memory_bandwidth_is_a_warning() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &program(2));
    let warning = "which has no memory_bandwidth";
    let run = |platform: &str, setting: &str| {
        let platform = folder.write("platform.toml", platform);
        let mut replay = command();
        replay.arg("--trace").arg(&trace).arg("--platform").arg(platform);
        replay.args(["--set", setting, "--set=platform.placement=cyclic"]).assert().code(DONE)
    };
    let without = CLUSTER.replace("memory_bandwidth = '3GBps'\n", "");
    for (setting, key) in [
        (
            "compute.bytes_per_flop=1",
            "compute.bytes_per_flop has no effect on 2 ranks, the first on the host node-0",
        ),
        (
            "compute.region_bytes_per_flop={ sweep = 3 }",
            "compute.region_bytes_per_flop has no effect on 2 ranks",
        ),
    ] {
        run(&without, setting).stderr(contains(key).and(contains(warning)));
        run(CLUSTER, setting).stderr(contains(warning).not());
    }
    run(&without, "compute.bytes_per_flop=0").stderr(contains(warning).not());
    // Host b of the graph has none.
    run(GRAPH, "compute.bytes_per_flop=1").stderr(contains("no effect on 1 rank, the first on the host b"));
}

#[test]
fn impossible_memories_are_refused() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &program(2));
    let run = |platform: &str, setting: &str| {
        let platform = folder.write("platform.toml", platform);
        let mut replay = command();
        replay.arg("--trace").arg(&trace).arg("--platform").arg(platform).args(["--set", setting]).assert()
    };
    let none = CLUSTER.replace("3GBps", "0GBps");
    run(&none, "compute.bytes_per_flop=1")
        .code(FAILED)
        .stderr(contains("memory_bandwidth").and(contains("0")));
    run(CLUSTER, "compute.bytes_per_flop=-1").code(MISUSE).stderr(contains("expected a number from 0"));
    run(CLUSTER, "compute.region_bytes_per_flop={ sweep = -1 }")
        .code(MISUSE)
        .stderr(contains("\"sweep\": found -1, expected a number from 0"));
}
