//! Files of users: no command writes over its inputs, or over two outputs at once, and every file is written whole or not at all.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};

const PAIR: &str =
    "[topology]\nkind = 'cluster'\nhosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";
const MESSAGE: &str = "0 init\n1 init\n0 send 1 0 984\n1 recv 0 0 984\n";
const HYPOTHESIS: &str =
    "[[hypothesis]]\nname = 'half'\n[[hypothesis.transform]]\nkind = 'scale'\nfactor = 0.5\n";

/// A folder with each kind of file that commands read.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("trace.txt", MESSAGE);
    folder.write("pair.toml", PAIR);
    folder.write("hosts.txt", "node-0\nnode-1\n");
    folder.write(
        "run.toml",
        "[trace]\npath = 'trace.txt'\n[platform]\nfile = 'pair.toml'\nhosts = 'hosts.txt'\n",
    );
    folder.write("sweep.toml", "config = 'run.toml'\n[grid]\nnetwork.latency_scale = [1, 2]\n");
    folder.write("half.toml", HYPOTHESIS);
    run(&folder, &["trace", "convert", "trace.txt", "-o", "trace.pdt"]).success();
    run(&folder, &["trace", "convert", "trace.txt", "-o", "sharded.pdt", "--shards", "2"]).success();
    run(&folder, &["trace", "dump", "trace.pdt", "-o", "dumped"]).success();
    run(&folder, &["run", "run.toml", "--report", "run.json"]).success();
    folder
}

/// Runs a command in a folder.
fn run(folder: &Folder, arguments: &[&str]) -> assert_cmd::assert::Assert {
    command().current_dir(folder.path("")).args(arguments).assert()
}

