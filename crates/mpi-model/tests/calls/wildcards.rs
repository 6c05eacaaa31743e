//! Receives from any source.

use mpi_model::Awaited;

use crate::runs::{RunResult, ends, ends_with, recorded, reenact, run_program};

/// The messages are sent at 300, 100 and 200; each takes 1116 from the post of its receive. The receives are posted at
/// 0, 1216 and 2332, so that all messages are there by the second one: they are received in the order 2, 3, 1.
#[test]
fn messages_come_in_the_order_in_which_they_were_sent() {
    let senders = ["compute 300; send 0 1 100", "compute 100; ssend 0 1 100", "compute 200; ssend 0 1 100"];
    let ranks = ["recv -555 1 100; recv -555 1 100; recv -555 1 100", senders[0], senders[1], senders[2]];
    assert_eq!(ends(&ranks), [3448.0, 300.0, 1216.0, 2332.0]);
}

/// In the trace, rank 3 was first; recorded outcomes keep that: 200 + 1116, then rank 2 and 1.
#[test]
fn recorded_sources_are_kept_where_that_is_asked_for() {
    let master = "recv -555 1 100 source=3; recv -555 1 100 source=2; recv -555 1 100 source=1";
    let ranks =
        [master, "compute 300; send 0 1 100", "compute 100; ssend 0 1 100", "compute 200; ssend 0 1 100"];
    assert_eq!(ends_with(&ranks, &recorded()), (vec![3548.0, 300.0, 2432.0, 1316.0], 0));
    assert_eq!(ends_with(&ranks, &reenact()), (vec![3448.0, 300.0, 1216.0, 2332.0], 2));
}

/// The receive by name is posted after the one from any source, which takes the message of rank 1 sent at 100: rank 1's
/// second message, sent at 400, goes to the one by name. A tag that the first does not accept is left out.
#[test]
fn named_receives_queue_behind_those_from_any_source() {
    let receiver = "irecv -555 5 100 req=1; irecv 1 -444 100 req=2; waitall req=1,2";
    let ranks =
        [receiver, "compute 100; ssend 0 5 100; compute 300; ssend 0 6 100", "compute 500; send 0 5 100"];
    // 100 + 1116 = 1216, + 300 + 1116 = 2632.
    let answer = run_program(&ranks);
    assert!(matches!(answer, RunResult::Ends { .. }), "{answer:?}");
    assert_eq!(ends(&ranks), [2632.0, 2632.0, 500.0]);
}

/// Waiting for the second receive leads to the message that the first one waits for: neither may hold the other up.
#[test]
fn a_receive_does_not_wait_for_those_posted_before_it() {
    let ranks = [
        "irecv -555 5 100 req=1; irecv -555 7 100 req=2; wait req=2; send 2 1 100; wait req=1",
        "compute 100; send 0 7 100",
        "recv 0 1 100; send 0 5 100",
    ];
    // Rank 0 gets tag 7 at 1216, rank 2 gets its message at 2332 and sends, rank 0 ends at 3448.
    assert_eq!(ends(&ranks), [3448.0, 100.0, 2332.0]);
}

/// Rank 1 enters the barrier only once its message is received, which rank 0 decides while it is inside the
/// barrier, whether the message arrived before or after: 100 and 1116, then 1016 there and back.
#[test]
fn a_receive_from_any_source_is_decided_inside_a_collective() {
    let ranks = ["irecv -555 1 100 req=1; barrier; wait req=1", "compute 100; ssend 0 1 100; barrier"];
    assert_eq!(ends(&ranks), [1216.0 + 1016.0, 1216.0 + 2.0 * 1016.0]);
}

#[test]
fn a_probe_of_any_source_sees_the_first_message() {
    let ranks = [
        "probe -555 1; compute 10; recv -555 1 100; recv -555 1 100",
        "compute 300; send 0 1 100",
        "compute 200; ssend 0 1 100",
    ];
    assert_eq!(ends(&ranks), [200.0 + 10.0 + 1116.0 + 1116.0, 300.0, 1326.0]);
}

