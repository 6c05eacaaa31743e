//! Replay rates, on traces in memory.
//!
//! Real traces come from `../shared/traces` where that is present; the committed trace of LU class S always runs.
//! `cargo bench -p pdes-replay` prints times and actions per second.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pdes_core::Progress;
use pdes_replay::{Config, Scene};

/// The traces of the goal: 20 million actions/s or more on one thread.
const SHARED: [&str; 2] = ["lu.A.8", "lu.W.16"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scene(trace: &Path) -> Scene {
    let mut config = Config::default();
    config.set_path("trace", "path", trace);
    config.set_path("platform", "file", &repository().join("configs/platforms/crossbar-gbe.toml"));
    Scene::load(&config.resolve().expect("the configuration is complete")).expect("the trace is right")
}

/// Unpacks a shared trace, or says that it is absent.
fn shared(name: &str, target: &Path) -> Option<PathBuf> {
    let archive = repository().join("../shared/traces").join(format!("{name}.tar.gz"));
    let Ok(file) = std::fs::File::open(&archive) else {
        criterion_skip(&archive);
        return None;
    };
    tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(target).expect("the archive is whole");
    Some(target.join(name))
}

#[expect(clippy::print_stderr, reason = "a benchmark that does not run must say so")]
fn criterion_skip(archive: &Path) {
    eprintln!("SKIPPED: {} is absent", archive.display());
}

fn replay(criterion: &mut Criterion) {
    let unpacked = tempfile::tempdir().expect("there is room for temporary files");
    let mut traces = vec![("lu.S.8", repository().join("configs/traces/lu.S.8"))];
    traces.extend(SHARED.iter().filter_map(|&name| Some((name, shared(name, unpacked.path())?))));
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(20).measurement_time(Duration::from_secs(4));
    for (name, path) in traces {
        let mut scene = scene(&path);
        group.throughput(Throughput::Elements(scene.trace().actions()));
        for threads in [1, 2] {
            scene = scene.with_threads(threads);
            let id = BenchmarkId::new(name, format!("{threads} thread(s)"));
            group.bench_with_input(id, &scene, |bencher, scene| {
                bencher.iter(|| black_box(scene.replay(&Progress::new(threads)).expect("the trace replays")));
            });
        }
    }
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let path = repository().join("configs/traces/lu.S.8");
    let mut group = criterion.benchmark_group("load");
    group.throughput(Throughput::Elements(scene(&path).trace().actions()));
    group.bench_function("lu.S.8 (gzip)", |bencher| bencher.iter(|| black_box(scene(&path))));
    group.finish();
}

criterion_group!(benches, replay, load);
criterion_main!(benches);
