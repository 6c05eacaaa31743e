//! Certificates: an independent program accepts those of all models and programs, and refuses corrupted ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use predicates::str::contains;

use crate::command_line::{DONE, FAILED, Folder, MISUSE, command};
use crate::reference::repository;

/// Sends, receives from any source, rendezvous, requests, a message to the same host, and collective operations.
const MIXED: &str = "0 init\n1 init\n2 init\n\
    0 isend 1 0 100\n0 sendRecv 10 1 20 1 6 6\n1 recv 0 0 100\n1 sendRecv 20 0 10 0 6 6\n\
    0 irecv -555 -444 100000 req=3\n2 compute 1e6\n2 send 0 7 100000\n0 wait req=3\n\
    0 allreduce 8 1000 0\n1 allreduce 8 1000 0\n2 allreduce 8 1000 0\n0 sleep 0.5\n\
    1 irecv -555 4 70000 req=1\n1 irecv 2 5 70000 req=2\n0 compute 3e5\n0 send 1 4 70000\n2 isend 1 5 70000\n2 isend 1 6 10\n\
    1 waitall\n2 waitall\n1 recv 2 6 10\n0 bcast 8 0 6\n1 bcast 8 0 6\n2 bcast 8 0 6\n\
    0 finalize\n1 finalize\n2 finalize\n";

/// Programs that are generated, each with the arguments.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("ring", &["ring", "--ranks", "5", "--rounds", "2"]),
    ("halo", &["--jitter=0.2", "--jitter-per=action", "halo3d", "--ranks", "2,2,2", "--iterations", "2"]),
    ("wavefront", &["npb-lu", "--class", "S", "--ranks", "4", "--steps", "1"]),
    ("master", &["master-worker", "--ranks", "4", "--tasks", "6"]),
    ("allreduce", &["allreduce-loop", "--ranks", "6", "--iterations", "2"]),
];

/// SimGrid's factors, weights, TCP window and cross traffic, without its merging of events.
const SIMGRID: [&str; 3] =
    ["--set=network.preset=smpi", "--set=network.precision_s=0", "--set=network.solve_scope=complete"];

/// A cluster of so few hosts that ranks share cores.
fn cluster(hosts: u32) -> String {
    format!(
        "[topology]\nkind = \"cluster\"\nhosts = {hosts}\nspeed = \"1Gf\"\nbandwidth = \"125MBps\"\nlatency = \"50us\"\n"
    )
}

/// Writes the traces of all programs; returns each with its text.
fn programs(folder: &Folder) -> Vec<(&'static str, PathBuf, PathBuf)> {
    let mixed = with_text(folder, "mixed", folder.write("mixed.txt", MIXED));
    let mut programs = vec![mixed];
    programs.extend(PROGRAMS.map(|program| generated(folder, program)));
    programs
}

/// Generates the trace of a program, with its text.
fn generated<'n>(folder: &Folder, (name, arguments): (&'n str, &[&str])) -> (&'n str, PathBuf, PathBuf) {
    let trace = folder.path(&format!("{name}.ti"));
    command().args(["trace", "generate", "-o"]).arg(&trace).args(arguments).assert().code(DONE);
    with_text(folder, name, trace)
}

fn with_text<'n>(folder: &Folder, name: &'n str, trace: PathBuf) -> (&'n str, PathBuf, PathBuf) {
    let dumped = command().args(["trace", "dump"]).arg(&trace).output().unwrap();
    let text = folder.write(&format!("{name}.text"), std::str::from_utf8(&dumped.stdout).unwrap());
    (name, trace, text)
}

