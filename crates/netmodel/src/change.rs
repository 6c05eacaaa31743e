//! Resources that change while a program runs: bandwidths and latencies of links, speeds of hosts.
//!
//! A [`Platform`] knows the changes of a run before it begins, so that the value of a resource is a function of the instant: what a
//! model keeps of them is how far it has come. Changes at an instant come before everything else at that instant, and those at the
//! begin of a run before its ranks.
//!
//! # What a change does
//! That is SimGrid's rule (network_cm02.cpp, `set_bandwidth` and `set_latency`), except that 0 is a value as any other:
//!
//! | change | effect |
//! |---|---|
//! | speed of a host | computations go on at the new speed; at 0 they wait for another one |
//! | bandwidth of a link | messages share the new capacity; at 0 they wait for another one |
//! | | a message that has begun keeps the least bandwidth of its route, as a bound, and its weight moves with the bandwidth |
//! | latency of a link | messages that begin take the new one; the weight of the others and their bound by the TCP window follow it |
//!
//! A link without bandwidth counts in weights and bounds with the last bandwidth that it had.

use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::{SimDuration, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{HostId, LinkId, Platform};

/// A quantity of a host or a link that may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Resource {
    /// Bandwidth of a link [B/s].
    Bandwidth(LinkId),
    /// Latency of a link \[s\].
    Latency(LinkId),
    /// Speed of each core of a host [flop/s].
    Speed(HostId),
}

/// New value of a resource from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceChange {
    /// The instant.
    pub at: SimTime,
    /// The resource.
    pub resource: Resource,
    /// Its value, in the unit of the resource; 0 or more.
    pub value: f64,
}

/// Error in the changes of a run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ChangeError {
    /// The platform has no such resource.
    #[error(
        "found a change of {resource:?} at {at} s; the platform has {hosts} hosts and {links} links, numbered from 0"
    )]
    Unknown {
        /// The resource.
        resource: Resource,
        /// Instant of the change.
        at: SimTime,
        /// Number of hosts of the platform.
        hosts: usize,
        /// Number of links of the platform.
        links: usize,
    },
    /// The value is none of a resource.
    #[error("found {value} as the {quantity} from {at} s on, expected a finite number of 0 or more")]
    Value {
        /// The value.
        value: f64,
        /// The quantity, with the name of the resource.
        quantity: String,
        /// Instant of the change.
        at: SimTime,
    },
}

/// The changes of a run, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct ResourceChanges {
    list: Vec<ResourceChange>,
    profiles: BTreeMap<Resource, Profile>,
}

/// Instants from which on a resource has other values than in the platform, in ascending order.
type Profile = Vec<(SimTime, f64)>;

impl ResourceChanges {
    /// Checks and orders changes: of several changes of a resource at one instant the last counts.
    ///
    /// # Errors
    /// If the platform lacks a resource, or a value is negative or not finite.
    pub fn new(
        platform: &Platform,
        changes: impl IntoIterator<Item = ResourceChange>,
    ) -> Result<Self, ChangeError> {
        let mut list: Vec<ResourceChange> = changes.into_iter().collect();
        let (hosts, links) = (platform.hosts().len(), platform.links().len());
        for &ResourceChange { at, resource, value } in &list {
            let is_known = match resource {
                Resource::Bandwidth(link) | Resource::Latency(link) => link.index() < links,
                Resource::Speed(host) => host.index() < hosts,
            };
            if !is_known {
                return Err(ChangeError::Unknown { resource, at, hosts, links });
            }
            if !(value.is_finite() && value >= 0.0) {
                return Err(ChangeError::Value { value, quantity: resource.describe(platform), at });
            }
        }
        list.sort_by_key(|change| change.at);
        let mut profiles = BTreeMap::new();
        for &ResourceChange { at, resource, value } in &list {
            let points: &mut Profile = profiles.entry(resource).or_default();
            points.pop_if(|&mut (before, _)| before == at);
            points.push((at, value));
        }
        Ok(Self { list, profiles })
    }

    /// Returns the changes at other instants, which keep their order.
    pub(crate) fn map_instants(&self, instant: impl Fn(SimTime) -> SimTime) -> Self {
        let mut changes = self.clone();
        changes.list.iter_mut().for_each(|change| change.at = instant(change.at));
        changes.profiles.values_mut().flatten().for_each(|(at, _)| *at = instant(*at));
        changes
    }

    /// Multiplies the values of each resource by a factor.
    pub(crate) fn scale(&mut self, factor: impl Fn(Resource) -> f64) {
        self.list.iter_mut().for_each(|change| change.value *= factor(change.resource));
        for (&resource, points) in &mut self.profiles {
            points.iter_mut().for_each(|(_, value)| *value *= factor(resource));
        }
    }

    /// Returns the values of a resource until an instant, the last first.
    fn until(&self, resource: Resource, at: SimTime) -> impl Iterator<Item = f64> {
        let points = self.profiles.get(&resource).map_or(&[][..], |points| points);
        points[..points.partition_point(|&(from, _)| from <= at)].iter().rev().map(|&(_, value)| value)
    }

