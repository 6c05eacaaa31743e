//! The state of a network: packets on their way, queues, and messages that are being sent.

use netmodel::HostId;
use pdes_core::{State, StateVisitor};
use serde::{Serialize, de::DeserializeOwned};

use super::delivery::Partial;
use super::injection::{Answer, Injection, Resume, Stream};
use super::nodes::{IDLE, NodeQueue};
use super::ring::Ring;
use super::{Fabric, FabricCounts, Report, operations};
use crate::packet::{MessageKey, visit_busy_until, visit_picos};

/// Visits a map by messages, in their order.
pub(crate) fn visit_by_message<V: Serialize + DeserializeOwned>(
    map: &mut rustc_hash::FxHashMap<MessageKey, V>,
    visitor: &mut StateVisitor<'_>,
    mut visit: impl FnMut(&mut V, &mut StateVisitor<'_>),
) {
    if visitor.saves_whole(map) {
        return;
    }
    let mut entries: Vec<(MessageKey, &mut V)> =
        map.iter_mut().map(|(&message, value)| (message, value)).collect();
    entries.sort_unstable_by_key(|&(message, _)| message);
    visitor.compare(&entries.len());
    for (mut message, value) in entries {
        message.visit(visitor);
        visit(value, visitor);
    }
}

/// What is found by numbers that are reused, such as places of streams and of paths, is visited without them.
impl State for Fabric<'_, '_> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.visit_pairs(visitor);
        self.move_paths(u32::wrapping_sub);
        let Self {
            machine,
            region: _,
            first_node: _,
            first_port: _,
            first_input: _,
            hosts: _,
            origin,
            nodes: _,
            ports,
            rings,
            input_rates: _,
            occupied: _,
            arrivals: _,
            deadlines: _,
            injections,
            streams,
            free_streams,
            stream_places,
            routes: _,
            partial,
            combinations,
            reports: _,
            outgoing,
            counts: FabricCounts { packets, hops },
            recorded: _,
            loads,
            marks: _,
            is_plain: _,
            pacing,
            flowlets,
            buffers,
            order: _,
            injected: _,
            due: _,
        } = self;
        // Hosts follow behind time: what they forward has its instants since then.
        let horizon = visitor.now().as_picos().saturating_sub(machine.lookahead);
        ports.iter_mut().for_each(|port| visit_busy_until(&mut port.free_at, horizon, visitor));
        if let Some(buffers) = buffers {
            buffers.visit(ports, horizon, visitor);
        }
        for ring in rings {
            if !visitor.saves_whole(ring) {
                visitor.compare(&ring.len());
                ring.iter_mut().for_each(|packet| packet.visit(visitor));
            }
        }
        // Waits follow from those of the messages.
        for Injection { node: _, queue, free_at, resumes: _ } in injections {
            visit_busy_until(free_at, horizon, visitor);
            if !visitor.saves_whole(queue) {
                visitor.compare(&queue.len());
                queue.iter().for_each(|&place| streams[place as usize].message.visit(visitor));
            }
        }
        visitor.saved(free_streams);
        if !visitor.saves_whole(streams) {
            visit_by_message(stream_places, visitor, |&mut place, visitor| {
                streams[place as usize].visit(visitor);
            });
        } else {
            visitor.saved(stream_places);
        }
        visit_by_message(partial, visitor, |Partial { packets, all, latest }, visitor| {
            visitor.plain(packets);
            visitor.plain(all);
            visit_picos(latest, visitor);
        });
        operations::visit(combinations, visitor);
        if let Some(pacing) = pacing {
            pacing.visit(horizon, visitor);
        }
        if let Some(flowlets) = flowlets {
            flowlets.visit(horizon, visitor);
        }
        // Messages are taken before a cut.
        if !outgoing.is_empty() {
            visitor.refuse();
        }
        visitor.context(loads.is_some());
        visitor.saved(loads);
        // After a cut, spans are counted from there.
        visitor.saved(origin);
        visitor.counter(packets);
        visitor.counter(hops);
        self.move_paths(u32::wrapping_add);
        if visitor.is_loading() || visitor.is_repeating() {
            self.set_queues();
        }
    }
}

