//! A network whose work is recorded.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use netmodel::{
    FlowNetwork, HostId, HostTotals, LinkId, LinkLoads, Message, NetworkModel, NetworkParameters, Platform,
    RouteError, Sharing, UncontendedNetwork,
};
use pdes_core::{Bytes, SimDuration, SimTime, State, StateVisitor};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{CertificateRecorder, Lines};
use crate::network_tag::NetworkTag;

/// Tag of recorded work: that of the caller, and what the certificate calls it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub(crate) struct TaggedWork {
    tag: NetworkTag,
    #[state(saved = "a name in the certificate")]
    work: RecordedWork,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum RecordedWork {
    Message(u64),
    Computation(u64),
    Timer,
}

/// A network that knows the rates of its flows.
pub(crate) trait Rates {
    /// Calls `each` with every flow and its rate [B/s] from now on.
    fn rates(&self, each: impl FnMut(TaggedWork, f64));
}

impl Rates for FlowNetwork<'_, TaggedWork> {
    fn rates(&self, mut each: impl FnMut(TaggedWork, f64)) {
        FlowNetwork::rates(self).for_each(|(tag, rate)| each(tag, rate));
    }
}

/// Messages have their routes to themselves.
impl Rates for UncontendedNetwork<'_, TaggedWork> {
    fn rates(&self, _: impl FnMut(TaggedWork, f64)) {}
}

/// A network that records when its work begins and ends, and the rates of its flows whenever they change.
#[derive(Debug)]
pub(crate) struct CertifiedNetwork<'a, N> {
    network: N,
    platform: &'a Platform,
    parameters: &'a NetworkParameters,
    recorder: &'a CertificateRecorder,
    /// Number of messages and computations so far.
    works: u64,
    /// Present rate of each flow [B/s].
    rates: FxHashMap<u64, f64>,
    /// Rates may have changed since they were recorded.
    has_changed: bool,
    done: Vec<TaggedWork>,
    hosts: BTreeSet<HostId>,
    links: BTreeSet<LinkId>,
    routes: BTreeSet<(HostId, HostId)>,
    sizes: BTreeSet<Bytes>,
}

impl<'a, N> CertifiedNetwork<'a, N> {
    pub(crate) fn new(
        network: N,
        platform: &'a Platform,
        parameters: &'a NetworkParameters,
        recorder: &'a CertificateRecorder,
    ) -> Self {
        Self {
            network,
            platform,
            parameters,
            recorder,
            works: 0,
            rates: FxHashMap::default(),
            has_changed: false,
            done: Vec::new(),
            hosts: BTreeSet::new(),
            links: BTreeSet::new(),
            routes: BTreeSet::new(),
            sizes: BTreeSet::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.works += 1;
        self.has_changed = true;
        self.works
    }

    /// Records the links of a route before its first message.
    fn record_route(&mut self, lines: &mut Lines, ends: (HostId, HostId)) -> Result<(), RouteError> {
        if !self.routes.insert(ends) {
            return Ok(());
        }
        let mut route = Vec::new();
        self.platform.route(ends.0, ends.1, &mut route)?;
        let mut text = format!("R {} {}", ends.0, ends.1);
        for &id in &route {
            let link = self.platform.link(id);
            if self.links.insert(id) {
                let sharing = match link.sharing {
                    Sharing::Shared => "shared",
                    Sharing::FatPipe => "pipe",
                };
                let (bandwidth, latency) = (link.bandwidth, link.latency);
                lines.write(format_args!("L {id} {bandwidth:?} {latency:?} {sharing} {}\n", link.name));
            }
            write!(text, " {id}").expect("strings take all");
        }
        lines.write(format_args!("{text}\n"));
        Ok(())
    }
}

impl<N: NetworkModel<TaggedWork> + Rates> NetworkModel<NetworkTag> for CertifiedNetwork<'_, N> {
    type Message = N::Message;

