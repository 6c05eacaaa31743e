//! Calls beyond SimGrid's format: requests with names, communicators, and the rest.

use pdes_core::{Bytes, Rank};
use trace_mmap::{
    Action, Arrival, Call, CallError, Collective, CommId, CommIdx, CommunicatorCall, CommunicatorConflict,
    ConvertOptions, FileCall, FileDirection, FileHints, FileName, Info, LoadOptions, NumberHint, OpError,
    OutIdx, RequestName, SendMode, Slot, Source, Switch, SwitchHint, Tag, Trace, TraceError, UnmodelledError,
    check,
};
use trace_tools::{TextError, convert, write_text};

use crate::line_error;

fn load(text: &str) -> Trace {
    trace_tools::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

fn slot(number: u32) -> Slot {
    Slot::new(number)
}

/// Returns the calls of a rank, with other actions left out.
fn calls(trace: &Trace, rank: u32) -> Vec<Call> {
    let rank = trace.rank(Rank::new(rank));
    let call = |action| match action {
        Action::Call(id) => Some(rank.call(id).clone()),
        _ => None,
    };
    rank.cursor().filter_map(call).collect()
}

fn actions(trace: &Trace, rank: u32) -> Vec<Action> {
    trace.rank(Rank::new(rank)).cursor().collect()
}

#[test]
fn requests_have_names() {
    let trace = load(
        "0 init\n0 isend 1 7 8 req=5\n0 isend 1 7 8 6 req=6\n0 wait req=6\n0 isend req=6 1 8 8\n0 test req=5\n0 waitall\n\
         1 init\n1 recv 0 7 8\n1 recv 0 7 8\n1 recv 0 8 8",
    );
    let (bytes, to) = (Bytes::new(8), OutIdx::new(0));
    let expected = [
        Action::Init,
        Action::Isend { to, bytes, slot: slot(0) },
        Action::Isend { to, bytes, slot: slot(1) },
        Action::Wait { slot: slot(1) },
        Action::Isend { to: OutIdx::new(1), bytes, slot: slot(1) },
        Action::Test { slot: slot(0) },
        Action::WaitAll,
    ];
    assert_eq!(actions(&trace, 0), expected);
}

#[test]
fn waits_and_tests_on_lists_complete_what_they_did() {
    let trace = load(
        "0 init\n0 irecv 1 1 8 req=1\n0 irecv 1 2 8 req=2\n0 irecv 1 3 8 req=3\n\
         0 waitany req=1-3 done=2\n0 testsome req=3,1 done=-\n0 testany req=1,3 done=3\n0 irecv 1 4 8 req=2\n\
         0 testall req=1,2 done=-\n0 test req=1 done=-\n0 request_get_status req=1 done=yes\n\
         0 waitsome req=1,2 done=2,1\n\
         1 init\n1 send 0 1 8\n1 send 0 2 8\n1 send 0 3 8\n1 send 0 4 8",
    );
    let slots = |numbers: &[u32]| numbers.iter().copied().map(slot).collect();
    let expected = [
        Call::Waitany { slots: slots(&[0, 1, 2]), done: Some(slot(1)) },
        Call::Testsome { slots: slots(&[2, 0]), done: slots(&[]) },
        Call::Testany { slots: slots(&[0, 2]), done: Some(slot(2)) },
        Call::Testall { slots: slots(&[0, 1]), done: false },
        Call::Test { slot: slot(0), done: false },
        Call::GetStatus { slot: slot(0), done: true },
        Call::Waitsome { slots: slots(&[0, 1]), done: slots(&[1, 0]) },
    ];
    assert_eq!(calls(&trace, 0), expected);
    assert_eq!(trace.rank(Rank::new(0)).pending_at_end(), []);
}

#[test]
fn persistent_requests_keep_their_slot() {
    let trace = load(
        "0 init\n0 ssend_init 1 7 8 req=1\n0 recv_init 1 8 8 req=2\n0 startall req=1,2\n0 waitall req=1,2\n\
         0 start req=2\n0 wait req=2\n0 wait req=2\n0 request_free req=1\n0 isend -666 0 0 req=9\n\
         1 init\n1 recv 0 7 8\n1 send 0 8 8\n1 send 0 8 8",
    );
    let bytes = Bytes::new(8);
    let from = Source::Rank(trace_mmap::InIdx::new(0));
    let both: Box<[Slot]> = [slot(0), slot(1)].into();
    let mode = SendMode::Synchronous;
    let expected = [
        Call::SendInit { mode, to: Some(OutIdx::new(0)), bytes, slot: slot(0) },
        Call::RecvInit { from, bytes, slot: slot(1) },
        Call::Start { slots: both.clone() },
        Call::Waitall { slots: both },
        Call::Start { slots: [slot(1)].into() },
        Call::Free { slot: slot(0) },
    ];
    assert_eq!(calls(&trace, 0), expected);
    assert_eq!(actions(&trace, 0).last(), Some(&Action::ProcNull { slot: Some(slot(0)) }));
    assert_eq!(trace.rank(Rank::new(0)).pending_at_end(), [slot(0)]);
}

#[test]
fn calls_without_a_model_keep_their_arguments() {
    let lines =
        "0 unmodelled MPI_Win_fence assert=0 win=0\n0 unmodelled MPI_Put target=1 disp=0 bytes=8 win=0\n"
            .repeat(5);
    let text = format!(
        "0 init\n0 compute 7\n{lines}0  unmodelled\tMPI_File_sync  file=0 \n0 unmodelled MPI_Win_test time=30\n"
    );
    let dir = tempfile::tempdir().expect("a directory");
    let (input, output) = (dir.path().join("text"), dir.path().join("archive.pdt"));
    std::fs::write(&input, &text).expect("written");
    convert(&input, &output, &ConvertOptions::default()).expect("converted");
    let canonical =
        text.replace("0  unmodelled\tMPI_File_sync  file=0 ", "0 unmodelled MPI_File_sync file=0");
    for trace in [load(&text), trace_tools::load(&output, &LoadOptions::default()).expect("an archive")] {
        let mut written = Vec::new();
        write_text(&trace, Rank::new(0), &mut written, None).expect("memory takes all");
        assert_eq!(String::from_utf8_lossy(&written), canonical);
        let info = Info::of(&trace).expect("sums");
        let found: Vec<_> = info.unmodelled.iter().map(|sum| (&*sum.name, sum.calls, sum.bytes)).collect();
        let expected =
            [("MPI_File_sync", 1, 0), ("MPI_Put", 5, 40), ("MPI_Win_fence", 5, 0), ("MPI_Win_test", 1, 0)];
        assert_eq!(found, expected);
        assert!(info.by_kind.contains(&("unmodelled", 12)), "{:?}", info.by_kind);
        assert!(check(&trace, None).findings.is_empty());
        // A loop has its calls once.
        assert!(info.storage.is_none_or(|storage| storage.records <= 8), "{:?}", info.storage);
    }
    for (lines, field) in
        [("unmodelled", "name of the call"), ("unmodelled MPI_Put 3", "argument of the call")]
    {
        assert!(
            matches!(error_of(lines), TextError::Unmodelled(UnmodelledError::Invalid { field: found, .. }) if found == field)
        );
    }
}

#[test]
fn messages_match_by_their_communicator() {
    let trace = load(
        "0 init\n0 comm_dup new=3\n0 send 1 7 8 comm=3\n0 send 1 7 8\n\
         1 init\n1 comm_dup comm=0 new=3\n1 recv 0 7 8\n1 recv 0 7 8 6 comm=3",
    );
    let sender = trace.rank(Rank::new(0));
    let receiver = trace.rank(Rank::new(1));
    assert_eq!(sender.outgoing().len(), 2);
    for outgoing in sender.outgoing() {
        let incoming =
            receiver.incoming().iter().find(|incoming| incoming.communicator == outgoing.communicator);
        assert_eq!(outgoing.arrival(), Arrival::Port(incoming.expect("the channel").port));
    }
    let (to, bytes) = (Some(OutIdx::new(0)), Bytes::new(8));
    assert_eq!(calls(&trace, 0)[1], Call::Send { mode: SendMode::Standard, to, bytes });
    assert!(matches!(actions(&trace, 0)[3], Action::Send { .. }));
}

#[test]
fn communicators_have_their_ranks_in_order() {
    let trace = load(
        "0 init\n0 comm_split new=1 members=2-0:-2\n0 bcast 8 1 comm=1\n0 ireducescatter 1 2 0 comm=1 req=4\n0 wait req=4\n\
         0 comm_free comm=1\n0 comm_split comm=0\n\
         1 init\n1 comm_split comm=0\n1 comm_split comm=0\n\
         2 init\n2 comm_split new=1 members=2,0\n2 bcast 8 1 comm=1\n2 ireducescatter 1 2 0 comm=1 req=4\n2 waitall req=4\n\
         2 comm_free comm=1\n2 comm_split comm=0",
    );
    let communicators = trace.rank(Rank::new(0)).communicators();
    assert_eq!(
        (communicators[0].id, communicators[0].rank, communicators[0].group.len()),
        (CommId::WORLD, 0, 3)
    );
    assert_eq!((communicators[1].id, communicators[1].rank), (CommId::new(1), 1));
    let members: Vec<u32> = communicators[1].group.members().map(Rank::get).collect();
    assert_eq!(members, [2, 0]);
    let communicator = CommIdx::new(1);
    let found = calls(&trace, 0);
    let (kind, parent) = (CommunicatorCall::Split, CommIdx::WORLD);
    assert_eq!(found[0], Call::NewCommunicator { kind, parent, new: Some(communicator) });
    let Call::Collective { operation, communicator: on, slot: None } = found[1] else {
        panic!("a broadcast")
    };
    let bcast = trace.rank(Rank::new(0)).collective(operation);
    assert_eq!((on, bcast.root()), (communicator, Some(Rank::new(1))));
    let Call::Collective { operation, slot: Some(_), .. } = found[2] else { panic!("a reduction") };
    let reduction = trace.rank(Rank::new(0)).collective(operation);
    assert!(matches!(reduction, Collective::ReduceScatter { recv_counts, .. } if **recv_counts == [1, 2]));
    assert_eq!(found[3], Call::FreeCommunicator { communicator });
    assert_eq!(found[4], Call::NewCommunicator { kind, parent, new: None });
    assert!(trace.warnings().is_empty());
}

#[test]
fn a_group_makes_a_communicator_without_the_others() {
    let trace = load(
        "0 init\n0 comm_create_group new=1 members=2,0\n0 barrier comm=1\n1 init\n1 comm_create_group new=5 members=1\n\
         2 init\n2 comm_create_group comm=0 new=1 members=2,0\n2 barrier comm=1",
    );
    let (kind, parent, new) = (CommunicatorCall::CreateGroup, CommIdx::WORLD, Some(CommIdx::new(1)));
    for rank in 0..3 {
        assert_eq!(calls(&trace, rank)[0], Call::NewCommunicator { kind, parent, new });
    }
    let report = trace_mmap::check(&trace, None);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let alone = load(
        "0 init\n0 comm_create_group new=1 members=0-1\n0 barrier comm=1\n1 init\n1 comm_create_group new=1 members=0-1\n\
         1 comm_create_group new=2 members=1",
    );
    assert_eq!(trace_mmap::check(&alone, None).findings.len(), 1);
    assert!(trace_tools::from_text("0 init\n0 comm_create_group comm=0").is_err());
}

/// A communicator that its members know concerns no other rank, and is no operation of the others.
#[test]
fn communicators_can_be_defined() {
    let text = "0 init\n0 barrier\n0 comm_define comm=0 new=1 members=1-0:-1\n0 barrier comm=1\n1 init\n\
                1 comm_define comm=0 new=1 members=1-0:-1\n1 barrier\n1 barrier comm=1\n2 init\n2 barrier\n";
    let trace = load(text);
    let (kind, parent, new) = (CommunicatorCall::Define, CommIdx::WORLD, Some(CommIdx::new(1)));
    assert_eq!(calls(&trace, 0)[0], Call::NewCommunicator { kind, parent, new });
    let report = trace_mmap::check(&trace, None);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut written = Vec::new();
    write_text(&trace, Rank::new(0), &mut written, None).expect("memory takes all");
    assert!(String::from_utf8(written).unwrap().contains("0 comm_define comm=0 new=1 members=1"));
    assert!(trace_tools::from_text("0 init\n0 comm_define comm=0").is_err());
}

#[test]
fn receives_from_any_source_share_a_queue() {
    let trace = load(
        "0 init\n0 recv -555 7 8 source=2\n0 recv 1 7 8\n0 iprobe -555 -444 done=no\n1 init\n1 send 0 7 8\n2 init\n2 send 0 7 8",
    );
    let communicator = CommIdx::WORLD;
    let any = |tag, recorded| Source::Any { tag, communicator, recorded };
    let expected = [
        Call::Recv { from: any(Some(Tag::new(7)), Some(Rank::new(2))), bytes: Bytes::new(8) },
        Call::Iprobe { from: any(None, None), found: false },
    ];
    assert_eq!(calls(&trace, 0), expected);
    assert!(
        trace.rank(Rank::new(0)).has_timing_dependent_matching()
            && !trace.rank(Rank::new(1)).has_timing_dependent_matching()
    );
    for sender in [1, 2] {
        assert_eq!(trace.rank(Rank::new(sender)).outgoing()[0].arrival(), Arrival::AnySource);
    }
}

/// Whether the program of rank 0, which has messages of ranks 1 to 3, depends on their sources: each is marked with its reason.
#[test]
fn answers_are_told_from_other_messages() {
    let from = |source: u32| format!("recv -555 7 8 source={source}");
    let to = |rank: u32| format!("send {rank} 7 8");
    let all = [from(2), from(1), from(3)].join(";");
    let programs = [
        ("answers", vec![from(2), to(2), from(1), to(1)], true),
        ("the last result has no answer", vec![from(2), to(2), from(1), to(1), from(2)], true),
        ("a result before a request", vec![from(2), from(1), to(1), from(3), from(2), to(2)], true),
        ("a stop, and the next phase", vec![from(2), to(2), from(1), to(1), to(1), to(2), to(3)], true),
        ("a log at rank 4", vec![from(2), to(4), to(2), from(1), to(4), to(1)], true),
        (
            "requests of a group",
            vec![
                "irecv -555 7 8 source=3 req=1;irecv -555 7 8 source=1 req=2;waitall req=1,2".into(),
                to(3),
                to(1),
                from(2),
                to(2),
            ],
            true,
        ),
        (
            "a persistent receive and a persistent send",
            vec![
                "recv_init -555 7 8 source=2 req=1;send_init 2 7 8 req=2;startall req=1;wait req=1;startall req=2;wait req=2".into(),
                from(1),
            ],
            true,
        ),
        ("one source only", vec![from(2), to(2), from(2), to(2)], false),
        ("no recorded source", vec!["recv -555 7 8;send 2 7 8;recv -555 7 8;send 1 7 8".into()], false),
        ("a message to each rank after all", vec![all.clone(), to(1), to(2), to(3)], false),
        ("the same in the order of messages", vec![all, to(2), to(1), to(3)], false),
        ("a chain", vec![from(2), to(3), from(1), to(2), from(3), to(1)], false),
        ("an answer by chance", vec![from(2), to(2), from(1), to(3), from(3), to(1)], false),
    ];
    for (name, program, expected) in programs {
        let lines = program.join(";");
        let own: String = lines.split(';').map(|line| format!("0 {line}\n")).collect();
        let others = (1..5).map(|rank| format!("{rank} init\n{}", format!("{rank} send 0 7 8\n").repeat(4)));
        let text = format!("0 init\n{own}{}", others.collect::<String>());
        assert_eq!(load(&text).rank(Rank::new(0)).depends_on_sources(), expected, "{name}");
    }
}

#[test]
fn cancelled_receives_and_probes_take_no_message() {
    let trace = load(
        "0 init\n0 probe 1 7\n0 iprobe 1 7 done=yes\n0 irecv 1 7 8 req=1\n0 irecv 1 7 8 req=2\n0 cancel req=2 done=yes\n\
         0 cancel req=1 done=no\n0 waitall req=1,2\n1 init\n1 send 0 7 8",
    );
    assert_eq!(trace.unreceived(), None);
    let from = Source::Rank(trace_mmap::InIdx::new(0));
    assert!(calls(&trace, 0).contains(&Call::Cancel { slot: slot(1), from, cancelled: true }));
}

/// Reads a text of rank 0 of 3 whose last line is invalid.
fn error_of(lines: &str) -> TextError {
    let text: String = lines.split("; ").map(|line| format!("0 {line}\n")).collect();
    let text = format!("2 init\n1 init\n0 init\n{text}");
    let error = trace_tools::from_text(&text).expect_err(lines);
    let (place, kind) = line_error(&error);
    assert_eq!(place.line as usize, text.lines().count(), "{lines}: {kind}");
    kind.clone()
}

#[test]
fn illegal_uses_of_requests_are_errors() {
    let request = RequestName::new(1);
    let unknown = CallError::UnknownRequest { request, known: vec![], more: 0 };
    let values = [
        ("wait req=1", unknown.clone()),
        ("isend 1 7 8 req=1; wait req=1; wait req=1", unknown.clone()),
        ("isend 1 7 8 req=1; irecv 1 7 8 req=1", CallError::RequestInUse { request }),
        ("isend 1 7 8 req=1; waitall req=1,1", CallError::DuplicateRequest { request }),
        ("ibarrier req=1; ibarrier req=2; waitany req=2 done=1", CallError::DoneNotListed { request }),
        ("ibarrier req=1; test req=1 done=1; test req=1 done=1", unknown),
        ("ibarrier req=1; waitany req=1 done=-", CallError::NoneCompleted { request }),
        ("recv_init 1 7 8 req=1; waitsome req=1 done=1", CallError::DoneInactive { request }),
        ("isend 1 7 8 req=1; start req=1", CallError::NotPersistent { request }),
        ("send_init 1 7 8 req=1; start req=1; start req=1", CallError::AlreadyActive { request }),
        ("recv_init 1 7 8 req=1; cancel req=1 done=yes", CallError::NotCancellable { request }),
        ("isend 1 7 8 req=1; cancel req=1 done=yes", CallError::NotReceive { request }),
    ];
    for (lines, expected) in values {
        assert!(
            matches!(error_of(lines), TextError::Op(OpError::Call { kind, .. }) if kind == expected),
            "{lines}"
        );
    }
    let message = error_of("ibarrier req=4; wait req=1").to_string();
    assert_eq!(message, "wait: there is no request 1; there are 4");
}

#[test]
fn illegal_communicators_are_errors() {
    let id = CommId::new(1);
    let rank = Rank::new(2);
    let values = [
        ("barrier comm=1", CallError::UnknownCommunicator { id, is_freed: false }),
        (
            "comm_dup new=1; comm_free comm=1; send 1 7 8 comm=1",
            CallError::UnknownCommunicator { id, is_freed: true },
        ),
        ("comm_dup new=1; comm_dup new=1", CallError::CommunicatorExists { id }),
        ("comm_dup new=0", CallError::CommunicatorExists { id: CommId::WORLD }),
        ("comm_free comm=0", CallError::WorldFreed),
        ("comm_dup new=1; comm_free comm=1; comm_split new=1 members=0-1", CallError::MembersDiffer { id }),
        ("comm_split new=1 members=1-2", CallError::NotMember { rank: Rank::new(0), id }),
        ("comm_split new=1 members=0-1; send 2 7 8 comm=1", CallError::NotMember { rank, id }),
        (
            "comm_split new=1 members=0-1; comm_create comm=1 new=2 members=0,2",
            CallError::NotMember { rank, id },
        ),
        ("comm_split new=1 members=0,2,2", CallError::DuplicateMember { rank }),
    ];
    for (lines, expected) in values {
        let found = error_of(lines);
        assert!(
            matches!(&found, TextError::Op(OpError::Call { kind, .. }) if *kind == expected),
            "{lines}: {found}"
        );
    }
}

#[test]
fn ranks_agree_on_communicators() {
    let found = trace_tools::from_text("0 comm_split new=7 members=0-1\n1 comm_split new=7 members=1-0:-1");
    let conflict =
        CommunicatorConflict::Members { id: CommId::new(7), first: Rank::new(0), second: Rank::new(1) };
    assert!(matches!(found, Err(TraceError::Communicators(found)) if found == conflict));
    let found = trace_tools::from_text("0 comm_split new=7 members=0-1\n1 init");
    let conflict =
        CommunicatorConflict::NotCreated { id: CommId::new(7), rank: Rank::new(0), member: Rank::new(1) };
    assert!(matches!(found, Err(TraceError::Communicators(found)) if found == conflict));
}

#[test]
fn named_fields_are_known_and_there_once() {
    let nearest = Some("comm");
    let unknown = TextError::UnknownKey { action: "send", found: "com".into(), nearest };
    assert_eq!(error_of("send 1 7 8 com=3"), unknown);
    assert_eq!(error_of("barrier comm=0 comm=0"), TextError::RepeatedKey { action: "barrier", key: "comm" });
    assert_eq!(error_of("send 1 7 8 req=3"), TextError::UnusedKey { action: "send", key: "req" });
    assert_eq!(error_of("recv 1 7 8 source=1"), TextError::UnusedKey { action: "recv", key: "source" });
    for lines in ["ibarrier", "send_init 1 7 8", "waitAny 2", "Start", "comm_dup comm=0", "comm_split new=1"]
    {
        assert!(matches!(error_of(lines), TextError::MissingField { .. }), "{lines}");
    }
    for lines in
        ["isend 1 7 8 req=x", "waitall req=1,,2", "comm_split new=1 members=0-7", "iprobe 1 7 done=maybe"]
    {
        assert!(matches!(error_of(lines), TextError::InvalidNumber { .. }), "{lines}");
    }
    assert!(matches!(error_of("intercomm_create 1"), TextError::NotReplayable { .. }));
    let lists = error_of("neighbor_alltoallv to=1,2 from=- scounts=1 rcounts=-");
    assert_eq!(
        lists,
        TextError::ListLength { action: "neighbor_alltoallv", key: "scounts", found: 1, expected: 2 }
    );
    // Fields that SimGrid's format ignores are still ignored.
    load("0 init a=b\n0 waitall x=1\n0 comm_split color=2\n0 location a=b.c 3\n0 compute 5 a=1");
}

#[test]
fn calls_on_files_have_a_name_and_positions() {
    let text = "0 init\n0 comm_split new=3 members=0\n0 io-open /scratch/data 9\n0 io-open /x 0 comm=3\n0 io-seek /x 7 comm=3\n\
                0 io-write /x 12 comm=3\n0 io-read_at /scratch/data 999999999999999990 7\n0 io-sync /scratch/data\n0 io-write_at_all /scratch/data 5 6\n\
                0 io-close /x comm=3\n0 io-close /scratch/data\n1 init\n1 comm_split\n1 io-open /scratch/data\n1 io-sync /scratch/data\n1 io-write_at_all /scratch/data 0 5\n\
                1 io-close /scratch/data\n";
    let trace = load(text);
    let calls = calls(&trace, 0);
    let name = |name| FileName::new(name).unwrap();
    let world = CommIdx::WORLD;
    let (direction, bytes) = (FileDirection::Read, Bytes::new(7));
    let on_data = |slot, call| Call::File { communicator: world, file: name("/scratch/data"), slot, call };
    assert_eq!(calls[1], on_data(None, FileCall::Open { mode: 9, hints: FileHints::default() }));
    let read =
        FileCall::Access { is_collective: false, direction, offset: Some(999_999_999_999_999_990), bytes };
    assert_eq!(calls[5], on_data(None, read));
    for (line, message) in [
        ("io-open", "the line ends before the name of the file"),
        ("io-seek /x", "offset"),
        ("io-seek /x 1000000000000000000", "a position in a file"),
        ("io-write_at /x 5", "number of bytes"),
        ("io-write_at /x -1 5", "a position in a file"),
        ("io-read /x 281474976710657", "2^48"),
        ("io-open /\u{e9}", "printable ASCII"),
        ("io-open /x 0 comm=4", "communicator 4"),
        ("io-open /x cb_nodes=0", "from 1 to 2^31 - 1"),
        ("io-open /x cb_buffer_size=2147483648", "from 1 to 2^31 - 1"),
        ("io-open /x romio_cb_read=on", "enable, disable or automatic"),
        ("io-open /x cb_config_list=*:1", "cb_config_list"),
        ("io-close /x cb_nodes=1", "cb_nodes"),
        ("io-set_view /x", "displacement"),
        ("io-set_view /x 5 8", "blocks of the file type"),
        ("io-set_view /x 5 8 0:4:3:2", "sorted, without overlaps"),
        ("io-set_view /x 5 8 0:4,2:1", "sorted, without overlaps"),
        ("io-set_view /x 5 7 0:8", "no longer than the extent"),
        ("io-set_view /x 5 8 0:4:8", "offset:bytes"),
        ("io-iread /x 5", "req="),
        ("io-read /x 5 req=1", "req="),
        ("io-iwrite_ordered /x 5 req=1\n0 io-iread_all /x 5 req=1", "request 1 is not complete"),
    ] {
        let error = trace_tools::from_text(&format!("0 init\n0 {line}\n")).unwrap_err().to_string();
        assert!(error.contains(message), "{line}: {error}");
    }
}

/// The names of nonblocking accesses are those of the blocking ones behind an `i`; each posts a request.
#[test]
fn nonblocking_accesses_post_requests() {
    let accesses = [
        "io-iread /x 1",
        "io-iwrite /x 2",
        "io-iread_at /x 3 4",
        "io-iwrite_at /x 5 6",
        "io-iread_all /x 7",
        "io-iwrite_all /x 8",
        "io-iread_at_all /x 9 10",
        "io-iwrite_at_all /x 11 12",
        "io-iread_shared /x 13",
        "io-iwrite_shared /x 14",
        "io-iread_ordered /x 15",
        "io-iwrite_ordered /x 16",
    ];
    let posted = (0..).zip(accesses).map(|(number, access)| format!("0 {access} req={number}\n"));
    let text = format!(
        "0 init\n{}0 waitall req=0,1,2,3\n0 wait req=4\n0 test req=5 done=5\n0 waitany req=6,7 done=7\n",
        posted.collect::<String>()
    );
    let trace = load(&text);
    let blocking = load(
        &text
            .replace(" io-i", " io-")
            .lines()
            .filter(|line| !line.contains(" wait") && !line.contains(" test"))
            .map(|line| format!("{}\n", line.split(" req=").next().unwrap()))
            .collect::<String>(),
    );
    let (posted, calls) = (calls(&trace, 0), calls(&blocking, 0));
    for ((number, posted), call) in (0..).zip(&posted).zip(&calls) {
        let (Call::File { slot, call: found, .. }, Call::File { slot: None, call: expected, .. }) =
            (posted, call)
        else {
            panic!("{posted:?}, {call:?}")
        };
        assert_eq!((slot, found), (&Some(Slot::new(number)), expected));
        assert_eq!(posted.name(), accesses[number as usize].split(' ').next().unwrap());
        assert_eq!(call.name(), posted.name().replace("io-i", "io-"));
    }
    assert_eq!((calls.len(), trace.rank(Rank::new(0)).pending_at_end().len()), (12, 5));
}

/// Views and hints are read as they are written.
#[test]
fn views_and_hints_are_written_as_they_are_read() {
    let calls_in_text = [
        "io-open /x 5 cb_nodes=4 cb_buffer_size=1048576 ind_rd_buffer_size=1 ind_wr_buffer_size=2 striping_factor=3 \
         striping_unit=2147483647 romio_cb_read=enable romio_cb_write=disable romio_ds_write=enable",
        "io-set_view /x 7",
        "io-set_view /x 7 100 8:4:8:3,40:60",
        "io-write_at_all /x 4 20",
    ];
    let text: String = calls_in_text.iter().map(|call| format!("0 {call}\n")).collect();
    let trace = load(&format!("0 init\n{text}"));
    let mut written = Vec::new();
    write_text(&trace, Rank::new(0), &mut written, None).unwrap();
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(&text), "{written}");
    let calls = calls(&trace, 0);
    let Call::File { call: FileCall::Open { hints, .. }, .. } = &calls[0] else { panic!("{calls:?}") };
    assert_eq!(
        (hints.number(NumberHint::CbNodes), hints.number(NumberHint::StripingUnit)),
        (Some(4), Some(2_147_483_647))
    );
    let switches = SwitchHint::ALL.map(|hint| hints.switch(hint));
    assert_eq!(switches, [Switch::Enable, Switch::Disable, Switch::Automatic, Switch::Enable]);
    let Call::SetView { view, .. } = &calls[2] else { panic!("{calls:?}") };
    assert_eq!((view.position(12), view.data_before(120), view.extent()), (47, 76, 100));
    // One block has no stride, whatever is written.
    let ops = |blocks: &str| load(&format!("0 init\n0 io-open /x 5\n0 io-set_view /x 7 100 {blocks}\n"));
    assert!(ops("32:12:24:1").ops(Rank::new(0)).eq(ops("32:12").ops(Rank::new(0))));
}
