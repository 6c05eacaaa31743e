//! Event handling of the windowed engine: processes the events of hosts and their effects on shared state.

use std::ops::Range;

use super::super::Outcome;
use super::super::dependencies::{DependencyTracker, Freed, ReadyOperation};
use super::super::lane::{LaneKind, LanePlan};
use super::super::matching::{Leftovers, Matching};
use super::super::pool::{Pool, Slot};
use super::event_log::{EventLog, PartitionLog, stamp};
use super::host::{Host, lane_kind};
use crate::introsort;
use crate::parameters::{Costs, LogGops};
use crate::schedule::Tables;

/// State of a partition that the event handling of all its hosts shares.
pub(super) struct EventHandler<'a> {
    plan: &'a LanePlan,
    program: DependencyTracker<'a>,
    pub(super) costs: Costs,
    pub(super) matching: Matching<'a>,
    pub(super) pool: Pool,
    pub(super) records: PartitionLog<'a>,
    /// Messages that the current host has sent in its turn.
    pub(super) sent: Vec<u32>,
    /// Time, stamp and slot of each message that arrives at a host in a window; a buffer for sorting.
    arrivals: Vec<(u64, u64, u32)>,
    freed: Vec<Freed>,
    /// Operations that the end of a send has freed at its host.
    freed_elsewhere: Vec<Freed>,
    /// Number of rendezvous messages (above S) that are sent and not received.
    pub(super) pending_rendezvous: u64,
    /// Send at another host that the last event has ended.
    pub(super) ended_send: Option<EndedSend>,
    outcome: Outcome,
}

/// A rendezvous send that has ended, before its host is updated.
pub(super) struct EndedSend {
    pub(super) host: u32,
    /// Time of its end \[ps\].
    time: u64,
    /// Lane of sends whose interface is blocked until then, if the host has such a lane.
    lane: Option<usize>,
    /// Record of the event, and number of the first operation that it creates at the sender.
    record: u32,
    number: u32,
}

impl<'a> EventHandler<'a> {
    /// Makes the state of one partition of a log, with these ranks; counts dependencies on up to `threads` threads.
    pub(super) fn new(
        tables: Tables<'a>,
        plan: &'a LanePlan,
        parameters: LogGops,
        (log, part): (&'a EventLog, usize),
        ranks: Range<u32>,
        threads: usize,
    ) -> Self {
        Self {
            plan,
            program: DependencyTracker::new(tables, &ranks, threads),
            costs: Costs::new(parameters),
            matching: Matching::new(tables, ranks),
            pool: Pool::new(),
            records: PartitionLog::new(log, part),
            sent: Vec::new(),
            arrivals: Vec::new(),
            freed: Vec::new(),
            freed_elsewhere: Vec::new(),
            pending_rendezvous: 0,
            ended_send: None,
            outcome: Outcome::default(),
        }
    }

    /// Adds the operations of a host without dependencies to its lanes.
    pub(super) fn release_roots<const LANES: usize>(&mut self, own: &mut Host<LANES>, host: u32) {
        self.program.push_roots(host, &mut self.freed);
        let record = self.records.add_seed(host);
        self.release_freed(own, record, 0);
    }

    /// Adds the results and the unmatched receives and messages; returns the number of operations that have started.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Leftovers) -> u64 {
        outcome.messages += self.outcome.messages;
        outcome.message_bytes += self.outcome.message_bytes;
        outcome.protocol_mismatches += self.outcome.protocol_mismatches;
        self.matching.add_unmatched(&self.pool, left);
        self.program.started_count
    }

    /// Reads the memory that a slot of the host with first operation `first` will need; returns a value that depends on
    /// it.
    #[inline]
    pub(super) fn touch_slot(&self, first: u32, slot_id: u32) -> u32 {
        let slot = &self.pool[slot_id];
        self.program.touch_successors(first, slot)
    }

    /// Returns the destination of a slot's channel if it is a host of this partition.
    #[inline]
    pub(super) fn local_destination(&self, slot_id: u32) -> Option<u32> {
        self.matching.local_destination(self.pool[slot_id].channel)
    }

    /// Moves messages that arrive before `end` to their lanes; a single message at a host with empty lanes is returned
    /// instead.
    #[inline]
    fn take_arrivals<const LANES: usize>(&mut self, own: &mut Host<LANES>, end: u64) -> Option<u32> {
        if own.first_arrival >= end {
            return None;
        }
        if let Some(only) = own.mailbox.only(&self.pool) {
            own.take_mailbox();
            if own.are_lanes_empty() {
                return Some(only);
            }
            own.enqueue_arrival(only, &mut self.pool);
            return None;
        }
        self.enqueue_arrivals(own, end);
        None
    }

