//! A region of a machine: its hosts, with their ranks' messages and computations, and its switches.

mod state;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Range;

use netmodel::{FlowNetwork, HostId, Message, NetworkModel, RouteError};
use pdes_core::{SimTime, State};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::fabric::{Fabric, FabricMessage, PacketArrival, Report, ReportKind, latency};
use crate::machine::PacketMachine;
use crate::packet::MessageKey;

/// The end of a message that a completion tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The last byte has left the sender.
    Left,
    /// The last byte has arrived.
    Arrived,
    /// Both at one instant, or work without two ends.
    Both,
}

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
    /// Messages that begin later.
    begins: BinaryHeap<Reverse<Begin<T>>>,
    submitted: u64,
    /// What happens to messages later.
    reports: BinaryHeap<Reverse<Report>>,
    /// Messages for other regions, with the instant of their effect.
    outgoing: Vec<(u32, SimTime, PacketMessage<T>)>,
    local_done: Vec<T>,
    now: SimTime,
    is_late: bool,
    /// Begin of a span, from which spans are counted.
    origin: SimTime,
}

/// Message between regions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PacketMessage<T>(Content<T>);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Content<T> {
    /// A message is to begin at a host of the region.
    Begin(Message<T>),
    /// Packets of a message will come.
    Announcement(MessageKey, T),
    Fabric(FabricMessage),
}

/// A message that begins at some instant.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
struct Begin<T> {
    message: Message<T>,
    #[state(saved = "numbers only have an order")]
    submitted: u64,
}

impl<T> Begin<T> {
    fn key(&self) -> (SimTime, HostId, u64, pdes_core::Rank, u64) {
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

impl<'m, 'p, T: Copy> PacketRegion<'m, 'p, T> {
    pub(crate) fn new(machine: &'m PacketMachine<'p>, index: u32) -> Self {
        Self {
            machine,
            index,
            local: FlowNetwork::new(machine.platform, &machine.network),
            fabric: Fabric::new(machine, index),
            leaving: FxHashMap::default(),
            arriving: FxHashMap::default(),
            begins: BinaryHeap::new(),
            submitted: 0,
            reports: BinaryHeap::new(),
            outgoing: Vec::new(),
            local_done: Vec::new(),
            now: SimTime::ZERO,
            is_late: false,
            origin: SimTime::ZERO,
        }
    }

    /// Records all arrivals of packets at hosts.
    pub fn with_recorded_arrivals(mut self) -> Self {
        self.fabric.recorded = Some(Vec::new());
        self
    }

    /// Returns the arrivals so far, in no order; none unless they are [recorded](Self::with_recorded_arrivals).
    pub fn recorded_arrivals(&self) -> &[PacketArrival] {
        self.fabric.recorded.as_deref().unwrap_or_default()
    }

    /// Returns the number of packets that have arrived at hosts of the region, or are certain to.
    pub fn packets(&self) -> u64 {
        self.fabric.counts.packets
    }

    /// Returns the number of links of the region that packets have crossed.
    pub fn hops(&self) -> u64 {
        self.fabric.counts.hops
    }

    /// Returns the begin of the span of an instant.
    fn span_of(&self, at: SimTime) -> SimTime {
        let (origin, span) = (self.origin.as_picos(), self.machine.span().as_picos());
        SimTime::from_picos(origin + at.as_picos().saturating_sub(origin) / span * span)
    }

    /// Sends a message, or forwards it to the region of the sending host.
    ///
    /// # Errors
    /// If there is no route.
    pub fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let Message { at, submitter, src, dst, .. } = message;
        self.is_late |= at < self.now;
        if src == dst {
            return self.local.send(message);
        }
        let submitting = self.machine.ranks.get(submitter.index()).copied().unwrap_or(src);
        let at =
            if submitting == src { at } else { at.saturating_add(latency(self.machine, submitting, src)?) };
        let message = Message { at, ..message };
        let home = self.machine.home(src);
        if home != self.index {
            self.machine.platform.route(src, dst, &mut Vec::new())?;
            self.outgoing.push((home, at, PacketMessage(Content::Begin(message))));
            return Ok(());
        }
        self.fabric.find_route(src, dst)?;
        self.submit(message);
        Ok(())
    }

    /// Begins a message of a host of the region at its time.
    fn submit(&mut self, message: Message<T>) {
        if message.at > self.now {
            self.submitted += 1;
            self.begins.push(Reverse(Begin { message, submitted: self.submitted }));
        } else {
            self.begin(message);
        }
    }

    /// Begins a message now.
    fn begin(&mut self, Message { at, src, dst, size, tag, .. }: Message<T>) {
        let message = self.fabric.begin(at.as_picos(), (src, dst), size.get());
        let message = message.expect("the route was found when the message was submitted");
        self.leaving.insert(message, tag);
        self.expect_message(at, message, tag);
        self.take_reports();
    }

    /// Lets the region of the receiver expect a message.
    fn expect_message(&mut self, at: SimTime, message: MessageKey, tag: T) {
        let home = self.machine.home(message.dst);
        if home == self.index {
            self.arriving.insert(message, tag);
        } else {
            let first_arrival = at.saturating_add(self.machine.span());
            self.outgoing.push((home, first_arrival, PacketMessage(Content::Announcement(message, tag))));
        }
    }

    fn take_reports(&mut self) {
        self.reports.extend(self.fabric.reports.drain(..).map(Reverse));
    }

    /// Runs a computation of `flops` floating-point operations on a host of the region.
    pub fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        self.is_late |= at < self.now;
        self.local.compute(at, host, flops, tag);
    }

