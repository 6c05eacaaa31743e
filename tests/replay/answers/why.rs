//! Causes of differences between runs.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use answers::{Caveat, Factor, Why};
use pdes_replay::{Config, RunSpec};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use super::{CLUSTER, TORUS, TREE, config, exchanges, pipeline, program, time, transpose};
use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

fn why(jobs: [&RunSpec; 2]) -> Why {
    let why = Why::of(jobs, &[], Caveat::default(), 2, &AtomicU64::new(0)).unwrap();
    // The parts add up, to the picosecond.
    assert_eq!(why.difference_ps, time(jobs[1]) as i64 - time(jobs[0]) as i64);
    assert_eq!(why.causes.iter().map(|cause| cause.time_ps).sum::<i64>(), why.difference_ps);
    if let Some(contention) = why.contention_ps {
        assert_eq!(why.causes.iter().map(|cause| cause.contention_ps.unwrap()).sum::<i64>(), contention);
    }
    why
}

fn changed(config: &Config, settings: &[&str]) -> RunSpec {
    let mut config = config.clone();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config.resolve().unwrap()
}

/// Checks that one cause has at least 95 % of the blame, and that others have next to none.
fn assert_blamed(why: &Why, name: &str) {
    let cause = &why.causes[0];
    let share = cause.time_ps as f64 / why.difference_ps as f64;
    assert!(cause.name == name && (0.95..1.05).contains(&share), "{name}: {why:?}");
    let others: u64 = why.causes[1..].iter().map(|cause| cause.time_ps.unsigned_abs()).sum();
    assert!(others as f64 <= 0.05 * why.difference_ps.unsigned_abs() as f64, "{name}: {why:?}");
}

/// Eight hosts around a switch, as SimGrid's XML: host 3 may be slower, and so may its link be.
fn star(speed: f64, bandwidth: f64) -> String {
    let mut text =
        "<?xml version='1.0'?>\n<platform version='4.1'><zone id='all' routing='Full'>\n".to_owned();
    for host in 0..8 {
        let (speed, bandwidth) = if host == 3 { (1e6 * speed, 1e6 * bandwidth) } else { (1e6, 1e6) };
        writeln!(text, "<host id='node-{host}' speed='{speed}f'/>").unwrap();
        writeln!(text, "<link id='link-{host}' bandwidth='{bandwidth}Bps' latency='10ms'/>").unwrap();
    }
    for (from, to) in (0..8).flat_map(|from| (from + 1..8).map(move |to| (from, to))) {
        let links = format!("<link_ctn id='link-{from}'/><link_ctn id='link-{to}'/>");
        writeln!(text, "<route src='node-{from}' dst='node-{to}'>{links}</route>").unwrap();
    }
    text + "</zone></platform>\n"
}

/// What hardly matters differs beside each planted cause: a latency by a ten-thousandth, a cost of the library by a nanosecond.
const NOISE: [&str; 2] = ["network.latency_scale = 1.0001", "mpi.send_overhead = '0:1ns:0'"];

#[test]
fn planted_causes_have_the_blame() {
    for model in ["contention-free", "flow"] {
        let folder = Folder::new();
        let base = config(&folder, &exchanges(), TREE, model);
        let path = |name: &str| folder.path(name).display().to_string();
        folder.write("star.xml", &star(1.0, 1.0));
        folder.write("slow-host.xml", &star(0.5, 1.0));
        folder.write("slow-link.xml", &star(1.0, 0.2));
        folder.write("shuffled.txt", "node-0\nnode-4\nnode-1\nnode-5\nnode-2\nnode-6\nnode-3\nnode-7\n");
        folder.write("longer.txt", &exchanges().replace("compute 1000000", "compute 2500000"));
        let star = format!("platform.file = '{}'", path("star.xml"));
        let planted = [
            ("computation", &star, format!("platform.file = '{}'", path("slow-host.xml"))),
            ("bandwidth", &star, format!("platform.file = '{}'", path("slow-link.xml"))),
            ("latency", &star, "network.latency_scale = 4".to_owned()),
            ("algorithms", &star, "mpi.allreduce = 'lr'".to_owned()),
            ("computation", &star, "compute.region_speeds = { solve = 0.5 }".to_owned()),
            ("program", &star, format!("trace.path = '{}'", path("longer.txt"))),
            ("placement", &star, String::new()),
        ];
        for (name, platform, setting) in planted {
            let first = match name {
                // On a star all places are alike, on a tree they are not.
                "placement" => base.clone(),
                _ => {
                    let mut config = base.clone();
                    config.set(platform).unwrap();
                    config.set("platform.placement = 'block'").unwrap();
                    config
                }
            };
            let setting = match name {
                "placement" => format!("platform.hosts = '{}'", path("shuffled.txt")),
                _ => setting,
            };
            let second = changed(&first, &[&NOISE[..], &[&setting]].concat());
            let found = why([&first.resolve().unwrap(), &second]);
            assert_blamed(&found, name);
        }
    }
}

