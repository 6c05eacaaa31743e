//! Several programs in one run: each has the results that it has alone where they share nothing, later ones are shifted, and where they
//! share links and cores, one result on any number of threads and processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pdes_core::{Bytes, Cluster, Progress, SimDuration, SimTime};
use pdes_replay::{
    CheckpointPlan, Config, Outcome, ProgramOutcome, ProgramSpec, RunError, RunSpec, Simulation, Start,
};
use trace_tools::generate::{Halo3d, Halo3dParameters};

use crate::checkpoints::replay_spec_in_parts;
use crate::command_line::Folder;
use crate::forward::contention::generated;
use crate::windows::TORUS;

const CROSSBAR: &str = "platform.topology={ kind = 'cluster', hosts = 16, speed = '10Gf', bandwidth = '10GBps', latency = '500ns' }";

/// Ways of execution: settings, and whether the model has regions.
const WAYS: [&[&str]; 4] = [
    &["network.model='contention-free'"],
    &["network.model='flow'", "network.preset='raw'"],
    &["network.model='flow'"],
    &["network.model='flow'", "network.preset='raw'", "network.epoch_s='auto'"],
];

fn halo(folder: &Folder, name: &str, cell_bytes: u64) -> PathBuf {
    let (cells, cell_bytes) = ([32; 3], Bytes::new(cell_bytes));
    let parameters = Halo3dParameters { cells, cell_bytes, iterations: 3, ..Halo3dParameters::default() };
    generated(folder, name, &Halo3d::new(parameters).unwrap(), None)
}

fn spec(trace: &Path, platform: &str, settings: &[&str]) -> RunSpec {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set("analysis.critical_path=true").unwrap();
    config.set("analysis.matrix=true").unwrap();
    config.set("parallel.oversubscribe=true").unwrap();
    for setting in [platform].iter().chain(settings) {
        config.set(setting).unwrap();
    }
    config.resolve().unwrap()
}

/// Returns the program of a run, to run beside others.
fn program(spec: &RunSpec, start: SimTime) -> ProgramSpec {
    ProgramSpec { start: Start::At(start), ..spec.program() }
}

fn on_hosts(spec: RunSpec, folder: &Folder, name: &str, hosts: std::ops::Range<usize>) -> RunSpec {
    let lines: String = hosts.map(|host| format!("node-{host}\n")).collect();
    RunSpec { hosts: Some(folder.write(name, &lines)), ..spec }
}

fn replay(spec: &RunSpec, threads: usize, processes: usize) -> Result<Outcome, RunError> {
    let spec = RunSpec { threads, ..spec.clone() };
    let mut outcomes = Cluster::in_memory(processes, |mut cluster| {
        let simulation = Simulation::load_on(&mut cluster, &spec, &Default::default())?;
        simulation.run(&mut cluster, &Progress::new(threads))
    });
    outcomes.remove(0).expect("no process panics").map(|outcome| outcome.expect("it is the first"))
}

/// Returns the first part of the results of two programs that differs.
fn difference(one: &ProgramOutcome, other: &ProgramOutcome) -> Option<&'static str> {
    let [found, expected] = [one, other].map(|outcome| &outcome.findings);
    let parts = [
        ("ends", one.ends == other.ends),
        ("statistics", one.statistics == other.statistics),
        ("matrix", found.matrix == expected.matrix),
        ("critical path", found.critical_path == expected.critical_path),
    ];
    parts.iter().find(|(_, is_same)| !is_same).map(|(name, _)| *name)
}

/// Expects that two runs have the same results.
fn check(found: &Outcome, expected: &Outcome, how: &str) {
    assert_eq!(found.programs.len(), expected.programs.len());
    let differences =
        found.programs.iter().zip(&expected.programs).map(|(one, other)| difference(one, other));
    assert_eq!(differences.collect::<Vec<_>>(), vec![None; found.programs.len()], "{how}");
    assert_eq!(found.links, expected.links, "{how}");
}

#[test]
fn programs_that_share_nothing_have_the_results_that_they_have_alone() {
    let folder = Folder::new();
    let (one, other) = (halo(&folder, "one.pdt", 40), halo(&folder, "other.pdt", 200));
    for settings in WAYS {
        let alone =
            |trace, name: &str, hosts| on_hosts(spec(trace, CROSSBAR, settings), &folder, name, hosts);
        let (one, other) = (alone(&one, "first", 0..8), alone(&other, "second", 8..16));
        let expected = [&one, &other].map(|spec| replay(spec, 1, 1).unwrap().into_program());
        let both = RunSpec { other_programs: vec![program(&other, SimTime::ZERO)], ..one.clone() };
        let found = replay(&both, 1, 1).unwrap();
        for (found, expected) in found.programs.iter().zip(&expected) {
            assert_eq!(difference(found, expected), None, "{settings:?}");
        }
        // Epochs are counted from zero.
        let start = SimDuration::from_picos(1_000_000_000);
        let later = RunSpec { other_programs: vec![program(&other, SimTime::ZERO + start)], ..one.clone() };
        let found = replay(&later, 1, 1).unwrap();
        assert_eq!(difference(&found.programs[0], &expected[0]), None, "{settings:?}");
        if !settings.contains(&"network.epoch_s='auto'") {
            let shifted: Vec<SimTime> = expected[1].ends.iter().map(|end| *end + start).collect();
            assert_eq!(found.programs[1].ends, shifted, "{settings:?}");
        }
        assert_eq!(found.simulated_time(), found.programs[1].end());
    }
}

