//! Any bytes are an execution trace of Chakra, in protobuf or JSON, or an error; of a trace there is a schedule or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use training::{ExecutionTrace, ScheduleOptions};

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for end in ["et", "json"] {
        let file = dir.path().join(format!("app.0.{end}"));
        std::fs::write(&file, bytes).expect("the file is written");
        if let Ok(trace) = ExecutionTrace::read(&file) {
            let _ = trace.schedule(&ScheduleOptions::default());
        }
    }
});
