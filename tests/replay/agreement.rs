//! Simulated times that equal SimGrid's: `tests/data` says how those were measured.

use std::path::Path;

use crate::reference::{self, Verdict, compare, rows, unpack};
use crate::shared::shared;
use pdes_replay::Config;

/// Cases that SimGrid replays and we refuse, with the reason. The test checks that they are refused, so that the list stays true.
const REFUSED: &[(&str, &str)] = &[
    ("wait-no-match-tag", "SimGrid passes over a wait without a request"),
    ("wait-twice", "SimGrid passes over a wait without a request"),
    ("test-missing-key", "SimGrid passes over a test without a request"),
    ("count-scientific", "SimGrid cuts 99.9 elements off to 99"),
];

/// Cases with other times without contention, with the reason. The test checks that they differ.
const DIFFERENT: &[(&str, &str)] =
    &[("compute-two-on-one-host", "the model has no contention: each rank has a core of its own")];

const MODELS: [&str; 2] = ["contention-free", "flow"];

/// SimGrid merges events that lie less than a nanosecond apart.
const SMALL_S: f64 = 2e-9;

fn config(model: &str, trace: &Path, platform: &Path) -> Config {
    let mut config = Config::default();
    config.insert("network", "model", model.into());
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    config
}

/// Replays the cases of a table of merged traces and compares the end of every rank. If nothing is shared, both models
/// give SimGrid's times.
fn check_cases(model: &str, table: &str) {
    let folder = reference::data("uncontended");
    let temporary = tempfile::tempdir().unwrap();
    let mut checked = 0;
    let mut failures = Vec::new();
    for row in rows(&folder.join(table)) {
        let trace = temporary.path().join("trace.txt");
        std::fs::write(&trace, row.merged_trace()).unwrap();
        let mut config = config(model, &trace, &folder.join(&row["platform"]));
        config.insert("trace", "ranks", toml_integer(&row["ranks"]));
        let Some(()) = row.apply_options(&mut config) else { continue };
        let listed = |list: &[(&str, &str)]| list.iter().any(|(name, _)| *name == row["case"]);
        let differs = model == "contention-free" && listed(DIFFERENT);
        match compare(config, &row, SMALL_S, 0.0) {
            Verdict::Unanswered => {}
            Verdict::Equal if !listed(REFUSED) && !differs => checked += 1,
            Verdict::Refused(_) if listed(REFUSED) => checked += 1,
            Verdict::Differs(_) if differs => checked += 1,
            verdict => failures.push(format!("{} by {model}: {verdict:?}", row["case"])),
        }
    }
    assert!(failures.is_empty(), "{} of {table}:\n{}", failures.len(), failures.join("\n"));
    assert!(checked > 0, "{table} has no cases");
}

fn toml_integer(text: &str) -> toml::Value {
    toml::Value::Integer(text.parse().unwrap())
}

#[test]
fn point_to_point_semantics() {
    MODELS.iter().for_each(|model| check_cases(model, "p2p.tsv"));
}

#[test]
fn collectives() {
    MODELS.iter().for_each(|model| check_cases(model, "collectives.tsv"));
}

#[test]
fn random_programs() {
    let folder = reference::data("uncontended");
    for row in rows(&folder.join("random.csv")) {
        let (trace, platform) = (folder.join("random").join(&row["trace"]), folder.join(&row["platform"]));
        for model in MODELS {
            let config = config(model, &trace, &platform);
            assert_eq!(compare(config, &row, SMALL_S, 0.0), Verdict::Equal, "{} by {model}", row["trace"]);
        }
    }
}

/// Traces in which no two messages meet, on platforms whose links are shared: there, SimGrid's flow model is ours.
#[test_with::shared]
fn messages_that_do_not_overlap() {
    let oracle = shared("oracle");
    let folder = reference::data("nooverlap");
    for row in rows(&folder.join("nooverlap.csv")) {
        for model in MODELS {
            let trace = folder.join(&row["trace"]);
            let mut config = config(model, &trace, &platform(&oracle, &row["platform"]));
            place(&mut config, &oracle, &row["platform"]);
            let verdict = compare(config, &row, SMALL_S, 0.0);
            assert_eq!(verdict, Verdict::Equal, "{} on {} by {model}", row["trace"], row["platform"]);
        }
    }
}

