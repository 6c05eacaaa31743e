//! Programs with loops, of patterns that parallel programs have.

use pdes_core::{Bytes, Rank};
use proptest::prelude::*;
use trace_mmap::{
    CallOp, Collective, CommId, Datatype, Direction, Item, Op, Peer, RecvFrom, Request, RequestName, Tag,
};

/// A phase of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// Each rank computes one of three amounts.
    Compute([f64; 3]),
    /// Each posts a receive from the rank before, sends to the one after, and waits.
    Ring {
        bytes: u64,
    },
    /// Each receives from the rank before, computes, and sends to the one after; the ends have one neighbour.
    Pipeline {
        bytes: u64,
    },
    /// A few waves through the same pipeline, in a loop of their own.
    Waves {
        bytes: u64,
    },
    /// Each exchanges messages with both neighbours at once.
    Halo {
        bytes: u64,
    },
    /// Each sends and receives in one call.
    Shift {
        bytes: u64,
    },
    /// Only every third rank sends, to the one after it.
    Some {
        bytes: u64,
    },
    Barrier,
    Reduce {
        count: u64,
        root: u32,
    },
    /// A nonblocking collective operation, beside a computation.
    Beside {
        count: u64,
    },
}

impl Phase {
    /// Phases in which every rank waits for others, and those for it.
    pub(crate) const COUPLED: [Self; 7] = [
        Self::Ring { bytes: 5000 },
        Self::Pipeline { bytes: 200_000 },
        Self::Waves { bytes: 80_000 },
        Self::Halo { bytes: 70_000 },
        Self::Shift { bytes: 5000 },
        Self::Barrier,
        Self::Beside { count: 2000 },
    ];
}

pub(crate) fn phase() -> impl Strategy<Value = Phase> {
    let bytes = prop_oneof![1_u64..3000, 60_000_u64..200_000];
    prop_oneof![
        prop::array::uniform3((1_u32..2000).prop_map(|kilo| f64::from(kilo) * 1e3)).prop_map(Phase::Compute),
        bytes.clone().prop_map(|bytes| Phase::Ring { bytes }),
        bytes.clone().prop_map(|bytes| Phase::Pipeline { bytes }),
        bytes.clone().prop_map(|bytes| Phase::Waves { bytes }),
        bytes.clone().prop_map(|bytes| Phase::Halo { bytes }),
        bytes.clone().prop_map(|bytes| Phase::Shift { bytes }),
        bytes.prop_map(|bytes| Phase::Some { bytes }),
        Just(Phase::Barrier),
        (1_u64..20_000, 0_u32..2).prop_map(|(count, root)| Phase::Reduce { count, root }),
        (1_u64..20_000).prop_map(|count| Phase::Beside { count }),
    ]
}

/// Returns the program of a rank: some phases, a loop, and others.
pub(crate) fn program(
    me: u32,
    ranks: u32,
    before: &[Phase],
    (count, body): (u64, &[Phase]),
    after: &[Phase],
) -> Vec<Item> {
    let part = |phases| part(phases, me, ranks);
    let mut program = vec![Item::Op(Op::Init)];
    program.extend(part(before));
    program.push(Item::Loop { count, body: part(body) });
    program.extend(part(after));
    program.push(Item::Op(Op::Finalize));
    program
}

/// Returns some phases of a rank.
pub(crate) fn part(phases: &[Phase], me: u32, ranks: u32) -> Vec<Item> {
    phases.iter().flat_map(|phase| phase.part(me, ranks)).collect()
}

impl Phase {
    fn part(self, me: u32, ranks: u32) -> Vec<Item> {
        let (next, previous) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        let compute = |flops| Op::Compute { flops };
        let ops = match self {
            Self::Compute(flops) => vec![compute(flops[me as usize % 3])],
            Self::Ring { bytes } => {
                let receive = Op::Wait(request(Direction::Receive, previous));
                vec![
                    irecv(previous, bytes),
                    isend(next, bytes),
                    receive,
                    Op::Wait(request(Direction::Send, next)),
                ]
            }
            Self::Pipeline { bytes } => wave(me, ranks, bytes),
            Self::Waves { bytes } => {
                let body = wave(me, ranks, bytes).into_iter().map(Item::Op).collect();
                return vec![Item::Loop { count: 4, body }];
            }
            Self::Halo { bytes } => {
                let sides: Vec<u32> = [me.checked_sub(1), Some(me + 1)].into_iter().flatten().collect();
                let sides: Vec<u32> = sides.into_iter().filter(|&side| side < ranks).collect();
                let receives = sides.iter().map(|&side| irecv(side, bytes));
                receives.chain(sides.iter().map(|&side| isend(side, bytes))).chain([Op::WaitAll]).collect()
            }
            Self::Shift { bytes } => {
                let bytes = Bytes::new(bytes);
                let (to, from) = (Some(Rank::new(next)), Some(Rank::new(previous)));
                vec![Op::SendRecv { to, send_bytes: bytes, from, recv_bytes: bytes }]
            }
            Self::Some { bytes } if me.is_multiple_of(3) && next > me => vec![send(next, bytes)],
            Self::Some { bytes } if me > 0 && previous.is_multiple_of(3) => vec![recv(previous, bytes)],
            Self::Some { .. } => Vec::new(),
            Self::Barrier => vec![Op::Collective(Collective::Barrier)],
            Self::Reduce { count, root } => {
                let root = Rank::new(root.min(ranks - 1));
                vec![Op::Collective(Collective::Reduce {
                    count,
                    flops: 1e4,
                    root,
                    datatype: Datatype::DOUBLE,
                })]
            }
            Self::Beside { count } => return beside(count, f64::from(me + 1) * 1e5),
        };
        ops.into_iter().map(Item::Op).collect()
    }
}

