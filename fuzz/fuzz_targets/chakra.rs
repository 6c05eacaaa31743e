//! Any bytes, as the graph of two ranks, are an execution trace of Chakra, in protobuf or JSON, or an error; of a trace there is a schedule
//! or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::file;
use training::{ExecutionTrace, ScheduleOptions};

fuzz_target!(|bytes: &[u8]| {
    for [first, second] in [["binary.0.et", "binary.1.et"], ["text.0.json", "text.1.json"]] {
        file(second, bytes);
        if let Ok(trace) = ExecutionTrace::read(&file(first, bytes)) {
            let _ = trace.schedule(&ScheduleOptions::default());
        }
    }
});
