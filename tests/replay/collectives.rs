//! Simulated times of every collective algorithm that equal SimGrid's.

use std::collections::BTreeMap;
use std::path::Path;

use crate::reference::{self, Row, rows};
use crate::shared::shared;
use pdes_replay::Config;

/// Calls with other times here, with the reason. The test checks that they differ. The fields are those of the tables; `*` matches
/// anything, and `|` separates alternatives.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "gather mvapich2 4|6|8|16 *",
        "SimGrid asks whether the ranks of nodes are consecutive before it has looked, and takes the binomial tree",
    ),
    ("bcast ompi_split_bintree 8 100000", ORDER),
    ("allgatherv GB 6|8|16 8", LARGEST),
    ("allgatherv GB * 1000|100000", LARGEST),
    ("allgatherv ompi 6 8", LARGEST),
    ("allgatherv ompi 8 8|1000", LARGEST),
    ("allgatherv ompi 16 8", LARGEST),
    ("alltoall 3dmesh 2 *", "SimGrid sends nothing between two ranks"),
];

/// Like [`DIFFERENT`], for calls from programs.
const DIFFERENT_IN_PROGRAMS: &[(&str, &str)] = &[
    (
        "bcast mvapich2_inter_node two-8|four-16|four-12|uneven-7|uneven-11|cyclic-8|all-6|four-64 * *",
        "SimGrid's ends with the leaders",
    ),
    (
        "bcast mvapich2_intra_node uneven-11 20000|100000 5",
        "SimGrid's nodes broadcast from the place that is the root's rank",
    ),
    (
        "bcast mvapich2_intra_node all-6 20000 3",
        "SimGrid's nodes broadcast from the place that is the root's rank",
    ),
    (
        "gather mvapich2 one-13|two-8|four-16|four-12|uneven-7|uneven-11|all-6|four-64 8|1000|2000|20000|100000 *",
        "SimGrid takes the binomial tree, as above",
    ),
    ("bcast ompi_split_bintree four-16 600000 *", ORDER),
    ("reduce ompi_chain one-13 600000 *", ORDER),
    ("reduce ompi_binary four-64 * *", ORDER),
];

/// Traces have no displacements, from which SimGrid derives the size of the broadcast after an allgatherv's gather.
const LARGEST: &str = "SimGrid broadcasts as much as the largest block";

/// Flows that begin at one instant do so in the order in which their ranks resume: the order of ranks here, and in
/// SimGrid that in which the messages before them ended.
pub(crate) const ORDER: &str = "flows that begin at one instant begin in another order";

pub(crate) fn is_listed(list: &[(&str, &str)], key: &[&str]) -> bool {
    let matches =
        |(field, value): (&str, &&str)| field == "*" || field.split('|').any(|field| field == *value);
    list.iter().any(|(pattern, _)| pattern.split(' ').zip(key).all(matches))
}

/// SimGrid's printed dates have six decimals.
fn is_close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1.5e-6 + 1e-5 * theirs
}

/// Returns the call of a rank; all vectors have equal blocks.
pub(crate) fn call(collective: &str, ranks: usize, bytes: &str, root: &str) -> String {
    let vector = vec![bytes; ranks].join(" ");
    match collective {
        "barrier" => collective.to_owned(),
        "bcast" => format!("bcast {bytes} {root} 6"),
        "reduce" => format!("reduce {bytes} 0 {root} 6"),
        "gather" | "scatter" => format!("{collective} {bytes} {bytes} {root} 6 6"),
        "allreduce" | "scan" | "exscan" => format!("{collective} {bytes} 0"),
        "allgather" | "alltoall" => format!("{collective} {bytes} {bytes}"),
        "alltoallv" => {
            let buffer = ranks as u64 * bytes.parse::<u64>().unwrap();
            format!("alltoallv {buffer} {vector} {buffer} {vector}")
        }
        "gatherv" | "allgatherv" => format!("{collective} {bytes} {vector}"),
        "scatterv" => format!("scatterv {vector} {bytes}"),
        "reduce_scatter" => format!("reducescatter {vector} 0"),
        other => panic!("the operation {other} is not known"),
    }
}

