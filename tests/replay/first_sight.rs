//! Defaults that decide a result are named, and fit the machine.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, Folder, MISUSE, command};

/// Two hosts of four cores with links of 400 Gb/s.
const FAST: &str = "[topology]\nkind = 'cluster'\nhosts = 2\ncores = 4\nspeed = '1Gf'\nbandwidth = '50GBps'\nlatency = '1us'\n";
const FAST_XML: &str = "<?xml version='1.0'?><platform version='4.1'><cluster id='c' prefix='node-' suffix='' radical='0-1' \
    speed='1Gf' core='4' bw='50GBps' lat='1us'/></platform>";

/// Runs a trace of ranks that send 100 kB around a ring, with settings; returns the simulated time, the summary and the warnings.
fn replay(folder: &Folder, platform: &str, ranks: u32, settings: &[&str]) -> (f64, String, String) {
    let ring = |rank: u32| {
        let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        format!(
            "{rank} init\n{rank} irecv {last} 0 100000 req=0\n{rank} send {next} 0 100000\n{rank} wait req=0\n"
        )
    };
    let trace = folder.write("ring.txt", &(0..ranks).map(ring).collect::<String>());
    let mut run = command();
    run.arg("run").arg(trace).arg("--platform").arg(folder.path(platform));
    run.args(settings.iter().flat_map(|setting| ["--set", setting]));
    let assert = run.assert().code(DONE);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (stdout, stderr) = (text(&assert.get_output().stdout), text(&assert.get_output().stderr));
    let time = stdout.lines().next_back().unwrap();
    let time = time.strip_prefix("simulated time: ").and_then(|time| time.strip_suffix(" s"));
    let warnings = stderr.lines().filter(|line| line.contains("WARN")).collect();
    (time.unwrap().parse().unwrap(), stdout.clone(), warnings)
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("fast.toml", FAST);
    folder.write("fast.xml", FAST_XML);
    folder
}

/// The links of a platform of our own are taken as they are written, those of SimGrid's XML with SimGrid's factors; the summary says which,
/// and a preset of other links is warned of once.
#[test]
fn the_preset_fits_the_platform_or_is_warned_of() {
    let folder = folder();
    // One message of 100,016 bytes from each host: 2 us of latency and 2 us at 50 GB/s, with links of their own in each direction.
    let (time, summary, warnings) = replay(&folder, "fast.toml", 2, &["platform.placement=cyclic"]);
    assert_eq!((time, &*warnings), (0.000004, ""));
    assert!(
        summary.contains("flow, preset links (eager below 16.39 kB); placement cyclic: 2 hosts"),
        "{summary}"
    );
    let (slow, summary, warnings) = replay(&folder, "fast.xml", 2, &[]);
    assert!(summary.contains("flow, preset smpi (eager below 0 B); placement cyclic"), "{summary}");
    assert!(slow > 5.0 * time, "the latency of large messages is multiplied: {slow}");
    assert_eq!(warnings.matches("network.preset = \"smpi\" holds for links of up to 10 Gb/s").count(), 1);
    let chosen = ["network.preset=smpi", "platform.placement=cyclic"];
    let (same, _, warnings) = replay(&folder, "fast.toml", 2, &chosen);
    assert_eq!(same, slow);
    assert!(warnings.contains("the links between the ranks have 400 Gb/s"), "{warnings}");
    let edr = ["network.preset=infiniband-edr", "platform.placement=cyclic"];
    let (_, _, warnings) = replay(&folder, "fast.toml", 2, &edr);
    assert!(warnings.contains("80 to 120 Gb/s"), "{warnings}");
}

/// A scale multiplies what the preset and the links say; a factor in place of those of the preset says so.
#[test]
fn a_scale_of_one_changes_nothing() {
    let folder = folder();
    let run = |settings: &[&str]| {
        let cyclic = ["network.preset=smpi", "platform.placement=cyclic"];
        replay(&folder, "fast.toml", 2, &[&cyclic, settings].concat())
    };
    let (time, ..) = run(&[]);
    assert_eq!(run(&["network.latency_scale=1", "network.bandwidth_scale=1.0"]).0, time);
    let (twice, summary, warnings) = run(&["network.latency_scale=2"]);
    // The latency factor of 100,016 bytes is 11.6436.
    assert!((twice - time - 11.6436 * 2e-6).abs() < 1e-9, "{twice} {time}");
    assert!(summary.contains("latencies x 2") && !warnings.contains("replaces"), "{summary}");
    let (half, summary, _) = run(&["network.bandwidth_scale=0.5"]);
    assert!(half > time && summary.contains("bandwidths x 0.5"), "{summary}");
    let (other, _, warnings) = run(&["network.latency_factor=1"]);
    assert!(other < time);
    assert!(
        warnings.contains("network.latency_factor = 1 replaces the factors of the preset \"smpi\""),
        "{warnings}"
    );
    assert!(warnings.contains("network.latency_scale multiplies the latency of all links"), "{warnings}");
    for setting in ["network.latency_scale=0", "network.bandwidth_scale=-1", "network.latency_scale=nan"] {
        let run = ["--trace", "x", "--platform", "y", "--set", setting];
        command().args(run).assert().code(MISUSE).stderr(contains("0").and(contains("scale")));
    }
}