impl Fabric<'_, '_> {
    /// Saves or loads the pairs of hosts. They make no difference: numbers of messages are names.
    fn visit_pairs(&mut self, visitor: &mut StateVisitor<'_>) {
        let mut pairs: Vec<(HostId, HostId, u32)> =
            self.routes.pairs.iter().map(|(&(src, dst), pair)| (src, dst, pair.messages)).collect();
        pairs.sort_unstable();
        visitor.saved(&mut pairs);
        if visitor.is_loading() {
            let hosts = self.machine.homes.len();
            for (src, dst, messages) in pairs {
                let are_hosts = src.index() < hosts && dst.index() < hosts;
                match are_hosts.then(|| self.routes.pair(self.machine, self.first_port, (src, dst))) {
                    Some(Ok(pair)) => pair.messages = messages,
                    _ => return visitor.refuse(),
                }
            }
        }
    }

    /// Moves the paths of all packets by the places of the first ports of their routes.
    fn move_paths(&mut self, by: impl Fn(u32, u32) -> u32) {
        let routes = &self.routes;
        let first = |MessageKey { src, dst, .. }| routes.pairs.get(&(src, dst)).map_or(0, |pair| pair.path);
        let waiting = self.buffers.iter_mut().flat_map(|buffers| buffers.packets());
        for packet in self.rings.iter_mut().flat_map(Ring::iter_mut).chain(waiting) {
            packet.path = by(packet.path, first(packet.message));
        }
        for &place in self.stream_places.values() {
            let Stream { message, path, .. } = &mut self.streams[place as usize];
            *path = by(*path, first(*message));
        }
    }

    /// Finds what switches and hosts have to do.
    fn set_queues(&mut self) {
        (self.arrivals, self.deadlines) = (NodeQueue::default(), NodeQueue::default());
        self.occupied.fill(0);
        self.injections.iter_mut().for_each(|injection| injection.resumes.clear());
        for &place in self.stream_places.values() {
            let &Stream { message, port, waits, .. } = &self.streams[place as usize];
            if let Some(at) = waits.flatten() {
                self.injections[port as usize].add_resume(Resume { at, message, place });
            }
        }
        if let Some(buffers) = &mut self.buffers {
            buffers.set_wakes(&self.nodes, self.injections.len());
        }
        for node in 0..self.nodes.len() as u32 {
            let entry = &mut self.nodes[node as usize];
            entry.next = IDLE;
            let (first_word, first_input) = (entry.first_word, entry.first_input);
            let mut next = IDLE;
            for input in 0..entry.inputs {
                if let Some(packet) = self.rings[(first_input + input) as usize].front() {
                    self.occupied[(first_word + input / u64::BITS) as usize] |= 1 << (input % u64::BITS);
                    next = next.min(packet.at);
                }
            }
            if node < self.hosts {
                self.set_deadline(node);
            } else {
                if let Some(buffers) = &mut self.buffers {
                    next = next.min(buffers.next_wake(node));
                }
                self.arrivals.set(&mut self.nodes, node, next);
            }
        }
    }
}

impl Stream {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self {
            message,
            port,
            path,
            packets,
            sent,
            last_bytes,
            limit,
            back,
            answers,
            returned,
            acknowledged,
            recycled,
            control,
            waits,
        } = self;
        message.visit(visitor);
        [port, path, packets, sent, last_bytes, answers, returned]
            .into_iter()
            .for_each(|part| visitor.plain(part));
        visitor.plain(limit);
        visitor.plain(back);
        visitor.compare(&acknowledged.len());
        for Answer { at, is_marked, entropy } in acknowledged {
            visit_picos(at, visitor);
            visitor.compare(is_marked);
            visitor.compare(entropy);
        }
        visitor.compare(recycled);
        control.iter_mut().for_each(|control| control.visit(visitor));
        visitor.compare(&waits.map(|until| until.is_some()));
        waits.iter_mut().flatten().for_each(|until| visit_picos(until, visitor));
    }
}

impl State for Report {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        if !visitor.saves_whole(self) {
            let Self { at, kind, message } = self;
            visit_picos(at, visitor);
            visitor.plain(kind);
            message.visit(visitor);
        }
    }
}
