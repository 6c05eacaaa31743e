//! Fast-forwarding with contention: ends, statistics, waits and link loads are those of the complete replay, to the bit.

use std::path::Path;

use pdes_core::{Bytes, Progress, Rank};
use pdes_replay::{Config, FastForward, Outcome, Simulation};
use proptest::prelude::*;
use trace_mmap::{ArchiveWriter, Item};
use trace_tools::generate::{
    AllreduceLoop, AllreduceLoopParameters, AlltoallFft, AlltoallFftParameters, Class, Generator, Halo3d,
    Halo3dParameters, Jitter, JitterScope, NpbLu, NpbLuParameters,
};

use super::programs::{self, Phase, phase, program};
use super::{EAGER, PROTOCOLS, digest, digest_of_one, fold, replay_in_parts, write};
use crate::command_line::{Folder, command};
use crate::determinism::committed_platform;

pub(super) const TREE: &str = "platform.topology={ kind = 'fat_tree', levels = [{ children = 4, parents = 1 }, { children = 4, parents = 2 }], \
                    speed = '10Gf', bandwidth = '12.5GBps', latency = '500ns' }";
const TORUS: &str = "platform.topology={ kind = 'torus', dims = [4, 2, 2], speed = '10Gf', bandwidth = '12.5GBps', latency = '500ns' }";
const DRAGONFLY: &str = "platform.topology={ kind = 'dragonfly', groups = 2, chassis = 2, blades = 2, nodes = 2, speed = '10Gf', \
                         bandwidth = '12.5GBps', latency = '500ns' }";
const PLATFORMS: [&str; 3] = [TREE, TORUS, DRAGONFLY];
const PRESETS: [&str; 2] = ["network.preset='raw'", "network.preset='smpi'"];

pub(super) fn config(trace: &Path, settings: &[&str]) -> Config {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    let analyses =
        ["analysis.links=true", "analysis.waits=true", "analysis.histograms=true", "analysis.matrix=true"];
    for setting in [&["network.model=flow"], &analyses[..], settings].concat() {
        config.set(setting).unwrap();
    }
    config
}

fn replay(trace: &Path, settings: &[&str]) -> Outcome {
    let simulation =
        Simulation::load(&config(trace, settings).resolve().unwrap()).unwrap().with_jitter(Some(7));
    simulation.replay(&Progress::new(1)).unwrap()
}

/// Replays with and without fast-forwarding, and expects one result; returns the summary of the iterations skipped.
pub(crate) fn check(trace: &Path, settings: &[&str]) -> FastForward {
    let expected = replay(trace, settings);
    let outcome = replay(trace, &[settings, &["engine.fast_forward=true"]].concat());
    let in_parts = replay_in_parts(config(trace, settings));
    for outcome in [&outcome, &in_parts] {
        expect_same(outcome, &expected, settings);
    }
    let unwatched =
        replay(trace, &[settings, &["engine.fast_forward=true", "analysis.links=false"]].concat());
    assert_eq!(unwatched.links, None);
    expect_same(&Outcome { links: expected.links.clone(), ..unwatched }, &expected, settings);
    outcome.fast_forward.expect("it was asked for")
}

/// Expects the results of a complete replay.
pub(super) fn expect_same(outcome: &Outcome, expected: &Outcome, settings: &[&str]) {
    assert!(expected.links.is_some());
    assert_eq!(outcome.program().ends, expected.program().ends, "{settings:?}");
    for (rank, (found, expected)) in
        outcome.program().statistics.iter().zip(&expected.program().statistics).enumerate()
    {
        assert_eq!(digest_of_one(found), digest_of_one(expected), "rank {rank} {settings:?}");
    }
    assert_eq!(digest(outcome), digest(expected));
    assert_eq!(
        outcome.program().findings.distributions,
        expected.program().findings.distributions,
        "{settings:?}"
    );
    assert_eq!(outcome.program().findings.matrix, expected.program().findings.matrix, "{settings:?}");
    assert_eq!(outcome.links, expected.links, "{settings:?}");
}

