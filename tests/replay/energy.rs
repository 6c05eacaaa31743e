//! Energy: in the report, on threads, with checkpoints and fast-forward; what is refused.

use std::fmt::Write as _;
use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Config, Energy, Report, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{Folder, command};
use crate::determinism::all_calls;
use crate::reference::{rows, unpack};
use crate::shared::shared;

const EPOCHS: &str = "network.epoch_s='auto'";
const POWER: [&str; 3] = [
    "energy.enabled=true",
    "energy.hosts={ '*' = { idle = 95, epsilon = 110, all_cores = 190 } }",
    "energy.links={ '*' = { idle = 2, busy = 8 } }",
];

/// One rank computes for a second on one of two cores, and then sends a megabyte over links of a gigabyte per second.
const TRACE: &str = "0 init\n1 init\n0 compute 1e9\n0 send 1 0 999984\n1 recv 0 0 999984\n";

fn cluster(hosts: u32, latency: &str, backbone: &str) -> String {
    format!(
        "platform.topology={{ kind = 'cluster', hosts = {hosts}, cores = 2, speed = '1Gf', bandwidth = '1GBps', latency = '{latency}'{backbone} }}"
    )
}

fn simulation(hosts: u32, trace: &Path, settings: &[&str]) -> Simulation {
    simulation_on(&cluster(hosts, "0s", ""), trace, settings)
}

fn simulation_on(platform: &str, trace: &Path, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&[platform, "network.preset='raw'"], &POWER[..], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn energy(simulation: &Simulation) -> Energy {
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
    Report::new(simulation, &outcome).sections.energy.expect("it is asked for")
}

fn assert_near(found: f64, expected: f64, error: f64) {
    assert!((found / expected - 1.0).abs() < error, "{found}, expected {expected}");
}

#[test]
fn the_report_has_the_energy_of_hosts_and_links() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let asked = [
        "energy.by=['host', 'link']",
        "energy.carbon_intensity=[['0s', 360], ['500ms', 720]]",
        "platform.placement='cyclic'",
    ];
    let energy = energy(&simulation(3, &trace, &asked));
    // A second at 110 + 80 / 2 W; the message takes a millisecond.
    let (busy, idle) = (150.0 + 0.095, 1.001 * 95.0);
    let hosts: Vec<(&str, f64)> =
        energy.hosts.iter().flatten().map(|part| (part.name.as_str(), part.energy_j)).collect();
    assert_eq!(hosts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["node-0", "node-1", "node-2"]);
    hosts
        .iter()
        .zip([busy, idle, idle])
        .for_each(|((_, found), expected)| assert_near(*found, expected, 1e-12));
    let links: Vec<f64> = energy.links.iter().flatten().map(|part| part.energy_j).collect();
    // Up and down of each host: the message goes up from the first and down to the second.
    for (found, full_s) in links.iter().zip([0.001, 0.0, 0.0, 0.001, 0.0, 0.0]) {
        assert_near(*found, 1.001 * 2.0 + full_s * 6.0, 1e-12);
    }
    assert_eq!(links.len(), 6);
    assert_near(energy.total_j, busy + 2.0 * idle + links.iter().sum::<f64>(), 1e-12);
    assert_near(energy.energy_delay_js, energy.total_j * 1.001, 1e-12);
    let of_bins: f64 = energy.power_w.iter().sum::<f64>() * energy.bin_ps as f64 / 1e12;
    assert!(of_bins > energy.total_j && of_bins < energy.total_j * 1.02, "{of_bins}");
    // 1e-4 g/J, and twice that after half a second.
    let carbon = energy.carbon_g.unwrap();
    assert_near(carbon, 1e-4 * (352.0 * 0.5 + 2.0 * (energy.total_j - 352.0 * 0.5)), 1e-3);
    assert!(energy.left_out.is_empty(), "{:?}", energy.left_out);
}

/// The published watts of Frontier: those of 128 ports to nodes and 140 between switches at all times, and of nodes that compute most of it.
#[test]
fn a_real_machine_has_its_published_watts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/energy-frontier.toml");
    let simulation = Simulation::load(&Config::from_path(&path).unwrap().resolve().unwrap()).unwrap();
    let energy = energy(&simulation);
    let time_s = energy.total_j / energy.mean_w;
    let port = 250.0 / 64.0 / 0.96;
    assert_near(energy.links_j, (128.0 / 2.0 + 140.0) * port * time_s, 1e-3);
    let (idle, most) = (626.26, 2704.26);
    let node = energy.hosts_j * 0.96 * 0.98 / 64.0 / time_s;
    assert!(node > idle + 0.8 * (most - idle) && node < most, "{node} W of {most}");
    assert!(energy.left_out.is_empty(), "{:?}", energy.left_out);
}