/// The real traces on the real platforms, against SimGrid on platforms of the same costs without sharing.
#[test_with::shared]
fn npb_and_tesh_traces() {
    let (oracle, traces) = (shared("oracle"), shared("traces"));
    let folder = reference::data("uncontended");
    let unpacked = unpack(&traces);
    let tables = ["npb.csv", "tesh.csv", "real-platforms.csv"];
    for row in tables.iter().flat_map(|table| rows(&folder.join(table))) {
        let trace = reference::trace(&row["trace"], unpacked.path(), &oracle);
        let name = row.get("platform").map_or("p32.xml", String::as_str);
        let file = if name.starts_with('p') { folder.join(name) } else { platform(&oracle, name) };
        let mut config = config("contention-free", &trace, &file);
        place(&mut config, &oracle, name);
        assert_eq!(compare(config, &row, SMALL_S, 2e-7), Verdict::Equal, "{} on {name}", row["trace"]);
    }
}

/// Checks that our own descriptions of the platforms are the same machines.
#[test_with::shared]
fn our_platforms_equal_the_xml() {
    let oracle = shared("oracle");
    let configs = reference::repository().join("configs");
    let trace = configs.join("traces/lu.S.8");
    for name in ["crossbar-gbe", "backbone-gbe", "fattree-hdr", "torus-5g", "dragonfly-12g"] {
        let mut ours = config("flow", &trace, &configs.join("platforms").join(format!("{name}.toml")));
        ours.insert("network", "preset", "smpi".into());
        let theirs = config("flow", &trace, &platform(&oracle, name));
        assert_eq!(reference::digest(ours), reference::digest(theirs), "{name}");
    }
}

/// Traces that share links, on the platforms of the oracle: SimGrid's printed times.
#[test_with::shared]
fn contention_on_npb_and_tesh_traces() {
    let (oracle, traces) = (shared("oracle"), shared("traces"));
    let unpacked = unpack(&traces);
    let npb = rows(&oracle.join("npb-simgrid.csv"));
    let npb: Vec<_> = npb.into_iter().map(|row| (row["platform"].clone(), row)).collect();
    let tesh = rows(&oracle.join("tesh/expected.csv"));
    let tesh: Vec<_> = tesh.into_iter().map(|row| ("small_platform".to_owned(), row)).collect();
    assert_eq!((npb.len(), tesh.len()), (116, 12));
    for (name, row) in npb.iter().chain(&tesh) {
        let trace = reference::trace(&row["trace"], unpacked.path(), &oracle);
        let mut config = config("flow", &trace, &platform(&oracle, name));
        config.insert("trace", "ranks", toml_integer(&row["ranks"]));
        place(&mut config, &oracle, name);
        if let Some(selector) = row.get("selector") {
            config.insert("mpi", "collectives", selector.as_str().into());
        }
        let ours = reference::simulated_time(config);
        let theirs: f64 = row["simulated_s"].parse().unwrap();
        // Their six decimals are rounded.
        let tolerance = if name == "small_platform" { 0.51e-6 } else { 1.5e-6 + 1e-5 * theirs };
        assert!((ours - theirs).abs() <= tolerance, "{} on {name}: {ours}, SimGrid {theirs}", row["trace"]);
    }
}

fn platform(oracle: &Path, name: &str) -> std::path::PathBuf {
    match name.trim_end_matches(".xml") {
        "small_platform" => oracle.join("tesh/small_platform.xml"),
        name => oracle.join(format!("{name}.xml")),
    }
}

/// SimGrid sorts hosts by name where no hosts file is given; its answers were measured with one.
fn place(config: &mut Config, oracle: &Path, platform: &str) {
    if platform.starts_with("small_platform") {
        config.set_path("platform", "hosts", &oracle.join("tesh/hostfile"));
    }
}
