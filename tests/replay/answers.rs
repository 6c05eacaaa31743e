//! Answers for planners: prices beside central differences, planted causes, and optima beside all possibilities.

#[path = "answers/optimize.rs"]
mod optimize;
#[path = "answers/prices.rs"]
mod prices;
#[path = "answers/why.rs"]
mod why;

use std::fmt::Write as _;

use pdes_core::Progress;
use pdes_replay::{Config, RunSpec, Simulation};

use crate::command_line::Folder;

/// Machines of eight hosts, whose times are long enough that picoseconds do not matter.
const CLUSTER: &str = "{ kind = 'cluster', hosts = 8, speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";
const TREE: &str = "{ kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 2 }], speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";
const TORUS: &str = "{ kind = 'torus', dims = [4, 2], speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";
const DRAGONFLY: &str = "{ kind = 'dragonfly', groups = 2, blue = 1, chassis = 2, black = 1, blades = 2, green = 1, nodes = 1, speed = '1Mf', bandwidth = '1MBps', latency = '10ms' }";

/// Returns a merged trace of eight ranks: the lines of each, separated by `;`, after its `init`.
fn program(lines: impl Fn(u32) -> String) -> String {
    let mut text = String::new();
    for rank in 0..8 {
        for line in format!("init;{}", lines(rank)).split(';').filter(|line| !line.is_empty()) {
            writeln!(text, "{rank} {line}").unwrap();
        }
    }
    text
}

/// Three iterations: unequal work, then an exchange with a neighbour, with one at a distance, and a sum of all ranks.
fn exchanges() -> String {
    program(|rank| {
        let exchange = |distance: u32, bytes: u32| {
            let (to, from) = ((rank + distance) % 8, (rank + 8 - distance) % 8);
            format!("irecv {from} 0 {bytes};isend {to} 0 {bytes};waitall;")
        };
        let work = format!(
            "location solve 0;compute {};location exchange 0;compute 200000;",
            1_000_000 + 100_000 * rank
        );
        (work + &exchange(1, 300_000) + &exchange(4, 100_000) + "allreduce 50000 0;").repeat(3)
    })
}

/// A pipeline: each rank passes on what it gets, after some work.
fn pipeline() -> String {
    program(|rank| {
        let receive = if rank > 0 { format!("recv {} 0 200000;", rank - 1) } else { String::new() };
        let send = if rank < 7 { format!("send {} 0 200000;", rank + 1) } else { String::new() };
        format!("{receive}compute {};{send}", 300_000 + 40_000 * rank).repeat(4)
    })
}

/// Each rank sends to each other one.
fn transpose() -> String {
    program(|rank| {
        format!("compute {};alltoall 80000 80000;compute 500000;bcast 300000 3;", 900_000 - 50_000 * rank)
    })
}

/// Writes the trace and returns the configuration of its run.
fn config(folder: &Folder, trace: &str, topology: &str, model: &str) -> Config {
    let trace = folder.write("trace.txt", trace);
    let text = format!(
        "[trace]\npath = {trace:?}\n[network]\npreset = 'raw'\nmodel = '{model}'\n[platform]\ntopology = {topology}\n"
    );
    Config::from_path(&folder.write("run.toml", &text)).unwrap()
}

/// Replays a run; returns its run time \[ps\].
fn time(spec: &RunSpec) -> u64 {
    let outcome = Simulation::load(spec).unwrap().replay(&Progress::new(spec.threads)).unwrap();
    outcome.simulated_time().as_picos()
}
