//! Any bytes behind the first ones of a log of Darshan are accesses or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("app.darshan");
    std::fs::write(&file, [b"3.41\0\0\0\0\x75\x35\x64\0\0\0\0\0", bytes].concat())
        .expect("the file is written");
    if let Ok(trace) = trace_tools::load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
    }
});
