//! Any text is a trace or an error; a trace, written as text, is the same trace again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_core::Rank;
use trace_mmap::{Trace, write_text};

fuzz_target!(|text: &str| {
    let Ok(trace) = Trace::from_text(text) else { return };
    if trace.ranks() > 64 {
        return;
    }
    let mut written = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(&trace, rank, &mut written, None).expect("memory takes all");
    }
    let written = String::from_utf8(written).expect("text");
    let again = Trace::from_text(&written).expect("what was a trace is one again");
    for rank in (0..trace.ranks().min(again.ranks())).map(Rank::new) {
        assert!(trace.ops(rank).eq(again.ops(rank)), "{written}");
    }
});
