//! The seed corpora of fuzzing are valid traces with the properties that the fuzz targets check.

use std::fs;
use std::path::{Path, PathBuf};

use pdes_core::Rank;
use trace_mmap::{Finding, LoadOptions, check};
use trace_tools::write_text;

fn corpus(name: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).expect("the corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn texts_are_their_dumps() {
    for file in corpus("ti_text") {
        let text = fs::read_to_string(&file).expect("text");
        let trace = match trace_tools::from_text(&text) {
            Ok(trace) => trace,
            Err(error) => panic!("{}: {error}", file.display()),
        };
        let mut written = Vec::new();
        for rank in (0..trace.ranks()).map(Rank::new) {
            write_text(&trace, rank, &mut written, None).expect("memory takes all");
        }
        let written = String::from_utf8(written).expect("text");
        let again = trace_tools::from_text(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        for rank in (0..trace.ranks()).map(Rank::new) {
            assert!(trace.ops(rank).eq(again.ops(rank)), "{}: {written}", file.display());
        }
    }
}

#[test]
fn archives_open() {
    for file in corpus("archive") {
        let trace = trace_tools::load(&file, &LoadOptions::default());
        let trace = trace.unwrap_or_else(|error| panic!("{error}"));
        let damage = |finding: &Finding| {
            matches!(finding, Finding::Data(_) | Finding::Damaged { .. } | Finding::Table { .. })
        };
        assert!(!check(&trace, None).findings.iter().any(damage), "{}", file.display());
    }
}
