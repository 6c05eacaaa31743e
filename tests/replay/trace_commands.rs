//! The commands that create, convert and inspect traces.

use std::path::{Path, PathBuf};

use predicates::str::{contains, ends_with};

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;

pub(crate) fn trace(arguments: &[&str], paths: &[&Path]) -> assert_cmd::assert::Assert {
    let mut command = command();
    command.arg("trace").args(arguments).args(paths);
    command.assert()
}

/// Replays a trace and returns the digest of its report.
fn digest(trace: &Path, folder: &Folder) -> String {
    let report = folder.path("report.json");
    let mut replay = command();
    replay.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml"));
    replay.arg("--trace").arg(trace).arg("--report").arg(&report).assert().code(DONE);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    report["digest"].as_str().unwrap().to_owned()
}

fn committed() -> PathBuf {
    repository().join("configs/traces/lu.S.8")
}

#[test]
fn text_archive_flat_archive_and_dumped_text_replay_to_one_digest() {
    let folder = Folder::new();
    let expected = digest(&committed(), &folder);
    let (folded, flat) = (folder.path("folded.pdt"), folder.path("flat.pdt"));
    trace(&["convert", "--threads=2", "--output"], &[&folded, &committed()]).code(DONE);
    trace(&["convert", "--flat", "--shards=3", "--output"], &[&flat, &committed()]).code(DONE);
    let text = folder.path("text");
    trace(&["dump", "--output"], &[&text, &folded]).code(DONE);
    for again in [&folded, &flat, &text] {
        assert_eq!(digest(again, &folder), expected, "{}", again.display());
        trace(&["check"], &[again]).code(DONE).stdout(contains("33969 actions, all right"));
    }
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&folded) < 33969 * 4, "{} bytes", size(&folded));
    trace(&["info"], &[&folded]).code(DONE).stdout(contains("actions:  33969")).stdout(contains("storage:"));
}

#[test]
fn the_whole_of_lu_class_e_is_an_archive_of_megabytes() {
    let folder = Folder::new();
    let archive = folder.path("lu-e.pdt");
    trace(&["generate", "npb-lu", "--class=E", "--ranks=16384", "--output"], &[&archive])
        .code(DONE)
        .stdout(contains("16384 ranks, 69762913207 actions"));
    assert!(std::fs::metadata(&archive).unwrap().len() < 64 << 20);
    trace(&["check"], &[&archive]).code(DONE).stdout(contains("all right"));
}

#[test]
fn generated_programs_replay() {
    let programs: [&[&str]; 7] = [
        &["npb-lu", "--class=S", "--ranks=4", "--steps=2"],
        &["halo3d", "--cells=32,32,32", "--processes=3,2,2", "--iterations=3", "--periodic"],
        &["alltoall-fft", "--ranks=8", "--grid=32,32,32", "--steps=2"],
        &["ring", "--ranks=5", "--rounds=7", "--jitter=0.2", "--jitter-per=action"],
        &["random-sparse", "--ranks=9", "--steps=3", "--rounds=2", "--seed=5"],
        &["traffic", "--pattern=hot-spot", "--ranks=9", "--messages=3", "--rounds=2", "--seed=5"],
        &["allreduce-loop", "--ranks=6", "--iterations=4"],
    ];
    for program in programs {
        let folder = Folder::new();
        let archive = folder.path("program.pdt");
        let arguments = [&["generate"], program, &["--output"]].concat();
        trace(&arguments, &[&archive]).code(DONE);
        let text = folder.path("text");
        trace(&["dump", "--output"], &[&text, &archive]).code(DONE);
        assert_eq!(digest(&archive, &folder), digest(&text, &folder), "{program:?}");
    }
}

#[test]
fn a_cut_trace_is_a_trace() {
    let folder = Folder::new();
    let (whole, part) = (folder.path("whole.pdt"), folder.path("part.pdt"));
    trace(&["generate", "ring", "--ranks=6", "--rounds=100", "--output"], &[&whole]).code(DONE);
    trace(&["cut", "--iterations=10", "--output"], &[&part, &whole]).code(DONE).stdout(contains("6 ranks"));
    trace(&["check"], &[&part]).code(DONE).stdout(contains("all right"));
    let ten = folder.path("ten.pdt");
    trace(&["generate", "ring", "--ranks=6", "--rounds=10", "--output"], &[&ten]).code(DONE);
    assert_eq!(digest(&part, &folder), digest(&ten, &folder));
    trace(&["cut", "--ranks=0..3", "--output"], &[&part, &whole]).code(DONE).stdout(contains("3 ranks"));
    trace(&["cut", "--ranks=3..3", "--output"], &[&part, &whole]).code(MISUSE).stderr(contains("0..64"));
    trace(&["cut", "--ranks=3..9", "--output"], &[&part, &whole]).code(FAILED).stderr(contains("6"));
}

