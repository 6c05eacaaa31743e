//! Fast-forwarding of long loops nested in loops of few iterations.

use proptest::prelude::*;
use trace_mmap::{Item, Op};

use super::contention::TREE;
use super::programs::{Phase, message, part, phase};
use super::{EAGER, PROTOCOLS, check, check_resumed, config, contention, digest, fold, windows, write};
use crate::command_line::Folder;
use crate::packets;
use crate::windows::{PRESETS, TORUS};

const INNER: u64 = 500;

/// Bodies that recur soon.
const BODIES: [&[Phase]; 3] = [
    &[Phase::Compute([1e6, 3e6, 2e5]), Phase::Barrier],
    &[Phase::Compute([2e5, 1e5, 3e5]), Phase::Halo { bytes: 70_000 }, Phase::Beside { count: 300 }],
    &[Phase::Ring { bytes: 5000 }, Phase::Reduce { count: 100, root: 1 }, Phase::Barrier],
];

fn compute(flops: f64) -> Vec<Item> {
    vec![Item::Op(Op::Compute { flops })]
}

fn repeated(count: u64, body: Vec<Item>) -> Vec<Item> {
    vec![Item::Loop { count, body }]
}

/// Returns programs with an outer loop of `outer` iterations, each of some phases, two inner loops, and other phases between and after
/// them.
fn nested(ranks: u32, outer: u64, start: &[Phase], inner: (u64, &[Phase]), end: &[Phase]) -> Vec<Vec<Item>> {
    let of_rank = |me| {
        let [start, body, end] = [start, inner.1, end].map(|phases| part(phases, me, ranks));
        let inner = repeated(inner.0, body);
        let iteration = [start, inner.clone(), end.clone(), inner, end].concat();
        [vec![Item::Op(Op::Init)], repeated(outer, iteration), vec![Item::Op(Op::Finalize)]].concat()
    };
    (0..ranks).map(of_rank).collect()
}

/// Two inner loops of 500 iterations in an outer one, with communication around them.
fn solver(outer: u64, body: &[Phase]) -> Vec<Vec<Item>> {
    let start = [Phase::Compute([3e6, 1e5, 2e6]), Phase::Halo { bytes: 90_000 }];
    let end = [Phase::Reduce { count: 700, root: 0 }, Phase::Compute([1e5, 2e5, 3e5])];
    nested(5, outer, &start, (INNER, body), &end)
}

/// Returns nine tenths of the inner iterations.
fn most(outer: u64) -> u64 {
    2 * outer * INNER * 9 / 10
}

#[test]
fn inner_iterations_are_skipped_in_each_run() {
    for body in BODIES {
        let folder = Folder::new();
        for outer in [2, 3] {
            let programs = solver(outer, body);
            for trace in [write(&folder, &programs), fold(&folder, &programs)] {
                let found = check(&trace, &[]);
                assert!(found.skipped_iterations > most(outer), "{body:?}: {found:?}");
            }
        }
    }
}

#[test]
fn inner_iterations_are_skipped_with_contention() {
    for body in BODIES {
        let folder = Folder::new();
        let trace = write(&folder, &solver(3, body));
        let found = contention::check(&trace, &[TREE]);
        assert!(found.skipped_iterations > most(3), "{body:?}: {found:?}");
    }
    let folder = Folder::new();
    let trace = write(&folder, &solver(2, BODIES[1]));
    for found in windows::check(&trace, &[&[TORUS], PRESETS[0]].concat()) {
        assert!(found.skipped_iterations > most(2), "{found:?}");
    }
}

