//! The epoch model: contention with rates that change at multiples of an epoch only, so that regions of a platform can be
//! simulated in parallel.
//!
//! The model is that of [`crate::flow`] with these differences:
//!
//! - The platform is divided into [`Regions`]. Rates change at the *boundaries* `k D` only, so that no event in a region
//!   during an epoch of length `D` affects another region before the epoch ends: `D` is the lookahead.
//! - A message between regions has a latency phase of at least `D`: a flow that begins in an epoch is known at the boundary
//!   before, in all regions that it concerns.
//! - At a boundary the levels `y_f` of all flows that stay are those of a fixed point in integers. With `s_f` the share of a
//!   flow, the inverse of its penalty, and `x_f = floor(y_f s_f)` its rate,
//!
//!   ```text
//!   y_l = min { x : sum { a_lf x_f : y_f < x } + (x + 1) sum { a_lf s_f : y_f >= x } > C_l }
//!   y_f = min { y_l : f uses l } and at most its own limit
//!   ```
//!
//!   which exists and is unique: whether a link is full at `x` depends only on the links that are full below `x`.
//!   It is max-min fair up to a unit of rate for each flow of a link.
//! - A flow that begins between two boundaries has a *provisional* rate until the next, at most its own limit: the least
//!   over its links of `max(C - load, s_f C / (s_f + shares), s_f (C - held) / (s_f + open shares))`: the spare capacity, or
//!   its part of the whole capacity, or its part of the capacity of the flows that no other link holds back. For flows that
//!   are known at the boundary before they begin, a link takes the loads of the boundary, simulates how the flows share
//!   this as they come and end in the epoch, and offers each its mean rate. For the others, sent and begun in one epoch
//!   inside a region, these are the loads of the moment. The rate is lowered if a link would carry more than 13/12 of its
//!   capacity in the epoch, debts included, as far as is known then; the flow keeps at least a sixteenth of it.
//! - Flows that would end before the next boundary at their present rates keep these, unless they have begun unannounced
//!   since the last one. For the others `C_l` is chosen so that the mean load of the epoch is the capacity: it is lower by
//!   the mean load of the flows that end or will begin, and by the *debt*, the excess load of earlier epochs.
//!
//! - Resources [change](crate::ResourceChanges) at boundaries: at the first that is not before the instant of a change. A flow that has begun
//!   keeps the least bandwidth that its route had at that begin, as a bound.
//!
//! As `D` goes to zero, this tends to [`crate::FlowNetwork`] with all links solved at every event and a precision of zero.
//!
//! # Determinism
//! Only integers decide on events, except for the sharing of cores, which concerns one host alone. Ends and starts of
//! flows are ordered by time and by the order of submission in their region.
//!
//! # Regions and the order of work
//! A region keeps its own state and learns of others through messages at boundaries only. Regions can simulate an epoch
//! in any order, or concurrently.

mod boundary;
mod certificate;
mod change;
mod event_store;
mod fixed_point;
mod forecast;
mod message;
mod meter;
mod parallel;
mod region;
mod reserve;
mod route;
mod solver;
mod state;
#[cfg(test)]
mod tests;
pub(crate) mod unit;

use std::ops::Range;

