//! Allgather, alltoall and reduce-scatter in programs: `tests/data/exchanges` has SimGrid's times.

use std::path::Path;

use pdes_replay::Config;

use crate::reference::{Row, data, rows, simulated_time};

/// Largest difference of SimGrid's times at different precisions.
const SMALL_S: f64 = 2e-9;
const RELATIVE: f64 = 5e-5;

fn number(row: &Row, column: &str) -> u64 {
    row[column].parse().unwrap()
}

/// Returns the host of each rank: a number of ranks on each, `c3` for round robin on three, `u` for one, two, three in turn.
fn hosts(placement: &str, ranks: u64) -> Vec<u64> {
    match (placement, placement.strip_prefix('c')) {
        (_, Some(number)) => (0..ranks).map(|rank| rank % number.parse::<u64>().unwrap()).collect(),
        ("u", None) => {
            let uneven = (0..).flat_map(|host| std::iter::repeat_n(host, host as usize % 3 + 1));
            uneven.take(ranks as usize).collect()
        }
        (number, None) => (0..ranks).map(|rank| rank / number.parse::<u64>().unwrap()).collect(),
    }
}

/// One call on each rank; the block of rank `r` is as long as `least + step (r mod period)`.
fn trace(row: &Row) -> String {
    let [ranks, least, step, period] = ["ranks", "least", "step", "period"].map(|column| number(row, column));
    let block = |rank: u64| least + step * (rank % period);
    let each = |block: &dyn Fn(u64) -> u64| {
        (0..ranks).map(|rank| block(rank).to_string()).collect::<Vec<_>>().join(" ")
    };
    let (blocks, buffer) = (each(&block), (0..ranks).map(block).sum::<u64>());
    let call = |rank| match row["operation"].as_str() {
        operation @ ("allgather" | "alltoall") => format!("{operation} {least} {least}"),
        "allgatherv" => format!("allgatherv {} {blocks}", block(rank)),
        "reduce_scatter" => format!("reducescatter {blocks} 0"),
        "alltoallv" => {
            let received = each(&|_| block(rank));
            format!("alltoallv {buffer} {blocks} {} {received}", ranks * block(rank))
        }
        other => panic!("the operation {other} is not known"),
    };
    (0..ranks).map(|rank| format!("{rank} init\n{rank} {}\n", call(rank))).collect()
}

fn config(row: &Row, folder: &Path) -> Config {
    let (lines, file) = (folder.join("hosts"), folder.join("trace.txt"));
    let names =
        hosts(&row["placement"], number(row, "ranks")).into_iter().map(|host| format!("node-{host}\n"));
    std::fs::write(&lines, names.collect::<String>()).unwrap();
    std::fs::write(&file, trace(row)).unwrap();
    let mut config = Config::default();
    config.set_path("trace", "path", &file);
    config.insert("trace", "ranks", toml::Value::Integer(row["ranks"].parse().unwrap()));
    config.set_path("platform", "file", &data("exchanges").join("flat.xml"));
    config.set_path("platform", "hosts", &lines);
    if row["selector"] != "-" {
        config.insert("mpi", "collectives", row["selector"].as_str().into());
    }
    if row["algorithm"] != "-" {
        config.insert("mpi", &row["operation"], row["algorithm"].as_str().into());
    }
    config
}

fn check(operation: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (mut checked, mut failures) = (0, Vec::new());
    for row in rows(&data("exchanges").join("cases.tsv")) {
        if row["operation"] != operation {
            continue;
        }
        checked += 1;
        let (ours, theirs) =
            (simulated_time(config(&row, folder.path())), row["end_s"].parse::<f64>().unwrap());
        let equal = (ours - theirs).abs() <= SMALL_S + RELATIVE * theirs;
        if equal != (row["differs"] == "-") {
            let what = ["algorithm", "selector", "ranks", "placement", "least", "step", "period"];
            let what = what.map(|column| format!("{column} {}", row[column])).join(", ");
            failures.push(format!("{what}: found {ours}, expected {theirs}"));
        }
    }
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 100, "found {checked} cases of {operation}");
}

#[test]
fn allgather() {
    check("allgather");
}

#[test]
fn allgatherv() {
    check("allgatherv");
}

#[test]
fn alltoall() {
    check("alltoall");
}

#[test]
fn alltoallv() {
    check("alltoallv");
}

#[test]
fn reduce_scatter() {
    check("reduce_scatter");
}