fn wave(me: u32, ranks: u32, bytes: u64) -> Vec<Op> {
    let mut ops = Vec::new();
    ops.extend((me > 0).then(|| recv(me.saturating_sub(1), bytes)));
    ops.push(Op::Compute { flops: 1e5 * f64::from(me % 4 + 1) });
    ops.extend((me + 1 < ranks).then(|| send(me + 1, bytes)));
    ops
}

/// Returns a message between two ranks, as rank `me` sees it.
pub(crate) fn message(from: u32, to: u32, me: u32, tag: i32, bytes: u64) -> Vec<Item> {
    let (tag, bytes) = (Tag::new(tag), Bytes::new(bytes));
    let mut ops = Vec::new();
    ops.extend((from == me).then(|| Op::Send { peer: Some(Rank::new(to)), tag, bytes }));
    ops.extend((to == me).then(|| Op::Recv { peer: Some(Rank::new(from)), tag: Some(tag), bytes }));
    ops.into_iter().map(Item::Op).collect()
}

const TAG: Tag = Tag::new(1);

fn send(to: u32, bytes: u64) -> Op {
    Op::Send { peer: Some(Rank::new(to)), tag: TAG, bytes: Bytes::new(bytes) }
}

fn recv(from: u32, bytes: u64) -> Op {
    Op::Recv { peer: Some(Rank::new(from)), tag: Some(TAG), bytes: Bytes::new(bytes) }
}

fn isend(to: u32, bytes: u64) -> Op {
    Op::Isend { peer: Some(Rank::new(to)), tag: TAG, bytes: Bytes::new(bytes) }
}

fn irecv(from: u32, bytes: u64) -> Op {
    Op::Irecv { peer: Some(Rank::new(from)), tag: Some(TAG), bytes: Bytes::new(bytes) }
}

fn request(direction: Direction, peer: u32) -> Request {
    Request { direction, peer: Some(Rank::new(peer)), tag: Some(TAG) }
}

fn beside(count: u64, flops: f64) -> Vec<Item> {
    let name = Some(RequestName::new(7));
    let operation = Collective::Allreduce { count, flops: 2e4, datatype: Datatype::DOUBLE };
    let begin = CallOp::Collective { operation, communicator: CommId::WORLD, request: name };
    let wait = CallOp::Wait { request: RequestName::new(7) };
    [Op::Call(begin), Op::Compute { flops }, Op::Call(wait)].map(Item::Op).into()
}

/// Each rank sends a message in one iteration that the next rank receives in the following one; the receive may or may not be posted
/// before. Ranks compute unequal amounts.
pub(crate) fn ahead(ranks: u32, count: u64, bytes: u64, is_posted: bool) -> Vec<Vec<Item>> {
    let of_rank = |me: u32| {
        let (next, previous) = ((me + 1) % ranks, (me + ranks - 1) % ranks);
        let compute = Op::Compute { flops: 1e5 * f64::from(me % 3 + 1) };
        let sent = Op::Wait(request(Direction::Send, next));
        let received = Op::Wait(request(Direction::Receive, previous));
        let (start, body, end) = if is_posted {
            let posts = vec![irecv(previous, bytes), isend(next, bytes)];
            let waits = vec![received, sent];
            (posts.clone(), [waits.clone(), vec![compute], posts].concat(), waits)
        } else {
            let (take, give) = (vec![recv(previous, bytes), sent], vec![isend(next, bytes)]);
            (give.clone(), [take.clone(), vec![compute], give].concat(), take)
        };
        let acts = |ops: Vec<Op>| ops.into_iter().map(Item::Op).collect::<Vec<_>>();
        [acts(start), vec![Item::Loop { count, body: acts(body) }], acts(end)].concat()
    };
    (0..ranks).map(of_rank).collect()
}

/// Two ranks exchange messages, and one of them polls for its message.
pub(crate) fn with_tests(count: u64) -> Vec<Vec<Item>> {
    let of_rank = |me: u32| {
        let other = 1 - me;
        let mut ops =
            vec![irecv(other, 5000), Op::Compute { flops: 2e5 * f64::from(me + 1) }, isend(other, 5000)];
        ops.extend((me == 0).then(|| Op::Test(request(Direction::Receive, other))));
        ops.push(Op::WaitAll);
        vec![Item::Loop { count, body: ops.into_iter().map(Item::Op).collect() }]
    };
    (0..2).map(of_rank).collect()
}

/// Two ranks send to a third, which receives messages from any of them.
pub(crate) fn from_any(count: u64) -> Vec<Vec<Item>> {
    let from = RecvFrom::on_world(Peer::Any { recorded: None }, Some(TAG));
    let receive = Op::Call(CallOp::Recv { from, bytes: Bytes::new(500) });
    let sender = |flops| vec![Op::Compute { flops }, send(0, 500)];
    let bodies = [vec![receive.clone(), receive], sender(1e5), sender(2e5)];
    let looped = |body: Vec<Op>| vec![Item::Loop { count, body: body.into_iter().map(Item::Op).collect() }];
    bodies.into_iter().map(looped).collect()
}
