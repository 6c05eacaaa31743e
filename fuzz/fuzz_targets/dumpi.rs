//! Any file of a DUMPI trace is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("trace-0.bin");
    std::fs::write(&file, bytes).expect("the file is written");
    if let Ok(trace) = trace_tools::load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
    }
});
