//! Files on storage devices: SimGrid's answers, closed forms, and what they work with.

#[path = "storage/regions.rs"]
pub(crate) mod regions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pdes_core::{Bytes, Progress, Rank};
use pdes_replay::{Config, Model, Outcome, Parallelism, Report, RunError, Simulation};
use predicates::str::contains;
use trace_mmap::{ArchiveWriter, FileName};
use trace_tools::generate::{FilePattern, Generator, Ior, IorParameters};

use crate::checkpoints::replay_in_parts;
use crate::command_line::{DONE, FAILED, Folder, command};
use crate::matrix::digest;
use crate::reference::{Row, data, rows};
use crate::shared::shared;

/// Four ranks that write, compute and read in turn.
fn committed() -> PathBuf {
    data("storage/checkpoints.txt")
}

fn config(trace: &Path, platform: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    // More threads than there are cores, too.
    config.set("parallel.oversubscribe=true").unwrap();
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

fn run(config: Config) -> Result<Outcome, RunError> {
    let simulation = Simulation::load(&config.resolve().unwrap())?;
    simulation.replay(&Progress::new(simulation.spec().threads))
}

fn run_committed(settings: &[&str]) -> Result<Outcome, RunError> {
    run(config(&committed(), &data("storage/platform.toml"), settings))
}

/// Cases of SMPI's MPI-IO, and how far its ends may be from ours: it rounds the progress of each access to whole bytes at each step of
/// its clock.
const CASES: [(&str, f64); 8] = [
    ("io-indep", 5e-8),
    ("io-seq", 2e-8),
    ("io-all-contig", 1e-11),
    ("io-all-holes", 1e-11),
    ("io-all-overlap", 1e-9),
    ("io-ckpt8", 1e-11),
    ("io-shared", 2e-8),
    ("io-ordered", 1e-9),
];

/// Independent and collective accesses, on local and on remote disks: begin and end of each call that takes time.
#[test_with::shared]
fn files_take_simgrids_times() {
    let oracle = shared("oracle/io");
    let expected = rows(&oracle.join("mpiio-expected.csv"));
    let folder = Folder::new();
    let mut compared = 0;
    for case in rows(&oracle.join("mpiio-cases.csv")) {
        let (_, tolerance) = CASES.iter().find(|(trace, _)| case["trace"] == *trace).unwrap();
        let hosts = folder.write("hosts.txt", &case["hosts"].replace(' ', "\n"));
        let trace = oracle.join("traces").join(&case["trace"]).join("files.txt");
        let mut config = config(&trace, &oracle.join(&case["platform"]), &[]);
        config.set_path("platform", "hosts", &hosts);
        config.set_path("timeline", "file", &folder.path("run.csv"));
        run(config).unwrap();
        let states = rows(&folder.path("run.csv"));
        let ranks: usize = case["ranks"].parse().unwrap();
        for rank in (0..ranks).map(|rank| rank.to_string()) {
            let calls = expected.iter().filter(|row| row["case"] == case["case"] && row["rank"] == rank);
            let calls: Vec<&Row> = calls.filter(|row| row["begin_s"] != row["end_s"]).collect();
            let states = states.iter().filter(|row| row["rank"] == rank);
            let states: Vec<&Row> = states.filter(|row| row["begin_ps"] != row["end_ps"]).collect();
            assert_eq!(states.len(), calls.len(), "{} rank {rank}", case["case"]);
            for (state, call) in states.iter().zip(&calls) {
                for (of_state, of_call) in [("begin_ps", "begin_s"), ("end_ps", "end_s")] {
                    let found = state[of_state].parse::<f64>().unwrap() / 1e12;
                    let expected: f64 = call[of_call].parse().unwrap();
                    assert!(
                        (found - expected).abs() < *tolerance,
                        "{} rank {rank} {} {of_call}: {found}, expected {expected}",
                        case["case"],
                        call["action"]
                    );
                }
            }
            compared += calls.len();
        }
    }
    assert_eq!(compared, 372);
}

/// Rank 0 has the shared disk of 100 MB/s at its own host; writing 10 MB takes it 0.1 s, and the others as long as the data take
/// over a link of 1 GB/s before. Without contention, each has the disk for itself; with contention they share it.
#[test]
fn accesses_share_a_disk() {
    let text = "0 init\n1 init\n0 io-open /s/x\n1 io-open /s/x\n0 io-write /s/x 10000000\n1 io-write /s/x 10000000\n\
                1 io-read_at /s/x 0 5000000\n0 io-seek /s/x 3\n1 io-write /s/x 0\n";
    let folder = Folder::new();
    let trace = folder.write("trace.txt", text);
    let platform = "platform.topology={ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }";
    let storage = "platform.storage=[{ directory = '/s', host = 'node-0', shared = true, read = '50MBps', write = '100MBps' }]";
    let ends = |model: &str| {
        let mut config = Config::default();
        config.set_path("trace", "path", &trace);
        for setting in [platform, storage, "network.preset='raw'", &format!("network.model='{model}'")] {
            config.set(setting).unwrap();
        }
        let outcome = run(config).unwrap();
        let open = outcome.program().ends.iter().map(|end| end.as_secs_f64()).collect::<Vec<_>>();
        [open[0], open[1]]
    };
    // To open the file takes less than a microsecond. A read of 5 MB takes 0.1 s and another 5 ms back.
    let close = |found: [f64; 2], expected: [f64; 2]| {
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        assert!(
            near(found[0], expected[0]) && near(found[1], expected[1]),
            "{found:?}, expected {expected:?}"
        );
    };
    close(ends("contention-free"), [0.1, 0.11 + 0.105]);
    // Alone for 10 ms, 1 MB; then both at 50 MB/s: rank 0 ends after another 0.18 s, when 1 MB of rank 1 is left.
    close(ends("flow"), [0.19, 0.2 + 0.105]);
}

/// One digest without contention on any number of threads, and with contention from a checkpoint at any event.
#[test]
fn files_are_deterministic() {
    let free = |threads: u32| {
        let threads = format!("engine.threads={threads}");
        digest(&run_committed(&["network.model=contention-free", &threads]).unwrap())
    };
    assert_eq!(free(1), free(2));
    assert_eq!(free(1), free(3));
    let flow = digest(&run_committed(&[]).unwrap());
    assert_ne!(flow, free(1));
    let folder = Folder::new();
    let (outcome, parts) =
        replay_in_parts(config(&committed(), &data("storage/platform.toml"), &[]), &folder);
    assert_eq!(digest(&outcome.unwrap()), flow);
    assert!(parts > 2, "{parts} parts");
}

/// A file system on nodes 2 and 3 of a cluster without latencies; requests have no size.
const SYSTEM: &str = "directory = '/fs', servers = ['node-2', 'node-3'], start = 0, stripe = '1MB', transfer = '1MB', request = 0, device = { read = '100MBps', write = '100MBps' }";

/// Runs a program on a file system; returns the ends of its ranks [s].
fn run_on_system(text: &str, system: &str, settings: &[&str]) -> Result<Vec<f64>, RunError> {
    let outcome = run(on_system(&Folder::new().write("trace.txt", text), system, settings))?;
    Ok(outcome.program().ends.iter().map(|end| end.as_secs_f64()).collect())
}

fn on_system(trace: &Path, system: &str, settings: &[&str]) -> Config {
    let platform = "platform.topology={ kind = 'cluster', hosts = 5, speed = '1Gf', bandwidth = '1GBps', latency = '0s' }";
    let system = format!("platform.file_system=[{{ {SYSTEM}, {system} }}]");
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [&[platform, &system, "network.preset='raw'"], settings].concat() {
        config.set(setting).unwrap();
    }
    config
}

/// Returns whether ends are as expected but for the messages of a few bytes that open and close files.
fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    let are_near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-6);
    assert!(found.len() == expected.len() && are_near, "{what}: {found:?}, expected {expected:?}");
}

