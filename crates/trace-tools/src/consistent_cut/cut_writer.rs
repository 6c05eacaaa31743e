//! Writer of the kept actions of a rank.

use std::io::{self, Write};

use pdes_core::{Bytes, Rank};
use rustc_hash::FxHashSet;
use trace_mmap::{
    CallOp, CommId, Op, Ops, Peer, RankTrace, RecvFrom, RequestName, SendMode, SendTo, Slot, Tag,
};

use super::RankCut;
use crate::dump::write_line;
use crate::line::TextLine;

/// Writer of the kept actions of a rank, without the dropped requests.
pub(super) struct CutWriter<'a> {
    rank: Rank,
    trace: &'a RankTrace,
    cut: &'a RankCut,
    /// Names of the dropped requests, to which later actions refer.
    dropped_names: FxHashSet<RequestName>,
}

impl<'a> CutWriter<'a> {
    pub(super) fn new(rank: Rank, trace: &'a RankTrace, rest: &'a RankCut) -> Self {
        Self { rank, trace, cut: rest, dropped_names: FxHashSet::default() }
    }

    /// Writes the text; returns the number of actions of the rank that are kept in it.
    pub(super) fn write(mut self, out: &mut impl Write) -> io::Result<u64> {
        let (rank, trace, mut kept) = (self.rank, self.trace, 0);
        let mut measured = trace.measured();
        for (at, op) in (0..self.cut.len).zip(Ops::new(trace)) {
            let mut time = measured.as_mut().and_then(Iterator::next).and_then(|(_, time)| time);
            let ops = self.kept_ops(at, op);
            kept += u64::from(!ops.is_empty());
            // If an action is written as two, the first gets its time.
            ops.iter().try_for_each(|op| write_line(out, TextLine { rank, op }, time.take()))?;
        }
        Ok(kept)
    }

    /// Returns the operations that replace an action: none, one or two.
    fn kept_ops(&mut self, at: u64, op: Op) -> Vec<Op> {
        let op = match op {
            Op::Call(mut start @ CallOp::Start { .. }) => {
                let is_left = start.retain_requests(|name| !self.is_dropped(at, name));
                return if is_left { vec![call(start)] } else { Vec::new() };
            }
            op => op,
        };
        if let Op::Call(call) = &op
            && let Some(name) = call.posted()
            && self.is_dropped(at, name)
        {
            self.dropped_names.insert(name);
            return Vec::new();
        }
        if self.cut.unreceived.contains(&at) {
            return buffered(op);
        }
        if self.dropped_names.is_empty() { vec![op] } else { self.without_dropped(op).into_iter().collect() }
    }

    fn is_dropped(&self, at: u64, name: RequestName) -> bool {
        // `Ops` names requests by their slots.
        self.cut.dropped.contains(&(at, Some(Slot::new(name.get()))))
    }

    /// Removes the names of dropped requests; returns `None` if no other request is named.
    fn without_dropped(&self, op: Op) -> Option<Op> {
        let Op::Call(mut call) = op else { return Some(op) };
        call.retain_requests(|name| !self.dropped_names.contains(&name)).then_some(Op::Call(call))
    }
}

fn call(op: CallOp) -> Op {
    Op::Call(op)
}

/// Makes a send buffered, so that it completes without a receive.
fn buffered(op: Op) -> Vec<Op> {
    let mode = SendMode::Buffered;
    match op {
        Op::Send { peer, tag, bytes } => {
            vec![call(CallOp::Send { mode, to: SendTo { peer, tag, communicator: CommId::WORLD }, bytes })]
        }
        Op::Isend { peer, tag, bytes } => {
            let to = SendTo { peer, tag, communicator: CommId::WORLD };
            vec![call(CallOp::Isend { mode, to, bytes, request: None })]
        }
        Op::SendRecv { to, send_bytes, from, recv_bytes } => {
            let tag = Tag::new(0);
            let to = SendTo { peer: to, tag, communicator: CommId::WORLD };
            let from = RecvFrom::on_world(from.map_or(Peer::ProcNull, Peer::Rank), Some(tag));
            buffered_send_and_recv(to, send_bytes, from, recv_bytes)
        }
        Op::Call(CallOp::Send { to, bytes, .. }) => vec![call(CallOp::Send { mode, to, bytes })],
        Op::Call(CallOp::Isend { to, bytes, request, .. }) => {
            vec![call(CallOp::Isend { mode, to, bytes, request })]
        }
        Op::Call(CallOp::SendRecv { to, send_bytes, from, recv_bytes }) => {
            buffered_send_and_recv(to, send_bytes, from, recv_bytes)
        }
        op => vec![op],
    }
}

fn buffered_send_and_recv(to: SendTo, send_bytes: Bytes, from: RecvFrom, recv_bytes: Bytes) -> Vec<Op> {
    let send = CallOp::Send { mode: SendMode::Buffered, to, bytes: send_bytes };
    vec![call(send), call(CallOp::Recv { from, bytes: recv_bytes })]
}
