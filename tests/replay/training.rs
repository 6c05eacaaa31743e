//! The commands for workloads of AI training.

use std::path::Path;

use pdes_core::Progress;
use pdes_replay::{Outcome, Simulation};

use crate::command_line::{DONE, Folder, MISUSE};
use crate::epochs::{TREE, spec};
use crate::trace_commands::trace;

/// A small model: eight layers, four heads.
const MODEL: &[&str] =
    &["transformer", "--layers=8", "--hidden=256", "--heads=4", "--feed-forward=1024", "--sequence=128"];

fn replay(trace: &Path, settings: &[&str]) -> Outcome {
    let settings = [&["network.model='contention-free'"], settings].concat();
    let simulation = Simulation::load(&spec(trace, TREE, &settings)).unwrap();
    simulation.replay(&Progress::new(simulation.spec().threads)).unwrap()
}

#[test]
fn layouts_are_described_and_written_as_schedules() {
    let folder = Folder::new();
    let (archive, schedule) = (folder.path("gpt.pdt"), folder.path("gpt.goal"));
    let gpt3: &[&str] =
        &["generate", "transformer", "--tensor=8", "--pipeline=16", "--data=8", "--batch=512", "--output"];
    trace(gpt3, &[&archive])
        .code(DONE)
        .stdout(predicates::str::contains("1024 ranks"))
        .stdout(predicates::str::contains("model:       174563733504 parameters"));
    let small = [&["generate"], MODEL, &["--tensor=2", "--data=2", "--batch=2"], &["--output"]].concat();
    trace(&small, &[&schedule]).code(1).stderr(predicates::str::contains("--speed"));
    let small =
        [&["generate"], MODEL, &["--tensor=2", "--data=2", "--batch=2", "--speed=100Tf"], &["--output"]]
            .concat();
    trace(&small, &[&schedule]).code(DONE).stdout(predicates::str::contains("4 ranks with"));
    trace(&small, &[&archive]).code(MISUSE).stderr(predicates::str::contains("--speed is for other formats"));
    trace(&["generate", "transformer", "--tensor=7", "--batch=1", "--output"], &[&archive])
        .code(MISUSE)
        .stderr(predicates::str::contains("tensor is 7, expected a divisor of kv_heads, which is 96"));
}

#[test_with::shared]
fn execution_traces_are_converted_and_replayed() {
    let folder = Folder::new();
    let sample = "samples/chakra/data/microbenchmarks/all_reduce/8npus_1MB/all_reduce.3.et";
    let sample = crate::shared::shared(sample);
    let mut ends = Vec::new();
    for algorithm in ["ring", "double-tree", "halving", "direct", "nccl"] {
        let (archive, text) = (folder.path("chakra.pdt"), folder.path("chakra.goal"));
        let convert = ["convert", "--algorithm", algorithm, "--output"];
        trace(&convert, &[&archive, &sample]).code(DONE).stdout(predicates::str::contains("8 ranks with"));
        trace(&convert, &[&text, &sample]).code(DONE);
        let [end, again] = [&archive, &text].map(|path| replay(path, &[]).simulated_time());
        assert_eq!(end, again, "{algorithm}");
        ends.push(end);
    }
    // On a network without contention direct messages of an eighth are the fastest; halving has fewer steps than a ring.
    let [ring, _, halving, direct, _] = ends[..] else { panic!("{ends:?}") };
    assert!(ends.iter().all(|end| direct <= *end) && halving < ring, "{ends:?}");
    let lu = crate::reference::repository().join("configs/traces/lu.S.8");
    trace(&["convert", "--algorithm=tree", "--output"], &[&folder.path("x.pdt"), &lu])
        .code(MISUSE)
        .stderr(predicates::str::contains("Chakra execution traces"));
}