/// Threads change no bit, in epochs and in windows, and epochs little.
#[test]
fn energy_does_not_depend_on_threads() {
    let folder = Folder::new();
    let trace = folder.write("calls.txt", &all_calls(3));
    let (few, cyclic) = (cluster(8, "1us", ""), "platform.placement='cyclic'");
    // Windows need many hosts; the fat pipe is metered.
    let backbone = ", backbone = { bandwidth = '4GBps', latency = '1us', sharing = 'fat_pipe' }";
    let many = cluster(160, "1us", backbone);
    for (platform, settings) in [(&few, &[cyclic, EPOCHS, "network.regions=4"][..]), (&many, &[cyclic])] {
        let exact = energy(&simulation_on(platform, &trace, &[cyclic]));
        let mut simulation = simulation_on(platform, &trace, settings);
        let expected = energy(&simulation);
        assert_near(expected.total_j, exact.total_j, 0.05);
        for threads in [2, 3] {
            simulation = simulation.with_threads(threads).with_jitter(Some(threads as u64));
            assert!(simulation.execution(1).obstacles.is_empty());
            assert_eq!(energy(&simulation), expected, "{settings:?} on {threads} threads");
        }
    }
}

/// Iterations that are skipped take the energy of those that are not.
#[test]
fn fast_forward_counts_all_iterations() {
    let folder = Folder::new();
    let lines = |rank: u32| {
        let peer = 1 - rank;
        let iteration = format!(
            "{rank} compute 1e6\n{rank} irecv {peer} 0 100000\n{rank} send {peer} 0 100000\n{rank} waitall\n{rank} barrier\n"
        );
        format!("{rank} init\n{}{rank} finalize\n", iteration.repeat(60))
    };
    let text = folder.write("loop.txt", &(lines(0) + &lines(1)));
    let archive = folder.path("loop.pdt");
    command().args(["trace", "convert"]).arg(&text).arg("-o").arg(&archive).assert().success();
    let simulations = ["engine.fast_forward=false", "engine.fast_forward=true"].map(|setting| {
        let settings = [setting, "platform.placement='cyclic'", "energy.by=['host', 'link']"];
        simulation(2, &archive, &settings)
    });
    let [all, skipped] = simulations.each_ref().map(|simulation| {
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        (outcome.fast_forward, Report::new(simulation, &outcome).sections.energy.unwrap())
    });
    assert!(skipped.0.is_some_and(|found| found.skipped_iterations > 40), "{:?}", skipped.0);
    let parts = |energy: &Energy| [energy.hosts.clone(), energy.links.clone()].map(Option::unwrap).concat();
    for (found, expected) in parts(&skipped.1).iter().zip(parts(&all.1)) {
        assert_near(found.energy_j, expected.energy_j, 1e-9);
    }
}

#[test]
fn wrong_sections_and_models_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("trace.txt", TRACE);
    let base = "[trace]\npath = 'trace.txt'\n[platform]\ntopology = { kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n";
    let refuse = |section: &str, status: i32, message: &str| {
        let config = folder.write("run.toml", &format!("{base}{section}"));
        command().arg("--config").arg(config).assert().code(status).stderr(contains(message));
    };
    let enabled = "[energy]\nenabled = true\n";
    refuse(
        &format!("{enabled}[energy.hosts]\nnode = {{ idle = 1, all_cores = 2 }}\n"),
        1,
        "[energy.hosts] \"node\": the platform has no such host",
    );
    refuse(
        &format!("{enabled}[energy.links]\n'*' = {{ idle = -1, busy = 2 }}\n"),
        1,
        "[energy.links] \"*\": expected watts of 0 or more",
    );
    refuse(&format!("{enabled}carbon_intensity = [['1s', 3]]\n"), 2, "carbon_intensity: expected");
    let config = folder.write("run.toml", &format!("{base}{enabled}"));
    let warned = contains("2 host(s), the first \"node-0\", count 0 W")
        .and(contains("count 0 W: give their power in [energy.links]"));
    command()
        .arg("--config")
        .arg(config)
        .assert()
        .success()
        .stderr(warned)
        .stdout(contains("energy: 0.000000 J"));
}