use pdes_core::{EventQueue, IndexedEventHeap, SimDuration, SimTime, State, StateVisitor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::link_load::{LinkLoads, LinkTotals};
use crate::region::RegionId;
use crate::{
    HostId, HostTotals, LinkId, Message, NetworkModel, NetworkParameters, Platform, Regions, Resource,
    RouteError,
};
pub use certificate::EpochViolation;
use message::{MessageSpec, Outbox};
pub use parallel::{EpochMachine, EpochRegion, RegionMessage};
use region::RegionState;
use route::NetworkContext;
use unit::ShareScale;

/// Number of epochs in a window over which the load of a link is compared with its capacity.
const WINDOW_EPOCHS: u64 = 10;

/// Number of boundaries per check of the rates: 4096 in release builds, 1 in debug builds.
const CHECKED_BOUNDARIES: u64 = if cfg!(debug_assertions) { 1 } else { 4096 };

/// Simulation of a machine in epochs, in one thread.
///
/// `T` is the tag that the caller attaches to a message or computation and gets back on its completion.
///
/// ```
/// use netmodel::{EpochNetwork, HostId, Message, NetworkModel, NetworkParameters, Platform, Preset, Regions};
/// use pdes_core::{Bytes, SimDuration, SimTime};
///
/// let text = "[topology]\nkind = \"cluster\"\nhosts = 4\nspeed = \"1Gf\"\nbandwidth = \"1GBps\"\nlatency = \"1us\"\n";
/// let platform = Platform::from_toml(text, "flat.toml")?;
/// let parameters = NetworkParameters::preset(Preset::Raw);
/// let regions = Regions::with_count(&platform, 2);
/// let epoch = regions.lookahead(&platform, &parameters).expect("there are two regions");
/// assert_eq!(epoch, SimDuration::from_picos(2_000_000));
/// let mut network = EpochNetwork::new(&platform, &parameters, regions, epoch)?;
/// network.send(Message::new(SimTime::ZERO, HostId::new(0), HostId::new(3), Bytes::new(1000), "there"))?;
/// let mut done = Vec::new();
/// while network.next_event().is_some() {
///     network.advance(&mut done);
/// }
/// assert_eq!(done, ["there"]);
/// assert_eq!(network.now(), SimTime::from_picos(3_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EpochNetwork<'p, T> {
    context: NetworkContext<'p>,
    regions: Vec<RegionState<T>>,
    timers: EventQueue<T>,
    /// Next event of each region, then next boundary of each.
    next_events: IndexedEventHeap,
    now: SimTime,
    /// Regions whose next events must be recomputed.
    stale: Vec<u32>,
    /// Regions with an event at this instant.
    due: Vec<u32>,
    outbox: Outbox<T>,
    counts: EpochCounts,
}

/// Statistics of the epochs of a run.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct EpochSummary {
    /// Costs of the epoch boundaries.
    pub counts: EpochCounts,
    /// Largest excess of a link over its capacity in a window of ten epochs, as a fraction of its capacity: provisional
    /// rates may be too high. Fat pipes do not count.
    pub capacity_violation: f64,
}

/// Cost of boundaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EpochCounts {
    /// Number of boundaries with work.
    pub boundaries: u64,
    /// Number of rounds of messages between regions, over all boundaries.
    pub rounds: u64,
    /// Number of messages between regions.
    pub messages: u64,
    /// Number of solves of a region's rates.
    pub solves: u64,
    /// Number of link evaluations in solves.
    pub evaluations: u64,
}

/// Error in the length of an epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpochError {
    /// An epoch of no length.
    #[error("found an epoch of 0 s, expected more; without epochs the model is exact")]
    Zero,
    /// Two regions have no lookahead.
    #[error(
        "some of the {regions} regions are joined without latency, which leaves no lookahead for an epoch; choose other regions"
    )]
    NoLookahead {
        /// The number of regions.
        regions: u32,
    },
    /// A link loses its bandwidth: with epochs each message has a rate.
    #[error(
        "found 0 as the {quantity} from {at} s on; with epochs each message has a rate: give it a small bandwidth, or set network.epoch_s = 0"
    )]
    Off {
        /// The quantity, with the name of the link.
        quantity: String,
        /// Instant of the change.
        at: SimTime,
    },
    /// The epoch is longer than the lookahead.
    #[error(
        "found an epoch of {found} s, expected at most {most} s, the lookahead between the {regions} regions; choose fewer regions for longer epochs"
    )]
    TooLong {
        /// The epoch.
        found: SimDuration,
        /// The longest one allowed.
        most: SimDuration,
        /// The number of regions.
        regions: u32,
    },
}

/// Makes the network context that all regions share.
fn make_context<'p>(
    platform: &'p Platform,
    parameters: &NetworkParameters,
    regions: Regions,
    epoch: SimDuration,
) -> Result<NetworkContext<'p>, EpochError> {
    if epoch == SimDuration::ZERO {
        return Err(EpochError::Zero);
    }
    if let Some(most) = regions.lookahead(platform, parameters)
        && epoch > most
    {
        return Err(EpochError::TooLong { found: epoch, most, regions: regions.count() });
    }
    let mut off = platform.changes().first_off();
    if let Some((resource, at)) = off.find(|(resource, _)| matches!(resource, Resource::Bandwidth(_))) {
        return Err(EpochError::Off { quantity: resource.describe(platform), at });
    }
    let scale = ShareScale::new(platform, parameters);
    let changes = platform.changes().at_boundaries(epoch);
    Ok(NetworkContext { platform, parameters: parameters.clone(), regions, scale, changes })
}

