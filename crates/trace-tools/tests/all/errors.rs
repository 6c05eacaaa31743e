//! All errors of texts, matched on the data of the error.

use pdes_core::Rank;
use trace_mmap::{Arrival, LoadOptions, OpError, PortId, Tag, Trace, TraceError};
use trace_tools::{Field, InputError, TextError, Unsupported};

use crate::line_error;

/// Reads an invalid text and returns the line of the error and the error.
fn error_of(text: &str) -> (u64, TextError) {
    let error = trace_tools::from_text(text).expect_err(text);
    let (place, kind) = line_error(&error);
    (place.line, kind.clone())
}

/// Reads an invalid line of rank 0 of 2, after its init.
fn error_of_line(line: &str) -> TextError {
    let (number, kind) = error_of(&format!("1 init\n0 init\n\n0 {line}"));
    assert_eq!(number, 4);
    kind
}

fn field(name: &'static str) -> Field {
    Field { name, element: None }
}

#[test]
fn names_of_actions() {
    let unknown = error_of_line("Compute 5");
    assert_eq!(unknown.to_string(), "unknown action \"Compute\"; did you mean \"compute\"?");
    assert_eq!(
        error_of_line("frobnicate"),
        TextError::UnknownAction { found: "frobnicate".into(), nearest: None }
    );
    assert!(
        matches!(error_of_line("Win_fence"), TextError::NotReplayable { found, .. } if found == "Win_fence")
    );
    assert_eq!(error_of("0 init\n0"), (2, TextError::MissingAction));
}

#[test]
fn missing_fields_are_named() {
    let values = [
        ("compute", "compute", field("amount of computation")),
        ("send 1 7", "send", field("count")),
        ("irecv 1", "irecv", field("tag")),
        ("wait 0 1", "wait", field("tag")),
        ("sendRecv 1 1 1 1 0", "sendRecv", field("receive type")),
        ("reduce 5", "reduce", field("amount of computation")),
        ("gatherv 1 2", "gatherv", Field { name: "receive count", element: Some(1) }),
        ("alltoallv 9 1 1 9 1", "alltoallv", Field { name: "receive count", element: Some(1) }),
        ("allgatherv 9 9 9 0 1 0", "allgatherv", Field { name: "displacement", element: Some(1) }),
        ("location a.c", "location", field("line number")),
    ];
    for (line, action, missing) in values {
        assert_eq!(error_of_line(line), TextError::MissingField { action, field: missing }, "{line}");
    }
    assert_eq!(
        error_of_line("gatherv 1 2").to_string(),
        "gatherv: the line ends before the receive count of rank 1"
    );
}

