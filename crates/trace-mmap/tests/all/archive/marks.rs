//! Saved positions of cursors, and cursors that resume there.

use std::path::Path;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{Action, Cursor, CursorPosition, Item, IterationBoundary, Op, RankTrace, Trace};
use trace_tools::convert;

use super::steps::{RANKS, program, step, text};
use super::{load, options, write_structured};

/// Saves the position after some actions, and checks that a cursor restored from its serialized form yields the remaining ones.
fn check_mark(rank: &RankTrace, all: &[Action], after: usize) {
    let mut cursor = rank.cursor();
    assert_eq!(cursor.by_ref().take(after).collect::<Vec<_>>(), all[..after]);
    let bytes =
        postcard::to_stdvec(&cursor.saved_position().expect("the trace is whole")).expect("there is memory");
    let mark: CursorPosition = postcard::from_bytes(&bytes).expect("what was written");
    assert_eq!(mark.position(), after as u64);
    let mut other = rank.cursor_at(&mark);
    assert_eq!(other.position(), after as u64);
    assert_eq!(other.by_ref().collect::<Vec<_>>(), all[after..], "after {after} actions");
    assert_eq!(other.next(), None);
}

/// Returns the next action, or the boundary at which the cursor stops; `None` at the end.
fn next_event(cursor: &mut Cursor<'_>) -> Option<Result<Action, IterationBoundary>> {
    let action = cursor.next().map(Ok);
    action.or_else(|| cursor.iteration_boundary().map(Err))
}

/// Saves positions of a cursor that stops at iteration boundaries, and checks that a restored cursor does what remains. Both skip an
/// iteration at the boundary at which they stand, or at the next one.
pub(super) fn check_boundaries(rank: &RankTrace) {
    let rest = |mut cursor: Cursor<'_>| {
        let mut events = Vec::new();
        let mut skips = true;
        if cursor.iteration_boundary().is_some() && std::mem::take(&mut skips) {
            cursor.skip_iterations(1);
        }
        while let Some(event) = next_event(&mut cursor) {
            if event.is_err() && std::mem::take(&mut skips) {
                cursor.skip_iterations(1);
            }
            events.push((event, cursor.position(), cursor.iteration_in_progress()));
        }
        events
    };
    let mut cursor = rank.cursor_with_boundaries();
    // Testing all positions of a long program would take long.
    for event in 0.. {
        let is_tested = event < 100 || event % 37 == 0;
        if !is_tested && next_event(&mut cursor).is_some() {
            continue;
        }
        let bytes = postcard::to_stdvec(&cursor.saved_position().expect("the trace is whole")).unwrap();
        let mut other = rank.cursor_with_boundaries();
        other.resume_at(&postcard::from_bytes(&bytes).expect("what was written"));
        assert_eq!(other.iteration_boundary(), cursor.iteration_boundary());
        assert_eq!(rest(other), rest(cursor.clone()), "after {} actions", cursor.position());
        if next_event(&mut cursor).is_none() {
            return;
        }
    }
}

pub(super) fn check_trace(trace: &Trace, places: impl Fn(usize) -> Vec<usize>) {
    for rank in 0..trace.ranks() {
        let rank = trace.rank(Rank::new(rank));
        let all: Vec<Action> = rank.cursor().collect();
        places(all.len()).into_iter().for_each(|after| check_mark(rank, &all, after));
    }
    trace.integrity().expect("the trace is whole");
}

fn everywhere(actions: usize) -> Vec<usize> {
    (0..=actions).collect()
}

/// Amounts that are all different, in more than two blocks of a column.
fn noise(path: &Path) -> Trace {
    let line = |n: u32| format!("0 compute {}\n0 send 1 0 8\n1 recv 0 0 8\n", f64::from(n * n % 1009) + 0.5);
    let lines: String = (0..700).map(line).collect();
    std::fs::write(path.with_extension("txt"), format!("0 init\n1 init\n{lines}"))
        .expect("the directory is there");
    convert(&path.with_extension("txt"), path, &options(true, 1, 1)).expect("the trace is right");
    load(path)
}

#[test]
fn columns_resume_within_their_blocks() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = noise(&directory.path().join("noise.pdt"));
    check_trace(&trace, |actions| everywhere(actions).into_iter().step_by(13).chain([actions]).collect());
}

/// A text with more actions than fit into a chunk of memory; positions at its end and at the end of a chunk.
#[test]
fn actions_in_memory_resume_anywhere() {
    let trace = trace_tools::from_text(&"0 compute 1e6\n0 compute 2e6\n".repeat(4096)).expect("a trace");
    check_trace(&trace, |actions| vec![0, 1, 4095, 4096, 4097, actions - 1, actions]);
}

/// A position of another rank, or of an archive in a text, ends the cursor and is harmless.
#[test]
fn positions_of_other_traces_end_the_cursor() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = noise(&directory.path().join("noise.pdt"));
    let memory = trace_tools::from_text("0 compute 1e6\n0 compute 2e6\n").expect("a trace");
    let mark = archive.rank(Rank::new(0)).cursor().saved_position().expect("the trace is whole");
    assert_eq!(memory.rank(Rank::new(0)).cursor_at(&mark).next(), None);
    // The same position, but after more actions than exist: 0 takes one byte, 2^64 - 1 takes ten.
    let bytes = postcard::to_stdvec(&mark).expect("there is memory");
    let far: CursorPosition =
        postcard::from_bytes(&[&[0xff; 9], &[1][..], &bytes[1..]].concat()).expect("a mark");
    assert_eq!(far.position(), u64::MAX);
    assert_eq!(archive.rank(Rank::new(0)).cursor_at(&far).next(), None);
    let mark = memory.rank(Rank::new(0)).cursor().saved_position().expect("the trace is whole");
    assert_eq!(archive.rank(Rank::new(1)).cursor_at(&mark).next(), None);
    assert!(archive.integrity().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cursors_resume_where_others_stopped(steps in prop::collection::vec(step(), 0..12)) {
        let directory = tempfile::tempdir().expect("a directory");
        let whole = |me| [vec![Item::Op(Op::Init)], program(&steps, me)].concat();
        let programs: Vec<Vec<Item>> = (0..RANKS).map(whole).collect();
        let path = directory.path().join("loops.pdt");
        write_structured(&path, &programs);
        // Testing all positions of a long program would take long.
        let places = |actions: usize| (0..=actions).step_by(1 + actions / 200).chain([actions]).collect();
        check_trace(&load(&path), places);
        (0..RANKS).for_each(|rank| check_boundaries(load(&path).rank(Rank::new(rank))));
        let lines = directory.path().join("flat.txt");
        std::fs::write(&lines, text(&programs)).expect("the directory is there");
        let folded = directory.path().join("folded.pdt");
        convert(&lines, &folded, &options(true, 2, 1)).expect("the trace is right");
        check_trace(&load(&folded), places);
        (0..RANKS).for_each(|rank| check_boundaries(load(&folded).rank(Rank::new(rank))));
    }
}