/// Makes the idle regions of these numbers.
fn make_regions<T: Copy>(
    context: &NetworkContext<'_>,
    epoch: SimDuration,
    numbers: Range<u32>,
) -> Vec<RegionState<T>> {
    let (hosts, links) = (context.regions.hosts_by_region(), context.regions.links_by_region());
    let region = |(number, (hosts, links)): (u32, (&Vec<HostId>, &Vec<_>))| {
        let links = links.iter().map(|&link| {
            let link = context.platform.link(link);
            (link.bandwidth, link.sharing == crate::Sharing::FatPipe)
        });
        let mut region = RegionState::new(RegionId::new(number), epoch, context, hosts, links);
        region.apply_changes(context, SimTime::ZERO);
        region
    };
    let places = numbers.start as usize..numbers.end as usize;
    numbers.zip(hosts[places.clone()].iter().zip(&links[places])).map(region).collect()
}

/// Returns the totals of the links of regions of a platform up to an instant.
fn link_totals<'a, T: Copy + 'a>(
    platform: &'a Platform,
    links: &'a [Vec<LinkId>],
    regions: impl Iterator<Item = &'a mut RegionState<T>>,
    end: SimTime,
) -> impl Iterator<Item = LinkTotals<'a>> {
    links.iter().zip(regions).flat_map(move |(links, region)| region.link_totals(platform, links, end))
}

impl<'p, T: Copy> EpochNetwork<'p, T> {
    /// Makes an idle machine. Takes memory proportional to the links and hosts of the platform, and later to the
    /// pairs of hosts that communicate and the messages and computations in progress.
    ///
    /// # Errors
    /// If the epoch is zero, or longer than [`Regions::lookahead`].
    pub fn new(
        platform: &'p Platform,
        parameters: &NetworkParameters,
        regions: Regions,
        epoch: SimDuration,
    ) -> Result<Self, EpochError> {
        let all = 0..regions.count();
        let context = make_context(platform, parameters, regions, epoch)?;
        let mut regions: Vec<RegionState<T>> = make_regions(&context, epoch, all.clone());
        regions.iter_mut().for_each(|region| region.is_stale = true);
        let mut earliest = IndexedEventHeap::default();
        earliest.grow(2 * regions.len());
        Ok(Self {
            context,
            regions,
            timers: EventQueue::default(),
            next_events: earliest,
            now: SimTime::ZERO,
            stale: all.collect(),
            due: Vec::new(),
            outbox: Vec::new(),
            counts: EpochCounts::default(),
        })
    }

    /// Returns the regions.
    pub fn regions(&self) -> &Regions {
        &self.context.regions
    }

    /// Returns the statistics of the epochs so far. Costs the number of links.
    pub fn summary(&self) -> EpochSummary {
        let violations = self.regions.iter().map(RegionState::capacity_violation);
        EpochSummary { counts: self.counts(), capacity_violation: violations.fold(0.0, f64::max) }
    }

    /// Returns the cost of boundaries so far.
    pub fn counts(&self) -> EpochCounts {
        let evaluations = self.regions.iter().map(|region| region.solver.evaluations).sum();
        EpochCounts { evaluations, ..self.counts }
    }

    /// Marks the next event of a region as stale.
    #[inline]
    fn mark_stale(&mut self, number: u32) {
        if !std::mem::replace(&mut self.regions[number as usize].is_stale, true) {
            self.stale.push(number);
        }
    }

    /// Recomputes the next event and boundary of a region.
    fn update_next_event(&mut self, number: u32) {
        let region = &mut self.regions[number as usize];
        region.is_stale = false;
        let (event, boundary) = (region.next_event(), region.next_boundary(&self.context, self.now));
        self.next_events.set(number, event);
        self.next_events.set(self.regions.len() as u32 + number, boundary);
    }

    /// Runs the exchanges of a boundary (`epoch/boundary.rs`). Regions that receive messages join the regions in
    /// `due`.
    fn cross_boundary(&mut self, due: &mut Vec<u32>) {
        let now = self.now;
        self.counts.boundaries += 1;
        for &region in due.iter() {
            self.regions[region as usize].announce(&self.context, now, &mut self.outbox);
        }
        self.deliver(due);
        for &region in due.iter() {
            self.regions[region as usize].offer_rates(now, &mut self.outbox);
        }
        self.deliver(due);
        let mut asked = due.clone();
        while !asked.is_empty() {
            self.counts.solves += asked.len() as u64;
            for &region in &asked {
                self.regions[region as usize].solve(now, &mut self.outbox);
            }
            asked = self.deliver(due);
        }
        due.iter().for_each(|&region| self.regions[region as usize].begin_epoch(now));
        if self.counts.boundaries.is_multiple_of(CHECKED_BOUNDARIES)
            && let Err(violation) = self.check()
        {
            panic!("the rates at {now} s are not max-min fair: {violation}");
        }
    }

