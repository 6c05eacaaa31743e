//! The flow model on several threads, exactly: windows of the shortest latency phase, and in a window the parts of the network
//! that share no links, each for itself.
//!
//! A message takes its latency phase before it joins the links. So every flow that begins in a window as long as the shortest
//! phase was sent before the window, and is known at its beginning (lookahead; Chandy and Misra, "Distributed Simulation",
//! IEEE TSE 5(5), 1979; Nicol, "The Cost of Conservative Synchronization in Parallel Discrete Event Simulations", JACM 40(2),
//! 1993). In the window the network depends on no rank, and of the network a connected component of flows and links depends on
//! nothing else. Ranks follow: they get all arrivals of the window, and what they send begins to flow after it.
//!
//! Each region has the ranks of some hosts, their cores and their loopbacks. The flows between hosts are in *subnetworks*, networks of
//! their own that take in whole components. At the beginning of a window
//!
//! 1. regions join the links of the flows that begin in it: the sets of links are the components;
//! 2. for each of their flows they propose the subnetworks that have a part of its component. If several have one, one region moves these
//!    to one subnetwork;
//! 3. regions send their flows to the subnetworks;
//! 4. subnetworks advance to the end of the window, and report arrivals to the regions of both hosts.
//!
//! The result is that of [`FlowNetwork`] to the last bit: its order of events at one time depends on messages alone.

mod components;
mod gather;
mod region;
mod trial;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use pdes_core::{SimDuration, SimTime, State};
use serde::{Deserialize, Serialize};

use super::{FlowNetwork, MIN_SEPARATE_HOSTS};
use crate::link_load::{LinkLoads, LinkTotals};
use crate::{HostId, LinkId, Message, MessageRouting, NetworkModel, NetworkParameters, Platform};
use components::Components;
pub use region::{WindowMessage, WindowRegion};
use trial::Trial;

/// The parts of a machine that its regions share.
#[derive(Debug)]
pub struct WindowMachine<'p, T> {
    platform: &'p Platform,
    parameters: NetworkParameters,
    records_loads: bool,
    window: SimDuration,
    /// Region of each host.
    homes: Box<[u32]>,
    /// Flows that begin in the next window, by region; empty between exchanges.
    begins: Box<[Mutex<Vec<StartingFlow<T>>>]>,
    subnetworks: Box<[Subnetwork<'p, T>]>,
    components: Components,
    trial: Mutex<Trial>,
    /// The trial is not over. Relaxed: the engine orders the rounds of an exchange.
    is_on_trial: AtomicBool,
    /// The trial has failed. Relaxed: the run ends at any time after that.
    is_futile: AtomicBool,
}

/// Components of flows and links, and what regions read of them. Relaxed: the engine orders the rounds of an exchange.
#[derive(Debug)]
struct Subnetwork<'p, T> {
    network: Mutex<FlowNetwork<'p, RoutedTag<T>>>,
    /// Time of the next event \[ps\].
    next_event: AtomicU64,
    /// Number of flows under way.
    flows: AtomicU32,
    /// Number of flows that have begun.
    begun: AtomicU64,
}

/// A flow that begins soon.
#[derive(Debug, Serialize, Deserialize, State)]
struct StartingFlow<T> {
    begin: SimTime,
    message: Message<RoutedTag<T>>,
    /// Links that it uses.
    #[serde(skip)]
    #[state(skip = "found again")]
    links: Arc<[LinkId]>,
}

/// A tag, and the regions of both ends of a message, that which submitted it first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, State)]
pub struct RoutedTag<T> {
    tag: T,
    #[state(plain)]
    regions: [u32; 2],
}

/// Reason why threads cannot share an exact simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// SimGrid's merging of events and its marking of links are global.
    #[error(
        "events all over the network depend on each other with network.precision_s above 0 or network.solve_scope = \"marked\" (set 0 \
         and \"complete\")"
    )]
    Inseparable,
    /// There is too little to do for several threads.
    #[error("the platform has fewer than {MIN_SEPARATE_HOSTS} hosts")]
    TooFewHosts,
    /// A message may have an effect on another one at once.
    #[error("hosts are joined without latency")]
    NoLatency,
    /// A message may move to another route.
    #[error("messages go around links that are off")]
    Detours,
    /// A message chooses its route when it begins.
    #[error("messages choose their routes in one order (network.routing)")]
    Routing,
}

/// Returns the length of the windows in which several threads simulate a platform exactly.
///
/// # Errors
/// If they cannot, because messages [affect](NetworkParameters::separates_messages) others that they share no links with, because
/// there is no latency, because messages go around links that are off or choose their routes, or because the platform is small.
pub fn window(platform: &Platform, parameters: &NetworkParameters) -> Result<SimDuration, WindowError> {
    if !parameters.separates_messages() {
        return Err(WindowError::Inseparable);
    }
    if platform.hosts().len() < MIN_SEPARATE_HOSTS {
        return Err(WindowError::TooFewHosts);
    }
    if platform.has_detours() {
        return Err(WindowError::Detours);
    }
    if parameters.routing != MessageRouting::Minimal {
        return Err(WindowError::Routing);
    }
    let phase = platform.min_latency_phase(parameters).unwrap_or(SimDuration::ZERO);
    if phase > SimDuration::ZERO { Ok(phase) } else { Err(WindowError::NoLatency) }
}

