//! Event handling of the windowed engine: processes the events of hosts and their effects on shared state.

use std::ops::Range;

use super::super::Outcome;
use super::super::lane::{Plan, What};
use super::super::matching::{Left, Matching};
use super::super::pool::{Pool, Slot};
use super::super::program::{Freed, Program, Ready};
use super::hosts::{Host, what};
use super::records::{Log, Records, stamp};
use crate::order;
use crate::parameters::{Charges, LogGops};
use crate::schedule::Tables;

/// State of a partition that the event handling of all its hosts shares.
pub(super) struct Work<'a> {
    plan: &'a Plan,
    program: Program<'a>,
    pub(super) charges: Charges,
    pub(super) matching: Matching<'a>,
    pub(super) pool: Pool,
    pub(super) records: Records<'a>,
    /// Messages that the current host has sent in its turn.
    pub(super) sent: Vec<u32>,
    /// Time, stamp and slot of each message that arrives at a host in a window; a buffer for sorting.
    sorted: Vec<(u64, u64, u32)>,
    freed: Vec<Freed>,
    /// Operations that the end of a send has freed at its host.
    freed_elsewhere: Vec<Freed>,
    /// Number of rendezvous messages (above S) that are sent and not received.
    pub(super) waiting: u64,
    /// Send at another host that the last event has ended.
    pub(super) ended: Option<EndedSend>,
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

impl<'a> Work<'a> {
    /// Makes the state of one partition of a log, with these ranks; counts dependencies on up to `threads` threads.
    pub(super) fn new(
        tables: Tables<'a>,
        plan: &'a Plan,
        parameters: LogGops,
        (log, part): (&'a Log, usize),
        ranks: Range<u32>,
        threads: usize,
    ) -> Self {
        Self {
            plan,
            program: Program::new(tables, &ranks, threads),
            charges: Charges::new(parameters),
            matching: Matching::new(tables, ranks),
            pool: Pool::new(),
            records: Records::new(log, part),
            sent: Vec::new(),
            sorted: Vec::new(),
            freed: Vec::new(),
            freed_elsewhere: Vec::new(),
            waiting: 0,
            ended: None,
            outcome: Outcome::default(),
        }
    }

    /// Adds the operations of a host without dependencies to its lanes.
    pub(super) fn begin<const LANES: usize>(&mut self, own: &mut Host<LANES>, host: u32) {
        self.program.begin(host, &mut self.freed);
        let record = self.records.seed(host);
        self.release(own, record, 0);
    }

    /// Adds the results and the unmatched receives and messages; returns the number of operations that have started.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Left) -> u64 {
        outcome.messages += self.outcome.messages;
        outcome.message_bytes += self.outcome.message_bytes;
        outcome.across_threshold += self.outcome.across_threshold;
        self.matching.add_left(&self.pool, left);
        self.program.begun
    }

    /// Reads the memory that a slot of the host with first operation `first` will need; returns a value that depends on
    /// it.
    #[inline]
    pub(super) fn read(&self, first: u32, place: u32) -> u32 {
        let slot = &self.pool[place];
        self.program.read(first, slot)
    }

    /// Returns the destination of a slot's channel if it is a host of this partition.
    #[inline]
    pub(super) fn leads_to(&self, place: u32) -> Option<u32> {
        self.matching.leads_to(self.pool[place].channel)
    }

    /// Moves messages that arrive before `end` to their lanes; a single message at a host with empty lanes is returned
    /// instead.
    #[inline]
    fn take_mail<const LANES: usize>(&mut self, own: &mut Host<LANES>, end: u64) -> Option<u32> {
        if own.mail_time >= end {
            return None;
        }
        if let Some(only) = own.mail.only(&self.pool) {
            own.forget_mail();
            if own.is_idle() {
                return Some(only);
            }
            own.arrive(only, &mut self.pool);
            return None;
        }
        self.open_mail(own, end);
        None
    }

