//! Machines that change during a replay: one result on any number of threads and processes, in parts and with
//! fast-forwarding.

use std::path::{Path, PathBuf};
use std::time::Duration;

use netmodel::{HostId, LinkId, Resource, ResourceChange};
use pdes_core::{Cluster, Progress, SimDuration, SimTime};
use pdes_replay::{
    CheckpointPlan, Config, Execution, Feature, Model, Outcome, RunError, RunSpec, Simulation, StopHandle,
};

use crate::command_line::Folder;
use crate::matrix::{digest, results};
use crate::trace_commands::trace;
use crate::windows::TORUS;

fn seconds(seconds: f64) -> SimTime {
    SimTime::ZERO + SimDuration::try_from_secs_f64(seconds).unwrap()
}

const ITERATIONS: u64 = 60;

/// A program of 64 ranks on 128 hosts.
fn halo(folder: &Folder) -> PathBuf {
    let path = folder.path("halo.pdt");
    let iterations = format!("--iterations={ITERATIONS}");
    let arguments = ["--cells=24,24,24", "--processes=4,4,4", iterations.as_str()];
    trace(&[&["generate", "halo3d"], &arguments[..], &["--output"]].concat(), &[&path]).success();
    path
}

fn spec(trace: &Path, settings: &[&str]) -> RunSpec {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    for setting in [TORUS, "parallel.oversubscribe=true", "network.preset='raw'"].iter().chain(settings) {
        config.set(setting).unwrap();
    }
    config.resolve().unwrap()
}

fn replay(spec: &RunSpec) -> Result<Outcome, RunError> {
    Simulation::load(spec)?.replay(&Progress::new(spec.threads))
}

/// Slower links, longer ones and slower hosts in the first half of a replay of this length; hosts are off for a while. In the end all
/// is as before.
fn changes(end: SimTime) -> Vec<ResourceChange> {
    let at = |part: f64| seconds(end.as_secs_f64() * part);
    let mut changes = Vec::new();
    for link in (0..700).map(LinkId::new) {
        let (bandwidth, latency) = (Resource::Bandwidth(link), Resource::Latency(link));
        let values = match link.get() % 7 {
            0 => vec![(0.11, bandwidth, 1e9), (0.32, bandwidth, 1.25e10)],
            1 => vec![(0.07, latency, 2e-6), (0.4, latency, 5e-7)],
            2 => vec![
                (0.2, bandwidth, 2.5e10),
                (0.2, latency, 9e-7),
                (0.3, bandwidth, 1.25e10),
                (0.3, latency, 5e-7),
            ],
            _ => vec![],
        };
        changes.extend(values.into_iter().map(|(part, resource, value)| ResourceChange {
            at: at(part),
            resource,
            value,
        }));
    }
    for host in (0..128).step_by(5).map(HostId::new) {
        let speeds = [(0.1, 5e9), (0.25, 0.0), (0.3, 1e10)];
        let resource = Resource::Speed(host);
        changes.extend(speeds.map(|(part, value)| ResourceChange { at: at(part), resource, value }));
    }
    changes
}

/// The same changes of all hosts and links, after which a replay recurs as it did before.
fn common_changes(end: SimTime) -> Vec<ResourceChange> {
    let hosts = (0..128).map(|host| (Resource::Speed(HostId::new(host)), [5e9, 1e10]));
    let links = (0..768).map(|link| (Resource::Bandwidth(LinkId::new(link)), [6e9, 1.25e10]));
    let changes = hosts.chain(links).flat_map(|(resource, values)| {
        let parts = [0.1, 0.3].into_iter().zip(values);
        parts.map(move |(part, value)| ResourceChange {
            at: seconds(end.as_secs_f64() * part),
            resource,
            value,
        })
    });
    changes.collect()
}

/// The models, and the numbers of processes on which they run.
const MODELS: [(&[&str], usize); 3] = [
    (&["network.model='contention-free'"], 3),
    (&["network.model='flow'"], 1),
    (&["network.model='flow'", "network.epoch_s='auto'"], 3),
];

