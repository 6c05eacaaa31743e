//! Rare computations, which tracers nearly always omit: they are stored between the records of the folded program.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::Range;

use pdes_core::Rank;
use proptest::prelude::*;
use trace_mmap::{Cut, Info, Trace, cut};
use trace_tools::{TextLine, convert};

use super::{assert_good, assert_same, heads, load, marks, options};

/// Places in an iteration where a computation may be.
const PLACES: u32 = 6;

/// Iterations in which two ranks exchange three messages. At each place at most one iteration in nine has a computation.
#[derive(Clone, Debug)]
struct Program {
    iterations: u32,
    /// Computations by iteration, place and rank.
    rare: BTreeMap<(u32, u32, u32), f64>,
    /// True if the regular computation differs in each iteration.
    is_noisy: bool,
}

fn program() -> impl Strategy<Value = Program> {
    let amount = prop_oneof![Just(7.0), 0.0..1e6, (0_u32..9).prop_map(f64::from)];
    (60_u32..300, any::<bool>()).prop_flat_map(move |(iterations, is_noisy)| {
        let place = (0..iterations, 0..PLACES, 0..2_u32);
        prop::collection::btree_map(place, amount.clone(), 0..30).prop_map(move |seldom| Program {
            iterations,
            rare: thinned(seldom, iterations),
            is_noisy,
        })
    })
}

fn thinned(mut seldom: BTreeMap<(u32, u32, u32), f64>, iterations: u32) -> BTreeMap<(u32, u32, u32), f64> {
    let mut seen = BTreeMap::new();
    seldom.retain(|(_, place, rank), _| {
        let seen: &mut u32 = seen.entry((*place, *rank)).or_default();
        *seen += 1;
        *seen < iterations / 9
    });
    seldom
}

impl Program {
    fn text(&self) -> String {
        let mut text = String::from("0 init\n1 init\n");
        for iteration in 0..self.iterations {
            for rank in 0..2 {
                self.iteration(iteration, rank, &mut text);
            }
        }
        text + "0 finalize\n1 finalize\n"
    }

    fn iteration(&self, iteration: u32, rank: u32, text: &mut String) {
        let mut line =
            |line: std::fmt::Arguments<'_>| writeln!(text, "{rank} {line}").expect("a string takes all");
        let amount = if self.is_noisy { (iteration * 7919 + rank) % 1009 } else { 5 };
        line(format_args!("compute {amount}"));
        for place in 0..PLACES {
            let (peer, tag) = (1 - rank, place / 2);
            let verb = if (place + rank).is_multiple_of(2) { "send" } else { "recv" };
            line(format_args!("{verb} {peer} {tag} 80"));
            if let Some(flops) = self.rare.get(&(iteration, place, rank)) {
                line(format_args!("compute {flops}"));
            }
        }
        line(format_args!("barrier"));
    }
}

fn lines(trace: &Trace) -> Vec<String> {
    let ranks = (0..trace.ranks()).map(Rank::new);
    ranks.flat_map(|rank| trace.ops(rank).map(move |op| TextLine { rank, op: &op }.to_string())).collect()
}

/// The iteration with the only rare computation equals no other one, even if no further rare computation follows.
#[test]
fn the_iteration_of_the_last_computation_is_not_repeated() {
    for (iteration, place) in [(0, 2), (1, 5), (3, 0), (7, 3)] {
        let seldom = BTreeMap::from([((iteration, place, 0), 4.5)]);
        let program = Program { iterations: 84, rare: seldom, is_noisy: false };
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [source, folded] = ["trace.txt", "folded.pdt"].map(|name| dir.path().join(name));
        fs::write(&source, program.text()).expect("the text is written");
        convert(&source, &folded, &options(true, 1, 1)).expect("the trace is right");
        let folded = load(&folded);
        assert_eq!(Info::of(&folded).expect("small sums").storage.expect("an archive").inserted, 1);
        for pick in 1..4 {
            assert!(heads::check_trace(&folded, &[pick]) > 0, "iteration {iteration}, {pick} at once");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn rare_computations_keep_their_positions(
        program in program(), picks in prop::collection::vec(0_u64..9, 1..4), kept in 1_u64..50,
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [source, flat, folded, part, other] =
            ["trace.txt", "flat.pdt", "folded.pdt", "part.pdt", "other.pdt"].map(|name| dir.path().join(name));
        fs::write(&source, program.text()).expect("the text is written");
        convert(&source, &flat, &options(false, 1, 1)).expect("the trace is right");
        convert(&source, &folded, &options(true, 1, 1)).expect("the trace is right");
        let (flat, folded) = (load(&flat), load(&folded));
        assert_same(&flat, &folded, "folded");
        assert_good(&folded, &dir.path().join("text"), "folded");

        let info = Info::of(&folded).expect("small sums");
        let storage = info.storage.expect("an archive");
        // The place after the first send of a rank, which no barrier precedes, is unique: a computation there is part of the program.
        let inserted = program.rare.keys().filter(|(iteration, place, _)| (*iteration, *place) != (0, 0)).count();
        prop_assert_eq!((storage.inserted, storage.absent), (inserted as u64, 0));
        let flat_info = Info::of(&flat).expect("small sums");
        prop_assert_eq!((info.actions, info.by_kind), (flat_info.actions, flat_info.by_kind));

        marks::check_trace(&folded, |actions| (0..=actions).step_by(1 + actions / 150).chain([actions]).collect());
        let skipped = heads::check_trace(&folded, &picks);
        if program.rare.len() < 3 && !program.is_noisy && picks.iter().all(|pick| *pick == 1) {
            prop_assert!(skipped > 0);
        }

        let both = |ranks: Range<u32>, iterations| Cut { ranks: Some(ranks), iterations };
        for what in [both(0..1, None), both(0..2, Some(kept)), both(1..2, Some(kept))] {
            cut(&folded, &part, &what, &options(true, 1, 2)).expect("there are as many iterations");
            cut(&flat, &other, &what, &options(true, 1, 2)).expect("there are as many iterations");
            let part = load(&part);
            prop_assert_eq!(lines(&part), lines(&load(&other)), "{:?}", what);
            assert_good(&part, &dir.path().join("text"), "cut");
        }
    }
}
