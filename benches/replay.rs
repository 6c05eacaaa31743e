//! Replay rates, on traces in memory: `cargo bench -p pdes-replay`.
//!
//! Real traces come from `../shared/traces` where that is present; the committed trace of LU class S always runs.

use std::path::{Path, PathBuf};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pdes_core::Progress;
use pdes_replay::{Config, Simulation};

fn main() {
    divan::main();
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn simulation_of(trace: &Path, threads: usize) -> Simulation {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &repository().join("configs/platforms/crossbar-gbe.toml"));
    config.insert("engine", "threads", toml::Value::Integer(threads as i64));
    Simulation::load(&config.resolve().expect("the configuration is complete")).expect("the trace is right")
}

/// Replays a simulation repeatedly, and counts actions.
fn replay(bencher: Bencher<'_, '_>, simulation: &Simulation) {
    let run = || simulation.replay(&Progress::new(simulation.spec().threads)).expect("the trace replays");
    bencher.counter(ItemsCount::new(simulation.trace().actions())).bench(|| black_box(run()));
}

/// Replays a trace of `../shared/traces`, or prints that it is absent.
#[expect(clippy::print_stderr, reason = "a benchmark that does not run must say so")]
fn replay_shared(bencher: Bencher<'_, '_>, name: &str, threads: usize) {
    let archive = repository().join("../shared/traces").join(format!("{name}.tar.gz"));
    let Ok(file) = std::fs::File::open(&archive) else {
        eprintln!("SKIPPED: {} is absent", archive.display());
        return;
    };
    let unpacked = tempfile::tempdir().expect("there is room for temporary files");
    let target = unpacked.path();
    tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(target).expect("the archive is whole");
    replay(bencher, &simulation_of(&target.join(name), threads));
}

#[divan::bench(args = [1, 2])]
fn lu_s_8(bencher: Bencher<'_, '_>, threads: usize) {
    replay(bencher, &simulation_of(&repository().join("configs/traces/lu.S.8"), threads));
}

#[divan::bench(args = [1, 2])]
fn lu_a_8(bencher: Bencher<'_, '_>, threads: usize) {
    replay_shared(bencher, "lu.A.8", threads);
}

#[divan::bench(args = [1, 2])]
fn lu_w_16(bencher: Bencher<'_, '_>, threads: usize) {
    replay_shared(bencher, "lu.W.16", threads);
}

/// Reading the compressed text of the committed trace and its platform.
#[divan::bench]
fn load_lu_s_8(bencher: Bencher<'_, '_>) {
    let path = repository().join("configs/traces/lu.S.8");
    let actions = simulation_of(&path, 1).trace().actions();
    bencher.counter(ItemsCount::new(actions)).bench(|| black_box(simulation_of(&path, 1)));
}
