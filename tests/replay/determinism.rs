//! One answer, however the work is divided: the digest is the same for any number of threads, any bound on run-ahead,
//! and with the schedule disturbed at random.

use std::path::{Path, PathBuf};

use pdes_core::Progress;
use pdes_replay::{Config, Digest, Scene};

use crate::reference;

fn digest(trace: &Path, platform: &Path, settings: &[String], jitter: Option<u64>) -> Digest {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", platform);
    for setting in settings {
        config.set(setting).unwrap();
    }
    let mut scene = Scene::load(&config.resolve().unwrap()).unwrap();
    if let Some(seed) = jitter {
        scene = scene.with_jitter(seed);
    }
    let outcome = scene.replay(&Progress::new(scene.job().threads)).unwrap();
    Digest::of(outcome.ends.iter().copied().zip(&outcome.statistics))
}

/// Replays in many ways, with and without contention, and expects one digest of each.
fn check(trace: &Path, platform: &Path) {
    let flow = "network.model='flow'".to_owned();
    let expected = digest(trace, platform, std::slice::from_ref(&flow), None);
    for seed in 0..3 {
        let disturbed = digest(trace, platform, std::slice::from_ref(&flow), Some(seed));
        assert_eq!(disturbed, expected, "{} with contention, seed {seed}", trace.display());
    }
    let loggps = "network.model='loggps'".to_owned();
    let expected = digest(trace, platform, std::slice::from_ref(&loggps), None);
    for threads in [1, 2, 3, 7] {
        for run_ahead in ["'auto'", "0", "1e-6", "1e3"] {
            let settings = [
                loggps.clone(),
                format!("engine.threads={threads}"),
                format!("engine.run_ahead_s={run_ahead}"),
            ];
            assert_eq!(
                digest(trace, platform, &settings, None),
                expected,
                "{} {settings:?}",
                trace.display()
            );
        }
        for seed in 0..2 {
            let settings = [loggps.clone(), format!("engine.threads={threads}")];
            let disturbed = digest(trace, platform, &settings, Some(seed));
            assert_eq!(disturbed, expected, "{} {settings:?} seed {seed}", trace.display());
        }
    }
}

fn committed_platform(name: &str) -> PathBuf {
    reference::repository().join("configs/platforms").join(name)
}

#[test]
fn the_committed_trace() {
    let trace = reference::repository().join("configs/traces/lu.S.8");
    for platform in ["torus-5g.toml", "backbone-gbe.toml"] {
        check(&trace, &committed_platform(platform));
    }
}

/// Random programs mix all kinds of sends, receives and collectives.
#[test]
fn random_programs() {
    let folder = reference::data("uncontended");
    for row in reference::rows(&folder.join("random.csv")) {
        check(&folder.join("random").join(&row["trace"]), &folder.join(&row["platform"]));
    }
}

/// Tests look at simulated time, and share a counter.
#[test]
fn programs_that_test_requests() {
    let mut text = String::new();
    for rank in 0..6 {
        let (next, previous) = ((rank + 1) % 6, (rank + 5) % 6);
        text.push_str(&format!("{rank} init\n"));
        for round in 0..20 {
            text.push_str(&format!(
                "{rank} irecv {previous} {round} 70000\n{rank} compute {}\n",
                rank * 100_000
            ));
            text.push_str(&format!(
                "{rank} test {previous} {rank} {round}\n{rank} isend {next} {round} 70000\n"
            ));
            text.push_str(&format!("{rank} test {previous} {rank} {round}\n{rank} waitall\n"));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("tests.txt");
    std::fs::write(&trace, text).unwrap();
    check(&trace, &committed_platform("crossbar-gbe.toml"));
}

/// Two ranks fail: the one that fails first in simulated time is reported, whichever the engine meets first.
#[test]
fn the_first_failure() {
    let text = "0 init\n1 init\n2 init\n0 irecv 1 1 10\n0 compute 1000\n0 send 2 2 100\n0 wait 1 0 1\n\
                1 compute 1000000\n1 send 0 1 100\n2 recv 0 2 10\n";
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("failures.txt");
    std::fs::write(&trace, text).unwrap();
    for threads in [1, 2, 3] {
        for run_ahead in ["'auto'", "1e3"] {
            for seed in 0..10 {
                let mut config = Config::default();
                config.set_path("trace", "path", &trace);
                config.set_path("platform", "file", &committed_platform("crossbar-gbe.toml"));
                config.set("network.model='loggps'").unwrap();
                config.set(&format!("engine.threads={threads}")).unwrap();
                config.set(&format!("engine.run_ahead_s={run_ahead}")).unwrap();
                let scene = Scene::load(&config.resolve().unwrap()).unwrap().with_jitter(seed);
                let error = scene.replay(&Progress::new(threads)).unwrap_err().to_string();
                assert!(error.contains("failures.txt:10: rank 2, action 1"), "{error}");
            }
        }
    }
}

#[test]
fn all_real_traces() {
    let Some(traces) = reference::shared("traces") else { return };
    let unpacked = reference::unpack(&traces);
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(unpacked.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 19, "found {} traces", names.len());
    for trace in names {
        let platform = committed_platform("fattree-hdr.toml");
        let loggps = "network.model='loggps'".to_owned();
        let expected = digest(&trace, &platform, std::slice::from_ref(&loggps), None);
        for threads in [2, 3, 7] {
            let settings = [loggps.clone(), format!("engine.threads={threads}")];
            assert_eq!(digest(&trace, &platform, &settings, None), expected, "{} {threads}", trace.display());
        }
    }
}