/// Two changes that only help together share what they gain; alone neither of them helps.
#[test]
fn parts_of_changes_that_need_each_other() {
    // The ranks at both ends of a message compute 1 s each: it is not earlier unless both are faster.
    let trace = program(|rank| match rank {
        0 => "compute 1000000;".to_owned(),
        1 => "sleep 0.5;send 2 0 499984;".to_owned(),
        2 => "recv 1 0 499984;".to_owned(),
        _ => String::new(),
    });
    let folder = Folder::new();
    let first = config(&folder, &trace, CLUSTER, "contention-free");
    let second = changed(&first, &["network.bandwidth_scale = 2", "compute.region_speeds = { '' = 2 }"]);
    let found = why([&first.clone().resolve().unwrap(), &second]);
    // 1.02 s of messages beside 1 s of computation; with twice the bandwidth 0.77 s, with twice the speed 0.5 s.
    let parts: Vec<(&str, i64, i64, i64)> = found
        .causes
        .iter()
        .map(|cause| (cause.name.as_str(), cause.time_ps, cause.alone_ps, cause.last_ps))
        .collect();
    let expected = [
        ("bandwidth", -135_000_000_000, -20_000_000_000, -250_000_000_000),
        ("computation", -115_000_000_000, 0, -230_000_000_000),
    ];
    assert_eq!(parts, expected);
    assert_eq!(found.contention_ps, None);
}

/// A torus with other values in place of a tree: the values of links that are alike go from one to the other.
#[test]
fn machines_of_other_shapes_are_compared() {
    let folder = Folder::new();
    let first = config(&folder, &transpose(), TREE, "flow");
    let torus = TORUS.replace("1Mf", "2Mf").replace("10ms", "1ms");
    let second = changed(&first, &[&format!("platform.topology = {torus}")]);
    let found = why([&first.resolve().unwrap(), &second]);
    let mut names: Vec<&str> = found.causes.iter().map(|cause| cause.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["computation", "latency", "topology"]);
    let part = |name: &str| found.causes.iter().find(|cause| cause.name == name).unwrap().time_ps;
    assert!(part("computation") < 0 && part("latency") < 0, "{found:?}");
    assert!(found.contention_ps.is_some());
}

/// Nine differences: their orders are sampled, and the parts still add up.
#[test]
fn many_differences_are_sampled() {
    let folder = Folder::new();
    let first = config(&folder, &pipeline(), TREE, "contention-free");
    folder.write("other.txt", &exchanges());
    let trace = format!("trace.path = {:?}", folder.path("other.txt"));
    let torus = format!(
        "platform.topology = {}",
        TORUS.replace("1Mf", "2Mf").replace("10ms", "1ms").replace("1MB", "3MB")
    );
    let second = changed(
        &first,
        &[
            &trace,
            &torus,
            "platform.placement = 'cyclic'",
            "mpi.bcast = 'flattree'",
            "mpi.irecv_s = '3ms'",
            "network.latency_factor = 2",
        ],
    );
    let found = why([&first.resolve().unwrap(), &second]);
    assert_eq!((found.causes.len(), found.sampled_orders), (9, Some(64)));
    assert!(found.causes.iter().all(|cause| cause.error_ps.is_some()));
}

