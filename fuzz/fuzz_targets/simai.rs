//! Any workload of SimAI is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, read};

fuzz_target!(|bytes: &[u8]| {
    // More ranks only repeat these.
    let head =
        &b"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 "
            [..];
    read(&file("workload.txt", &[head, bytes].concat()));
});
