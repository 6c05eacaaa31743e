//! Files on storage devices: SimGrid's answers, closed forms, and what they work with.

use std::path::{Path, PathBuf};

use pdes_core::Progress;
use pdes_replay::{Config, Outcome, RunError, Simulation};
use predicates::str::contains;

use crate::checkpoints::replay_in_parts;
use crate::command_line::{DONE, FAILED, Folder, command};
use crate::matrix::digest;
use crate::reference::{Row, data, rows, shared};

/// Four ranks that write, compute and read in turn.
fn committed() -> PathBuf {
    data("storage/checkpoints.txt")
}

fn config(trace: &Path, platform: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    settings.iter().for_each(|setting| config.set(setting).unwrap());
    config
}

fn run(config: Config) -> Result<Outcome, RunError> {
    let simulation = Simulation::load(&config.resolve().unwrap())?;
    simulation.replay(&Progress::new(simulation.job().threads))
}

fn run_committed(settings: &[&str]) -> Result<Outcome, RunError> {
    run(config(&committed(), &data("storage/platform.toml"), settings))
}

/// Cases of SMPI's MPI-IO, and how far its ends may be from ours: it rounds the progress of each access to whole bytes at each step of
/// its clock.
const CASES: [(&str, f64); 6] = [
    ("io-indep", 2e-8),
    ("io-seq", 2e-8),
    ("io-all-contig", 1e-11),
    ("io-all-holes", 1e-11),
    ("io-all-overlap", 1e-9),
    ("io-ckpt8", 1e-11),
];

/// Independent and collective accesses, on local and on remote disks: the end of each rank.
#[test]
fn files_take_simgrids_times() {
    let Some(oracle) = shared("oracle/io") else { return };
    let expected = rows(&oracle.join("mpiio-expected.csv"));
    let folder = Folder::new();
    let mut compared = 0;
    for case in rows(&oracle.join("mpiio-cases.csv")) {
        let Some((_, tolerance)) = CASES.iter().find(|(trace, _)| case["trace"] == *trace) else { continue };
        let hosts = folder.write("hosts.txt", &case["hosts"].replace(' ', "\n"));
        let trace = oracle.join("traces").join(&case["trace"]).join("files.txt");
        let mut config = config(&trace, &oracle.join(&case["platform"]), &[]);
        config.set_path("platform", "hosts", &hosts);
        let outcome = run(config).unwrap();
        for (rank, end) in outcome.ends.iter().enumerate() {
            let of_rank = |row: &&Row| row["case"] == case["case"] && row["rank"] == rank.to_string();
            let last = expected.iter().rfind(of_rank).unwrap();
            let (found, expected): (f64, f64) = (end.as_secs_f64(), last["end_s"].parse().unwrap());
            assert!(
                (found - expected).abs() < *tolerance,
                "{} rank {rank}: {found}, expected {expected}",
                case["case"]
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 12 * 4 + 4);
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
        let open = outcome.ends.iter().map(|end| end.as_secs_f64()).collect::<Vec<_>>();
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

/// What files do not work with is refused, or said, by name.
#[test]
fn what_files_cannot_do_is_said() {
    let error = run_committed(&["network.epoch_s='auto'"]).unwrap_err().to_string();
    assert!(
        error.contains("the trace has calls on files") && error.contains("network.epoch_s = 0"),
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
    run(&[&with[..], &["--set", "engine.fast_forward=true"]].concat())
        .code(DONE)
        .stderr(contains("nothing is fast-forwarded: the state of storage devices is not compared"));
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