fn config(row: &Row, ranks: usize, trace: &Path, platform: &Path) -> Config {
    let root = row.get("root").map_or("0", String::as_str);
    let call = call(&row["collective"], ranks, &row["count_bytes"], root);
    let text: Vec<String> =
        (0..ranks).map(|rank| format!("{rank} init\n{rank} {call}\n{rank} finalize\n")).collect();
    std::fs::write(trace, text.concat()).unwrap();
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    if row["algorithm"] != "-" {
        config.insert("mpi", &row["collective"], row["algorithm"].as_str().into());
    }
    config
}

/// The algorithms of each operation by name, one call on a cluster whose links are shared.
#[test_with::shared]
fn every_algorithm() {
    let oracle = shared("oracle");
    let temporary = tempfile::tempdir().unwrap();
    let (trace, platform) = (temporary.path().join("trace.txt"), oracle.join("collectives-platform.xml"));
    let (mut checked, mut failures) = (0, Vec::new());
    for row in rows(&oracle.join("collectives-simgrid.tsv")) {
        let Ok(theirs) = row["simulated_time_or_status"].parse::<f64>() else { continue };
        let key = ["collective", "algorithm", "P", "count_bytes"].map(|column| row[column].as_str());
        let differs = is_listed(DIFFERENT, &key);
        let ranks = row["P"].parse().unwrap();
        let ours = reference::try_simulated_time(config(&row, ranks, &trace, &platform));
        let equal = ours.as_ref().is_ok_and(|&ours| is_close(ours, theirs));
        checked += 1;
        if equal == differs {
            failures.push(format!("{}: {ours:?}, SimGrid {theirs}", key.join(" ")));
        }
    }
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(checked, 2112);
}

/// Replays each row of a table of calls on the hosts of its layout; returns the rows with our times and SimGrid's.
pub(crate) fn calls_on_layouts(
    table: &str,
    config: impl Fn(&Row, usize, &Path, &Path) -> Config,
) -> Vec<(Row, Result<f64, String>, f64)> {
    let folder = reference::data("collectives");
    let temporary = tempfile::tempdir().unwrap();
    let (trace, hosts) = (temporary.path().join("trace.txt"), temporary.path().join("hosts.txt"));
    let layouts: BTreeMap<String, Vec<String>> = rows(&folder.join("layouts.tsv"))
        .into_iter()
        .map(|row| (row["layout"].clone(), row["hosts"].split(' ').map(str::to_owned).collect()))
        .collect();
    let replay = |row: Row| {
        let layout = &layouts[&row["layout"]];
        std::fs::write(&hosts, layout.join("\n")).unwrap();
        let mut config = config(&row, layout.len(), &trace, &folder.join("cluster.xml"));
        config.set_path("platform", "hosts", &hosts);
        let theirs: f64 = row["end_s"].parse().unwrap();
        (row, reference::try_simulated_time(config), theirs)
    };
    rows(&folder.join(table)).into_iter().map(replay).collect()
}

/// Calls from programs, for features that SimGrid's replay lacks: two-level algorithms with several ranks per node, and selectors.
#[test]
fn calls_of_programs() {
    let (mut checked, mut failures) = (0, Vec::new());
    for (row, ours, theirs) in calls_on_layouts("calls.tsv", config) {
        let equal = ours.as_ref().is_ok_and(|&ours| (ours - theirs).abs() <= 1e-8 + 1e-6 * theirs);
        let key =
            ["collective", "algorithm", "layout", "count_bytes", "root"].map(|column| row[column].as_str());
        checked += 1;
        if equal == is_listed(DIFFERENT_IN_PROGRAMS, &key) {
            failures.push(format!("{}: {ours:?}, SimGrid {theirs}", key.join(" ")));
        }
    }
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}
