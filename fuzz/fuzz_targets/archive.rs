//! Any bytes are an archive that can be read, or no archive. Checksums are made right first: behind them lies the rest.
#![no_main]

#[path = "../../crates/trace-mmap/tests/hostile/seal.rs"]
mod seal;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use pdes_core::Rank;
use trace_mmap::{Info, LoadOptions, Trace, check};

/// Actions read of each rank: forged loops may be endless.
const LIMIT: usize = 5000;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if bytes.len() >= 4096 {
        seal::seal(&mut bytes);
    }
    let dir = Path::new("/dev/shm");
    let dir = if dir.is_dir() { dir.to_path_buf() } else { std::env::temp_dir() };
    let file = tempfile::NamedTempFile::new_in(dir).expect("a temporary file");
    std::fs::write(file.path(), &bytes).expect("the archive is written");
    let Ok(trace) = Trace::load(file.path(), &LoadOptions::default()) else { return };
    for rank in (0..trace.ranks().min(16)).map(Rank::new) {
        let actions = trace.rank(rank).cursor().take(LIMIT).count();
        assert_eq!(trace.ops(rank).take(LIMIT).count(), actions);
    }
    let _ = Info::of(&trace);
    let _ = check(&trace, None);
    let _ = trace.integrity();
});