const FREE: &str = "network.model='contention-free'";

/// 4 MB are two stripes of 1 MB on each of two servers, in messages that take 1 ms without contention; a device takes 10 ms for each.
#[test]
fn accesses_go_through_servers() {
    let write = "0 init\n0 io-open /fs/x\n0 io-write /fs/x 4000000\n";
    let read = format!("{write}0 io-read_at /fs/x 0 4000000\n");
    let again = format!("{read}0 io-read_at /fs/x 1000000 3000000\n");
    let sync = format!("{write}0 io-sync /fs/x\n");
    let check = |text: &str, system: &str, model: &str, expected: f64| {
        let found = run_on_system(text, system, &[model]).unwrap();
        assert_near(&found, &[expected], &format!("{text} {system} {model}"));
    };
    check(write, "", FREE, 0.021);
    // With contention, four messages share the link of the client: all arrive after 4 ms.
    check(write, "", "network.model='flow'", 0.024);
    // One message under way with each server.
    check(write, "transfers = 1", FREE, 0.022);
    // The data of a read come after the device.
    check(&read, "", FREE, 0.021 + 0.021);
    // Two accesses on the device at once share its bandwidth: the first message comes as late as the second.
    check(write, "threads = 2", FREE, 0.021);
    // One request of 2 MB instead of two of 1 MB.
    check(write, "scheduler = 'merging', stripe_count = 1", FREE, 0.041);
    // Through a forwarder each message takes its time twice.
    check(write, "forwarders = ['node-4']", FREE, 0.022);
    check(&read, "forwarders = ['node-4']", FREE, 0.022 + 0.022);
    // A cache acknowledges at once, reads from it take the messages only, and a sync waits for the devices.
    let cache = "cache = { bytes = '8MB' }";
    check(write, cache, FREE, 0.001);
    check(&sync, cache, FREE, 0.021);
    check(&again, cache, FREE, 0.003);
    // Room for 1 MB of dirty data: the second message of each server waits until the first is on the device.
    check(write, "cache = { bytes = '8MB', dirty = '1MB' }", FREE, 0.012);
    // A cache of reads alone.
    check(&again, "cache = { bytes = '8MB', dirty = 0 }", FREE, 0.021 + 0.001 + 0.001);
    // Rank 2 has the server on its own host.
    let opens = "0 init\n1 init\n2 init\n0 io-open /fs/x\n1 io-open /fs/x\n2 io-open /fs/x\n";
    let local = format!("{opens}2 io-write /fs/x 4000000\n");
    let found = run_on_system(&local, "stripe_count = 1", &[FREE]).unwrap();
    assert_near(&found, &[0.0, 0.0, 0.04], "local");
}

/// Two clients that write to one server, each its own part: a lock of all of the file goes back and forth, so that no write of one is
/// on its way while the other writes.
#[test]
fn locks_of_extents_are_called_back() {
    let program = |first: &str, second: &str| {
        let of_rank = |rank: u32, access: &str| {
            format!("{rank} init\n{rank} io-open /fs/x\n{}", format!("{rank} {access}\n").repeat(2))
        };
        of_rank(0, first) + &of_rank(1, second)
    };
    let check = |text: &str, system: &str, expected: [f64; 2]| {
        let found = run_on_system(text, system, &[FREE]).unwrap();
        assert_near(&found, &expected, &format!("{text} {system}"));
    };
    let write = program("io-write_at /fs/x 0 1000000", "io-write_at /fs/x 1000000 1000000");
    check(&write, "stripe_count = 1", [0.031, 0.041]);
    check(&write, "stripe_count = 1, locks = true", [0.033, 0.044]);
    // Different servers have different locks.
    check(&write, "locks = true", [0.022; 2]);
    // Readers share; one that reads what the other writes waits for it.
    let (read, exists) = ("io-read_at /fs/x 0 1000000", "stripe_count = 1, files = { '/fs/x' = '100MB' }");
    let reads = program(read, read);
    let without = run_on_system(&reads, exists, &[FREE]).unwrap();
    check(&reads, &format!("{exists}, locks = true"), [without[0], without[1]]);
    let both = program(&read.replace("read", "write"), read);
    check(&both, &format!("{exists}, locks = true"), [0.033, 0.044]);
}

/// Two clients: queues of servers and of the metadata server are in the order of time, without contention, too.
#[test]
fn clients_wait_for_servers() {
    let write = "0 init\n1 init\n0 io-open /fs/x\n1 io-open /fs/x\n0 io-write_at /fs/x 0 1000000\n1 io-write_at /fs/x 2000000 1000000\n";
    for model in [FREE, "network.model='flow'"] {
        let found = run_on_system(write, "", &[model]).unwrap();
        let arrival = if model == FREE { 0.001 } else { 0.002 };
        assert_near(&found, &[arrival + 0.01, arrival + 0.02], model);
    }
    // Each of the two ranks opens the file in 1 ms, one after the other.
    let found = run_on_system(
        write,
        "metadata = { host = 'node-4', rate = 1000 }, cache = { bytes = '1GB' }",
        &[FREE],
    );
    assert_near(&found.unwrap(), &[0.003, 0.003], "metadata");
}

