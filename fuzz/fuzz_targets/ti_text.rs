//! Any text is a trace or an error; a trace can be read to its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_core::Rank;
use trace_mmap::Trace;

fuzz_target!(|text: &str| {
    if let Ok(trace) = Trace::from_text(text) {
        for rank in 0..trace.ranks() {
            let rank = trace.rank(Rank::new(rank));
            assert_eq!(rank.cursor().count() as u64, rank.len());
        }
    }
});
