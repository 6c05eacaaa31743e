//! Random programs written as text are read back as they were; random text never panics.

use std::collections::VecDeque;

use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{Action, Arrival, Collective, Slot, Trace, TraceError};

const RANKS: u32 = 3;

/// A joint step of some ranks, in which every message is received.
#[derive(Clone, Debug)]
enum Step {
    Compute { rank: u32, flops: f64 },
    Message { from: u32, to: u32, tag: i32, bytes: u64, is_blocking: bool },
    Wait { rank: u32 },
    WaitAll { rank: u32 },
    Alltoallv { counts: [u64; 3] },
}

/// An expected action, with names instead of indices.
#[derive(Clone, Debug, PartialEq)]
enum ExpectedAction {
    Init,
    Compute(f64),
    Send {
        peer: u32,
        tag: i32,
        bytes: u64,
    },
    Recv {
        peer: u32,
        tag: i32,
        bytes: u64,
    },
    /// The number of the request among those of the rank.
    Isend {
        peer: u32,
        tag: i32,
        bytes: u64,
        request: usize,
    },
    Irecv {
        peer: u32,
        tag: i32,
        bytes: u64,
        request: usize,
    },
    Wait {
        request: usize,
    },
    WaitAll,
    Alltoallv(Vec<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    let rank = 0..RANKS;
    let flops = prop_oneof![0.0..1e15, (0_u64..1 << 60).prop_map(|flops| flops as f64)];
    let message = (rank.clone(), rank.clone(), 0..3, 0_u64..1 << 48, any::<bool>());
    prop_oneof![
        3 => (rank.clone(), flops).prop_map(|(rank, flops)| Step::Compute { rank, flops }),
        5 => message.prop_map(|(from, to, tag, bytes, is_blocking)| Step::Message { from, to, tag, bytes, is_blocking }),
        3 => rank.clone().prop_map(|rank| Step::Wait { rank }),
        1 => rank.prop_map(|rank| Step::WaitAll { rank }),
        1 => prop::array::uniform3(0_u64..1 << 40).prop_map(|counts| Step::Alltoallv { counts }),
    ]
}

/// The pending requests of a rank as a plain list: (source, destination, tag, number).
#[derive(Default)]
struct Program {
    pending: VecDeque<(u32, u32, i32, usize)>,
    posted: usize,
    expected: Vec<ExpectedAction>,
}

impl Program {
    fn post(&mut self, src: u32, dst: u32, tag: i32) -> usize {
        self.pending.push_back((src, dst, tag, self.posted));
        self.posted += 1;
        self.posted - 1
    }
}

fn write(steps: &[Step]) -> (String, Vec<Vec<ExpectedAction>>) {
    let mut text: String = (0..RANKS).map(|rank| format!("{rank} init\n")).collect();
    let mut programs: Vec<Program> = (0..RANKS).map(|_| Program::default()).collect();
    for step in steps {
        text += &write_step(step, &mut programs);
    }
    let init = |program: Program| [vec![ExpectedAction::Init], program.expected].concat();
    (text, programs.into_iter().map(init).collect())
}

fn write_step(step: &Step, programs: &mut [Program]) -> String {
    match *step {
        Step::Compute { rank, flops } => {
            programs[rank as usize].expected.push(ExpectedAction::Compute(flops));
            format!("{rank} compute {flops:?}\n")
        }
        Step::Message { from, to, tag, bytes, is_blocking: true } => {
            programs[from as usize].expected.push(ExpectedAction::Send { peer: to, tag, bytes });
            programs[to as usize].expected.push(ExpectedAction::Recv { peer: from, tag, bytes });
            format!("{from} send {to} {tag} {bytes}\n{to} recv {from} {tag} {bytes}\n")
        }
        Step::Message { from, to, tag, bytes, is_blocking: false } => {
            let sender = &mut programs[from as usize];
            let request = sender.post(from, to, tag);
            sender.expected.push(ExpectedAction::Isend { peer: to, tag, bytes, request });
            let receiver = &mut programs[to as usize];
            let request = receiver.post(from, to, tag);
            receiver.expected.push(ExpectedAction::Irecv { peer: from, tag, bytes, request });
            format!("{from} isend {to} {tag} {bytes}\n{to}\tirecv  {from} {tag} {bytes} 6\n")
        }
        Step::Wait { rank } => {
            let program = &mut programs[rank as usize];
            let Some(&(src, dst, tag, _)) = program.pending.back() else { return String::new() };
            let key = |request: &(u32, u32, i32, usize)| (request.0, request.1, request.2) == (src, dst, tag);
            let first = program.pending.iter().position(key).expect("the last one has this key");
            let request = program.pending.remove(first).expect("it was found").3;
            program.expected.push(ExpectedAction::Wait { request });
            format!("{rank} wait {src} {dst} {tag}\n")
        }
        Step::WaitAll { rank } => {
            programs[rank as usize].pending.clear();
            programs[rank as usize].expected.push(ExpectedAction::WaitAll);
            format!("{rank} waitall 7\n")
        }
        Step::Alltoallv { counts: [a, b, c] } => {
            let line = |(rank, program): (usize, &mut Program)| {
                program.expected.push(ExpectedAction::Alltoallv(vec![a, b, c]));
                format!("{rank} alltoallv 1 {a} {b} {c} 1 {a} {b} {c} 6 6\n")
            };
            programs.iter_mut().enumerate().map(line).collect()
        }
    }
}

fn read(trace: &Trace, rank: u32) -> Vec<ExpectedAction> {
    let rank = trace.rank(Rank::new(rank));
    let mut by_slot = vec![0; rank.slots() as usize];
    let mut posted = 0;
    let mut post = |slot: Slot, by_slot: &mut Vec<usize>| {
        by_slot[slot.index()] = posted;
        posted += 1;
        posted - 1
    };
    let named = |action| match action {
        Action::Init => ExpectedAction::Init,
        Action::Compute { flops } => ExpectedAction::Compute(flops),
        Action::Send { to, bytes } => {
            let channel = rank.outgoing()[to.index()];
            ExpectedAction::Send { peer: channel.peer.get(), tag: channel.tag.get(), bytes: bytes.get() }
        }
        Action::Recv { from, bytes } => {
            let channel = rank.incoming()[from.index()];
            ExpectedAction::Recv {
                peer: channel.peer.get(),
                tag: channel.tag.expect("a tag").get(),
                bytes: bytes.get(),
            }
        }
        Action::Isend { to, bytes, slot } => {
            let channel = rank.outgoing()[to.index()];
            let (peer, tag) = (channel.peer.get(), channel.tag.get());
            ExpectedAction::Isend { peer, tag, bytes: bytes.get(), request: post(slot, &mut by_slot) }
        }
        Action::Irecv { from, bytes, slot } => {
            let channel = rank.incoming()[from.index()];
            let (peer, tag) = (channel.peer.get(), channel.tag.expect("a tag").get());
            ExpectedAction::Irecv { peer, tag, bytes: bytes.get(), request: post(slot, &mut by_slot) }
        }
        Action::Wait { slot } => ExpectedAction::Wait { request: by_slot[slot.index()] },
        Action::WaitAll => ExpectedAction::WaitAll,
        Action::Collective(id) => match rank.collective(id) {
            Collective::Alltoallv { send_counts, recv_counts, .. } if send_counts == recv_counts => {
                ExpectedAction::Alltoallv(send_counts.to_vec())
            }
            other => panic!("{other:?} was never written"),
        },
        other => panic!("{other:?} was never written"),
    };
    rank.cursor().map(named).collect()
}

proptest! {
    #[test]
    fn programs_are_read_back_as_they_were(steps in prop::collection::vec(step(), 0..200)) {
        let (text, expected) = write(&steps);
        let trace = trace_tools::from_text(&text).expect("the text is a trace");
        for (rank, expected) in (0..).zip(expected) {
            prop_assert_eq!(read(&trace, rank), expected);
        }
        prop_assert_eq!(trace.unreceived(), None);
    }

    /// Each message of a trace goes to the port of the receiver's channel with its source and tag.
    #[test]
    fn channels_are_linked(steps in prop::collection::vec(step(), 0..100)) {
        let trace = trace_tools::from_text(&write(&steps).0).expect("the text is a trace");
        for sender in (0..RANKS).map(Rank::new) {
            for outgoing in trace.rank(sender).outgoing() {
                let mut incoming = trace.rank(outgoing.peer).incoming().iter();
                let matching = incoming.find(|incoming| incoming.peer == sender && incoming.tag == Some(outgoing.tag));
                let port = matching.map_or(Arrival::Unmatched, |incoming| Arrival::Port(incoming.port));
                prop_assert_eq!(outgoing.arrival(), port);
            }
        }
    }

    #[test]
    fn random_lines_never_panic(lines in prop::collection::vec("[01] (send|recv|isend|irecv|wait|test|sendRecv|bcast|gatherv|alltoallv|allgatherv|location|init|compute|[a-z]{1,8})( (-?[0-9]{1,20}|-444|-555|-666|[0-9.e+-]{1,6})){0,9}", 0..20)) {
        let text = lines.join("\n");
        match trace_tools::from_text(&text) {
            Ok(trace) => prop_assert_eq!(trace.actions(), lines.len() as u64),
            Err(TraceError::Action { location, .. }) => prop_assert!((1..=lines.len() as u64).contains(&location.line)),
            Err(TraceError::Source(error)) => prop_assert!(lines.is_empty(), "{error}"),
            Err(TraceError::ReceiveWithoutSend { receives, sends, .. }) => prop_assert!(receives > sends),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn random_calls_never_panic(lines in prop::collection::vec("[01] (isend|irecv|wait|waitall|ssend|sendRecv|sendRecv_replace|probe|iprobe|send_init|recv_init|start|startall|request_free|cancel|waitany|waitsome|testall|testany|testsome|request_get_status|io-open|io-seek|io-read|io-write_at|comm_split|comm_dup|comm_create|comm_free|barrier|ibcast|reducescatter|ineighbor_alltoall|neighbor_alltoallv)( [0-3]){0,4}( (comm|req|done|source|stag|rtag|new|members|to|from|scounts|rcounts|x)=([0-3]|-|[0-3],[0-3]|0-[0-3](:-?[0-3])?|yes|no|all|-444|[0-9]{1,12}|)){0,4}", 0..20)) {
        let _ = trace_tools::from_text(&("0 init\n1 init\n".to_owned() + &lines.join("\n")));
    }

    #[test]
    fn random_bytes_never_panic(text in "\\PC{0,200}") {
        let _ = trace_tools::from_text(&text);
    }
}

#[test]
fn sizes_are_kept_to_the_byte() {
    let bytes = (1_u64 << 48) - 1;
    let trace =
        trace_tools::from_text(&format!("0 init\n0 send 0 0 {bytes}\n0 recv 0 0 {bytes}")).expect("a trace");
    let sent = trace.rank(Rank::new(0)).cursor().nth(1);
    assert!(matches!(sent, Some(Action::Send { bytes: found, .. }) if found == Bytes::new(bytes)));
}
