//! Diagnoses: programs that have a problem, and twins that have not; efficiencies with closed forms; rules of users; the command.

#[path = "diagnosis/joined.rs"]
mod joined;
#[path = "diagnosis/pairs.rs"]
mod pairs;

use std::fmt::Write as _;

use pdes_core::Cluster;
use pdes_replay::{Config, Diagnosis, Pop, Rule};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::processes::mpirun;
use crate::reference::rows;
use crate::shared::shared;
use pairs::{heart, message, rounds};

/// Hosts of 1 Gflop/s: a million flop takes a millisecond. Without the factors of presets, times follow by hand.
const CLUSTER: &str = "kind = 'cluster'\nhosts = 8\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '10us'\n";
/// Two leaves of four hosts, with two uplinks each.
const TREE: &str = "kind = 'fat_tree'\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '10us'\nlevels = [\n\
    { children = 4, parents = 1 }, { children = 2, parents = 2 } ]\n";

/// Returns a merged trace: the lines of each rank, separated by `;`, after its `init`.
fn program(ranks: u32, lines: impl Fn(u32) -> String) -> String {
    let mut text = String::new();
    for rank in 0..ranks {
        for line in format!("init;{}", lines(rank)).split(';').filter(|line| !line.is_empty()) {
            writeln!(text, "{rank} {line}").unwrap();
        }
    }
    text
}

/// Returns lines of computation \[ms\].
fn compute(millis: f64) -> String {
    format!("compute {};", millis * 1e6)
}

fn config(folder: &Folder, trace: &str, topology: &str) -> Config {
    let trace = folder.write("trace.txt", trace);
    let run = folder.write(
        "run.toml",
        &format!("[trace]\npath = {trace:?}\n[network]\npreset = 'raw'\n[platform.topology]\n{topology}"),
    );
    Config::from_path(&run).unwrap()
}

fn diagnose(trace: &str, topology: &str, settings: &[&str]) -> Diagnosis {
    let folder = Folder::new();
    let mut config = config(&folder, trace, topology);
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    let spec = config.resolve().unwrap();
    Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap()
}

/// Programs of RWTH's On-the-fly Critical Path Tool, whose efficiencies its tests check.
#[test_with::shared]
fn efficiencies_of_toy_programs() {
    let samples = shared("samples/pop");
    for row in rows(&samples.join("expected.csv")) {
        let folder = Folder::new();
        let mut config = config(&folder, "0 init", CLUSTER);
        config.set_path("trace", "path", &samples.join(&row["trace"]).join("files.txt"));
        let spec = config.resolve().unwrap();
        let found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap().pop;
        for (name, value) in [
            ("parallel_efficiency", found.parallel_efficiency),
            ("load_balance", found.load_balance),
            ("communication_efficiency", found.communication_efficiency),
            ("serialisation_efficiency", found.serialization_efficiency),
            ("transfer_efficiency", found.transfer_efficiency),
            ("runtime_ideal_s", found.ideal_time_s),
        ] {
            let expected: f64 = row[name].parse().unwrap();
            // The messages take some microseconds on the network of the run.
            assert!((value - expected).abs() < 1e-4, "{}: {name} {value}, expected {expected}", row["case"]);
        }
    }
}