#[test]
fn xml_that_gives_no_power_is_refused_with_its_line() {
    let folder = Folder::new();
    let platform = |property: &str| {
        format!(
            "<?xml version='1.0'?>\n<platform version=\"4.1\">\n<zone id=\"w\" routing=\"Full\">\n<host id=\"a\" speed=\"2Gf,1Gf\" pstate=\"1\">\n{property}</host>\n</zone>\n</platform>\n"
        )
    };
    let read = |property: &str| {
        let path = folder.write("p.xml", &platform(property));
        netmodel::Platform::from_path(&path)
    };
    let states = |list: &str| format!("<prop id=\"wattage_per_state\" value=\"{list}\"/>");
    let power = read(&states("95:110:190, 80:120")).unwrap().power().hosts[&netmodel::HostId::new(0)];
    assert_eq!((power.idle, power.epsilon(), power.all_cores, power.off), (80.0, 80.0, 120.0, 0.0));
    for list in ["95:110:190", "1:2:3:4,1:2", "a:b,c:d", "1:-2,1:2", "1,2"] {
        let error = read(&states(list)).unwrap_err().to_string();
        assert!(error.contains(":4:") && error.contains("wattage_per_state"), "{error}");
    }
    let off = states("1:2,1:2") + "<prop id=\"wattage_off\" value=\"1:2\"/>";
    assert!(read(&off).unwrap_err().to_string().contains("wattage_off"));
}

/// Without contention hosts are busy while their ranks compute; nothing is known of links.
#[test]
fn without_contention_hosts_count_the_times_of_their_ranks() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let settings = ["network.model='contention-free'", "platform.placement='cyclic'", "energy.by=['host']"];
    let exact = energy(&simulation(3, &trace, &settings[1..]));
    let found = energy(&simulation(3, &trace, &settings));
    let hosts = |energy: &Energy| energy.hosts.clone().unwrap();
    for (found, expected) in hosts(&found).iter().zip(hosts(&exact)) {
        assert_near(found.energy_j, expected.energy_j, 1e-9);
    }
    assert_near(found.links_j, 6.0 * 1.001 * 2.0, 1e-9);
    assert!(
        found.left_out[0].contains("6 link(s)") && found.left_out[0].contains("count as idle"),
        "{found:?}"
    );
    // Two ranks on one host, which may compute at the same time.
    let shared = energy(&simulation(3, &trace, &settings[..1]));
    assert!(shared.left_out[0].contains("count the busy times of their ranks apart"), "{shared:?}");
}

/// Several jobs, and platforms with their profiles: SimGrid's joules of each host.
#[test_with::shared]
fn jobs_and_profiles_take_the_energy_of_simgrid() {
    let (folder, unpacked) = (Folder::new(), unpack(&shared("traces")));
    let mut compared = 0;
    for (oracle, table, case) in
        [("jobs", "jobs.csv", "J10"), ("profiles", "cases.csv", "P17"), ("energy", "cases.csv", "E04")]
    {
        let oracle = shared("oracle").join(oracle);
        let mut config = "[energy]\nenabled = true\nby = [\"host\"]\n".to_owned();
        for (number, row) in rows(&oracle.join(table)).iter().filter(|row| row["case"] == case).enumerate() {
            if number == 0 {
                write!(config, "[platform]\nfile = {:?}\n", oracle.join(&row["platform"])).unwrap();
            }
            let own = oracle.join("traces").join(&row["trace"]).join("files.txt");
            let trace =
                if own.exists() { own } else { unpacked.path().join(&row["trace"]).join("files.txt") };
            let hosts = folder.write(&format!("{case}-{number}.txt"), &row["hosts"].replace(' ', "\n"));
            let start = row.get("start_s").map_or("0", String::as_str);
            let job = format!("name = \"{number}\"\ntrace = {trace:?}\nhosts = {hosts:?}\nstart = {start}\n");
            write!(config, "[[job]]\n{job}").unwrap();
        }
        let (config, report) = (folder.write("run.toml", &config), folder.path("report.json"));
        command().arg("--config").arg(config).arg("--report").arg(&report).assert().success();
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        let hosts = report["energy"]["hosts"].as_array().unwrap();
        for row in rows(&oracle.join("expected.csv")) {
            if row["case"] != case || row["quantity"] != "host_J" {
                continue;
            }
            let host = hosts.iter().find(|host| host["name"] == row["name"].as_str()).unwrap();
            let (found, expected): (f64, f64) =
                (host["energy_j"].as_f64().unwrap(), row["value"].parse().unwrap());
            assert!((found - expected).abs() < 1e-6, "{case} {}: {found}, expected {expected}", row["name"]);
            compared += 1;
        }
    }
    assert_eq!(compared, 8 + 2 + 5);
}