    /// Delivers the messages of a round; returns the regions that have received any.
    fn deliver(&mut self, due: &mut Vec<u32>) -> Vec<u32> {
        if self.outbox.is_empty() {
            return Vec::new();
        }
        self.counts.rounds += 1;
        self.counts.messages += self.outbox.len() as u64;
        let mut receivers = Vec::new();
        let mut outbox = std::mem::take(&mut self.outbox);
        for (to, message) in outbox.drain(..) {
            let region = &mut self.regions[to.index()];
            // A receiver without an event of its own at this boundary has an older clock.
            if region.solver.now != self.now {
                region.solver.now = self.now;
            }
            region.receive(&self.context, message);
            receivers.push(to.get());
        }
        self.outbox = outbox;
        receivers.sort_unstable();
        receivers.dedup();
        due.extend_from_slice(&receivers);
        due.sort_unstable();
        due.dedup();
        receivers
    }
}

impl<T: Copy> NetworkModel<T> for EpochNetwork<'_, T> {
    type Message = ();

    fn send(&mut self, message: Message<T>) -> Result<(), RouteError> {
        let Message { at, src, dst, size, tag, .. } = message;
        let region = self.context.regions.of_host(src).get();
        self.regions[region as usize].send(
            &self.context,
            self.now,
            at,
            MessageSpec { src, dst, size, tag },
        )?;
        self.mark_stale(region);
        Ok(())
    }

    fn compute(&mut self, at: SimTime, host: HostId, flops: f64, tag: T) {
        let member = self.context.regions.host_slot(host);
        self.regions[member.region.index()].compute(&self.context, (self.now, at), member.slot, flops, tag);
        self.mark_stale(member.region.get());
    }

    fn schedule(&mut self, at: SimTime, tag: T) {
        self.timers.add(at, tag);
    }

    fn next_event(&mut self) -> Option<SimTime> {
        while let Some(region) = self.stale.pop() {
            self.update_next_event(region);
        }
        self.next_events.next().into_iter().chain(self.timers.next()).min()
    }

    /// Crosses a boundary, too, at which possibly nothing completes.
    fn advance(&mut self, done: &mut Vec<T>) {
        let Some(now) = self.next_event() else { return };
        self.now = now;
        let end = now.saturating_add(SimDuration::from_picos(1));
        let mut due = std::mem::take(&mut self.due);
        let count = self.regions.len() as u32;
        let mut is_boundary = false;
        while let Some(group) = self.next_events.pop_before(end) {
            // The second half of the groups are boundaries.
            is_boundary |= group >= count;
            due.push(group % count);
        }
        due.sort_unstable();
        due.dedup();
        // Ends before the boundary, begins after it: a flow that ends at a boundary has no rate in the next epoch.
        due.iter().for_each(|&region| self.regions[region as usize].finish(now, done));
        if is_boundary {
            self.cross_boundary(&mut due);
        }
        done.extend(std::iter::from_fn(|| self.timers.pop_due(now)));
        for region in due.drain(..) {
            self.regions[region as usize].begin(&self.context, now);
            self.mark_stale(region);
        }
        self.due = due;
    }

    fn now(&self) -> SimTime {
        self.now
    }

    /// The state recurs after a number of epochs.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>)
    where
        T: State + Serialize + DeserializeOwned,
    {
        self.visit_state(visitor);
    }

    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        self.regions.iter_mut().for_each(|region| region.watch_period(now, period, repetitions));
    }

    fn repeat_loads(&mut self, now: SimTime) {
        self.regions.iter_mut().for_each(|region| region.repeat_loads(now));
    }

    fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.regions.iter().flat_map(RegionState::unfinished).chain(self.timers.iter().copied())
    }

    /// Enables the recording of link loads: a kilobyte for each link that carries anything.
    fn with_link_loads(mut self) -> Self {
        self.regions = self.regions.into_iter().map(|region| region.recording(true)).collect();
        self
    }

    fn with_host_loads(mut self) -> Self {
        self.regions = self.regions.into_iter().map(RegionState::recording_hosts).collect();
        self
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.regions.iter().flat_map(RegionState::host_totals).collect()
    }

    fn link_loads(&mut self, end: SimTime) -> Option<LinkLoads> {
        let links = self.context.regions.links_by_region();
        Some(LinkLoads::new(
            self.context.platform,
            end,
            link_totals(self.context.platform, &links, self.regions.iter_mut(), end),
        ))
    }
}
