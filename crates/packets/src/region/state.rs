//! The state of a region.

use netmodel::NetworkModel;
use pdes_core::{State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PacketRegion;
use crate::fabric::visit_by_message;

impl<T> State for PacketRegion<'_, '_, T>
where
    T: Copy + Send + State + Serialize + DeserializeOwned,
{
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            machine,
            index: _,
            local,
            fabric,
            leaving,
            arriving,
            unclaimed,
            begins,
            submitted,
            reports,
            outgoing,
            left,
            now,
            is_late,
            cut: _,
        } = self;
        visitor.context(machine.nodes.len() as u64);
        NetworkModel::visit(local, visitor);
        fabric.visit(visitor);
        for tags in [leaving, arriving] {
            visit_by_message(tags, visitor, |tag, visitor| tag.visit(visitor));
        }
        if !visitor.saves_whole(unclaimed) {
            visitor.compare(&unclaimed.len());
            for (&(mut message), count) in unclaimed {
                message.visit(visitor);
                visitor.compare(count);
            }
        }
        begins.visit(visitor);
        visitor.saved(submitted);
        reports.visit(visitor);
        // Messages are taken before a cut, and ends are told of.
        if !outgoing.is_empty() || !left.is_empty() {
            visitor.refuse();
        }
        if !visitor.is_observing() {
            now.visit(visitor);
        }
        is_late.visit(visitor);
    }
}
