//! Any workload of SimAI is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("workload.txt");
    // More ranks only repeat these.
    let head =
        &b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 "
            [..];
    std::fs::write(&file, [head, bytes].concat()).expect("the file is written");
    if let Ok(trace) = trace_tools::load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
    }
});
