//! Exact contention on several threads: ends, statistics, waits, paths and link loads are those of one thread, to the bit.

use std::path::Path;

use pdes_core::{Bytes, Progress};
use pdes_replay::{Config, Outcome, RunError, Simulation};
use proptest::prelude::*;
use trace_mmap::Item;
use trace_tools::generate::{
    AllreduceLoop, AllreduceLoopParameters, AlltoallFft, AlltoallFftParameters, Class, Halo3d,
    Halo3dParameters, Jitter, JitterScope, MasterWorker, MasterWorkerParameters, NpbLu, NpbLuParameters,
    RandomSparse, RandomSparseParameters,
};

use crate::command_line::Folder;
use crate::forward::contention::generated;
use crate::forward::programs::{self, phase, program};
use crate::forward::{PROTOCOLS, write};
use crate::matrix::results;
use crate::reference::is_campaign;

const TREE: &str = "platform.topology={ kind = 'fat_tree', levels = [{ children = 8, parents = 1 }, { children = 16, parents = 4 }], \
                    speed = '10Gf', bandwidth = '12.5GBps', latency = '500ns' }";
pub(crate) const TORUS: &str = "platform.topology={ kind = 'torus', dims = [8, 4, 4], speed = '10Gf', bandwidth = '12.5GBps', latency = '500ns' }";
const DRAGONFLY: &str = "platform.topology={ kind = 'dragonfly', groups = 4, chassis = 2, blades = 4, nodes = 4, speed = '10Gf', \
                         bandwidth = '12.5GBps', latency = '500ns' }";
pub(crate) const PLATFORMS: [&str; 3] = [TREE, TORUS, DRAGONFLY];
pub(crate) const PRESETS: [&[&str]; 2] = [
    &["network.preset='raw'"],
    &["network.preset='smpi'", "network.precision_s=0", "network.solve_scope='complete'"],
];

fn load(trace: &Path, settings: &[&str], threads: usize) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    let analyses = [
        "analysis.links=true",
        "analysis.waits=true",
        "analysis.histograms=true",
        "analysis.matrix=true",
        "analysis.critical_path=true",
    ];
    for setting in ["network.model=flow"].iter().chain(&analyses).chain(settings) {
        config.set(setting).unwrap();
    }
    config.set(&format!("engine.threads={threads}")).unwrap();
    config.set("parallel.oversubscribe=true").unwrap();
    Simulation::load(&config.resolve().unwrap()).unwrap()
}

fn replay(simulation: &Simulation) -> Result<Outcome, RunError> {
    simulation.replay(&Progress::new(simulation.spec().threads))
}

/// Replays on several numbers of threads, and expects one result.
fn check(trace: &Path, settings: &[&str]) {
    let expected = replay(&load(trace, settings, 1)).unwrap();
    assert!(expected.links.is_some());
    for (threads, jitter) in [(2, None), (3, Some(5)), (7, Some(9))] {
        let simulation = load(trace, settings, threads).with_jitter(jitter);
        assert_eq!(simulation.warnings().iter().find(|warning| warning.contains("thread")), None);
        let outcome = replay(&simulation).unwrap();
        assert_eq!(outcome.program().ends, expected.program().ends, "{threads} threads, {settings:?}");
        assert!(results(&outcome) == results(&expected), "{threads} threads, {settings:?}");
        assert_eq!(outcome.links, expected.links, "{threads} threads, {settings:?}");
        assert_eq!(
            outcome.program().findings.distributions,
            expected.program().findings.distributions,
            "{threads} threads, {settings:?}"
        );
        assert_eq!(
            outcome.program().findings.matrix,
            expected.program().findings.matrix,
            "{threads} threads, {settings:?}"
        );
        let paths =
            [&outcome, &expected].map(|outcome| format!("{:?}", outcome.program().findings.critical_path));
        assert!(paths[0] == paths[1], "{threads} threads, {settings:?}");
    }
}

fn check_all(trace: &Path) {
    for platform in PLATFORMS {
        for preset in PRESETS {
            check(trace, &[&[platform], preset].concat());
        }
    }
}

#[test]
fn wavefronts() {
    let folder = Folder::new();
    // Class W takes ten times as long.
    let class = if is_campaign() { Class::W } else { Class::S };
    let lu = NpbLu::new(NpbLuParameters { steps: 1, ..NpbLuParameters::new(class, 16) }).unwrap();
    check_all(&generated(&folder, "lu.pdt", &lu, None));
    let uneven = Jitter::new(3, 0.3, JitterScope::Rank).unwrap();
    check_all(&generated(&folder, "uneven.pdt", &lu, Some(uneven)));
}

fn halo(processes: [u32; 3]) -> Halo3d {
    Halo3d::new(Halo3dParameters {
        cells: [32, 32, 32],
        processes,
        periodic: true,
        iterations: 3,
        cell_bytes: Bytes::new(80),
        ..Halo3dParameters::default()
    })
    .unwrap()
}

#[test]
fn halo_exchanges() {
    let folder = Folder::new();
    check_all(&generated(&folder, "halo.pdt", &halo([8, 4, 4]), None));
    let noise = Jitter::new(7, 0.1, JitterScope::Action).unwrap();
    check_all(&generated(&folder, "noisy.pdt", &halo([8, 4, 4]), Some(noise)));
}

