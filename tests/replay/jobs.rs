//! Jobs of a configuration: SimGrid's answers, placements, who delays whom, profiles, and what is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Config, RunSpec, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

use crate::checkpoints::replay_in_parts;
use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::{rows, unpack};
use crate::shared::shared;
use crate::trace_commands::trace;

/// Replays a configuration with these flags; returns the report.
pub(crate) fn report(folder: &Folder, config: &str, flags: &[&str]) -> Value {
    let (config, report) = (folder.write("run.toml", config), folder.path("report.json"));
    command().arg("run").arg(config).args(flags).arg("--report").arg(&report).assert().code(DONE);
    serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap()
}

pub(crate) fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Returns a field of each job.
pub(crate) fn each<'r>(report: &'r Value, field: &str) -> Vec<&'r Value> {
    report["jobs"].as_array().unwrap().iter().map(|job| &job[field]).collect()
}

/// Returns the settings of SimGrid's answers.
fn simgrid(platform: &Path) -> String {
    format!(
        "[platform]\nfile = {platform:?}\n[network]\nmodel = \"flow\"\npreset = \"smpi\"\nprecision_s = 1e-9\n"
    )
}

/// Ends of jobs together and alone; what a job loses to the others is the difference.
#[test_with::shared]
fn jobs_of_simgrid() {
    let oracle = shared("oracle/jobs");
    let unpacked = unpack(&shared("traces"));
    let mut expected = BTreeMap::<[String; 3], f64>::new();
    for row in rows(&oracle.join("expected.csv")) {
        let key = ["case", "quantity", "name"].map(|column| row[column].clone());
        expected.insert(key, row["value"].parse().unwrap());
    }
    let folder = Folder::new();
    let mut cases = BTreeMap::<String, (String, Vec<String>)>::new();
    for row in rows(&oracle.join("jobs.csv")) {
        let (case, job) = (&row["case"], &row["job"]);
        let own = oracle.join(&row["platform"]);
        let platform = if own.exists() { own } else { oracle.join("..").join(&row["platform"]) };
        let (config, names) = cases.entry(case.clone()).or_insert_with(|| (simgrid(&platform), Vec::new()));
        let own = oracle.join("traces").join(&row["trace"]).join("files.txt");
        let trace = if own.exists() { own } else { unpacked.path().join(&row["trace"]).join("files.txt") };
        let hosts = folder.write(&format!("{case}-{job}.txt"), &row["hosts"].replace(' ', "\n"));
        let (ranks, start) = (&row["ranks"], &row["start_s"]);
        write!(
            config,
            "[[job]]\nname = {job:?}\ntrace = {trace:?}\nranks = {ranks}\nhosts = {hosts:?}\nstart = {start}\n"
        )
        .unwrap();
        names.push(job.clone());
    }
    assert_eq!(cases.len(), 14);
    let mut differences = Vec::new();
    let mut compare = |what: String, found: f64, expected: f64| {
        if (found - expected).abs() > 1e-6 * expected {
            differences.push(format!("{what}: {found}, expected {expected}"));
        }
    };
    for (case, (config, names)) in &cases {
        let report = report(&folder, config, &["--slowdown"]);
        let value =
            |quantity: &str, name: &str| expected[&[case.as_str(), quantity, name].map(str::to_owned)];
        compare(format!("{case} makespan"), seconds(&report["simulated_time_s"]), value("makespan_s", ""));
        for (job, name) in report["jobs"].as_array().unwrap().iter().zip(names) {
            assert_eq!(job["name"], name.as_str());
            let [end, alone, time] = ["end_s", "alone_s", "simulated_time_s"].map(|key| seconds(&job[key]));
            compare(format!("{case} {name}"), end, value("end_s", name));
            compare(format!("{case} {name} alone"), alone, value("alone_s", name));
            assert!((time - (end - seconds(&job["start_s"]))).abs() < 1e-12, "{case} {name}");
            assert!((seconds(&job["slowdown"]) - time / alone).abs() < 1e-12, "{case} {name}");
            let lost = job["delayed_by"].as_array().unwrap().iter().map(|lost| seconds(&lost["lost_s"]));
            assert!((lost.sum::<f64>() - (time - alone)).abs() < 1e-12, "{case} {name}");
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Profiles of SimGrid's platforms, as they are: times to the printed digits, but for the events that our clock rounds to picoseconds.
#[test_with::shared]
fn profiles_of_simgrid() {
    let oracle = shared("oracle/profiles");
    let unpacked = unpack(&shared("traces"));
    let mut expected = BTreeMap::<String, Vec<(String, f64)>>::new();
    for row in rows(&oracle.join("expected.csv")).iter().filter(|row| row["quantity"].ends_with("_s")) {
        let value = (row["name"].clone(), row["value"].parse().unwrap());
        expected.entry(row["case"].clone()).or_default().push(value);
    }
    assert!(expected.len() > 25, "{}", expected.len());
    let folder = Folder::new();
    let mut differences = Vec::new();
    for row in rows(&oracle.join("cases.csv")) {
        let own = oracle.join("traces").join(&row["trace"]).join("files.txt");
        let trace = if own.exists() { own } else { unpacked.path().join(&row["trace"]).join("files.txt") };
        let hosts = folder.write("hosts.txt", &row["hosts"].replace(' ', "\n"));
        let cross_traffic = row["crosstraffic"] == "yes";
        let platform = simgrid(&oracle.join(&row["platform"]))
            .replace("\n[network]", &format!("\nhosts = {hosts:?}\n[network]"));
        let config = format!(
            "{platform}cross_traffic = {cross_traffic}\n[trace]\npath = {trace:?}\nranks = {}\n",
            row["ranks"]
        );
        let report = report(&folder, &config, &[]);
        for (rank, expected_s) in &expected[&row["case"]] {
            let found = match rank.parse::<usize>() {
                Ok(rank) => report["breakdown"]["ranks"]["end_ps"][rank].as_f64().unwrap() / 1e12,
                Err(_) => seconds(&report["simulated_time_s"]),
            };
            let difference = (found - expected_s).abs();
            if difference > 1e-9 + 1e-7 * expected_s {
                differences
                    .push(format!("{} {rank}: {found}, expected {expected_s}: {difference:e}", row["case"]));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// Hosts of 2 cores below leaf switches of 2 hosts, 2 of which are in a group.
const TREE: &str = "[platform]\ntopology = { kind = 'fat_tree', levels = [{ children = 2, parents = 1 }, { children = 2, parents = 1 }, \
    { children = 2, parents = 1 }], speed = '1Gf', cores = 2, bandwidth = '1GBps', latency = '1us' }\n";

/// Each of four ranks sends its number of kilobytes to the next one.
fn ring(folder: &Folder) -> String {
    let line = |rank: u32| {
        format!(
            "{rank} init\n{rank} isend {} 0 {}\n{rank} recv {} 0 {}\n{rank} waitall\n",
            (rank + 1) % 4,
            1000 * (rank + 1),
            (rank + 3) % 4,
            1000 * ((rank + 3) % 4 + 1)
        )
    };
    folder.write("ring.txt", &(0..4).map(line).collect::<String>()).display().to_string()
}

#[test]
fn placements_take_hosts_that_are_free() {
    let folder = Folder::new();
    let trace = ring(&folder);
    let job = |name: &str, placement: &str| {
        format!("[[job]]\nname = '{name}'\ntrace = '{trace}'\nplacement = '{placement}'\n")
    };
    let hosts = |jobs: &[(&str, &str)], settings: &str| -> Vec<u64> {
        let jobs: String = jobs.iter().map(|(name, placement)| job(name, placement)).collect();
        let report = report(&folder, &format!("{TREE}{settings}{jobs}"), &[]);
        each(&report, "hosts").into_iter().map(|hosts| hosts.as_u64().unwrap()).collect()
    };
    // Two hosts each, and four with one rank each.
    assert_eq!(hosts(&[("a", "contiguous"), ("b", "leaf"), ("c", "cyclic")], ""), [2, 2, 4]);
    assert_eq!(hosts(&[("a", "random"), ("b", "matrix"), ("c", "round-robin"), ("d", "block")], ""), [2; 4]);
    let failure = |config: &str, words: &[&str]| {
        let config = folder.write("wrong.toml", config);
        let mut assert = command().arg("run").arg(config).assert().code(FAILED);
        for &word in words {
            assert = assert.stderr(contains(word));
        }
    };
    let groups = [job("a", "group"), job("b", "group"), job("c", "group")].concat();
    failure(&format!("{TREE}{groups}"), &["the job \"c\" has 4 ranks", "0 cores, on 0 of 8 hosts", "\"a\""]);
    let cyclic = [job("a", "cyclic"), job("b", "cyclic"), job("c", "cyclic")].concat();
    failure(&format!("{TREE}{cyclic}"), &["the job \"c\"", "on 0 of 8 hosts"]);
    let large = job("a", "random") + "ranks = 17\n";
    failure(&format!("{TREE}{large}"), &["the job \"a\" has 17 ranks", "16 cores, on 8 of 8 hosts"]);
    // Hosts files share, unless one of the jobs has its hosts for itself.
    let hosts = folder.write("hosts.txt", "node-0:2\nnode-3:2\n").display().to_string();
    let shared = |name: &str| format!("[[job]]\nname = '{name}'\ntrace = '{trace}'\nhosts = '{hosts}'\n");
    let both = format!("{TREE}{}{}", shared("a"), shared("b"));
    assert_eq!(each(&report(&folder, &both, &[]), "hosts"), [2, 2]);
    failure(&format!("{both}exclusive = true\n"), &["\"a\" and \"b\" overlap on the host \"node-0\""]);
    let free = report(&folder, &format!("{TREE}{}{}", shared("a"), job("b", "leaf")), &[]);
    assert_eq!(free["jobs"][1]["hosts"], 2);
    // The seed decides, and nothing else: a placement that is not the first one delays other messages.
    let messages = [("a", "random"), ("b", "random")];
    let ends = |seed: u32, jobs: &[(&str, &str)]| {
        let jobs: String = jobs.iter().map(|(name, placement)| job(name, placement)).collect();
        let report = report(&folder, &format!("{TREE}[jobs]\nseed = {seed}\n{jobs}"), &[]);
        each(&report, "digest").into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(ends(1, &messages), ends(1, &messages));
    assert!((2..12).any(|seed| ends(seed, &messages) != ends(1, &messages)));
}

/// Two flows over one link, and a third job that shares nothing: who delays whom is known.
#[test]
fn jobs_delay_each_other_and_no_one_else() {
    let folder = Folder::new();
    let send = folder.write("send.txt", "0 init\n1 init\n0 send 1 0 1000000\n1 recv 0 0 1000000\n");
    let platform = "[platform]\ntopology = { kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }\n\
        [network]\npreset = 'raw'\n[mpi]\nenvelope_bytes = 0\n";
    let job = |name: &str, hosts: &str, start: &str| {
        let hosts = folder.write(&format!("{name}.txt"), hosts);
        format!("[[job]]\nname = '{name}'\ntrace = {send:?}\nhosts = {hosts:?}\nstart = '{start}'\n")
    };
    let jobs = [
        job("a", "node-0\nnode-1\n", "0ms"),
        job("b", "node-2\nnode-1\n", "0.5ms"),
        job("c", "node-3\nnode-0\n", "5ms"),
    ];
    let found = report(&folder, &(platform.to_owned() + &jobs.concat()), &["--slowdown"]);
    // From 0.5 ms on both have half of the link: a ends at 1.5 ms, b 0.5 ms later.
    let ends: Vec<f64> = each(&found, "end_s").into_iter().map(seconds).collect();
    for (end, expected) in ends.iter().zip([1.5e-3, 2e-3, 6e-3]) {
        assert!((end - expected).abs() < 1e-12, "{ends:?}");
    }
    let lost: Vec<Vec<f64>> = each(&found, "delayed_by")
        .into_iter()
        .map(|lost| lost.as_array().unwrap().iter().map(|lost| seconds(&lost["lost_s"])).collect())
        .collect();
    let expected = [[5e-4, 0.0], [5e-4, 0.0], [0.0, 0.0]];
    for (lost, expected) in lost.iter().flatten().zip(expected.iter().flatten()) {
        assert!((lost - expected).abs() < 1e-12, "{lost:?}");
    }
    // The same on threads and in another order of jobs, and among so many jobs that not all combinations are replayed.
    let digests = each(&found, "digest");
    let threads = report(&folder, &(platform.to_owned() + &jobs.concat()), &["--threads=2"]);
    assert_eq!(each(&threads, "digest"), digests);
    assert_eq!(threads["digest"], found["digest"]);
    let later: String = [job("d", "node-3\nnode-0\n", "15ms"), job("e", "node-3\nnode-0\n", "25ms")].concat();
    let reversed: String = later + &jobs.iter().rev().cloned().collect::<String>();
    let many = report(&folder, &(platform.to_owned() + &reversed), &["--slowdown"]);
    assert_eq!(each(&many, "digest")[2..], digests.into_iter().rev().collect::<Vec<_>>());
    let lost = &many["jobs"][4]["delayed_by"][3];
    assert_eq!(lost["job"], "b");
    assert!((seconds(&lost["lost_s"]) - 5e-4).abs() < 1e-12, "{lost}");
    // The summary names the jobs and the delays.
    command()
        .arg("run")
        .arg(folder.path("run.toml"))
        .arg("--slowdown")
        .assert()
        .code(DONE)
        .stdout(contains("slowdown").and(contains("delayed")).and(contains("10 ranks")));
    let page = folder.path("page.html");
    command().arg("report").arg(folder.path("report.json")).arg("-o").arg(&page).assert().code(DONE);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("showJobs") && page.contains("<title>5 jobs on "));
}

/// Four hosts: `a` meets two messages of `c` on the link from its sender, and `b` meets `a` on the link to their receiver.
#[test]
fn jobs_delay_each_other_on_links() {
    let folder = Folder::new();
    let one = folder.write("one.txt", "0 init\n1 init\n0 send 1 0 1000000\n1 recv 0 0 1000000\n");
    let two = folder.write(
        "two.txt",
        "0 init\n1 init\n0 isend 1 0 1000000\n0 isend 1 1 1000000\n0 waitall 2\n1 irecv 0 0 1000000\n1 irecv 0 1 1000000\n1 waitall 2\n",
    );
    let job = |name: &str, trace: &Path, hosts: &str| {
        let hosts = folder.write(&format!("{name}.txt"), hosts);
        format!("[[job]]\nname = '{name}'\ntrace = {trace:?}\nhosts = {hosts:?}\n")
    };
    let jobs = [
        job("a", &one, "node-0\nnode-2\n"),
        job("b", &one, "node-1\nnode-2\n"),
        job("c", &two, "node-0\nnode-3\n"),
    ];
    let run = |model: &str| {
        let platform = format!(
            "[platform]\ntopology = {{ kind = 'cluster', hosts = 4, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }}\n\
             [network]\npreset = 'raw'\nmodel = {model:?}\n[mpi]\nenvelope_bytes = 0\n"
        );
        report(&folder, &(platform + &jobs.concat()), &["--slowdown"])
    };
    let found = run("flow");
    let lost = |job: usize, other: usize| &found["jobs"][job]["delayed_by"][other];
    let links = |lost: &Value| -> Vec<(String, f64)> {
        let links = lost["links"].as_array().unwrap().iter();
        links.map(|on| (on["link"].to_string(), seconds(&on["lost_s"]))).collect()
    };
    let [a_by_c, b_by_a] = [lost(0, 1), lost(1, 0)];
    assert_eq!((&a_by_c["job"], &b_by_a["job"]), (&"c".into(), &"a".into()));
    let (of_a, of_b) = (links(a_by_c), links(b_by_a));
    assert_eq!((of_a.len(), of_b.len()), (1, 1), "{of_a:?} {of_b:?}");
    assert_ne!(of_a[0].0, of_b[0].0);
    for lost in [a_by_c, b_by_a] {
        let sum: f64 = links(lost).iter().map(|(_, lost_s)| lost_s).sum();
        assert!(sum > 0.0 && (sum - seconds(&lost["lost_s"])).abs() < 1e-15, "{lost}");
    }
    // They share no link.
    assert!(links(lost(1, 1)).is_empty() && links(lost(2, 1)).is_empty());
    assert!(run("contention-free")["jobs"][0]["delayed_by"][1]["links"].as_array().unwrap().is_empty());
}

#[test]
fn wrong_jobs_are_refused() {
    let folder = Folder::new();
    let trace = ring(&folder);
    let first = format!("[[job]]\nname = 'a'\ntrace = '{trace}'\n");
    for (config, words) in [
        (format!("[trace]\npath = '{trace}'\n{first}"), "stands beside [[job]]"),
        (format!("{first}{first}"), "two jobs have the name \"a\""),
        (format!("{first}[[job]]\nname = 'b'\n"), "the job \"b\" has none"),
        (format!("{first}start = -1\n"), "start: found -1, expected a number from 0"),
        (format!("{first}ranks = 0\n"), "ranks: found 0"),
        (format!("{first}hosts = 'h.txt'\nplacement = 'leaf'\n"), "expected one of the two"),
        (format!("{first}placement = 'nowhere'\n"), "\"round-robin\""),
        (format!("{first}repetition = 3\n"), "has no key \"repetition\""),
    ] {
        let config = folder.write("wrong.toml", &(TREE.to_owned() + &config));
        command().arg("run").arg(config).assert().code(MISUSE).stderr(contains(words));
    }
}

/// Two hosts and a cable whose bandwidth, latency and speed change, by TOML and by files of SimGrid.
#[test]
fn profiles_of_a_configuration() {
    let folder = Folder::new();
    let trace = folder.write(
        "trace.txt",
        "0 init\n1 init\n0 compute 3e9\n0 send 1 0 4000000\n1 recv 0 0 4000000\n1 compute 1e9\n",
    );
    let base = format!(
        "[trace]\npath = {trace:?}\n[platform]\ntopology = {{ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1MBps', latency = '0s' }}\n\
         placement = 'cyclic'\n[mpi]\nenvelope_bytes = 0\n[network]\npreset = 'raw'\n"
    );
    let run = |profiles: &str, model: &str| {
        let report = report(&folder, &format!("{base}model = '{model}'\n{profiles}"), &[]);
        seconds(&report["simulated_time_s"])
    };
    folder.write("speed", "PERIODICITY 2\n0 1\n1 0.5\n");
    // 1 + 0.5 + 1 + 0.5 in 4 s, the message of 4 MB at full rate until 5 s, then at a quarter, with a gap from 6 to 7 s until 19 s: 1 s more.
    let points = "[[profile]]\nhost = 'node-0'\nquantity = 'speed'\npoints = [['0s', 1], ['1s', 0.5]]\nperiod = '2s'\n\
        [[profile]]\nlink = '*_link_0*'\nquantity = 'bandwidth'\npoints = [['5s', '0.25MBps']]\n\
        [[profile]]\nlink = '*_link_0_*'\nquantity = 'state'\npoints = [['6s', 0], [7, 1]]\n";
    let file = "[[profile]]\nhost = 'node-0'\nquantity = 'speed'\nfile = 'speed'\n\
        [[profile]]\nlink = '*'\nquantity = 'bandwidth'\npoints = [['5s', 0.25]]\n\
        [[profile]]\nlink = '*_link_0_*'\nquantity = 'state'\npoints = [['6s', 0], [7, 1]]\n";
    for profiles in [points, file] {
        for model in ["flow", "contention-free"] {
            let found = run(profiles, model);
            assert!((found - 19.0).abs() < 1e-9, "{model}: {found}");
        }
    }
    assert!((run("", "flow") - 8.0).abs() < 1e-9);
    // What recurs for ever does not keep a program that waits for ever from its deadlock.
    let stuck =
        folder.write("stuck.txt", "0 init\n1 init\n0 recv 1 0 4\n0 send 1 0 4\n1 recv 0 0 4\n1 send 0 0 4\n");
    let config = base.replace(&format!("{trace:?}"), &format!("{stuck:?}")) + points;
    command()
        .arg("run")
        .arg(folder.write("stuck.toml", &config))
        .assert()
        .code(FAILED)
        .stderr(contains("deadlock"));
    let speed = "[[profile]]\nhost = 'node-0'\nquantity = 'speed'\n";
    for (profiles, words) in [
        (
            "[[profile]]\nhost = 'node-0'\nlink = 'l'\nquantity = 'speed'\npoints = [[0, 1]]\n".to_owned(),
            "either host or link",
        ),
        (
            "[[profile]]\nhost = 'node-0'\nquantity = 'latency'\npoints = [[0, 1]]\n".to_owned(),
            "\"speed\" or \"state\" of a host",
        ),
        (format!("{speed}points = [[2, 1], [1, 2]]\n"), "a profile does not go back"),
        (format!("{speed}points = [[2, -1]]\n"), "point 1 has the value -1"),
        (format!("{speed}points = [[2, 1], [3, 2]]\nperiod = '2s'\n"), "shorter than the points"),
        (format!("{speed}file = 'back'\n"), "back:2: point 2 is at"),
        (
            format!("{speed}points = [[0, 1]]\n{speed}points = [[0, 2]]\n"),
            "two profiles are of the same quantity",
        ),
    ] {
        folder.write("back", "2 1\n1 1\n");
        let config = folder.write("wrong.toml", &format!("{base}{profiles}"));
        command().arg("run").arg(config).assert().code(MISUSE).stderr(contains(words));
    }
    let nobody = format!("{base}{}", speed.replace("node-0", "nobody") + "points = [[0, 1]]\n");
    let config = folder.write("wrong.toml", &nobody);
    command()
        .arg("run")
        .arg(config)
        .assert()
        .code(FAILED)
        .stderr(contains("has no such host").and(contains("node-0")));
    let packets = format!("{base}model = 'packets'\n{points}").replace("latency = '0s'", "latency = '1us'");
    let packets = folder.write("wrong.toml", &packets);
    command().arg("run").arg(packets).assert().success();
    let latency = "[[profile]]\nlink = '*'\nquantity = 'latency'\npoints = [['1s', 2]]\n";
    let latency = format!("{base}model = 'packets'\n{latency}").replace("latency = '0s'", "latency = '1us'");
    let latency = folder.write("wrong.toml", &latency);
    command().arg("run").arg(latency).assert().code(FAILED).stderr(contains("packets keep their order"));
}

/// Profiles that recur change a replay in the same way on any number of threads and processes, and in parts.
#[test]
fn profiles_that_recur_have_one_result() {
    let folder = Folder::new();
    let halo = folder.path("halo.pdt");
    let sizes = ["--cells=24,24,24", "--ranks=4,4,4", "--iterations=8", "--output"];
    trace(&[&["generate", "halo3d"], &sizes[..]].concat(), &[&halo]).success();
    let config = format!(
        "[trace]\npath = {halo:?}\n[platform]\ntopology = {{ kind = 'torus', dims = [8, 4, 4], speed = '10Gf', bandwidth = '12.5GBps', latency = '500ns' }}\n\
         [network]\npreset = 'raw'\n[parallel]\noversubscribe = true\n\
         [[profile]]\nhost = 'node-1*'\nquantity = 'speed'\npoints = [['1us', 0.5], ['8us', 1.0]]\nperiod = '13us'\n\
         [[profile]]\nlink = '*_link_from_2*'\nquantity = 'bandwidth'\npoints = [['3us', 0.1], ['9us', 1.0]]\nperiod = '11us'\n\
         [[profile]]\nlink = '*_link_from_3*'\nquantity = 'latency'\npoints = [['2us', 3.0], ['7us', 1.0]]\nperiod = '10us'\n"
    );
    let config = folder.write("run.toml", &config);
    for settings in
        [&["network.model=contention-free"][..], &["network.model=flow"], &["network.epoch_s=auto"]]
    {
        let config = || {
            let mut config = Config::from_path(&config).unwrap();
            settings.iter().for_each(|setting| config.set(setting).unwrap());
            config
        };
        let run = |spec: RunSpec| {
            Simulation::load(&spec).unwrap().replay(&Progress::new(spec.threads)).unwrap().into_program().ends
        };
        let spec = config().resolve().unwrap();
        let expected = run(spec.clone());
        assert_ne!(run(RunSpec { profiles: Vec::new(), ..spec.clone() }), expected, "{settings:?}");
        assert_eq!(run(RunSpec { threads: 3, ..spec }), expected, "{settings:?}");
        let (in_parts, parts) = replay_in_parts(config(), &Folder::new());
        assert!(in_parts.unwrap().into_program().ends == expected && parts > 2, "{settings:?}: {parts}");
    }
}