#[test]
fn damage_is_found_and_named() {
    let folder = Folder::new();
    let archive = folder.path("lu.pdt");
    trace(&["convert", "--output"], &[&archive, &committed()]).code(DONE);
    let good = std::fs::read(&archive).unwrap();
    let damaged = folder.path("damaged.pdt");
    let check = |bytes: &[u8], words: &str| {
        std::fs::write(&damaged, bytes).unwrap();
        trace(&["check"], &[&damaged]).code(FAILED).stderr(contains(words)).stderr(contains("damaged.pdt"));
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    check(&good[..good.len() / 2], "");
    check(&flipped(9), "version");
    check(&flipped(100), "checksum");
    check(&flipped(5000), "checksum");
    std::fs::write(&damaged, flipped(5000)).unwrap();
    let mut replay = command();
    replay.arg("--platform").arg(repository().join("configs/platforms/torus-5g.toml")).arg("--trace");
    replay.arg(&damaged).assert().code(FAILED).stdout("").stderr(contains("checksum"));
}

#[test]
fn a_deadlock_on_any_machine_is_found() {
    let folder = Folder::new();
    let both = |first: &str, second: &str| {
        let calls = |me: u32, other: u32| {
            let call = |name: &str| format!("{me} {name} {other} 7 80000000\n");
            [call(first), call(second)].concat()
        };
        format!("0 init\n1 init\n{}{}", calls(0, 1), calls(1, 0))
    };
    let wrong = folder.write("wrong.txt", &both("recv", "send"));
    trace(&["check"], &[&wrong])
        .code(FAILED)
        .stderr(contains("no replay can end"))
        .stderr(contains("rank 1 waits in action 1"));
    // Whether large sends wait for their receives is the library's.
    let right = folder.write("right.txt", &both("send", "recv"));
    trace(&["check"], &[&right]).code(DONE).stdout(contains("all right"));
    let synchronous = folder.write("synchronous.txt", &both("ssend", "recv"));
    trace(&["check"], &[&synchronous]).code(FAILED).stderr(contains("no replay can end"));
}

#[test]
fn a_failed_conversion_leaves_nothing() {
    let folder = Folder::new();
    let bad = folder.write("bad.txt", "0 init\n0 compute 5\n0 nonsense\n");
    let archive = folder.path("out.pdt");
    trace(&["convert", "--output"], &[&archive, &bad]).code(FAILED).stderr(contains("bad.txt:3"));
    let left: Vec<_> =
        std::fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["bad.txt"]);
    let below_a_file = bad.join("out.pdt");
    trace(&["convert", "--output"], &[&below_a_file, &committed()])
        .code(FAILED)
        .stderr(contains("bad.txt/out.pdt"));
}

/// Runs a command that cannot write files larger than 64 KiB, as on a full drive.
fn on_a_full_drive(arguments: &[&str], paths: &[&Path]) -> assert_cmd::assert::Assert {
    let mut shell = assert_cmd::Command::new("bash");
    // The limit is in units of 1024 bytes. Without the trap the signal would end the command instead of causing an error.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" trace \"$@\""]);
    shell.arg(assert_cmd::cargo::cargo_bin("pdes-replay")).args(arguments).args(paths);
    shell.assert()
}