/// The report has what the devices of servers carried, what reads found in caches, and who waited.
#[test]
fn the_report_has_the_use_of_servers() {
    let folder = Folder::new();
    // Stripes of 1 MB from node 2 on, 4 and 1 MB: node 2 has 3 MB, node 3 has 2 MB; all of it is read again, half of it from the cache.
    let text = "0 init\n0 io-open /fs/x\n0 io-write /fs/x 5000000\n0 io-read_at /fs/x 0 5000000\n";
    let trace = folder.write("trace.txt", text);
    let run = |system: &str| {
        let simulation = Simulation::load(&on_system(&trace, system, &[FREE]).resolve().unwrap()).unwrap();
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        (
            Report::new(&simulation, &outcome).sections.file_servers.unwrap(),
            outcome.simulated_time().as_picos(),
        )
    };
    let (servers, end) = run("");
    assert_eq!(
        (&servers.hosts[..], &servers.directories[0][..]),
        (&["node-2".into(), "node-3".into()][..], "/fs")
    );
    assert_eq!(
        (&servers.written_bytes[..], &servers.read_bytes[..]),
        (&[3_000_000, 2_000_000][..], &[3_000_000, 2_000_000][..])
    );
    assert_eq!(
        (&servers.hit_bytes[..], &servers.missed_bytes[..]),
        (&[0, 0][..], &[0, 0][..]),
        "there is no cache"
    );
    // Three messages of a server come together; two, then one, wait for 10 ms each, of reads as of writes.
    assert_eq!(&servers.longest_queue[..], [2, 1]);
    for (queue, waited) in servers.mean_queue.iter().zip([6e10, 2e10]) {
        assert!((queue - waited / end as f64).abs() < 1e-3, "{queue}, expected {waited} of {end} ps");
    }
    for (series, bytes) in servers.series.iter().zip([6_000_000, 4_000_000]) {
        assert_eq!(series.iter().sum::<u64>(), bytes);
        assert!(series.len() as u64 <= end / servers.bin_ps + 1);
    }
    let (cached, _) = run("cache = { bytes = '8MB' }");
    assert_eq!((&cached.hit_bytes[..], &cached.missed_bytes[..]), (&[3_000_000, 2_000_000][..], &[0, 0][..]));
}

/// Timelines for Perfetto have the rates of the devices of servers: as much is read and written as the program does.
#[test]
fn timelines_have_counters_of_servers() {
    let folder = Folder::new();
    let trace = folder.write(
        "trace.txt",
        "0 init\n0 io-open /fs/x\n0 io-write /fs/x 5000000\n0 sleep 0.1\n0 io-read_at /fs/x 0 2000000\n",
    );
    let write = |name: &str, settings: &[&str]| {
        let mut config = on_system(&trace, "", &[&[FREE], settings].concat());
        config.set_path("timeline", "file", &folder.path(name));
        run(config).unwrap();
        std::fs::read_to_string(folder.path(name)).unwrap()
    };
    let amounts = |text: &str| {
        let timeline: serde_json::Value = serde_json::from_str(text).unwrap();
        let events = timeline["traceEvents"].as_array().unwrap();
        let mut sums = std::collections::BTreeMap::<String, (f64, f64, f64)>::new();
        for event in events.iter().filter(|event| event["ph"] == "C") {
            let process =
                |other: &&serde_json::Value| other["name"] == "process_name" && other["pid"] == event["pid"];
            let part = events.iter().find(process).unwrap()["args"]["name"].as_str().unwrap();
            let (at, value) =
                (event["ts"].as_f64().unwrap() * 1e-6, event["args"]["value"].as_f64().unwrap());
            let (sum, since, rate) =
                sums.entry(format!("{part}: {}", event["name"].as_str().unwrap())).or_default();
            (*sum, *since, *rate) = (*sum + *rate * (at - *since), at, value);
        }
        let rounded = |(name, (sum, _, rate)): (String, (f64, f64, f64))| (name, sum.round(), rate);
        sums.into_iter().map(rounded).collect::<Vec<_>>()
    };
    let text = write("run.json", &[]);
    // Node 2 has the first, third and fifth megabyte, node 3 the others; of the first two each is read again.
    let expected = [
        ("I/O server 0 of /fs on node-2: read [B/s]".to_owned(), 1e6, 0.0),
        ("I/O server 0 of /fs on node-2: write [B/s]".to_owned(), 3e6, 0.0),
        ("I/O server 1 of /fs on node-3: read [B/s]".to_owned(), 1e6, 0.0),
        ("I/O server 1 of /fs on node-3: write [B/s]".to_owned(), 2e6, 0.0),
    ];
    assert_eq!(amounts(&text), expected);
    // In a window of time behind the writes only the reads are seen.
    let found = amounts(&write("late.json", &["timeline.window='100ms..'"]));
    assert_eq!(found, [expected[0].clone(), expected[2].clone()]);
    assert!(!write("run.csv", &[]).contains("I/O server"));
}

/// A reader that goes through a file of 8 MB in steps of 1 MB on one server finds what was read ahead.
#[test]
fn sequential_reads_are_read_ahead() {
    let mut text = "0 init\n0 io-open /fs/x\n".to_owned();
    (0..8).for_each(|_| text.push_str("0 io-read /fs/x 1000000\n"));
    let run = |more: &str| {
        let system = format!("stripe_count = 1, files = {{ '/fs/x' = '8MB' }}{more}");
        run_on_system(&text, &system, &[FREE]).unwrap()
    };
    assert_near(&run(""), &[8.0 * 0.011], "no cache");
    assert_near(&run(", cache = { bytes = '1GB' }"), &[8.0 * 0.011], "no read-ahead");
    // 1 MB, then 1 + 3 MB, then 1 + 2 MB up to the end of the file.
    assert_near(&run(", cache = { bytes = '1GB', read_ahead = '3MB' }"), &[0.08 + 8.0 * 0.001], "read-ahead");
}

/// Hints of an open stripe a file without data: 4 MB are 40 ms of one device, or 20 ms of each of two.
#[test]
fn hints_stripe_new_files() {
    let check = |text: &str, system: &str, expected: f64| {
        let found = run_on_system(text, system, &[FREE]).unwrap();
        assert_near(&found, &[expected], &format!("{text} {system}"));
    };
    let write = |hints: &str| format!("0 init\n0 io-open /fs/x 0 {hints}\n0 io-write_at /fs/x 0 4000000\n");
    check(&write(""), "", 0.021);
    check(&write("striping_factor=1"), "", 0.041);
    check(&write("striping_unit=4000000"), "", 0.041);
    check(&write("striping_factor=2 striping_unit=500000"), "stripe_count = 1", 0.021);
    check(&write("striping_factor=100"), "stripe_count = 1", 0.021);
    // A file that exists keeps its stripes.
    check(&write("striping_factor=1"), "files = { '/fs/x' = '1MB' }", 0.021);
    let again = write("") + &write("striping_factor=1").replace("0 init\n", "");
    check(&again, "", 0.042);
    // Servers find the ends of files in their parts, and what sync waits for on the servers of the file.
    let cache = "cache = { bytes = '8MB', read_ahead = '8MB' }";
    let sync = write("striping_factor=1") + "0 io-sync /fs/x\n0 io-read_at /fs/x 0 4000000\n";
    check(&sync, cache, 0.041 + 0.001);
}