#[test_with::shared]
fn execution_traces_are_checked_and_linted() {
    let sample = |path: &str| crate::shared::shared("samples/chakra/data/microbenchmarks").join(path);
    let whole = sample("all_reduce/8npus_1MB/all_reduce.3.et");
    trace(&["check"], &[&whole]).code(DONE).stdout(predicates::str::contains("8 ranks with"));
    trace(&["lint"], &[&whole])
        .code(DONE)
        .stdout(predicates::str::contains("instant: no operation has an instant"));
    // Without rank 7 the trace is one of seven ranks; without rank 3 it is none.
    let folder = Folder::new();
    for rank in [0, 1, 2, 4] {
        let name = format!("all_reduce.{rank}.et");
        std::fs::copy(sample("all_reduce/8npus_1MB").join(&name), folder.path(&name)).unwrap();
    }
    let torn = folder.path("all_reduce.0.et");
    trace(&["check"], &[&torn]).code(1).stderr(predicates::str::contains("4 files, and none of rank 3"));
    std::fs::remove_file(folder.path("all_reduce.4.et")).unwrap();
    std::fs::copy(sample("all_gather/8npus_1MB/all_gather.2.et"), folder.path("all_reduce.2.et")).unwrap();
    trace(&["check"], &[&torn])
        .code(1)
        .stderr(predicates::str::contains("rank 2 has AllGather of 1048576 B"));
    trace(&["lint"], &[&torn])
        .code(DONE)
        .stdout(predicates::str::contains("violation: collective operation 0"));
}

/// Returns the section of a training run with 4 stages, 8 micro-batches and hardly any vocabulary on hosts of 1 Gflop/s.
fn training(options: &str, settings: &[&str]) -> serde_json::Value {
    let folder = Folder::new();
    let report = folder.path("report.json");
    let model = MODEL.join(" ");
    let generate = format!("trace.generate={model} --vocabulary=4 --batch=8 --pipeline=4 {options}");
    let platform = "platform.topology={ kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1000GBps', latency = '1ns' }";
    let mut command = crate::command_line::command();
    command.args(["--model=contention-free", "--quiet", "--set", &generate, "--set", platform]);
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    command.arg("--report").arg(&report).assert().code(DONE);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    report["training"].clone()
}

#[test]
fn reports_of_training_runs_say_what_they_wait_for() {
    let number = |section: &serde_json::Value, key: &str| {
        section[key].as_f64().unwrap_or_else(|| panic!("{key}: {section}"))
    };
    let fast = training("--iterations=2", &[]);
    let [ideal, bubble] = ["ideal_bubble", "pipeline_bubble"].map(|key| number(&fast, key));
    assert!((ideal - 3.0 / 11.0).abs() < 1e-12);
    assert!((bubble - ideal).abs() < 0.01, "{fast}");
    assert!(number(&fast, "exposed_communication") < 0.001, "{fast}");
    // Without recomputation all computation is that of the model.
    assert!((number(&fast, "model_flops_utilisation") - number(&fast, "computing")).abs() < 1e-3, "{fast}");
    assert!((number(&fast, "computing") + bubble - 1.0).abs() < 0.001, "{fast}");
    let flops = number(&fast, "model_flops") / 4e9 / number(&fast, "model_flops_utilisation");
    assert!((number(&fast, "iteration_s") / flops - 1.0).abs() < 1e-9, "{fast}");
    let repeated = training("--recompute=full", &[]);
    let ratio = number(&repeated, "computing") / number(&repeated, "model_flops_utilisation");
    assert!((1.2..4.0 / 3.0 + 1e-9).contains(&ratio), "{repeated}");
    let slow = training("--tensor=2", &["network.bandwidth_scale=0.000001"]);
    assert!(number(&slow, "exposed_communication") > 0.2, "{slow}");
    let plain = training("", &["analysis.waits=false"]);
    assert!(plain["pipeline_bubble"].is_null() && plain["exposed_communication"].is_null(), "{plain}");
}