/// Replays with and without a certificate, with the same digest; returns the certificate.
fn certify(folder: &Folder, name: &str, trace: &Path, platform: &Path, settings: &[&str]) -> PathBuf {
    let certificate = folder.path(name);
    let run = |extra: &[&str]| {
        let mut command = command();
        command.arg("--trace").arg(trace).arg("--platform").arg(platform).args(settings).args(extra);
        let output = command.assert().code(DONE).get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let digest = |text: &str| text.lines().find(|line| line.starts_with("digest")).unwrap().to_owned();
    let certified = run(&["--certificate", certificate.to_str().unwrap()]);
    assert!(certified.contains("B per message"), "{certified}");
    assert_eq!(digest(&certified), digest(&run(&[])));
    certificate
}

fn python(script: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(repository().join(script));
    python
}

/// Runs a script, which is to find nothing wrong, and returns what it prints.
fn expect_done(python: &mut Command) -> String {
    let output = python.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn certificates_are_verified_and_corrupted_ones_refused() {
    let folder = Folder::new();
    let (flat, dense) = (folder.write("flat.toml", &cluster(8)), folder.write("dense.toml", &cluster(3)));
    // Ranks on one host share its core, and send to themselves.
    let hosts: Vec<String> = [0, 0, 1, 0, 1, 2, 0, 1].iter().map(|host| format!("node-{host}\n")).collect();
    let hosts = format!("--set=platform.hosts={}", folder.write("hosts.txt", &hosts.concat()).display());
    let torus = repository().join("configs/platforms/torus-5g.toml");
    let mut files = Vec::new();
    let cases: [(&str, &Path, &[&str]); 4] = [
        ("flow", &torus, &[]),
        ("free", &flat, &["--model", "contention-free"]),
        ("simgrid", &flat, &SIMGRID),
        ("dense", &dense, &[&hosts, "--threads", "2"]),
    ];
    for (index, (name, trace, text)) in programs(&folder).into_iter().enumerate() {
        // All cases of one program, and one of each other.
        let chosen =
            cases.iter().enumerate().filter(|(case, _)| name == "mixed" || *case == index % cases.len());
        for (_, (case, platform, settings)) in chosen {
            let certificate = certify(&folder, &format!("{name}-{case}.cert"), &trace, platform, settings);
            files.extend([certificate, text.clone()]);
        }
    }
    // The script verifies each certificate before it corrupts it.
    let refused = expect_done(python("tests/certificates/corrupt.py").args(["270", "1"]).args(&files));
    assert!(refused.starts_with("270 of 270 refused"), "{refused}");
}

#[test]
fn what_is_skipped_is_proven() {
    let folder = Folder::new();
    let (flat, dense) = (folder.write("flat.toml", &cluster(8)), folder.write("dense.toml", &cluster(3)));
    let programs: [(&str, &[&str]); 3] = [
        ("rounds", &["ring", "--ranks", "5", "--rounds", "30"]),
        ("steps", &["npb-lu", "--class", "S", "--ranks", "4", "--steps", "8"]),
        ("allreduce", &["allreduce-loop", "--ranks", "6", "--iterations", "30"]),
    ];
    let mut files = Vec::new();
    for (name, trace, text) in programs.map(|program| generated(&folder, program)) {
        for (platform, model) in [(&flat, "flow"), (&dense, "flow"), (&flat, "contention-free")] {
            let certificate = format!("{name}-{model}.cert");
            let settings = ["--set=engine.fast_forward=true", "--model", model];
            let certificate = certify(&folder, &certificate, &trace, platform, &settings);
            let lines = std::fs::read_to_string(&certificate).unwrap();
            assert!(lines.contains("\nrepeat "), "{name} is skipped");
            let verified = expect_done(python("tools/check-certificate").arg(&certificate));
            let mut whole = command();
            whole
                .arg("--trace")
                .arg(&trace)
                .arg("--platform")
                .arg(platform)
                .args(["--model", model, "--json"]);
            let report: serde_json::Value =
                serde_json::from_slice(&whole.assert().code(DONE).get_output().stdout).unwrap();
            let end = (report["simulated_time_s"].as_f64().unwrap() * 1e12).round();
            assert!(verified.ends_with(&format!(" {end} ps\n")), "{verified}");
            if platform == &flat {
                files.extend([certificate, text.clone()]);
            }
        }
    }
    let refused = expect_done(python("tests/certificates/corrupt.py").args(["120", "2"]).args(&files));
    assert!(refused.starts_with("120 of 120 refused"), "{refused}");
}

#[test]
fn the_checker_compares_the_trace() {
    let folder = Folder::new();
    let trace = folder.write("one.txt", "0 init\n1 init\n0 send 1 0 100\n1 recv 0 0 100\n");
    let other = folder.write("other.txt", "0 init\n0 send 1 0 100 6\n1 init\n1 recv 0 0 200 6\n");
    let certificate = certify(&folder, "one.cert", &trace, &folder.write("flat.toml", &cluster(2)), &[]);
    let output =
        python("tools/check-certificate").arg(certificate).arg("--trace").arg(other).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILED));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("found 1 recv 0 0 100 6, the trace has 1 recv 0 0 200 6"), "{text}");
}

#[test]
fn what_the_checker_does_not_know_is_refused_by_name() {
    let folder = Folder::new();
    let trace = folder.write("one.txt", "0 init\n0 compute 1\n");
    let tests = folder
        .write("test.txt", "0 init\n0 irecv 0 0 8 req=1\n0 test req=1 done=-\n0 send 0 0 8\n0 wait req=1\n");
    let platform = folder.write("flat.toml", &cluster(2));
    let certificate = folder.path("one.cert");
    let refuse = |trace: &Path, settings: &[&str], status: i32, words: &str| {
        let mut command = command();
        command
            .arg("--trace")
            .arg(trace)
            .arg("--platform")
            .arg(&platform)
            .arg("--certificate")
            .arg(&certificate);
        command.args(settings).assert().code(status).stderr(contains(words));
        assert!(!certificate.exists());
    };
    refuse(&trace, &["--set=network.preset=smpi"], FAILED, "network.precision_s = 0");
    refuse(&trace, &["--set=mpi.send_overhead=0:1us:0"], FAILED, "overheads of calls");
    refuse(&trace, &["--set=mpi.collectives=analytic"], FAILED, "closed form");
    refuse(&trace, &["--set=mpi.bcast=arrival_scatter"], FAILED, "serve ranks as they arrive");
    refuse(&trace, &["--model", "packets"], FAILED, "the models flow and contention-free only");
    refuse(&trace, &["--set=network.epoch_s=auto"], FAILED, "network.epoch_s = 0");
    refuse(&tests, &[], FAILED, "rank 0, action 2: a certificate (output.certificate) has no calls of test");
    let unknown = ["--set=output.certificates=x"];
    refuse(&trace, &unknown, MISUSE, "certificates");
}