#[test]
fn programs_that_share_links_have_one_result_on_all_threads_and_processes() {
    let folder = Folder::new();
    let (one, other) = (halo(&folder, "one.pdt", 40), halo(&folder, "other.pdt", 200));
    for settings in WAYS {
        let [one, other] = [&one, &other].map(|trace| spec(trace, TORUS, settings));
        let start = SimTime::from_picos(20_000_000);
        let both = RunSpec {
            other_programs: vec![program(&other, start), program(&one, SimTime::ZERO)],
            ..one.clone()
        };
        let expected = replay(&both, 1, 1).unwrap();
        for (threads, processes) in [(2, 1), (3, 1), (1, 2), (2, 3)] {
            let found = replay(&both, threads, processes).unwrap();
            check(&found, &expected, &format!("{settings:?}, {threads} threads, {processes} processes"));
        }
        let folder = Folder::new();
        let directory = folder.path("checkpoints");
        let plan = CheckpointPlan { directory, interval: Duration::from_secs(3600), resume: true };
        let (in_parts, parts) = replay_spec_in_parts(&RunSpec { checkpoints: Some(plan), ..both.clone() });
        check(&in_parts.unwrap(), &expected, &format!("{settings:?}, in {parts} parts"));
        let alone = replay(&one, 1, 1).unwrap().simulated_time();
        let slowed = expected.programs[0].end();
        if settings[0].contains("flow") {
            assert!(slowed > alone, "{settings:?}: {slowed} beside others, {alone} alone");
            assert!(expected.links.is_some());
        } else {
            assert_eq!(slowed, alone);
        }
    }
}

#[test]
fn an_error_is_placed_in_the_program_that_has_it() {
    let folder = Folder::new();
    let good = folder.write("good.txt", "0 init\n1 init\n0 send 1 7 84\n1 recv 0 7 84\n");
    let short = folder.write("short.txt", "0 init\n1 init\n0 send 1 7 84\n1 recv 0 7 83\n");
    let stuck = folder.write("stuck.txt", "0 init\n1 init\n0 recv 1 7 84\n1 recv 0 7 84\n");
    for settings in WAYS {
        let good = spec(&good, CROSSBAR, settings);
        for (wrong, expected) in [(&short, "short.txt:4"), (&stuck, "rank 0")] {
            let wrong = program(&spec(wrong, CROSSBAR, settings), SimTime::from_picos(5));
            let found = replay(&RunSpec { other_programs: vec![wrong], ..good.clone() }, 2, 1);
            let error = found.expect_err("a program is wrong").to_string();
            assert!(error.contains(expected), "{settings:?}: {error}");
        }
    }
}

#[test]
fn what_is_of_one_program_is_refused_or_said() {
    let folder = Folder::new();
    let trace = halo(&folder, "one.pdt", 40);
    let settings = ["network.model='flow'", "engine.fast_forward=true", "analysis.critical_path=false"];
    let one = spec(&trace, TORUS, &settings);
    let both = RunSpec { other_programs: vec![program(&one, SimTime::ZERO)], ..one.clone() };
    let warnings = Simulation::load(&both).unwrap().warnings();
    assert!(warnings.iter().any(|warning| warning.contains("several programs have no iterations in common")));
    assert!(replay(&both, 1, 1).unwrap().fast_forward.is_none());
    for (output, file) in [("timeline.file", "timeline.json"), ("output.profile", "profile.json")] {
        let mut config = Config::default();
        config.set_path("trace", "path", &trace);
        let (section, key) = output.split_once('.').unwrap();
        config.set_path(section, key, &folder.path(file));
        [TORUS, "network.model='contention-free'"].iter().for_each(|setting| config.set(setting).unwrap());
        let spec = config.resolve().unwrap();
        let both = RunSpec { other_programs: vec![program(&spec, SimTime::ZERO)], ..spec };
        let error = Simulation::load(&both).expect_err("it is of one program").to_string();
        assert!(error.contains("is of one program, and the run has several"), "{error}");
    }
}
