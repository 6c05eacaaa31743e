//! Fast-forwarding with epochs: results are those of the complete replay, on any number of threads and processes.

use std::path::Path;

use pdes_core::{Cluster, Progress};
use pdes_replay::{FastForward, Outcome, Simulation};

use super::contention::{config, expect_same};
use crate::command_line::{DONE, Folder, command};

/// Two switches with four hosts each. Latencies are 2 us, so that epochs are as long, and a megabyte takes 1 ms.
const PLATFORM: &str = "platform.topology={ kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 2, parents = 1 }], \
                        speed = '1Gf', bandwidth = '1GBps', latency = '2us' }";

fn replay(trace: &Path, settings: &[&str], threads: usize, processes: usize) -> Outcome {
    let mut config =
        config(trace, &[&[PLATFORM, "network.preset='raw'", "network.epoch_s='2us'"], settings].concat());
    config.set(&format!("engine.threads={threads}")).unwrap();
    config.set("parallel.oversubscribe=true").unwrap();
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
    let mut outcomes =
        Cluster::in_memory(processes, |mut cluster| simulation.run(&mut cluster, &Progress::new(threads)));
    outcomes.remove(0).expect("no process panics").unwrap().expect("it is the first")
}

/// Replays iterations with and without fast-forwarding, and expects one result; returns what was skipped. Two ranks share each host, so
/// that none runs ahead of its computations.
fn check(iteration: &str) -> FastForward {
    let folder = Folder::new();
    let of_rank = |rank: u32| {
        let text = format!("R init\nR compute {}000\n{}R finalize\n", rank / 2, iteration.repeat(300));
        text.replace("NEXT", &((rank + 2) % 16).to_string())
            .replace("LAST", &((rank + 14) % 16).to_string())
            .replace('R', &rank.to_string())
    };
    let text = folder.write("loop.txt", &(0..16).map(of_rank).collect::<String>());
    let trace = folder.path("loop.pdt");
    command().args(["trace", "convert"]).arg(text).arg("-o").arg(&trace).assert().code(DONE);
    let expected = replay(&trace, &[], 1, 1);
    let found = [(1, 1), (3, 1), (1, 2), (2, 2)].map(|(threads, processes)| {
        let outcome = replay(&trace, &["engine.fast_forward=true"], threads, processes);
        expect_same(&outcome, &expected, &[iteration]);
        outcome.fast_forward.expect("it was asked for")
    });
    assert!(found.iter().all(|other| *other == found[0]), "{found:?}: whatever the threads and processes");
    found[0]
}

/// A state recurs after a multiple of the epoch. What takes another time is replayed.
#[test]
fn iterations_as_long_as_epochs_are_fast_forwarded() {
    let found = check("R compute 100000\n");
    assert!(found.skipped_iterations > 200, "{found:?}");
    for iteration in [
        "R isend NEXT 0 100000\nR recv LAST 0 100000\nR wait R NEXT 0\nR compute 100000\n",
        "R compute 100000\nR barrier\n",
    ] {
        assert_eq!(check(iteration).skipped_iterations, 0);
    }
}
