//! The state of a region.

use netmodel::NetworkModel;
use pdes_core::{State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Content, PacketMessage, PacketRegion};
use crate::fabric::visit_by_message;

impl<T> State for PacketRegion<'_, '_, T>
where
    T: Copy + State + Serialize + DeserializeOwned,
{
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            machine,
            index: _,
            local,
            fabric,
            leaving,
            arriving,
            begins,
            submitted,
            reports,
            outgoing,
            local_done: _,
            now,
            is_late,
            origin,
        } = self;
        visitor.context(machine.nodes.len() as u64);
        NetworkModel::visit(local, visitor);
        fabric.visit(visitor);
        for tags in [leaving, arriving] {
            visit_by_message(tags, visitor, |tag, visitor| tag.visit(visitor));
        }
        begins.visit(visitor);
        visitor.saved(submitted);
        reports.visit(visitor);
        if !visitor.saves_whole(outgoing) {
            visitor.compare(&outgoing.len());
            for (region, effect, PacketMessage(content)) in outgoing {
                visitor.plain(region);
                effect.visit(visitor);
                content.visit(visitor);
            }
        }
        if !visitor.is_observing() {
            now.visit(visitor);
        }
        is_late.visit(visitor);
        // After a cut, spans are counted from there.
        visitor.saved(origin);
    }
}

impl<T: Copy + State + Serialize + DeserializeOwned> Content<T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        match self {
            Self::Begin(message) => {
                visitor.variant(0);
                message.visit(visitor);
            }
            Self::Announcement(message, tag) => {
                visitor.variant(1);
                message.visit(visitor);
                tag.visit(visitor);
            }
            // The network keeps its messages itself until they are taken.
            Self::Fabric(_) => visitor.refuse(),
        }
    }
}
