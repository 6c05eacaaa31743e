//! Fields of calls in terms of the program.

use std::sync::Arc;

use pdes_core::Bytes;

use crate::action::CollectiveId;
use crate::call::{CallOp, FileName, FileView, Source};
use crate::channel::{InIdx, OutIdx, Slot, Tag};
use crate::collective::Collective;
use crate::communicator::{CommId, CommIdx, Group};
use crate::structure::{Direction, Op, Peer, RecvFrom, RequestName, SendTo};
use crate::trace::{OpDecoder, RankTrace};

/// A field of the indexed form of calls, which becomes a field `N` of the form in terms of the program.
pub(crate) trait ToNamed<N> {
    fn to_named(&self, rank: &RankTrace) -> N;
}

impl ToNamed<SendTo> for Option<OutIdx> {
    fn to_named(&self, rank: &RankTrace) -> SendTo {
        match self.map(|to| *rank.outgoing_channel(to)) {
            Some(channel) => {
                let communicator = rank.communicator_id(channel.communicator);
                SendTo { peer: Some(channel.peer), tag: channel.tag, communicator }
            }
            None => SendTo { peer: None, tag: Tag::new(0), communicator: CommId::WORLD },
        }
    }
}

impl ToNamed<RecvFrom> for InIdx {
    fn to_named(&self, rank: &RankTrace) -> RecvFrom {
        let channel = rank.incoming_channel(*self);
        let communicator = rank.communicator_id(channel.communicator);
        RecvFrom { peer: Peer::Rank(channel.peer), tag: channel.tag, communicator }
    }
}

impl ToNamed<RecvFrom> for Source {
    fn to_named(&self, rank: &RankTrace) -> RecvFrom {
        match *self {
            Source::ProcNull => RecvFrom::on_world(Peer::ProcNull, None),
            Source::Rank(from) => from.to_named(rank),
            Source::Any { tag, communicator, recorded } => RecvFrom {
                peer: Peer::Any { recorded },
                tag,
                communicator: rank.communicator_id(communicator),
            },
        }
    }
}

impl ToNamed<RequestName> for Slot {
    fn to_named(&self, _: &RankTrace) -> RequestName {
        RequestName::new(self.get())
    }
}

impl ToNamed<Option<RequestName>> for Slot {
    fn to_named(&self, rank: &RankTrace) -> Option<RequestName> {
        Some(self.to_named(rank))
    }
}

impl ToNamed<Option<RequestName>> for Option<Slot> {
    fn to_named(&self, rank: &RankTrace) -> Option<RequestName> {
        self.map(|slot| slot.to_named(rank))
    }
}

impl ToNamed<Vec<RequestName>> for Box<[Slot]> {
    fn to_named(&self, rank: &RankTrace) -> Vec<RequestName> {
        self.iter().map(|slot| slot.to_named(rank)).collect()
    }
}

impl ToNamed<Option<bool>> for bool {
    fn to_named(&self, _: &RankTrace) -> Option<bool> {
        Some(*self)
    }
}

impl ToNamed<FileName> for FileName {
    fn to_named(&self, _: &RankTrace) -> FileName {
        self.clone()
    }
}

impl ToNamed<FileView> for FileView {
    fn to_named(&self, _: &RankTrace) -> FileView {
        self.clone()
    }
}

impl ToNamed<CommId> for CommIdx {
    fn to_named(&self, rank: &RankTrace) -> CommId {
        rank.communicator_id(*self)
    }
}

impl ToNamed<Option<(CommId, Arc<Group>)>> for Option<CommIdx> {
    fn to_named(&self, rank: &RankTrace) -> Option<(CommId, Arc<Group>)> {
        let new = self.map(|new| rank.communicator(new));
        new.map(|new| (new.id, Arc::clone(&new.group)))
    }
}

impl ToNamed<Collective> for CollectiveId {
    fn to_named(&self, rank: &RankTrace) -> Collective {
        rank.collective(*self).clone()
    }
}

impl ToNamed<Vec<(u32, Bytes)>> for Box<[(u32, Bytes)]> {
    fn to_named(&self, _: &RankTrace) -> Vec<(u32, Bytes)> {
        self.to_vec()
    }
}

impl RankTrace {
    /// Returns the number of a communicator in the program.
    ///
    /// # Panics
    /// Panics if the rank has no such communicator.
    pub fn communicator_id(&self, communicator: CommIdx) -> CommId {
        self.communicator(communicator).id
    }
}

impl OpDecoder<'_> {
    /// Yields a call. Where requests have no names, that which the call posts is recorded, and left out of the call.
    pub(super) fn call(&mut self, mut op: CallOp) -> Op {
        let (request, direction, peer, tag) = match &mut op {
            _ if self.rank.has_named_requests => return Op::Call(op),
            CallOp::Isend { to, request, .. } => (request, Direction::Send, to.peer, Some(to.tag)),
            CallOp::Irecv { from, request, .. } => match from.peer {
                Peer::Any { .. } => (request, Direction::ReceiveFromAny, None, from.tag),
                Peer::Rank(peer) => (request, Direction::Receive, Some(peer), from.tag),
                Peer::ProcNull => (request, Direction::Receive, None, from.tag),
            },
            _ => return Op::Call(op),
        };
        if let Some(request) = request.take() {
            self.post(Slot::new(request.get()), direction, peer, tag);
        }
        Op::Call(op)
    }
}
