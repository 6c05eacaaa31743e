//! The command that says what failures and checkpoints cost a job.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{Folder, command};

const JOB: [&str; 9] =
    ["goodput", "--work", "24h", "--checkpoint", "60s", "--restart", "120s", "--mtbf", "1h"];

#[test]
fn the_expectation_and_its_ensemble_are_printed() {
    let folder = Folder::new();
    let json = folder.path("goodput.json");
    let printed =
        contains("interval 618.0 s (Young 657.3 s, Daly 617.9 s)").and(contains("expected 107837.3 s"));
    command().args(JOB).args(["--interval", "618s", "--json"]).arg(&json).assert().success().stdout(printed);
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let number = |path: &str| results.pointer(path).and_then(serde_json::Value::as_f64).unwrap();
    let difference = (number("/ensemble/mean_s") - number("/expected_s")).abs();
    assert!(difference < 2.5 * number("/ensemble/confidence_s"), "{results}");
    assert_eq!(number("/ensemble/runs"), 1000.0);
    assert!((number("/goodput") - 0.8).abs() < 0.02, "{results}");
}

/// 256 nodes that fail every 256 hours each are a machine that fails every hour.
#[test]
fn components_fail_apart() {
    let of_nodes = |mtbf: &str, components: &str| {
        let output = command()
            .args(&JOB[..7])
            .args(["--mtbf", mtbf, "--components", components, "--runs", "100"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(of_nodes("256h", "256"), of_nodes("1h", "1"));
    command()
        .args(JOB)
        .args(["--interval", "200h"])
        .assert()
        .code(2)
        .stderr(contains("take a shorter interval"));
}