/// By hand: while it computes, host 0 takes 150 W, 55 W more than idle; both hosts take 95 W in the other 1 ms, and host 1 in the second before.
#[test]
fn energy_is_divided_among_jobs_ranks_regions_and_calls() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let asked = ["platform.placement='cyclic'", "energy.by=['job', 'rank', 'region', 'call']"];
    let found = energy(&simulation(2, &trace, &asked));
    let parts = |parts: &Option<Vec<pdes_replay::PartEnergy>>| -> Vec<(String, f64)> {
        parts.iter().flatten().map(|part| (part.name.clone(), part.energy_j)).collect()
    };
    let calls = parts(&found.calls);
    for ((name, joules), (expected, by_hand)) in
        calls.iter().zip([("compute", 150.0), ("send", 0.095), ("recv", 95.095)])
    {
        assert_eq!(name, expected);
        assert_near(*joules, by_hand, 1e-9);
    }
    assert_eq!(calls.len(), 3);
    let ranks = found.ranks_j.unwrap();
    assert_near(ranks[0][0], 150.095, 1e-9);
    assert_near(ranks[0][1], 95.095, 1e-9);
    let jobs = parts(&found.jobs);
    assert_eq!(jobs.len(), 1);
    assert_near(jobs[0].1, found.hosts_j, 1e-9);
    assert_near(parts(&found.regions).iter().map(|(_, joules)| joules).sum(), found.hosts_j, 1e-9);
    assert!(found.unassigned_j.unwrap().abs() < 1e-9);
    // Of a message of 999,984 bytes, and of a megabyte on each of two links.
    let traffic =
        ["energy.messages={ '*' = { per_message = 2, per_byte = 1e-6 } }", "energy.traffic={ '*' = 1e-6 }"];
    let of_messages = energy(&simulation(2, &trace, &[&asked[..], &traffic].concat()));
    assert_near(of_messages.messages_j, 2.999984, 1e-9);
    assert_near(of_messages.traffic_j, 2.0, 1e-9);
    assert_near(of_messages.total_j, found.total_j + 4.999984, 1e-9);
    // A host without ranks is nobody's.
    let more = energy(&simulation(3, &trace, &asked));
    assert_near(more.unassigned_j.unwrap(), 95.0 * 1.001, 1e-9);
}

/// A timeline for Perfetto has power over time, whose integral is the energy in the report.
#[test]
fn timelines_have_counters_of_power() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", TRACE);
    let hosts = "energy.hosts={ '*' = { idle = 95, epsilon = 110, all_cores = 190 }, 'node-0' = { idle = 50, all_cores = 150 } }";
    let run = |name: &str, settings: &[&str]| {
        let path = folder.path(name);
        let file = format!("timeline.file={path:?}");
        let settings = [&[hosts, "energy.by=['host']", file.as_str()], settings].concat();
        let energy = energy(&simulation(4, &trace, &settings));
        (std::fs::read_to_string(path).unwrap(), energy)
    };
    let (text, energy) = run("run.json", &[]);
    let timeline: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let joules = |name: &str| {
        let own = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
        let values: Vec<(f64, f64)> = own
            .map(|event| (event["ts"].as_f64().unwrap() * 1e-6, event["args"]["value"].as_f64().unwrap()))
            .collect();
        values.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0)).sum::<f64>()
    };
    assert_near(joules("hosts [W]"), energy.hosts_j, 1e-9);
    assert_near(joules("links [W]"), energy.links_j, 1e-9);
    assert_near(joules("hosts node-0 [W]"), energy.hosts.unwrap()[0].energy_j, 1e-9);
    assert!(joules("hosts * [W]") > 0.0);
    assert_eq!(run("threads.json", &["engine.threads=3"]).0, text);
    let (later, _) = run("late.json", &["timeline.window='500ms..'"]);
    let later: serde_json::Value = serde_json::from_str(&later).unwrap();
    let events = later["traceEvents"].as_array().unwrap().iter();
    let begins: Vec<f64> =
        events.filter(|event| event["ph"] == "C").map(|event| event["ts"].as_f64().unwrap()).collect();
    assert!(begins.len() > 4 && begins.iter().all(|begin| *begin >= 5e5), "{begins:?}");
}
