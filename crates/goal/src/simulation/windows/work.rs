//! What happens at hosts, and what it changes besides them.

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

/// All that visits share.
pub(super) struct Work<'a> {
    plan: &'a Plan,
    program: Program<'a>,
    pub(super) charges: Charges,
    pub(super) matching: Matching<'a>,
    pub(super) pool: Pool,
    pub(super) records: Records<'a>,
    /// Messages that the current visit has sent.
    pub(super) sent: Vec<u32>,
    /// Time, stamp and place of what arrives at a host in a window.
    sorted: Vec<(u64, u64, u32)>,
    freed: Vec<Freed>,
    /// What the end of a send has made free at its host.
    freed_elsewhere: Vec<Freed>,
    /// Messages above S that have been sent and not received.
    pub(super) waiting: u64,
    /// The send that the last event has ended at another host.
    pub(super) ended: Option<EndedSend>,
    outcome: Outcome,
}

/// A send that waited for its receive, and whose host does not know yet that it has ended.
pub(super) struct EndedSend {
    pub(super) host: u32,
    /// When \[ps\].
    time: u64,
    /// The lane of sends of the interface that is held until then, if the host has such a lane.
    lane: Option<usize>,
    /// The record of the event, and the number of what it creates there first.
    record: u32,
    number: u32,
}

impl<'a> Work<'a> {
    /// Prepares the work of a part with these ranks, on so many threads at most, and with this number among the parts of a log.
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

    /// Puts the operations of a host that wait for nothing into its lanes.
    pub(super) fn begin<const LANES: usize>(&mut self, own: &mut Host<LANES>, host: u32) {
        self.program.begin(host, &mut self.freed);
        let record = self.records.seed(host);
        self.release(own, record, 0);
    }

    /// Adds what has been done, and what is left; returns how many operations have begun.
    pub(super) fn finish(self, outcome: &mut Outcome, left: &mut Left) -> u64 {
        outcome.messages += self.outcome.messages;
        outcome.message_bytes += self.outcome.message_bytes;
        outcome.across_threshold += self.outcome.across_threshold;
        self.matching.add_left(&self.pool, left);
        self.program.begun
    }

    /// Reads what a slot at a host with this first operation will need when its turn comes.
    #[inline]
    pub(super) fn read(&self, first: u32, place: u32) -> u32 {
        let slot = &self.pool[place];
        self.program.read(first, slot)
    }

    /// Returns the rank to which the messages of a slot's channel go, if it is one of this part.
    #[inline]
    pub(super) fn leads_to(&self, place: u32) -> Option<u32> {
        self.matching.leads_to(self.pool[place].channel)
    }

    /// Puts what has arrived before the end of a window into its lanes; where that is one message and the lanes are empty, returns
    /// it instead.
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

    /// Puts what has arrived before the end of a window into its lanes.
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

    /// Does everything that happens at a host before a time, and returns when something comes next.
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
            // What is in a lane was created before what has just become free, and so comes first at the same time.
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

    /// Does what comes next at a host, in a lane.
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

    /// Does one thing. Where it makes just one operation free, with nothing before it in its lane, the slot becomes that of
    /// this operation, and it returns true.
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

    /// Ends a receive that has its message; where the send has waited, it ends, too, and the interface of a lane of sends is
    /// held, or that with the number of the receive's.
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
            // LogGOPSim holds the resources that have the receive's numbers, not those of the send, where the receive is last.
            let lane =
                lane.or_else(|| self.plan.send_lane(0, self.program.tables.nodes[receive.node as usize].nic));
            self.end_send(own, host, sent, time, lane);
        }
        self.program.ended(own.first, receive, &mut self.freed)
    }

    /// Ends a send that has waited for its receive.
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

    /// Puts what has become free at the host of an event into its lanes, and leaves what has become free at the host of the
    /// send that has ended. The one with the lower number comes first.
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

    /// Tells the host of a send that it has ended.
    pub(super) fn tell<const LANES: usize>(&mut self, to: &mut Host<LANES>, ended: &EndedSend) {
        to.hold(ended.lane, ended.time);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
        self.release(to, ended.record, ended.number);
        std::mem::swap(&mut self.freed, &mut self.freed_elsewhere);
    }

    /// Sends a message.
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

    /// Puts what has become free into its lanes.
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