#[test]
fn regions_nodes_and_scaling() {
    // Two ranks on each of two hosts: 1 and 2 ms, 3 and 4 ms.
    let trace = program(4, |rank| {
        format!("location inner 0;{}location outer 0;barrier", compute(f64::from(rank + 1)))
    });
    let folder = Folder::new();
    let mut config = config(&folder, &trace, &format!("{CLUSTER}cores = 2\n"));
    let hosts = folder.write("hosts.txt", "node-0\nnode-0\nnode-1\nnode-1\n");
    config.set_path("platform", "hosts", &hosts);
    let spec = config.resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    let close =
        |value: f64, expected: f64| assert!((value - expected).abs() < 1e-12, "{value}, expected {expected}");
    assert_eq!((found.pop.ranks, found.pop.nodes), (4, 2));
    close(found.pop.load_balance, 2.5 / 4.0);
    close(found.pop.load_balance_between_nodes, 5.0 / 7.0);
    close(found.pop.load_balance_in_nodes, 3.5 / 4.0);
    let regions: Vec<_> = found.regions.iter().map(|region| region.site.as_deref().unwrap_or("")).collect();
    assert_eq!(regions, ["inner", "outer"]);
    close(found.regions[0].load_balance, 2.5 / 4.0);
    close(found.regions[0].communication_efficiency, 1.0);
    close(found.regions[0].serialization_efficiency, 1.0);
    close(found.regions[0].transfer_efficiency, 1.0);
    close(found.regions[0].flops, 10e6);
    close(found.regions[1].parallel_efficiency, 0.0);

    // Half as many ranks with the same work, all of it useful.
    let reference = Pop { ranks: 2, useful_s: 8e-3, flops: 10e6, ..found.pop.clone() };
    found.compare_with(vec![("two".to_owned(), reference.clone())]);
    let scaling = found.scaling.unwrap();
    assert!(!scaling.is_weak);
    close(scaling.computation_scaling, 0.8);
    close(scaling.instruction_scaling, 1.0);
    close(scaling.rate_scaling, 0.8);
    close(scaling.global_efficiency, 0.8 * found.pop.parallel_efficiency);
    // With half the work it would be weak scaling.
    found.compare_with(vec![("half".to_owned(), Pop { flops: 5e6, useful_s: 4e-3, ..reference })]);
    let scaling = found.scaling.unwrap();
    assert!(scaling.is_weak);
    close(scaling.computation_scaling, 0.8);
}

/// A balanced program would end when the mean rank does; the duration of the problem is what the other ranks could wait.
#[test]
fn a_gain_is_simulated() {
    let folder = Folder::new();
    let trace = program(2, |rank| format!("location solve.c 7;{}barrier", compute(f64::from(1 + 2 * rank))));
    let config = config(&folder, &trace, CLUSTER);
    let spec = config.clone().resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    assert!(found.problems.iter().all(|problem| problem.gain_s.is_none()));
    found.simulate_gains(&config).unwrap();
    let problem = |name: &str| found.problems.iter().find(|problem| problem.name == name).unwrap();
    let imbalance = problem("load imbalance");
    assert_eq!(imbalance.sites, ["solve.c:7"]);
    assert!(imbalance.recommendation.contains("at solve.c:7 evenly"), "{}", imbalance.recommendation);
    assert_eq!(imbalance.duration_s, 2e-3);
    assert!((imbalance.gain_s.unwrap() - 1e-3).abs() < 1e-9, "{:?}", imbalance.gain_s);
    // Without the barrier the slow rank takes as long as before, but for the messages of the barrier.
    let barrier = problem("wait at barrier");
    assert!((barrier.duration_s - 2e-3).abs() < 1e-4 && barrier.gain_s.unwrap() < 1e-4, "{barrier:?}");
    assert_eq!(found.problems[0].name, "load imbalance");
}

