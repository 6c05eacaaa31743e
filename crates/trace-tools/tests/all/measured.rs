//! Measured times are the same in text and in archives of any form.

use std::fs;
use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{ConvertOptions, Folding, LoadOptions, Trace, check};
use trace_tools::{TextError, convert, write_text};

use crate::line_error;

fn folding(fold: bool) -> Folding {
    if fold { Folding::Always } else { Folding::Never }
}

/// The times of a rank [ns]; `None` where it has none at all.
fn times(trace: &Trace, rank: u32) -> Option<Vec<Option<u64>>> {
    let measured = trace.rank(Rank::new(rank)).measured()?;
    Some(measured.map(|(_, time)| time.map(|time| time.as_picos() / 1000)).collect())
}

fn written(trace: &Trace) -> String {
    let mut text = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(trace, rank, &mut text, None).expect("memory takes all");
    }
    String::from_utf8(text).expect("text")
}

fn converted(input: &Path, output: &Path, options: &ConvertOptions<'_>) -> Trace {
    convert(input, output, options).unwrap_or_else(|error| panic!("{error}"));
    trace_tools::load(output, &LoadOptions::default()).expect("the archive opens")
}

/// Makes loops of two ranks in which some lines have times.
fn text(times: &[(Option<u64>, Option<u64>)]) -> String {
    let mut text = "0 init\n1 init\n".to_owned();
    let field = |time: &Option<u64>| time.map_or(String::new(), |time| format!(" time={time}"));
    for (computed, called) in times {
        text += &format!("0 compute 1000{}\n0 send 1 7 64 6{}\n", field(computed), field(called));
        text += &format!("1 recv 0 7 64 6{}\n", field(called));
    }
    text
}

#[test]
fn times_that_are_none_are_refused() {
    for (line, found) in
        [("compute 5 time=-1", "-1"), ("barrier time=x", "x"), ("send 0 1 8 time=1e15", "1e15")]
    {
        let error = trace_tools::from_text(&format!("0 init\n0 {line}\n")).expect_err("no time");
        let (place, TextError::InvalidNumber { found: is, .. }) = line_error(&error) else {
            panic!("{error}");
        };
        assert_eq!((place.line, is.as_str()), (2, found));
    }
    let trace =
        trace_tools::from_text("0 init\n0 allreduce 8 0 6 comm=0 time=999999999999999\n0 compute 1\n")
            .unwrap();
    assert_eq!(times(&trace, 0), Some(vec![None, Some(999_999_999_999_999), None]));
}

#[test]
fn archives_without_times_are_as_they_were() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (merged, pdt) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
    fs::write(&merged, text(&[(None, None); 100])).expect("the text is written");
    assert!(!converted(&merged, &pdt, &ConvertOptions::default()).has_measured_times());
    let bytes = fs::read(&pdt).expect("the archive is there");
    // The last of the tables in the header: no rows before the 16 bytes with their place and number.
    let len = u64::from_le_bytes(*bytes[40 + 24 * 14 + 8..].first_chunk().expect("eight bytes"));
    assert_eq!(len, 16, "the table of times has rows");
    assert!(bytes[400..4088].iter().all(|byte| *byte == 0), "the rest of the header is used");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn times_survive(
        pairs in prop::collection::vec((prop::option::of(0..1_000_000_u64), prop::option::of(0..1_000_000_000_u64)), 1..700),
        fold in any::<bool>(),
        shards in 1..3_u32,
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (text, merged) = (text(&pairs), dir.path().join("trace.txt"));
        fs::write(&merged, &text).expect("the text is written");
        // Nothing stays in memory.
        let load = LoadOptions { memory_budget: 0, ..LoadOptions::default() };
        let trace = trace_tools::load(&merged, &load).expect("the text is a trace");
        let of_rank = |rank: char| text.split_inclusive('\n').filter(move |line| line.starts_with(rank));
        prop_assert_eq!(written(&trace), of_rank('0').chain(of_rank('1')).collect::<String>());
        let options = ConvertOptions { folding: folding(fold), shards, ..ConvertOptions::default() };
        let archived = converted(&merged, &dir.path().join("first.pdt"), &options);
        let again = converted(
            &dir.path().join("first.pdt"),
            &dir.path().join("again.pdt"),
            &ConvertOptions { folding: folding(!fold), ..ConvertOptions::default() },
        );
        let per_rank = dir.path().join("ranks");
        trace_tools::dump(&archived, &per_rank, None).expect("the text is written");
        let of_files = converted(&per_rank, &dir.path().join("files.pdt"), &options);
        for rank in 0..2 {
            let expected = times(&trace, rank);
            prop_assert_eq!(expected.is_some(), pairs.iter().any(|(computed, called)| {
                called.is_some() || rank == 0 && computed.is_some()
            }));
            for other in [&archived, &again, &of_files] {
                prop_assert_eq!(&times(other, rank), &expected);
                other.integrity().expect("the archive is whole");
                prop_assert_eq!(check(other, None).findings, []);
            }
        }
    }
}
