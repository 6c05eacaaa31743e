//! Cursors that stop at iteration boundaries and skip equal iterations.

use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{Action, Cursor, Item, IterationBoundary, LoopRun, Op, RankTrace, Trace};
use trace_tools::convert;

use super::steps::{RANKS, program, step, text};
use super::{load, marks, options, write_structured};

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

/// Computations of 1, 2, 3, 4 and 5 flop.
fn body() -> Vec<Item> {
    (1..=5).map(|flops| Item::Op(Op::Compute { flops: f64::from(flops) })).collect()
}

fn repeated(count: u64, body: Vec<Item>) -> Vec<Item> {
    vec![Item::Loop { count, body }]
}

/// Returns the boundaries at which a cursor of the only rank stops, and the number of iterations skipped if it skips all that it can
/// but for one.
fn boundaries_of(path: &Path, program: Vec<Item>) -> (Vec<IterationBoundary>, u64) {
    write_structured(path, &[[vec![Item::Op(Op::Init)], program].concat()]);
    let trace = load(path);
    check_trace(&trace, &[3, 1, 0, 7, 2]);
    let mut cursor = trace.rank(Rank::new(0)).cursor_with_boundaries();
    let (mut read, mut found) = (Vec::new(), Vec::new());
    while read_on(&mut cursor, &mut read).is_some() {
        found.extend(cursor.iteration_boundary());
    }
    let (mut cursor, mut skipped) = (trace.rank(Rank::new(0)).cursor_with_boundaries(), 0);
    while read_on(&mut cursor, &mut read).is_some() {
        let most = cursor.iteration_boundary().map_or(0, |boundary| boundary.upcoming_equal) - 1;
        cursor.skip_iterations(most);
        skipped += most;
    }
    assert_eq!(cursor.position(), trace.rank(Rank::new(0)).len());
    (found, skipped)
}

/// A loop of one iteration is none: the one in it is outermost.
#[test]
fn loops_in_loops_of_one_iteration_have_boundaries() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("trace.pdt");
    let plain = boundaries_of(&path, repeated(1000, body()));
    assert_eq!((plain.0.len(), plain.1), (999, 998));
    let (boundaries, skipped) = boundaries_of(&path, repeated(1, repeated(1, repeated(1000, body()))));
    assert_eq!((boundaries.len(), skipped), (999, 998));
}

#[test]
fn long_loops_in_short_ones_have_boundaries() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("trace.pdt");
    let nested = || [body(), repeated(500, body()), body()].concat();
    // All iterations but the first and the last two of each run can be skipped.
    for count in [2, 3, 31] {
        let (boundaries, skipped) = boundaries_of(&path, repeated(count, nested()));
        assert_eq!(skipped, count * 498);
        let runs: Vec<LoopRun> = boundaries.iter().map(|boundary| boundary.loop_run).collect();
        // Where nothing was skipped in the first run, the outer iterations have boundaries from then on.
        assert_eq!(runs.len() as u64, if count == 2 { 2 * 499 } else { 499 + count - 1 });
        assert!(runs[0] == runs[498] && runs[499..].iter().all(|run| *run != runs[0]));
    }
    // One level more, and two loops.
    let deep = repeated(3, [body(), repeated(2, nested()), repeated(600, body())].concat());
    assert_eq!(boundaries_of(&path, deep).1, 6 * 498 + 3 * 598);
    // Outer loops that hold most of the actions themselves, or have more iterations for each nested one.
    let many = repeated(9, repeated(9, repeated(9, body())));
    assert_eq!(boundaries_of(&path, repeated(7, [many, repeated(500, body())].concat())).1, 5);
    assert_eq!(boundaries_of(&path, repeated(7, repeated(112, body()))).1, 7 * 110);
    assert_eq!(boundaries_of(&path, repeated(7, repeated(111, body()))).1, 5);
    assert_eq!(boundaries_of(&path, repeated(64, repeated(2000, body()))).1, 62);
}

/// Nested loops with computations that differ from run to run, that are left out in some iterations, and that are rare.
#[test]
fn nested_loops_of_several_amounts() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("trace.pdt");
    let iteration = |run: u32, index: u32| {
        let mut lines = format!("0 send 1 0 8\n1 recv 0 0 8\n0 compute {}\n", 100 + run);
        if !(30..40).contains(&index) {
            lines += "1 compute 7\n";
        }
        lines += "0 recv 1 0 8\n1 send 0 0 8\n";
        if (run, index) == (1, 120) {
            lines += "1 compute 9\n";
        }
        lines
    };
    let run =
        |run| (0..300).map(|index| iteration(run, index)).collect::<String>() + "0 barrier\n1 barrier\n";
    let source = path.with_extension("txt");
    let text = (0..3).map(run).collect::<String>();
    std::fs::write(&source, format!("0 init\n1 init\n{text}")).expect("the text is written");
    convert(&source, &path, &options(true, 1, 1)).expect("the archive is written");
    let trace = load(&path);
    assert!(check_trace(&trace, &[3, 1, 0, 7, 2]) > 300);
    for rank in (0..2).map(|rank| trace.rank(Rank::new(rank))) {
        let mut cursor = rank.cursor_with_boundaries();
        read_on(&mut cursor, &mut Vec::new()).expect("a boundary");
        assert!(cursor.iteration_boundary().is_some_and(|boundary| boundary.loop_run.is_nested()));
        marks::check_boundaries(rank);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipped_iterations_repeat_the_previous_one(
        steps in prop::collection::vec(step(), 1..8),
        count in 3_u64..40,
        outer in 2_u64..4,
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
        let runs = |rank| {
            let inner = Item::Loop { count: 16 * outer, body: program(&steps, rank) };
            vec![Item::Loop { count: outer, body: vec![Item::Op(Op::WaitAll), inner, Item::Op(Op::WaitAll)] }]
        };
        let nested = dir.path().join("nested.pdt");
        write_structured(&nested, &(0..RANKS).map(runs).collect::<Vec<_>>());
        let skipped = check_trace(&load(&nested), &picks);
        if picks.iter().all(|pick| *pick == 1) && program(&steps, 0).len() > 4 {
            prop_assert!(skipped > 0);
        }
        let (source, folded) = (dir.path().join("trace.txt"), dir.path().join("folded.pdt"));
        std::fs::write(&source, text(&programs)).expect("the text is written");
        convert(&source, &folded, &options(true, 1, 1)).expect("the archive is written");
        check_trace(&load(&folded), &picks);
    }
}
