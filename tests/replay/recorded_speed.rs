//! The speed of a trace: of which machine its times are, and what other hosts make of its computations.

use std::path::{Path, PathBuf};

use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty, starts_with};

use crate::command_line::{DONE, Folder, MISUSE, command};

/// A host of a speed.
fn host(folder: &Folder, speed: &str) -> PathBuf {
    let cluster = "kind = 'cluster'\nhosts = 1\nbandwidth = '1GBps'\nlatency = '1us'\n";
    folder.write(&format!("{speed}.toml"), &format!("[topology]\nspeed = '{speed}'\n{cluster}"))
}

/// A rank that runs for 200 us, in Paraver's format.
fn paraver(folder: &Folder) -> PathBuf {
    folder.write("run.pcf", "STATES\n0    Idle\n1    Running\n");
    folder
        .write("run.prv", "#Paraver (09/10/2019 at 16:09):200000_ns:1(1):1:1(1:1),0\n1:1:1:1:1:0:200000:1\n")
}

/// A schedule of one computation of 200 us.
fn schedule(folder: &Folder) -> PathBuf {
    folder.write("run.goal", "num_ranks 1\nrank 0 {\nl1: calc 200000\n}\n")
}

/// Replays a trace on a host; returns the simulated time and the warnings.
fn replay(trace: &Path, host: &Path, flags: &[&str]) -> (String, String) {
    let mut replay = command();
    let assert =
        replay.arg("run").arg(trace).arg("-q").arg("--platform").arg(host).args(flags).assert().code(DONE);
    let [time, warnings] = [&assert.get_output().stdout, &assert.get_output().stderr]
        .map(|text| String::from_utf8(text.clone()).unwrap());
    let time = time.strip_prefix("simulated time: ").expect("one line").trim_end().to_owned();
    (time, warnings)
}

fn convert(trace: &Path, archive: &Path, flags: &[&str]) -> assert_cmd::assert::Assert {
    command().args(["trace", "convert", "-q"]).arg(trace).arg("-o").arg(archive).args(flags).assert()
}

