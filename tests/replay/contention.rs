//! Replays in which messages share links and ranks share cores: `tests/data/contended` has SimGrid's answers.

use pdes_replay::Config;

use crate::reference::{Row, Verdict, compare, data, is_campaign, rows, set_mpi_option, unpack};
use crate::shared::shared;

/// Sum of rounding errors and the last printed digit.
const SMALL_S: f64 = 1e-9;
const RELATIVE: f64 = 1e-7;

/// Sets an option of SimGrid.
fn apply(option: &str, config: &mut Config) {
    let (name, value) = option.split_once(':').unwrap();
    let assignment = match name {
        "network/model" => format!("network.preset='{}'", value.to_lowercase()),
        "network/crosstraffic" => format!("network.cross_traffic={}", value != "0"),
        "network/TCP-gamma" => format!("network.tcp_gamma={}", decimal(value)),
        "network/weight-S" => format!("network.weight_s={}", decimal(value)),
        "network/optim" => "network.solve_scope='complete'".to_owned(),
        "network/loopback-bw" => format!("network.loopback_bandwidth={value}"),
        "network/loopback-lat" => format!("network.loopback_latency_s={value}"),
        "network/bandwidth-factor" => format!("network.bandwidth_factor={value}"),
        "network/latency-factor" => format!("network.latency_factor={value}"),
        "smpi/bw-factor" => format!("network.bandwidth_factor='{value}'"),
        "smpi/lat-factor" => format!("network.latency_factor='{value}'"),
        other => {
            let name =
                other.strip_prefix("smpi/").unwrap_or_else(|| panic!("the option {other} is not known"));
            return set_mpi_option(name, value, config);
        }
    };
    config.set(&assignment).unwrap();
}

fn decimal(value: &str) -> f64 {
    value.parse().unwrap()
}

fn check(row: &Row) -> Result<(), String> {
    let folder = data("contended");
    let mut config = Config::default();
    for option in row["config"].split(' ').filter(|option| *option != "-") {
        apply(option, &mut config);
    }
    config.set_path("trace", "path", &folder.join(&row["trace"]));
    config.set_path("platform", "file", &folder.join(&row["platform"]));
    config.set_path("platform", "hosts", &folder.join(&row["hosts"]));
    config.insert("trace", "ranks", toml::Value::Integer(row["ranks"].parse().unwrap()));
    config.insert("network", "precision_s", decimal(&row["precision_s"]).into());
    match compare(config, row, SMALL_S, RELATIVE) {
        Verdict::Equal => Ok(()),
        verdict => Err(format!("{} at {}: {verdict:?}", row["case"], row["precision_s"])),
    }
}

fn check_cases(precision: &str) {
    let rows: Vec<Row> = rows(&data("contended").join("cases.csv"));
    let rows: Vec<&Row> = rows.iter().filter(|row| row["precision_s"] == precision).collect();
    assert!(rows.len() > 1000, "found {} cases", rows.len());
    let failures: Vec<String> = rows.iter().filter_map(|row| check(row).err()).collect();
    assert!(failures.is_empty(), "{} cases:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn as_smpirun_does() {
    check_cases("1e-9");
}

#[test]
fn without_merging_events() {
    check_cases("1e-12");
}

/// Long traces, which tests/run replays on one platform only.
const LONG: [&str; 4] = ["cg.A.8", "cg.W.16", "lu.A.8", "lu.W.16"];

/// The end of every rank on the real traces and platforms.
#[test_with::shared]
fn npb_traces() {
    let (oracle, traces) = (shared("oracle"), shared("traces"));
    let unpacked = unpack(&traces);
    for row in rows(&data("contended").join("npb.csv")) {
        if LONG.contains(&row["trace"].as_str()) && row["platform"] != "torus-5g" && !is_campaign() {
            continue;
        }
        let mut config = Config::default();
        config.set_path("trace", "path", &unpacked.path().join(&row["trace"]).join("files.txt"));
        config.set_path("platform", "file", &oracle.join(format!("{}.xml", row["platform"])));
        config.set_path("platform", "hosts", &oracle.join("hosts.txt"));
        config.insert("network", "precision_s", decimal(&row["precision_s"]).into());
        // Among millions of events some pairs are so close to the precision that rounding decides
        // whether SimGrid merges them, and together with which others a flow begins.
        let relative = if row["precision_s"] == "1e-9" { 1e-5 } else { 3e-7 };
        let verdict = compare(config, &row, SMALL_S, relative);
        assert_eq!(verdict, Verdict::Equal, "{} on {}", row["trace"], row["platform"]);
    }
}
