//! Any bytes are an archive that can be read, or no archive. Checksums are made right first: behind them lies the rest. What is not
//! found to be damaged is the same actions however it is read: at once, from a mark on, and iteration by iteration.
#![no_main]

#[path = "../../crates/trace-mmap/tests/all/hostile/seal.rs"]
mod seal;

use libfuzzer_sys::fuzz_target;
use pdes_core::Rank;
use pdes_replay_fuzz::file;
use trace_mmap::{Action, Info, LoadOptions, RankTrace, check};

/// Actions read of each rank: forged loops may be endless.
const LIMIT: usize = 5000;

/// Returns what follows the first actions, read from a mark behind them.
fn from_mark(rank: &RankTrace, first: usize) -> Vec<Action> {
    let mut cursor = rank.cursor();
    cursor.by_ref().take(first).for_each(drop);
    cursor.saved_position().map_or(Vec::new(), |mark| rank.cursor_at(&mark).take(LIMIT - first).collect())
}

/// Reads iteration by iteration, stopping at boundaries, of which there may be endless ones as well.
fn by_iterations(rank: &RankTrace) -> Vec<Action> {
    let (mut cursor, mut actions) = (rank.cursor_with_boundaries(), Vec::new());
    for _ in 0..LIMIT {
        actions.extend(cursor.by_ref().take(LIMIT - actions.len()));
        if cursor.iteration_boundary().is_none() {
            break;
        }
    }
    actions
}

/// Passes over all iterations that are alike.
fn pass_over(rank: &RankTrace) {
    let mut cursor = rank.cursor_with_boundaries();
    for _ in 0..LIMIT {
        match (cursor.next(), cursor.iteration_boundary()) {
            (None, Some(boundary)) => cursor.skip_iterations(boundary.upcoming_equal),
            (None, None) => break,
            _ => {}
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    if bytes.len() >= 4096 {
        seal::seal(&mut bytes);
    }
    let Ok(trace) = trace_tools::load(&file("trace.pdt", &bytes), &LoadOptions::default()) else { return };
    for rank in (0..trace.ranks().min(16)).map(Rank::new) {
        let actions: Vec<Action> = trace.rank(rank).cursor().take(LIMIT).collect();
        assert_eq!(trace.ops(rank).take(LIMIT).count(), actions.len());
        let rank = trace.rank(rank);
        let first = actions.len() / 2;
        let (rest, iterations) = (from_mark(rank, first), by_iterations(rank));
        if trace.integrity().is_ok() {
            assert_eq!(rest, actions[first..]);
            assert!(actions.starts_with(&iterations));
        }
        pass_over(rank);
    }
    let _ = Info::of(&trace);
    let _ = check(&trace, None);
    let _ = trace.integrity();
});
