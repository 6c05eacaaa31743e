//! Collective operations that serve ranks in the order of arrival, by one-sided puts, and by all algorithms in turn.
//!
//! A poll costs 10 ns. An announcement takes 1017, a header 5112, 100 bytes take 1116.

use mpi_model::collective::{Operation, Selection, Selector};
use mpi_model::{ActionKind, Parameters, ReplayErrorKind};
use pdes_core::{Rank, SimDuration};

use crate::runs::{RunResult, ends_with, program, reenact, run_with};

fn with(operation: Operation, algorithm: &str) -> Parameters {
    let mut collectives = Selection::new(Selector::Default);
    collectives.choose(operation, algorithm).unwrap();
    Parameters { collectives, ..reenact() }
}

fn ends(ranks: &[&str], operation: Operation, algorithm: &str) -> Vec<f64> {
    ends_with(ranks, &with(operation, algorithm)).0
}

const BCAST: &str = "bcast 100 0 6";

/// The poll at 10 finds rank 1, whose announcement arrives at 1027; then the header arrives at 6139, and the vector.
#[test]
fn a_rank_that_is_there_is_served_at_once() {
    let algorithm = "arrival_pattern_aware_wait";
    assert_eq!(ends(&[BCAST, BCAST], Operation::Bcast, algorithm), [1027.0, 7255.0]);
}

/// Three sweeps end at 10, 20 and 30, then those of the next round.
#[test]
fn rank_0_looks_until_somebody_is_there() {
    let algorithm = "arrival_pattern_aware_wait";
    for (enters, found) in [(25, 30.0), (30, 30.0), (35, 40.0), (1_001, 1_010.0)] {
        let late = format!("compute {enters}; {BCAST}");
        let expected = [found + 1017.0, found + 7245.0];
        assert_eq!(ends(&[BCAST, &late], Operation::Bcast, algorithm), expected, "{enters}");
    }
}

/// Nobody is there at 10, so that the first rank gets everything, and takes it when it arrives. Its announcement is dropped, also
/// in the next broadcast, for which it is there at 6263.
#[test]
fn a_rank_that_is_not_there_may_be_served_before_it_comes() {
    let late = format!("compute 35; {BCAST}");
    let algorithm = "arrival_pattern_aware";
    assert_eq!(ends(&[BCAST, &late], Operation::Bcast, algorithm), [10.0, 35.0 + 5112.0 + 1116.0]);
    let twice = [format!("{BCAST}; compute 6260; {BCAST}"), format!("{late}; {BCAST}")];
    // The poll at 6280 finds the second announcement: 6280 + 1017 = 7297, and 5112 and 1116 after that.
    let expected = [7297.0, 13525.0];
    assert_eq!(ends(&[&twice[0], &twice[1]], Operation::Bcast, algorithm), expected);
}

/// The header goes down the chain 1, 2, and the vector behind it.
#[test]
fn those_that_are_there_stand_in_one_chain() {
    // Polls at 10 and 20, announcements by 1037 and 2054. Rank 1 has the header at 7166 and the vector at 8282, when it
    // sends both on: 13394, 14510.
    let expected = [2054.0, 8282.0, 14510.0];
    assert_eq!(ends(&[BCAST; 3], Operation::Bcast, "arrival_pattern_aware"), expected);
}

/// Both get a header at once, 50 bytes each, and exchange them.
#[test]
fn those_that_are_there_put_the_vector_together() {
    // Rank 0 finds rank 1 at 10, and at 1037 rank 2, greeted by 2054. A header of 512 bytes is there at 3582, the part at
    // 4648, the other one at 5714.
    let expected = [2054.0, 5714.0, 5714.0];
    assert_eq!(ends(&[BCAST; 3], Operation::Bcast, "arrival_scatter"), expected);
}

/// Rank 0 sleeps for 100 us after its poll, and greets by 101027. Rank 1 sends at 106139.
#[test]
fn a_reduction_goes_up_the_chain() {
    let reduce = "reduce 100 0 0 6";
    let expected = [107_255.0, 106_139.0];
    assert_eq!(ends(&[reduce; 2], Operation::Reduce, "arrival_pattern_aware"), expected);
}