/// Masters that answer whoever they heard from, in the recorded order 2, 1, although rank 1 is first in time. Each sends to the
/// recorded sources: with other ones the first send would wait for a rank that waits itself.
const MASTERS: [&str; 8] = [
    "recv -555 1 100 source=2; ssend 2 1 100; recv -555 1 100 source=1; ssend 1 1 100",
    "irecv -555 1 100 req=1 source=2; wait req=1; ssend 2 1 100; irecv -555 -444 100 req=1 source=1; waitall req=1; ssend 1 1 100",
    "irecv -555 1 100 req=1 source=2; irecv -555 1 100 req=2 source=1; waitany req=1,2 done=1; ssend 2 1 100; \
     waitany req=2 done=2; ssend 1 1 100",
    "irecv -555 1 100 req=1 source=2; irecv -555 1 100 req=2 source=1; waitsome req=1,2 done=1; ssend 2 1 100; \
     waitsome req=2 done=2; ssend 1 1 100",
    "irecv -555 1 100 req=1 source=2; test req=1 done=-; test req=1 done=1; ssend 2 1 100; \
     irecv -555 1 100 req=1 source=1; testany req=1 done=1; ssend 1 1 100",
    "recv_init -555 1 100 req=1 source=2; recv_init -555 1 100 req=2 source=1; start req=1; wait req=1; ssend 2 1 100; \
     start req=2; wait req=2; ssend 1 1 100",
    "recv -555 1 100 source=2; issend 2 1 100 req=1; wait req=1; recv -555 1 100 source=1; issend 1 1 100 req=1; wait req=1",
    "probe -555 1 source=2; recv 2 1 100; ssend 2 1 100; probe -555 1 source=1; recv 1 1 100; ssend 1 1 100",
];

/// A message takes 1116 from the later of the two posts: that of rank 2 comes from 1000 to 2116, its answer until 3232, the two of
/// rank 1 until 4348 and 5464, unless its receive was posted before.
#[test]
fn answers_go_to_the_recorded_sources() {
    let workers = ["compute 100; ssend 0 1 100; recv 0 1 100", "compute 1000; ssend 0 1 100; recv 0 1 100"];
    for (number, master) in MASTERS.into_iter().enumerate() {
        let ranks = [master, workers[0], workers[1]];
        let found = ends_with(&ranks, &reenact());
        assert_eq!(found, ends_with(&ranks, &recorded()), "{master}");
        if number == 0 {
            assert_eq!(found, (vec![5464.0, 5464.0, 3232.0], 0));
        }
    }
}

/// The second receive takes the rest of a message whose begin tells its size.
#[test]
fn a_second_receive_takes_the_rest_of_the_same_source() {
    let master = "recv -555 1 4 source=2; recv 2 1 3000; recv -555 1 4 source=1; recv 1 1 500";
    let ranks = [master, "compute 100; send 0 1 4; send 0 1 500", "compute 1000; send 0 1 4; send 0 1 3000"];
    assert_eq!(ends_with(&ranks, &reenact()), ends_with(&ranks, &recorded()));
}

/// A program that names the same ranks whatever the order of its messages takes those that come first.
#[test]
fn sources_that_nothing_depends_on_are_those_of_the_first_messages() {
    let collects = "recv -555 1 100 source=2; recv -555 1 100 source=1; send 1 1 100; send 2 1 100";
    let forwards = "recv -555 1 100 source=2; send 1 1 100; recv -555 1 100 source=1; send 2 1 100";
    let workers = ["compute 100; send 0 1 100; recv 0 1 100", "compute 1000; send 0 1 100; recv 0 1 100"];
    for master in [collects, forwards] {
        assert_eq!(ends_with(&[master, workers[0], workers[1]], &reenact()).1, 2, "{master}");
    }
}

#[test]
fn a_deadlocked_receive_from_any_source_is_reported() {
    let ranks = ["recv -555 1 100; send 1 1 100", "recv 0 1 100; send 0 1 100"];
    let RunResult::Stalled(waiting) = run_program(&ranks) else { panic!("a deadlock") };
    assert_eq!(waiting[0].unwrap().awaited, Awaited::AnySender);
    assert_eq!(waiting[1].unwrap().awaited, Awaited::Sender(pdes_core::Rank::new(0)));
}