#[test]
fn the_profile_shows_how_windows_share_the_work() {
    let folder = Folder::new();
    let trace = generated(&folder, "halo.pdt", &halo([8, 4, 4]), None);
    let simulation = load(&trace, &[TORUS, "network.preset='raw'"], 1);
    let profile = simulation.profile_regions(&Progress::new(1)).unwrap();
    // The shortest way is a cable.
    assert_eq!((profile.epoch_s, profile.regions), (5e-7, 128));
    assert!(profile.barriers > 0 && profile.busy_s <= profile.serial_s);
    let parallelism: Vec<f64> = profile.predicted.iter().map(|level| level.parallelism).collect();
    assert!(parallelism[0] <= 2.0 && parallelism.is_sorted(), "{parallelism:?}");
}

#[test]
fn dense_traffic() {
    let folder = Folder::new();
    let ranks = if is_campaign() { 64 } else { 32 };
    let fft = AlltoallFftParameters {
        ranks,
        grid: [ranks.into(); 3],
        steps: 1,
        ..AlltoallFftParameters::default()
    };
    check_all(&generated(&folder, "fft.pdt", &AlltoallFft::new(fft).unwrap(), None));
    let sparse = RandomSparseParameters {
        ranks: 128,
        steps: 2,
        rounds: 1,
        partners: 4,
        ..RandomSparseParameters::default()
    };
    let noise = Jitter::new(7, 0.3, JitterScope::Action).unwrap();
    check_all(&generated(&folder, "sparse.pdt", &RandomSparse::new(sparse).unwrap(), Some(noise)));
    let allreduces =
        AllreduceLoopParameters { ranks: 100, iterations: 3, ..AllreduceLoopParameters::default() };
    check_all(&generated(&folder, "allreduce.pdt", &AllreduceLoop::new(allreduces).unwrap(), None));
}

/// Several ranks of a host share its core and its loopback.
#[test]
fn ranks_that_share_hosts() {
    let folder = Folder::new();
    let trace = generated(&folder, "halo.pdt", &halo([8, 8, 4]), None);
    let torus = TORUS.replace(" }", ", loopback = { bandwidth = '20GBps', latency = '100ns' } }");
    check(&trace, &[&torus, PRESETS[0][0]]);
}

/// A program that depends on the global order of events is replayed on one thread.
#[test]
fn conditional_events_need_one_thread() {
    let folder = Folder::new();
    let tasks = MasterWorkerParameters { ranks: 40, tasks: 100, ..MasterWorkerParameters::default() };
    check(&generated(&folder, "tasks.pdt", &MasterWorker::new(tasks).unwrap(), None), &[TREE, PRESETS[0][0]]);
    check(&write(&folder, &programs::with_tests(20)), &[TORUS, PRESETS[0][0]]);
}

#[test]
fn reasons_for_one_thread_are_told() {
    let folder = Folder::new();
    let trace = write(&folder, &programs::ahead(5, 3, 2000, true));
    let warning = |settings: &[&str]| {
        let warnings = load(&trace, settings, 2).warnings();
        warnings.into_iter().find(|warning| warning.contains("runs on one thread")).unwrap_or_default()
    };
    assert_eq!(warning(&[TREE, PRESETS[0][0]]), "");
    let marked = warning(&[TREE, "network.preset=smpi"]);
    assert!(marked.contains("network.solve_scope = \"marked\""), "{marked}");
    let small = "platform.topology={ kind = 'torus', dims = [4, 4], speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
    assert!(warning(&[small, PRESETS[0][0]]).contains("fewer than 128 hosts"));
    let near = TORUS.replace("500ns", "0s");
    assert!(warning(&[&near, PRESETS[0][0]]).contains("without latency"));
}

/// A failure and a deadlock are reported as on one thread.
#[test]
fn errors_are_the_same() {
    let folder = Folder::new();
    let lines = "0 compute 1e6\n0 send 1 0 500\n1 recv 0 0 500\n".repeat(20);
    for rest in
        ["0 send 1 7 100\n1 recv 0 7 10\n", "0 recv 1 7 100\n1 recv 0 8 10\n0 send 1 8 10\n1 send 0 7 100\n"]
    {
        let trace = folder.write("trace.txt", &format!("0 init\n1 init\n{lines}{rest}"));
        let error = |threads| replay(&load(&trace, &[TREE, PRESETS[0][0]], threads)).unwrap_err().to_string();
        assert_eq!(error(3), error(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_of_any_phases(
        ranks in 2_u32..24,
        count in 1_u64..6,
        body in prop::collection::vec(phase(), 1..5),
        after in prop::collection::vec(phase(), 0..3),
        platform in prop::sample::select(&PLATFORMS[..]),
        preset in prop::sample::select(&PRESETS[..]),
        protocol in prop::sample::select(&PROTOCOLS[..]),
    ) {
        let folder = Folder::new();
        let programs: Vec<Vec<Item>> =
            (0..ranks).map(|me| program(me, ranks, &[], (count, &body), &after)).collect();
        check(&write(&folder, &programs), &[&[platform, protocol], preset].concat());
    }
}
