//! Collective operations in closed form.
//!
//! A message of n bytes takes t(n) = 1016 + n.

use mpi_model::collective::{Bounds, MeasuredTimes, Operation};
use mpi_model::{ActionKind, Parameters, ReplayErrorKind, Selection, Selector};
use pdes_core::SimDuration;

use crate::runs::{RunResult, ends_with, program, reenact, run_with};

fn analytic() -> Parameters {
    Parameters { collectives: Selection::new(Selector::Analytic), ..reenact() }
}

/// Returns the ends of `ranks` ranks, of which rank `r` first computes for `1000 r`.
fn ends(ranks: u32, operation: &str) -> Vec<f64> {
    let programs: Vec<String> =
        (0..ranks).map(|rank| format!("compute {}; {operation}", rank * 1000)).collect();
    ends_with(&programs.iter().map(String::as_str).collect::<Vec<_>>(), &analytic()).0
}

/// All wait for the last one, at 4000; then three rounds.
#[test]
fn where_all_wait_for_all_the_cost_comes_behind_the_last_entry() {
    assert_eq!(ends(5, "barrier"), [4000.0 + 3.0 * 1016.0; 5]);
    // Two rounds among four ranks, and two messages more for the fifth.
    assert_eq!(ends(5, "allreduce 100 0 6"), [4000.0 + 4.0 * 1116.0; 5]);
    assert_eq!(ends(4, "allreduce 100 0 6"), [3000.0 + 2.0 * 1116.0; 4]);
    // Twice halves and quarters of 8000 bytes.
    assert_eq!(ends(4, "allreduce 8000 0 6"), [3000.0 + 2.0 * (2.0 * 1016.0 + 6000.0); 4]);
    // Halves and quarters of 4 blocks.
    assert_eq!(ends(4, "reducescatter 100 100 100 100 0 6"), [3000.0 + 2.0 * 1016.0 + 300.0; 4]);
    // Blocks of 1, 2 and 1 ranks.
    assert_eq!(ends(5, "allgather 100 100 6 6"), [4000.0 + 3.0 * 1016.0 + 400.0; 5]);
    // Three rounds of 5/2 blocks.
    assert_eq!(ends(5, "alltoall 100 100 6 6"), [4000.0 + 3.0 * (1016.0 + 250.0); 5]);
    // A message to each of four.
    assert_eq!(ends(5, "alltoall 1000 1000 6 6"), [4000.0 + 4.0 * 2016.0; 5]);
}

/// Rank 1 is the root, at 1000. Its children are 3 and 2, in relative numbers 2 and 1; 0, relative 3, is the child of 3.
/// Nobody waits for a leaf.
#[test]
fn leaves_of_a_broadcast_do_not_wait_for_each_other() {
    assert_eq!(ends(4, "bcast 100 1 6"), [3000.0 + 1116.0, 1000.0, 2116.0, 3000.0]);
}

/// A root that sends 100,000 bytes waits for each child in turn: those with the largest subtrees first.
#[test]
fn a_root_sends_large_vectors_one_after_the_other() {
    let each = 101_016.0;
    assert_eq!(ends(4, "bcast 100000 0 6"), [2.0 * each, 2.0 * each, 2.0 * each, 3000.0f64.max(2.0 * each)]);
}

/// The other way round: rank 3 waits for 0, and the root for 2 and 3.
#[test]
fn the_root_of_a_reduction_waits_for_all() {
    assert_eq!(ends(4, "reduce 100 0 1 6"), [0.0, 4116.0, 2000.0, 3000.0]);
    // Rank 3 sends two blocks.
    assert_eq!(ends(4, "gather 100 100 1 6 6"), [0.0, 4216.0, 2000.0, 3000.0]);
}

/// Rank 3 waits for rank 2, and for rank 1, who has waited for rank 0.
#[test]
fn a_prefix_waits_for_lower_ranks_only() {
    let programs = ["compute 9000; scan 100 0 6", "scan 100 0 6", "scan 100 0 6", "scan 100 0 6"];
    assert_eq!(ends_with(&programs, &analytic()).0, [9000.0, 10116.0, 10116.0, 11232.0]);
}

#[test]
fn different_operations_in_closed_form_are_named() {
    let text = program(&["barrier", "bcast 10 1 6"]);
    let RunResult::Failed(_, _, kind) = run_with(&text, &analytic()) else { panic!("they differ") };
    let (expected, found) = (ActionKind::Barrier, ActionKind::Bcast);
    let peer = pdes_core::Rank::new(1);
    assert_eq!(kind, ReplayErrorKind::CollectiveMismatch { peer, expected, found });
}

/// Returns parameters with allreduces measured on four ranks: 100 to 300 bytes take 5000 to 7000.
fn measured() -> Parameters {
    let mut times = MeasuredTimes::default();
    for (bytes, ticks) in [(100, 5000), (300, 7000)] {
        times.add(4, bytes, SimDuration::from_picos(1000 * ticks));
    }
    let mut collectives = Selection::new(Selector::Default);
    collectives.measure(Operation::Allreduce, times);
    collectives
        .add_row(Operation::Allreduce, Bounds { ranks_below: None, bytes_below: Some(9) }, "analytic")
        .unwrap();
    Parameters { collectives, ..reenact() }
}

#[test]
fn measured_times_begin_when_the_last_rank_enters() {
    let ends = |operation: &str| {
        let programs: Vec<String> =
            (0..4).map(|rank| format!("compute {}; {operation}", rank * 1000)).collect();
        ends_with(&programs.iter().map(String::as_str).collect::<Vec<_>>(), &measured()).0
    };
    assert_eq!(ends("allreduce 100 0 6"), [3000.0 + 5000.0; 4]);
    assert_eq!(ends("allreduce 150 0 6"), [3000.0 + 5500.0; 4]);
    // A row of the user comes first.
    assert_eq!(ends("allreduce 8 0 6"), [3000.0 + 2.0 * 1024.0; 4]);
}

#[test]
fn what_was_not_measured_is_refused() {
    let refused = |ranks: usize, bytes: u64| {
        let text = program(&vec![format!("allreduce {bytes} 0 6").as_str(); ranks]);
        let RunResult::Failed(_, _, kind) = run_with(&text, &measured()) else {
            panic!("it was not measured")
        };
        kind.to_string()
    };
    assert!(
        refused(4, 301).starts_with("allreduce of 301 B on 4 ranks was not measured, but from 100 to 300 B")
    );
    assert!(refused(3, 200).starts_with("allreduce of 3 ranks was not measured, but on 4"));
}
