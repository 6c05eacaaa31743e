//! Runs on several processes that are killed, and resumed on another number of processes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{OVERSUBSCRIBED, expect_failure, in_epochs, mpirun, platform, replay, text};
use crate::command_line::{DONE, FAILED, Folder, command};
use crate::determinism::all_calls;
use crate::epochs;

/// Starts the command on three processes, and kills it at its first checkpoint; returns whether it was killed before its end.
fn kill_at_first_checkpoint(arguments: &[&str], checkpoint: &Path) -> bool {
    let mut mpirun = Command::new(std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".to_owned()));
    mpirun.args(["-np", "3"]).arg(command().get_program()).args(arguments);
    mpirun.arg("--set=parallel.oversubscribe=true").envs(OVERSUBSCRIBED).env_remove("RUST_LOG");
    mpirun.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = mpirun.spawn().unwrap();
    while !checkpoint.exists() && process.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // A process that has ended meanwhile cannot be killed, which is equivalent.
    let _ = process.kill();
    !process.wait().unwrap().success()
}

fn report(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn another_number_of_processes_resumes() {
    let folder = Folder::new();
    let trace = epochs::generated(&folder, "lu", &["npb-lu", "--class=W", "--ranks=16", "--steps=20"]);
    let (trace, platform) = (text(&trace), platform());
    let (whole, parts, checkpoints) =
        (folder.path("whole"), folder.path("parts"), folder.path("checkpoints"));
    let with = |mut arguments: Vec<String>, more: &[(&str, &Path)]| {
        arguments.extend(more.iter().map(|(flag, path)| format!("{flag}={}", path.display())));
        arguments
    };
    let free = replay(&trace, &platform, &["--set=analysis.critical_path=true"]);
    let free: Vec<String> = free.into_iter().map(str::to_owned).collect();
    let regions = in_epochs(Path::new(&trace), epochs::TREE, &["--set=network.regions=4".to_owned()]);
    for arguments in [free, regions] {
        let [timeline, of_parts] = ["whole.json", "parts.json"].map(|name| folder.path(name));
        let once = with(arguments.clone(), &[("--report", &whole), ("--timeline", &timeline)]);
        let once: Vec<&str> = once.iter().map(String::as_str).collect();
        let assert = mpirun(1, &once);
        assert.code(DONE);
        let again = with(
            arguments,
            &[("--report", &parts), ("--timeline", &of_parts), ("--checkpoint", &checkpoints)],
        );
        let again: Vec<&str> = again.iter().map(String::as_str).chain(["--every=20ms", "--resume"]).collect();
        let was_killed = kill_at_first_checkpoint(&again, &checkpoints.join("checkpoint.pdk"));
        mpirun(2, &again).code(DONE);
        let timelines = [timeline, of_parts].map(|path| std::fs::read(path).unwrap());
        assert!(timelines[0] == timelines[1], "{again:?}");
        let (whole, parts) = (report(&whole), report(&parts));
        for part in ["digest", "epochs", "breakdown", "links", "critical_path", "time_by_action"] {
            assert_eq!(parts[part], whole[part], "{part} of {again:?}");
        }
        assert_eq!(parts["checkpoints"]["resumed_from"].is_u64(), was_killed, "{}", parts["checkpoints"]);
    }
}

#[test]
#[cfg_attr(not(feature = "mpi"), ignore = "needs the feature mpi")]
fn the_first_process_refuses_a_checkpoint() {
    let folder = Folder::new();
    let (trace, platform) = (text(&folder.write("calls.txt", &all_calls(3))), platform());
    let checkpoints = folder.path("checkpoints");
    std::fs::create_dir(&checkpoints).unwrap();
    std::fs::write(checkpoints.join("checkpoint.pdk"), "0 init\n").unwrap();
    let directory = format!("--checkpoint={}", checkpoints.display());
    let arguments = replay(&trace, &platform, &[&directory, "--resume"]);
    expect_failure(&arguments, FAILED, "is no checkpoint");
}
