//! Waits and tests of several requests.

use crate::runs::{ends, ends_with, recorded, reenact};

#[test]
fn a_wait_for_some_requests_leaves_the_others() {
    let ranks = [
        "irecv 1 1 100 req=1; irecv 2 1 100 req=2; irecv 3 1 100 req=3; waitall req=1,3; compute 7; wait req=2",
        "compute 100; send 0 1 100",
        "compute 5000; send 0 1 100",
        "compute 300; send 0 1 100",
    ];
    assert_eq!(ends(&ranks), [6116.0, 100.0, 5000.0, 300.0]);
    let ranks = [ranks[0].replace("; wait req=2", ""), ranks[1].into(), ranks[2].into(), ranks[3].into()];
    let ranks: Vec<&str> = ranks.iter().map(String::as_str).collect();
    // The end of the trace waits for what is left.
    assert_eq!(ends(&ranks), [6116.0, 100.0, 5000.0, 300.0]);
}

const SENDERS: [&str; 3] =
    ["compute 100; send 0 1 100", "compute 5000; send 0 1 100", "compute 300; send 0 1 100"];

fn with_senders(first: &str) -> [&str; 4] {
    [first, SENDERS[0], SENDERS[1], SENDERS[2]]
}

const POSTS: &str = "irecv 1 1 100 req=1; irecv 2 1 100 req=2; irecv 3 1 100 req=3;";

/// Messages arrive at 1216, 6116 and 1416. In the trace the second arrived first: the trace's remaining wait for request 1
/// is then for request 2.
#[test]
fn the_first_request_to_end_completes_a_waitany_and_the_names_are_exchanged() {
    let first = format!("{POSTS} waitany req=1,2,3 done=2; compute 10; wait req=1; wait req=3");
    assert_eq!(ends_with(&with_senders(&first), &reenact()).0[0], 6116.0);
    assert_eq!(ends_with(&with_senders(&first), &reenact()).1, 1);
    // 1216 and 10 of computation, then request 3 at 1416 and 1000 of computation beside the last.
    let first = format!("{POSTS} waitany req=1,2,3 done=2; compute 10; wait req=3; compute 1000; wait req=1");
    assert_eq!(ends_with(&with_senders(&first), &reenact()).0[0], 6116.0);
    assert_eq!(ends_with(&with_senders(&first), &recorded()), (vec![7126.0, 100.0, 5000.0, 300.0], 0));
}

/// Two of three: those of 1216 and 1416, whatever the trace says.
#[test]
fn a_waitsome_completes_as_many_as_in_the_trace() {
    let first = format!("{POSTS} waitsome req=1,2,3 done=1,2; compute 10000; wait req=3");
    assert_eq!(ends_with(&with_senders(&first), &reenact()), (vec![11416.0, 100.0, 5000.0, 300.0], 1));
    assert_eq!(ends_with(&with_senders(&first), &recorded()), (vec![16116.0, 100.0, 5000.0, 300.0], 0));
    let first = format!("{POSTS} waitsome req=1,2,3 done=3,1; compute 10000; wait req=2");
    assert_eq!(ends_with(&with_senders(&first), &reenact()), (vec![11416.0, 100.0, 5000.0, 300.0], 0));
}

/// Requests that are complete when the call is made are taken in the order of the list.
#[test]
fn of_requests_that_have_ended_the_first_one_listed_completes() {
    let first = format!(
        "{POSTS} compute 8000; waitany req=3,1,2 done=3; waitany req=1,2 done=1; waitany req=2 done=2"
    );
    assert_eq!(ends_with(&with_senders(&first), &reenact()), (vec![8000.0, 100.0, 5000.0, 300.0], 0));
}

/// Tests at 10, 1010 and 2010, each 10 after it began: the first fails, as in the trace; the second fails although it
/// succeeded in the trace, and waits until 1216.
#[test]
fn a_test_that_succeeded_in_the_trace_waits() {
    let first = "irecv 1 1 100 req=1; test req=1 done=-; compute 990; test req=1 done=1; compute 1";
    assert_eq!(ends_with(&[first, SENDERS[0]], &reenact()), (vec![1217.0, 100.0], 1));
    assert_eq!(ends_with(&[first, SENDERS[0]], &recorded()), (vec![1217.0, 100.0], 0));
}

