//! Links whose bandwidths change while packets are on their way.

use std::collections::BTreeSet;
use std::ops::Range;

use netmodel::{LinkId, NetworkGraph, Platform, Resource};
use pdes_core::SimTime;

use super::{PacketMachine, PortEntry};
use crate::fabric::{picos, transmission};
use crate::parameters::{Queues, Switching};
use crate::{PacketError, PacketParameters};

/// Largest number of instants at which links fail or return, each of which has a table of ways.
const MAX_OUTAGES: usize = 256;

/// Links that are off from an instant on, until the next one.
pub(super) struct Outage {
    /// \[ps\]
    pub(super) from: u64,
    pub(super) off: Vec<LinkId>,
}

/// Returns whether bandwidths of links between nodes change.
///
/// # Errors
/// If a latency changes, or a bandwidth with switches that cut through, or ways of packets that wait for credits.
pub(super) fn check(
    platform: &Platform,
    graph: &NetworkGraph,
    parameters: &PacketParameters,
) -> Result<bool, PacketError> {
    let changes = platform.changes();
    let mut links = graph.channels().iter().map(|channel| channel.link);
    let named = |link: LinkId| platform.link(link).name.clone();
    if let Some(link) = links.clone().find(|&link| changes.includes(Resource::Latency(link))) {
        return Err(PacketError::ChangingLatency { link: named(link) });
    }
    let Some(changing) = links.find(|&link| changes.includes(Resource::Bandwidth(link))) else {
        return Ok(false);
    };
    if parameters.switching == Switching::CutThrough {
        return Err(PacketError::ChangingCutThrough { link: named(changing) });
    }
    match failing(platform, graph).first() {
        Some(&link) if parameters.queues == Queues::Credits && parameters.routing.avoids_links() => {
            Err(PacketError::ChangingWays {
                link: named(link),
                routing: parameters.routing.name().to_owned(),
            })
        }
        _ => Ok(true),
    }
}

/// Lists the links between nodes that are off at any time.
fn failing(platform: &Platform, graph: &NetworkGraph) -> Vec<LinkId> {
    let off: BTreeSet<Resource> = platform.changes().first_off().map(|(resource, _)| resource).collect();
    let links = graph.channels().iter().map(|channel| channel.link);
    links.filter(|&link| off.contains(&Resource::Bandwidth(link))).collect()
}

/// Lists the links that are off, from the begin of the run and from each change on.
///
/// # Errors
/// If they change too often.
pub(super) fn outages(platform: &Platform, graph: &NetworkGraph) -> Result<Vec<Outage>, PacketError> {
    let (changes, failing) = (platform.changes(), failing(platform, graph));
    let mut outages: Vec<Outage> = Vec::new();
    let mut next = Some(SimTime::ZERO);
    for _ in 0..MAX_OUTAGES {
        let Some(at) = next else { return Ok(outages) };
        let is_off = |&link: &LinkId| changes.value(Resource::Bandwidth(link), at) == Some(0.0);
        let off: Vec<LinkId> = failing.iter().copied().filter(is_off).collect();
        if outages.last().is_none_or(|last| last.off != off) {
            outages.push(Outage { from: at.as_picos(), off });
        }
        next = changes.next_change(failing.iter().map(|&link| Resource::Bandwidth(link)), at);
    }
    let first = failing.first().expect("links that are never off do not change");
    Err(PacketError::ManyOutages { link: platform.link(*first).name.clone(), most: MAX_OUTAGES })
}

impl PacketMachine<'_> {
    /// Returns the instant at which a port that begins to send a packet at an instant has sent it, with the bandwidths of its link from then
    /// on; the end of time if the link is off for good. Calls `sent` for each interval of one bandwidth, with the bytes sent.
    pub(crate) fn transmit(
        &self,
        port: u32,
        start: u64,
        bytes: u32,
        mut sent: impl FnMut(Range<u64>, f64),
    ) -> u64 {
        let PortEntry { picos_per_byte, link, .. } = self.ports[port as usize];
        let (resource, changes) = (Resource::Bandwidth(link), self.platform.changes());
        let own = self.platform.link(link).bandwidth;
        let (mut now, mut left) = (start, f64::from(bytes));
        loop {
            let at = SimTime::from_picos(now);
            let picos_per_byte = picos_per_byte * (own / changes.value(resource, at).unwrap_or(own));
            let end = picos(left * picos_per_byte).max(1).saturating_add(now);
            let change = changes.next_change([resource], at).map(SimTime::as_picos);
            let Some(change) = change.filter(|&change| change < end) else {
                if end < u64::MAX {
                    sent(now..end, left);
                }
                return end;
            };
            let before = (change - now) as f64 / picos_per_byte;
            sent(now..change, before);
            (now, left) = (change, left - before);
        }
    }

    /// Returns whether the link of a port is off at an instant \[ps\].
    pub(crate) fn is_off(&self, port: u32, at: u64) -> bool {
        let resource = Resource::Bandwidth(self.ports[port as usize].link);
        self.platform.changes().value(resource, SimTime::from_picos(at)) == Some(0.0)
    }

    /// Returns the least time that a port ever needs for a packet of so many bytes \[ps\].
    pub(crate) fn least_time(&self, port: u32, bytes: u32) -> u64 {
        let PortEntry { picos_per_byte, link, .. } = self.ports[port as usize];
        if !self.has_changes {
            return transmission(bytes, picos_per_byte);
        }
        let own = self.platform.link(link).bandwidth;
        let most = self.platform.changes().values(Resource::Bandwidth(link)).fold(own, f64::max);
        transmission(bytes, picos_per_byte * (own / most))
    }
}