#[test]
fn inner_iterations_of_packets_are_skipped() {
    let folder = Folder::new();
    let platform = folder.write("tree.toml", packets::TREE);
    for body in BODIES {
        let trace = write(&folder, &solver(3, body));
        let whole = packets::replay(&trace, &platform, &[]);
        for threads in ["engine.threads=1", "engine.threads=3"] {
            let settings = ["engine.fast_forward=true", threads, "parallel.oversubscribe=true"];
            let forwarded = packets::replay(&trace, &platform, &settings);
            assert_eq!(digest(&forwarded), digest(&whole), "{body:?} {threads}");
            assert_eq!(forwarded.links, whole.links, "{body:?} {threads}");
            let found = forwarded.fast_forward.unwrap();
            assert!(found.skipped_iterations > most(3), "{body:?} {threads}: {found:?}");
        }
    }
}

#[test]
fn a_run_resumed_in_an_inner_loop_is_fast_forwarded() {
    let folder = Folder::new();
    let trace = write(&folder, &solver(3, BODIES[1]));
    for model in ["network.model=contention-free", "network.model=flow"] {
        let found = check_resumed(config(&trace, &[model]));
        assert!(found.skipped_iterations > most(3), "{model}: {found:?}");
    }
}

/// Amounts of computation that differ from run to run leave the iterations of a run equal; others leave none.
#[test]
fn inner_loops_with_other_amounts() {
    let outer = 3;
    let with_amounts = |amount: &dyn Fn(u64, u64) -> f64| {
        let of_rank = |me| {
            let iteration = |run, index| [compute(amount(run, index)), message(0, 1, me, 3, 5000)].concat();
            let run = |run| {
                let body = (0..INNER).flat_map(|index| iteration(run, index));
                [message(1, 0, me, 4, 300), body.collect()].concat()
            };
            (0..outer).flat_map(run).collect()
        };
        let folder = Folder::new();
        check(&fold(&folder, &[of_rank(0), of_rank(1)]), &[])
    };
    let found = with_amounts(&|run, _| 1e5 + run as f64);
    assert!(found.skipped_iterations > outer * INNER * 9 / 10, "{found:?}");
    let found = with_amounts(&|run, index| ((run * INNER + index) * 7919 % 10_007) as f64);
    assert_eq!(found.skipped_iterations, 0);
}

/// Ranks may have other loops for the same messages.
#[test]
fn ranks_with_other_structures() {
    let pair = |me| message(0, 1, me, 3, 5000);
    let outer = [compute(1e6), repeated(INNER, [compute(1e5), pair(0)].concat())].concat();
    for partner in [
        repeated(3 * INNER, pair(1)),
        repeated(3 * INNER / 2, [pair(1), compute(3e4), pair(1)].concat()),
        repeated(3, repeated(INNER / 2, [pair(1), pair(1), compute(1e4)].concat())),
    ] {
        let folder = Folder::new();
        let found = check(&write(&folder, &[repeated(3, outer.clone()), partner]), &[]);
        assert!(found.skipped_iterations > 3 * INNER * 8 / 10, "{found:?}");
    }
}

/// Outer iterations recur though ranks run ahead of each other in inner ones, where nothing does.
#[test]
fn outer_iterations_are_skipped_where_inner_ones_do_not_recur() {
    let folder = Folder::new();
    let programs = nested(5, 6, &[], (100, &[Phase::Pipeline { bytes: 3000 }]), &[Phase::Barrier]);
    let found = check(&write(&folder, &programs), &[EAGER]);
    assert!((3..6).contains(&found.skipped_iterations), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_of_any_body(
        ranks in 2_u32..6,
        outer in 1_u64..5,
        inner in 0_u64..30,
        start in prop::collection::vec(phase(), 0..3),
        body in prop::collection::vec(phase(), 1..4),
        end in prop::collection::vec(phase(), 0..3),
        protocol in prop::sample::select(&PROTOCOLS[..]),
    ) {
        let folder = Folder::new();
        let programs = nested(ranks, outer, &start, (16 * outer + inner, &body), &end);
        let trace = write(&folder, &programs);
        check(&trace, &[protocol]);
        contention::check(&trace, &[TREE, protocol]);
        check(&fold(&folder, &programs), &[protocol]);
    }
}