/// The cores of a host are filled first on platforms of our own; SimGrid deals ranks out.
#[test]
fn ranks_fill_hosts() {
    let folder = folder();
    let (_, summary, _) = replay(&folder, "fast.toml", 4, &[]);
    assert!(summary.contains("placement block: 1 host, up to 4 ranks each"), "{summary}");
    let (_, summary, _) = replay(&folder, "fast.toml", 5, &[]);
    assert!(summary.contains("placement block: 2 hosts, up to 4 ranks each"), "{summary}");
    let (_, summary, _) = replay(&folder, "fast.xml", 4, &[]);
    assert!(summary.contains("placement cyclic: 2 hosts, up to 2 ranks each"), "{summary}");
    let (cyclic, ..) = replay(&folder, "fast.toml", 4, &["platform.placement=cyclic"]);
    let hosts = folder.write("hosts.txt", "node-0\nnode-1\nnode-0\nnode-1\n");
    let hosts = format!("platform.hosts={}", hosts.display());
    assert_eq!(replay(&folder, "fast.toml", 4, &[&hosts]).0, cyclic);
    let (_, summary, warnings) = replay(&folder, "fast.toml", 9, &[]);
    assert!(summary.contains("2 hosts, up to 5 ranks each"), "{summary}");
    assert!(warnings.contains("node-0 has 5 ranks for 4 cores"), "{warnings}");
    let config = folder.write(
        "run.toml",
        "[trace]\npath = 'ring.txt'\n[platform]\nfile = 'fast.toml'\nhosts = 'hosts.txt'\nplacement = 'block'\n",
    );
    command()
        .arg("run")
        .arg(config)
        .assert()
        .code(MISUSE)
        .stderr(contains("which says where each rank runs"));
}

/// `-` is standard input, for traces of each form and for configurations; `--json` prints JSON.
#[test]
fn inputs_come_from_stdin_and_results_go_to_scripts() {
    let folder = folder();
    let text = "0 init\n1 init\n0 compute 1e6\n0 send 1 0 984\n1 recv 0 0 984\n";
    let trace = folder.write("trace.txt", text);
    let archive = folder.path("trace.pdt");
    command().args(["trace", "convert", "-", "-o"]).arg(&archive).write_stdin(text).assert().code(DONE);
    let json = |command: &mut assert_cmd::Command, input: Vec<u8>| -> serde_json::Value {
        let assert = command.write_stdin(input).assert().code(DONE);
        serde_json::from_slice(&assert.get_output().stdout).unwrap()
    };
    let read = |path: &std::path::Path| std::fs::read(path).unwrap();
    for input in [&trace, &archive] {
        let info = json(command().args(["trace", "info", "-", "--json"]), read(input));
        assert_eq!((&info["messages"], &info["by_kind"]["compute"]), (&1.into(), &1.into()));
        let report =
            json(command().args(["-", "--json", "--platform"]).arg(folder.path("fast.toml")), read(input));
        assert_eq!(report["ranks"], 2);
        assert_eq!(report["simulated_time_s"], 0.001_002_02);
    }
    let config = format!(
        "[trace]\npath = '{}'\n[platform]\nfile = '{}'\n",
        trace.display(),
        folder.path("fast.toml").display()
    );
    let report = json(command().args(["run", "--config", "-", "--json"]), config.clone().into_bytes());
    assert_eq!(report["simulated_time_s"], 0.001_002_02);
    let run = folder.write("run.toml", &config);
    let diagnosis = json(command().arg("diagnose").arg(&run).arg("--json"), Vec::new());
    assert_eq!(diagnosis["pop"]["ranks"], 2);
    let mut show = command();
    show.args(["platform", "show", "--json", "--route", "node-0", "node-1"]).arg(folder.path("fast.toml"));
    let platform = json(&mut show, Vec::new());
    assert_eq!((&platform["hosts"], &platform["cores"]), (&2.into(), &8.into()));
    assert_eq!(platform["route"]["links"].as_array().unwrap().len(), 2);
    command()
        .args(["trace", "info", "-"])
        .write_stdin("")
        .assert()
        .failure()
        .stderr(contains("no line with an action"));
}

/// Flags of all commands stand before the command or after it.
#[test]
fn quiet_may_precede_the_command() {
    let folder = folder();
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 compute 1e6\n");
    for words in [&["--quiet", "run"][..], &["-q"], &["run", "-q"], &["-v", "-q"]] {
        let mut run = command();
        run.args(words).arg(&trace).arg("--platform").arg(folder.path("fast.toml"));
        match words {
            ["-v", ..] => run.assert().code(MISUSE).stderr(contains("cannot be used with")),
            _ => run.assert().code(DONE).stdout("simulated time: 0.001000000 s\n"),
        };
    }
    command().args(["-q", "trace", "info"]).arg(&trace).assert().code(DONE).stdout(contains("ranks:    2"));
}