#[test]
fn rules_are_checked_when_they_are_read() {
    let rule = |rest: &str| {
        let needed = [
            ("name", "'p'"),
            ("when", "'time > 0'"),
            ("duration", "'time'"),
            ("description", "''"),
            ("recommendation", "''"),
        ];
        let missing = needed.iter().filter(|(key, _)| !rest.contains(&format!("{key} =")));
        let missing: String = missing.map(|(key, value)| format!("{key} = {value}\n")).collect();
        format!("[[problem]]\n{missing}{rest}")
    };
    for (text, words) in [
        ("problem = 3".to_owned(), "invalid type"),
        (String::new(), "found no rule; add a [[problem]], which names an event with `of`"),
        (
            "[[event]]\nname = 'a'\nwhen = '1'\n".to_owned(),
            "found 1 [[event]], but no [[problem]]; add a [[problem]]",
        ),
        ("[[problem]]\nname = 'p'".to_owned(), "[[problem]] \"p\": missing field `when`"),
        (rule("colour = 1"), "[[problem]] \"p\": unknown field `colour`"),
        (
            rule("when = 'tme > 0'"),
            "when: \"tme > 0\": there is no variable \"tme\"; expected of time, waiting,",
        ),
        (rule("when = 'time >'"), "when: \"time >\": "),
        (rule("duration = 'saturated'"), "duration: \"saturated\": there is no variable"),
        (rule("of = 'event'"), "of: there is no event \"event\"; expected of place, link, run"),
        (rule("of = 'run'\ncalls = ['send']"), "calls: places have calls"),
        (rule("calls = ['sent']"), "calls: there is no action \"sent\"; expected of "),
        (
            rule("recommendation = 'See {site}.'"),
            "recommendation: there is no variable \"site\"; expected sites, or of time,",
        ),
        (
            "[[event]]\nname = 'a'\nwith = 'b'\nby = 'delayed_by'\nwhen = '1'\n".to_owned()
                + &rule("of = 'a'"),
            "[[event]] \"a\": with: there is no event \"b\"",
        ),
        (
            "[[event]]\nname = 'a'\nwith = 'a'\nby = 'delayed_by'\nwhen = '1'\n".to_owned() + &rule(""),
            "[[event]] \"a\": with: the event depends on itself: a of a",
        ),
        (
            "[[event]]\nname = 'a'\nwith = 'place'\nby = 'near'\nwhen = '1'\n".to_owned() + &rule(""),
            "by: there is no relation \"near\"; expected of delayed_by, same_site",
        ),
        (
            "[[event]]\nname = 'a'\nwith = 'link'\nby = 'same_site'\nwhen = '1'\n".to_owned() + &rule(""),
            "with: only events of places are joined",
        ),
        (
            "[[event]]\nname = 'a'\nwith = 'place'\nwhen = '1'\n".to_owned() + &rule(""),
            "by: a relation is needed",
        ),
        (
            "[[event]]\nname = 'a'\nby = 'same_site'\nwhen = '1'\n".to_owned() + &rule(""),
            "with: an event is needed",
        ),
        (rule("when = 'other_time > 0'"), "there is no variable \"other_time\""),
        (rule("recommendation = 'See {other_sites}.'"), "there is no variable \"other_sites\""),
        (rule("least_share = 2"), "least_share is 2, expected 0 to 1"),
        (rule("hypothesis = [{ kind = 'unbalance' }]"), "there is no kind \"unbalance\""),
        (rule("set = ['platform.rooting=random']"), "rooting"),
        (rule("set = ['platform.routing=straight']"), "straight"),
        (rule("set = ['engine.threads=2']"), "sections other than trace, output and engine"),
        (rule("") + &rule(""), "[[problem]] \"p\": the name occurs twice"),
        (
            "[[event]]\nname = 'link'\nwhen = '1'\n".to_owned() + &rule(""),
            "[[event]] \"link\": the name occurs twice",
        ),
        (
            "[[event]]\nname = 'a'\nof = 'b'\nwhen = '1'\n[[event]]\nname = 'b'\nof = 'a'\nwhen = '1'\n"
                .to_owned()
                + &rule(""),
            "[[event]] \"a\": of: the event depends on itself: a of b of a",
        ),
        (
            "[[event]]\nname = 'a'\nwhen = '1'\namounts = { time = '2' }\n".to_owned() + &rule(""),
            "amounts: there is a variable \"time\" already",
        ),
    ] {
        let error = Rule::from_text(&text, "own.toml").unwrap_err().to_string();
        assert!(error.starts_with("own.toml: ") && error.contains(words), "{text}\n{error}");
    }
}

/// Events are restricted by events, and name amounts, which later expressions use.
#[test]
fn own_rules() {
    let rules = "[[event]]\nname = 'long'\ncalls = ['compute']\nwhen = 'time > 0.001'\namounts = { half = 'time / 2' }\n\
        [[event]]\nname = 'longer'\nof = 'long'\nwhen = 'half > 0.002'\namounts = { quarter = 'half / 2' }\n\
        [[problem]]\nname = 'quarter'\nof = 'longer'\nwhen = '1'\nduration = 'quarter'\ndescription = 'Long.'\n\
        recommendation = 'See {sites}: {count} of {quarter} s.'\n";
    let trace = program(2, |_| {
        ["a", "b", "c"]
            .iter()
            .zip([0.1, 1.5, 3.0])
            .map(|(site, time)| format!("location {site} 0;{}", compute(time)))
            .collect()
    });
    let folder = Folder::new();
    let spec = config(&folder, &trace, CLUSTER).resolve().unwrap();
    let rules = Rule::from_text(rules, "own.toml").unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &spec, &rules).unwrap().unwrap();
    let [problem] = &found.problems[..] else { panic!("{:?}", found.problems) };
    assert_eq!((&problem.sites[..], problem.duration_s), (&["c".to_owned()][..], 1.5e-3));
    assert_eq!(problem.recommendation, "See c: 2 of 0.001500 s.");
}

