//! Noise on all models: the same on any number of threads, and refused where it is wrong.

use pdes_core::Progress;
use pdes_replay::{Config, Simulation};
use predicates::str::contains;

use crate::command_line::{Folder, command};
use crate::determinism::all_calls;

const PERIODIC: &str = "[noise]\nkind = 'periodic'\nperiod_s = '10us'\nlength_s = '250ns'\n";

fn simulation(folder: &Folder, trace: &str, settings: &[&str]) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", &folder.write("trace.txt", trace));
    let platform = "platform.topology={ kind = 'cluster', hosts = 8, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
    for setting in [&[platform, "network.preset='raw'", "platform.placement='cyclic'"], settings].concat() {
        config.set(setting).unwrap();
    }
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn ends(simulation: &Simulation) -> Vec<u64> {
    let outcome = simulation.replay(&Progress::new(simulation.spec().threads)).unwrap();
    outcome.program().ends.iter().map(|end| end.as_picos()).collect()
}

/// Computations of whole periods have as many events of the same length, wherever they begin, on every model.
#[test]
fn whole_periods_have_their_events() {
    let folder = Folder::new();
    let trace = "0 compute 1e6\n1 compute 2e6\n";
    // And what is left of one that is running at the begin.
    for model in ["flow", "contention-free", "packets"] {
        let model = format!("network.model='{model}'");
        let noise = ["noise.kind='periodic'", "noise.period_s='10us'", "noise.length_s='250ns'", &model];
        let found = ends(&simulation(&folder, trace, &noise));
        for (found, events) in found.iter().zip([100_u64, 200]) {
            let (without, whole) = (events * 10_000_000, events * 250_000);
            let noise = found - without;
            assert!(noise + 2 >= whole && noise <= whole + 250_002, "{model}: {noise} ps of noise");
        }
    }
}

#[test]
fn noise_does_not_depend_on_threads() {
    let folder = Folder::new();
    let noise = ["noise.kind='long-tail'", "noise.period_s='20us'", "noise.length_s='200ns'"];
    for settings in
        [&["network.model='contention-free'"][..], &["network.epoch_s='auto'", "network.regions=4"], &[]]
    {
        let settings = [&noise, settings].concat();
        let mut simulation = simulation(&folder, &all_calls(3), &settings);
        let expected = ends(&simulation);
        for threads in [2, 3] {
            simulation = simulation.with_threads(threads);
            assert_eq!(ends(&simulation), expected, "{settings:?} on {threads} threads");
        }
    }
}

#[test]
fn a_trace_of_noise_is_read_beside_the_configuration() {
    let folder = Folder::new();
    folder.write("trace.txt", "0 compute 1e6\n");
    folder.write("machine.noise", "0 0\n4000 250\n10000 0\n");
    let base = "[trace]\npath = 'trace.txt'\n[platform]\ntopology = { kind = 'cluster', hosts = 2, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n";
    let run = |section: &str| {
        let config = folder.write("run.toml", &format!("{base}{section}"));
        command().arg("--config").arg(config).assert()
    };
    run("[noise]\nfile = 'machine.noise'\n").success().stdout(contains("simulated time: 0.001025"));
    run("[noise]\nfile = 'absent.noise'\n").code(2).stderr(contains("absent.noise"));
    folder.write("broken.noise", "0 0\n5 x\n");
    run("[noise]\nfile = 'broken.noise'\n").code(2).stderr(contains("line 2: found \"5 x\""));
    run(&format!("{PERIODIC}file = 'machine.noise'\n"))
        .code(2)
        .stderr(contains("expected one of file and kind"));
    run("[noise]\nkind = 'poisson'\nlength_s = '1us'\n")
        .code(2)
        .stderr(contains("period_s: expected a time above 0"));
    run(&format!("{PERIODIC}exponent = 2.0\n"))
        .code(2)
        .stderr(contains("exponent: expected kind = \"long-tail\""));
    run(&format!("{PERIODIC}[engine]\nfast_forward = true\n"))
        .success()
        .stderr(contains("noise makes each iteration another one"));
}

/// The schedule's own model has LogGOPSim's noise, or the generated one.
#[test]
fn schedules_have_noise() {
    let folder = Folder::new();
    folder.write("two.goal", "num_ranks 2\nrank 0 {\n calc 100000\n}\nrank 1 {\n calc 100000\n}\n");
    folder.write("machine.noise", "0 0\n1000 7\n200000 0\n");
    let run = |section: &str| {
        let config = folder.write("run.toml", &format!("[trace]\npath = 'two.goal'\n{section}"));
        command().arg("--config").arg(config).assert().success()
    };
    run(PERIODIC).stdout(contains("simulated time: 0.000102"));
    run("[noise]\nfile = 'machine.noise'\nsynchronised = true\n")
        .stdout(contains("simulated time: 0.000100"));
}
