//! All orders of a program: schedules, what only some of them show, and the range of times.

use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::online::Program;

const PLATFORM: &str =
    "topology = { kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1.25GBps', latency = '5us' }";

/// Explores a program; returns what it prints, and its report.
fn explore(program: &Program, ranks: u32, flags: &[&str], code: i32) -> (String, serde_json::Value) {
    let report = program.folder.path("report.json");
    let mut run = command();
    run.args(["explore", "-np", &ranks.to_string(), "--report"]).arg(&report).arg("--config");
    run.arg(program.folder.path("run.toml")).args(flags).arg("--").arg(&program.file);
    let done = run.timeout(std::time::Duration::from_secs(60)).assert().code(code);
    let printed = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    (printed, serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap())
}

const RECEIVE: &str = "int x; MPI_Status status;\n\
    #define RECEIVE(source) MPI_Recv(&x, 1, MPI_INT, source, MPI_ANY_TAG, MPI_COMM_WORLD, &status)\n\
    #define SEND(to) MPI_Send(&rank, 1, MPI_INT, to, 0, MPI_COMM_WORLD)\n";

#[test]
fn a_deadlock_in_one_order_has_its_schedule_which_shows_it_again() {
    let body =
        "if (rank == 0) { RECEIVE(MPI_ANY_SOURCE); RECEIVE(2); } else { if (rank == 2) sleep(1); SEND(0); }";
    let Some(program) = Program::with_body(&format!("{RECEIVE}{body}")) else { return };
    let (printed, report) = explore(&program, 3, &[], FAILED);
    assert!(printed.starts_with("2 schedule(s) run\n"), "{printed}");
    assert!(printed.contains("found in 1 schedule(s), not in the first one: deadlock"), "{printed}");
    assert!(
        printed.contains("rank 0 in MPI_Recv from rank 2, any tag, 4 B on communicator 0, called from /"),
        "{printed}"
    );
    assert_eq!((&report["complete"], &report["schedules"]), (&true.into(), &2.into()));
    let schedule = program.folder.write("schedule.json", &report["failures"][0]["schedule"].to_string());
    let (again, _) = explore(&program, 3, &["--schedule", &schedule.to_string_lossy()], FAILED);
    assert!(again.contains("found in 1 schedule(s), the first one, too: deadlock"), "{again}");
}

/// The schedules of programs of a few ranks, which are counted by hand.
#[test]
fn each_order_is_run_once() {
    let cases = [
        // Three messages in any order.
        ("if (rank == 0) for (int i = 1; i < size; i++) RECEIVE(MPI_ANY_SOURCE); else SEND(0);", 4, 6),
        // A message that another choice lets be sent: rank 0 may wait for rank 2, and rank 2 for either of its messages.
        (
            "if (rank == 0) { RECEIVE(MPI_ANY_SOURCE); RECEIVE(MPI_ANY_SOURCE); }\n\
             if (rank == 2) { RECEIVE(MPI_ANY_SOURCE); RECEIVE(MPI_ANY_SOURCE); SEND(0); }\n\
             if (rank == 1) { SEND(0); SEND(2); }\nif (rank == 3) SEND(2);",
            4,
            4,
        ),
        // Answers: each worker sends again only after the master has taken its first message.
        (
            "if (rank == 0) for (int i = 0; i < 4; i++) { RECEIVE(MPI_ANY_SOURCE); if (x < 10) SEND(status.MPI_SOURCE); }\n\
             else { SEND(0); RECEIVE(0); rank += 10; SEND(0); }",
            3,
            6,
        ),
        // Either request first.
        (
            "MPI_Request requests[2]; int y[2], done;\nif (rank == 0) {\n\
             for (int i = 0; i < 2; i++) MPI_Irecv(&y[i], 1, MPI_INT, i + 1, 0, MPI_COMM_WORLD, &requests[i]);\n\
             MPI_Waitany(2, requests, &done, MPI_STATUS_IGNORE); MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n\
             } else SEND(0);",
            3,
            2,
        ),
        // The first test of a loop succeeds, or fails.
        (
            "if (rank == 0) { MPI_Request request; int y, done = 0;\n\
             MPI_Irecv(&y, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);\n\
             while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE); } else SEND(0);",
            2,
            2,
        ),
    ];
    for (body, ranks, schedules) in cases {
        let Some(program) = Program::with_body(&format!("{RECEIVE}{body}")) else { return };
        let (printed, report) = explore(&program, ranks, &[], DONE);
        assert_eq!(report["schedules"], schedules, "{body}\n{printed}");
    }
}

#[test]
fn buffering_decides_whether_two_sends_meet() {
    let body = "SEND(1 - rank); RECEIVE(1 - rank);";
    let Some(program) = Program::with_body(&format!("{RECEIVE}{body}")) else { return };
    explore(&program, 2, &["--buffering", "infinite"], DONE);
    let (printed, _) = explore(&program, 2, &["--buffering", "zero"], FAILED);
    assert!(printed.contains("rank 1 in MPI_Send to rank 0, tag 0, 4 B"), "{printed}");
}

