//! From measurements to a machine that a replay can use.

use std::fmt::Write as _;
use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Config, Outcome, Simulation};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

/// Size above which sends wait for the receive.
const WAITS_FROM: u64 = 4097;

fn send(bytes: u64) -> f64 {
    2e-7 + bytes as f64 * 5e-11
}

fn receive(bytes: u64) -> f64 {
    if bytes <= 512 { 1e-7 } else { 1.5e-7 + bytes as f64 * 4e-11 }
}

/// Transfer time of a message.
fn network(bytes: u64) -> f64 {
    let size = bytes as f64;
    match bytes {
        0..=1000 => 1e-6 + size * 4e-10,
        1001..=4096 => 1.5e-6 + size * 2e-10,
        _ => 6e-6 + size * 1e-10,
    }
}

fn one_way(bytes: u64) -> f64 {
    if bytes < WAITS_FROM { send(bytes) + network(bytes) + receive(bytes) } else { network(bytes) }
}

/// Sizes by a factor of 1.15, and those beside the breakpoints.
fn sizes() -> Vec<u64> {
    let mut sizes: Vec<u64> = (0..100).map(|place| (1.15_f64.powi(place) * 2.0) as u64).collect();
    sizes.extend([0, 1, 512, 513, 1000, 1001, WAITS_FROM - 1, WAITS_FROM]);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Observations of a machine without noise.
fn observations() -> String {
    let mut text = "# mpi: a library\noperation,amount,start_s,duration_s\n".to_owned();
    for size in sizes() {
        let waits = size >= WAITS_FROM;
        let mut push =
            |operation: &str, seconds: f64| writeln!(text, "{operation},{size},0,{seconds:e}").unwrap();
        push("pingpong", 2.0 * one_way(size));
        push("send_late", if waits { 1e-2 } else { send(size) });
        push("recv", if waits { network(size) } else { receive(size) });
        push("isend", 3e-7);
    }
    text.push_str("compute,1000,0,1e-6\nirecv,0,0,6e-8\ntest,0,0,5e-8\niprobe,0,0,4e-8\n");
    text
}

/// Runs a trace on the machine, with a model and further settings, and returns the result.
fn run(machine: &Path, trace: &Path, assignments: &[&str]) -> Outcome {
    let mut config = Config::from_path(machine).unwrap();
    config.set_path("trace", "path", trace);
    assignments.iter().for_each(|assignment| config.set(assignment).unwrap());
    let spec = config.resolve().unwrap();
    let simulation = Simulation::load(&spec).unwrap();
    simulation.replay(&Progress::new(1)).unwrap()
}

/// The simulated time [s] of a trace on the machine.
fn replay(machine: &Path, trace: &Path, model: &str) -> f64 {
    let outcome = run(machine, trace, &[&format!("network.model={model}")]);
    outcome.simulated_time().to_string().parse().unwrap()
}

fn expect(found: f64, expected: f64, what: &str) {
    assert!((found / expected - 1.0).abs() < 1e-5, "found {found}, expected {expected}: {what}");
}

#[test]
fn replayed_times_equal_measured_times() {
    let folder = Folder::new();
    let observations = folder.write("observations.csv", &observations());
    let machine = folder.path("machine.toml");
    let mut calibrate = command();
    calibrate.args(["calibrate", "--output"]).arg(&machine).arg("--from").arg(&observations);
    let assert = calibrate.arg("--data").arg(folder.path("data")).assert().code(DONE);
    assert
        .stdout(contains("sends wait from: 4097 B"))
        .stderr(contains("machine.html").and(contains("WARN").not()));
    let kept = std::fs::read_to_string(folder.path("data/observations.csv")).unwrap();
    assert!(kept.contains("# mpi: a library\n") && kept.lines().count() > 400, "{kept}");
    let posts = "0 init\n1 init\n0 irecv 1 0 8\n1 compute 1e6\n1 send 0 0 8\n0 waitall\n";
    let posts = folder.write("posts.txt", posts);
    expect(
        replay(&machine, &posts, "contention-free"),
        1e-3 + one_way(8),
        "a post before the message comes costs nothing",
    );
    let alone = folder.write("posts.txt", "0 init\n1 init\n0 irecv 1 0 8\n0 compute 1e6\n1 send 0 0 8\n");
    expect(
        replay(&machine, &alone, "contention-free"),
        1e-3 + 6e-8 + receive(8),
        "a post, and the receive of what is there",
    );
    for size in sizes() {
        let rounds = format!("0 send 1 0 {size}\n1 recv 0 0 {size}\n1 send 0 0 {size}\n0 recv 1 0 {size}\n")
            .repeat(10);
        let trace = folder.write("trace.txt", &format!("0 init\n1 init\n{rounds}"));
        for model in ["flow", "contention-free"] {
            let what = format!("ping-pong of {size} B with {model}");
            expect(replay(&machine, &trace, model), 20.0 * one_way(size), &what);
        }
        // A millisecond of computation, after which the message is there, or begins to come.
        let late = format!("0 init\n1 init\n0 send 1 0 {size}\n1 compute 1e6\n1 recv 0 0 {size}\n");
        let trace = folder.write("late.txt", &late);
        let rest = if size < WAITS_FROM { receive(size) } else { network(size) };
        expect(replay(&machine, &trace, "flow"), 1e-3 + rest, &format!("{size} B, received late"));
        if size < WAITS_FROM {
            let alone = folder.write("alone.txt", &format!("0 init\n1 init\n0 isend 1 0 {size}\n"));
            expect(replay(&machine, &alone, "contention-free"), 3e-7, &format!("isend of {size} B"));
        }
    }
}

/// Computes before any region at 1 Gflop/s, and then in one of 2 and in one of 0.5 in turn; times in ns.
fn regions() -> String {
    let mut text = "0 init\n1 init\n0 compute 1e6 time=1000000\n1 compute 1e6 time=1000000\n".to_owned();
    for _ in 0..50 {
        for rank in 0..2 {
            writeln!(text, "{rank} location fast/inner 0\n{rank} compute 3e6 time=1500000").unwrap();
            writeln!(text, "{rank} location slow 0\n{rank} compute 2e6 time=4000000").unwrap();
        }
        text.push_str("0 send 1 0 8 time=0\n1 recv 0 0 8 time=0\n");
    }
    text
}

#[test]
fn regions_have_the_speeds_that_were_measured() {
    let folder = Folder::new();
    let observations = folder.write("observations.csv", &observations());
    let (trace, machine) = (folder.write("regions.txt", &regions()), folder.path("machine.toml"));
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o"]).arg(&machine).arg("--computations").arg(&trace).arg("--from");
    let assert = calibrate.arg(&observations).assert().code(DONE);
    // 251 Mflop in 276 ms.
    assert.stdout(contains("speed: 0.9094 Gflop/s\n  fast/inner: 2.0000 Gflop/s\n  slow: 0.5000 Gflop/s\n"));
    let mut validate = command();
    validate.arg("validate").arg(&trace).arg("--config").arg(&machine).args(["--within", "0.01%"]);
    validate.assert().code(DONE);
    // Iterations that are fast-forwarded are as fast as the others.
    let archive = folder.path("regions.pdt");
    command().args(["trace", "convert"]).arg(&trace).arg("-o").arg(&archive).assert().code(DONE);
    let [all, skipped] = ["false", "true"].map(|skips| {
        run(&machine, &archive, &["network.model=contention-free", &format!("engine.fast_forward={skips}")])
    });
    assert_eq!(all.program().ends, skipped.program().ends);
    let regions = |outcome: &Outcome| -> Vec<_> {
        let breakdowns = outcome.program().statistics.iter().filter_map(|statistics| statistics.breakdown());
        breakdowns.flat_map(|breakdown| breakdown.regions().cloned()).collect()
    };
    assert_eq!(regions(&all), regions(&skipped));
    assert!(skipped.fast_forward.is_some_and(|forward| forward.skipped_iterations > 0));
}

/// A program with calls of several kinds and sizes between computations of different lengths: of each rank the lines, and the
/// number of its last action.
fn program_of_calls() -> Vec<String> {
    let mut lines: Vec<String> = ["0 init", "1 init"].map(str::to_owned).to_vec();
    for step in 0_u64..120 {
        let bytes = [8, 300, 3000, 20_000, 100_000][step as usize % 5];
        let mut both = |of: &dyn Fn(u64) -> String| lines.extend([of(0), of(1)]);
        both(&|rank| format!("{rank} compute {}", 20_000 + (step * 7919 + rank * 104_729) % 30_011));
        both(&|rank| format!("{rank} irecv {} 0 {bytes}", 1 - rank));
        both(&|rank| format!("{rank} isend {} 0 {bytes}", 1 - rank));
        both(&|rank| format!("{rank} compute {}", 5_000 + (step * 31 + rank * 17) % 4_001));
        both(&|rank| format!("{rank} waitall"));
        both(&|rank| format!("{rank} allreduce {bytes} 0"));
        lines.extend(["0 send 1 1 40".to_owned(), "1 recv 0 1 40".to_owned()]);
    }
    lines
}

/// Adds to each line the time that its action takes in a replay with these settings \[ns\].
fn with_times(folder: &Folder, machine: &Path, lines: &[String], settings: &[&str]) -> String {
    let trace = folder.write("calls.txt", &(lines.join("\n") + "\n"));
    let timeline = folder.path("calls.csv");
    let mut assignments = settings.to_vec();
    let file = format!("timeline.file={}", timeline.display());
    assignments.push(&file);
    run(machine, &trace, &assignments);
    let states = std::fs::read_to_string(timeline).unwrap();
    let mut durations = [vec![], vec![]];
    for row in states.lines().skip(1) {
        let [rank, _, begin, end, _] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let [begin, end] = [begin, end].map(|time| time.parse::<u64>().unwrap());
        durations[rank.parse::<usize>().unwrap()].push((begin, end));
    }
    let mut next = durations.map(|mut states| {
        states.sort_unstable();
        states.into_iter()
    });
    let timed = lines.iter().map(|line| {
        let rank = usize::from(line.starts_with('1'));
        if line.ends_with("init") {
            return line.clone();
        }
        let (begin, end) = next[rank].next().unwrap();
        format!("{line} time={}", (end - begin).div_ceil(1000))
    });
    timed.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn costs_of_calls_are_those_of_the_recorded_programs() {
    let folder = Folder::new();
    let observations = folder.write("observations.csv", &observations());
    let [bare, machine] = ["bare.toml", "machine.toml"].map(|name| folder.path(name));
    command().args(["calibrate", "-o"]).arg(&bare).arg("--from").arg(&observations).assert().code(DONE);
    let truth = "mpi.call_overhead={ isend = '0:400ns:0;4096:900ns:0.05ns', irecv = '250ns', waitall = '1.5us', allreduce = '2us', \
                 recv = '700ns' }";
    let recorded = with_times(&folder, &bare, &program_of_calls(), &[truth]);
    let trace = folder.write("recorded.txt", &recorded);
    let error = |machine: &Path| {
        let report = folder.path("validation.json");
        let mut validate = command();
        validate.arg("validate").arg(&trace).arg("--config").arg(machine).arg("--report").arg(&report);
        validate.assert().code(DONE);
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
        json["communication"]["error"].as_f64().unwrap()
    };
    let without = error(&bare);
    assert!(without < -0.1, "{without}");
    // Two recordings of one program predict each other.
    let other = folder.write("other.txt", &recorded);
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o"]).arg(&machine).arg("--from").arg(&observations);
    let assert = calibrate.arg("--calls").arg(&trace).arg(&other).assert().code(DONE);
    assert.stdout(contains("  recorded ").and(contains("  other ")));
    let with = error(&machine);
    assert!(with.abs() < 0.005, "{with}");
    let text = std::fs::read_to_string(&machine).unwrap();
    let costs: toml::Table = toml::from_str(&text).unwrap();
    let costs = costs["mpi"]["call_overhead"].as_table().unwrap();
    let constant = |call: &str| {
        let section = costs[call].as_str().unwrap().split(':').nth(1).unwrap();
        section.strip_suffix("ns").unwrap().parse::<f64>().unwrap()
    };
    for (call, expected) in [("irecv", 250.0), ("waitall", 1500.0), ("allreduce", 2000.0), ("recv", 700.0)] {
        let found = constant(call);
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "{call}: found {found} ns, expected {expected}\n{text}"
        );
    }
}

#[test]
fn costs_of_calls_have_names_and_times() {
    let folder = Folder::new();
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 984\n1 recv 0 0 984\n");
    let platform = folder.write(
        "platform.toml",
        "[topology]\nkind = 'cluster'\nhosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n",
    );
    let run = |setting: &str| {
        let mut replay = command();
        replay.arg("--trace").arg(&trace).arg("--platform").arg(&platform).args([
            "--quiet",
            "--set",
            "network.preset=raw",
        ]);
        replay.args(["--set", setting]).assert()
    };
    // 3 us for the message, before it the cost of the send, and after it that of the receive.
    run("mpi.call_overhead={ send = '2us', recv = '0:500ns:1us' }").code(DONE).stdout(contains("0.0000055"));
    // Of lists of requests by their number, and of collective operations of one rank.
    let requests = folder.write(
        "requests.txt",
        "0 init\n0 irecv 0 0 8 req=1\n0 isend 0 0 8 req=2\n0 waitall req=1,2\n0 allreduce 8 0\n",
    );
    let alone = |setting: &str| {
        let mut replay = command();
        replay
            .arg("--trace")
            .arg(&requests)
            .arg("--platform")
            .arg(&platform)
            .args(["--quiet", "--set", setting]);
        replay.assert().code(DONE)
    };
    let time = |setting: &str| {
        let output = alone(setting).get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        text.trim_start_matches("simulated time: ").trim_end_matches(" s\n").parse::<f64>().unwrap()
    };
    let added = time("mpi.call_overhead={ waitall = '0:1ms:1ms', alone = '100ms', allreduce = '1s' }")
        - time("mpi.outcomes=recorded");
    assert!((added - 0.103).abs() < 1e-8, "{added}");
    run("mpi.call_overhead={ sendd = '1us' }")
        .code(MISUSE)
        .stderr(contains("found no such call, expected one of send"));
    run("mpi.call_overhead={ send = 'soon' }")
        .code(MISUSE)
        .stderr(contains("found \"soon\", expected a time"));
}

/// Numbers that would be refused without their unit, because hardly any machine has them.
#[test]
fn slow_networks_are_replayed_on() {
    let folder = Folder::new();
    let mut latency = "# OSU MPI Latency Test v7.2\n# Size  Avg Latency(us)\n".to_owned();
    for size in (0..20).map(|power| 1 << power) {
        writeln!(latency, "{size} {}", 1e4 + 2.0 * f64::from(size)).unwrap();
    }
    let (file, machine) = (folder.write("latency.txt", &latency), folder.path("machine.toml"));
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o"]).arg(&machine).arg("--speed=100").arg("--from").arg(&file);
    calibrate.assert().code(DONE);
    let text = std::fs::read_to_string(&machine).unwrap();
    assert!(text.contains("bandwidth = \"5e5Bps\"") && text.contains("speed = \"1e2f\""), "{text}");
    let trace = folder.write("trace.txt", "0 init\n1 init\n0 send 1 0 64\n1 recv 0 0 64\n");
    command().arg("--config").arg(&machine).arg("--trace").arg(trace).assert().code(DONE);
}

#[test]
fn files_of_several_benchmarks_together() {
    let folder = Folder::new();
    let mut latency = "# OSU MPI Latency Test v7.2\n# Size  Avg Latency(us)\n".to_owned();
    let mut bandwidth = "# OSU MPI Bandwidth Test v7.2\n# Size  Bandwidth (MB/s)\n".to_owned();
    for size in (0..20).map(|power| 1 << power) {
        writeln!(latency, "{size} {}", 1e6 * network(size)).unwrap();
        writeln!(bandwidth, "{size} {}", 1e4 * size as f64 / (100.0 + size as f64)).unwrap();
    }
    let files = [folder.write("latency.txt", &latency), folder.write("bandwidth.txt", &bandwidth)];
    let machine = folder.path("machine.toml");
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o"]).arg(&machine).arg("--speed=2e9").arg("--from").args(&files);
    calibrate.assert().code(DONE).stdout(contains("speed: 2.0000 Gflop/s"));
    let text = std::fs::read_to_string(&machine).unwrap();
    for line in ["latency.txt: 20 pingpong", "bandwidth.txt: 20 stream", "speed = \"2e9f\""] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let page = std::fs::read_to_string(folder.path("machine.html")).unwrap();
    assert!(page.contains("Streams in one direction"), "{page}");
    // Streams alone do not determine the latency of a message.
    let mut streams = command();
    streams.args(["calibrate", "-o"]).arg(&machine).arg("--from").arg(&files[1]);
    streams.assert().code(FAILED).stderr(contains("found stream, expected ping-pong"));
}

#[test]
fn invalid_inputs_are_reported() {
    let folder = Folder::new();
    let machine = folder.path("machine.toml");
    let calibrate = |arguments: &[&str]| {
        let mut command = command();
        command.args(["calibrate", "-o"]).arg(&machine).args(arguments);
        command.assert()
    };
    let text = folder.write("notes.txt", "hello\n");
    let assert = calibrate(&["--from", &text.to_string_lossy()]).code(FAILED);
    assert
        .stderr(contains("notes.txt: found \"hello\" at the beginning, expected the output of osu_latency"));
    calibrate(&["--speed=0"]).code(MISUSE).stderr(contains("--speed: found 0"));
    calibrate(&["--quantile=2"]).code(MISUSE).stderr(contains("--quantile: found 2"));
    calibrate(&["--largest=0"]).code(MISUSE).stderr(contains("--largest: found 0"));
    calibrate(&["--visits=0"]).code(MISUSE).stderr(contains("expected at least 1"));
    calibrate(&["--seed=2", "--from=x"]).code(MISUSE);
    assert!(!machine.exists());
}

/// Without MPI, the command says what measurements need.
#[test]
#[cfg_attr(feature = "mpi", ignore = "the program has MPI")]
fn a_program_without_mpi_cannot_measure() {
    let folder = Folder::new();
    let mut calibrate = command();
    calibrate.args(["calibrate", "-o"]).arg(folder.path("machine.toml"));
    calibrate
        .assert()
        .code(FAILED)
        .stderr(contains("built without MPI and cannot measure").and(contains("--from")));
}
