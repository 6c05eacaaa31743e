//! Credits of receivers.
//!
//! A message sends the limit of the loop unasked, and each further packet for a credit. The receiver counts the time that its links need
//! for all packets it has let others send, those of first windows as soon as a message shows up. It hands out a credit when these would
//! end within the round trip of the message that is next in turn: the packet then arrives as the link becomes free, and what first windows
//! have piled up before the receiver drains. A message holds at most its limit of credits for packets that have not arrived, so that a
//! sender who is busy elsewhere hoards none.

use std::collections::VecDeque;

use netmodel::RouteError;
use pdes_core::StateVisitor;
use rustc_hash::FxHashMap;

use super::nodes::Node;
use super::state::visit_by_message;
use super::{Answer, Fabric, Report, ReportKind, transmission};
use crate::machine::PacketMachine;
use crate::packet::{MessageKey, visit_busy_until, visit_picos};

/// Credits that the receivers of a region hand out.
#[derive(Debug)]
pub(super) struct Pacing {
    /// By hosts of the region.
    receivers: Vec<Receiver>,
    /// Messages of several packets that are to arrive.
    grants: FxHashMap<MessageKey, Grant>,
}

#[derive(Debug)]
struct Receiver {
    /// Time of a full packet on all its links together \[ps\].
    packet_time: u64,
    /// Instant until which its links have to do with what may be sent \[ps\].
    busy_until: u64,
    /// Messages that may have a credit, the next one first.
    queue: VecDeque<MessageKey>,
    /// Instant at which it hands out the next credit, if that is known \[ps\].
    next: Option<u64>,
}

/// The packets of a message.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Grant {
    packets: u32,
    /// Those that may be sent.
    granted: u32,
    arrived: u32,
    is_queued: bool,
}

impl Grant {
    /// Returns whether the message can use a credit; it holds at most `limit` of them.
    fn wants_credit(&self, limit: Option<u32>) -> bool {
        self.granted < self.packets && limit.is_none_or(|limit| self.granted - self.arrived < limit)
    }
}

impl Pacing {
    /// Makes the pacing of hosts. `input_rates` has the picoseconds per byte of each input port.
    pub(super) fn new(machine: &PacketMachine<'_>, hosts: &[Node], input_rates: &[f64]) -> Self {
        let receiver = |node: &Node| {
            let inputs = node.first_input as usize..(node.first_input + node.inputs) as usize;
            let bytes_per_pico: f64 = input_rates[inputs].iter().map(|rate| rate.recip()).sum();
            let packet_time = transmission(machine.packet_size(), bytes_per_pico.recip());
            Receiver { packet_time, busy_until: 0, queue: VecDeque::new(), next: None }
        };
        Self { receivers: hosts.iter().map(receiver).collect(), grants: FxHashMap::default() }
    }

    pub(super) fn visit(&mut self, horizon: u64, visitor: &mut StateVisitor<'_>) {
        let Self { receivers, grants } = self;
        for Receiver { packet_time: _, busy_until, queue, next } in receivers {
            visit_busy_until(busy_until, horizon, visitor);
            if !visitor.saves_whole(queue) {
                visitor.compare(&queue.len());
                queue.iter_mut().for_each(|message| message.visit(visitor));
            }
            if !visitor.saves_whole(next) {
                visitor.compare(&next.is_some());
                next.iter_mut().for_each(|next| visit_picos(next, visitor));
            }
        }
        visit_by_message(grants, visitor, |Grant { packets, granted, arrived, is_queued }, visitor| {
            [packets, granted, arrived].into_iter().for_each(|part| visitor.plain(part));
            visitor.plain(is_queued);
        });
    }
}

impl Fabric<'_, '_> {
    /// Lets a host of the region expect the packets of a message.
    ///
    /// # Errors
    /// If there is no route, which its sender has found.
    pub(crate) fn expect(&mut self, message: MessageKey, packets: u32) -> Result<(), RouteError> {
        let Some(pacing) = &mut self.pacing else { return Ok(()) };
        if packets > 1 {
            let pair = self.routes.pair(self.machine, self.first_port, (message.src, message.dst))?;
            let granted = pair.limit.map_or(packets, |limit| limit.min(packets));
            pacing.grants.insert(message, Grant { packets, granted, arrived: 0, is_queued: false });
        }
        Ok(())
    }

    /// Takes in that a packet of a message has arrived now.
    pub(crate) fn count_arrival(&mut self, at: u64, message: MessageKey) {
        let place = self.node_of(message.dst);
        let Some(Pacing { receivers, grants }) = self.pacing.as_deref_mut() else { return };
        let Receiver { packet_time, busy_until, queue, .. } = &mut receivers[place as usize];
        // Links have been busy with this packet until now.
        let mut add = |packets: u32| {
            let begin = at.saturating_sub(*packet_time).max(*busy_until);
            *busy_until = begin.saturating_add(u64::from(packets).saturating_mul(*packet_time));
        };
        let Some(grant) = grants.get_mut(&message) else { return add(1) };
        if grant.arrived == 0 {
            add(grant.granted);
        }
        grant.arrived += 1;
        if grant.arrived == grant.packets {
            grants.remove(&message);
            return;
        }
        let limit = self.routes.known_pair(message).limit;
        if !grant.is_queued && grant.wants_credit(limit) {
            grant.is_queued = true;
            queue.push_back(message);
        }
        self.grant(at, place);
    }

    /// Hands out the credits for which the receiver of a message has waited until now.
    pub(crate) fn grant_again(&mut self, at: u64, message: MessageKey) {
        let place = self.node_of(message.dst);
        if let Some(pacing) = &mut self.pacing {
            pacing.receivers[place as usize].next = None;
        }
        self.grant(at, place);
    }

    /// Hands out the credits of a host that it can give now.
    fn grant(&mut self, at: u64, place: u32) {
        let Some(mut pacing) = self.pacing.take() else { return };
        let Pacing { receivers, grants } = &mut *pacing;
        let Receiver { packet_time, busy_until, queue, next } = &mut receivers[place as usize];
        while let Some(&message) = queue.front() {
            let pair = self.routes.known_pair(message);
            let ready = busy_until.saturating_sub(pair.round_trip);
            if ready > at {
                if next.is_none() {
                    *next = Some(ready);
                    self.reports.push(Report { at: ready, message, kind: ReportKind::Granting });
                }
                break;
            }
            let grant = grants.get_mut(&message).expect("a message waits until all of it may be sent");
            grant.granted += 1;
            grant.is_queued = grant.wants_credit(pair.limit);
            let waits_again = grant.is_queued;
            queue.pop_front();
            if waits_again {
                queue.push_back(message);
            }
            *busy_until = at.max(*busy_until).saturating_add(*packet_time);
            self.answer(message, Answer { at, is_marked: false, entropy: 0 });
        }
        self.pacing = Some(pacing);
    }
}