/// Generated programs in which each rank has files of its own: each of two servers has the files of one of two ranks, or opens them.
#[test]
fn ranks_have_files_of_their_own() {
    let folder = Folder::new();
    let generate = |arguments: &[&str]| {
        let trace = folder.path("own.pdt");
        let mut generate = command();
        generate.args(["trace", "generate"]).args(arguments).args(["--ranks", "2", "-o"]).arg(&trace);
        generate.assert().code(DONE);
        trace
    };
    let replay = |trace: &Path, system: &str| run(on_system(trace, system, &[FREE])).unwrap();
    let ior = ["ior", "--file-per-rank", "--file", "/fs/x", "--block", "1000000", "--transfer", "1000000"];
    let ends =
        replay(&generate(&[&ior[..], &["--write-only"]].concat()), "stripe_count = 1").into_program().ends;
    let ends: Vec<f64> = ends.iter().map(|end| end.as_secs_f64()).collect();
    assert_near(&ends, &[0.011, 0.021], "both files begin on the first server");
    let opens = generate(&["mdtest", "--files", "3", "--file", "/fs/x"]);
    let ends = replay(&opens, "metadata = { host = 'node-4', rate = 1000 }").into_program().ends;
    let last = ends.iter().map(|end| end.as_secs_f64()).fold(0.0, f64::max);
    assert!((last - 0.006).abs() < 1e-4, "six opens of a millisecond: {ends:?}");
}

/// A read beyond the end is an error of the program, with its place and what to do, wherever the end is known.
#[test]
fn reads_beyond_the_end_are_errors() {
    let error = |text: &str, system: &str| run_on_system(text, system, &[FREE]).unwrap_err().to_string();
    let written = "0 init\n0 io-open /fs/x\n0 io-write /fs/x 4000000\n0 io-read_at /fs/x 3000000 1000001\n";
    let message = error(written, "");
    for words in [":4:", "rank 0, action 3", "reads beyond the end", "which has 4000000 B", "`files`"] {
        assert!(message.contains(words), "{words}: {message}");
    }
    let read = "0 init\n0 io-open /fs/y\n0 io-read /fs/y 4000000\n";
    assert!(error(read, "files = { '/fs/y' = 100 }").contains("which has 100 B"));
    let collective = "0 init\n1 init\n0 io-read_at_all /fs/y 0 60\n1 io-read_at_all /fs/y 60 60\n";
    assert!(error(collective, "files = { '/fs/y' = 100 }").contains("rank 1, action 1"));
    // A file that the program reads first was there before.
    run_on_system(read, "", &[FREE]).unwrap();
}

/// Accesses at a shared pointer of a file system come one after the other, each behind the last one.
#[test]
fn shared_pointers_move_in_the_order_of_time() {
    let text = "0 init\n1 init\n0 io-open /fs/x\n1 io-open /fs/x\n0 compute 1000000\n0 io-write_shared /fs/x 1000000\n\
                1 io-write_shared /fs/x 1000000\n0 io-read_at /fs/x 0 2000000\n";
    // Rank 1 writes the first stripe up to 11 ms; then rank 0 writes the second, and reads both at once.
    let found = run_on_system(text, "", &[FREE]).unwrap();
    assert_near(&found, &[0.022 + 0.011, 0.011], "shared");
}

/// A nonblocking access begins at its call, beside the computations of the program, and completes its request.
#[test]
fn nonblocking_accesses_overlap_with_computations() {
    let program = |access: &str, computation: &str, wait: &str| {
        format!("0 init\n0 io-open /fs/x\n0 {access} req=3\n0 compute {computation}\n0 {wait}\n")
    };
    let check = |text: &str, expected: f64| {
        for model in [FREE, "network.model='flow'"] {
            let found = run_on_system(text, "stripe_count = 1", &[model]).unwrap();
            assert_near(&found, &[expected], &format!("{text} {model}"));
        }
    };
    // A write of 1 MB takes 11 ms.
    let write = "io-iwrite_at /fs/x 0 1000000";
    check(&program(write, "5e6", "wait req=3"), 0.011);
    check(&program(write, "50e6", "waitall req=3"), 0.05);
    check(&program("io-iread /fs/x 1000000", "5e6", "waitany req=3 done=3"), 0.011);
    check(&program("io-iwrite_shared /fs/x 1000000", "5e6", "wait req=3"), 0.011);
    check(&program("io-iwrite_all /fs/x 1000000", "50e6", "wait req=3"), 0.05);
    // What no call completes is completed at the end; a test polls.
    check(&program(write, "5e6", "barrier"), 0.011);
    let polls = program(write, "20e6", "test req=3 done=3\n0 compute 1e6");
    let found = run_on_system(&polls, "stripe_count = 1", &[FREE]).unwrap();
    // The test costs 0.1 ms.
    assert_near(&found, &[0.0211], "test");
    // The pointer moves at the call: the second write goes to the second server.
    let two = "0 init\n0 io-open /fs/x\n0 io-iwrite /fs/x 1000000 req=0\n0 io-iwrite /fs/x 1000000 req=1\n0 waitall req=0,1\n";
    let found = run_on_system(two, "", &[FREE]).unwrap();
    assert_near(&found, &[0.011], "two servers");
    // On one server one access is behind the other; with contention the data share the link of the client.
    for (model, expected) in [(FREE, 0.021), ("network.model='flow'", 0.022)] {
        let found = run_on_system(two, "stripe_count = 1", &[model]).unwrap();
        assert_near(&found, &[expected], model);
    }
}

