//! Modes of sending, persistent requests, probes, cancellations.

use crate::runs::{ends, ends_with, recorded, reenact};

/// A synchronous send of 100 bytes waits for the receive at 5000 and the 1116 that the message takes; a buffered one of
/// 100,000 does not wait.
#[test]
fn a_synchronous_send_waits_and_a_buffered_one_does_not() {
    let receiver = "compute 5000; recv 0 1 100";
    assert_eq!(ends(&["ssend 1 1 100", receiver]), [6116.0, 6116.0]);
    assert_eq!(ends(&["send 1 1 100", receiver]), [0.0, 6116.0]);
    assert_eq!(ends(&["rsend 1 1 100", receiver]), [0.0, 6116.0]);
    let receiver = "compute 5000; recv 0 1 100000";
    assert_eq!(ends(&["bsend 1 1 100000", receiver]), [0.0, 106016.0]);
    assert_eq!(ends(&["send 1 1 100000", receiver]), [106016.0, 106016.0]);
}

#[test]
fn the_forms_that_do_not_block_wait_in_their_wait() {
    let receiver = "compute 5000; recv 0 1 100";
    assert_eq!(ends(&["issend 1 1 100 req=1; compute 100; wait req=1", receiver]), [6116.0, 6116.0]);
    assert_eq!(ends(&["irsend 1 1 100 req=1; compute 100; wait req=1", receiver]), [100.0, 6116.0]);
    let receiver = "compute 5000; recv 0 1 100000";
    assert_eq!(ends(&["ibsend 1 1 100000 req=1; compute 100; wait req=1", receiver]), [100.0, 106016.0]);
}

/// Each of three rounds takes 1000 of computation and 1116 of the message.
#[test]
fn persistent_requests_are_started_again_and_again() {
    let round = "start req=1; compute 1000; wait req=1;";
    let sender = format!("ssend_init 1 1 100 req=1; {round} {round} {round} request_free req=1");
    let receiver = "recv_init 0 1 100 req=4; start req=4; wait req=4; start req=4; wait req=4; \
                    startall req=4; waitall req=4; request_free req=4";
    // The send of a round begins after the computation of the one before or the arrival, whichever is later.
    assert_eq!(ends(&[&sender, receiver]), [3.0 * 1116.0, 3.0 * 1116.0]);
}

#[test]
fn a_wait_for_a_persistent_request_that_is_not_started_returns() {
    assert_eq!(ends(&["recv_init 0 1 100 req=4; wait req=4; compute 5; request_free req=4"]), [5.0]);
}

/// A probe ends when the message was sent; the receive after it takes as long as ever.
#[test]
fn a_probe_waits_for_the_message_and_leaves_it() {
    let sender = "compute 700; send 1 1 100";
    assert_eq!(ends(&[sender, "probe 0 1; compute 50; recv 0 1 100"]), [700.0, 700.0 + 50.0 + 1116.0]);
    assert_eq!(ends(&[sender, "compute 900; probe 0 1; recv 0 1 100"]), [700.0, 900.0 + 1116.0]);
}

/// Probes at 10 and 510 find nothing, the one at 1020 finds the message.
#[test]
fn a_probe_costs_time_and_finds_earlier_sends() {
    let sender = "compute 700; send 1 1 100";
    let looker =
        "iprobe 0 1 done=no; compute 490; iprobe 0 1 done=no; compute 500; iprobe 0 1 done=yes; recv 0 1 100";
    assert_eq!(ends_with(&[sender, looker], &reenact()), (vec![700.0, 1020.0 + 1116.0], 0));
    // In the trace the second probe found it: here it waits, as the program continues with the message.
    let looker = "iprobe 0 1 done=no; compute 490; iprobe 0 1 done=yes; recv 0 1 100";
    assert_eq!(ends_with(&[sender, looker], &reenact()), (vec![700.0, 700.0 + 1116.0], 1));
    assert_eq!(ends_with(&[sender, looker], &recorded()), (vec![700.0, 700.0 + 1116.0], 0));
}

#[test]
fn a_cancelled_receive_leaves_its_message_to_the_next() {
    let canceller =
        "irecv 0 1 100 req=1; compute 50; cancel req=1 done=yes; wait req=1; compute 50; recv 0 1 100";
    assert_eq!(ends(&["compute 700; send 1 1 100", canceller]), [700.0, 700.0 + 1116.0]);
}

/// The message of rank 2 comes first here, so that the receive from rank 0 takes the place of the cancelled one, and leaves its message.
#[test]
fn a_receive_may_be_cancelled_in_place_of_another() {
    let canceller = "irecv 0 1 100 req=1; irecv 2 1 100 req=2; waitany req=1,2 done=1; cancel req=2 done=yes; wait req=2; recv -555 1 100";
    let ranks = ["compute 5000; send 1 1 100", canceller, "compute 700; send 1 1 100"];
    assert_eq!(ends_with(&ranks, &reenact()), (vec![5000.0, 5000.0 + 1116.0, 700.0], 1));
}

#[test]
fn a_receive_that_was_not_cancelled_in_time_gets_its_message() {
    let canceller = "irecv 0 1 100 req=1; compute 5000; cancel req=1 done=no; wait req=1";
    assert_eq!(ends(&["compute 700; send 1 1 100", canceller]), [700.0, 5000.0]);
}

#[test]
fn requests_of_nobody_are_complete() {
    let ranks = ["irecv -666 1 100 req=1; isend -666 1 100 req=2; waitall req=1,2; compute 5; \
                  recv_init -666 0 8 req=3; start req=3; wait req=3"];
    assert_eq!(ends(&ranks), [5.0]);
}

/// Tags and communicators of a combined send and receive keep apart: rank 1 receives the second message first.
#[test]
fn combined_calls_have_tags() {
    let ranks = [
        "send 1 8 50; sendRecv 100 1 100 1 6 6 stag=7 rtag=9",
        "sendRecv 100 0 100 0 6 6 stag=9 rtag=7; recv 0 8 50",
    ];
    assert_eq!(ends(&ranks), [1116.0, 1116.0 + 1066.0]);
}
