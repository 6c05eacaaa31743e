//! GOAL schedules on the command line.

use std::path::{Path, PathBuf};

use predicates::str::{contains, ends_with};

use super::command_line::command;

/// Returns the path of a schedule of the crate that reads them.
fn schedule(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../goal/tests/data").join(name)
}

#[test]
fn a_schedule_is_converted_and_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("tree.pdt");
    let report = directory.path().join("report.json");
    let text = schedule("binary_tree_32.goal");
    command()
        .args(["trace", "convert", "--from", "goal"])
        .arg(&text)
        .arg("-o")
        .arg(&archive)
        .assert()
        .success()
        .stdout(contains("32 ranks"));
    command().args(["trace", "info"]).arg(&archive).assert().success().stdout(contains("62 operations"));
    command().args(["trace", "check"]).arg(&archive).assert().success().stdout(ends_with("all right\n"));
    let dump = command().args(["trace", "dump"]).arg(&archive).assert().success();
    assert_eq!(dump.get_output().stdout, std::fs::read(&text).unwrap());
    command()
        .arg("--trace")
        .arg(&archive)
        .arg("--report")
        .arg(&report)
        .assert()
        .success()
        .stdout(ends_with("simulated time: 0.000027500 s\n"));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["simulated_time_ps"], 27_500_000);
    assert_eq!(report["parameters"]["L_ps"], 2_500_000);
    assert_eq!(report["digest"].as_str().map(str::len), Some(64));
    command()
        .args(["trace", "cut"])
        .arg(&archive)
        .arg("-o")
        .arg(directory.path().join("part.pdt"))
        .assert()
        .code(1);
}

#[test]
fn operations_without_a_partner_are_found_by_a_check() {
    let directory = tempfile::tempdir().unwrap();
    let [text, archive] = ["lonely.goal", "lonely.pdt"].map(|name| directory.path().join(name));
    let lonely = "num_ranks 3\nrank 0 {\nl1: send 8b to 1 tag 3\n}\nrank 1 {\n}\nrank 2 {\nl1: recv 8b from 0 tag 1\n}\n";
    std::fs::write(&text, lonely).unwrap();
    command().args(["trace", "convert"]).arg(&text).arg("-o").arg(&archive).assert().success();
    for schedule in [&text, &archive] {
        let check = command().args(["trace", "check"]).arg(schedule).assert().code(1);
        check.stderr(contains("1 receive(s) without a message, 1 message(s) without a receive"));
        let lint = command().args(["trace", "lint"]).arg(schedule).assert().success();
        lint.stdout(contains("violation: the schedule"));
    }
}

#[test]
fn parameters_come_from_file_and_flags() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("run.toml");
    let text = "[network]\nmodel = 'loggops'\n[loggops]\nL = 2500.5\no = 1500\nS = 10\nempty = 'one_byte'\n";
    std::fs::write(&config, text).unwrap();
    let run = |set: &str| {
        let mut command = command();
        command.arg("--config").arg(&config).args(["--quiet", "--set", set]);
        command.arg("--trace").arg(schedule("binomial_bcast_8.goal"));
        command.assert()
    };
    // Three hops of o + L + o, each after one message of its sender: half a nanosecond more each.
    run("loggops.g=1000").success().stdout("simulated time: 0.000016502 s\n");
    run("loggops.L=2500").success().stdout("simulated time: 0.000016500 s\n");
    run("engine.threads=2").success().stdout("simulated time: 0.000016502 s\n");
    run("engine.threads=0").code(2).stderr(contains("found 0, expected a whole number from 1 to"));
    run("loggops.G=0.0001").code(2).stderr(contains("at most three decimals"));
    run("loggops.K=1").code(2).stderr(contains("has no key \"K\"; expected \"L\", "));
    run("network.modle=x").code(2).stderr(contains("did you mean \"model\"?"));
    run("network.model=flow")
        .code(2)
        .stderr(contains("[loggops]: this section is for the model \"loggops\", not for \"flow\""));
}

#[test]
fn a_schedule_that_does_not_end_fails() {
    let directory = tempfile::tempdir().unwrap();
    let schedule = directory.path().join("half.goal");
    std::fs::write(&schedule, "num_ranks 2\nrank 0 {\n recv 1b from 1 tag 3\n}\nrank 1 {\n}\n").unwrap();
    command()
        .args(["--model", "loggops", "--trace"])
        .arg(&schedule)
        .assert()
        .code(1)
        .stderr(contains("rank 0: receive from 1 with tag 3 (operation 0)"));
}
