//! Messages between two ranks, and their completion.

use pdes_core::{Bytes, Rank};
use trace_mmap::{Action, Call, CommIdx, SendMode, Slot, Source, Tag};

use super::{Awaited, RankSource};
use crate::layout::{ANY, NONE, Operation, OperationKind, UNASKED};

impl RankSource<'_> {
    pub(super) fn source(&mut self, operation: Operation) -> Result<(Source, CommIdx), String> {
        let on = self.communicator(operation)?;
        let tag = (operation.source_tag != ANY).then(|| Tag::new(operation.source_tag));
        let source = match operation.source {
            ANY => Source::Any { tag, communicator: on, recorded: None },
            source => Source::Rank(self.writer.incoming(self.peer(source)?, tag, on)),
        };
        Ok((source, on))
    }

    /// Hands the data of a message over.
    pub(super) fn put(&mut self, (peer, tag, on): (Rank, i32, CommIdx), operation: Operation) {
        let number = self.sent.entry((peer, tag, on)).or_default();
        let key = (self.me, tag, self.trace.communicator(on).id, *number);
        *number += 1;
        self.run.exchange.put(peer, key, operation.block, operation);
    }

    pub(super) fn send(&mut self, operation: Operation) -> Result<Action, String> {
        let Operation { peer, tag, request, bytes, .. } = operation;
        let (on, peer, mode) = (self.communicator(operation)?, self.peer(peer)?, mode(operation.flags)?);
        self.put((peer, tag, on), operation);
        let (to, bytes) = (self.writer.outgoing(peer, Tag::new(tag), on), Bytes::new(bytes));
        if request == NONE {
            return Ok(match (mode, on) {
                (SendMode::Standard, CommIdx::WORLD) => Action::Send { to, bytes },
                (mode, _) => self.call(Call::Send { mode, to: Some(to), bytes }),
            });
        }
        self.receives.remove(&request);
        self.requests.insert(request);
        let slot = self.slot(request);
        Ok(match (mode, on) {
            (SendMode::Standard, CommIdx::WORLD) => Action::Isend { to, bytes, slot },
            (mode, _) => self.call(Call::Isend { mode, to: Some(to), bytes, slot }),
        })
    }

    pub(super) fn receive(&mut self, operation: Operation) -> Result<Action, String> {
        let (from, on) = self.source(operation)?;
        let bytes = Bytes::new(operation.source_bytes);
        if operation.request == NONE {
            self.awaited = Awaited::Message(on);
            return Ok(self.call(Call::Recv { from, bytes }));
        }
        self.requests.insert(operation.request);
        self.receives.insert(operation.request, on);
        let slot = self.slot(operation.request);
        Ok(self.call(Call::Irecv { from, bytes, slot }))
    }

    pub(super) fn send_receive(&mut self, operation: Operation) -> Result<Action, String> {
        let Operation { peer, tag, bytes, source_bytes, .. } = operation;
        let (peer, (from, on)) = (self.peer(peer)?, self.source(operation)?);
        self.put((peer, tag, on), operation);
        self.awaited = Awaited::Message(on);
        let to = Some(self.writer.outgoing(peer, Tag::new(tag), on));
        let (send_bytes, recv_bytes) = (Bytes::new(bytes), Bytes::new(source_bytes));
        // In a trace, an exchange of a rank with itself on the world with tag 0 is a copy, which takes no time.
        if (peer, operation.source, on) == (self.me, self.me.get() as i32, CommIdx::WORLD) && tag == 0 {
            let send = self.call(Call::Send { mode: SendMode::Buffered, to, bytes: send_bytes });
            self.actions.push_back(send);
            return Ok(self.call(Call::Recv { from, bytes: recv_bytes }));
        }
        Ok(self.call(Call::SendRecv { to, send_bytes, from, recv_bytes }))
    }

    pub(super) fn complete_listed(
        &mut self,
        kind: OperationKind,
        operation: Operation,
        is_test: bool,
    ) -> Action {
        let is_unasked = is_test && operation.flags == UNASKED;
        let requests = match is_unasked {
            true => vec![operation.request],
            false => self.run.memory.list(self.me.get(), operation.count),
        };
        let slots: Box<[Slot]> = requests.iter().copied().map(Slot::new).collect();
        // Which one is to be found: any of them stands for one.
        let first = slots.first().copied();
        let call = match kind {
            OperationKind::Waitany => Call::Waitany { slots, done: first },
            OperationKind::Waitsome => Call::Waitsome { slots, done: first.into_iter().collect() },
            OperationKind::Testall => Call::Testall { slots, done: false },
            OperationKind::Testany => Call::Testany { slots, done: None },
            OperationKind::Testsome => Call::Testsome { slots, done: [].into() },
            _ => Call::Waitall { slots },
        };
        let awaits_all = matches!(call, Call::Waitall { .. });
        self.awaited = Awaited::Completed { requests, awaits_all, is_test, is_unasked };
        self.call(call)
    }
}

pub(super) fn mode(number: u32) -> Result<SendMode, String> {
    SendMode::ALL
        .get(number as usize)
        .copied()
        .ok_or_else(|| format!("it sends in a mode {number}, which there is not"))
}