/// Returns the names in a folder, hidden ones too.
fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn a_full_drive_is_an_error_that_leaves_nothing() {
    let folder = Folder::new();
    // Amounts that no encoding compresses: more than 64 KiB in each form.
    let amount = |index: u64| index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    let lines: String = (1..30_000).map(|index| format!("0 compute {}\n", amount(index))).collect();
    let text = folder.write("trace.txt", &("0 init\n".to_owned() + &lines));
    let whole = folder.path("whole.pdt");
    trace(&["convert", "--output"], &[&whole, &text]).code(DONE);
    let (part, dumped) = (folder.path("part.pdt"), folder.path("dumped"));
    let full: [(&[&str], &[&Path], &str); 8] = [
        (&["convert", "--output"], &[&part, &text], "part.pdt"),
        (&["convert", "--flat", "--output"], &[&part, &text], "part.pdt"),
        (&["convert", "--flat", "--output"], &[&part, &whole], "part.pdt"),
        (&["cut", "--ranks=0..1", "--output"], &[&part, &text], "part.pdt"),
        (&["cut", "--ranks=0..1", "--output"], &[&part, &whole], "part.pdt"),
        (&["dump", "--output"], &[&dumped, &whole], "rank-0.txt"),
        (&["generate", "npb-lu", "--class=E", "--ranks=512", "--output"], &[&part], "part.pdt"),
        (&["generate", "npb-lu", "--class=E", "--ranks=512", "--shards=3", "--output"], &[&part], "part.pdt"),
    ];
    for (arguments, paths, file) in full {
        on_a_full_drive(arguments, paths)
            .code(FAILED)
            .stdout("")
            .stderr(contains(file))
            .stderr(contains("File too large"));
        assert_eq!(names(&folder), ["trace.txt", "whole.pdt"], "{arguments:?}");
    }
    // The previous file remains.
    std::fs::copy(&whole, &part).unwrap();
    on_a_full_drive(&["convert", "--output"], &[&part, &text]).code(FAILED);
    trace(&["check"], &[&part]).code(DONE);
}

/// A conversion that is killed at any moment leaves no file with the archive's name, and none that opens; the name of the remains
/// shows their purpose.
#[test]
fn a_killed_conversion_leaves_no_archive() {
    let folder = Folder::new();
    let input =
        folder.write("trace.txt", &("0 init\n".to_owned() + &"0 compute 5\n0 compute 7.5\n".repeat(400_000)));
    let archive = folder.path("out.pdt");
    let whole = folder.path("whole.pdt");
    trace(&["convert", "--flat", "--output"], &[&whole, &input]).code(DONE);
    let complete = std::fs::read(&whole).unwrap();
    for milliseconds in [1, 5, 20, 40, 60, 80, 120] {
        let mut convert = std::process::Command::new(assert_cmd::cargo::cargo_bin("pdes-replay"));
        convert.args(["trace", "convert", "--flat", "--output"]).arg(&archive).arg(&input);
        convert.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = convert.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        let finished = child.wait().unwrap().success();
        // A conversion that is killed at the very end may have renamed its file, which is then complete.
        if archive.exists() {
            trace(&["check"], &[&archive]).code(DONE);
            std::fs::remove_file(&archive).unwrap();
        } else {
            assert!(!finished, "after {milliseconds} ms");
        }
        for left in names(&folder).iter().filter(|name| !["trace.txt", "whole.pdt"].contains(&name.as_str()))
        {
            assert!(left.starts_with(".out.pdt.") && left.ends_with(".part"), "{left}");
            // Killed while the drive confirmed what was written, or before: complete, or seen to be incomplete.
            let part = folder.path(left);
            let expected = if std::fs::read(&part).unwrap() == complete { DONE } else { FAILED };
            trace(&["check"], &[&part]).code(expected);
            std::fs::remove_file(folder.path(left)).unwrap();
        }
    }
}

#[test]
fn wrong_parameters_are_misuse() {
    trace(&["generate", "npb-lu", "--class=S", "--ranks=7", "--output=x.pdt"], &[])
        .code(MISUSE)
        .stderr(contains("the nearest legal counts are 6 and 8"));
    trace(&["generate", "npb-lu", "--class=Q", "--ranks=8", "--output=x.pdt"], &[]).code(MISUSE);
    trace(&["generate", "halo3d", "--cells=1,2", "--output=x.pdt"], &[])
        .code(MISUSE)
        .stderr(contains("expected three whole numbers"));
    trace(&["generate", "ring"], &[]).code(MISUSE).stderr(contains("--output"));
    let counted = |output: &str| trace(&["convert", "--counter=PAPI_TOT_INS", output], &[&committed()]);
    counted("--output=x.prv")
        .code(MISUSE)
        .stderr(contains("--counter are for archives, not for traces of Paraver"));
    #[cfg(feature = "otf2")]
    counted("--output=x.pdt").code(FAILED).stderr(contains("lu.S.8: this is no archive of OTF2"));
}

#[test]
fn dump_without_a_directory_prints_merged_text() {
    let folder = Folder::new();
    let text = "0 init\n0 compute 250000\n0 barrier\n";
    let input = folder.write("trace.txt", text);
    trace(&["dump"], &[&input]).code(DONE).stdout(ends_with(text));
}
