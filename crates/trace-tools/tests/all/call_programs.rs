//! Random programs with calls: text and archives, flat and folded, are the same trace.

pub(crate) mod writer;

use std::fs;
use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{
    ConvertOptions, Cut, Finding, Folding, Info, LoadOptions, Op, Trace, WriteError, check, cut,
};
use trace_tools::{convert, write_text};
use writer::{step, text};

/// Returns all data of a rank, with names and with indices.
fn all_data(trace: &Trace, rank: u32) -> (Vec<Op>, String) {
    let number = Rank::new(rank);
    let rank = trace.rank(number);
    let tables = format!(
        "{:?} {:?} {:?} {:?} {} {}",
        rank.outgoing(),
        rank.incoming(),
        rank.communicators(),
        rank.pending_at_end(),
        rank.slots(),
        rank.has_timing_dependent_matching()
    );
    (trace.ops(number).collect(), tables)
}

fn assert_same(left: &Trace, right: &Trace) {
    assert_eq!((left.ranks(), left.unreceived()), (right.ranks(), right.unreceived()));
    for rank in 0..left.ranks() {
        assert_eq!(all_data(left, rank), all_data(right, rank), "rank {rank}");
    }
}

fn written(trace: &Trace) -> String {
    let mut text = Vec::new();
    for rank in (0..trace.ranks()).map(Rank::new) {
        write_text(trace, rank, &mut text, None).expect("memory takes all");
    }
    String::from_utf8(text).expect("text")
}

fn archive(trace: &str, dir: &Path, fold: bool) -> Trace {
    let (merged, pdt) = (dir.join("trace.txt"), dir.join(format!("{fold}.pdt")));
    fs::write(&merged, trace).expect("the text is written");
    let folding = if fold { Folding::Always } else { Folding::Never };
    let options = ConvertOptions { folding, ..ConvertOptions::default() };
    convert(&merged, &pdt, &options).unwrap_or_else(|error| panic!("{error}\n{trace}"));
    trace_tools::load(&pdt, &LoadOptions::default()).expect("the archive opens")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn archives_and_dumps_are_the_text(steps in prop::collection::vec(step(), 0..40)) {
        let text = text(&steps);
        let trace = trace_tools::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let dumped = written(&trace);
        let again = trace_tools::from_text(&dumped).unwrap_or_else(|error| panic!("{error}\n{dumped}"));
        assert_same(&trace, &again);
        prop_assert_eq!(written(&again), dumped);
        let dir = tempfile::tempdir().expect("a temporary directory");
        let info = Info::of(&trace).expect("small sums");
        for fold in [false, true] {
            let archived = archive(&text, dir.path(), fold);
            assert_same(&trace, &archived);
            archived.integrity().expect("the archive is whole");
            let report = check(&archived, None);
            let is_left_over = |finding: &Finding| matches!(finding, Finding::Unfinished { .. });
            prop_assert!(report.findings.iter().all(is_left_over), "{:?}\n{text}", report.findings);
            prop_assert_eq!(check(&trace, None), report);
            prop_assert_eq!(&Info { storage: None, ..Info::of(&archived).expect("small sums") }, &info);
            let part = dir.path().join("part.pdt");
            let what = Cut { ranks: Some(1..3), iterations: None };
            match cut(&archived, &part, &what, &ConvertOptions::default()) {
                Ok(_) => {
                    let part = trace_tools::load(&part, &LoadOptions::default()).expect("the part opens");
                    let findings = check(&part, None).findings;
                    prop_assert!(findings.iter().all(is_left_over), "{findings:?}\n{text}");
                }
                Err(WriteError::CutRequests { .. }) => {}
                // Receives from any source all stay, also of messages from ranks that go.
                Err(WriteError::ReceiveWithoutSend { src: None, .. }) => {}
                Err(error) => prop_assert!(false, "{error}\n{text}"),
            }
        }
    }
}
