//! Communicators, and collective operations on them, blocking and not.

use mpi_model::{ActionKind, Awaited, Parameters, ReplayErrorKind};

use crate::runs::{RunResult, ends, ends_with, reenact, run_program};

const HALVES: [&str; 2] = ["comm_split new=1 members=0,2;", "comm_split new=2 members=3,1;"];

fn halves(programs: [&str; 4]) -> Vec<String> {
    let split = |(rank, program): (usize, &str)| format!("{} {program}", HALVES[rank % 2]);
    programs.into_iter().enumerate().map(split).collect()
}

fn run(programs: &[String]) -> Vec<f64> {
    ends(&programs.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A broadcast of 100 bytes in each half, from the member with number 0: rank 0, which starts at 500, and rank 3 at 0.
#[test]
fn roots_count_by_the_communicator_and_halves_do_not_wait_for_each_other() {
    let bcast = "bcast 100 0 6 comm=1";
    let other = "bcast 100 0 6 comm=2";
    let first = format!("compute 500; {bcast}");
    let programs = halves([&first, other, bcast, other]);
    assert_eq!(run(&programs), [500.0, 1116.0, 1616.0, 0.0]);
}

/// Messages of one tag do not meet receives on another communicator.
#[test]
fn communicators_keep_messages_apart() {
    let ranks = [
        "comm_dup new=7; send 1 1 50 comm=7; send 1 1 100",
        "comm_dup new=7; recv 0 1 100; recv 0 1 50 comm=7; comm_free comm=7",
    ];
    assert_eq!(ends(&ranks), [0.0, 1116.0 + 1066.0]);
}

/// Splitting costs an allgather of 8 bytes on the parent: both messages at once, 1024.
#[test]
fn making_a_communicator_costs_what_its_ranks_tell_each_other() {
    let ranks = ["comm_dup new=7", "compute 100; comm_dup new=7"];
    let free = reenact();
    assert_eq!(ends_with(&ranks, &free).0, [0.0, 100.0]);
    let costly = Parameters { communicators_cost: true, ..free };
    assert_eq!(ends_with(&ranks, &costly).0, [1124.0, 1124.0]);
    // The members of a group alone: rank 2 has no part in it.
    let group = "comm_create_group new=7 members=0-1";
    let late = format!("compute 100; {group}");
    let known = "comm_define new=7 members=0-1";
    assert_eq!(ends_with(&[known, &format!("compute 100; {known}")], &costly).0, [0.0, 100.0]);
    assert_eq!(ends_with(&[group, &late, "compute 5"], &costly).0, [1124.0, 1124.0, 5.0]);
}

/// The broadcast progresses while the root computes: rank 1 has it at 1116.
#[test]
fn an_operation_that_does_not_block_goes_on_beside_the_program() {
    let ranks =
        ["ibcast 100 0 6 req=1; compute 5000; wait req=1", "ibcast 100 0 6 req=1; compute 200; wait req=1"];
    assert_eq!(ends(&ranks), [5000.0, 1116.0]);
    // Rank 2 of a binomial tree forwards to rank 3 although it computes until 5000: 1116 + 1116.
    let ibcast = "ibcast 100 0 6 req=1;";
    let ranks = [
        format!("{ibcast} wait req=1"),
        format!("{ibcast} wait req=1"),
        format!("{ibcast} compute 5000; wait req=1"),
        format!("{ibcast} wait req=1"),
    ];
    assert_eq!(run(&ranks), [0.0, 1116.0, 5000.0, 2232.0]);
}

/// Two operations in progress at once, completed in the other order.
#[test]
fn operations_under_way_at_once_are_told_apart() {
    let both = "ibarrier req=1; iallreduce 100 0 6 req=2; compute 10; waitany req=2,1 done=1; wait req=2";
    let ranks = [both, both, both];
    let together = ends(&ranks);
    let apart = ends(&["ibarrier req=1; compute 10; wait req=1"; 3]);
    assert!(together.iter().zip(&apart).all(|(together, apart)| together > apart), "{together:?} {apart:?}");
}

/// A reduction computes beside the program; the wait ends when it has.
#[test]
fn reductions_that_do_not_block_compute() {
    // Rank 0 has both vectors at 1116, and computes 700.
    let ranks = ["ireduce 100 700 0 6 req=1; wait req=1", "ireduce 100 700 0 6 req=1; wait req=1"];
    assert_eq!(ends(&ranks), [1816.0, 700.0]);
}

#[test]
fn neighbours_exchange_with_each_other_only() {
    let line = ["to=1 from=1", "to=0,2 from=0,2", "to=1 from=1"];
    let ranks: Vec<String> =
        line.iter().map(|lists| format!("neighbor_alltoall 100 100 6 6 {lists}")).collect();
    assert_eq!(run(&ranks), [1116.0; 3]);
    let late: Vec<String> =
        ranks.iter().enumerate().map(|(rank, line)| format!("compute {}; {line}", rank * 1000)).collect();
    assert_eq!(run(&late), [2116.0, 3116.0, 3116.0]);
}

#[test]
fn different_operations_on_a_communicator_are_named() {
    let programs = halves(["allreduce 5 0 6 comm=1", "barrier comm=2", "barrier comm=1", "barrier comm=2"]);
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    let RunResult::Failed(rank, action, kind) = run_program(&programs) else {
        panic!("ranks 0 and 2 call different operations")
    };
    assert_eq!((rank, action), (0, 2));
    let (expected, found) = (ActionKind::Allreduce, ActionKind::Barrier);
    assert_eq!(kind, ReplayErrorKind::CollectiveMismatch { peer: pdes_core::Rank::new(2), expected, found });
}

#[test]
fn a_rank_that_waits_for_an_operation_says_for_whom() {
    let ranks = [
        "ibarrier req=1; compute 5; wait req=1",
        "recv 0 1 100; ibarrier req=1; wait req=1; send 0 1 1",
        "ibarrier req=1",
    ];
    let ranks = [
        ranks[0].replace("wait req=1", "wait req=1; send 1 1 100"),
        ranks[1].replace("send 0 1 1", ""),
        ranks[2].into(),
    ];
    let RunResult::Stalled(waiting) = run_program(&ranks.iter().map(String::as_str).collect::<Vec<_>>())
    else {
        panic!("a deadlock")
    };
    let first = waiting[0].unwrap();
    assert_eq!(
        (first.operation, first.awaited),
        (Some(ActionKind::Barrier), Awaited::Sender(pdes_core::Rank::new(1)))
    );
    assert_eq!(waiting[1].unwrap().awaited, Awaited::Sender(pdes_core::Rank::new(0)));
}
