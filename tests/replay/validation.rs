//! Validation: comparison with measured times that are known by hand.

use predicates::str::contains;
use serde_json::Value;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

/// Two hosts of 1 Gf, 1 us and 1 ns per byte from each other's switch: a message of 984 bytes and its envelope of 16 takes 3 us.
const MACHINE: &str = "[platform]\ntopology = { kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n\
                       [network]\npreset = 'raw'\n";

/// Computes for 1 ms, sends, and receives; times in ns.
fn trace(computed: u64, received: u64) -> String {
    format!(
        "0 init\n1 init\n0 location solver.c 7\n1 location solver.c 8\n0 compute 1e6 time={computed}\n0 send 1 0 984 time=0\n\
         1 recv 0 0 984 time={received}\n0 finalize\n1 finalize\n"
    )
}

/// Compares, and returns the JSON.
fn validate(
    folder: &Folder,
    trace: &str,
    flags: &[&str],
    code: i32,
) -> (assert_cmd::assert::Assert, Option<Value>) {
    let (trace, machine) = (folder.write("trace.txt", trace), folder.write("machine.toml", MACHINE));
    let report = folder.path("validation.json");
    let mut validate = command();
    validate.arg("validate").arg(trace).arg("--config").arg(machine).arg("--report").arg(&report).args(flags);
    let assert = validate.assert().code(code);
    let json = std::fs::read_to_string(&report).ok().map(|text| serde_json::from_str(&text).unwrap());
    (assert, json)
}

/// Microseconds of a row: measured, error of computation, error of communication.
fn row(value: &Value) -> [i64; 3] {
    ["measured_s", "computation_error_s", "communication_error_s"]
        .map(|key| (value[key].as_f64().unwrap() * 1e6).round() as i64)
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    rows.as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {rows}"))
}

#[test]
fn a_replay_of_what_was_measured_has_no_error() {
    let folder = Folder::new();
    let (assert, json) = validate(&folder, &trace(1_000_000, 1_003_000), &["--within", "0.01%"], DONE);
    assert.stdout(contains("2 ranks, 3 of 9 actions have times"));
    let json = json.unwrap();
    assert_eq!(row(&json["run_time"]), [1003, 0, 0]);
    assert_eq!(row(&json["computation"]), [1000, 0, 0]);
    assert_eq!(row(&json["communication"]), [1003, 0, 0]);
    assert_eq!(row(named(&json["regions"], "solver.c:8")), [1003, 0, 0]);
    assert_eq!(json["residual"], Value::Null);
}

#[test]
fn the_run_time_is_shared_out_to_the_parameters() {
    let folder = Folder::new();
    let flags = ["--set", "mpi.call_overhead={ send = '500us', alone = '1us' }"];
    let (assert, json) = validate(&folder, &trace(1_000_000, 1_003_000), &flags, DONE);
    assert
        .stdout(contains("trust: the run time is off by +49.9 %: +0.0 % by computations, +49.9 % by communication.\n"))
        .stdout(contains("recv +0.000500 s, +500.00 us each; send +0.000500 s, +500.00 us each."))
        .stdout(contains("The run time is 66.5 % computations (platform: speed), 33.3 % costs of the library (mpi.*_overhead)"));
    // 1,000 us of computation, 500 of the library, 2 of latency and 1 of bytes.
    let shares = json.unwrap()["shares"].clone();
    let names = ["computations", "costs of the library", "latency", "time per byte"];
    for ((share, name), expected) in
        shares.as_array().unwrap().iter().zip(names).zip([1000.0, 500.0, 2.0, 1.0])
    {
        assert_eq!(share["parameter"], name);
        let share = share["share"].as_f64().unwrap();
        assert!((share - expected / 1503.0).abs() < 1e-6, "{name}: {share}");
    }
}

#[test]
fn errors_of_computation_and_of_communication_are_told_apart() {
    let folder = Folder::new();
    // Rank 0 has computed twice as fast, so that the message was there at 503 us; but receiving it took until 510 us.
    let (assert, json) = validate(&folder, &trace(500_000, 510_000), &[], DONE);
    assert.stdout(contains(
        "most of the error: the computation of compute, +0.000500000 s of all ranks, most at solver.c:",
    ));
    let json = json.unwrap();
    assert_eq!(row(&json["run_time"]), [510, 500, -7]);
    assert_eq!(row(named(&json["calls"], "compute")), [500, 500, 0]);
    assert_eq!(row(named(&json["calls"], "recv")), [510, 500, -7]);
    assert_eq!(row(named(&json["regions"], "solver.c:7")), [500, 500, 0]);
    assert_eq!(row(&json["by_rank"][1]), [510, 500, -7]);
    assert_eq!(json["residual"]["part"], "computation");
    let error = json["run_time"]["error"].as_f64().unwrap();
    assert!((error - 493.0 / 510.0).abs() < 1e-9, "{error}");
}

#[test]
fn a_bound_sets_the_exit_status() {
    let folder = Folder::new();
    let trace = trace(500_000, 510_000);
    let (assert, json) = validate(&folder, &trace, &["--within", "90%"], FAILED);
    assert.stderr(contains("the run time differs by +96.7 %, expected at most 90.0 %"));
    assert!(json.is_some(), "the comparison is written all the same");
    validate(&folder, &trace, &["--within", "97"], DONE);
    let (assert, _) = validate(&folder, &trace, &["--within", "much"], MISUSE);
    assert.stderr(contains("expected a percentage of at least 0, such as 10%"));
}

#[test]
fn a_trace_without_times_is_refused() {
    let (assert, json) = validate(&Folder::new(), "0 init\n0 compute 1\n1 init\n", &[], FAILED);
    assert.stderr(contains("no measured times: record it with `trace acquire --with-times`"));
    assert_eq!(json, None);
}