    /// Completes `tag` at an instant.
    pub fn schedule(&mut self, at: SimTime, tag: T) {
        self.is_late |= at < self.now;
        self.local.schedule(at, tag);
    }

    /// Returns the time of the next event of the region.
    pub fn next_event(&mut self) -> Option<SimTime> {
        let report = self.reports.peek().map(|Reverse(report)| SimTime::from_picos(report.at));
        let begin = self.begins.peek().map(|Reverse(begin)| begin.message.at);
        let fabric = self.fabric.next_event().map(SimTime::from_picos);
        [self.local.next_event(), report, begin, fabric].into_iter().flatten().min()
    }

    /// Advances to the next event, and appends the tags completed by then, with the ends that they tell of.
    pub fn advance(&mut self, done: &mut Vec<(T, End)>) {
        let Some(now) = self.next_event() else { return };
        self.now = now;
        if self.local.next_event() == Some(now) {
            self.local.advance(&mut self.local_done);
            done.extend(self.local_done.drain(..).map(|tag| (tag, End::Both)));
        }
        while let Some(Reverse(begin)) = self.begins.peek()
            && begin.message.at <= now
        {
            let message = begin.message;
            self.begins.pop();
            self.begin(message);
        }
        while let Some(&Reverse(Report { at, kind, message })) = self.reports.peek()
            && at <= now.as_picos()
        {
            self.reports.pop();
            let known = "each end of a message is reported once";
            match kind {
                ReportKind::Arrived => {
                    done.push((self.arriving.remove(&message).expect(known), End::Arrived));
                }
                ReportKind::Left => done.push((self.leaving.remove(&message).expect(known), End::Left)),
                ReportKind::Resumed => self.fabric.resume(at, message),
            }
        }
        let span_end = match self.machine.regions() {
            1 => SimTime::MAX,
            _ => self.span_of(now).saturating_add(self.machine.span()),
        };
        self.fabric.advance(now.as_picos(), span_end.as_picos());
        self.take_reports();
    }

    /// Returns the instant of the last event, or of the last boundary.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// Returns the tags of all work that is submitted and not complete.
    pub fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        let begins = self.begins.iter().map(|Reverse(begin)| begin.message.tag);
        let messages = self.leaving.values().chain(self.arriving.values()).copied();
        self.local.unfinished().chain(begins).chain(messages)
    }

    /// Returns the next boundary at which the region has messages to send.
    pub fn next_boundary(&self) -> Option<SimTime> {
        let packets = self.fabric.outgoing.iter().map(|&(_, effect, _)| SimTime::from_picos(effect));
        let others = self.outgoing.iter().map(|&(_, effect, _)| effect);
        packets.chain(others).min().map(|effect| self.span_of(effect))
    }

    /// Takes part in the exchange at the boundary before a span.
    pub fn exchange(&mut self, span: Range<SimTime>) {
        self.now = self.now.max(span.start);
        self.fabric.catch_up_all(span.start.as_picos());
        self.take_reports();
    }

    /// Appends the messages to regions that were sent since the last call, each with its receiver.
    pub fn take_messages(&mut self, messages: &mut Vec<(u32, PacketMessage<T>)>) {
        messages.extend(self.outgoing.drain(..).map(|(region, _, message)| (region, message)));
        let packets = self.fabric.outgoing.drain(..);
        messages.extend(packets.map(|(region, _, packet)| (region, PacketMessage(Content::Fabric(packet)))));
    }

    /// Receives a message of another region.
    pub fn receive(&mut self, PacketMessage(content): PacketMessage<T>) {
        match content {
            Content::Begin(message) => self.submit(message),
            Content::Announcement(message, tag) => drop(self.arriving.insert(message, tag)),
            Content::Fabric(message) => {
                let received = self.fabric.receive(message);
                received.expect("the sender of a packet has found the route");
                self.take_reports();
            }
        }
    }

    /// Counts spans from an instant at which none is in progress.
    pub fn count_spans_from(&mut self, origin: SimTime) {
        self.origin = origin;
    }

    /// Returns whether work came too late to be simulated in the order of time.
    pub fn is_late(&self) -> bool {
        self.is_late
    }
}
