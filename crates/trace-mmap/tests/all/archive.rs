//! Archives have the same actions as the traces from which they were converted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{
    ArchiveWriter, CallOp, Collective, CommId, ConvertOptions, Cut, Datatype, Direction, Finding, Folding,
    Info, Item, LoadOptions, Location, Op, OpError, Peer, RankTrace, RecvFrom, Request, StructureError,
    Summary, Tag, Trace, TraceError, WriteError, check, cut, flatten,
};
use trace_tools::{TextLine, convert, dump};

mod heads;
mod marks;
mod seldom;
pub(crate) mod steps;

use crate::shared::shared;
use steps::{RANKS, program, step, text};

fn load(path: &Path) -> Trace {
    trace_tools::load(path, &LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn options(fold: bool, shards: u32, threads: usize) -> ConvertOptions<'static> {
    ConvertOptions {
        folding: if fold { Folding::Always } else { Folding::Never },
        shards,
        load: LoadOptions { threads, ..LoadOptions::default() },
        ..ConvertOptions::default()
    }
}

/// Compares two ranks: tables, and actions one by one.
fn assert_same_rank(left: &RankTrace, right: &RankTrace, context: &str) {
    assert_eq!(left.outgoing(), right.outgoing(), "{context}");
    assert_eq!(left.incoming(), right.incoming(), "{context}");
    assert_eq!((left.ports(), left.slots()), (right.ports(), right.slots()), "{context}");
    assert_eq!(left.pending_at_end(), right.pending_at_end(), "{context}");
    assert_eq!(left.len(), right.len(), "{context}");
    let mut right_cursor = right.cursor();
    for (index, action) in left.cursor().enumerate() {
        assert_eq!(Some(action), right_cursor.next(), "{context}, action {index}");
        if let trace_mmap::Action::Collective(id) = action {
            assert_eq!(left.collective(id), right.collective(id), "{context}, action {index}");
        }
        if let trace_mmap::Action::SendRecv(id) = action {
            assert_eq!(left.send_recv(id), right.send_recv(id), "{context}, action {index}");
        }
        if let trace_mmap::Action::Location(id) = action {
            assert_eq!(left.location(id), right.location(id), "{context}, action {index}");
        }
    }
    assert_eq!(right_cursor.next(), None, "{context}");
    assert_eq!(right_cursor.position(), right.len(), "{context}");
}

fn assert_same(left: &Trace, right: &Trace, context: &str) {
    assert_eq!((left.ranks(), left.actions()), (right.ranks(), right.actions()), "{context}");
    assert_eq!(left.unreceived(), right.unreceived(), "{context}");
    for rank in (0..left.ranks()).map(Rank::new) {
        assert_same_rank(left.rank(rank), right.rank(rank), &format!("{context}, rank {rank}"));
    }
    left.integrity().expect("the left trace is whole");
    right.integrity().expect("the right trace is whole");
}

/// Checks a trace, and that its text is the trace again.
fn assert_good(trace: &Trace, dir: &Path, context: &str) {
    let report = check(trace, None);
    assert_eq!(report.findings, [], "{context}");
    assert_eq!(report.unreceived, trace.unreceived(), "{context}");
    dump(trace, dir, None).expect("the text is written");
    assert_same(trace, &load(&dir.join("files.txt")), &format!("{context}, as text"));
    fs::remove_dir_all(dir).expect("the directory goes");
}

#[test_with::shared]
fn archives_of_the_acquired_traces_are_the_traces() {
    let traces = shared("traces");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut archives: Vec<PathBuf> =
        fs::read_dir(traces).expect("the traces").map(|entry| entry.expect("an entry").path()).collect();
    archives.sort();
    for archive in archives {
        let file = File::open(&archive).expect("the archive opens");
        tar::Archive::new(GzDecoder::new(file)).unpack(dir.path()).expect("the archive unpacks");
        let name =
            archive.file_name().and_then(|name| name.to_str()).expect("a name").trim_end_matches(".tar.gz");
        let (text, pdt) = (dir.path().join(name), dir.path().join("trace.pdt"));
        let trace = load(&text);
        let flat = convert(&text, &pdt, &options(false, 1, 2)).expect("the trace converts").summary;
        assert_same(&trace, &load(&pdt), name);
        let folded =
            convert(&text.join("files.txt"), &pdt, &options(true, 1, 2)).expect("the trace converts").summary;
        let archived = load(&pdt);
        assert_same(&trace, &archived, name);
        assert_good(&archived, &dir.path().join("text"), name);
        let (left, right) = (Info::of(&trace).expect("small sums"), Info::of(&archived).expect("small sums"));
        assert_eq!(Info { storage: None, ..right }, left, "{name}");
        assert!(folded.bytes <= flat.bytes, "{name}: {} bytes folded, {} flat", folded.bytes, flat.bytes);
        assert_eq!((flat.flat_bytes, folded.flat_bytes), (flat.bytes, flat.bytes), "{name}");
        let paid = ConvertOptions { folding: Folding::WhereFaster, ..options(true, 1, 2) };
        let paid = convert(&pdt, &dir.path().join("paid.pdt"), &paid).expect("the trace converts").summary;
        assert!(paid.bytes <= flat.bytes, "{name}: {} bytes where it pays, {} flat", paid.bytes, flat.bytes);
        assert_same(&trace, &load(&dir.path().join("paid.pdt")), name);
        report(name, flat, folded, paid);
        fs::remove_dir_all(text).expect("the directory goes");
    }
}

#[expect(clippy::print_stderr, reason = "the sizes are figures of the documentation")]
fn report(name: &str, flat: Summary, folded: Summary, paid: Summary) {
    let per_action = |summary: Summary| summary.bytes as f64 / summary.actions as f64;
    eprintln!(
        "{name:8} {:9} actions {:4} programs, B/action: flat {:6.2}, folded {:7.3}, where it pays {:7.3}",
        flat.actions,
        folded.programs,
        per_action(flat),
        per_action(folded),
        per_action(paid)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Structured, folded and flat archives of a program, in one file or in several shards, all equal the text of the program.
    #[test]
    fn archives_of_loops_are_their_text(steps in prop::collection::vec(step(), 0..8)) {
        let programs: Vec<Vec<Item>> = (0..RANKS).map(|rank| program(&steps, rank)).collect();
        let text = text(&programs);
        let trace = trace_tools::from_text(&text).expect("the text is a trace");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (merged, pdt) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
        fs::write(&merged, &text).expect("the text is written");
        let mut flat_bytes = 0;
        for (fold, shards) in [(false, 1), (true, 1), (true, 3), (false, 2)] {
            let summary = convert(&merged, &pdt, &options(fold, shards, 2)).expect("the trace converts").summary;
            if shards == 1 && fold {
                prop_assert!(summary.bytes <= flat_bytes, "{} bytes folded, {} flat", summary.bytes, flat_bytes);
            }
            prop_assert!(fold || summary.flat_bytes == summary.bytes);
            if shards == 1 && fold {
                prop_assert_eq!(summary.flat_bytes, flat_bytes);
            }
            flat_bytes = summary.bytes;
            prop_assert_eq!(summary.actions, trace.actions());
            let context = format!("fold {fold}, {shards} shards");
            let archived = load(&pdt);
            assert_same(&trace, &archived, &context);
            assert_good(&archived, &dir.path().join("text"), &context);
        }
        let mut writer = ArchiveWriter::create(&pdt, RANKS, 1).expect("the archive is created");
        for rank in (0..RANKS).rev() {
            let mut program = programs[rank as usize].clone();
            program.insert(0, Item::Op(Op::Init));
            writer.write_rank(Rank::new(rank), &program).expect("the program is right");
        }
        prop_assert_eq!(writer.finish().expect("the archive is written").actions, trace.actions());
        assert_same(&trace, &load(&pdt), "structured");
        // An archive converts to an archive.
        let again = dir.path().join("again.pdt");
        convert(&pdt, &again, &options(true, 1, 3)).expect("the archive converts");
        assert_same(&trace, &load(&again), "converted twice");
    }
}

/// Posts a send to the rank itself with this tag and receives it at once, or waits for the oldest request with the tag.
fn post_or_wait((tag, is_wait): (i32, bool)) -> Vec<Item> {
    let (peer, tag, bytes) = (Some(Rank::new(0)), Tag::new(tag), Bytes::new(8));
    let ops = if is_wait {
        vec![Op::Wait(Request { direction: Direction::Send, peer, tag: Some(tag) })]
    } else {
        vec![Op::Isend { peer, tag, bytes }, Op::Recv { peer, tag: Some(tag), bytes }]
    };
    ops.into_iter().map(Item::Op).collect()
}

proptest! {
    /// Loops that wait for requests of earlier iterations: an iteration has the same slots only as some later one.
    #[test]
    fn loops_with_requests_of_earlier_iterations_are_their_text(
        steps in prop::collection::vec((0..3, any::<bool>()), 1..7),
        (count, times) in (0_u64..40, 0_u64..5),
        is_piling_up in prop::bool::weighted(0.1),
    ) {
        let number = |tag, is_wait| steps.iter().filter(|step| **step == (tag, is_wait)).count();
        // Before the loop as many requests are posted as an iteration waits for, and an iteration posts as many as it
        // waits for, or more.
        let (mut ahead, mut body) = (Vec::new(), steps.clone());
        for tag in 0..3 {
            let (posts, waits) = (number(tag, false), number(tag, true));
            ahead.extend(vec![(tag, false); waits]);
            body.extend(vec![(tag, false); waits.saturating_sub(posts)]);
            body.extend(vec![(tag, true); if is_piling_up { 0 } else { posts.saturating_sub(waits) }]);
            ahead.extend(vec![(tag, false); posts.saturating_sub(waits)]);
        }
        let items = |steps: Vec<(i32, bool)>| steps.into_iter().flat_map(post_or_wait).collect::<Vec<_>>();
        let inner = Item::Loop { count, body: items(body) };
        let outer = Item::Loop { count: times, body: vec![inner, Item::Op(Op::Compute { flops: 3.0 })] };
        let program = [vec![Item::Op(Op::Init)], items(ahead), vec![outer]].concat();
        let text: String = flatten(&program)
            .map(|op| TextLine { rank: Rank::new(0), op }.to_string() + "\n")
            .collect();
        let dir = tempfile::tempdir().expect("a temporary directory");
        let pdt = dir.path().join("trace.pdt");
        write_structured(&pdt, &[program]);
        let archived = load(&pdt);
        assert_same(&trace_tools::from_text(&text).expect("the text is a trace"), &archived, "structured");
        prop_assert_eq!(check(&archived, None).findings, []);
    }
}

#[test]
fn a_failed_conversion_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (merged, pdt) = (dir.path().join("trace.txt"), dir.path().join("trace.pdt"));
    fs::write(&merged, "0 init\n0 compute 1\n0 sedn 1 0 1\n").expect("the text is written");
    let error = convert(&merged, &pdt, &options(true, 1, 1)).expect_err("the text is wrong");
    assert!(
        matches!(error, WriteError::Input(TraceError::Action { location: Location { line: 3, .. }, .. })),
        "{error}"
    );
    let mut writer = ArchiveWriter::create(&pdt, 2, 2).expect("the archive is created");
    let (peer, tag, bytes) = (Some(Rank::new(0)), Some(Tag::new(0)), Bytes::ZERO);
    writer.write_rank(Rank::new(1), &[Item::Op(Op::Recv { peer, tag, bytes })]).expect("a program");
    let twice = writer.write_rank(Rank::new(1), &[]).expect_err("the rank is written");
    assert!(matches!(twice, WriteError::Rank { ranks: 2, .. }), "{twice}");
    let wrong = writer.write_rank(Rank::new(0), &[Item::Op(Op::Compute { flops: f64::NAN })]);
    assert!(matches!(
        wrong,
        Err(WriteError::Structure { kind: StructureError::Op(OpError::Amount { .. }), .. })
    ));
    let error = writer.finish().expect_err("nothing is sent");
    let (rank, src) = (Rank::new(1), Rank::new(0));
    assert!(
        matches!(error, WriteError::ReceiveWithoutSend { rank: r, src: s, sends: 0, receives: 1, .. } if (r, s) == (rank, Some(src))),
        "{error}"
    );
    let left: Vec<_> = fs::read_dir(dir.path()).expect("the directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn the_archive_does_not_depend_on_the_threads() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut list = String::new();
    for rank in 0..9 {
        let line =
            |index: u64| format!("{rank} compute {}\n{rank} allreduce 8 0\n", index * index % 97 + rank % 3);
        let text: String = (0..500).map(line).collect();
        fs::write(dir.path().join(format!("rank-{rank}.txt")), format!("{rank} init\n{text}"))
            .expect("written");
        list += &format!("rank-{rank}.txt\n");
    }
    fs::write(dir.path().join("list"), list).expect("the list is written");
    let bytes = |threads| {
        let pdt = dir.path().join(format!("{threads}.pdt"));
        convert(&dir.path().join("list"), &pdt, &options(true, 1, threads)).expect("the trace converts");
        fs::read(pdt).expect("the archive is there")
    };
    assert!(bytes(1) == bytes(2) && bytes(1) == bytes(7));
}

#[test]
fn checks_find_what_is_wrong() {
    let report = check(
        &trace_tools::from_text("0 init\n0 bcast 1 0 0\n1 init\n1 bcast 2 0 0\n").expect("a trace"),
        None,
    );
    let described = |bytes: u32| Some(format!("bcast of {bytes} B (action 1)"));
    let (found, expected) = (described(16), described(8));
    let (first, rank, communicator) = (Rank::new(0), Rank::new(1), CommId::WORLD);
    let finding = Finding::Collective { communicator, first, rank, index: 0, found, expected };
    assert_eq!(report.findings, [finding]);
    let trace = trace_tools::from_text("0 init\n0 isend 0 3 8\n0 isend 0 4 8\n").expect("a trace");
    let report = check(&trace, None);
    assert_eq!((report.findings.len(), report.pending), (0, 2));
    assert_eq!(report.unreceived.map(|unreceived| unreceived.messages), Some(2));
}

/// A ring in which each rank computes, sends and receives; 10 iterations between two reductions.
fn ring(ranks: u32, iterations: u64) -> Vec<Vec<Item>> {
    let rank = |rank: u32| {
        let (to, from) = (Some(Rank::new((rank + 1) % ranks)), Some(Rank::new((rank + ranks - 1) % ranks)));
        let bytes = Bytes::new(64);
        let shift = Op::SendRecv { to, send_bytes: bytes, from, recv_bytes: bytes };
        let send_counts: Box<[u64]> = (0..u64::from(ranks)).collect();
        let (send_type, recv_type) = (Datatype::BYTE, Datatype::BYTE);
        let scatter = Collective::Scatterv {
            send_counts,
            recv_count: u64::from(rank),
            root: Rank::new(0),
            send_type,
            recv_type,
        };
        let body = vec![Item::Op(Op::Compute { flops: 5.0 }), Item::Op(shift)];
        let main = Item::Loop { count: iterations, body };
        vec![Item::Op(Op::Init), Item::Op(Op::Collective(scatter)), main, Item::Op(Op::Finalize)]
    };
    (0..ranks).map(rank).collect()
}

fn write_structured(path: &Path, programs: &[Vec<Item>]) {
    let mut writer = ArchiveWriter::create(path, programs.len() as u32, 1).expect("the archive is created");
    for (rank, program) in (0..).map(Rank::new).zip(programs) {
        writer.write_rank(rank, program).expect("the program is right");
    }
    writer.finish().expect("the archive is written");
}

#[test]
fn a_part_of_a_trace_is_a_trace() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (whole, expected, found) =
        (dir.path().join("whole"), dir.path().join("expected"), dir.path().join("found"));
    write_structured(&whole, &ring(4, 10));
    let trace = load(&whole);
    let what = Cut { iterations: Some(3), ..Cut::default() };
    cut(&trace, &found, &what, &ConvertOptions::default()).expect("a part");
    write_structured(&expected, &ring(4, 3));
    assert_same(&load(&expected), &load(&found), "three iterations");

    let what = Cut { ranks: Some(1..3), iterations: None };
    cut(&trace, &found, &what, &ConvertOptions::default()).expect("a part");
    let part = load(&found);
    assert_eq!(check(&part, None).findings, []);
    let ops: Vec<Op> = part.ops(Rank::new(0)).take(4).collect();
    let bytes = Bytes::new(64);
    let shift = Op::SendRecv { to: Some(Rank::new(1)), send_bytes: bytes, from: None, recv_bytes: bytes };
    assert_eq!(ops[3], shift);
    let is_part = |op: &Op| matches!(op, Op::Collective(Collective::Scatterv { send_counts, .. }) if **send_counts == [1, 2]);
    assert!(is_part(&ops[1]), "{:?}", ops[1]);

    let error = cut(&trace, &found, &Cut { ranks: Some(2..5), iterations: None }, &ConvertOptions::default());
    assert!(matches!(error, Err(WriteError::CutRanks { first: 2, end: 5, ranks: 4 })));
}

#[test]
fn receives_from_any_source_are_checked_in_archives() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let pdt = dir.path().join("trace.pdt");
    let (tag, bytes) = (Tag::new(4), Bytes::new(8));
    let write = |sends: u64| {
        let mut writer = ArchiveWriter::create(&pdt, 2, 1).expect("the archive is created");
        let send = vec![Item::Op(Op::Send { peer: Some(Rank::new(0)), tag, bytes })];
        let recv = vec![Item::Op(Op::Call(CallOp::Recv {
            from: RecvFrom::on_world(Peer::Any { recorded: None }, None),
            bytes,
        }))];
        writer.write_rank(Rank::new(0), &[Item::Loop { count: 1000, body: recv }]).expect("a program");
        writer.write_rank(Rank::new(1), &[Item::Loop { count: sends, body: send }]).expect("a program");
        writer.finish()
    };
    let error = write(999).expect_err("a message is missing");
    assert!(
        matches!(
            error,
            WriteError::ReceiveWithoutSend { src: None, tag: None, sends: 999, receives: 1000, .. }
        ),
        "{error}"
    );
    write(1003).expect("messages suffice");
    let trace = load(&pdt);
    assert_eq!(trace.unreceived().map(|unreceived| unreceived.messages), Some(3));
    assert_good(&trace, &dir.path().join("text"), "from any source");
    assert_eq!(Info::of(&trace).expect("small sums").by_kind, [("send", 1003), ("recv", 1000)]);
}