#[test]
fn own_rules_are_beside_those_of_the_program() {
    let folder = Folder::new();
    let rules = folder.write(
        "own.toml",
        "[[problem]]\nname = 'much work'\nof = 'work'\nwhen = 'mean_time > 0'\nduration = 'time'\ndescription = ''\n\
         recommendation = ''\n[[problem]]\nname = 'late sender'\nwhen = '0 > 1'\nduration = '0'\ndescription = ''\nrecommendation = ''\n",
    );
    let rules = Rule::own_and_from_path(&rules).unwrap();
    assert_eq!(rules.len(), Rule::own().len() + 1, "one is new, one takes the place of another");
    let spec = config(&folder, &message("send", 8, [3.0, 1.0]), CLUSTER).resolve().unwrap();
    let found = Diagnosis::new(&mut Cluster::alone(), &spec, &rules).unwrap().unwrap();
    let names: Vec<_> = found.problems.iter().map(|problem| problem.name.as_str()).collect();
    assert!(names.contains(&"much work") && !names.contains(&"late sender"), "{names:?}");
    assert!(names.contains(&"serialization") || names.contains(&"load imbalance"), "{names:?}");
}

/// The problems that Performance Expert found in its heart model, with the gain of the recommendation beside that of the program that
/// follows it.
#[test]
fn the_heart_model() {
    const LATTICE: &str =
        "kind = 'cluster'\nhosts = 9\nspeed = '1Gf'\nbandwidth = '125MBps'\nlatency = '50us'\n";
    let folder = Folder::new();
    let config = config(&folder, &heart(false), LATTICE);
    let spec = config.clone().resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    found.simulate_gains(&config).unwrap();
    let problem = |name: &str| found.problems.iter().find(|problem| problem.name == name).unwrap();
    let (late, early) = (problem("late sender"), problem("early reduce"));
    assert!((late.share - 0.406).abs() < 0.001, "{late:?}");
    assert!((early.share - 0.013).abs() < 0.001, "{early:?}");
    assert_eq!(
        (late.sites.as_slice(), early.sites.as_slice()),
        (&["halo".to_owned()][..], &["gather".to_owned()][..])
    );
    assert!(late.recommendation.contains("at halo by nonblocking receives"), "{}", late.recommendation);
    // The ranks at the beginning of the front wait for messages of the others, the others for those of the front.
    assert_eq!(
        (late.ranks, late.rank_times_s.len(), late.states.as_slice()),
        (9, 9, &["late_sender".to_owned()][..])
    );
    let followed = diagnose(&heart(true), LATTICE, &[]);
    let (promised, kept) = (late.gain_s.unwrap(), found.simulated_time_s - followed.simulated_time_s);
    assert!(kept > 0.5 * found.simulated_time_s, "{kept}");
    assert!((promised / kept - 1.0).abs() < 0.03, "{promised} s promised, {kept} s kept");
    let names: Vec<_> = followed.problems.iter().map(|problem| problem.name.as_str()).collect();
    assert!(!names.contains(&"late sender") && !names.contains(&"serialization"), "{names:?}");
}

/// The diagnosis of a program that is fast-forwarded is that of the program that is replayed in full, to the picosecond.
#[test]
fn problems_are_extrapolated_exactly() {
    let folder = Folder::new();
    let [lu, wrong_order] = ["lu.pdt", "wrong-order.pdt"].map(|name| folder.path(name));
    let generate = ["trace", "generate", "npb-lu", "--class", "S", "--ranks", "4"];
    command().args(generate).arg("-o").arg(&lu).assert().code(DONE);
    let step =
        ["recv 1 0 8;recv 2 0 8;".to_owned(), compute(3.0) + "send 0 0 8;", compute(1.0) + "send 0 0 8;"];
    let text = program(3, |rank| (step[rank as usize].clone() + "allreduce 8 0;").repeat(40));
    let mut convert = command();
    convert.args(["trace", "convert"]).arg(folder.write("text.txt", &text)).arg("-o").arg(&wrong_order);
    convert.assert().code(DONE);
    for trace in [lu, wrong_order] {
        let [forwarded, full] = ["true", "false"].map(|is_forwarded| {
            let mut config = config(&folder, "0 init", CLUSTER);
            config.set_path("trace", "path", &trace);
            config.set("network.model=contention-free").unwrap();
            config.set(&format!("engine.fast_forward={is_forwarded}")).unwrap();
            let spec = config.resolve().unwrap();
            let found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
            assert!(found.problems.len() > 2, "{:?}", found.problems);
            serde_json::to_value(found).unwrap()
        });
        assert_eq!(forwarded, full);
    }
}

