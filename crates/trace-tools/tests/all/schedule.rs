//! Schedules of programs: their text, and what LogGOPSim's model makes of all kinds of calls.

use goal::{LogGops, simulate, write_text};
use trace_tools::{ScheduleOfTraceError, Scheduled, from_text, schedule};

/// Makes the schedule of a program at 1 Gflop/s.
fn of(text: &str) -> Scheduled {
    let trace = from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    schedule(&trace, Some(1e9)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn text(scheduled: &Scheduled) -> String {
    let mut text = Vec::new();
    write_text(&scheduled.schedule, &mut text).expect("memory takes all");
    String::from_utf8(text).expect("text")
}

#[test]
fn nonblocking_operations_run_beside_what_follows() {
    let program = "0 init\n0 compute 700\n0 isend 1 5 8 6 req=1\n0 compute 300\n0 wait req=1\n0 finalize
                   1 init\n1 irecv 0 5 8 6 req=1\n1 compute 9\n1 waitall req=1\n1 recv -555 6 4\n2 init\n2 send 1 6 4";
    let found = text(&of(program));
    let lines: Vec<&str> = found.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "num_ranks 3",
        "rank 0 {",
        "l1: calc 700",
        "l2: send 8b to 1 tag 5",
        "l3: calc 300",
        "l4: calc 0",
        "l2 requires l1",
        "l3 irequires l2",
        "l4 requires l2",
        "l4 requires l3",
        "}",
    ];
    assert_eq!(lines[..expected.len()], expected, "{found}");
    assert!(found.contains("recv 4b from -1 tag 6"), "{found}");
}

/// Programs of two to four ranks with calls of all kinds.
const PROGRAMS: [&str; 5] = [
    "0 init\n0 sendRecv 8 1 8 1 6 6\n1 init\n1 sendRecv 8 0 8 0 6 6",
    "0 init\n0 ibcast 64 0 6 req=1\n0 compute 5\n0 wait req=1\n1 init\n1 ibcast 64 0 6 req=2\n1 barrier\n1 wait req=2\n0 barrier",
    "0 init\n0 send_init 1 3 8 6 req=1\n0 start req=1\n0 wait req=1\n0 start req=1\n0 wait req=1\n0 request_free req=1
     1 init\n1 recv_init 0 3 8 6 req=1\n1 start req=1\n1 wait req=1\n1 start req=1\n1 wait req=1",
    "0 init\n0 comm_split new=2 members=0,1\n0 allreduce 80000 0 6 comm=2\n0 send 1 3 8 6 comm=2
     1 init\n1 comm_split new=2 members=0,1\n1 allreduce 80000 0 6 comm=2\n1 recv 0 3 8 6 comm=2
     2 init\n2 comm_split comm=0",
    "0 init\n0 neighbor_alltoallv 6 6 to=1 scounts=8 from=- rcounts=-\n1 init\n1 neighbor_alltoallv 6 6 to=- scounts=- from=0 rcounts=8",
];

#[test]
fn all_kinds_of_calls_end_in_the_model_of_loggopsim() {
    for program in PROGRAMS {
        let scheduled = of(program);
        let outcome = simulate(&scheduled.schedule, &LogGops::default(), 1)
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        assert!(outcome.ends.iter().take(2).all(|end| *end > 0), "{program}: {:?}", outcome.ends);
    }
}

#[test]
fn what_a_schedule_cannot_have_is_counted_or_refused() {
    let left_out = of("0 init\n0 unmodelled MPI_Put\n0 unmodelled MPI_Put\n0 comm_dup new=1\n").left_out;
    let expected = [("MPI_Put", 2), ("creation of a communicator", 1)];
    assert!(left_out.iter().map(|(name, calls)| (name.as_str(), *calls)).eq(expected), "{left_out:?}");
    let trace = from_text("0 init\n0 compute 5\n").expect("a trace");
    assert!(matches!(schedule(&trace, None), Err(ScheduleOfTraceError::NoSpeed)));
}