    /// Moves messages that arrive before `end` from the mailbox to their lanes, sorted by time and creation.
    pub(super) fn open_mail<const LANES: usize>(&mut self, own: &mut Host<LANES>, end: u64) {
        if own.mail_time >= end {
            return;
        }
        let mut mail = own.forget_mail();
        while let Some(place) = mail.pop(&mut self.pool) {
            let Slot { time, stamp, .. } = self.pool[place];
            if time < end {
                self.sorted.push((time, stamp, place));
            } else {
                own.post(place, time, &mut self.pool);
            }
        }
        if self.sorted.len() > 1 {
            let records = &mut self.records;
            self.sorted.sort_unstable_by(|one, other| {
                one.0.cmp(&other.0).then_with(|| records.compare(one.1, other.1))
            });
        }
        for (_, _, place) in self.sorted.drain(..) {
            own.arrive(place, &mut self.pool);
        }
    }

    /// Processes all events of a host before `end`; returns the time of its next event \[ps\].
    pub(super) fn run<const LANES: usize>(&mut self, own: &mut Host<LANES>, host: u32, end: u64) -> u64 {
        let mut slot = Slot::default();
        let mut lane = 0;
        let mut place = self.take_mail(own, end);
        let mut is_next = place.is_some();
        if let Some(message) = place {
            slot = self.pool[message];
            lane = slot.sort.lane() + 1;
            slot.time = own.earliest(lane, slot.time);
        }
        loop {
            let (time, listed) = own.next(&self.pool, &mut self.records);
            // Slots in lanes were created before the operation that has just become ready, and so come first at equal
            // times.
            if is_next && slot.time < time {
                if slot.time >= end {
                    own.wait(lane, slot, place, &mut self.pool);
                    return slot.time;
                }
            } else {
                if is_next {
                    own.wait(lane, slot, place, &mut self.pool);
                }
                if time >= end {
                    return time;
                }
                let Some(taken) = own.pop(listed, &mut self.pool) else { return time };
                slot = self.pool[taken];
                slot.time = time;
                (lane, place) = (listed, Some(taken));
            }
            is_next = self.step(own, host, lane, &mut slot, place);
            (lane, place) = (slot.sort.lane(), None);
        }
    }

