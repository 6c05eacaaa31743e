//! An experiment with outcomes: the requests of a program complete in the order of a load imbalance, which is then removed.
//!
//! A master posts a receive for each of three workers, loops over waitany, and works on each result for W. The workers
//! compute a part of their own (20, 10 and 0 units), then the region `foo` (0, 20 and 40 units), and send. So the results
//! arrive in the order 1, 2, 3, at 20, 30 and 40 units. With `foo` balanced, 20 units for each, they arrive in the order 3, 2,
//! 1 at these times. The question is how long the master then waits; the answer is the trace of the balanced program. W is
//! an eighth of the time of the last result.

use mpi_model::Parameters;

use crate::runs::{RunResult, ends_with, program, recorded, reenact, run_with};

const UNIT: f64 = 30_000.0;
const OWN: [f64; 3] = [20.0, 10.0, 0.0];
const IMBALANCED: [f64; 3] = [0.0, 20.0, 40.0];
const BALANCED: [f64; 3] = [20.0; 3];
const LAST: f64 = 40.0 * UNIT + 1116.0;
const WORK: f64 = LAST / 8.0;

/// Returns the program with these amounts of `foo`, as a trace in which the requests completed in this order.
fn trace(region: [f64; 3], order: [u32; 3]) -> Vec<String> {
    let mut master = String::from("irecv 1 1 100 req=1; irecv 2 1 100 req=2; irecv 3 1 100 req=3;");
    let mut left = vec![1, 2, 3];
    for done in order {
        let list: Vec<String> = left.iter().map(u32::to_string).collect();
        master.push_str(&format!("waitany req={} done={done}; compute {WORK};", list.join(",")));
        left.retain(|&other| other != done);
    }
    let worker = |(own, region)| format!("compute {}; compute {}; send 0 1 100", own * UNIT, region * UNIT);
    std::iter::once(master).chain(OWN.into_iter().zip(region).map(worker)).collect()
}

/// Returns the waiting time of the master, and the number of outcomes that differ from the trace.
fn wait(trace: &[String], parameters: &Parameters) -> (f64, u64) {
    let programs: Vec<&str> = trace.iter().map(String::as_str).collect();
    let (ends, different) = ends_with(&programs, parameters);
    (ends[0] - 3.0 * WORK, different)
}

#[test]
fn reenacted_outcomes_predict_a_balanced_program_and_recorded_ones_do_not() {
    let by_imbalance = [1, 2, 3];
    // As recorded, both modes agree: two works fit between the results, so that the waits are 40 units less two works.
    let as_recorded = trace(IMBALANCED, by_imbalance);
    assert_eq!(wait(&as_recorded, &reenact()), (LAST - 2.0 * WORK, 0));
    assert_eq!(wait(&as_recorded, &recorded()), (LAST - 2.0 * WORK, 0));

    let truth = wait(&trace(BALANCED, [3, 2, 1]), &recorded()).0;
    assert_eq!(truth, LAST - 2.0 * WORK);
    let modified = trace(BALANCED, by_imbalance);
    // Names 1 and 3 are exchanged; then 2 is the same, and the third wait is for one request: no choice.
    assert_eq!(wait(&modified, &reenact()), (truth, 1));
    // The wait for rank 1 lasts until the last result: a third more than the truth.
    assert_eq!(wait(&modified, &recorded()), (truth * 4.0 / 3.0, 0));
}

/// A call counts as one outcome, even if several of its parts differ: the test that found a request complete in the recorded
/// run has to wait, and completes the other one.
#[test]
fn a_test_that_has_to_wait_and_gets_another_request_is_one_outcome() {
    let master = "irecv 1 1 100 req=1; irecv 2 1 100 req=2; testany req=1,2 done=1; wait req=2";
    let late = ["compute 4000; send 0 1 100", "compute 2000; send 0 1 100"];
    let answer = run_with(&program(&[master, late[0], late[1]]), &reenact());
    let RunResult::Ends { decided, different, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((decided, different), (1, 1));
    // In time, the same test is one outcome as recorded.
    let master = master.replace("testany", "compute 9000; testany");
    let answer = run_with(&program(&[&master, "send 0 1 100", late[1]]), &reenact());
    let RunResult::Ends { decided, different, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((decided, different), (1, 0));
}

/// The message of rank 1 is known before that of rank 2, which comes first: rank 2 sends after a receive from any source.
#[test]
fn a_test_that_has_to_wait_gets_the_first_request_not_the_first_known() {
    let ranks = [
        "irecv 1 1 100 req=1; irecv 2 1 100 req=2; testany req=1,2 done=2; compute 7000; wait req=1",
        "compute 9000; send 0 1 100",
        "recv -555 1 100; send 0 1 100",
        "compute 2000; send 2 1 100",
    ];
    let first = 2000.0 + 1116.0 + 1116.0;
    assert_eq!(ends_with(&ranks, &reenact()).0[0], first + 7000.0);
}