/// One answer on any number of threads and processes, and the fields that scripts rely on.
#[test]
fn the_command() {
    let folder = Folder::new();
    let trace = rounds(|round, rank| f64::from(1 + (round * rank) % 3));
    config(&folder, &trace, CLUSTER);
    let run = folder.path("run.toml").display().to_string();
    let json = |name: &str| folder.path(name);
    let read = |name: &str| serde_json::from_slice::<Value>(&std::fs::read(json(name)).unwrap()).unwrap();
    let assert = command().args(["diagnose", &run, "--json"]).arg(json("one.json")).assert().code(DONE);
    let assert = assert.stdout(contains("parallel efficiency").and(contains("wait at barrier")));
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let one = read("one.json");
    for key in [
        "load_balance",
        "communication_efficiency",
        "serialization_efficiency",
        "transfer_efficiency",
        "parallel_efficiency",
        "ideal_time_s",
    ] {
        assert!(one["pop"][key].is_f64(), "{key}");
    }
    for key in ["name", "duration_s", "share", "gain_s", "sites"] {
        assert!(one["problems"][0].get(key).is_some(), "{key}");
    }
    let path = json("processes.json").display().to_string();
    let arguments =
        ["diagnose", &run, "--set=parallel.oversubscribe=true", "--set=network.model=contention-free"];
    command().args(arguments).arg("--json").arg(json("alone.json")).assert().code(DONE);
    command().args(arguments).args(["--threads=3", "--json"]).arg(json("threads.json")).assert().code(DONE);
    assert_eq!(read("threads.json"), read("alone.json"));
    if cfg!(feature = "mpi") {
        mpirun(2, &[&arguments[..], &["--json", &path]].concat()).code(DONE);
        assert_eq!(read("processes.json"), read("alone.json"));
    }

    // Limits for CI, and efficiencies for TALP-Pages.
    let limited = |limit: &str| command().args(["diagnose", &run, "--fail-on", limit]).assert();
    limited("wait at barrier>99%").code(DONE);
    limited("problem>1%").code(FAILED).stderr(contains("% of the time, expected at most 1.0 %"));
    limited("late lunch>1%")
        .code(MISUSE)
        .stderr(contains("there is no problem \"late lunch\"; expected of late sender,"));
    limited("problem").code(MISUSE).stderr(contains("such as 'late sender>5%'"));
    let talp = [
        "--talp",
        &json("talp.json").display().to_string(),
        "--reference",
        &json("one.json").display().to_string(),
    ]
    .map(str::to_owned);
    let assert = command().args(["diagnose", &run]).args(talp).assert().code(DONE);
    assert.stdout(contains("global efficiency"));
    let talp = read("talp.json");
    assert_eq!(talp["resources"]["numMpiRanks"], 4);
    assert_eq!(talp["Application"]["Global"]["parallelEfficiency"], one["pop"]["parallel_efficiency"]);
    // Times are in nanoseconds, and the mean of the ranks is that of the application.
    let global = |key: &str| talp["Application"]["Global"][key].as_i64().unwrap();
    assert_eq!(global("elapsedTime"), (1e9 * one["simulated_time_s"].as_f64().unwrap()).round() as i64);
    assert_eq!(4 * global("elapsedTime"), global("usefulTime") + global("mpiTime"));
    assert_eq!(global("usefulTime"), 4 * global("usefulNormdApp"));
    assert_eq!(talp["Application"]["Global"]["instructions"], one["pop"]["flops"]);

    // Mistakes.
    let none = folder.path("none.toml");
    let assert = command().args(["diagnose", &run, "--rules"]).arg(&none).assert().code(FAILED);
    assert.stderr(contains("cannot read the rules").and(contains("none.toml")));
    let assert = command().args(["diagnose", &run, "--rules", &run]).assert().code(MISUSE);
    assert.stderr(contains("unknown field `network`, expected `event` or `problem`"));
    command().arg("diagnose").assert().code(MISUSE).stderr(contains("nothing to replay: give --config FILE"));
    let assert = command().arg("diagnose").arg(folder.path("trace.txt")).assert().code(MISUSE);
    assert.stderr(contains("the trace has no measured times: name a platform with --platform"));
}