impl<'p, T: Copy> WindowMachine<'p, T> {
    /// Makes an idle machine with a subnetwork for each region.
    ///
    /// Link loads are recorded if `records_loads` is true: a kilobyte for each link and subnetwork that carries anything.
    ///
    /// # Panics
    /// If a host has no home among `regions` regions, or the window is empty.
    pub fn new(
        platform: &'p Platform,
        parameters: &NetworkParameters,
        window: SimDuration,
        (homes, regions): (&[u32], u32),
        records_loads: bool,
    ) -> Self {
        assert!(window > SimDuration::ZERO, "a window has a length");
        assert!(homes.len() == platform.hosts().len() && homes.iter().all(|&home| home < regions));
        let subnetwork = |_| Subnetwork {
            network: Mutex::new(network(platform, parameters, records_loads)),
            next_event: AtomicU64::new(SimTime::MAX.as_picos()),
            flows: AtomicU32::new(0),
            begun: AtomicU64::new(0),
        };
        Self {
            platform,
            parameters: parameters.clone(),
            records_loads,
            window,
            homes: homes.into(),
            begins: (0..regions).map(|_| Mutex::default()).collect(),
            subnetworks: (0..regions).map(subnetwork).collect(),
            components: Components::new(platform.links().len()),
            trial: Mutex::default(),
            is_on_trial: AtomicBool::new(false),
            is_futile: AtomicBool::new(false),
        }
    }

    /// Watches whether parts of the network have enough work for several threads: if not, [all work is
    /// late](Self::is_futile) after some hundred windows.
    pub fn on_trial(self) -> Self {
        Self { is_on_trial: AtomicBool::new(true), ..self }
    }

    /// Returns whether one thread is faster, because nearly all flows share links with each other, or because windows have too few
    /// of them; the run ends, and is to be repeated in the order of time.
    pub fn is_futile(&self) -> bool {
        self.is_futile.load(Ordering::Relaxed)
    }

    /// Returns the length of a window.
    pub fn window(&self) -> SimDuration {
        self.window
    }

    /// Makes the idle regions, in their order.
    pub fn make_regions(&self) -> Vec<WindowRegion<'_, 'p, T>> {
        (0..self.subnetworks.len() as u32).map(|index| WindowRegion::new(self, index)).collect()
    }

    /// Returns the link loads up to an instant at which all regions have ended, if they were recorded.
    pub fn link_loads<'r>(
        &self,
        regions: impl Iterator<Item = &'r WindowRegion<'r, 'p, T>>,
        end: SimTime,
    ) -> Option<LinkLoads>
    where
        'p: 'r,
        T: 'r,
    {
        let mut totals = Vec::new();
        for subnetwork in &self.subnetworks {
            let network = subnetwork.network.lock();
            totals.extend(network.link_totals(end).into_iter().flatten().map(LinkTotals::into_owned));
        }
        regions.for_each(|region| totals.extend(region.link_totals(end).map(LinkTotals::into_owned)));
        self.records_loads.then(|| LinkLoads::new(self.platform, end, totals))
    }

    fn network<U: Copy>(&self) -> FlowNetwork<'p, U> {
        network(self.platform, &self.parameters, self.records_loads)
    }

    fn home(&self, host: HostId) -> u32 {
        self.homes[host.index()]
    }
}

impl<T: Copy> Subnetwork<'_, T> {
    /// Returns the time of the next event.
    fn next_event(&self) -> Option<SimTime> {
        let at = SimTime::from_picos(self.next_event.load(Ordering::Relaxed));
        Some(at).filter(|&at| at != SimTime::MAX)
    }

    /// Returns the number of flows under way.
    fn flows(&self) -> u32 {
        self.flows.load(Ordering::Relaxed)
    }

    /// Updates what regions read after a change of the network.
    fn update(&self, network: &mut FlowNetwork<'_, RoutedTag<T>>) {
        let at = network.next_event().unwrap_or(SimTime::MAX);
        self.next_event.store(at.as_picos(), Ordering::Relaxed);
        self.flows.store(network.flow_count() as u32, Ordering::Relaxed);
        self.begun.store(network.begun(), Ordering::Relaxed);
    }
}

fn network<'p, T: Copy>(
    platform: &'p Platform,
    parameters: &NetworkParameters,
    records_loads: bool,
) -> FlowNetwork<'p, T> {
    let network = FlowNetwork::new(platform, parameters);
    if records_loads { network.with_link_loads() } else { network }
}

#[cfg(test)]
mod tests;