/// The test at 2010 succeeds although it failed in the trace; the test after it and the wait have no effect, and cost no 10.
#[test]
fn a_test_that_failed_in_the_trace_may_succeed() {
    let first =
        "irecv 1 1 100 req=1; compute 2000; test req=1 done=-; test req=1 done=-; compute 1; wait req=1";
    assert_eq!(ends_with(&[first, SENDERS[0]], &reenact()), (vec![2011.0, 100.0], 1));
    assert_eq!(ends_with(&[first, SENDERS[0]], &recorded()), (vec![2021.0, 100.0], 0));
}

/// The first status is asked for at 10, the second at 1010, where it is too early by the trace and waits until 1216. The wait
/// completes the request, at no further cost.
#[test]
fn a_status_of_complete_in_the_trace_waits() {
    let first = "irecv 1 1 100 req=1; request_get_status req=1 done=no; compute 990; request_get_status req=1 done=yes; \
                 compute 1; wait req=1";
    assert_eq!(ends_with(&[first, SENDERS[0]], &reenact()), (vec![1217.0, 100.0], 1));
    assert_eq!(ends_with(&[first, SENDERS[0]], &recorded()), (vec![1217.0, 100.0], 0));
}

/// The receive of a status at 2010 is complete, other than in the trace, and stays so: it is the first that the waitany finds,
/// and the wait for it, 1000 later, is then for the other one, which arrives at 6116. By the trace, the waitany lasts until 6116.
#[test]
fn a_request_whose_status_was_complete_is_completed_later() {
    let first = "irecv 1 1 100 req=1; irecv 2 1 100 req=2; compute 2000; request_get_status req=1 done=no; \
                 waitany req=1,2 done=2; compute 1000; wait req=1";
    let ranks = [first, SENDERS[0], SENDERS[1]];
    assert_eq!(ends_with(&ranks, &reenact()), (vec![6116.0, 100.0, 5000.0], 2));
    assert_eq!(ends_with(&ranks, &recorded()), (vec![7116.0, 100.0, 5000.0], 0));
}

#[test]
fn tests_of_several_requests() {
    // At 10 nothing has ended; at 1320 the first has, at 1530 the third as well; all at 6540.
    let looks = "testall req=1,2,3 done=-; compute 1300; testany req=1,2,3 done=1; compute 200; testall req=2,3 done=-; \
                 testsome req=2,3 done=3; compute 5000; testall req=2 done=all";
    let first = format!("{POSTS} {looks}");
    // 10, 1310, 1320, 1520, 1530, 1540, 6540, 6550.
    assert_eq!(ends_with(&with_senders(&first), &reenact()), (vec![6550.0, 100.0, 5000.0, 300.0], 0));
}

/// A test of all that succeeded in the trace waits for all; one of any waits for the first, and names are exchanged.
#[test]
fn tests_of_several_requests_that_succeeded_in_the_trace_wait() {
    let first = format!("{POSTS} testall req=1,2,3 done=all");
    assert_eq!(ends_with(&with_senders(&first), &reenact()), (vec![6116.0, 100.0, 5000.0, 300.0], 1));
    let first = format!("{POSTS} testany req=1,2,3 done=2; compute 9000; wait req=1; wait req=3");
    assert_eq!(ends_with(&with_senders(&first), &reenact()).0, [10216.0, 100.0, 5000.0, 300.0]);
}

/// A slot that has been swapped stays swapped for later posts.
#[test]
fn exchanged_places_are_posted_again() {
    let again = "irecv 1 1 100 req=2; waitany req=1,2,3 done=1; wait req=2; wait req=3";
    let first = format!("{POSTS} waitany req=1,2,3 done=2; {again}");
    let ranks = [&first, "compute 100; send 0 1 100; compute 9000; send 0 1 100", SENDERS[1], SENDERS[2]];
    assert_eq!(ends(&ranks), [10216.0, 9100.0, 5000.0, 300.0]);
}