/// A trace with measured times is diagnosed without a platform: as it was recorded.
#[test]
fn a_recorded_run() {
    let folder = Folder::new();
    // Rank 0 computes 3 ms, and waits 1 ms in the barrier; rank 1 computes 4 ms.
    let trace = "0 init\n0 location work 0\n0 compute 7 time=3000000\n0 barrier time=1000000\n\
        1 init\n1 location work 0\n1 compute 7 time=4000000\n1 barrier time=0\n";
    let trace = folder.write("trace.txt", trace);
    let json = folder.path("found.json");
    command().arg("diagnose").arg(&trace).arg("--json").arg(&json).assert().code(DONE);
    let found: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let pop = &found["pop"];
    for (key, expected) in [
        ("parallel_efficiency", 0.875),
        ("load_balance", 0.875),
        ("communication_efficiency", 1.0),
        ("ideal_time_s", 0.004),
    ] {
        assert!((pop[key].as_f64().unwrap() - expected).abs() < 1e-12, "{key}: {}", pop[key]);
    }
    assert_eq!(found["simulated_time_s"], 0.004);
    let region = &found["regions"][0];
    assert_eq!((&region["site"], &region["load_balance"]), (&Value::from("work"), &Value::from(0.875)));
    assert_eq!(
        (&region["serialization_efficiency"], &region["flops"]),
        (&Value::from(1.0), &Value::from(14.0))
    );
}

/// EPOCH on 1, 2 and 8 ranks, recorded by Extrae: efficiencies as POP's tools print them, and the time on Dimemas' ideal network.
#[test_with::shared]
fn efficiencies_of_recorded_runs_are_those_of_pop() {
    let samples = shared("samples/paraver");
    let published = rows(&samples.join("expected.csv"));
    let folder = Folder::new();
    let first = folder.path("first.json");
    for ranks in [1, 2, 8] {
        let name = format!("epoch_{ranks}proc");
        let json = folder.path("found.json");
        let trace = samples.join("data").join(format!("{name}.prv.gz"));
        if ranks == 1 {
            command().arg("diagnose").arg(&trace).arg("--json").arg(&first).assert().code(DONE);
        }
        let mut diagnose = command();
        diagnose.arg("diagnose").arg(trace).arg("--reference").arg(&first).arg("--json").arg(&json);
        diagnose.assert().code(DONE);
        let found: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let compare = |quantity: &str, found: f64, tolerance: f64| {
            let row =
                published.iter().find(|row| row["sample"] == name && row["quantity"] == quantity).unwrap();
            let expected: f64 = row["value"].parse().unwrap();
            let error = (found - expected).abs();
            assert!(error <= tolerance * expected, "{name}: {quantity} {found}, expected {expected}");
        };
        let pop = |key: &str| found["pop"][key].as_f64().unwrap();
        for key in ["parallel_efficiency", "load_balance", "communication_efficiency"] {
            // Eight decimals are printed.
            compare(key, pop(key), 5.1e-9);
        }
        for key in ["computation_scaling", "global_efficiency"] {
            compare(key, found["scaling"][key].as_f64().unwrap(), 5.1e-9);
        }
        compare("serialisation_efficiency", pop("serialization_efficiency"), 1e-3);
        compare("transfer_efficiency", pop("transfer_efficiency"), 1e-3);
        compare("runtime", 1e6 * pop("time_s"), 1e-9);
        compare("runtime_ideal_network", 1e6 * pop("ideal_time_s"), 1e-3);
        compare("useful_total", 1e6 * pop("useful_s"), 1e-9);
    }
}

