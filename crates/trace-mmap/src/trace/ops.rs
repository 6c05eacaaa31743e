//! Operations of a rank in terms of the program: the inverse of compilation.

mod call;

pub(crate) use call::ToNamed;

use pdes_core::{Bytes, Rank};

use crate::action::Action;
use crate::call::{Call, CallOp, SendMode, Source};
use crate::channel::{Slot, Tag};
use crate::folded::State;
use crate::structure::{Direction, Op, Request};
use crate::trace::{Cursor, RankTrace};

/// Iterator over the operations of a rank in terms of the program: with ranks and tags instead of indices.
///
/// Read as a trace, these operations yield the same actions again. Tag and size of messages to and from `MPI_PROC_NULL` are
/// lost; tags of such requests are chosen so that each request can be waited for unambiguously. If the rank has named
/// requests, all its requests are named by their slots.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    cursor: Cursor<'a>,
    decoder: OpDecoder<'a>,
}

impl<'a> Ops<'a> {
    /// Starts at the first operation of a rank.
    pub fn new(rank: &'a RankTrace) -> Self {
        Self { cursor: rank.cursor(), decoder: OpDecoder::new(rank) }
    }
}

impl Iterator for Ops<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let action = self.cursor.next()?;
        Some(self.decoder.decode(action))
    }
}

/// Decoder of the actions of a rank, which it takes in order, to [operations](Ops).
#[derive(Clone, Debug)]
pub struct OpDecoder<'a> {
    rank: &'a RankTrace,
    /// Last request posted to each slot.
    last_requests: Vec<Option<Request>>,
}

impl<'a> OpDecoder<'a> {
    /// Starts before the first action of a rank.
    pub fn new(rank: &'a RankTrace) -> Self {
        Self { rank, last_requests: vec![None; rank.slots() as usize] }
    }

    /// Describes the state.
    pub fn state(&self, state: &mut State<'_>) {
        for request in &self.last_requests {
            let Some(Request { direction, peer, tag }) = request else {
                state.word(u64::MAX);
                continue;
            };
            let peer = peer.map_or(u64::MAX, |rank| rank.get().into());
            [*direction as u64, peer, tag.map_or(u64::MAX, |tag| tag.get() as u64)]
                .into_iter()
                .for_each(|word| state.word(word));
        }
    }

    fn post(&mut self, slot: Slot, direction: Direction, peer: Option<Rank>, tag: Option<Tag>) {
        self.last_requests[slot.index()] = Some(Request { direction, peer, tag });
    }

    /// Returns the request in a slot. A slot that was never posted to, which only a forged archive waits for, yields a request
    /// that is never posted.
    fn request(&self, slot: Slot) -> Request {
        let nobody = Request { direction: Direction::Receive, peer: None, tag: None };
        self.last_requests[slot.index()].unwrap_or(nobody)
    }

    fn null(&mut self, slot: Option<Slot>) -> Op {
        let (peer, bytes) = (None, Bytes::ZERO);
        match slot {
            None => Op::Send { peer, tag: Tag::new(0), bytes },
            Some(slot) => {
                let tag = Tag::new(slot.get() as i32);
                self.post(slot, Direction::Send, peer, Some(tag));
                Op::Isend { peer, tag, bytes }
            }
        }
    }

    /// Decodes the next action.
    pub fn decode(&mut self, action: Action) -> Op {
        let rank = self.rank;
        match action {
            Action::Init => Op::Init,
            Action::Finalize => Op::Finalize,
            Action::Communicator => Op::Communicator,
            Action::Location(id) => location(rank.location(id)),
            Action::Compute { flops } => Op::Compute { flops },
            Action::Sleep { seconds } => Op::Sleep { seconds },
            Action::Send { to, bytes } => {
                let channel = rank.outgoing_channel(to);
                Op::Send { peer: Some(channel.peer), tag: channel.tag, bytes }
            }
            Action::Isend { to, bytes, slot } if rank.has_named_requests => {
                Op::Call(Call::Isend { mode: SendMode::Standard, to: Some(to), bytes, slot }.to_op(rank))
            }
            Action::Isend { to, bytes, slot } => {
                let channel = rank.outgoing_channel(to);
                self.post(slot, Direction::Send, Some(channel.peer), Some(channel.tag));
                Op::Isend { peer: Some(channel.peer), tag: channel.tag, bytes }
            }
            Action::Recv { from, bytes } => {
                let channel = rank.incoming_channel(from);
                Op::Recv { peer: Some(channel.peer), tag: channel.tag, bytes }
            }
            Action::Irecv { from, bytes, slot } if rank.has_named_requests => {
                Op::Call(Call::Irecv { from: Source::Rank(from), bytes, slot }.to_op(rank))
            }
            Action::Irecv { from, bytes, slot } => {
                let channel = rank.incoming_channel(from);
                self.post(slot, Direction::Receive, Some(channel.peer), channel.tag);
                Op::Irecv { peer: Some(channel.peer), tag: channel.tag, bytes }
            }
            Action::ProcNull { slot: Some(slot) } if rank.has_named_requests => {
                let (mode, bytes) = (SendMode::Standard, Bytes::ZERO);
                Op::Call(Call::Isend { mode, to: None, bytes, slot }.to_op(rank))
            }
            Action::ProcNull { slot } => self.null(slot),
            Action::SendRecv(id) => {
                let both = rank.send_recv(id);
                let to = both.to.map(|to| rank.outgoing_channel(to).peer);
                let from = both.from.map(|from| rank.incoming_channel(from).peer);
                Op::SendRecv { to, send_bytes: both.send_bytes, from, recv_bytes: both.recv_bytes }
            }
            Action::Wait { slot } if rank.has_named_requests => {
                Op::Call(CallOp::Wait { request: slot.to_named(rank) })
            }
            Action::Test { slot } if rank.has_named_requests => {
                Op::Call(CallOp::Test { request: slot.to_named(rank), done: None })
            }
            Action::Wait { slot } => Op::Wait(self.request(slot)),
            Action::Test { slot } => Op::Test(self.request(slot)),
            Action::WaitAll => Op::WaitAll,
            Action::Collective(id) => Op::Collective(rank.collective(id).clone()),
            Action::Call(id) => self.call(rank.call(id).to_op(rank)),
        }
    }
}

/// Splits `file:line`. Without a valid line number, as in a forged archive, the whole text is the file and the line is 0.
fn location(name: &str) -> Op {
    let parts = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line) = parts.unwrap_or((name, 0));
    Op::Location { file: file.to_owned(), line }
}
