//! Collective algorithms that serve ranks as they arrive, one-sided ones, and all algorithms in turn, compared with
//! SimGrid's programs; the ranks enter at different times.

use std::path::Path;

use pdes_replay::Config;

use crate::collectives::{ORDER, call, calls_on_layouts, is_listed};
use crate::reference::{self, Row, rows};

/// Calls with other times here, with the reason. The test checks that they differ, as that of all collectives does.
const DIFFERENT: &[(&str, &str)] = &[
    ("reduce automatic one-2 100000", STATE),
    ("reduce automatic one-3|one-4|one-6|one-8|one-16|two-8|four-16|uneven-7 *", STATE),
    ("allreduce automatic * 100000", STATE),
    ("allreduce automatic one-8 8|1000", ORDER),
    ("allreduce automatic four-16 8|1000", ORDER),
    ("bcast automatic * *", "SimGrid's mvapich2_inter_node ends with the leaders"),
    (
        "gather automatic four-16 *",
        "SimGrid's mvapich2 takes the binomial tree until it has looked at the nodes",
    ),
    (
        "alltoall automatic one-2 *",
        "SimGrid finds no mesh for 3dmesh, sends nothing, and takes that for a success",
    ),
    ("alltoallv automatic one-3 *", "Open MPI's table picks pair, which SimGrid refuses for three ranks"),
];

/// SimGrid's `mvapich2` stores the functions that its table picks, and `mvapich2_two_level` uses them from then on, also
/// in Intel's table; without them it has others, which ours always uses.
const STATE: &str = "SimGrid's mvapich2_two_level uses what mvapich2 chose before it";

/// A call before which rank r sleeps for (7 r + 3) mod P times the stagger.
fn config(row: &Row, ranks: usize, trace: &Path, platform: &Path) -> Config {
    let call = call(&row["collective"], ranks, &row["count_bytes"], &row["root"]);
    let stagger: f64 = row["stagger_s"].parse().unwrap();
    let program = |rank: usize| {
        let late = stagger * ((7 * rank + 3) % ranks) as f64;
        format!("{rank} init\n{rank} sleep {late}\n{rank} {call}\n{rank} finalize\n")
    };
    std::fs::write(trace, (0..ranks).map(program).collect::<String>()).unwrap();
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    config.insert("mpi", &row["collective"], row["algorithm"].as_str().into());
    config
}

fn is_close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-8 + 1e-6 * theirs
}

/// Hosts with one rank each and with several, whose links are shared.
#[test]
fn ranks_that_enter_at_different_times() {
    let (mut checked, mut failures) = (0, Vec::new());
    for (row, ours, theirs) in calls_on_layouts("arrivals.tsv", config) {
        let key = ["collective", "algorithm", "layout", "count_bytes"].map(|column| row[column].as_str());
        checked += 1;
        if ours.as_ref().is_ok_and(|&ours| is_close(ours, theirs)) == is_listed(DIFFERENT, &key) {
            failures.push(format!("{}: {ours:?}, SimGrid {theirs}", key.join(" ")));
        }
    }
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(checked, 1283);
}

/// Ranks that share no link: there is no contention, and both models give SimGrid's times.
#[test]
fn ranks_that_have_their_links_for_themselves() {
    let temporary = tempfile::tempdir().unwrap();
    let trace = temporary.path().join("trace.txt");
    let platform = reference::data("uncontended").join("p8.xml");
    let mut failures = Vec::new();
    for row in rows(&reference::data("collectives").join("arrivals-alone.tsv")) {
        let theirs: f64 = row["end_s"].parse().unwrap();
        for model in ["flow", "contention-free"] {
            let mut config = config(&row, row["ranks"].parse().unwrap(), &trace, &platform);
            config.insert("network", "model", model.into());
            let ours = reference::try_simulated_time(config);
            if !ours.as_ref().is_ok_and(|&ours| is_close(ours, theirs)) {
                failures.push(format!("{} {}: {ours:?}, SimGrid {theirs}", row["algorithm"], model));
            }
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}
