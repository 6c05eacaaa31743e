//! A region of a machine: its hosts, with their ranks' messages and computations, and its switches.

mod state;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use netmodel::{
    FlowNetwork, HostId, HostTotals, LinkLoads, LinkTotals, Message, NetworkModel, NetworkParameters, Preset,
    RouteError, SwitchOperation,
};
use pdes_core::{LpId, SimDuration, SimTime, State, StateVisitor};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fabric::{Fabric, FabricMessage, PacketArrival, Report, ReportKind};
use crate::machine::PacketMachine;
use crate::packet::MessageKey;

/// A region of a [`PacketMachine`].
#[derive(Debug)]
pub struct PacketRegion<'m, 'p, T> {
    machine: &'m PacketMachine<'p>,
    index: u32,
    /// Cores, messages inside a host, and timers.
    local: FlowNetwork<'p, T>,
    fabric: Fabric<'m, 'p>,
    /// Tags of messages that hosts of the region send.
    leaving: FxHashMap<MessageKey, T>,
    /// Tags of messages to hosts of the region.
    arriving: FxHashMap<MessageKey, T>,
    /// Numbers of vectors that have arrived in operations of switches before their hosts took part.
    unclaimed: BTreeMap<MessageKey, u32>,
    /// Messages that begin later.
    begins: BinaryHeap<Reverse<Begin<T>>>,
    submitted: u64,
    /// What happens to messages later.
    reports: BinaryHeap<Reverse<Report>>,
    /// Messages for other regions.
    outgoing: Vec<(u32, PacketMessage<T>)>,
    /// Tags of messages whose last bytes left at the last event.
    left: Vec<T>,
    now: SimTime,
    is_late: bool,
    /// A cut, from which spans are counted, if what was sent before it is still to be taken.
    cut: Option<SimTime>,
}

impl<T> PacketRegion<'_, '_, T> {
    /// Records all arrivals of packets at hosts.
    pub fn with_recorded_arrivals(mut self) -> Self {
        self.fabric.recorded = Some(Vec::new());
        self
    }

    /// Returns the arrivals so far, in no order; none unless they are [recorded](Self::with_recorded_arrivals).
    pub fn recorded_arrivals(&self) -> &[PacketArrival] {
        self.fabric.recorded.as_deref().unwrap_or_default()
    }

    /// Returns the number of packets that have arrived at hosts of the region, or are certain to, and that of the links of the region that
    /// packets have crossed.
    pub fn counts(&self) -> (u64, u64) {
        (self.fabric.counts.packets, self.fabric.counts.hops)
    }
}

/// Message between regions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PacketMessage<T>(Content<T>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Content<T> {
    /// A message is to begin at a host of the region.
    Begin(Message<T>),
    /// So many packets of a message will come.
    Announcement(MessageKey, u32, T),
    Fabric(FabricMessage),
}

/// A message that begins at some instant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Begin<T> {
    message: Message<T>,
    /// Operation of switches in which the source takes part.
    #[state(plain)]
    operation: Option<SwitchOperation>,
    #[state(saved = "numbers only have an order")]
    submitted: u64,
}

impl<T> Begin<T> {
    fn key(&self) -> (SimTime, HostId, u64, LpId, u64) {
        let Message { at, order, submitter, src, .. } = self.message;
        (at, src, order, submitter, self.submitted)
    }
}

impl<T> PartialEq for Begin<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Begin<T> {}

impl<T> PartialOrd for Begin<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Begin<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<'m, 'p, T: Copy + Send + Serialize + DeserializeOwned> PacketRegion<'m, 'p, T> {
    pub(crate) fn new(machine: &'m PacketMachine<'p>, index: u32) -> Self {
        Self {
            machine,
            index,
            local: FlowNetwork::new(machine.platform, &NetworkParameters::preset(Preset::Raw)),
            fabric: Fabric::new(machine, index),
            leaving: FxHashMap::default(),
            arriving: FxHashMap::default(),
            unclaimed: BTreeMap::new(),
            begins: BinaryHeap::new(),
            submitted: 0,
            reports: BinaryHeap::new(),
            outgoing: Vec::new(),
            left: Vec::new(),
            now: SimTime::ZERO,
            is_late: false,
            cut: None,
        }
    }