    /// Moves messages that arrive before `end` from the mailbox to their lanes, sorted by time and creation.
    pub(super) fn enqueue_arrivals<const LANES: usize>(&mut self, own: &mut Host<LANES>, end: u64) {
        if own.first_arrival >= end {
            return;
        }
        let mut mail = own.take_mailbox();
        while let Some(slot_id) = mail.pop(&mut self.pool) {
            let Slot { time, stamp, .. } = self.pool[slot_id];
            if time < end {
                self.arrivals.push((time, stamp, slot_id));
            } else {
                own.deliver(slot_id, time, &mut self.pool);
            }
        }
        if self.arrivals.len() > 1 {
            let records = &mut self.records;
            self.arrivals.sort_unstable_by(|one, other| {
                one.0.cmp(&other.0).then_with(|| records.compare(one.1, other.1))
            });
        }
        for (_, _, slot_id) in self.arrivals.drain(..) {
            own.enqueue_arrival(slot_id, &mut self.pool);
        }
    }

    /// Processes all events of a host before `end`; returns the time of its next event \[ps\].
    pub(super) fn run_until<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        end: u64,
    ) -> u64 {
        let mut slot = Slot::default();
        let mut lane = 0;
        let mut slot_id = self.take_arrivals(own, end);
        let mut is_next = slot_id.is_some();
        if let Some(message) = slot_id {
            slot = self.pool[message];
            lane = slot.attributes.lane() + 1;
            slot.time = own.earliest_start(lane, slot.time);
        }
        loop {
            let (time, listed) = own.next_event(&self.pool, &mut self.records);
            // Slots in lanes were created before the operation that has just become ready, and so come first at equal
            // times.
            if is_next && slot.time < time {
                if slot.time >= end {
                    own.enqueue(lane, slot, slot_id, &mut self.pool);
                    return slot.time;
                }
            } else {
                if is_next {
                    own.enqueue(lane, slot, slot_id, &mut self.pool);
                }
                if time >= end {
                    return time;
                }
                let Some(taken) = own.pop(listed, &mut self.pool) else { return time };
                slot = self.pool[taken];
                slot.time = time;
                (lane, slot_id) = (listed, Some(taken));
            }
            is_next = self.process(own, host, lane, &mut slot, slot_id);
            (lane, slot_id) = (slot.attributes.lane(), None);
        }
    }

    /// Processes the next event of a host, which is in `lane`.
    pub(super) fn process_next<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        time: u64,
        lane: usize,
    ) {
        let Some(slot_id) = own.pop(lane, &mut self.pool) else { return };
        let mut slot = Slot { time, ..self.pool[slot_id] };
        if self.process(own, host, lane, &mut slot, Some(slot_id)) {
            own.enqueue(slot.attributes.lane(), slot, None, &mut self.pool);
        }
    }

    /// Processes one event. If it frees exactly one operation and that operation's lane is empty, replaces `slot` by it
    /// and returns true: the operation may then run without entering a lane.
    #[inline(always)]
    fn process<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        lane: usize,
        slot: &mut Slot,
        slot_id: Option<u32>,
    ) -> bool {
        let Slot { time, size, .. } = *slot;
        let record = self.records.next_record;
        let mut created = 0;
        let only = match lane_kind(lane) {
            LaneKind::Calculate => {
                if let Some(slot_id) = slot_id {
                    self.pool.remove(slot_id);
                }
                own.cpu_idle_at = time + size;
                self.program.resolve_start(own.first_node, slot, &mut self.freed);
                self.program.resolve_end(own.first_node, slot, &mut self.freed)
            }
            LaneKind::Send => {
                own.occupy(lane, time + self.costs.send_overhead(size), time + self.costs.gap(size));
                self.program.resolve_start(own.first_node, slot, &mut self.freed);
                created = 1;
                self.send(slot, slot_id, stamp(record, 0));
                match self.costs.is_eager(size) {
                    true => self.program.resolve_end(own.first_node, slot, &mut self.freed),
                    false => None,
                }
            }
            LaneKind::Receive => {
                self.program.resolve_start(own.first_node, slot, &mut self.freed);
                match self.matching.take_unexpected(&mut self.pool, host, slot.channel) {
                    Some(message) => {
                        if let Some(slot_id) = slot_id {
                            self.pool.remove(slot_id);
                        }
                        let sent = self.pool[message];
                        self.pool.remove(message);
                        self.complete_receive(own, host, [slot, &sent], time, None)
                    }
                    None => {
                        let slot_id = slot_id.unwrap_or_else(|| self.pool.insert(*slot));
                        self.matching.enqueue(&mut self.pool, host, slot_id);
                        None
                    }
                }
            }
            LaneKind::Arrival => {
                own.occupy(lane, time + self.costs.receive_overhead(size), time + self.costs.gap(size));
                let slot_id = slot_id.unwrap_or_else(|| self.pool.insert(*slot));
                match self.matching.take_posted(&mut self.pool, host, slot.channel) {
                    Some(receive) => {
                        let waited = self.pool[receive];
                        self.pool.remove(receive);
                        self.pool.remove(slot_id);
                        self.complete_receive(own, host, [&waited, slot], time, Some(lane - 1))
                    }
                    None => {
                        self.matching.enqueue(&mut self.pool, host, slot_id);
                        None
                    }
                }
            }
        };
        if self.ended_send.is_some() {
            self.program.push_freed(only, &mut self.freed);
            self.release_both(own, host, slot, record);
            return false;
        }
        if let Some(ready) = only {
            self.records.add(time, slot.stamp);
            *slot = own.make_slot(ready, &self.program, self.plan, stamp(record, created));
            let is_first = !own.is_occupied(slot.attributes.lane());
            if !is_first {
                own.enqueue(slot.attributes.lane(), *slot, None, &mut self.pool);
            }
            return is_first;
        }
        if created > 0 || !self.freed.is_empty() {
            self.records.add(time, slot.stamp);
            self.release_freed(own, record, created);
        }
        false
    }

    /// Completes a receive with its message. If the send has waited, it ends, too, and blocks the interface of `lane`,
    /// or the one with the number of the receive's.
    #[inline]
    fn complete_receive<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        [receive, sent]: [&Slot; 2],
        time: u64,
        lane: Option<usize>,
    ) -> Option<ReadyOperation> {
        let is_eager = self.costs.is_eager(sent.size);
        self.outcome.protocol_mismatches += u64::from(is_eager != self.costs.is_eager(receive.size));
        if !is_eager {
            // If the receive comes last, LogGOPSim blocks the resources with the receive's numbers, not those of the
            // send.
            let lane =
                lane.or_else(|| self.plan.send_lane(0, self.program.tables.nodes[receive.node as usize].nic));
            self.complete_send(own, host, sent, time, lane);
        }
        self.program.resolve_end(own.first_node, receive, &mut self.freed)
    }

    /// Ends a rendezvous send, here or at another host.
    #[cold]
    fn complete_send<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        sent: &Slot,
        time: u64,
        lane: Option<usize>,
    ) {
        self.pending_rendezvous -= 1;
        let source = self.matching.source(sent.channel);
        if source == host {
            let only = self.program.resolve_end(own.first_node, sent, &mut self.freed);
            self.program.push_freed(only, &mut self.freed);
            own.occupy_until(lane, time);
        } else {
            let first = self.program.first_node_of(source);
            let only = self.program.resolve_end(first, sent, &mut self.freed_elsewhere);
            self.program.push_freed(only, &mut self.freed_elsewhere);
            self.ended_send = Some(EndedSend { host: source, time, lane, record: 0, number: 0 });
        }
    }

    /// Adds the operations freed at the host of an event to its lanes, and leaves those freed at the host of the ended
    /// send. The host with the lower rank comes first in creation order.
    #[cold]
    fn release_both<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        slot: &Slot,
        record: u32,
    ) {
        let Some(ended) = &mut self.ended_send else { return };
        let [here, there] = [self.freed.len(), self.freed_elsewhere.len()].map(|count| count as u32);
        ended.record = record;
        ended.number = if ended.host < host { 0 } else { here };
        let number = if ended.host < host { there } else { 0 };
        if here + there > 0 {
            self.records.add(slot.time, slot.stamp);
        }
        self.release_freed(own, record, number);
    }

    /// Updates the host of a rendezvous send that has ended: blocks its resources and adds the freed operations.
    pub(super) fn apply_ended_send<const LANES: usize>(&mut self, to: &mut Host<LANES>, ended: &EndedSend) {
        to.occupy_until(ended.lane, ended.time);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
        self.release_freed(to, ended.record, ended.number);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
    }

    /// Turns the slot of a send into its message.
    #[inline]
    fn send(&mut self, slot: &Slot, slot_id: Option<u32>, stamp: u64) {
        let message = Slot { time: slot.time + self.costs.arrival_delay, stamp, ..*slot };
        self.outcome.messages += 1;
        self.outcome.message_bytes += message.size;
        self.pending_rendezvous += u64::from(!self.costs.is_eager(message.size));
        let slot_id = match slot_id {
            Some(slot_id) => {
                self.pool[slot_id] = message;
                slot_id
            }
            None => self.pool.insert(message),
        };
        self.sent.push(slot_id);
    }

    /// Adds freed operations to their lanes, with stamps from `created` on.
    fn release_freed<const LANES: usize>(&mut self, own: &mut Host<LANES>, record: u32, created: u32) {
        if self.freed.len() > 1 {
            introsort::sort(&mut self.freed);
        }
        for (number, freed) in (created..).zip(self.freed.drain(..)) {
            let ready = self.program.to_ready(freed);
            let slot = own.make_slot(ready, &self.program, self.plan, stamp(record, number));
            own.enqueue(slot.attributes.lane(), slot, None, &mut self.pool);
        }
    }
}