/// All files below a directory with their contents.
fn contents(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(contents(&path)),
            false => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn no_output_is_an_input_or_another_output() {
    let folder = folder();
    #[cfg(unix)]
    std::os::unix::fs::symlink("trace.pdt", folder.path("link.json")).unwrap();
    fs::hard_link(folder.path("pair.toml"), folder.path("hard.json")).unwrap();
    let before = contents(&folder.path(""));
    let refused: &[&[&str]] = &[
        &["run", "run.toml", "--report", "trace.txt"],
        &["run", "run.toml", "--report", "run.toml"],
        &["run", "run.toml", "--report", "./pair.toml"],
        &["run", "run.toml", "--report", "hosts.txt"],
        &["run", "run.toml", "--trace", "trace.pdt", "--report", "link.json"],
        &["run", "run.toml", "--report", "hard.json"],
        &["run", "run.toml", "--trace", "sharded.pdt", "--report", "sharded.pdt.1"],
        &["run", "run.toml", "--trace", "dumped", "--report", "dumped/rank-1.txt"],
        &["run", "run.toml", "--trace", "dumped/files.txt", "--report", "dumped/rank-0.txt"],
        &["run", "run.toml", "--report", "new.json", "--timeline", "new.json"],
        &["run", "run.toml", "--model", "contention-free", "--profile", "new.json", "--report", "./new.json"],
        &["run", "run.toml", "--report", "-", "--timeline", "/dev/stdout", "--timeline-format", "csv"],
        &["validate", "trace.txt", "--platform", "pair.toml", "--report", "pair.toml"],
        &["diagnose", "run.toml", "--json", "run.json", "--reference", "run.json"],
        &["diagnose", "run.toml", "--json", "new.json", "--talp", "new.json"],
        &["report", "run.json", "-o", "run.json"],
        &["report", "run.json", "run.json", "-o", "./run.json"],
        &["trace", "convert", "trace.pdt", "-o", "trace.pdt"],
        &["trace", "convert", "dumped", "-o", "dumped/rank-0.txt"],
        &["trace", "cut", "trace.pdt", "--ranks", "0..1", "-o", "trace.pdt"],
        &["trace", "transform", "trace.pdt", "--with", "half.toml", "-o", "half.toml"],
        &["what-if", "half.toml", "--config", "run.toml", "--trace", "results/summary.json", "-o", "results"],
    ];
    for arguments in refused {
        run(&folder, arguments).code(MISUSE).stdout("").stderr(contains("too: name another file"));
        assert_eq!(contents(&folder.path("")), before, "{arguments:?}");
    }
    run(&folder, &["trace", "dump", "trace.pdt", "-o", "dumped"])
        .code(FAILED)
        .stderr(contains("files of a trace already"));
    assert_eq!(contents(&folder.path("")), before);
}

#[test]
#[cfg(target_os = "linux")]
fn reports_go_to_streams() {
    let folder = folder();
    for output in ["-", "/dev/stdout"] {
        let found = run(&folder, &["run", "run.toml", "--report", output]).code(DONE);
        let found = found.stderr(contains("simulated time: "));
        let report: serde_json::Value = serde_json::from_slice(&found.get_output().stdout).unwrap();
        assert_eq!(report["ranks"], 2);
    }
    run(&folder, &["run", "run.toml", "--report", "/dev/full"])
        .code(FAILED)
        .stderr(contains("/dev/full: No space left on device"));
    let is_device =
        |path: &str| std::os::unix::fs::FileTypeExt::is_char_device(&fs::metadata(path).unwrap().file_type());
    assert!(is_device("/dev/full"));
    run(&folder, &["run", "run.toml", "--report", "/dev/null"]).code(DONE);
    assert!(is_device("/dev/null"));
    // An archive is written in more than one pass.
    run(&folder, &["trace", "convert", "trace.txt", "-o", "/dev/stdout"])
        .code(FAILED)
        .stderr(contains("found a pipe or a device"));
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    run(&folder, &["run", "run.toml", "--report", "pipe"]).code(DONE);
    let read = reader.wait_with_output().unwrap().stdout;
    assert!(serde_json::from_slice::<serde_json::Value>(&read).is_ok());
}

#[test]
#[cfg(unix)]
fn links_stay_links() {
    let folder = folder();
    fs::create_dir(folder.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere/real.json", folder.path("link.json")).unwrap();
    run(&folder, &["run", "run.toml", "--report", "link.json"]).code(DONE);
    assert!(folder.path("link.json").is_symlink() && folder.path("elsewhere/real.json").is_file());
}

#[test]
fn an_output_that_is_a_directory_is_refused_before_the_run() {
    let folder = folder();
    fs::create_dir(folder.path("results")).unwrap();
    run(&folder, &["run", "run.toml", "--report", "results"])
        .code(MISUSE)
        .stdout("")
        .stderr(contains("found a directory, expected the name of a file"));
}

#[test]
fn a_folder_has_one_sweep() {
    let folder = folder();
    let sweep = |file: &str, more: &[&str]| run(&folder, &[&["sweep", file, "-o", "results"], more].concat());
    sweep("sweep.toml", &[]).code(DONE);
    let before = contents(&folder.path("results"));
    folder.write("other.toml", "config = 'run.toml'\n[grid]\nnetwork.bandwidth_scale = [1, 2]\n");
    sweep("other.toml", &[])
        .code(MISUSE)
        .stdout("")
        .stderr(contains("sweep.toml").and(contains("name another directory, or replace them with --fresh")));
    assert_eq!(contents(&folder.path("results")), before);
    // The same sweep continues, also with more values.
    folder.write("sweep.toml", "config = 'run.toml'\n[grid]\nnetwork.latency_scale = [1, 2, 3]\n");
    sweep("sweep.toml", &[]).code(DONE).stderr(contains("2 of them had been done before"));
    sweep("other.toml", &["--fresh"]).code(DONE);
    folder.write("sweep.csv", "config = 'run.toml'\n[grid]\nnetwork.latency_scale = [1]\n");
    run(&folder, &["sweep", "sweep.csv", "-o", "."]).code(MISUSE).stderr(contains("too: name another file"));
}

#[test]
#[cfg(unix)]
fn two_sweeps_do_not_write_into_one_folder_at_once() {
    let folder = folder();
    run(&folder, &["sweep", "sweep.toml", "-o", "results"]).code(DONE);
    let journal = fs::File::open(folder.path("results/runs.jsonl")).unwrap();
    journal.lock().unwrap();
    run(&folder, &["sweep", "sweep.toml", "-o", "results"])
        .code(FAILED)
        .stderr(contains("pdes-replay: another sweep is writing into results"));
    journal.unlock().unwrap();
    run(&folder, &["sweep", "sweep.toml", "-o", "results"]).code(DONE);
}