/// Nonblocking accesses of several ranks: collective ones meet beside the program, those at a shared pointer come one after the other.
#[test]
fn nonblocking_accesses_of_several_ranks() {
    let begin = "0 init\n1 init\n0 io-open /fs/x\n1 io-open /fs/x\n";
    // Rank 1 comes 20 ms later, so that the write takes from 20 to 31 ms, in which rank 0 computes for 50 ms.
    let all = format!(
        "{begin}1 compute 20e6\n0 io-iwrite_at_all /fs/x 0 1000000 req=0\n1 io-iwrite_at_all /fs/x 1000000 1000000 req=0\n\
         0 compute 50e6\n0 wait req=0\n1 wait req=0\n"
    );
    let found = run_on_system(&all, "", &[FREE]).unwrap();
    assert_near(&found, &[0.05, 0.031], "collective");
    let shared = format!(
        "{begin}0 io-iwrite_shared /fs/x 1000000 req=0\n0 io-iwrite_shared /fs/x 1000000 req=1\n0 waitall req=0,1\n\
         1 compute 1e6\n1 io-write_shared /fs/x 1000000\n"
    );
    let found = run_on_system(&shared, "", &[FREE]).unwrap();
    assert_near(&found, &[0.022, 0.033], "shared");
    let calls = ["0 io-iwrite_all /fs/x 8 req=0\n0 wait req=0\n", "0 io-write_all /fs/x 8\n"];
    let different = format!("{begin}{}{}", calls[0], calls[1].replace("0 io", "1 io"));
    let folder = Folder::new();
    let trace = folder.write("different.txt", &different);
    command().args(["trace", "convert"]).arg(&trace).arg("-o").arg(folder.path("a.pdt")).assert().code(DONE);
    command()
        .args(["trace", "check"])
        .arg(folder.path("a.pdt"))
        .assert()
        .code(FAILED)
        .stderr(contains("io-iwrite_all"));
}

/// 1 MB of every 2 MB, by ROMIO's data sieving: reads and writes take the holes, too, as far as the buffer reaches.
#[test]
fn independent_accesses_sieve_holes() {
    let check = |call: &str, hints: &str, system: &str, expected: f64| {
        let text =
            format!("0 init\n0 io-open /fs/x 0 {hints}\n0 io-set_view /fs/x 0 2000000 0:1000000\n0 {call}\n");
        let found = run_on_system(&text, &format!("stripe_count = 1{system}"), &[FREE]).unwrap();
        assert_near(&found, &[expected], &format!("{call} {hints} {system}"));
    };
    let exists = ", files = { '/fs/x' = '100MB' }";
    // The device takes 10 ms for a megabyte, and the last message of each access 1 ms.
    check("io-read /fs/x 2000000", "", exists, 0.031);
    check("io-read_all /fs/x 2000000", "", exists, 0.031);
    check("io-read_at /fs/x 1000000 1000000", "", exists, 0.011);
    check("io-read /fs/x 2000000", "ind_rd_buffer_size=1000000", exists, 0.022);
    check("io-read /fs/x 2000000", "romio_ds_read=disable", exists, 0.022);
    // Pieces of 512 KiB: two for the first megabyte with a part of the hole, two for the second without.
    let pieces = 1_048_576.0 + 1e6;
    check("io-write /fs/x 2000000", "", "", pieces * 11e-9);
    // What exists is read before.
    check("io-write /fs/x 2000000", "", exists, pieces * 22e-9);
    check("io-write /fs/x 2000000", "romio_ds_write=disable", exists, 0.022);
    check("io-write /fs/x 2000000", "ind_wr_buffer_size=4000000", "", 0.031);
    // Such an access beside the program.
    check("io-iread /fs/x 2000000 req=0\n0 compute 40e6\n0 wait req=0", "", exists, 0.04);
}

/// Two ranks have every second megabyte, in views or in parts of 1 MB; ROMIO's aggregators are both.
#[test]
fn collective_accesses_follow_romio() {
    let check = |access: &str, hints: &str, io: &str, expected: [f64; 2]| {
        let of_rank = |rank: u32| {
            let place = format!("{}000000", rank);
            format!(
                "{rank} init\n{rank} io-open /fs/x 0 {hints}\n{rank} io-set_view /fs/x {place} 2000000 0:1000000\n{rank} {access}\n"
            )
        };
        let text = of_rank(0) + &of_rank(1);
        let io = format!("mpi.collective_io='{io}'");
        let found = run_on_system(&text, "files = { '/fs/x' = '100MB' }", &[FREE, &io]).unwrap();
        assert_near(&found, &expected, &format!("{access} {hints} {io}"));
    };
    let write = "io-write_all /fs/x 2000000";
    // 1 MB goes to the other aggregator, then both write 2 MB, of which each server has half, first that of rank 0.
    check(write, "", "romio", [0.012, 0.022]);
    check("io-read_at_all /fs/x 0 2000000", "", "romio", [0.022; 2]);
    check("io-iwrite_all /fs/x 2000000 req=1", "", "romio", [0.012, 0.022]);
    // One aggregator gets 2 MB, and writes all; the other rank has sent its data then.
    check(write, "cb_nodes=1", "romio", [0.023, 0.002]);
    // In two rounds of 1 MB, of the same server each; the second begins when both aggregators have written, at 22 ms.
    check(write, "cb_buffer_size=1000000", "romio", [0.034, 0.044]);
    // Parts that are not interleaved are accessed by each rank itself, unless hints say otherwise.
    let apart = "io-write_all /fs/x 1000000";
    check(apart, "", "romio", [0.011; 2]);
    check(apart, "romio_cb_write=enable cb_nodes=1", "romio", [0.012, 0.001]);
    check("io-read_all /fs/x 2000000", "romio_cb_read=disable romio_ds_read=disable", "romio", [0.022; 2]);
    // SMPI's chunks are the same two halves; the data are exchanged behind the access.
    check(write, "", "smpi", [0.022; 2]);
    check(apart, "", "smpi", [0.011; 2]);
}

/// The trace of all kinds of calls has one digest on any number of threads, and from a checkpoint at any event, in three models.
#[test]
fn file_systems_are_deterministic() {
    let text =
        std::fs::read_to_string(committed()).unwrap().replace("/scratch", "/fs").replace("/tmp", "/fs/tmp");
    let text = text.replace(
        "0 io-read_all /fs/tmp/log 0\n",
        "0 io-write_shared /fs/x 100000\n0 io-iwrite_shared /fs/x 1000 req=4\n0 io-iwrite /fs/x 200000 req=5\n\
         0 wait req=5\n0 wait req=4\n0 io-read_all /fs/tmp/log 0\n",
    );
    let text = format!("{text}{}", (0..4).map(|rank| {
        format!("{rank} io-set_view /fs/x {rank} 10000 0:100:1000:9\n{rank} io-iwrite_all /fs/x 90000 req=9\n{rank} io-read_at /fs/x {rank}000 5000\n{rank} wait req=9\n")
    }).collect::<String>());
    let folder = Folder::new();
    let trace = folder.write("trace.txt", &text);
    let system = "cache = { bytes = '3MB', dirty = '1MB', read_ahead = '100kB' }, forwarders = ['node-4', 'node-3'], metadata = { host = 'node-4', rate = 1000 }, scheduler = 'by-offset', locks = true, files = { '/fs/state' = '100MB', '/fs/tmp/log' = '1MB', '/fs/x' = '1GB' }";
    let mut digests = BTreeSet::new();
    let latency = "platform.topology.latency='1us'";
    for settings in [
        &[FREE, "mpi.collective_io='romio'"] as &[&str],
        &["network.model='flow'", "mpi.collective_io='smpi'"],
        &["network.model='packets'", "mpi.collective_io='smpi'", latency],
    ] {
        let at = |more: &[&str]| run(on_system(&trace, system, &[settings, more].concat())).unwrap();
        let one = digest(&at(&[]));
        for threads in ["engine.threads=2", "engine.threads=3"] {
            assert_eq!(digest(&at(&[threads])), one);
        }
        let parts_in = Folder::new();
        let (outcome, parts) = replay_in_parts(on_system(&trace, system, settings), &parts_in);
        assert_eq!(digest(&outcome.unwrap()), one, "{settings:?}");
        assert!(parts > 2, "{parts} parts");
        digests.insert(one.to_string());
    }
    assert_eq!(digests.len(), 3);
}