    /// Returns whether nothing changes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether a resource ever changes.
    pub fn includes(&self, resource: Resource) -> bool {
        self.profiles.contains_key(&resource)
    }

    /// Returns the value of a resource at an instant; `None` if it is still that of the platform.
    pub fn value(&self, resource: Resource, at: SimTime) -> Option<f64> {
        self.until(resource, at).next()
    }

    /// Returns the last value of a resource until an instant that is not 0; `None` if that is the value of the platform.
    pub(crate) fn positive_value(&self, resource: Resource, at: SimTime) -> Option<f64> {
        self.until(resource, at).find(|&value| value > 0.0)
    }

    /// Returns all values of a resource after its changes.
    pub(crate) fn values(&self, resource: Resource) -> impl Iterator<Item = f64> {
        self.until(resource, SimTime::MAX)
    }

    /// Compares how far the next change lies ahead of the present: states with changes to come have another future.
    pub fn compare_next(&self, visitor: &mut StateVisitor<'_>) {
        let now = visitor.now();
        visitor.compare(&self.next_instant(now).map(|at| at - now));
    }

    /// Returns the first instant after another one at which anything changes.
    pub fn next_instant(&self, after: SimTime) -> Option<SimTime> {
        self.instant(self.list.partition_point(|change| change.at <= after))
    }

    /// Returns the first instant after another one at which one of some resources changes.
    pub(crate) fn next_change(
        &self,
        resources: impl IntoIterator<Item = Resource>,
        after: SimTime,
    ) -> Option<SimTime> {
        let next = |resource| {
            let points = self.profiles.get(&resource)?;
            Some(points.get(points.partition_point(|&(at, _)| at <= after))?.0)
        };
        resources.into_iter().filter_map(next).min()
    }

    /// Returns the changes that come after the first `passed` ones, until an instant.
    pub(crate) fn due(&self, passed: usize, until: SimTime) -> &[ResourceChange] {
        let later = &self.list[passed..];
        &later[..later.partition_point(|change| change.at <= until)]
    }

    /// Returns the instant of the change after the first `passed` ones.
    pub(crate) fn instant(&self, passed: usize) -> Option<SimTime> {
        self.list.get(passed).map(|change| change.at)
    }

    /// Returns the resources without bandwidth or speed at the end of all changes, and since when.
    pub fn off_for_good(&self) -> impl Iterator<Item = (Resource, SimTime)> + '_ {
        self.profiles.iter().filter_map(|(&resource, points)| match (resource, points.last()) {
            (Resource::Bandwidth(_) | Resource::Speed(_), Some(&(at, 0.0))) => Some((resource, at)),
            _ => None,
        })
    }
}

/// Returns the time in which an amount is served from `begin` on, after `waited` picoseconds; `None` where it exceeds a
/// [`SimDuration`]. A unit takes `picos_per_unit` picoseconds, constant from an instant to the next change after it.
pub(crate) fn serve(
    begin: SimTime,
    waited: f64,
    amount: f64,
    picos_per_unit: impl Fn(SimTime) -> f64,
    next_change: impl Fn(SimTime) -> Option<SimTime>,
) -> Option<SimDuration> {
    let (mut picos, mut left) = (waited, amount);
    let mut now = begin.checked_add(SimDuration::try_from_picos_f64(waited)?)?;
    loop {
        let each = picos_per_unit(now);
        let end = picos + (left * each).max(0.0);
        match next_change(now) {
            Some(at) if end > (at - begin).as_picos() as f64 => {
                let until = (at - begin).as_picos() as f64;
                left -= (until - picos) / each;
                (picos, now) = (until, at);
            }
            _ => return SimDuration::try_from_picos_f64(end),
        }
    }
}

impl Platform {
    /// Returns the mean bandwidth of a link in a time that is not empty, relative to that before any change.
    pub(crate) fn relative_bandwidth(&self, link: LinkId, time: Range<SimTime>) -> f64 {
        let resource = Resource::Bandwidth(link);
        if !self.changes().includes(resource) {
            return 1.0;
        }
        let bandwidth = self.link(link).bandwidth;
        let (mut sum, mut now) = (0.0, time.start);
        while now < time.end {
            let next = self.changes().next_change([resource], now).map_or(time.end, |at| at.min(time.end));
            let value = self.changes().value(resource, now).unwrap_or(bandwidth);
            sum += value * (next - now).as_picos() as f64;
            now = next;
        }
        sum / (bandwidth * (time.end - time.start).as_picos() as f64)
    }

    /// Returns the time that a computation takes which begins at an instant and has a core for itself; `None` where it exceeds a
    /// [`SimDuration`].
    pub fn compute_time(&self, host: HostId, flops: f64, begin: SimTime) -> Option<SimDuration> {
        let next_change = |after| self.changes().next_change([Resource::Speed(host)], after);
        serve(begin, 0.0, flops, |at| 1e12 / self.speed(host, at), next_change)
    }