    /// Returns the totals of the links of the region up to an instant at which all regions have ended, if they are
    /// [recorded](NetworkModel::with_link_loads); a kilobyte for each link that carried anything.
    pub fn link_totals(&mut self, end: SimTime) -> Vec<LinkTotals<'static>> {
        let local = self.local.link_totals(end).into_iter().flatten().map(LinkTotals::into_owned);
        local.chain(self.fabric.link_totals(end)).collect()
    }

    /// Begins a message of a host of the region at its time.
    fn submit(&mut self, message: Message<T>, operation: Option<SwitchOperation>) {
        if message.at > self.now {
            self.submitted += 1;
            self.begins.push(Reverse(Begin { message, operation, submitted: self.submitted }));
        } else {
            // What has waited until now goes first.
            self.fabric.resume_until(message.src, self.now.as_picos());
            self.begin(message, operation);
        }
    }

    /// Begins a message now.
    fn begin(&mut self, message: Message<T>, operation: Option<SwitchOperation>) {
        let Message { at, src, dst, size, tag, .. } = message;
        if let Some(operation) = operation {
            return self.take_part(message, operation);
        }
        let message = self.fabric.begin(at.as_picos(), (src, dst), size.get());
        let message = message.expect("the route was found when the message was submitted");
        self.leaving.insert(message, tag);
        // The fabric has checked their number.
        self.expect_message(message, self.machine.packets_of(size.get()) as u32, tag);
        self.take_reports();
    }

    /// Lets a host take part in an operation of switches now.
    fn take_part(&mut self, Message { at, src, size, tag, .. }: Message<T>, operation: SwitchOperation) {
        let SwitchOperation { communicator, number, kind } = operation;
        let message = MessageKey::of_operation(src, communicator, number);
        if kind.sends(src) {
            self.fabric.begin_operation(at.as_picos(), message, kind, size.get());
            self.take_reports();
        }
        if !kind.receives(src) {
            self.leaving.insert(message, tag);
        } else if let Some(count) = self.unclaimed.get_mut(&message) {
            *count -= 1;
            if *count == 0 {
                self.unclaimed.remove(&message);
            }
            self.local.schedule(at, tag);
        } else {
            self.arriving.insert(message, tag);
        }
    }

    /// Lets the region of the receiver expect a message.
    fn expect_message(&mut self, message: MessageKey, packets: u32, tag: T) {
        let home = self.machine.home(message.dst);
        if home == self.index {
            self.arriving.insert(message, tag);
            self.fabric.expect(message, packets).expect("the route was found before");
        } else {
            self.outgoing.push((home, PacketMessage(Content::Announcement(message, packets, tag))));
        }
    }

    #[inline]
    fn take_reports(&mut self) {
        if !self.fabric.reports.is_empty() {
            self.reports.extend(self.fabric.reports.drain(..).map(Reverse));
        }
    }
}

