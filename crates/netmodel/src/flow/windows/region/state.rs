//! The state of regions and subnetworks between two windows.

use std::sync::atomic::Ordering;

use pdes_core::{State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::WindowRegion;
use crate::Message;
use crate::flow::pending::MessageOrder;

/// The region, and the subnetwork of its number, at the begin of a window. All regions together tell where the parts of the network are.
impl<T: Copy + State + Serialize + DeserializeOwned> State for WindowRegion<'_, '_, T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            machine,
            index,
            local,
            links: _,
            starting,
            first_begin,
            arrivals,
            arrived,
            now,
            is_late,
            origin,
            messages: _,
        } = self;
        // Stable: what has no order of its own stays in the order in which it was sent.
        starting.sort_by_key(|flow| (flow.begin, MessageOrder::of(&flow.message)));
        arrivals.drain(..std::mem::take(arrived));
        State::visit(local, visitor);
        starting.visit(visitor);
        arrivals.visit(visitor);
        visitor.time_from(visitor.now(), now);
        is_late.visit(visitor);
        // After a cut, windows are counted from there.
        visitor.saved(origin);
        *first_begin = starting.first().map(|flow| flow.begin);
        let subnetwork = &machine.subnetworks[*index as usize];
        let mut network = subnetwork.network.lock();
        State::visit(&mut *network, visitor);
        if visitor.is_refused() || visitor.is_saving() || visitor.is_observing() {
            return;
        }
        subnetwork.update(&mut network);
        if visitor.is_loading() {
            // What was saved in windows has to go on in windows.
            machine.is_on_trial.store(false, Ordering::Relaxed);
            for route in network.routes_in_use() {
                machine.components.begin_flow(network.links_of(route), *index);
            }
            for place in 0..starting.len() {
                let Message { src, dst, .. } = self.starting[place].message;
                match self.local.route(src, dst) {
                    Ok(route) => self.starting[place].links = self.links_of(route),
                    Err(_) => visitor.refuse(),
                }
            }
        }
    }
}