    /// Returns the time in an interval during which a host is off: has no speed.
    pub fn time_off(&self, host: HostId, time: Range<SimTime>) -> SimDuration {
        let (mut off, mut now) = (SimDuration::ZERO, time.start);
        if !self.changes().includes(Resource::Speed(host)) {
            return off;
        }
        while now < time.end {
            let next = self.changes().next_change([Resource::Speed(host)], now);
            let next = next.map_or(time.end, |at| at.min(time.end));
            if self.speed(host, now) == 0.0 {
                off += next - now;
            }
            now = next;
        }
        off
    }

    /// Returns the speed of each core of a host at an instant [flop/s].
    pub fn speed(&self, host: HostId, at: SimTime) -> f64 {
        self.changes().value(Resource::Speed(host), at).unwrap_or(self.host(host).speed)
    }
}

impl Resource {
    /// Returns the link, unless the resource is a host.
    pub fn link(self) -> Option<LinkId> {
        match self {
            Self::Bandwidth(link) | Self::Latency(link) => Some(link),
            Self::Speed(_) => None,
        }
    }

    /// Returns the quantity and the name of the resource, such as `bandwidth of the link "l"`.
    pub fn describe(self, platform: &Platform) -> String {
        match self {
            Self::Bandwidth(link) => format!("bandwidth of the link {:?}", platform.link(link).name),
            Self::Latency(link) => format!("latency of the link {:?}", platform.link(link).name),
            Self::Speed(host) => format!("speed of the host {:?}", platform.host(host).name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: Resource = Resource::Speed(HostId::new(1));

    fn at(at: u64, resource: Resource, value: f64) -> ResourceChange {
        ResourceChange { at: SimTime::from_picos(at), resource, value }
    }

    fn platform() -> Platform {
        let text = "[topology]\nkind = \"cluster\"\nhosts = 2\nspeed = \"1Gf\"\nbandwidth = \"1MBps\"\nlatency = \"1s\"\n";
        Platform::from_toml(text, "flat.toml").unwrap()
    }

    #[test]
    fn values_are_those_of_the_last_change() {
        let changes = [at(40, SPEED, 0.0), at(10, SPEED, 9.0), at(10, SPEED, 2e9), at(60, SPEED, 3e9)];
        let changes = ResourceChanges::new(&platform(), changes).unwrap();
        let picos = SimTime::from_picos;
        let values = [9, 10, 39, 40, 59, 60].map(|at| changes.value(SPEED, picos(at)));
        assert_eq!(values, [None, Some(2e9), Some(2e9), Some(0.0), Some(0.0), Some(3e9)]);
        assert_eq!(changes.positive_value(SPEED, picos(50)), Some(2e9));
        assert_eq!(changes.value(Resource::Speed(HostId::new(0)), picos(50)), None);
        assert_eq!(changes.next_change([SPEED], picos(10)), Some(picos(40)));
        assert_eq!(changes.next_change([SPEED], picos(60)), None);
        assert_eq!(changes.off_for_good().count(), 0);
        let mut platform = platform();
        let link = LinkId::new(0);
        let bandwidth = |at_picos, value| at(at_picos, Resource::Bandwidth(link), value);
        platform.set_changes([bandwidth(10, 2e6), bandwidth(40, 0.0)]).unwrap();
        // 5 ps at 1 MB/s, 30 at 2, 5 at nothing.
        assert_eq!(platform.relative_bandwidth(link, picos(5)..picos(45)), 65.0 / 40.0);
    }

    #[test]
    fn computations_are_served_at_all_speeds() {
        let mut platform = platform();
        // 1 flop/ps, then 2, then none, then 1.
        platform.set_changes([at(10, SPEED, 2e9), at(40, SPEED, 0.0), at(60, SPEED, 1e9)]).unwrap();
        platform.scale_speeds(1e3);
        let time = |flops, begin| {
            platform.compute_time(HostId::new(1), flops, SimTime::from_picos(begin)).unwrap().as_picos()
        };
        assert_eq!([time(10.0, 0), time(11.0, 1), time(75.0, 0), time(0.0, 50)], [10, 10, 65, 0]);
        assert_eq!(time(1e3, 1000), 1000);
    }

    #[test]
    fn wrong_changes_are_refused() {
        let refuse = |change| ResourceChanges::new(&platform(), [change]).unwrap_err().to_string();
        assert_eq!(
            refuse(at(7, SPEED, -1.0)),
            "found -1 as the speed of the host \"node-1\" from 0.000000000007 s on, expected a finite number of 0 or more"
        );
        assert!(refuse(at(7, SPEED, f64::NAN)).contains("found NaN"));
        assert!(refuse(at(7, Resource::Speed(HostId::new(2)), 1.0)).contains("the platform has 2 hosts"));
    }
}