/// Rank 2 is the first whose computation takes longer.
#[test]
fn the_first_event_that_differs_is_found() {
    let folder = Folder::new();
    let trace = |work: u32| {
        program(move |rank| {
            format!(
                "compute 1000000;location here 0;compute {};barrier;",
                if rank == 2 { work } else { 500_000 }
            )
        })
    };
    let first = config(&folder, &trace(400_000), CLUSTER, "flow");
    folder.write("other.txt", &trace(600_000));
    let second = changed(&first, &[&format!("trace.path = {:?}", folder.path("other.txt"))]);
    let first = first.resolve().unwrap();
    let found = why([&first, &second]);
    let event = found.first_difference.unwrap();
    let times = [event.one.as_ref().unwrap().end_ps, event.other.as_ref().unwrap().end_ps];
    assert_eq!((event.rank, times), (2, [1_400_000_000_000, 1_600_000_000_000]));
    assert_eq!(event.one.unwrap().site.as_deref(), Some("here:0"));
    let paths = found.paths.unwrap();
    let steps = &paths.steps;
    assert!(steps.iter().any(|step| step.rank == 2), "{steps:?}");
    assert_eq!((steps[0].action, steps[0].site.as_deref()), (Some("compute"), Some("here:0")), "{steps:?}");
    // All of the difference is in the one place.
    let changes: Vec<(&str, i64)> = paths
        .sites
        .iter()
        .map(|site| (site.name.as_str(), site.other_ps as i64 - site.one_ps as i64))
        .collect();
    assert_eq!(changes, [("here:0", found.difference_ps)]);
    let same = why([&first, &first]);
    assert_eq!((same.causes.len(), same.difference_ps, same.first_difference), (0, 0, None));
}

/// The end of a pipeline waits for rank 0, whose messages cross the links of the ranks one after the other.
#[test]
fn the_chain_of_causes_has_links() {
    let folder = Folder::new();
    let first = config(&folder, &pipeline(), TREE, "flow");
    let second = changed(&first, &["platform.topology.bandwidth = '500kBps'"]);
    let first = first.resolve().unwrap();
    let found = why([&first, &second]);
    let paths = found.paths.unwrap();
    let platform = second.platform().unwrap();
    let names: Vec<&str> = platform.links().iter().map(|link| link.name.as_str()).collect();
    assert!(
        !paths.links.is_empty() && paths.links.iter().all(|link| names.contains(&link.name.as_str())),
        "{paths:?}"
    );
    // A step has a link where the rank is another one than before.
    for pair in paths.steps.windows(2) {
        assert!(pair[0].rank == pair[1].rank || pair[1].link.is_some(), "{pair:?}");
    }
    let of_steps = paths.steps.iter().filter(|step| step.link.is_some()).count() as u64;
    assert_eq!(paths.links.iter().map(|link| link.other).sum::<u64>(), of_steps);
    // Times by call site are those from the first difference to the ends.
    let begin = found.first_difference.map(|first| first.one.unwrap().begin_ps).unwrap();
    let sum = |time: fn(&answers::PathPart) -> u64| paths.sites.iter().map(time).sum::<u64>();
    assert_eq!(sum(|site| site.one_ps), found.runs[0].simulated_time_ps - begin);
    assert_eq!(sum(|site| site.other_ps), found.runs[1].simulated_time_ps - begin);
}

