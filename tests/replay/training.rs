//! The commands for workloads of AI training.

use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Outcome, Simulation};

use crate::command_line::{DONE, Folder, MISUSE};
use crate::epochs::{TREE, spec};
use crate::trace_commands::trace;

/// A small model: eight layers, four heads.
const MODEL: &[&str] =
    &["transformer", "--layers=8", "--hidden=256", "--heads=4", "--feed-forward=1024", "--sequence=128"];

fn replay(trace: &Path, settings: &[&str]) -> Outcome {
    let settings = [&["network.model='contention-free'"], settings].concat();
    let simulation = Simulation::load(&spec(trace, TREE, &settings)).unwrap();
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

#[test]
fn layouts_are_described_and_written_as_schedules() {
    let folder = Folder::new();
    let (archive, schedule) = (folder.path("gpt.pdt"), folder.path("gpt.goal"));
    let gpt3: &[&str] =
        &["generate", "transformer", "--tensor=8", "--pipeline=16", "--data=8", "--batch=512", "--output"];
    trace(gpt3, &[&archive])
        .code(DONE)
        .stdout(predicates::str::contains("1024 ranks"))
        .stdout(predicates::str::contains("model:       174563733504 parameters"));
    let small = [&["generate"], MODEL, &["--tensor=2", "--data=2", "--batch=2"], &["--output"]].concat();
    trace(&small, &[&schedule]).code(1).stderr(predicates::str::contains("--speed"));
    let small =
        [&["generate"], MODEL, &["--tensor=2", "--data=2", "--batch=2", "--speed=100Tf"], &["--output"]]
            .concat();
    trace(&small, &[&schedule]).code(DONE).stdout(predicates::str::contains("4 ranks with"));
    trace(&small, &[&archive]).code(MISUSE).stderr(predicates::str::contains("--speed is for other formats"));
    trace(&["generate", "transformer", "--tensor=7", "--batch=1", "--output"], &[&archive])
        .code(MISUSE)
        .stderr(predicates::str::contains("tensor is 7, expected a divisor of kv_heads, which is 96"));
}

#[test_with::shared]
fn execution_traces_are_converted_and_replayed() {
    let folder = Folder::new();
    let sample = "samples/chakra/data/microbenchmarks/all_reduce/8npus_1MB/all_reduce.3.et";
    let sample = crate::shared::shared(sample);
    let mut ends = Vec::new();
    for algorithm in ["ring", "double-tree", "halving", "direct", "nccl"] {
        let (archive, text) = (folder.path("chakra.pdt"), folder.path("chakra.goal"));
        let convert = ["convert", "--algorithm", algorithm, "--output"];
        trace(&convert, &[&archive, &sample]).code(DONE).stdout(predicates::str::contains("8 ranks with"));
        trace(&convert, &[&text, &sample]).code(DONE);
        let [end, again] = [&archive, &text].map(|path| replay(path, &[]).simulated_time());
        assert_eq!(end, again, "{algorithm}");
        ends.push(end);
    }
    // On a network without contention direct messages of an eighth are the fastest; halving has fewer steps than a ring.
    let [ring, _, halving, direct, _] = ends[..] else { panic!("{ends:?}") };
    assert!(ends.iter().all(|end| direct <= *end) && halving < ring, "{ends:?}");
    let lu = crate::reference::repository().join("configs/traces/lu.S.8");
    trace(&["convert", "--algorithm=tree", "--output"], &[&folder.path("x.pdt"), &lu])
        .code(MISUSE)
        .stderr(predicates::str::contains("Chakra execution traces"));
}
