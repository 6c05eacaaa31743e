//! Any text is a trace or an error; a trace, written as text or as a folded archive, is the same trace
//! again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pdes_core::Rank;
use pdes_replay_fuzz::{file, path};
use trace_mmap::{ConvertOptions, Folding, LoadOptions};
use trace_tools::{convert, write_text};

fuzz_target!(|text: &str| {
    let Ok(trace) = trace_tools::from_text(text) else { return };
    if trace.ranks() > 64 {
        return;
    }
    let mut written = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(&trace, rank, &mut written, None).expect("memory takes all");
    }
    let written = String::from_utf8(written).expect("text");
    let again = trace_tools::from_text(&written).expect("what was a trace is one again");
    for rank in (0..trace.ranks().min(again.ranks())).map(Rank::new) {
        assert!(trace.ops(rank).eq(again.ops(rank)), "{written}");
    }
    let (merged, archive) = (file("trace.txt", written.as_bytes()), path("trace.pdt"));
    let options = ConvertOptions { folding: Folding::Always, ..ConvertOptions::default() };
    convert(&merged, &archive, &options).expect("what is a trace is an archive");
    let archived = trace_tools::load(&archive, &LoadOptions::default()).expect("the archive opens");
    for rank in (0..again.ranks()).map(Rank::new) {
        assert!(again.ops(rank).eq(archived.ops(rank)), "{written}");
    }
    archived.integrity().expect("the archive is whole");
});