/// Two reports are the two runs that they are of; two traces, and two platforms, are runs with the rest of the first one.
#[test]
fn reports_traces_and_platforms_are_compared() {
    let folder = Folder::new();
    let base = config(&folder, &exchanges(), TREE, "contention-free");
    let (run, json) = (folder.path("run.toml"), folder.path("why.json"));
    let path = |name: &str| folder.path(name);
    let compare = |arguments: &[&std::ffi::OsStr]| {
        command().arg("why").args(arguments).arg("--json").arg(&json).assert().code(DONE);
        let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let names = found["causes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cause| cause["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), found["difference_ps"].as_i64().unwrap())
    };
    let setting = "network.latency_scale=3";
    for (name, set) in [("one.json", None), ("two.json", Some(setting))] {
        let mut replay = command();
        replay
            .arg("run")
            .arg(&run)
            .args(set.iter().flat_map(|set| ["--set", set]))
            .arg("--report")
            .arg(path(name));
        replay.assert().code(DONE);
    }
    let difference = |second: &RunSpec| time(second) as i64 - time(&base.clone().resolve().unwrap()) as i64;
    let expected = difference(&changed(&base, &[setting]));
    assert_eq!(
        compare(&[path("one.json").as_os_str(), path("two.json").as_os_str()]),
        (vec!["latency".to_owned()], expected)
    );
    let other = folder.write("other.txt", &exchanges().replace("compute 1000000", "compute 1500000"));
    let expected = difference(&changed(&base, &[&format!("trace.path = {other:?}")]));
    assert_eq!(compare(&[run.as_os_str(), other.as_os_str()]), (vec!["program".to_owned()], expected));
    let platform = folder.write("platform.toml", &format!("topology = {}\n", TREE.replace("1Mf", "2Mf")));
    let expected = difference(&changed(&base, &[&format!("platform.file = {platform:?}")]));
    assert_eq!(compare(&[run.as_os_str(), platform.as_os_str()]), (vec!["computation".to_owned()], expected));
    // A report without its configuration is refused.
    let old = std::fs::read_to_string(path("one.json")).unwrap().replace("\"configuration\"", "\"former\"");
    let old = folder.write("old.json", &old);
    command()
        .arg("why")
        .arg(&run)
        .arg(old)
        .assert()
        .code(MISUSE)
        .stderr(contains("carries no configuration"));
}

/// The answer of the command is the same for any number of threads and of replays at a time.
#[test]
fn the_command_writes_text_json_and_a_page() {
    let folder = Folder::new();
    config(&folder, &exchanges(), TREE, "flow");
    let (run, json, page) = (folder.path("run.toml"), folder.path("why.json"), folder.path("why.html"));
    let settings = ["--but", "network.bandwidth_scale=0.5", "--but", "mpi.allreduce=redbcast"];
    let mut answers = Vec::new();
    for (threads, jobs) in [("1", "1"), ("3", "2")] {
        let mut why = command();
        why.arg("why")
            .arg(&run)
            .args(settings)
            .args(["--threads", threads, "--jobs", jobs, "--json"])
            .arg(&json);
        let text =
            contains("bandwidth").and(contains("algorithms")).and(contains("the first event that differs"));
        why.assert().code(DONE).stdout(text.and(contains("causes in the model")));
        answers.push(std::fs::read_to_string(&json).unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    if cfg!(feature = "pictures") {
        let mut why = command();
        why.arg("why").arg(&run).arg(&run).args(settings).arg("--page").arg(&page).assert().code(DONE);
        assert!(std::fs::read_to_string(page).unwrap().contains("causes in the model"));
    }
    let why = |arguments: &[&str]| {
        let mut why = command();
        why.arg("why").arg(&run).args(arguments);
        why
    };
    why(&[]).assert().code(MISUSE).stderr(contains("there is no second run"));
    why(&["--but", "network.speed=1"]).assert().code(MISUSE).stderr(contains("network.speed"));
    why(&["--but", "mpi.bcast=flattree", "--together", "weather"])
        .assert()
        .code(MISUSE)
        .stderr(contains("placement"));
    // What fits only together is named, with the way out.
    let hosts = folder.write("hosts.txt", "absent\n");
    let but = format!("platform.hosts={}", hosts.display());
    why(&["--but", &but]).assert().code(FAILED).stderr(contains("absent"));
}

#[test]
fn factors_have_names() {
    assert!(Factor::ALL.into_iter().all(|factor| Factor::from_name(factor.name()) == Some(factor)));
}