/// Replays an archive with and without fast-forwarding; expects one result, and returns the number of iterations skipped.
fn skipped(config: &Config) -> u64 {
    let replay = |forwards: bool| {
        let mut config = config.clone();
        config.set(&format!("engine.fast_forward={forwards}")).unwrap();
        let simulation = Simulation::load(&config.resolve().unwrap()).unwrap();
        let outcome = simulation.replay(&Progress::new(1)).unwrap();
        let servers = Report::new(&simulation, &outcome).sections.file_servers;
        (digest(&outcome), serde_json::to_string(&servers).unwrap(), outcome.fast_forward)
    };
    let (whole, forwarded) = (replay(false), replay(true));
    assert_eq!((whole.0, whole.1), (forwarded.0, forwarded.1));
    forwarded.2.unwrap().skipped_iterations
}

/// Loops with accesses to files are fast-forwarded when the state of devices, servers and caches recurs, and the result is that of the
/// complete replay, with the use of servers over time.
#[test]
fn iterations_with_files_are_fast_forwarded() {
    let folder = Folder::new();
    let archive = |iteration: &str| {
        let of_rank = |rank: u32| {
            let iterations = format!("R compute 1e6\n{iteration}").repeat(200);
            format!("R init\nR io-open /fs/x\n{iterations}R io-close /fs/x\nR finalize\n")
                .replace('R', &rank.to_string())
        };
        let text = folder.write("loop.txt", &(0..3).map(of_rank).collect::<String>());
        let archive = folder.path("loop.pdt");
        command().args(["trace", "convert"]).arg(text).arg("-o").arg(&archive).assert().code(DONE);
        archive
    };
    let own = "R io-open /fs/x\nR io-seek /fs/x R00000\nR io-write /fs/x 100000\nR io-write_at_all /fs/x R00000 50000\n\
               R io-read_at /fs/x R00000 70000\nR io-close /fs/x\n";
    let growing = "R io-write /fs/x 100000\nR allreduce 10 0\n";
    let cached = "cache = { bytes = '3MB', dirty = '1MB', read_ahead = '100kB' }, metadata = { host = 'node-4', rate = 10000 }, forwarders = ['node-4']";
    for model in [FREE, "network.model='flow'"] {
        for system in ["", cached, "locks = true, scheduler = 'merging'"] {
            let found = skipped(&on_system(&archive(own), system, &[model]));
            assert!(found > 100, "{model} {system}: {found} iterations skipped");
            // The files grow.
            assert_eq!(skipped(&on_system(&archive(growing), system, &[model])), 0);
        }
        let on_device = |device: &str, iteration: &str| {
            let platform = "platform.topology={ kind = 'cluster', hosts = 3, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
            let storage = format!(
                "platform.storage=[{{ directory = '/fs', host = 'node-0', shared = true, {device} }}]"
            );
            let mut config = Config::default();
            config.set_path("trace", "path", &archive(iteration));
            for setting in [platform, &storage, "network.preset='raw'", model] {
                config.set(setting).unwrap();
            }
            skipped(&config)
        };
        let hard_disk = "kind = 'hard-disk', bandwidth = '100MBps', average_seek = '8ms', track_seek = '1ms', rotations_per_minute = 7200";
        for device in
            ["read = '100MBps', write = '50MBps'", "kind = 'ssd', read = '1GBps', write = '1GBps'", hard_disk]
        {
            let found = on_device(device, own);
            assert!(found > 100, "{model} {device}: {found} iterations skipped");
            // Positions matter to a disk with an arm.
            let grows = on_device(device, growing);
            assert_eq!(grows == 0, device == hard_disk, "{model} {device}: {grows}");
        }
    }
}

/// A cluster with storage, and the settings that make its messages take no time but that of their data.
fn on_storage(storage: &str, text: &str, settings: &[&str]) -> Result<Outcome, RunError> {
    let platform = "platform.topology={ kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '10GBps', latency = '0s' }";
    let folder = Folder::new();
    let mut config = Config::default();
    config.set_path("trace", "path", &folder.write("trace.txt", text));
    for setting in [&[platform, storage, "network.preset='raw'"], settings].concat() {
        config.set(setting).unwrap();
    }
    run(config)
}

fn last_end(outcome: &Outcome) -> f64 {
    outcome.program().ends.iter().map(|end| end.as_secs_f64()).fold(0.0, f64::max)
}

const SSD: &str = "kind = 'ssd', read = '3GBps', write = '2GBps', write_cache = 8000000";

/// All data go through the channels of a device, whatever its cache does: the cache saves the time of what it still has at the end.
#[test]
fn write_caches_make_no_device_faster() {
    let write = |call: &str, sizes: [u32; 2]| {
        let pair = sizes.map(|bytes| format!("0 {} {bytes}\n", call)).concat();
        format!("0 init\n0 io-open /d/f\n{}", pair.repeat(50))
    };
    let device = format!("platform.storage=[{{ directory = '/d', {SSD} }}]");
    let servers =
        format!("platform.file_system=[{{ directory = '/d', servers = ['node-1'], device = {{ {SSD} }} }}]");
    for storage in [&device, &servers] {
        for call in ["io-write /d/f", "io-write_all /d/f"] {
            for sizes in [[8_000_000, 8_400_000], [8_400_000, 8_400_000], [1_000_000, 500_000]] {
                let bound = (50 * (sizes[0] + sizes[1]) - 8_000_000) as f64 / 2e9;
                let ends = [FREE, "network.model='flow'"].map(|model| {
                    let end = last_end(&on_storage(storage, &write(call, sizes), &[model]).unwrap());
                    assert!(end >= bound, "{storage} {call} {sizes:?} {model}: {end}, at least {bound}");
                    end
                });
                // One rank has the device for itself in either model.
                assert!(storage != &device || (ends[0] - ends[1]).abs() < 1e-6, "{sizes:?}: {ends:?}");
            }
        }
    }
    // Nonblocking collective accesses find the cache full.
    let nonblocking =
        (0..50).map(|_| "0 io-iwrite_all /d/f 8000000 req=1\n0 wait req=1\n").collect::<String>();
    let text = format!("0 init\n0 io-open /d/f\n{nonblocking}");
    for model in [FREE, "network.model='flow'"] {
        assert!(last_end(&on_storage(&device, &text, &[model]).unwrap()) >= 49.0 * 4e-3, "{model}");
    }
}