    /// Processes the next event of a host, which is in `lane`.
    pub(super) fn run_one<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        time: u64,
        lane: usize,
    ) {
        let Some(place) = own.pop(lane, &mut self.pool) else { return };
        let mut slot = Slot { time, ..self.pool[place] };
        if self.step(own, host, lane, &mut slot, Some(place)) {
            own.wait(slot.sort.lane(), slot, None, &mut self.pool);
        }
    }

    /// Processes one event. If it frees exactly one operation and that operation's lane is empty, replaces `slot` by it
    /// and returns true: the operation may then run without entering a lane.
    #[inline(always)]
    fn step<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        lane: usize,
        slot: &mut Slot,
        place: Option<u32>,
    ) -> bool {
        let Slot { time, size, .. } = *slot;
        let record = self.records.next;
        let mut created = 0;
        let only = match what(lane) {
            What::Calculate => {
                if let Some(place) = place {
                    self.pool.give(place);
                }
                own.cpu = time + size;
                self.program.started(own.first, slot, &mut self.freed);
                self.program.ended(own.first, slot, &mut self.freed)
            }
            What::Send => {
                own.occupy(lane, time + self.charges.send(size), time + self.charges.gap(size));
                self.program.started(own.first, slot, &mut self.freed);
                created = 1;
                self.send(slot, place, stamp(record, 0));
                match self.charges.is_eager(size) {
                    true => self.program.ended(own.first, slot, &mut self.freed),
                    false => None,
                }
            }
            What::Receive => {
                self.program.started(own.first, slot, &mut self.freed);
                match self.matching.message_for(&mut self.pool, host, slot.channel) {
                    Some(message) => {
                        if let Some(place) = place {
                            self.pool.give(place);
                        }
                        let sent = self.pool[message];
                        self.pool.give(message);
                        self.receive(own, host, [slot, &sent], time, None)
                    }
                    None => {
                        let place = place.unwrap_or_else(|| self.pool.take(*slot));
                        self.matching.wait(&mut self.pool, host, place);
                        None
                    }
                }
            }
            What::Arrive => {
                own.occupy(lane, time + self.charges.receive(size), time + self.charges.gap(size));
                let place = place.unwrap_or_else(|| self.pool.take(*slot));
                match self.matching.receive_for(&mut self.pool, host, slot.channel) {
                    Some(receive) => {
                        let waited = self.pool[receive];
                        self.pool.give(receive);
                        self.pool.give(place);
                        self.receive(own, host, [&waited, slot], time, Some(lane - 1))
                    }
                    None => {
                        self.matching.wait(&mut self.pool, host, place);
                        None
                    }
                }
            }
        };
        if self.ended.is_some() {
            self.program.add(only, &mut self.freed);
            self.release_both(own, host, slot, record);
            return false;
        }
        if let Some(ready) = only {
            self.records.add(time, slot.stamp);
            *slot = own.free(ready, &self.program, self.plan, stamp(record, created));
            let is_first = !own.is_occupied(slot.sort.lane());
            if !is_first {
                own.wait(slot.sort.lane(), *slot, None, &mut self.pool);
            }
            return is_first;
        }
        if created > 0 || !self.freed.is_empty() {
            self.records.add(time, slot.stamp);
            self.release(own, record, created);
        }
        false
    }

    /// Completes a receive with its message. If the send has waited, it ends, too, and blocks the interface of `lane`,
    /// or the one with the number of the receive's.
    #[inline]
    fn receive<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        [receive, sent]: [&Slot; 2],
        time: u64,
        lane: Option<usize>,
    ) -> Option<Ready> {
        let is_eager = self.charges.is_eager(sent.size);
        self.outcome.across_threshold += u64::from(is_eager != self.charges.is_eager(receive.size));
        if !is_eager {
            // If the receive comes last, LogGOPSim blocks the resources with the receive's numbers, not those of the
            // send.
            let lane =
                lane.or_else(|| self.plan.send_lane(0, self.program.tables.nodes[receive.node as usize].nic));
            self.end_send(own, host, sent, time, lane);
        }
        self.program.ended(own.first, receive, &mut self.freed)
    }

    /// Ends a rendezvous send, here or at another host.
    #[cold]
    fn end_send<const LANES: usize>(
        &mut self,
        own: &mut Host<LANES>,
        host: u32,
        sent: &Slot,
        time: u64,
        lane: Option<usize>,
    ) {
        self.waiting -= 1;
        let source = self.matching.source(sent.channel);
        if source == host {
            let only = self.program.ended(own.first, sent, &mut self.freed);
            self.program.add(only, &mut self.freed);
            own.hold(lane, time);
        } else {
            let first = self.program.first(source);
            let only = self.program.ended(first, sent, &mut self.freed_elsewhere);
            self.program.add(only, &mut self.freed_elsewhere);
            self.ended = Some(EndedSend { host: source, time, lane, record: 0, number: 0 });
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
        let Some(ended) = &mut self.ended else { return };
        let [here, there] = [self.freed.len(), self.freed_elsewhere.len()].map(|count| count as u32);
        ended.record = record;
        ended.number = if ended.host < host { 0 } else { here };
        let number = if ended.host < host { there } else { 0 };
        if here + there > 0 {
            self.records.add(slot.time, slot.stamp);
        }
        self.release(own, record, number);
    }

    /// Updates the host of a rendezvous send that has ended: blocks its resources and adds the freed operations.
    pub(super) fn tell<const LANES: usize>(&mut self, to: &mut Host<LANES>, ended: &EndedSend) {
        to.hold(ended.lane, ended.time);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
        self.release(to, ended.record, ended.number);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
    }

    /// Turns the slot of a send into its message.
    #[inline]
    fn send(&mut self, slot: &Slot, place: Option<u32>, stamp: u64) {
        let message = Slot { time: slot.time + self.charges.flight, stamp, ..*slot };
        self.outcome.messages += 1;
        self.outcome.message_bytes += message.size;
        self.waiting += u64::from(!self.charges.is_eager(message.size));
        let place = match place {
            Some(place) => {
                self.pool[place] = message;
                place
            }
            None => self.pool.take(message),
        };
        self.sent.push(place);
    }

    /// Adds freed operations to their lanes, with stamps from `created` on.
    fn release<const LANES: usize>(&mut self, own: &mut Host<LANES>, record: u32, created: u32) {
        if self.freed.len() > 1 {
            order::sort(&mut self.freed);
        }
        for (number, freed) in (created..).zip(self.freed.drain(..)) {
            let ready = self.program.ready(freed);
            let slot = own.free(ready, &self.program, self.plan, stamp(record, number));
            own.wait(slot.sort.lane(), slot, None, &mut self.pool);
        }
    }
}
