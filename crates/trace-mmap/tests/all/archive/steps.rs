//! Random programs of a few ranks.

use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{
    CallOp, Collective, Datatype, Direction, Item, Op, Peer, RecvFrom, Request, Tag, Unmodelled, flatten,
};
use trace_tools::TextLine;

pub(crate) const RANKS: u32 = 3;

/// A joint step of some ranks, in which every message is received.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Compute {
        rank: u32,
        flops: f64,
    },
    Message {
        from: u32,
        to: u32,
        tag: i32,
        bytes: u64,
        is_blocking: bool,
    },
    /// A message whose request is not waited for by its key.
    Later {
        from: u32,
        to: u32,
        tag: i32,
        bytes: u64,
    },
    WaitAll {
        rank: u32,
    },
    /// Ranks 0 and 2 send to rank 1, which takes both from any source.
    FromAny {
        tag: i32,
        bytes: u64,
        is_blocking: bool,
    },
    SendRecv {
        bytes: u64,
    },
    /// A call that the replay does not model.
    Unmodelled {
        rank: u32,
        bytes: u64,
    },
    Barrier,
    Reduce {
        count: u64,
        flops: f64,
    },
    Loop {
        count: u64,
        body: Vec<Step>,
    },
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let rank = 0..RANKS;
    let flops = prop_oneof![0.0..1e15, (0_u32..4).prop_map(f64::from)];
    let message = (rank.clone(), rank.clone(), 0..3, 0_u64..4, any::<bool>());
    let unmodelled = (rank.clone(), 0_u64..3);
    let message_later = (rank.clone(), rank.clone(), 0..3, 0_u64..4);
    let leaf = prop_oneof![
        3 => (rank.clone(), flops.clone()).prop_map(|(rank, flops)| Step::Compute { rank, flops }),
        5 => message.prop_map(|(from, to, tag, bytes, is_blocking)| Step::Message { from, to, tag, bytes, is_blocking }),
        1 => message_later.prop_map(|(from, to, tag, bytes)| Step::Later { from, to, tag, bytes }),
        1 => rank.prop_map(|rank| Step::WaitAll { rank }),
        1 => (0..3_i32, 0_u64..9, any::<bool>()).prop_map(|(tag, bytes, is_blocking)| Step::FromAny { tag, bytes, is_blocking }),
        1 => (0_u64..9).prop_map(|bytes| Step::SendRecv { bytes }),
        1 => unmodelled.prop_map(|(rank, bytes)| Step::Unmodelled { rank, bytes }),
        1 => Just(Step::Barrier),
        1 => (0_u64..3, flops).prop_map(|(count, flops)| Step::Reduce { count, flops }),
    ];
    leaf.prop_recursive(4, 40, 6, |step| {
        (0_u64..7, prop::collection::vec(step, 0..6)).prop_map(|(count, body)| Step::Loop { count, body })
    })
}

/// Returns the part of one rank in some steps.
pub(crate) fn program(steps: &[Step], me: u32) -> Vec<Item> {
    steps.iter().flat_map(|step| part(step, me)).collect()
}

fn part(step: &Step, me: u32) -> Vec<Item> {
    let ops = match *step {
        Step::Compute { rank, flops } if rank == me => vec![Op::Compute { flops }],
        Step::Message { from, to, tag, bytes, is_blocking } => message(me, from, to, tag, bytes, is_blocking),
        Step::FromAny { tag, bytes, is_blocking } => from_any(me, tag, bytes, is_blocking),
        Step::Later { from, to, tag, bytes } => {
            let mut posts = message(me, from, to, tag, bytes, false);
            posts.retain(|op| !matches!(op, Op::Wait(_)));
            posts
        }
        Step::WaitAll { rank } if rank == me => vec![Op::WaitAll],
        Step::SendRecv { bytes } => {
            let bytes = Bytes::new(bytes);
            let to = (me + 1 < RANKS).then(|| Rank::new(me + 1));
            let from = me.checked_sub(1).map(Rank::new);
            vec![Op::SendRecv { to, send_bytes: bytes, from, recv_bytes: bytes }]
        }
        Step::Unmodelled { rank, bytes } if rank == me => {
            let call = Unmodelled::new(&format!("MPI_Put target={me} bytes={bytes} win=0"));
            vec![Op::Call(CallOp::Unmodelled(call.expect("name and arguments")))]
        }
        Step::Barrier => vec![Op::Collective(Collective::Barrier)],
        Step::Reduce { count, flops } => {
            let (root, datatype) = (Rank::new(1), Datatype::DOUBLE);
            vec![Op::Collective(Collective::Reduce { count, flops, root, datatype })]
        }
        Step::Loop { count, ref body } => return vec![Item::Loop { count, body: program(body, me) }],
        Step::Compute { .. } | Step::WaitAll { .. } | Step::Unmodelled { .. } => Vec::new(),
    };
    ops.into_iter().map(Item::Op).collect()
}

fn message(me: u32, from: u32, to: u32, tag: i32, bytes: u64, is_blocking: bool) -> Vec<Op> {
    let (tag, bytes) = (Tag::new(tag), Bytes::new(bytes));
    let (src, dst) = (Some(Rank::new(from)), Some(Rank::new(to)));
    let request = |direction, peer| Op::Wait(Request { direction, peer, tag: Some(tag) });
    let mut ops = Vec::new();
    if from == me {
        ops.extend(match is_blocking {
            true => vec![Op::Send { peer: dst, tag, bytes }],
            false => vec![Op::Isend { peer: dst, tag, bytes }, request(Direction::Send, dst)],
        });
    }
    if to == me {
        ops.extend(match is_blocking {
            true => vec![Op::Recv { peer: src, tag: Some(tag), bytes }],
            false => vec![Op::Irecv { peer: src, tag: Some(tag), bytes }, request(Direction::Receive, src)],
        });
    }
    ops
}

fn from_any(me: u32, tag: i32, bytes: u64, is_blocking: bool) -> Vec<Op> {
    let (peer, tag, bytes) = (Some(Rank::new(1)), Tag::new(tag), Bytes::new(bytes));
    if me != 1 {
        return vec![Op::Send { peer, tag, bytes }];
    }
    // One takes this tag only, the other one any.
    let wait = |tag| Op::Wait(Request { direction: Direction::ReceiveFromAny, peer: None, tag });
    [Some(tag), None]
        .into_iter()
        .flat_map(|tag| {
            let from = RecvFrom::on_world(Peer::Any { recorded: None }, tag);
            match is_blocking {
                true => vec![Op::Call(CallOp::Recv { from, bytes })],
                false => vec![Op::Call(CallOp::Irecv { from, bytes, request: None }), wait(tag)],
            }
        })
        .collect()
}

pub(crate) fn text(programs: &[Vec<Item>]) -> String {
    let mut text = String::new();
    for (rank, program) in (0..).map(Rank::new).zip(programs) {
        text += &format!("{rank} init\n");
        for op in flatten(program) {
            text += &TextLine { rank, op }.to_string();
            text += "\n";
        }
    }
    text
}