fn info(trace: &Path) -> String {
    let assert = command().args(["trace", "info"]).arg(trace).assert().code(DONE);
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn times_on_other_hosts_are_changed_with_one_warning_and_kept_on_hosts_of_the_speed_of_the_recording() {
    let folder = Folder::new();
    let [slow, fast] = ["1Gf", "50Gf"].map(|speed| host(&folder, speed));
    let archive = folder.path("run.pdt");
    convert(&paraver(&folder), &archive, &[]).code(DONE);
    for trace in [paraver(&folder), archive, schedule(&folder)] {
        assert_eq!(replay(&trace, &slow, &[]), ("0.000200000 s".into(), String::new()));
        let (time, warning) = replay(&trace, &fast, &[]);
        assert_eq!(time, "0.000004000 s");
        let expected = " WARN computations take 0.02 times as long as when they were recorded: the trace counts times at 1000000000 flops \
            per second, and its hosts compute 50 Gflop/s; trace.speed (--speed) tells the speed of the machine on which the program ran\n";
        assert_eq!(warning, expected);
        for known in ["--speed=50Gf", "--speed=5e10", "--set=trace.speed=50 Gflop/s"] {
            for model in ["flow", "contention-free"] {
                let kept = replay(&trace, &fast, &[known, "--model", model]);
                assert_eq!(kept, ("0.000200000 s".into(), String::new()), "{known} {model}");
            }
        }
        // The machine is known: a change is meant, and the summary tells it.
        assert_eq!(replay(&trace, &fast, &["--speed=25Gf"]), ("0.000100000 s".into(), String::new()));
        command()
            .arg("run")
            .arg(&trace)
            .arg("--platform")
            .arg(&fast)
            .arg("--speed=25Gf")
            .assert()
            .code(DONE)
            .stdout(contains(", recorded computations x 0.5; placement"));
    }
}

#[test]
fn info_and_report_say_of_which_speed_times_are() {
    let folder = Folder::new();
    assert!(info(&paraver(&folder)).contains("\ncounted:  times at 1000000000 flops per second\n"));
    let archive = folder.path("run.pdt");
    convert(&paraver(&folder), &archive, &[]).code(DONE);
    assert!(info(&archive).contains("\ncounted:  times at 1000000000 flops per second\n"));
    assert!(
        info(&schedule(&folder))
            .contains("\ncounted:  nanoseconds; on a platform, times at 1000000000 flops per second\n")
    );

    let report = |flags: &[&str]| {
        let path = folder.path("report.json");
        replay(&archive, &host(&folder, "4Gf"), &[&["--report", path.to_str().unwrap()], flags].concat());
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        ["trace_speed", "computation_factors"].map(|key| report["parameters"][key].to_string())
    };
    assert_eq!(report(&[]), ["1000000000.0", "[0.25,0.25]"]);
    assert_eq!(report(&["--speed=2Gf"]), ["2000000000.0", "[0.5,0.5]"]);
}

#[test]
fn text_says_of_which_speed_its_times_are_if_it_is_converted_with_it() {
    let folder = Folder::new();
    let (text, archive) =
        (folder.write("run.txt", "0 init\n0 compute 2e6\n0 finalize\n"), folder.path("run.pdt"));
    let fast = host(&folder, "50Gf");
    // Nothing is known of text, until somebody says it.
    assert_eq!(replay(&text, &fast, &[]), ("0.000040000 s".into(), String::new()));
    assert!(!info(&text).contains("counted"));
    convert(&text, &archive, &["--speed=2Gf"]).code(DONE);
    assert!(info(&archive).contains("\ncounted:  times at 2000000000 flops per second\n"));
    let (time, warning) = replay(&archive, &fast, &[]);
    assert_eq!(time, "0.000040000 s");
    assert!(
        warning.starts_with(" WARN computations take 0.04 times as long as when they were recorded: "),
        "{warning}"
    );
    // The amounts are flops, which do not change; with the archive the recorded times are known.
    assert_eq!(replay(&text, &fast, &["--speed=2Gf"]).0, "0.000040000 s");
    assert_eq!(replay(&archive, &fast, &["--speed=50Gf"]), ("0.001000000 s".into(), String::new()));

    let again = folder.path("again.pdt");
    for known in [&archive, &paraver(&folder)] {
        let already = contains("flops per second already; give the speed to the replay, as trace.speed");
        convert(known, &again, &["--speed=3Gf"]).code(MISUSE).stderr(already);
    }
    convert(&schedule(&folder), &again, &["--speed=3Gf"])
        .code(MISUSE)
        .stderr(contains("not for GOAL schedules"));
    assert!(!again.exists());
}

#[test]
fn implausible_speeds_are_refused_or_warned_of() {
    let folder = Folder::new();
    let text = folder.write("run.txt", "0 init\n0 compute 2e6\n0 finalize\n");
    let silent = folder.write("silent.txt", "0 init\n0 finalize\n");
    let generated = folder.path("generated.pdt");
    let program =
        ["trace", "generate", "allreduce-loop", "-q", "--ranks=2", "--iterations=1", "--flops=100", "-o"];
    command().args(program).arg(&generated).assert().code(DONE);
    let slow = folder.write(
        "slow.xml",
        "<?xml version='1.0'?><platform version='4.1'><cluster id='c' prefix='n' suffix='' radical='0-1' speed='5f' bw='1GBps' \
         lat='1us'/></platform>",
    );
    let unlikely =
        " WARN the hosts of the ranks compute 5 flop/s: expected 10 Mflop/s to 10 Pflop/s, as machines do\n";
    assert_eq!(replay(&text, &slow, &[]).1, unlikely);
    assert_eq!(replay(&generated, &slow, &[]).1, unlikely);
    assert_eq!(replay(&silent, &slow, &[]).1, "");
    for trace in [paraver(&folder), schedule(&folder)] {
        let (_, warning) = replay(&trace, &slow, &[]);
        assert!(warning.contains("recorded, which is implausible: the trace counts times at"), "{warning}");
        let (_, warning) = replay(&trace, &slow, &["--speed=3Gf"]);
        assert!(warning.contains("recorded, which is implausible: trace.speed is 3 Gflop/s"), "{warning}");
    }

    let run = |speed: &str| {
        command()
            .arg("run")
            .arg(&text)
            .arg("--platform")
            .arg(&slow)
            .args(["--speed", speed])
            .assert()
            .code(MISUSE)
    };
    run("0").stderr(contains("speed: found 0, expected more than zero"));
    run("-1e9").stderr(contains("--speed: "));
    run("3").stderr(contains("--speed: ").and(contains("write the unit, as in \"3Gf\"")));
    run("3GBps").stderr(contains("--speed: ").and(contains("unknown unit \"GBps\"")));
    let archive = folder.path("run.pdt");
    for wrong in ["0", "3", "3GBps"] {
        convert(&text, &archive, &["--speed", wrong]).code(MISUSE).stderr(contains("--speed <SPEED>"));
    }
}

#[test]
fn the_model_of_schedules_has_no_speed() {
    let folder = Folder::new();
    let warning = " WARN trace.speed has no effect with the model loggops, whose computations are times\n";
    command()
        .arg("run")
        .arg(schedule(&folder))
        .args(["-q", "--speed=3Gf"])
        .assert()
        .code(DONE)
        .stderr(warning);
    command()
        .arg("run")
        .arg(schedule(&folder))
        .arg("-q")
        .assert()
        .code(DONE)
        .stderr(is_empty())
        .stdout(starts_with("simulated"));
}