    fn send(&mut self, message: Message<NetworkTag>) -> Result<(), RouteError> {
        let Message { at, order, submitter, origin, src, dst, size, tag } = message;
        let number = self.number();
        let mut lines = self.recorder.lines();
        self.record_route(&mut lines, (src, dst))?;
        if self.parameters.cross_traffic {
            match self.record_route(&mut lines, (dst, src)) {
                Ok(()) | Err(RouteError::Missing(_) | RouteError::Empty { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if self.sizes.insert(size) {
            let latency = self.parameters.latency_factor.factor(size);
            let bandwidth = self.parameters.bandwidth_factor.factor(size);
            lines.write(format_args!("Z {} {latency:?} {bandwidth:?}\n", size.get()));
        }
        lines.messages += 1;
        let begin = lines.told(at);
        lines.write(format_args!("B {begin} {number} {src} {dst} {}\n", size.get()));
        let tag = TaggedWork { tag, work: RecordedWork::Message(number) };
        self.network.send(Message { at, order, submitter, origin, src, dst, size, tag })
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: NetworkTag) {
        let number = self.number();
        let mut lines = self.recorder.lines();
        if self.hosts.insert(host) {
            let found = self.platform.host(host);
            lines.write(format_args!("H {host} {:?} {}\n", found.speed, found.cores));
        }
        let begin = lines.told(at);
        lines.write(format_args!("C {begin} {number} {host} {flops:?}\n"));
        let tag = TaggedWork { tag, work: RecordedWork::Computation(number) };
        self.network.compute(at, host, flops, tag);
    }

    fn schedule(&mut self, at: SimTime, tag: NetworkTag) {
        self.network.schedule(at, TaggedWork { tag, work: RecordedWork::Timer });
    }

    fn next_event(&mut self) -> Option<SimTime> {
        let next = self.network.next_event();
        if std::mem::take(&mut self.has_changed) {
            let (mut text, rates) = (String::new(), &mut self.rates);
            self.network.rates(|work, rate| {
                if let RecordedWork::Message(number) = work.work
                    && rates.insert(number, rate) != Some(rate)
                {
                    write!(text, " {number} {rate:?}").expect("strings take all");
                }
            });
            if !text.is_empty() {
                let mut lines = self.recorder.lines();
                let now = lines.told(self.network.now());
                lines.write(format_args!("X {now}{text}\n"));
            }
        }
        next
    }

    fn advance(&mut self, done: &mut Vec<NetworkTag>) {
        // Rates that count until the next event are recorded before it.
        self.next_event();
        self.network.advance(&mut self.done);
        self.has_changed = true;
        let mut lines = self.recorder.lines();
        let now = lines.told(self.network.now());
        for TaggedWork { tag, work } in self.done.drain(..) {
            match work {
                RecordedWork::Message(number) => {
                    self.rates.remove(&number);
                    lines.write(format_args!("E {now} {number}\n"));
                }
                RecordedWork::Computation(number) => lines.write(format_args!("D {now} {number}\n")),
                RecordedWork::Timer => {}
            }
            done.push(tag);
        }
    }

    fn now(&self) -> SimTime {
        self.network.now()
    }

    fn unfinished(&self) -> impl Iterator<Item = NetworkTag> + '_ {
        self.network.unfinished().map(|work| work.tag)
    }

    /// Whoever observes the network at a cut has observed the ranks before, and repeats them before it.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.network.visit(visitor);
        if visitor.is_observing() {
            self.recorder.lines().cut(visitor.now());
        } else if visitor.is_repeating() {
            let mut shifted = SimTime::ZERO;
            visitor.time(&mut shifted);
            self.recorder.lines().repeat(shifted - SimTime::ZERO);
        }
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.network.watch_period(now, period, repetitions);
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.network.repeat_loads(now);
    }

    fn with_link_loads(self) -> Self {
        Self { network: self.network.with_link_loads(), ..self }
    }

    fn link_loads(&mut self, end: SimTime) -> Option<LinkLoads> {
        self.network.link_loads(end)
    }

    fn with_host_loads(self) -> Self {
        Self { network: self.network.with_host_loads(), ..self }
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.network.host_totals()
    }
}