/// An arm that is where an access begins need not move, in either model.
#[test]
fn sequential_accesses_seek_once() {
    let device = "platform.storage=[{ directory = '/d', kind = 'hard-disk', bandwidth = '100MBps', average_seek = '8ms', track_seek = '1ms', rotations_per_minute = 7200 }]";
    let seek = 0.008 + 1.0 / 240.0;
    let own = "0 io-write /d/f 1000000\n";
    for (accesses, expected) in [
        (own.repeat(100), 1.0 + seek),
        (format!("{own}0 compute 5e6\n").repeat(100), 1.5 + seek),
        (format!("{own}0 io-write /d/g 1000000\n").repeat(50), 1.0 + 100.0 * seek),
        ("0 io-write_all /d/f 1000000\n".repeat(100), 1.0 + seek),
        ("0 io-iwrite /d/f 1000000 req=1\n0 wait req=1\n".repeat(100), 1.0 + seek),
    ] {
        for model in [FREE, "network.model='flow'"] {
            let text = format!("0 init\n0 io-open /d/f\n0 io-open /d/g\n{accesses}");
            let found = last_end(&on_storage(device, &text, &[model]).unwrap());
            assert!((found - expected).abs() < 1e-6, "{model}: {found}, expected {expected}");
        }
    }
}

/// A file is used while it is open, and all ranks access the same one together; a file that nobody opens was open before the trace.
#[test]
fn misused_files_are_errors_with_rank_and_action() {
    let device = "platform.storage=[{ directory = '/d', read = '1GBps', write = '1GBps' }]";
    for (calls, expected) in [
        (
            "io-write /d/f 10;io-open /d/f",
            "action 2: io-open: the file \"/d/f\" is opened here for the first time",
        ),
        (
            "io-open /d/f;io-close /d/f;io-read /d/f 10",
            "action 3: io-read: the file \"/d/f\" is used after it was closed",
        ),
        ("io-open /d/f;io-close /d/f;io-close /d/f", "action 3: io-close: the file \"/d/f\" is closed here"),
        (
            "io-open /d/f;io-close /d/f;io-set_view /d/f 0",
            "action 3: io-set_view: the file \"/d/f\" is used after",
        ),
        ("io-open /d/f;io-close /d/f;io-iwrite /d/f 1 req=1;wait req=1", "action 3: io-iwrite: the file"),
        ("io-open /d/f;io-close /d/f;io-sync /d/f", "action 3: io-sync: the file"),
        ("io-open /d/f;io-close /d/f;io-seek /d/f 5", "action 3: io-seek: the file"),
    ] {
        let text = calls.split(';').map(|call| format!("0 {call}\n")).collect::<String>();
        for (storage, model) in
            [(device, FREE), (device, "network.model='flow'"), ("mpi.envelope_bytes=16", FREE)]
        {
            let error = on_storage(storage, &format!("0 init\n{text}"), &[model]).unwrap_err().to_string();
            assert!(error.contains("rank 0") && error.contains(expected), "{calls}: {error}");
        }
    }
    for calls in [
        "io-write /d/f 10;io-close /d/f;io-open /d/f;io-read /d/f 10;io-close /d/f",
        "io-open /d/f;io-open /d/f;io-close /d/f;io-write /d/f 10;io-close /d/f",
        "io-write_at_all /d/f 0 10",
    ] {
        let text = calls.split(';').map(|call| format!("0 {call}\n")).collect::<String>();
        on_storage(device, &format!("0 init\n{text}"), &[FREE]).unwrap();
    }
    let begin = "0 init\n1 init\n0 io-open /d/f\n1 io-open /d/f\n0 io-open /d/g\n1 io-open /d/g\n";
    for call in ["io-write_all", "io-read_ordered", "io-iwrite_all"] {
        let end = if call == "io-iwrite_all" { " req=1" } else { "" };
        let text = format!("{begin}0 {call} /d/f 10{end}\n1 {call} /d/g 10{end}\n");
        for model in [FREE, "network.model='flow'"] {
            let error = on_storage(device, &text, &[model]).unwrap_err().to_string();
            let both = error.contains("\"/d/f\"") && error.contains("\"/d/g\"");
            assert!(both && error.contains("must access the same file"), "{error}");
        }
    }
}

/// Without contention and without file systems, a replay in the order of time has the digest of one without that order.
#[test]
fn the_order_of_time_changes_nothing_without_contention() {
    let text = "0 init\n1 init\n2 init\n0 compute 1e6\n1 compute 3.3e5\n0 isend 1 0 100000\n0 wait 0 1 0\n1 recv 0 0 100000\n0 allreduce 1000 1000\n\
                1 allreduce 1000 1000\n2 allreduce 1000 1000\n2 sleep 0.01\n2 send 0 1 20\n0 recv 2 1 20\n0 barrier\n1 barrier\n2 barrier\n";
    let folder = Folder::new();
    let trace = folder.write("trace.txt", text);
    let config = on_system(&trace, "", &[FREE]);
    let mut spec = config.resolve().unwrap();
    let run = |spec: &pdes_replay::RunSpec| {
        let simulation = Simulation::load(spec).unwrap();
        digest(&simulation.replay(&Progress::new(1)).unwrap())
    };
    let free = run(&spec);
    spec.model = Box::leak(Box::new(Model { parallelism: Parallelism::None, ..spec.model.clone() }));
    assert_eq!(run(&spec), free);
}