/// An allgather until 1024, six barriers of which rank 0 leaves each 1016 after rank 1 has entered it and rank 1 1016
/// later, and in the third one a wait for the block, which rank 1 put at 5088.
#[test]
fn data_are_put_while_nobody_waits() {
    let alltoall = "alltoall 100 100 6 6";
    assert_eq!(ends(&[alltoall; 2], Operation::Alltoall, "pair_rma"), [12_200.0, 13_216.0]);
    // The block of 50,000 from rank 1 is there at 5088 + 51,016; then come two barriers after the release at 57,120.
    let long = "alltoall 50000 50000 6 6";
    assert_eq!(ends(&[long; 2], Operation::Alltoall, "pair_rma"), [61_184.0, 62_200.0]);
}

/// As [`a_rank_that_is_there_is_served_at_once`], beside a computation.
#[test]
fn an_operation_beside_the_program_looks_at_its_own_time() {
    let ibcast = "ibcast 100 0 6 req=1; compute 5000; wait req=1";
    assert_eq!(ends(&[ibcast; 2], Operation::Bcast, "arrival_pattern_aware_wait"), [5000.0, 7255.0]);
}

#[test]
fn a_poll_that_finds_another_operation_names_both() {
    let parameters = with(Operation::Bcast, "arrival_pattern_aware_wait");
    let answer = run_with(&program(&[BCAST, "compute 35; barrier"]), &parameters);
    let (expected, found) = (ActionKind::Bcast, ActionKind::Barrier);
    let kind = ReplayErrorKind::CollectiveMismatch { peer: Rank::new(1), expected, found };
    assert_eq!(answer, RunResult::Failed(0, 1, kind));
}

#[test]
fn a_poll_without_end_names_the_peer() {
    let iprobe = SimDuration::from_picos(1_000_000_000_000);
    let parameters =
        Parameters { iprobe, test_grows: true, ..with(Operation::Reduce, "arrival_pattern_aware") };
    let reduce = "reduce 100 0 0 6";
    let answer = run_with(&program(&[reduce, reduce, "compute 5"]), &parameters);
    let kind = ReplayErrorKind::PeerNeverArrived { peer: Rank::new(2), operation: ActionKind::Reduce };
    assert_eq!(answer, RunResult::Failed(0, 1, kind));
}

/// All algorithms, with ranks that enter at different times: one answer on all engines, and no deadlock.
#[test]
fn they_end_whatever_the_order_of_arrival() {
    let cases: [(Operation, &[&str], [&str; 2]); 4] = [
        (
            Operation::Bcast,
            &["arrival_pattern_aware", "arrival_pattern_aware_wait", "arrival_scatter"],
            ["bcast 100 2 6", "bcast 20000 0 6"],
        ),
        (Operation::Reduce, &["arrival_pattern_aware"], ["reduce 100 7 1 6", "reduce 20000 0 0 6"]),
        (Operation::Alltoall, &["pair_rma"], ["alltoall 100 100 6 6", "alltoall 70000 70000 6 6"]),
        (Operation::Allgather, &["automatic"], ["allgather 100 100 6 6", "allgather 7 7 6 6"]),
    ];
    for (operation, algorithms, [first, second]) in cases {
        for algorithm in algorithms {
            for growth in [false, true] {
                let parameters = Parameters { test_grows: growth, ..with(operation, algorithm) };
                let ranks: Vec<String> = (0..5_u32)
                    .map(|rank| {
                        format!("compute {}; {first}; compute {}; {second}", rank * 37 % 5 * 900, rank * 11)
                    })
                    .collect();
                let ranks: Vec<&str> = ranks.iter().map(String::as_str).collect();
                ends_with(&ranks, &parameters);
            }
        }
    }
}

/// Every operation by every algorithm, and the operations that it uses by every algorithm in turn.
#[test]
fn the_selector_that_tries_everything_ends() {
    let parameters = Parameters { collectives: Selection::new(Selector::Automatic), ..reenact() };
    let program = "barrier; bcast 100 0 6; alltoallv 30 10 10 10 30 10 10 10; gather 10 10 0 6 6";
    let (ends, _) = ends_with(&[program; 3], &parameters);
    assert!(ends.iter().all(|&end| end > 0.0));
}
