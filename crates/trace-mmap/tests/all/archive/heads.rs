//! Cursors that stop at iteration boundaries and skip equal iterations.

use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{Action, Cursor, Item, Op, RankTrace, Trace};
use trace_tools::convert;

use super::steps::{RANKS, program, step, text};
use super::{load, options, write_structured};

/// Reads up to the next iteration boundary; `None` at the end.
fn read_on(cursor: &mut Cursor<'_>, out: &mut Vec<Action>) -> Option<()> {
    out.extend(cursor.by_ref());
    cursor.iteration_boundary().map(drop)
}

/// Reads a rank, skips iterations according to `picks`, and checks the actions; returns the number of skipped iterations.
fn check_rank(rank: &RankTrace, picks: &[u64]) -> u64 {
    let all: Vec<Action> = rank.cursor().collect();
    let (mut cursor, mut read) = (rank.cursor_with_boundaries(), Vec::new());
    while read_on(&mut cursor, &mut read).is_some() {}
    assert_eq!(read, all, "nothing passed over");
    assert_eq!(cursor.position(), rank.len());

    let (mut cursor, mut last, mut skipped) = (rank.cursor_with_boundaries(), Vec::new(), 0);
    let mut picks = picks.iter().cycle();
    loop {
        let start = cursor.position() as usize;
        last.clear();
        let at_head = read_on(&mut cursor, &mut last);
        let place = cursor.position() as usize;
        assert_eq!(last, all[start..place]);
        let Some(head) = at_head.and_then(|()| cursor.iteration_boundary()) else { break };
        assert!(head.upcoming_equal > 0 && head.completed_equal > 0);
        let iterations = picks.next().map_or(0, |pick| pick % (head.upcoming_equal + 1));
        cursor.skip_iterations(iterations);
        skipped += iterations;
        let passed = &all[place..cursor.position() as usize];
        if iterations > 0 {
            // Skipped iterations repeat the one before them.
            let one = passed.len() / iterations as usize;
            assert!(passed.iter().zip(&all[place - one..]).all(|(now, before)| now == before));
        }
    }
    assert_eq!(cursor.position(), rank.len());
    skipped
}

pub(super) fn check_trace(trace: &Trace, picks: &[u64]) -> u64 {
    let skipped = (0..trace.ranks()).map(|rank| check_rank(trace.rank(Rank::new(rank)), picks)).sum();
    trace.integrity().expect("the trace is whole");
    skipped
}

/// An archive of one rank that computes in a loop.
fn computations(path: &Path, amounts: impl Iterator<Item = f64>) -> Trace {
    let lines: String =
        amounts.map(|flops| format!("0 compute {flops}\n0 send 1 0 8\n1 recv 0 0 8\n")).collect();
    let source = path.with_extension("txt");
    std::fs::write(&source, format!("0 init\n1 init\n{lines}")).expect("the text is written");
    convert(&source, path, &options(true, 1, 1)).expect("the archive is written");
    load(path)
}

#[test]
fn iterations_are_alike_where_their_amounts_are() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("trace.pdt");
    let heads = |amounts: &dyn Fn(u32) -> f64| {
        let trace = computations(&path, (0..1000).map(amounts));
        check_trace(&trace, &[3, 1, 7, 2]);
        let mut cursor = trace.rank(Rank::new(0)).cursor_with_boundaries();
        let (mut read, mut heads) = (Vec::new(), Vec::new());
        while read_on(&mut cursor, &mut read).is_some() {
            heads.extend(cursor.iteration_boundary());
        }
        heads
    };
    let all = heads(&|_| 5.0);
    assert_eq!(all.len() as u64, all[0].upcoming_equal + all[0].completed_equal - 1);
    assert!(all[0].upcoming_equal > 990);
    // The first iterations and the last one differ.
    let most = heads(&|index| if (3..999).contains(&index) { 5.0 } else { f64::from(index) });
    assert!(
        most[0].upcoming_equal > 900
            && most[0].upcoming_equal + most[0].completed_equal < all[0].upcoming_equal,
        "{:?}",
        most[0]
    );
    assert_eq!(heads(&|index| f64::from(index * 7919 % 1009)), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipped_iterations_repeat_the_previous_one(
        steps in prop::collection::vec(step(), 1..8),
        count in 3_u64..40,
        picks in prop::collection::vec(0_u64..9, 1..5),
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let looped = |rank| vec![
            Item::Op(Op::Init),
            Item::Loop { count, body: [program(&steps, rank), vec![Item::Op(Op::WaitAll)]].concat() },
        ];
        let programs: Vec<Vec<Item>> = (0..RANKS).map(looped).collect();
        let structured = dir.path().join("structured.pdt");
        write_structured(&structured, &programs);
        let skipped = check_trace(&load(&structured), &picks);
        if picks.iter().all(|pick| *pick == 1) && count > 4 {
            prop_assert!(skipped > 0);
        }
        let (source, folded) = (dir.path().join("trace.txt"), dir.path().join("folded.pdt"));
        std::fs::write(&source, text(&programs)).expect("the text is written");
        convert(&source, &folded, &options(true, 1, 1)).expect("the archive is written");
        check_trace(&load(&folded), &picks);
    }
}