#[test]
fn numbers_are_whole_tokens_in_range() {
    let values = [
        ("compute 12x", "amount of computation"),
        ("compute -1", "amount of computation"),
        ("compute inf", "amount of computation"),
        ("compute nan", "amount of computation"),
        ("sleep -0.5", "time to sleep"),
        ("send 1 7 1.5", "count"),
        ("send 1 7 -1", "count"),
        ("send 1 7 1e15", "count"),
        ("send 1 -1 8", "tag"),
        ("send 1 2147483648 8", "tag"),
        ("recv 1 -5 8", "tag"),
        ("recv x 0 8", "source"),
        ("bcast 1 0 3.5", "datatype"),
        ("allreduce 1 -3", "amount of computation"),
        ("wait 0 99999999999 1", "destination"),
    ];
    for (line, name) in values {
        match error_of_line(line) {
            TextError::InvalidNumber { field: found, .. } => assert_eq!(found, field(name), "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    let message = "the count is \"1.5\", expected a whole number from 0 to 2^48";
    assert_eq!(error_of_line("send 1 7 1.5").to_string(), message);
}

#[test]
fn sizes_end_at_two_to_the_48() {
    let limit = 1_u64 << 48;
    let legal = format!("0 init\n0 send 0 0 {limit}\n0 recv 0 0 {} 0", limit / 8);
    assert!(trace_tools::from_text(&legal).is_ok());
    let count = limit / 8 + 1;
    let expected = TextError::TooManyBytes { field: field("count"), count, size: 8 };
    assert_eq!(error_of_line(&format!("bcast {count} 0 0")), expected);
}

#[test]
fn ranks_are_in_range() {
    let peer = |name, found| TextError::PeerOutOfRange { field: field(name), found, ranks: 2 };
    assert_eq!(error_of_line("send 2 0 8"), peer("destination", 2));
    assert_eq!(error_of_line("send -555 0 8"), peer("destination", -555));
    assert_eq!(error_of_line("recv -1 0 8"), peer("source", -1));
    assert_eq!(error_of_line("bcast 8 2"), peer("root", 2));
    assert_eq!(
        error_of("0 init\n1048576 init"),
        (2, TextError::RankOutOfRange { found: 1_048_576, ranks: 1_048_576 })
    );
    assert!(matches!(error_of("0 init\n-1 init"), (2, TextError::InvalidNumber { .. })));
}

#[test]
fn peers_that_only_smpi_writes_are_explained() {
    let lines = [
        "send -333 5 10",
        "irecv -333 5 10",
        "sendRecv 1 -333 1 0 6 6",
        "isend 0 5 10\n0 wait -333 0 5",
        "isend 0 5 10\n0 test 0 -333 5",
    ];
    for line in lines {
        let error =
            trace_tools::from_text(&format!("0 init\n0 {line}")).expect_err("no rank is -333").to_string();
        assert!(error.contains("SMPI 3.32 writes both MPI_PROC_NULL and MPI_ANY_SOURCE so"), "{error}");
    }
    let other = error_of_line("send -334 5 10").to_string();
    assert!(!other.contains("SMPI"), "{other}");
}

#[test]
fn datatypes_are_known_or_defaulted() {
    assert_eq!(
        error_of_line("bcast 1 0 60"),
        TextError::UnknownDatatype { field: field("datatype"), found: 60 }
    );
    let expected = TextError::NoDefaultDatatype { action: "bcast", field: field("datatype") };
    assert_eq!(error_of("0 bcast 1"), (1, expected));
    // The init of another rank does not help.
    assert!(matches!(
        error_of("0 init\n1 recv 0 0 1"),
        (2, TextError::NoDefaultDatatype { action: "recv", .. })
    ));
}

#[test]
fn unsupported_actions_are_rejected_by_name() {
    let size = |action, count| TextError::Unsupported { action, feature: Unsupported::UnknownSize { count } };
    assert_eq!(error_of_line("recv 1 0 -1"), size("recv", -1.0));
    assert_eq!(error_of_line("recv -555 0 -1"), size("recv", -1.0));
}

#[test]
fn requests_that_are_not_pending() {
    let expected = |action, pending, more| {
        TextError::Op(OpError::NoPendingRequest { action, src: 0, dst: 1, tag: 9, pending, more })
    };
    assert_eq!(error_of_line("wait 0 1 9"), expected("wait", vec![], 0));
    let posted: String = (0..6).map(|tag| format!("0 isend 1 {tag} 8\n")).collect();
    let pending = vec![(0, 1, 0), (0, 1, 1), (0, 1, 2), (0, 1, 3)];
    let (line, kind) = error_of(&format!("1 init\n0 init\n{posted}0 test 0 1 9"));
    assert_eq!((line, &kind), (9, &expected("test", pending, 2)));
    assert_eq!(
        kind.to_string(),
        "test: no request (source 0, destination 1, tag 9) is pending; \
         pending are (0, 1, 0), (0, 1, 1), (0, 1, 2), (0, 1, 3) and 2 more"
    );
    assert!(matches!(
        error_of("0 init\n0 isend 0 1 8\n0 waitall\n0 wait 0 0 1"),
        (4, TextError::Op(OpError::NoPendingRequest { .. }))
    ));
}

#[test]
fn a_receive_needs_a_message() {
    let text = "0 init\n1 init\n0 send 1 7 8\n1 compute 5\n1 irecv 0 7 8\n1 recv 0 7 8\n1 recv 0 7 8";
    match trace_tools::from_text(text) {
        Err(TraceError::ReceiveWithoutSend { location, rank, action, src, tag, sends, receives, .. }) => {
            assert_eq!((location.line, rank, action, src), (6, Rank::new(1), 3, Some(Rank::new(0))));
            assert_eq!((tag, sends, receives), (Some(Tag::new(7)), 1, 3));
        }
        other => panic!("{other:?}"),
    }
    let message = "<text>:6: rank 1 receives 3 messages from rank 0 with tag 7 but only 1 is sent; \
                   its action 3 is the first without a message";
    assert_eq!(trace_tools::from_text(text).unwrap_err().to_string(), message);
}

#[test]
fn a_receive_of_any_tag_needs_a_message_of_its_source() {
    let excess = |receives: &str| match trace_tools::from_text(&format!(
        "0 init\n0 send 1 7 8\n0 send 1 8 8\n1 init\n{receives}"
    )) {
        Err(TraceError::ReceiveWithoutSend { action, tag, sends, receives, .. }) => {
            Some((action, tag.map(Tag::get), sends, receives))
        }
        Ok(_) => None,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(excess("1 recv 0 -444 8\n1 recv 0 -444 8"), None);
    assert_eq!(excess("1 recv 0 -444 8\n1 recv 0 8 8\n1 recv 0 -444 8"), Some((3, None, 2, 3)));
    // Two messages come, but only one of them has tag 8.
    assert_eq!(excess("1 recv 0 8 8\n1 recv 0 8 8\n1 recv 0 -444 8"), Some((2, Some(8), 1, 2)));
    assert_eq!(excess("1 recv 0 8 8\n1 sendRecv 1 -666 1 0 0 0"), Some((2, Some(0), 0, 1)));
}

/// Three messages come to rank 1: two with tag 7 of rank 0 and one with tag 8 of rank 2.
fn three_messages(receives: &str) -> Result<Trace, TraceError> {
    trace_tools::from_text(&format!(
        "0 init\n0 send 1 7 8\n0 send 1 7 8\n2 init\n2 send 1 8 8\n1 init\n{receives}"
    ))
}

#[test]
fn receives_from_any_source_need_as_many_messages_in_all() {
    let excess = |receives: &str| match three_messages(receives) {
        Err(TraceError::ReceiveWithoutSend { location, action, src, sends, receives, .. }) => {
            Some((location.line, action, src.map(Rank::get), sends, receives))
        }
        Ok(_) => None,
        Err(other) => panic!("{other}"),
    };
    let any = "1 recv -555 -444 8\n";
    assert_eq!(excess(&any.repeat(3)), None);
    assert_eq!(excess(&format!("{any}{any}1 recv 0 7 8")), None);
    assert_eq!(excess(&any.repeat(4)), Some((10, 4, None, 3, 4)));
    assert_eq!(excess(&format!("{any}1 irecv 0 7 8\n{any}{any}{any}")), Some((10, 4, None, 3, 5)));
    // Receives from a named source are unmatched as before: wildcard receives only take messages away from them.
    assert_eq!(excess(&format!("{any}1 recv 2 8 8\n1 recv 2 8 8")), Some((9, 3, Some(2), 1, 2)));
    let message = "<text>:10: rank 1 receives 4 messages from all ranks, any or named, but only 3 are sent; \
                   its action 4 is the first without a message";
    assert_eq!(three_messages(&any.repeat(4)).unwrap_err().to_string(), message);
}

#[test]
fn receives_from_any_source_leave_only_a_surplus() {
    let unreceived = |receives: &str| {
        three_messages(receives).expect("messages suffice").unreceived().map(|unreceived| unreceived.messages)
    };
    let any = "1 irecv -555 7 8\n";
    assert_eq!(unreceived(""), Some(3));
    assert_eq!(unreceived(any), Some(2));
    assert_eq!(unreceived(&any.repeat(3)), None);
    assert_eq!(unreceived(&format!("{any}1 recv 2 8 8")), Some(1));
    assert_eq!(unreceived(&format!("{any}{any}1 recv 2 8 8")), None);
    let trace = three_messages(&format!("{any}1 recv 2 8 8")).expect("messages suffice");
    let port = |rank| trace.rank(Rank::new(rank)).outgoing()[0].arrival();
    assert_eq!((port(0), port(2)), (Arrival::AnySource, Arrival::AnySource));
}

#[test]
fn requests_from_any_source_have_their_own_name() {
    let wait = |name: &str| three_messages(&format!("1 irecv -555 -444 8\n1 wait {name} 1 -444"));
    assert!(wait("-555").is_ok());
    for name in ["-333", "-556", "-666", "0"] {
        let error = wait(name).expect_err("it is not pending");
        let (_, kind) = line_error(&error);
        assert!(matches!(kind, TextError::Op(OpError::NoPendingRequest { .. })), "{kind}");
    }
}

#[test]
fn messages_nobody_receives_are_counted() {
    let trace = trace_tools::from_text(
        "0 init\n1 init\n0 send 1 7 8\n0 send 1 7 8\n0 send 1 8 8\n1 send 0 3 8\n1 recv 0 7 8",
    );
    let trace = trace.expect("sends may outnumber receives");
    let unreceived = trace.unreceived().expect("three messages stay");
    assert_eq!((unreceived.messages, unreceived.rank, unreceived.peer), (3, Rank::new(0), Rank::new(1)));
    assert_eq!(unreceived.tag, Tag::new(7));
    let ports: Vec<_> = trace.rank(Rank::new(0)).outgoing().iter().map(|channel| channel.arrival()).collect();
    assert_eq!(ports, [Arrival::Port(PortId::new(0)), Arrival::Unmatched]);
}

#[test]
fn actions_are_located_in_the_text() {
    let trace =
        trace_tools::from_text("# two ranks\n0 init\n1 init\n\n1 compute 1\n0 compute 2\n").expect("a trace");
    let line = |rank, action| trace.locate(Rank::new(rank), action).map(|location| location.line).ok();
    assert_eq!(
        [line(0, 0), line(0, 1), line(1, 1), line(1, 2), line(2, 0)],
        [Some(2), Some(6), Some(5), None, None]
    );
}

#[test]
fn a_text_without_actions_is_no_trace() {
    let error = trace_tools::from_text("# nothing\n\n").expect_err("there is no action");
    assert!(matches!(error.kind(), Some(InputError::Empty { .. })));
    assert_eq!(LoadOptions::default().memory_budget, 2 << 30);
}
