//! Traces acquired from the NAS Parallel Benchmarks, as published, load line by line.

use std::fs::{self, File};
use std::num::NonZero;

use flate2::read::GzDecoder;
use pdes_core::Rank;
use trace_mmap::LoadOptions;

use crate::shared::shared;

/// Lines of each trace by `wc -l` over its rank files.
const LINES: [(&str, u32, u64); 19] = [
    ("bt.S.16", 16, 102_933),
    ("cg.A.8", 8, 87_995),
    ("cg.S.8", 8, 75_881),
    ("cg.W.16", 16, 175_118),
    ("dt.S.21", 21, 100),
    ("ep.S.32", 32, 504),
    ("ep.S.8", 8, 121),
    ("ft.A.8", 8, 351),
    ("ft.S.32", 32, 1378),
    ("ft.S.8", 8, 344),
    ("is.A.8", 8, 598),
    ("is.S.32", 32, 2318),
    ("is.S.8", 8, 555),
    ("lu.A.8", 8, 981_261),
    ("lu.S.8", 8, 33_969),
    ("lu.W.16", 16, 1_274_731),
    ("mg.A.8", 8, 28_578),
    ("mg.S.8", 8, 12_321),
    ("sp.S.16", 16, 158_649),
];

fn options() -> LoadOptions<'static> {
    LoadOptions {
        threads: std::thread::available_parallelism().map_or(1, NonZero::get),
        ..LoadOptions::default()
    }
}

#[test_with::shared]
fn every_line_of_the_acquired_traces_is_an_action() {
    let archives = shared("traces");
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (name, ranks, lines) in LINES {
        let archive = File::open(archives.join(format!("{name}.tar.gz"))).expect("the archive opens");
        tar::Archive::new(GzDecoder::new(archive)).unpack(dir.path()).expect("the archive unpacks");
        let unpacked = dir.path().join(name);
        for path in [unpacked.join("files.txt"), unpacked.clone()] {
            let trace = trace_tools::load(&path, &options()).expect("the trace loads");
            assert_eq!((trace.ranks(), trace.actions()), (ranks, lines), "{}", path.display());
            assert_eq!(trace.warnings(), [], "{name}");
            assert_eq!(trace.unreceived(), None, "{name}");
        }
        fs::remove_dir_all(unpacked).expect("the directory goes");
    }
}

/// In the text of LU each `wait` directly follows the computation after its `irecv`.
#[test_with::shared]
fn requests_of_lu_share_one_slot() {
    let archives = shared("traces");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let archive = File::open(archives.join("lu.S.8.tar.gz")).expect("the archive opens");
    tar::Archive::new(GzDecoder::new(archive)).unpack(dir.path()).expect("the archive unpacks");
    let trace = trace_tools::load(&dir.path().join("lu.S.8"), &options()).expect("the trace loads");
    for rank in (0..8).map(Rank::new) {
        assert_eq!(trace.rank(rank).slots(), 1);
        assert_eq!(trace.rank(rank).pending_at_end(), []);
    }
}

#[test_with::shared]
fn the_examples_of_smpi_replay_load() {
    let dir = shared("oracle/tesh");
    let mut loaded = 0;
    for entry in fs::read_dir(&dir).expect("the directory is read") {
        let path = entry.expect("the directory is read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // actions0.txt and actions1.txt are the two ranks of one trace.
        if !name.starts_with("actions_") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("the example is text");
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
        let trace = trace_tools::load(&path, &options()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.actions(), lines as u64, "{name}");
        loaded += 1;
    }
    assert_eq!(loaded, 11);
}