/// Two messages of 1 MB, one after the other: 2 * (2 * 10 us + 1 ms + 16 ns) beside 10 ms of computation.
#[test]
fn a_tolerance_has_a_closed_form() {
    let round = |rank: u32| {
        let lines = if rank == 0 {
            "send 1 0 1000000;recv 1 0 1000000;"
        } else {
            "recv 0 0 1000000;send 0 0 1000000;"
        };
        compute(10.0) + lines
    };
    let folder = Folder::new();
    let spec = config(&folder, &program(2, round), CLUSTER).resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    found.find_tolerance(&spec).unwrap();
    let time = found.simulated_time_s;
    let tolerance = found.tolerance.unwrap();
    for (sensitivity, expected) in [(tolerance.latency, 2.0 * 2e-5), (tolerance.time_per_byte, 2.0 * 1e-3)] {
        assert!(
            (sensitivity.time_s / expected - 1.0).abs() < 0.01,
            "{}, expected {expected}",
            sensitivity.time_s
        );
        assert_eq!(sensitivity.limits.len(), 3);
        for limit in sensitivity.limits {
            // Each percent of the run time more is that part of the time which is proportional to the property.
            let factor = 1.0 + limit.more_time * time / expected;
            let found = limit.factor.unwrap();
            assert!((found / factor - 1.0).abs() < 0.01, "{found}, expected {factor}");
        }
    }
    // Without messages the network may be as slow as it likes.
    let folder = Folder::new();
    let spec = config(&folder, &program(2, |_| compute(1.0)), CLUSTER).resolve().unwrap();
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &Rule::own()).unwrap().unwrap();
    found.find_tolerance(&spec).unwrap();
    let latency = found.tolerance.unwrap().latency;
    assert_eq!((latency.time_s, latency.limits[0].factor), (0.0, None));
}

/// The factors of each class of links are those that a sweep finds: with the platform written with slower links.
#[test]
fn tolerances_of_classes_are_those_of_sweeps() {
    // Two ranks on each of four hosts, two hosts at each of two switches with a cable between them.
    let trace = program(8, |rank| {
        let exchange = |peer: u32| {
            let (first, second) = if rank < peer { ("send", "recv") } else { ("recv", "send") };
            format!("{first} {peer} 0 20000;{second} {peer} 0 20000;")
        };
        compute(1.0 + 0.1 * f64::from(rank)) + &exchange(rank ^ 4) + &exchange(rank ^ 2) + &exchange(rank ^ 1)
    });
    let platform = |[inside, leaf, spine]: [f64; 3]| {
        let mut text =
            "<?xml version='1.0'?>\n<platform version='4.1'><zone id='all' routing='Full'>\n".to_owned();
        for host in 0..4 {
            writeln!(text, "<host id='node-{host}' speed='1Gf' core='2'/>").unwrap();
        }
        let mut link = |name: &str, factor: f64| {
            let latency = 10.0 * factor;
            writeln!(text, "<link id='{name}' bandwidth='1GBps' latency='{latency}us'/>").unwrap();
        };
        link("spine", spine);
        for host in 0..4 {
            link(&format!("inside-{host}"), inside);
            link(&format!("leaf-{host}"), leaf);
        }
        for (from, to) in (0..4).flat_map(|from| (from..4).map(move |to| (from, to))) {
            let links = match (from == to, from / 2 == to / 2) {
                (true, _) => vec![format!("inside-{from}")],
                (_, true) => vec![format!("leaf-{from}"), format!("leaf-{to}")],
                _ => vec![format!("leaf-{from}"), "spine".to_owned(), format!("leaf-{to}")],
            };
            let links: String = links.iter().map(|link| format!("<link_ctn id='{link}'/>")).collect();
            writeln!(text, "<route src='node-{from}' dst='node-{to}'>{links}</route>").unwrap();
        }
        text + "</zone></platform>\n"
    };
    let folder = Folder::new();
    let run = |factors: [f64; 3]| {
        folder.write("trace.txt", &trace);
        folder.write("platform.xml", &platform(factors));
        folder.write("hosts.txt", &(0..8).map(|rank| format!("node-{}\n", rank / 2)).collect::<String>());
        let text = "[trace]\npath = 'trace.txt'\n[network]\npreset = 'raw'\nmodel = 'contention-free'\n\
            [platform]\nfile = 'platform.xml'\nhosts = 'hosts.txt'\n";
        Config::from_path(&folder.write("run.toml", text)).unwrap().resolve().unwrap()
    };
    let spec = run([1.0; 3]);
    let mut found = Diagnosis::new(&mut Cluster::alone(), &spec, &[]).unwrap().unwrap();
    found.find_tolerance(&spec).unwrap();
    let tolerance = found.tolerance.unwrap();
    let of = |factors: [f64; 3]| {
        Diagnosis::new(&mut Cluster::alone(), &run(factors), &[]).unwrap().unwrap().simulated_time_s
    };
    assert_eq!(tolerance.classes.len(), 3);
    for (place, class) in tolerance.classes.iter().enumerate() {
        let limit = class.latency.limits[1];
        let with = |factor: f64| {
            let mut factors = [1.0; 3];
            factors[place] = factor;
            of(factors) / found.simulated_time_s
        };
        let factor = limit.factor.unwrap();
        assert!(with(factor) <= 1.05 && with(1.002 * factor) > 1.05, "{class:?}");
        assert!((limit.value.unwrap() / (factor * 10e-6) - 1.0).abs() < 1e-9, "{class:?}");
    }
    // The end of the run waits for whole latencies.
    for class in &tolerance.classes {
        let latencies = class.latency.derivative.unwrap();
        assert!(latencies > 0.99 && (latencies - latencies.round()).abs() < 0.01, "{class:?}");
    }
}