/// The master takes a long time for the message of rank 2, which rank 3 waits for.
#[test]
fn the_range_of_times_and_the_limit_of_runs_are_told() {
    let body = "if (rank == 0) { for (int i = 0; i < 2; i++) { RECEIVE(MPI_ANY_SOURCE); if (x == 1) sleep(1); else SEND(3); } }\n\
        if (rank == 1 || rank == 2) SEND(0);\nif (rank == 3) { RECEIVE(0); sleep(1); }";
    let Some(program) = Program::with_body(&format!("{RECEIVE}{body}")) else { return };
    let (printed, report) = explore(&program, 4, &["--max-schedules", "5"], DONE);
    let times = ["fastest", "slowest"].map(|run| report[run]["time_s"].as_f64().unwrap());
    assert!((times[0] - 1.0).abs() < 0.01 && (times[1] - 2.0).abs() < 0.01, "{printed}");
    let (_, report) = explore(&program, 4, &["--max-schedules", "1"], DONE);
    assert_eq!(report["complete"], false);
}

#[test]
fn receives_of_a_trace_take_other_messages() {
    let folder = Folder::new();
    let (platform, report) = (folder.write("platform.toml", PLATFORM), folder.path("report.json"));
    let trace = folder.write(
        "trace.txt",
        "0 init\n0 recv -555 1 8 source=1\n0 recv 2 1 8\n0 finalize\n1 init\n1 send 0 1 8\n1 finalize\n\
         2 init\n2 compute 1e9\n2 send 0 1 8\n2 finalize\n",
    );
    let mut run = command();
    run.arg("explore").arg(&trace).arg("--platform").arg(platform).arg("--report").arg(&report);
    run.assert()
        .code(FAILED)
        .stdout(contains("2 schedule(s) run"))
        .stdout(contains("rank 0 in action 2 at "));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(
        report["failures"][0]["schedule"],
        serde_json::json!([{ "rank": 0, "number": 0, "source": 2 }])
    );
}

/// A schedule of another program: ranks and choices that there are not, and ends that calls cannot have.
#[test]
fn schedules_that_do_not_fit_are_refused() {
    let body = "MPI_Request requests[2]; int y[2], done;\nif (rank == 0) { RECEIVE(MPI_ANY_SOURCE); RECEIVE(MPI_ANY_SOURCE);\n\
        for (int i = 0; i < 2; i++) MPI_Irecv(&y[i], 1, MPI_INT, i + 1, 0, MPI_COMM_WORLD, &requests[i]);\n\
        MPI_Waitany(2, requests, &done, MPI_STATUS_IGNORE); MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n\
        } else { SEND(0); SEND(0); }";
    let Some(program) = Program::with_body(&format!("{RECEIVE}{body}")) else { return };
    let cases = [
        (
            r#"{"rank":0,"number":0,"source":3}"#,
            "choice 0 of rank 0 names rank 3: the program has ranks 0 to 2",
        ),
        (
            r#"{"rank":9,"number":0,"source":1}"#,
            "choice 0 of rank 9 names rank 9: the program has ranks 0 to 2",
        ),
        (r#"{"rank":0,"number":50,"source":1}"#, "choice 50 of rank 0: the rank has made 3 choice(s)"),
        (
            r#"{"rank":0,"number":0,"requests":[1]}"#,
            "choice 0 of rank 0 ends otherwise than its call can: expected a source",
        ),
        (r#"{"rank":0,"number":2,"requests":[77]}"#, "expected at most 1 of the requests "),
    ];
    for (entry, message) in cases {
        let schedule = program.folder.write("schedule.json", &format!("[{entry}]"));
        let mut run = command();
        run.args(["explore", "-np", "3", "--config"]).arg(program.folder.path("run.toml"));
        run.arg("--schedule").arg(&schedule).arg("--").arg(&program.file);
        run.assert().code(MISUSE).stderr(contains("schedule.json: ")).stderr(contains(message));
    }
}

#[test]
fn what_cannot_be_explored_is_refused_by_name() {
    let cases: [(&[&str], &str); 5] = [
        (&["--set", "online.computation='measured'"], "set online.computation = \"none\" or \"fixed\""),
        (&["--set", "online.poll_tolerance=0.1"], "leave online.poll_tolerance out"),
        (&["--set", "online.fold_bytes='1MiB'"], "leave online.fold_bytes out"),
        (&["--checkpoint", "folder"], "a checkpoint"),
        (&["--timeline", "timeline.json"], "a timeline is of one run"),
    ];
    for (flags, message) in cases {
        let mut run = command();
        run.args(["explore", "-np", "2"]).args(flags).args(["--set", "network.preset='raw'", "--", "true"]);
        run.assert().code(MISUSE).stderr(contains(message));
    }
}