/// A file system that clients cannot reach is refused before the replay; several threads are of no use to it, and a warning says so.
#[test]
fn file_systems_need_routes_and_one_order() {
    let folder = Folder::new();
    let graph = "topology = { kind = 'graph' }\nhost = [{ name = 'a', speed = '1Gf' }, { name = 'b', speed = '1Gf' }]\n\
                 file_system = [{ directory = '/fs', servers = ['b'], device = { read = 1e9, write = 1e9 } }]\n";
    let platform = folder.write("graph.toml", graph);
    let trace = folder.write("trace.txt", "0 init\n0 io-open /fs/x\n");
    let error = run(config(&trace, &platform, &[])).unwrap_err().to_string();
    assert!(
        error.contains("the file system \"/fs\"") && error.contains("no route from \"a\" to \"b\""),
        "{error}"
    );
    let shared = folder.write("shared.txt", "0 init\n0 io-open /fs/x\n0 io-write_shared /fs/x 10\n");
    // Without latency there is no lookahead.
    for (trace, expected) in [
        (shared, "accesses to devices of other hosts, or at shared pointers, have one order of events"),
        (trace, "the model has one order of events"),
    ] {
        let config = on_system(&trace, "", &[FREE, "engine.threads=2"]);
        let warnings = Simulation::load(&config.resolve().unwrap()).unwrap().warnings();
        let expected = format!("runs on one thread: {expected}");
        assert!(warnings.iter().any(|warning| warning.ends_with(&expected)), "{warnings:?}");
    }
}

/// Combinations in which files do not work are refused, or warned of, by name.
#[test]
fn what_files_cannot_do_is_said() {
    let error = run_committed(&["network.epoch_s='auto'"]).unwrap_err().to_string();
    assert!(
        error.contains("the trace has calls on files on devices of other hosts")
            && error.contains("network.epoch_s = 0"),
        "{error}"
    );
    let folder = Folder::new();
    let archive = folder.path("io.pdt");
    command().args(["trace", "convert"]).arg(committed()).arg("--output").arg(&archive).assert().code(DONE);
    // The archive has the same calls.
    let dump =
        command().args(["trace", "dump"]).arg(&archive).assert().code(DONE).get_output().stdout.clone();
    let calls =
        |text: &str| text.lines().filter(|line| line.contains(" io-")).map(str::to_owned).collect::<Vec<_>>();
    let (dumped, written) =
        (calls(&String::from_utf8(dump).unwrap()), std::fs::read_to_string(committed()).unwrap());
    assert_eq!((dumped.len(), dumped), (64, calls(&written)));
    let run = |flags: &[&str]| {
        let mut run = command();
        run.arg("--trace").arg(&archive).args(flags).assert()
    };
    let with = data("storage/platform.toml");
    let with = ["--platform", with.to_str().unwrap()];
    let shared =
        folder.write("shared.txt", "0 init\n0 io-open /scratch/x\n0 io-write_shared /scratch/x 10\n");
    let shared_archive = folder.path("shared.pdt");
    command().args(["trace", "convert"]).arg(&shared).arg("-o").arg(&shared_archive).assert().code(DONE);
    command()
        .arg("--trace")
        .arg(&shared_archive)
        .args(with)
        .args(["--set", "engine.fast_forward=true"])
        .assert()
        .code(DONE)
        .stderr(contains(
            "nothing is fast-forwarded: the positions of pointers that ranks share are not compared",
        ));
    let without = data("storage/no-storage.toml");
    run(&["--platform", without.to_str().unwrap()])
        .code(DONE)
        .stderr(contains("calls on files take no time: the platform has no storage"));
    let other =
        folder.write("other.toml", &std::fs::read_to_string(with[1]).unwrap().replace("/scratch", "/other"));
    run(&["--platform", other.to_str().unwrap()]).code(FAILED).stderr(contains(
        "the host \"node-0\" has no storage for the file \"/scratch/state\": it sees /other",
    ));
}

/// IOR on one file system after another: clients, servers, sizes and levels of access.
///
/// No write is faster than the devices of the servers that the file has, than the interfaces of its clients, or than those of its servers.
#[test]
fn no_access_is_faster_than_its_bounds() {
    const DEVICE: f64 = 100e6;
    const INTERFACE: f64 = 1e9;
    const STRIPE: u64 = 64 << 10;
    let folder = Folder::new();
    for (clients, servers) in [(1, 1), (2, 1), (5, 5), (10, 4), (10, 20_u64)] {
        let hosts = clients + servers;
        let topology = format!(
            "platform.topology={{ kind = 'cluster', hosts = {hosts}, speed = '1Gf', bandwidth = '1GBps', latency = '10us' }}"
        );
        let system = format!(
            "platform.file_system=[{{ directory = '/fs', servers = ['node-[{clients}-{}]'], stripe = '64KiB', start = 0, device = {{ read = '100MBps', write = '100MBps' }} }}]",
            hosts - 1
        );
        for bytes in [10 << 10, 1 << 20, 100 << 20] {
            for (segments, collective) in [(1, false), (1, true), (8, false), (8, true)] {
                let block = Bytes::new(bytes / segments);
                let parameters = IorParameters {
                    ranks: clients as u32,
                    segments,
                    block,
                    access: FilePattern {
                        file: FileName::new("/fs/ior").unwrap(),
                        file_per_rank: false,
                        collective,
                        transfer: block,
                        sync: false,
                    },
                    read: false,
                    ..IorParameters::default()
                };
                let trace = folder.path("ior.pdt");
                let ior = Ior::new(parameters).unwrap();
                let mut writer = ArchiveWriter::create(&trace, ior.ranks(), 1).unwrap();
                for rank in (0..ior.ranks()).map(Rank::new) {
                    writer.write_rank(rank, &ior.rank(rank)).unwrap();
                }
                writer.finish().unwrap();
                let mut config = Config::default();
                config.set_path("trace", "path", &trace);
                for setting in [&*topology, &system, "network.preset='raw'", "network.model='flow'"] {
                    config.set(setting).unwrap();
                }
                let time = run(config).unwrap().simulated_time().as_secs_f64();
                let of_client = (block.get() * segments) as f64;
                // The stripes of the server that has most.
                let (stripes, rest) =
                    (block.get() * segments * clients / STRIPE, block.get() * segments * clients % STRIPE);
                let last = if stripes % servers > 0 { STRIPE } else { rest };
                let of_server = (stripes / servers * STRIPE + last) as f64;
                let bound = (of_server / DEVICE).max(of_client / INTERFACE);
                let case = format!(
                    "{clients} clients, {servers} servers, {bytes} B, {segments} segments, collective: {collective}"
                );
                assert!(time >= bound * (1.0 - 1e-9), "{case}: {time} s, bound {bound} s");
                if segments == 1 && bytes >= 1 << 20 {
                    // In large pieces, what is lost is the way of the first data, and what servers wait for at the end.
                    assert!(time <= bound * 1.3, "{case}: {time} s, bound {bound} s");
                }
            }
        }
    }
}
