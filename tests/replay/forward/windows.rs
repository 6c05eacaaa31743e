//! Fast-forwarding with exact contention on several threads: results are those of the complete replay on one thread, to the bit.

use std::path::Path;

use pdes_core::{Bytes, Progress};
use pdes_replay::{FastForward, Outcome, Simulation};
use proptest::prelude::*;
use trace_mmap::Item;
use trace_tools::generate::{Halo3d, Halo3dParameters, Jitter, JitterScope};

use super::contention::{config, expect_same, generated, lu, transpositions_and_allreduces_in};
use super::programs::{self, phase, program};
use super::{PROTOCOLS, fold, write};
use crate::command_line::Folder;
use crate::windows::{PLATFORMS, PRESETS, TORUS};

/// Replays on a number of threads; a schedule that is perturbed is not on trial.
fn replay(trace: &Path, settings: &[&str], threads: usize, jitter: u64) -> Outcome {
    let mut config = config(trace, settings);
    config.set(&format!("engine.threads={threads}")).unwrap();
    config.set("parallel.oversubscribe=true").unwrap();
    let simulation = Simulation::load(&config.resolve().unwrap()).unwrap().with_jitter(Some(jitter));
    assert_eq!(simulation.warnings().iter().find(|warning| warning.contains("one thread")), None);
    simulation.replay(&Progress::new(threads)).unwrap()
}

/// Replays with fast-forwarding on several numbers of threads, and expects the result of a complete replay on one; returns the
/// iterations skipped.
pub(super) fn check(trace: &Path, settings: &[&str]) -> Vec<FastForward> {
    let expected = replay(trace, settings, 1, 7);
    let forwarded = [settings, &["engine.fast_forward=true"]].concat();
    let of_threads = |(threads, jitter)| {
        let outcome = replay(trace, &forwarded, threads, jitter);
        expect_same(&outcome, &expected, settings);
        let unwatched = replay(trace, &[&forwarded[..], &["analysis.links=false"]].concat(), threads, jitter);
        expect_same(&Outcome { links: expected.links.clone(), ..unwatched }, &expected, settings);
        outcome.fast_forward.expect("it was asked for")
    };
    [(1, 2), (2, 3), (3, 5)].map(of_threads).to_vec()
}

/// Checks a program on all platforms with all presets, and expects at least so many skipped iterations.
fn check_all(trace: &Path, skipped: u64) {
    for platform in PLATFORMS {
        for preset in PRESETS {
            let found = check(trace, &[&[platform], preset].concat());
            let least = found.iter().map(|found| found.skipped_iterations).min();
            assert!(least >= Some(skipped), "{platform} {preset:?}: {found:?}");
        }
    }
}

#[test]
fn wavefronts() {
    let folder = Folder::new();
    check_all(&generated(&folder, "lu.pdt", &lu(24), None), 12);
    let uneven = Jitter::new(3, 0.1, JitterScope::Rank).unwrap();
    check_all(&generated(&folder, "uneven.pdt", &lu(24), Some(uneven)), 10);
}

#[test]
fn halo_exchanges() {
    let parameters = Halo3dParameters {
        cells: [64, 64, 64],
        processes: [8, 4, 4],
        periodic: true,
        iterations: 40,
        cell_bytes: Bytes::new(8),
        ..Halo3dParameters::default()
    };
    let folder = Folder::new();
    let trace = generated(&folder, "halo.pdt", &Halo3d::new(parameters).unwrap(), None);
    for protocol in PROTOCOLS {
        let found = check(&trace, &[&[TORUS, protocol], PRESETS[0]].concat());
        assert!(found.iter().all(|found| found.skipped_iterations >= 20), "{protocol}: {found:?}");
    }
}

#[test]
fn transpositions_and_allreduces() {
    let folder = Folder::new();
    let [transpositions, allreduces] = transpositions_and_allreduces_in(&folder);
    check_all(&transpositions, 8);
    check_all(&allreduces, 20);
}

#[test]
fn pending_messages_between_iterations() {
    for (is_posted, bytes) in [(false, 2000), (true, 2000), (false, 100_000), (true, 100_000)] {
        let folder = Folder::new();
        let trace = write(&folder, &programs::ahead(5, 150, bytes, is_posted));
        let found = check(&trace, &[&[TORUS], PRESETS[0]].concat());
        assert!(found.iter().all(|found| found.skipped_iterations > 80), "{bytes} {is_posted}: {found:?}");
    }
}

/// Such programs are replayed on one thread, after a warning.
#[test]
fn programs_that_depend_on_the_global_order_of_events() {
    let folder = Folder::new();
    let found = check(&write(&folder, &programs::from_any(80)), &[&[TORUS], PRESETS[0]].concat());
    assert!(found.iter().all(|found| found.skipped_iterations > 50), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

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
        let settings = [&[platform, protocol], preset].concat();
        check(&write(&folder, &programs), &settings);
        check(&fold(&folder, &programs), &settings);
    }
}