pub(crate) fn generated(
    folder: &Folder,
    name: &str,
    generator: &dyn Generator,
    jitter: Option<Jitter>,
) -> std::path::PathBuf {
    let path = folder.path(name);
    let mut writer = ArchiveWriter::create(&path, generator.ranks(), 1).unwrap();
    for rank in (0..generator.ranks()).map(Rank::new) {
        let program: Vec<Item> = generator.rank(rank);
        let program = match jitter {
            Some(jitter) => jitter.apply(rank, program).unwrap(),
            None => program,
        };
        writer.write_rank(rank, &program).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Checks a program on all platforms with all presets, and expects at least so many skipped iterations.
fn check_all(trace: &Path, skipped: u64) {
    for platform in PLATFORMS {
        for preset in PRESETS {
            let found = check(trace, &[platform, preset]);
            assert!(found.skipped_iterations >= skipped, "{platform} {preset}: {found:?}");
        }
    }
}

pub(super) fn lu(steps: u32) -> NpbLu {
    NpbLu::new(NpbLuParameters { steps, ..NpbLuParameters::new(Class::S, 16) }).unwrap()
}

#[test]
fn wavefronts() {
    let folder = Folder::new();
    check_all(&generated(&folder, "lu.pdt", &lu(24), None), 15);
    let uneven = Jitter::new(3, 0.1, JitterScope::Rank).unwrap();
    check_all(&generated(&folder, "uneven.pdt", &lu(24), Some(uneven)), 12);
}

#[test]
fn without_link_loads_a_period_less_is_replayed() {
    let folder = Folder::new();
    let trace = generated(&folder, "lu.pdt", &lu(24), None);
    let settings = [TREE, PRESETS[0], "engine.fast_forward=true"];
    let [with, without] = ["analysis.links=true", "analysis.links=false"]
        .map(|links| replay(&trace, &[&settings[..], &[links]].concat()).fast_forward.unwrap());
    assert_eq!(without.skipped_iterations, with.skipped_iterations + 1);
    assert_eq!(without.iteration_boundaries, with.iteration_boundaries - 1);
}

#[test]
fn wavefronts_on_shared_cores() {
    let folder = Folder::new();
    let trace = generated(&folder, "lu.pdt", &lu(24), None);
    let cluster = "platform.topology={ kind = 'cluster', hosts = 8, speed = '10Gf', bandwidth = '12.5GBps', latency = '1us' }";
    for preset in PRESETS {
        let found = check(&trace, &[cluster, preset]);
        assert!(found.skipped_iterations >= 12, "{preset}: {found:?}");
    }
}

#[test]
fn halo_exchanges() {
    let parameters = Halo3dParameters {
        cells: [64, 64, 64],
        processes: [4, 2, 2],
        periodic: true,
        iterations: 60,
        cell_bytes: Bytes::new(8),
        ..Halo3dParameters::default()
    };
    let folder = Folder::new();
    let trace = generated(&folder, "halo.pdt", &Halo3d::new(parameters).unwrap(), None);
    for platform in PLATFORMS {
        for preset in PRESETS {
            for protocol in PROTOCOLS {
                let found = check(&trace, &[platform, preset, protocol]);
                // Where paths share links, or sends do not wait, it may take long until the network comes to rest.
                let settles = platform == TORUS && protocol != EAGER;
                assert!(
                    !settles || found.skipped_iterations >= 40,
                    "{platform} {preset} {protocol}: {found:?}"
                );
            }
        }
    }
}

/// Generates transpositions of FFT, of 14 steps, and 40 allreduces, on 16 ranks each.
pub(super) fn transpositions_and_allreduces_in(folder: &Folder) -> [std::path::PathBuf; 2] {
    let fft = AlltoallFftParameters {
        ranks: 16,
        grid: [64, 64, 32],
        steps: 14,
        ..AlltoallFftParameters::default()
    };
    let allreduces =
        AllreduceLoopParameters { ranks: 16, iterations: 40, ..AllreduceLoopParameters::default() };
    [
        generated(folder, "fft.pdt", &AlltoallFft::new(fft).unwrap(), None),
        generated(folder, "allreduce.pdt", &AllreduceLoop::new(allreduces).unwrap(), None),
    ]
}

#[test]
fn transpositions_and_allreduces() {
    let folder = Folder::new();
    let [transpositions, allreduces] = transpositions_and_allreduces_in(&folder);
    check_all(&transpositions, 8);
    check_all(&allreduces, 20);
}

#[test]
fn noise_is_never_fast_forwarded() {
    let folder = Folder::new();
    let noise = Jitter::new(7, 0.1, JitterScope::Action).unwrap();
    let trace = generated(&folder, "noisy.pdt", &lu(8), Some(noise));
    assert_eq!(check(&trace, &[TREE, PRESETS[0]]).skipped_iterations, 0);
}

/// Whatever depends on time is part of the state, so that such programs repeat, too.
#[test]
fn outcomes_that_depend_on_time_repeat() {
    let folder = Folder::new();
    let found = check(&write(&folder, &programs::from_any(80)), &[TORUS, PRESETS[0]]);
    assert!(found.skipped_iterations > 50, "{found:?}");
    check(&write(&folder, &programs::with_tests(80)), &[TORUS, PRESETS[1]]);
}

#[test]
fn each_pattern_is_fast_forwarded() {
    for phase in Phase::COUPLED {
        let body = [Phase::Compute([1e6, 3e6, 2e5]), phase];
        let folder = Folder::new();
        let programs: Vec<Vec<Item>> = (0..4).map(|me| program(me, 4, &[], (200, &body), &[])).collect();
        let trace = write(&folder, &programs);
        for preset in PRESETS {
            let found = check(&trace, &[TREE, preset]);
            assert!(found.skipped_iterations > 100, "{phase:?} {preset}: {found:?}");
        }
    }
}

#[test]
fn pending_messages_between_iterations() {
    for (is_posted, bytes) in [(false, 2000), (true, 2000), (false, 100_000), (true, 100_000)] {
        let folder = Folder::new();
        let trace = write(&folder, &programs::ahead(5, 150, bytes, is_posted));
        for settings in [[TORUS, PRESETS[0]], [TORUS, PRESETS[1]], [TORUS, EAGER]] {
            let found = check(&trace, &settings);
            assert!(found.skipped_iterations > 80, "{bytes} {is_posted} {settings:?}: {found:?}");
        }
    }
}

/// A failure after many iterations is reported as without fast-forwarding.
#[test]
fn errors_are_the_same() {
    let folder = Folder::new();
    let lines = "0 compute 1e6\n0 send 1 0 500\n1 recv 0 0 500\n".repeat(500);
    let rest = "0 send 1 7 100\n1 recv 0 7 10\n";
    let source = folder.write("trace.txt", &format!("0 init\n1 init\n{lines}{rest}"));
    let path = folder.path("trace.pdt");
    trace_tools::convert(&source, &path, &trace_mmap::ConvertOptions::default()).unwrap();
    let error = |fast_forward: &str| {
        let mut run = command();
        run.arg("--trace").arg(&path).arg("--platform").arg(committed_platform("torus-5g.toml"));
        run.args(["--quiet", "--set", fast_forward]);
        String::from_utf8(run.assert().code(1).get_output().stderr.clone()).unwrap()
    };
    assert_eq!(error("engine.fast_forward=true"), error("engine.fast_forward=false"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_of_any_body(
        ranks in 2_u32..9,
        count in 3_u64..60,
        before in prop::collection::vec(phase(), 0..3),
        body in prop::collection::vec(phase(), 1..5),
        after in prop::collection::vec(phase(), 0..3),
        platform in prop::sample::select(&PLATFORMS[..]),
        preset in prop::sample::select(&PRESETS[..]),
        protocol in prop::sample::select(&PROTOCOLS[..]),
    ) {
        let folder = Folder::new();
        let programs: Vec<Vec<Item>> =
            (0..ranks).map(|me| program(me, ranks, &before, (count, &body), &after)).collect();
        let settings = [platform, preset, protocol];
        check(&write(&folder, &programs), &settings);
        check(&fold(&folder, &programs), &settings);
    }
}