#[test]
fn one_result_on_threads_and_processes_and_in_parts() {
    let folder = Folder::new();
    let trace = halo(&folder);
    for (settings, processes) in MODELS {
        let whole = spec(&trace, settings);
        let unchanged = replay(&whole).unwrap();
        let whole = RunSpec { changes: changes(unchanged.simulated_time()), ..whole };
        let expected = replay(&whole).unwrap();
        assert!(expected.simulated_time() > unchanged.simulated_time(), "{settings:?}");
        let later = whole.changes.iter().map(|change| ResourceChange { at: seconds(1e6), ..*change });
        let never = replay(&RunSpec { changes: later.collect(), ..whole.clone() }).unwrap();
        // With epochs ranks on hosts that change do not compute ahead, and their ends are rounded otherwise.
        if !settings.contains(&"network.epoch_s='auto'") {
            assert_eq!(never.program().ends, unchanged.program().ends, "{settings:?}");
        }
        for (threads, processes) in [(2, 1), (7, 1), (1, processes), (3, processes)] {
            let simulation = Simulation::load(&RunSpec { threads, ..whole.clone() }).unwrap();
            let outcomes = Cluster::in_memory(processes, |mut cluster| {
                simulation.run(&mut cluster, &Progress::new(threads)).unwrap()
            });
            let outcome = outcomes.into_iter().find_map(|outcome| outcome.unwrap()).unwrap();
            assert!(results(&outcome) == results(&expected), "{settings:?} {threads} {processes}");
            assert_eq!(outcome.links, expected.links, "{settings:?} {threads} {processes}");
        }
        let folder = Folder::new();
        let (directory, interval) = (folder.path("checkpoints"), Duration::from_secs(3600));
        let parts =
            RunSpec { checkpoints: Some(CheckpointPlan { directory, interval, resume: true }), ..whole };
        let mut runs = 0;
        let outcome = loop {
            let stop = StopHandle::default();
            if runs < 12 {
                stop.request();
            }
            let simulation = Simulation::load(&RunSpec { threads: 1 + runs % 2, ..parts.clone() }).unwrap();
            match simulation.with_stop(stop).replay(&Progress::new(2)) {
                Err(RunError::Stopped { .. }) => runs += 1,
                ended => break ended.unwrap(),
            }
        };
        assert_eq!(runs, 12, "{settings:?}");
        assert!(results(&outcome) == results(&expected), "{settings:?}");
    }
}

#[test]
fn what_is_skipped_comes_after_the_changes() {
    let folder = Folder::new();
    let trace = halo(&folder);
    for (settings, _) in MODELS {
        let all = spec(&trace, settings);
        let changes = common_changes(replay(&all).unwrap().simulated_time());
        let all = RunSpec { changes, ..all };
        let expected = replay(&all).unwrap();
        let outcome = replay(&RunSpec { fast_forward: true, ..all }).unwrap();
        assert_eq!(digest(&outcome), digest(&expected), "{settings:?}");
        let skipped = outcome.fast_forward.unwrap().skipped_iterations;
        // With epochs this program does not recur without changes either.
        let recurs = !settings.contains(&"network.epoch_s='auto'");
        assert!(skipped < ITERATIONS - 10 && (skipped > 0) == recurs, "{settings:?}: {skipped} skipped");
    }
}

#[test]
fn what_never_ends_is_an_error_that_names_the_resource() {
    let folder = Folder::new();
    let trace = halo(&folder);
    for (settings, _) in MODELS {
        let spec = spec(&trace, settings);
        let simulation = Simulation::load(&spec).unwrap();
        let end = simulation.replay(&Progress::new(1)).unwrap().simulated_time();
        let off = |resource| RunSpec {
            changes: vec![ResourceChange { at: seconds(0.3 * end.as_secs_f64()), resource, value: 0.0 }],
            ..spec.clone()
        };
        let [host, link] = [Resource::Speed(HostId::new(3)), Resource::Bandwidth(LinkId::new(0))];
        for resource in [host, link] {
            let name = resource.describe(simulation.platform());
            for threads in [1, 3] {
                let error = replay(&RunSpec { threads, ..off(resource) }).unwrap_err().to_string();
                assert!(error.contains(&name), "{settings:?} {threads}: {error}");
            }
        }
    }
}

#[test]
fn wrong_changes_are_refused() {
    let folder = Folder::new();
    let trace = halo(&folder);
    let change =
        ResourceChange { at: SimTime::ZERO, resource: Resource::Latency(LinkId::new(0)), value: -1.0 };
    let error = replay(&RunSpec { changes: vec![change], ..spec(&trace, &[]) }).unwrap_err();
    assert!(matches!(error, RunError::Changes(_)), "{error}");
    let change = ResourceChange { value: 1.0, ..change };
    let path = spec(&trace, &["analysis.critical_path=true"]);
    let error = replay(&RunSpec { changes: vec![change], ..path }).unwrap_err();
    assert!(matches!(error, RunError::Refused(_)), "{error}");
    let schedules = Execution::of(Model::find("loggops").unwrap(), &[Feature::Changes].into(), 0, || {
        Ok(SimDuration::ZERO)
    });
    assert!(schedules.check().is_err());
}
