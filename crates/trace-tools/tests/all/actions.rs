//! Every action of the grammar, read from text.

use pdes_core::{Bytes, Rank};
use trace_mmap::{
    Action, Arrival, Call, Collective, CommIdx, Datatype, InIdx, Incoming, Location, OutIdx, PortId, Slot,
    Source, Tag, Trace, Warning,
};

const R0: Rank = Rank::new(0);

fn load(text: &str) -> Trace {
    trace_tools::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

fn actions(trace: &Trace, rank: u32) -> Vec<Action> {
    trace.rank(Rank::new(rank)).cursor().collect()
}

/// Reads collectives of rank 0 of 3, after an `init` with default type BYTE.
fn collective(line: &str) -> Collective {
    let trace = load(&format!("0 init\n0 {line}\n2 init"));
    let Action::Collective(id) = actions(&trace, 0)[1] else { panic!("{line} is a collective") };
    assert_eq!(trace.warnings(), [], "{line}");
    let collective = trace.rank(R0).collective(id).clone();
    assert!(line.starts_with(collective.name()));
    collective
}

#[test]
fn actions_without_peers() {
    let trace = load(
        "0 init\n0 comm_size 4\n0 comm_split 1 2\n0 comm_dup\n0 location a.c 12\n0 location b.c 7\n0 location a.c 12\n\
         0 compute 1e9\n0 compute 0\n0 sleep 2.5e-3\n0 waitall 3\n0 finalize",
    );
    let all = actions(&trace, 0);
    let [Action::Location(first), Action::Location(second), Action::Location(third)] = all[4..7] else {
        panic!("three locations")
    };
    let rank = trace.rank(R0);
    assert_eq!((rank.location(first), rank.location(second)), ("a.c:12", "b.c:7"));
    assert_eq!(first, third);
    assert_eq!(&all[..4], [Action::Init, Action::Communicator, Action::Communicator, Action::Communicator]);
    let rest = [
        Action::Compute { flops: 1e9 },
        Action::Compute { flops: 0.0 },
        Action::Sleep { seconds: 0.0025 },
        Action::WaitAll,
        Action::Finalize,
    ];
    assert_eq!(&all[7..], rest);
    let first = Location { file: "<text>".into(), line: 3 };
    assert_eq!(trace.warnings(), [Warning::Communicators { lines: 2, first }]);
}

#[test]
fn the_default_type_is_that_of_the_own_init() {
    let trace = load(
        "0 init\n1 init MPE\n0 send 1 5 10\n1 recv 0 5 10\n1 send 0 5 10 1\n0 recv 1 5 5e0 4\n\
         1 init\n1 send 0 5 7\n0 recv 1 5 7",
    );
    let (to, from) = (OutIdx::new(0), InIdx::new(0));
    let bytes = Bytes::new;
    assert_eq!(
        actions(&trace, 0),
        [
            Action::Init,
            Action::Send { to, bytes: bytes(10) },
            Action::Recv { from, bytes: bytes(40) },
            Action::Recv { from, bytes: bytes(7) },
        ]
    );
    assert_eq!(
        actions(&trace, 1),
        [
            Action::Init,
            Action::Recv { from, bytes: bytes(80) },
            Action::Send { to, bytes: bytes(40) },
            Action::Init,
            Action::Send { to, bytes: bytes(7) },
        ]
    );
}

#[test]
fn requests_get_slots_and_test_keeps_them() {
    let trace = load(
        "0 init\n0 isend 1 7 1\n0 isend 1 7 2\n0 irecv 1 8 3\n0 test 0 1 7\n0 wait 1 0 8\n0 wait 0 1 7\n0 isend 1 9 4\n\
         0 isend 1 9 5\n1 init\n1 recv 0 7 1\n1 recv 0 7 2\n1 send 0 8 3\n1 recv 0 9 4\n1 recv 0 9 5",
    );
    let slots: Vec<u32> = actions(&trace, 0)
        .into_iter()
        .filter_map(|action| match action {
            Action::Isend { slot, .. } | Action::Irecv { slot, .. } => Some(slot),
            Action::Wait { slot } | Action::Test { slot } => Some(slot),
            _ => None,
        })
        .map(Slot::get)
        .collect();
    // isend 0, isend 1, irecv 2; the test moves 0 behind 1; the waits free 2 and 1; the last two take 1 and 2.
    assert_eq!(slots, [0, 1, 2, 0, 2, 1, 1, 2]);
    let rank = trace.rank(R0);
    assert_eq!(rank.slots(), 3);
    // The key (0, 1, 7) still has 0, posted first; of the key (0, 1, 9) only the last counts.
    assert_eq!(rank.pending_at_end(), [Slot::new(0), Slot::new(2)]);
}

#[test]
fn receives_from_any_source_belong_to_no_channel() {
    let trace = load(
        "0 init\n1 init\n0 send 1 7 9\n0 send 1 8 9\n1 irecv -555 -444 9\n1 recv -555 8 9\n1 test -555 1 -444\n1 wait -555 1 -444",
    );
    let (bytes, slot) = (Bytes::new(9), Slot::new(0));
    let all = actions(&trace, 1);
    let [
        _,
        Action::Call(irecv),
        Action::Call(recv),
        Action::Test { slot: tested },
        Action::Wait { slot: waited },
    ] = all[..]
    else {
        panic!("{all:?}")
    };
    let rank = trace.rank(Rank::new(1));
    let any = |tag| Source::Any { tag, communicator: CommIdx::WORLD, recorded: None };
    assert_eq!(*rank.call(irecv), Call::Irecv { from: any(None), bytes, slot });
    assert_eq!(*rank.call(recv), Call::Recv { from: any(Some(Tag::new(8))), bytes });
    assert_eq!((tested, waited), (slot, slot));
    assert_eq!((rank.incoming(), rank.ports(), rank.slots()), (&[][..], 0, 1));
}

#[test]
fn proc_null_takes_no_time() {
    let trace = load(
        "0 init\n0 send -666 1 9\n0 recv -666 1 9\n0 isend -666 1 9\n0 irecv -666 -444 9\n0 wait 0 -666 1\n0 wait -666 0 -444",
    );
    let null = |slot| Action::ProcNull { slot };
    let slot = Slot::new;
    assert_eq!(
        &actions(&trace, 0)[1..],
        [
            null(None),
            null(None),
            null(Some(slot(0))),
            null(Some(slot(1))),
            Action::Wait { slot: slot(0) },
            Action::Wait { slot: slot(1) },
        ]
    );
    assert!(trace.rank(R0).outgoing().is_empty() && trace.rank(R0).incoming().is_empty());
}

#[test]
fn send_recv_shares_the_channel_of_tag_zero() {
    let trace = load(
        "0 init\n0 send 1 0 1\n0 sendRecv 10 1 20 1 0 1\n0 sendRecv 10 1 20 1 0 1\n0 sendRecv 5 -666 6 -666 6 6\n\
         1 init\n1 recv 0 0 1\n1 sendRecv 20 0 10 0 1 0\n1 send 0 0 80\n1 recv 0 0 80",
    );
    let rank = trace.rank(R0);
    let [Action::SendRecv(first), Action::SendRecv(second), Action::SendRecv(null)] = actions(&trace, 0)[2..]
    else {
        panic!("three combined ones")
    };
    assert_eq!(first, second);
    let value = rank.send_recv(first);
    assert_eq!((value.to, value.from), (Some(OutIdx::new(0)), Some(InIdx::new(0))));
    assert_eq!((value.send_bytes, value.recv_bytes), (Bytes::new(80), Bytes::new(80)));
    assert_eq!((rank.send_recv(null).to, rank.send_recv(null).from), (None, None));
    assert_eq!((rank.outgoing().len(), rank.incoming().len(), trace.unreceived()), (1, 1, None));
}

#[test]
fn rooted_and_unrooted_collectives() {
    let (double, int, byte) = (Datatype::DOUBLE, Datatype::from_id(1).unwrap(), Datatype::BYTE);
    let rank = Rank::new;
    let values = [
        ("barrier", Collective::Barrier),
        ("bcast 5e4", Collective::Bcast { count: 50_000, root: R0, datatype: byte }),
        ("bcast 5 2 1", Collective::Bcast { count: 5, root: rank(2), datatype: int }),
        ("reduce 5 1e3 1", Collective::Reduce { count: 5, flops: 1e3, root: rank(1), datatype: byte }),
        ("allreduce 5 0.5 0", Collective::Allreduce { count: 5, flops: 0.5, datatype: double }),
        ("scan 5 1", Collective::Scan { count: 5, flops: 1.0, datatype: byte }),
        ("exscan 5 1 1", Collective::Exscan { count: 5, flops: 1.0, datatype: int }),
        (
            "alltoall 3 4",
            Collective::Alltoall { send_count: 3, recv_count: 4, send_type: byte, recv_type: byte },
        ),
        (
            "allgather 3 4 0",
            Collective::Allgather { send_count: 3, recv_count: 4, send_type: double, recv_type: byte },
        ),
        (
            "gather 3 4 2 0 1",
            Collective::Gather {
                send_count: 3,
                recv_count: 4,
                root: rank(2),
                send_type: double,
                recv_type: int,
            },
        ),
        (
            "scatter 3 4",
            Collective::Scatter { send_count: 3, recv_count: 4, root: R0, send_type: byte, recv_type: byte },
        ),
    ];
    for (line, expected) in values {
        assert_eq!(collective(line), expected, "{line}");
    }
}

#[test]
fn collectives_with_vectors() {
    let (double, int, byte) = (Datatype::DOUBLE, Datatype::from_id(1).unwrap(), Datatype::BYTE);
    let counts = || Box::from([1, 20, 3]);
    let root = Rank::new(2);
    let allgatherv = |send_type, recv_type| Collective::Allgatherv {
        send_count: 9,
        recv_counts: counts(),
        send_type,
        recv_type,
    };
    let values = [
        (
            "alltoallv 9 1 2e1 3 8 4 5 6",
            Collective::Alltoallv {
                send_counts: counts(),
                recv_counts: Box::from([4, 5, 6]),
                send_type: byte,
                recv_type: byte,
            },
        ),
        (
            "alltoallv 9 1 20 3 8 4 5 6 0 1",
            Collective::Alltoallv {
                send_counts: counts(),
                recv_counts: Box::from([4, 5, 6]),
                send_type: double,
                recv_type: int,
            },
        ),
        (
            "gatherv 9 1 20 3 2 0 1",
            Collective::Gatherv {
                send_count: 9,
                recv_counts: counts(),
                root,
                send_type: double,
                recv_type: int,
            },
        ),
        (
            "scatterv 1 20 3 9 2 0 1",
            Collective::Scatterv {
                send_counts: counts(),
                recv_count: 9,
                root,
                send_type: double,
                recv_type: int,
            },
        ),
        (
            "reducescatter 1 20 3 7.5 1",
            Collective::ReduceScatter { recv_counts: counts(), flops: 7.5, datatype: int },
        ),
        ("allgatherv 9 1 20 3", allgatherv(byte, byte)),
        ("allgatherv 9 1 20 3 0 1", allgatherv(double, int)),
        ("allgatherv 9 1 20 3 0 5 7", allgatherv(byte, byte)),
        ("allgatherv 9 1 20 3 0 1 0 5 7", allgatherv(double, int)),
    ];
    for (line, expected) in values {
        assert_eq!(collective(line), expected, "{line}");
    }
}

/// On one and two ranks the forms of `allgatherv` have nearly the same number of fields.
#[test]
fn allgatherv_on_few_ranks() {
    let types = |line: &str| {
        let trace = load(line);
        let Action::Collective(id) = actions(&trace, 0)[1] else { panic!("{line} is a collective") };
        match trace.rank(R0).collective(id) {
            Collective::Allgatherv { send_type, recv_type, .. } => {
                (send_type.id(), recv_type.id(), trace.warnings().len())
            }
            other => panic!("{other:?}"),
        }
    };
    for (fields, expected) in [("", (6, 6)), ("0", (6, 6)), ("0 1", (0, 1)), ("0 1 0", (0, 1))] {
        assert_eq!(
            types(&format!("0 init\n0 allgatherv 9 9 {fields}")),
            (expected.0, expected.1, 0),
            "{fields:?} on 1"
        );
    }
    for (fields, expected) in [("", (6, 6)), ("0 1", (0, 1)), ("0 1 0 5", (0, 1))] {
        let line = format!("0 init\n0 allgatherv 9 9 9 {fields}\n1 init");
        assert_eq!(types(&line), (expected.0, expected.1, 0), "{fields:?} on 2");
    }
}

#[test]
fn equal_collectives_are_stored_once_but_not_across_default_types() {
    let trace = load("0 init\n0 bcast 5\n0 bcast 5\n0 init 1\n0 bcast 5\n0 bcast 5 0");
    let ids: Vec<u32> = actions(&trace, 0)
        .into_iter()
        .filter_map(|action| match action {
            Action::Collective(id) => Some(id.get()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, [0, 0, 1, 2]);
}

#[test]
fn extra_fields_are_reported() {
    let trace = load(
        "0 init a b\n0 compute 1\n0 compute 1 2\n0 barrier x\n0 barrier x\n0 finalize 3\n0 bcast 1 0 0 0",
    );
    assert_eq!(trace.actions(), 7);
    let first = Location { file: "<text>".into(), line: 3 };
    assert_eq!(trace.warnings(), [Warning::ExtraFields { lines: 5, first }]);
    let told = "<text>:3: fields beyond those of the action are ignored (5 such lines)";
    assert_eq!(trace.warnings()[0].to_string(), told);
}

#[test]
fn a_receive_of_any_tag_shares_the_port_of_its_source() {
    let trace = load(
        "0 init\n0 send 2 1 9\n0 send 2 3 9\n0 send 2 4 9\n1 init\n1 send 2 1 9\n1 send 2 2 9\n\
         2 init\n2 recv 1 2 9\n2 recv 0 3 9\n2 recv 1 1 9\n2 recv 0 -444 9\n2 recv 0 1 9",
    );
    let receiver = trace.rank(Rank::new(2));
    let ports: Vec<_> = receiver
        .incoming()
        .iter()
        .map(|Incoming { peer, tag, port, .. }| (peer.get(), tag.map(Tag::get), port.get()))
        .collect();
    assert_eq!(ports, [(1, Some(2), 0), (0, Some(3), 1), (1, Some(1), 2), (0, None, 1), (0, Some(1), 1)]);
    assert_eq!(receiver.ports(), 3);
    let sent = |rank: u32| -> Vec<_> {
        let outgoing = trace.rank(Rank::new(rank)).outgoing().iter();
        outgoing.map(|channel| (channel.tag.get(), channel.arrival())).collect()
    };
    let port = |number| Arrival::Port(PortId::new(number));
    assert_eq!(sent(0), [(1, port(1)), (3, port(1)), (4, port(1))]);
    assert_eq!(sent(1), [(1, port(2)), (2, port(0))]);
}
