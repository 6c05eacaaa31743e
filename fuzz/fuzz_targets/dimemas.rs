//! Any trace of Dimemas is a trace or an error; a trace is written again and reads as one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_replay_fuzz::{file, path, read};
use trace_mmap::LoadOptions;
use trace_tools::{Export, load};

fuzz_target!(|bytes: &[u8]| {
    let records = [b"#DIMEMAS:\"fuzz\":0:3(1,1,1),9\n", bytes].concat();
    if let Some(trace) = read(&file("trace.dim", &records)) {
        let again = path("again.dim");
        let export = Export::of(&again).expect("it is a format");
        export.write(&trace, &again, None).expect("it is a trace of calls");
        load(&again, &LoadOptions::default()).expect("what was written");
    }
});