#[test]
#[cfg_attr(not(feature = "pictures"), ignore = "needs pages")]
fn the_page_has_all_of_it() {
    let folder = Folder::new();
    let trace = program(4, |rank| {
        format!("location solve 0;{}location wait 0;barrier;", compute(f64::from(1 + rank)))
    });
    config(&folder, &trace, CLUSTER);
    let (page, json) = (folder.path("page.html"), folder.path("one.json"));
    let run = folder.path("run.toml");
    command().arg("diagnose").arg(&run).arg("--json").arg(&json).assert().code(DONE);
    let mut diagnose = command();
    diagnose.arg("diagnose").arg(&run).args(["--gain", "--tolerance", "--page"]).arg(&page);
    diagnose.arg("--reference").arg(&json).assert().code(DONE).stdout(contains("largest factor with"));
    let text = std::fs::read_to_string(page).unwrap();
    for words in [
        "trace.txt on inline (flow, preset raw)",
        "[\"one\",4]",
        "[\"this run\",4]",
        "computation scaling",
        "load imbalance",
        "Distribute the work at solve",
        "\"gain_s\":",
        "\"limits\":[",
    ] {
        assert!(text.contains(words), "{words}");
    }
}

/// The page of a report has the diagnosis of the run, whose problems stand out on its timeline.
#[test]
#[cfg_attr(not(feature = "pictures"), ignore = "needs pages")]
fn the_page_of_a_report_has_a_diagnosis() {
    let folder = Folder::new();
    config(&folder, &heart(false), &CLUSTER.replace("hosts = 8", "hosts = 9"));
    let [run, report, timeline, json, page] =
        ["run.toml", "report.json", "timeline.json", "found.json", "page.html"].map(|name| folder.path(name));
    command().arg("diagnose").arg(&run).arg("--json").arg(&json).assert().code(DONE);
    let mut replay = command();
    replay.arg("--config").arg(&run).arg("--report").arg(&report).arg("--timeline").arg(&timeline);
    replay.assert().code(DONE);
    let mut present = command();
    present.arg("report").arg(&report).arg("--diagnosis").arg(&json).arg("--timeline").arg(&timeline);
    present.arg("-o").arg(&page).assert().code(DONE);
    let text = std::fs::read_to_string(page).unwrap();
    for words in ["\"problems\":[{", "\"efficiencies\":{", "\"timelines\":[{", "\"states\":[\"late_sender\"]"]
    {
        assert!(text.contains(words), "{words}");
    }
    let damaged = command()
        .arg("report")
        .arg(&report)
        .arg("--diagnosis")
        .arg(&run)
        .arg("-o")
        .arg(folder.path("p.html"))
        .assert();
    damaged.code(FAILED).stderr(contains("the diagnosis ").and(contains("run.toml")));
}