/// A ring of NCCL on the accelerators of three nodes: messages of its channels share links, which takes longer than without contention, and
/// at least the 14 eighths of a MiB over the bandwidth of an accelerator.
#[test_with::shared]
fn schedules_of_nccl_run_on_the_accelerators_of_a_node() {
    let folder = Folder::new();
    let schedule = folder.path("nccl.goal");
    let sample =
        crate::shared::shared("samples/chakra/data/microbenchmarks/all_reduce/8npus_1MB/all_reduce.0.et");
    trace(&["convert", "--algorithm=nccl", "--output"], &[&schedule, &sample]).code(DONE);
    for (node, accelerator, bandwidth) in
        [("dgx-a100", "gpu", 300e9), ("dgx-h100", "gpu", 450e9), ("frontier", "gcd", 50e9)]
    {
        let hosts: String = (0..8).map(|number| format!("{accelerator}-{number}\n")).collect();
        let hosts = format!("platform.hosts={:?}", folder.write("hosts.txt", &hosts));
        let platform = crate::reference::repository().join(format!("configs/nodes/{node}-platform.toml"));
        let ends = ["contention-free", "flow", "packets"].map(|model| {
            let report = folder.path("report.json");
            let mut command = crate::command_line::command();
            command.args(["--quiet", "--model", model, "--set", &hosts, "--trace"]).arg(&schedule);
            command.arg("--platform").arg(&platform).arg("--report").arg(&report).assert().code(DONE);
            let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
            report["simulated_time_s"].as_f64().unwrap()
        });
        let least = 14.0 / 8.0 * f64::from(1 << 20) / bandwidth;
        assert!(ends[0] < ends[1] && ends[0] < ends[2], "{node}: {ends:?}");
        assert!(ends[1] > least && ends[2] > least, "{node}: {ends:?} {least}");
    }
}

/// The output of `all_reduce_perf` on two devices: 64 B take 10.5 us, 256 B 12 us.
const MEASURED: &str = "\
# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 123456 on     node00 device  0 [0000:07:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid 123456 on     node00 device  1 [0000:0f:00] NVIDIA A100-SXM4-80GB
          64            16     float     sum      -1    10.50    0.01    0.01      0     9.51    0.01    0.01      0
         256            64     float     sum      -1    12.00    0.02    0.02      0    11.20    0.02    0.02    N/A
";

#[test]
fn collective_operations_take_measured_times() {
    let folder = Folder::new();
    let [config, table, trace] = ["run.toml", "all_reduce.txt", "trace.txt"].map(|name| folder.path(name));
    std::fs::write(&table, MEASURED).unwrap();
    let platform = "[platform.topology]\nkind = 'cluster'\nhosts = 2\nspeed = '1Gf'\nbandwidth = '1GBps'\nlatency = '1us'\n";
    let text = format!("{platform}[mpi]\nmeasured.allreduce = ['all_reduce.txt']\n");
    std::fs::write(&config, text).unwrap();
    let run = |bytes: u64, model: &str, setting: &str| {
        let call = format!("allreduce {bytes} 0 6");
        std::fs::write(&trace, format!("0 init\n0 compute 5000\n0 {call}\n1 init\n1 {call}\n")).unwrap();
        let mut command = crate::command_line::command();
        command.arg("--config").arg(&config).arg("--trace").arg(&trace).arg("--quiet");
        command.args(["--model", model, "--set", setting]).assert()
    };
    for model in ["contention-free", "flow"] {
        // 5 us of computation, and halfway between the measurements.
        let done = run(160, model, "network.preset=links").success();
        done.stdout("simulated time: 0.000016250 s\n");
        let beyond = "allreduce of 512 B on 2 ranks was not measured, but from 64 to 256 B";
        run(512, model, "network.preset=links").code(1).stderr(predicates::str::contains(beyond));
    }
    let both = run(64, "flow", "mpi.allreduce=lr").code(2);
    both.stderr(predicates::str::contains("allreduce has an algorithm, too (mpi.allreduce)"));
    std::fs::write(&table, "no table").unwrap();
    run(64, "flow", "network.preset=links")
        .code(2)
        .stderr(predicates::str::contains("all_reduce.txt: found no line"));
}
