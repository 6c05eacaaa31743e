//! Processes that are killed while they replay and write.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use super::generate;
use crate::command_line::{DONE, FAILED, Folder};
use crate::determinism::committed_platform;
use crate::reference::is_campaign;

/// Largest number of times that a run is killed, so that it ends eventually.
const KILLS: u32 = 5;

/// Programs that are replayed for some hundred checkpoints.
const LONG: [(&str, &[&str]); 5] = [
    ("npb-lu", &["--class=A", "--ranks=8"]),
    ("halo3d", &["--cells=64,64,64", "--processes=4,4,4", "--iterations=800", "--jitter=0.3"]),
    ("random-sparse", &["--ranks=128", "--steps=400"]),
    ("allreduce-loop", &["--ranks=64", "--iterations=1500", "--jitter=0.2"]),
    ("master-worker", &["--ranks=8", "--tasks=20000"]),
];

fn replay(trace: &Path, arguments: &[&str], paths: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("pdes-replay"));
    command.env_remove("RUST_LOG").arg("--trace").arg(trace).arg("--platform");
    command
        .arg(committed_platform("fattree-hdr.toml"))
        .args(["--model", "contention-free", "--quiet"])
        .args(arguments);
    paths.iter().for_each(|(flag, path)| {
        command.arg(flag).arg(path);
    });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn report(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The checkpoint's hash, which is at its end.
fn last_hash(checkpoint: &Path) -> Option<Vec<u8>> {
    std::fs::read(checkpoint).ok().map(|bytes| bytes[bytes.len().saturating_sub(32)..].to_vec())
}

/// Waits until there is another checkpoint than this one; returns whether there is, or the process has ended before.
fn wait_for_another(checkpoint: &Path, before: Option<&Vec<u8>>, process: &mut Child) -> bool {
    loop {
        if last_hash(checkpoint).is_some_and(|hash| Some(&hash) != before) {
            return true;
        }
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the result without wall-clock times.
fn result(report: &serde_json::Value) -> [&serde_json::Value; 5] {
    ["digest", "simulated_time_ps", "messages", "time_by_action", "outcomes"].map(|field| &report[field])
}

#[test]
fn runs_that_are_killed_at_any_moment() {
    // Each program takes seconds of waiting for checkpoints.
    let programs = if is_campaign() { &LONG[..] } else { &LONG[..2] };
    for &generator in programs {
        let folder = Folder::new();
        let trace = generate(&folder, generator);
        let (whole, parts, checkpoints) =
            (folder.path("whole"), folder.path("parts"), folder.path("checkpoints"));
        let timelines = [folder.path("whole.json"), folder.path("parts.json")];
        let window = "--timeline-window=5ms..8ms";
        let paths = [("--report", &*whole), ("--timeline", &*timelines[0])];
        assert!(replay(&trace, &[window], &paths).status().unwrap().success());
        let checkpoint = checkpoints.join("checkpoint.pdk");
        let mut kills = 0;
        let (output, resumed) = loop {
            let threads = ["--threads=1", "--threads=3"][kills as usize % 2];
            let arguments = ["--every=5ms", "--resume", threads, window];
            let before = last_hash(&checkpoint);
            let paths =
                [("--report", &*parts), ("--checkpoint", &*checkpoints), ("--timeline", &*timelines[1])];
            let mut process = replay(&trace, &arguments, &paths).spawn().unwrap();
            if kills < KILLS && wait_for_another(&checkpoint, before.as_ref(), &mut process) {
                std::thread::sleep(Duration::from_micros(RandomState::new().hash_one(kills) % 20_000));
                // A process that has ended meanwhile cannot be killed, which is equivalent.
                let _ = process.kill();
            }
            let output = process.wait_with_output().unwrap();
            if output.status.code().is_some() {
                break (output, before.is_some());
            }
            kills += 1;
        };
        assert_eq!(output.status.code(), Some(DONE), "{generator:?}: {}", text(&output));
        let (whole, parts) = (report(&whole), report(&parts));
        assert_eq!(result(&parts), result(&whole), "{generator:?}");
        assert_eq!(parts["checkpoints"]["resumed_from"].is_u64(), resumed, "{generator:?}");
        let [whole, parts] = timelines.map(|timeline| std::fs::read(timeline).unwrap());
        assert!(
            whole == parts && whole.len() > 10_000,
            "{generator:?}: {} bytes, {}",
            whole.len(),
            parts.len()
        );
        let mut files = std::fs::read_dir(&checkpoints).unwrap();
        let is_of_events = |name: &str| name.starts_with("events-");
        let mut left = files.by_ref().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(
            !checkpoint.exists() && !left.any(|name| is_of_events(&name)),
            "a run that has ended needs none"
        );
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ctrl-C and SIGTERM: one more checkpoint, and the exit status of a failure.
#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_writes_a_last_checkpoint() {
    let folder = Folder::new();
    // Some seconds: the signal has to come in time.
    let trace = generate(&folder, ("npb-lu", &["--class=B", "--ranks=8"]));
    let (checkpoints, first) = (folder.path("checkpoints"), folder.path("first"));
    let paths = [("--report", &*first), ("--checkpoint", &*checkpoints)];
    let checkpoint = checkpoints.join("checkpoint.pdk");
    let mut process = replay(&trace, &["--every=10ms"], &paths).spawn().unwrap();
    assert!(wait_for_another(&checkpoint, None, &mut process), "the run takes longer than that");
    let signalled = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(FAILED));
    assert!(text(&output).contains("--resume continues from"), "{}", text(&output));
    assert!(checkpoint.is_file() && !first.exists());
    // Without --resume the next run starts from the beginning, with a warning.
    let output = replay(&trace, &[], &paths).output().unwrap();
    assert_eq!(output.status.code(), Some(DONE), "{}", text(&output));
    assert!(text(&output).contains("starting from the beginning"), "{}", text(&output));
    assert!(report(&first)["checkpoints"]["resumed_from"].is_null());
}
