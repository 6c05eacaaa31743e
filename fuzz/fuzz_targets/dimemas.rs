//! Any trace of Dimemas is a trace or an error; a trace is written again and reads as one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace_mmap::LoadOptions;
use trace_tools::{Export, load};

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("trace.dim");
    let records = [b"#DIMEMAS:\"fuzz\":0:3(1,1,1),9\n", bytes].concat();
    std::fs::write(&file, records).expect("the file is written");
    if let Ok(trace) = load(&file, &LoadOptions::default()) {
        trace_mmap::check(&trace, None);
        let again = dir.path().join("again.dim");
        let export = Export::of(&again).expect("it is a format");
        export.write(&trace, &again, None).expect("it is a trace of calls");
        load(&again, &LoadOptions::default()).expect("what was written");
    }
});
