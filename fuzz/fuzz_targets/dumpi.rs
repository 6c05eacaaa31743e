//! Any file of a DUMPI trace is a trace or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, read};

fuzz_target!(|bytes: &[u8]| {
    read(&file("trace-0.bin", bytes));
});