impl<T> NetworkModel<T> for PacketRegion<'_, '_, T>
where
    T: Copy + Send + Serialize + DeserializeOwned,
{
    type Message = PacketMessage<T>;
    const BEGINS_ANYWHERE: bool = true;
    const ENDS_APART: bool = true;

    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let Message { at, origin, src, dst, .. } = message;
        if src == dst {
            self.is_late |= at < self.now;
            return self.local.send(message);
        }
        // The sender has to learn of it.
        let notice = if origin == src { SimDuration::ZERO } else { self.fabric.latency(origin, src)? };
        let message = Message { at: at.saturating_add(notice), ..message };
        let home = self.machine.home(src);
        if home == self.index {
            self.is_late |= message.at < self.now;
            self.fabric.find_route(src, dst)?;
            self.submit(message, None);
        } else {
            self.fabric.latency(src, dst)?;
            self.outgoing.push((home, PacketMessage(Content::Begin(message))));
        }
        Ok(())
    }

    fn operate(&mut self, message: Message<T>, operation: SwitchOperation) {
        self.is_late |= message.at < self.now;
        self.submit(message, Some(operation));
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.is_late |= at < self.now;
        self.local.compute(at, host, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.is_late |= at < self.now;
        self.local.schedule(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        let report = self.reports.peek().map(|Reverse(report)| SimTime::from_picos(report.at));
        let begin = self.begins.peek().map(|Reverse(begin)| begin.message.at);
        let fabric = self.fabric.next_event().map(SimTime::from_picos);
        [self.local.next_event(), report, begin, fabric].into_iter().flatten().min()
    }

    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.next_event() else { return };
        self.now = now;
        if self.local.next_event() == Some(now) {
            let first = done.len();
            self.local.advance(done);
            // A message inside a host leaves as it arrives.
            self.left.extend_from_slice(&done[first..]);
        }
        while let Some(Reverse(begin)) = self.begins.peek()
            && begin.message.at <= now
        {
            let (message, operation) = (begin.message, begin.operation);
            self.begins.pop();
            self.begin(message, operation);
        }
        while let Some(&Reverse(Report { at, kind, message })) = self.reports.peek()
            && at <= now.as_picos()
        {
            self.reports.pop();
            let known = "each end of a message is reported once";
            match kind {
                ReportKind::Arrived if message.communicator().is_some() => {
                    match self.arriving.remove(&message) {
                        Some(tag) => done.push(tag),
                        None => *self.unclaimed.entry(message).or_default() += 1,
                    }
                }
                // A host that receives, too, is not done.
                ReportKind::Left if message.communicator().is_some() => {
                    done.extend(self.leaving.remove(&message));
                }
                ReportKind::Arrived => done.push(self.arriving.remove(&message).expect(known)),
                ReportKind::Left => self.left.push(self.leaving.remove(&message).expect(known)),
                ReportKind::Received => self.fabric.count_arrival(at, message),
                ReportKind::Granting => self.fabric.grant_again(at, message),
            }
        }
        self.fabric.advance(now.as_picos());
        self.take_reports();
    }

    fn take_left(&mut self, left: &mut Vec<T>) {
        left.append(&mut self.left);
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let begins = self.begins.iter().map(|Reverse(begin)| begin.message.tag);
        let messages = self.leaving.values().chain(self.arriving.values()).copied();
        self.local.unfinished().chain(begins).chain(messages)
    }

    fn take_messages(&mut self, messages: &mut Vec<(u32, PacketMessage<T>)>) {
        self.cut = None;
        messages.append(&mut self.outgoing);
        let packets = self.fabric.outgoing.drain(..);
        messages.extend(packets.map(|(region, packet)| (region, PacketMessage(Content::Fabric(packet)))));
    }

    fn receive(&mut self, PacketMessage(content): PacketMessage<T>) {
        match content {
            Content::Begin(message) => self.submit(message, None),
            Content::Announcement(message, packets, tag) => {
                self.fabric.expect(message, packets).expect("the sender has found the route");
                self.arriving.insert(message, tag);
            }
            Content::Fabric(message) => {
                let received = self.fabric.receive(message);
                received.expect("the sender of a packet has found the route");
                self.take_reports();
            }
        }
    }

    fn next_boundary(&self) -> Option<SimTime> {
        self.cut
    }

    /// Sends what leaves hosts before a cut: other regions have to know of it there.
    fn count_spans_from(&mut self, origin: SimTime) {
        self.fabric.count_spans_from(origin.as_picos());
        self.take_reports();
        self.cut = Some(origin).filter(|_| !self.fabric.outgoing.is_empty());
    }

    /// Work is late for an instant that this region has passed, because a rank of another region woke its rank without delay.
    fn is_late(&self) -> bool {
        self.is_late
    }

    fn with_link_loads(mut self) -> Self {
        self.fabric.record_loads();
        Self { local: self.local.with_link_loads(), ..self }
    }

    fn link_loads(&mut self, end: SimTime) -> Option<LinkLoads> {
        self.fabric.loads.is_some().then(|| LinkLoads::new(self.machine.platform, end, self.link_totals(end)))
    }

    fn with_host_loads(self) -> Self {
        Self { local: self.local.with_host_loads(), ..self }
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.local.host_totals()
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.local.watch_period(now, period, repetitions);
        self.fabric.watch_loads(now, period, repetitions);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.local.repeat_loads(now);
        self.fabric.repeat_loads(now);
    }

    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        State::visit(self, visitor);
    }
}
