//! Cuts of traces to some ranks or to some iterations of the main loop, from text, flat and folded archives.

use std::fs;
use std::ops::Range;
use std::path::Path;

use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{
    ArchiveWriter, Collective, ConvertOptions, Cut, Direction, Folding, Item, LoadOptions, Op, Request, Tag,
    Trace, WriteError, check, cut,
};
use trace_tools::{TextLine, convert};

use crate::archive::steps::{RANKS, Step, program, step, text};

fn load(path: &Path) -> Trace {
    trace_tools::load(path, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the text of a rank.
fn lines(trace: &Trace, rank: u32) -> Vec<String> {
    let rank = Rank::new(rank);
    trace.ops(rank).map(|op| TextLine { rank, op: &op }.to_string()).collect()
}

/// Returns an operation cut to some ranks: an independent implementation of what the crate does.
fn keep(op: Op, ranks: &Range<u32>) -> Option<Op> {
    let number = |rank: Option<Rank>| match rank {
        Some(rank) if ranks.contains(&rank.get()) => Some(Rank::new(rank.get() - ranks.start)),
        _ => None,
    };
    let peer = |peer: Option<Rank>| number(peer).map(Some);
    Some(match op {
        Op::Send { peer: to, tag, bytes } => Op::Send { peer: peer(to)?, tag, bytes },
        Op::Isend { peer: to, tag, bytes } => Op::Isend { peer: peer(to)?, tag, bytes },
        Op::Recv { peer: from, tag, bytes } => Op::Recv { peer: peer(from)?, tag, bytes },
        Op::Irecv { peer: from, tag, bytes } => Op::Irecv { peer: peer(from)?, tag, bytes },
        Op::Wait(request) if request.direction != Direction::ReceiveFromAny => {
            Op::Wait(Request { peer: peer(request.peer)?, ..request })
        }
        Op::SendRecv { to, send_bytes, from, recv_bytes } => {
            Op::SendRecv { to: number(to), send_bytes, from: number(from), recv_bytes }
        }
        Op::Collective(Collective::Reduce { count, flops, root, datatype }) => {
            let root = number(Some(root)).unwrap_or(Rank::new(0));
            Op::Collective(Collective::Reduce { count, flops, root, datatype })
        }
        other => other,
    })
}

fn write_structured(path: &Path, programs: &[Vec<Item>]) {
    let mut writer = ArchiveWriter::create(path, programs.len() as u32, 1).expect("the archive is created");
    for (rank, program) in (0..).map(Rank::new).zip(programs) {
        writer.write_rank(rank, program).expect("the program is right");
    }
    writer.finish().expect("the archive is written");
}

/// Makes the same trace as text, as a flat archive, as a folded one, and as one with its original loops.
fn sources(dir: &Path, steps: &[Step]) -> [(&'static str, Trace); 4] {
    let programs: Vec<Vec<Item>> =
        (0..RANKS).map(|rank| [vec![Item::Op(Op::Init)], program(steps, rank)].concat()).collect();
    let without_init: Vec<Vec<Item>> = (0..RANKS).map(|rank| program(steps, rank)).collect();
    let (merged, flat, folded, structured) =
        (dir.join("trace.txt"), dir.join("flat"), dir.join("folded"), dir.join("structured"));
    fs::write(&merged, text(&without_init)).expect("the text is written");
    convert(&merged, &flat, &ConvertOptions { folding: Folding::Never, ..ConvertOptions::default() })
        .expect("flat");
    convert(&merged, &folded, &ConvertOptions::default()).expect("folded");
    write_structured(&structured, &programs);
    [
        ("text", load(&merged)),
        ("flat", load(&flat)),
        ("folded", load(&folded)),
        ("structured", load(&structured)),
    ]
}

fn has_any_source(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::FromAny { .. } => true,
        Step::Loop { body, .. } => has_any_source(body),
        _ => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn ranks_keep_the_messages_among_them(
        steps in prop::collection::vec(step(), 0..8),
        ranks in prop_oneof![Just(0..1), Just(1..2), Just(0..2), Just(1..3), Just(0..3)],
    ) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let found = dir.path().join("found");
        for (name, trace) in sources(dir.path(), &steps) {
            let what = Cut { ranks: Some(ranks.clone()), iterations: None };
            match cut(&trace, &found, &what, &ConvertOptions::default()) {
                Ok(_) => {}
                Err(WriteError::ReceiveWithoutSend { .. }) if has_any_source(&steps) => continue,
                Err(error) => panic!("{name}: {error}"),
            }
            let part = load(&found);
            prop_assert_eq!(check(&part, None).findings, [], "{}", name);
            for (new, old) in (0..).zip(ranks.clone()) {
                let kept = trace.ops(Rank::new(old)).filter_map(|op| keep(op, &ranks));
                let rank = Rank::new(new);
                let expected: Vec<_> = kept.map(|op| TextLine { rank, op: &op }.to_string()).collect();
                prop_assert_eq!(lines(&part, new), expected, "{}, rank {}", name, old);
            }
            part.integrity().expect("the part is whole");
        }
    }

    /// Cutting yields the program with a shorter loop. If folding found the loops, an iteration may be before or after them, but the
    /// same number of iterations is removed from every rank.
    #[test]
    fn iterations_are_removed_from_the_end_of_the_main_loop(
        before in prop::collection::vec(leaf(), 0..5),
        body in prop::collection::vec(leaf(), 0..6),
        behind in prop::collection::vec(leaf(), 0..5),
        (all, kept) in (12_u64..30, 4_u64..12),
    ) {
        // No part of the body is like another one, and no other loop has as many actions.
        let body = [&[Step::Reduce { count: 77, flops: 5.0 }], &body[..]].concat();
        let whole = |count| {
            let main = Step::Loop { count, body: body.clone() };
            [&before[..], &[main], &behind[..]].concat()
        };
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (found, expected) = (dir.path().join("found"), dir.path().join("expected"));
        let programs: Vec<_> = (0..RANKS)
            .map(|rank| [vec![Item::Op(Op::Init)], program(&whole(kept), rank)].concat())
            .collect();
        write_structured(&expected, &programs);
        let expected = load(&expected);
        for (name, trace) in sources(dir.path(), &whole(all)) {
            let what = Cut { ranks: None, iterations: Some(kept) };
            cut(&trace, &found, &what, &ConvertOptions::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let part = load(&found);
            prop_assert_eq!(check(&part, None).findings, [], "{}", name);
            let removed: Vec<u64> = (0..RANKS)
                .map(|rank| {
                    let in_body = Item::count_all(&program(&body, rank)).expect("a short body");
                    let rank = Rank::new(rank);
                    (trace.rank(rank).len() - part.rank(rank).len()) / in_body
                })
                .collect();
            prop_assert!(removed.iter().all(|each| *each == removed[0]), "{}: {:?}", name, removed);
            prop_assert!(((all - kept).saturating_sub(2)..=all - kept).contains(&removed[0]), "{}: {:?}", name, removed);
            for rank in (0..RANKS).filter(|_| removed[0] == all - kept) {
                prop_assert_eq!(lines(&part, rank), lines(&expected, rank), "{}, rank {}", name, rank);
            }
        }
    }
}

/// A step that is no loop, and leaves no request behind.
fn leaf() -> impl Strategy<Value = Step> {
    step().prop_map(|step| match step {
        Step::Loop { .. } | Step::Later { .. } => Step::Barrier,
        leaf => leaf,
    })
}

fn compute(flops: f64) -> Item {
    Item::Op(Op::Compute { flops })
}

fn to(peer: u32) -> Item {
    Item::Op(Op::Send { peer: Some(Rank::new(peer)), tag: Tag::new(0), bytes: Bytes::new(8) })
}

fn from(peer: u32) -> Item {
    Item::Op(Op::Recv { peer: Some(Rank::new(peer)), tag: Some(Tag::new(0)), bytes: Bytes::new(8) })
}

/// Rank 0 computes and sends 100 times. Rank 1 receives and computes 100 times, but its loop begins after the first receive, so
/// that it has 99 iterations. From each loop 90 iterations are removed.
#[test]
fn loops_may_begin_at_other_places() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    let sender = vec![Item::Loop { count: 100, body: vec![compute(1.0), to(1)] }];
    let receiver = vec![from(0), Item::Loop { count: 99, body: vec![compute(2.0), from(0)] }, compute(2.0)];
    write_structured(&whole, &[sender, receiver]);
    let what = Cut { iterations: Some(10), ..Cut::default() };
    cut(&load(&whole), &part, &what, &ConvertOptions::default()).expect("a part");
    let part = load(&part);
    assert_eq!((part.rank(Rank::new(0)).len(), part.rank(Rank::new(1)).len()), (20, 20));
    assert_eq!(lines(&part, 1).concat(), "1 recv 0 0 8 61 compute 2".repeat(10));
    assert_eq!((check(&part, None).findings, part.unreceived()), (vec![], None));
}

#[test]
fn ranks_without_the_loop_are_reported() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    let many = |count, item| vec![Item::Loop { count, body: vec![compute(1.0), item] }];
    let error = |programs: &[Vec<Item>]| {
        write_structured(&whole, programs);
        let what = Cut { iterations: Some(10), ..Cut::default() };
        let error = cut(&load(&whole), &part, &what, &ConvertOptions::default()).expect_err("no such loop");
        assert!(!part.exists(), "{error}");
        error
    };
    let barrier = || Item::Op(Op::Collective(Collective::Barrier));
    let found = error(&[many(100, barrier()), vec![compute(5.0), barrier()]]);
    assert!(matches!(found, WriteError::CutNoLoop { rank } if rank == Rank::new(1)), "{found}");
    let found = error(&[many(100, compute(3.0)), many(50, compute(3.0))]);
    let is_short = |rank| rank == Rank::new(1);
    assert!(
        matches!(found, WriteError::CutShortLoop { rank, iterations: 50, removed: 90 } if is_short(rank)),
        "{found}"
    );
    // Rank 1 receives two messages per iteration, in half as many iterations.
    let pairs = vec![Item::Loop { count: 200, body: vec![from(0), from(0)] }];
    let found = error(&[many(400, to(1)), pairs.clone()]);
    assert!(matches!(found, WriteError::CutShortLoop { removed: 390, .. }), "{found}");
    let found = error(&[
        vec![Item::Loop { count: 205, body: [vec![to(1)], many(1, to(1))].concat() }],
        vec![Item::Loop { count: 204, body: vec![from(0), barrier()] }],
    ]);
    assert!(matches!(found, WriteError::CutOtherLoop { .. }), "{found}");
    // A rank that does nothing needs no loop.
    write_structured(&whole, &[many(100, compute(3.0)), Vec::new()]);
    let what = Cut { iterations: Some(10), ..Cut::default() };
    cut(&load(&whole), &part, &what, &ConvertOptions::default()).expect("a part");
    assert_eq!(load(&part).actions(), 20);
}

/// The first wait of the loop is for a removed rank, the later ones are for a rank that stays: the first iteration omits its wait,
/// and is peeled off before the loop.
#[test]
fn waits_are_removed_with_their_requests_across_loops() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (text, whole, part) = (dir.path().join("text"), dir.path().join("whole"), dir.path().join("part"));
    let body = |first: &str| format!("{first}0 isend 0 1 8\n0 recv 0 1 8\n");
    let rest = body("0 wait 0 0 1\n").repeat(49) + "0 waitall 0\n1 init\n";
    let all = format!("0 init\n0 isend 2 1 8\n{}{rest}2 init\n2 recv 0 1 8\n", body("0 wait 0 2 1\n"));
    fs::write(&text, all).expect("the text is written");
    convert(&text, &whole, &ConvertOptions::default()).expect("folded");
    let expected = trace_tools::from_text(&("0 init\n".to_owned() + &body("") + &rest)).expect("a trace");
    for source in [&text, &whole] {
        let what = Cut { ranks: Some(0..2), iterations: None };
        cut(&load(source), &part, &what, &ConvertOptions::default()).expect("a part");
        let part = load(&part);
        assert_eq!(lines(&part, 0), lines(&expected, 0));
        assert_eq!(check(&part, None).findings, []);
    }
}
