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

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use pdes_core::{SimDuration, SimTime, StateVisitor};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::profile::ProfiledQuantity;
use crate::{HostId, LinkId, Platform, Profile, ProfileSpec};

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
        "found a change of {resource:?}; the platform has {hosts} hosts and {links} links, numbered from 0"
    )]
    Unknown {
        /// The resource.
        resource: Resource,
        /// Number of hosts of the platform.
        hosts: usize,
        /// Number of links of the platform.
        links: usize,
    },
    /// No resource has the name of a profile.
    #[error(
        "a profile names the {kind} {name:?}: the platform has no such {kind}; its first is {first:?}, and * stands for any text"
    )]
    NoSuchName {
        /// `host` or `link`.
        kind: &'static str,
        /// The name.
        name: String,
        /// Name of the first one of the platform.
        first: String,
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

/// The changes of a run: the values of resources over time.
#[derive(Clone, Debug, Default)]
pub struct ResourceChanges {
    schedules: BTreeMap<Resource, Schedule>,
    /// Length of the epochs, at whose boundaries changes count.
    epoch: Option<SimDuration>,
}

/// Values of a resource, and when it is on, over time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Schedule {
    values: Option<Profile>,
    /// 0 while the resource is off.
    state: Option<Profile>,
}

impl Schedule {
    fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.values.iter().chain(&self.state)
    }

    /// Returns the value at an instant; `None` if it is still that of the platform.
    fn value(&self, at: SimTime) -> Option<f64> {
        let last = |profile: &Option<Profile>| profile.as_ref()?.until(at).next();
        match last(&self.state) {
            Some(0.0) => Some(0.0),
            _ => last(&self.values),
        }
    }

    fn next(&self, after: SimTime) -> Option<SimTime> {
        let is_off_for_good = self.profiles().any(|profile| profile.is_zero_from(after));
        self.profiles().filter_map(|profile| profile.next(after)).min().filter(|_| !is_off_for_good)
    }
}

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
        list.sort_by_key(|change| change.at);
        let mut points = BTreeMap::<Resource, Vec<(SimTime, f64)>>::new();
        for ResourceChange { at, resource, value } in list {
            if !(value.is_finite() && value >= 0.0) {
                resource.check(platform)?;
                return Err(ChangeError::Value { value, quantity: resource.describe(platform), at });
            }
            points.entry(resource).or_default().push((at, value));
        }
        let mut all = Self::default();
        for (resource, points) in points {
            let profile =
                Profile::new(points, None).expect("the points are in order, and their values are checked");
            all.schedule(platform, resource)?.values = Some(profile);
        }
        Ok(all)
    }

    fn schedule(&mut self, platform: &Platform, resource: Resource) -> Result<&mut Schedule, ChangeError> {
        resource.check(platform)?;
        Ok(self.schedules.entry(resource).or_default())
    }

    /// Sets the values of a resource over time, in the unit of the resource.
    pub(crate) fn set_values(&mut self, resource: Resource, profile: Profile) {
        self.schedules.entry(resource).or_default().values = Some(profile);
    }

    /// Sets when a resource is off: while the profile is 0.
    pub(crate) fn set_state(&mut self, resource: Resource, profile: Profile) {
        self.schedules.entry(resource).or_default().state = Some(profile);
    }

    /// Sets the values or the state of the resources that a profile names.
    ///
    /// # Errors
    /// If the platform has no such resource.
    pub(crate) fn add_profile(&mut self, platform: &Platform, spec: &ProfileSpec) -> Result<(), ChangeError> {
        for resource in spec.resources(platform)? {
            let own = resource.own(platform)?;
            let schedule = self.schedule(platform, resource)?;
            let profile = spec.profile.map_values(|value| spec.value(value, own));
            match spec.quantity {
                ProfiledQuantity::State => schedule.state = Some(profile),
                _ => schedule.values = Some(profile),
            }
        }
        Ok(())
    }

    /// Adds the changes of other ones, which replace those of the same resources.
    pub(crate) fn extend(&mut self, other: Self) {
        self.schedules.extend(other.schedules);
    }

    /// Keeps the changes of some resources only.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(Resource) -> bool) {
        self.schedules.retain(|&resource, _| is_kept(resource));
    }

    /// Returns the changes at the boundaries of epochs of a length: each counts from the first boundary on that is not before it.
    pub(crate) fn at_boundaries(&self, epoch: SimDuration) -> Self {
        Self { epoch: Some(epoch), ..self.clone() }
    }

    /// Multiplies the values of each resource by a factor.
    pub(crate) fn scale(&mut self, factor: impl Fn(Resource) -> f64) {
        for (&resource, schedule) in &mut self.schedules {
            let factor = factor(resource);
            schedule.values =
                schedule.values.as_ref().map(|values| values.map_values(|value| value * factor));
        }
    }

    /// Returns the last instant up to another one at which changes count.
    fn counted(&self, at: SimTime) -> SimTime {
        let epoch = self.epoch.map_or(1, SimDuration::as_picos);
        SimTime::from_picos(at.as_picos() / epoch * epoch)
    }

    /// Returns the instant from which on a change counts.
    fn counts_from(&self, at: SimTime) -> SimTime {
        let epoch = self.epoch.map_or(1, SimDuration::as_picos);
        at.as_picos().div_ceil(epoch).checked_mul(epoch).map_or(SimTime::MAX, SimTime::from_picos)
    }

    fn next(&self, schedule: &Schedule, after: SimTime) -> Option<SimTime> {
        schedule.next(self.counted(after)).map(|at| self.counts_from(at))
    }

    /// Returns whether nothing changes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.schedules.is_empty()
    }

    /// Returns whether a resource ever changes.
    pub fn includes(&self, resource: Resource) -> bool {
        self.schedules.contains_key(&resource)
    }

    /// Returns the value of a resource at an instant; `None` if it is still that of the platform.
    pub fn value(&self, resource: Resource, at: SimTime) -> Option<f64> {
        self.schedules.get(&resource)?.value(self.counted(at))
    }

    /// Returns the last value of a resource until an instant that is not 0, whether it is on or not; `None` if that is its own.
    pub(crate) fn positive_value(&self, resource: Resource, at: SimTime) -> Option<f64> {
        let values = self.schedules.get(&resource)?.values.as_ref()?;
        values.until(self.counted(at)).find(|&value| value > 0.0)
    }

    /// Returns all values of a resource after its changes, while it is on.
    pub fn values(&self, resource: Resource) -> impl Iterator<Item = f64> {
        let values = self.schedules.get(&resource).and_then(|schedule| schedule.values.as_ref());
        values.into_iter().flat_map(Profile::points).map(|(_, value)| value)
    }

    /// Returns the resources that are at 0 at any time, and since when.
    pub fn first_off(&self) -> impl Iterator<Item = (Resource, SimTime)> {
        self.schedules.iter().filter_map(|(&resource, schedule)| {
            let points = schedule.profiles().flat_map(Profile::points);
            let off = points.filter(|(_, value)| *value == 0.0).map(|(at, _)| at).min()?;
            Some((resource, off))
        })
    }

    /// Returns the first instant at which a resource changes that does not change likewise in other changes; the begin of a run where both
    /// have changes of one resource which differ.
    pub fn first_difference(&self, other: &Self) -> Option<SimTime> {
        let of_one = |one: &Self, other: &Self| {
            let differs = |(resource, schedule): (&Resource, &Schedule)| match other.schedules.get(resource) {
                None => schedule.profiles().map(Profile::first).min(),
                Some(same) if same == schedule => None,
                Some(_) => Some(SimTime::ZERO),
            };
            one.schedules.iter().filter_map(differs).min()
        };
        let is_same_epoch = self.epoch == other.epoch;
        let firsts = [of_one(self, other), of_one(other, self), (!is_same_epoch).then_some(SimTime::ZERO)];
        firsts.into_iter().flatten().min()
    }

    /// Compares how far the next change lies ahead of the present: states with changes to come have another future.
    pub fn compare_next(&self, visitor: &mut StateVisitor<'_>) {
        let now = visitor.now();
        visitor.compare(&self.next_instant(now).map(|at| at - now));
    }

    /// Returns the first instant after another one at which anything changes. `O(resources that change)`.
    pub fn next_instant(&self, after: SimTime) -> Option<SimTime> {
        self.schedules.values().filter_map(|schedule| self.next(schedule, after)).min()
    }

    /// Returns the first instant after another one at which one of some resources changes.
    pub fn next_change(
        &self,
        resources: impl IntoIterator<Item = Resource>,
        after: SimTime,
    ) -> Option<SimTime> {
        let next = |resource| self.next(self.schedules.get(&resource)?, after);
        resources.into_iter().filter_map(next).min()
    }

    /// Returns whether a resource without bandwidth or speed gets some later.
    pub(crate) fn any_returns(&self, now: SimTime) -> bool {
        let at = self.counted(now);
        self.schedules.values().any(|schedule| schedule.value(at) == Some(0.0) && schedule.next(at).is_some())
    }

    /// Returns the resources without bandwidth or speed at the end of all changes, and since when.
    pub fn off_for_good(&self) -> impl Iterator<Item = (Resource, SimTime)> + '_ {
        self.schedules.iter().filter_map(|(&resource, schedule)| {
            let is_latency = matches!(resource, Resource::Latency(_));
            let off = schedule.profiles().filter(|profile| profile.is_zero_from(SimTime::MAX));
            let since = off.map(Profile::last).min();
            since.filter(|_| !is_latency).map(|at| (resource, at))
        })
    }
}

/// The changes of a run in the order of time, and how far a network has come.
#[derive(Debug, Default)]
pub(crate) struct ChangeCursor {
    /// Instant of the last change that was passed.
    last: Option<SimTime>,
    /// Next change of each resource that has one.
    next: BinaryHeap<Reverse<(SimTime, Resource)>>,
}

impl ChangeCursor {
    /// Makes a cursor before all changes. `O(resources that change)`.
    pub(crate) fn new(changes: &ResourceChanges) -> Self {
        Self::after(changes, None)
    }

    fn after(changes: &ResourceChanges, last: Option<SimTime>) -> Self {
        let has_first =
            |schedule: &&Schedule| schedule.profiles().any(|profile| profile.first() == SimTime::ZERO);
        let next = changes.schedules.iter().filter_map(|(&resource, schedule)| {
            let next = match last {
                None if has_first(&schedule) => Some(SimTime::ZERO),
                _ => changes.next(schedule, last.unwrap_or(SimTime::ZERO)),
            };
            Some(Reverse((next?, resource)))
        });
        Self { last, next: next.collect() }
    }

    /// Returns the instant of the next change.
    #[inline]
    pub(crate) fn next(&self) -> Option<SimTime> {
        self.next.peek().map(|&Reverse((at, _))| at)
    }

    /// Returns whether a change was passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.last.is_some()
    }

    /// Returns the instant of the last change that was passed; the begin of the run if there was none.
    pub(crate) fn last(&self) -> SimTime {
        self.last.unwrap_or(SimTime::ZERO)
    }

    /// Passes the changes until an instant, and returns them in the order of time. `O(log resources)` for each.
    pub(crate) fn pass(
        &mut self,
        platform: &Platform,
        changes: &ResourceChanges,
        until: SimTime,
    ) -> Vec<ResourceChange> {
        let mut passed = Vec::new();
        while let Some(&Reverse((at, resource))) = self.next.peek()
            && at <= until
        {
            self.next.pop();
            self.last = Some(at);
            let schedule = &changes.schedules[&resource];
            let value = schedule.value(changes.counted(at)).unwrap_or_else(|| {
                resource.own(platform).expect("the resources of the changes were checked")
            });
            passed.push(ResourceChange { at, resource, value });
            self.next.extend(changes.next(schedule, at).map(|at| Reverse((at, resource))));
        }
        passed
    }

    /// Returns the present values of the resources that change, at the last change that was passed.
    pub(crate) fn past(&self, changes: &ResourceChanges) -> Vec<ResourceChange> {
        let Some(at) = self.last else { return Vec::new() };
        let resources = changes.schedules.keys();
        let changed = resources.filter_map(|&resource| {
            Some(ResourceChange { at, resource, value: changes.value(resource, at)? })
        });
        changed.collect()
    }

    /// Saves how far the cursor has come, and finds the next changes again.
    pub(crate) fn visit(&mut self, changes: &ResourceChanges, visitor: &mut StateVisitor<'_>) {
        let Self { last, next: _ } = self;
        visitor.saved(last);
        if visitor.is_loading() {
            *self = Self::after(changes, self.last);
        }
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
    fn check(self, platform: &Platform) -> Result<(), ChangeError> {
        let (hosts, links) = (platform.hosts().len(), platform.links().len());
        let is_known = match self {
            Self::Bandwidth(link) | Self::Latency(link) => link.index() < links,
            Self::Speed(host) => host.index() < hosts,
        };
        if is_known { Ok(()) } else { Err(ChangeError::Unknown { resource: self, hosts, links }) }
    }

    /// Returns its value on a platform before any change.
    ///
    /// # Errors
    /// If the platform lacks the resource.
    pub(crate) fn own(self, platform: &Platform) -> Result<f64, ChangeError> {
        self.check(platform)?;
        Ok(match self {
            Self::Bandwidth(link) => platform.link(link).bandwidth,
            Self::Latency(link) => platform.link(link).latency,
            Self::Speed(host) => platform.host(host).speed,
        })
    }

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
    fn profiles_recur_and_resources_are_on_and_off() {
        let picos = SimTime::from_picos;
        let profile = |points: &[(u64, f64)], period: Option<u64>| {
            let points = points.iter().map(|&(at, value)| (picos(at), value)).collect();
            Profile::new(points, period.map(SimDuration::from_picos))
        };
        let (platform, mut changes) = (platform(), ResourceChanges::default());
        let values = profile(&[(10, 2.0), (25, 3.0)], Some(40)).unwrap();
        changes.set_values(SPEED, values);
        changes.set_state(SPEED, profile(&[(20, 0.0), (30, 1.0)], None).unwrap());
        let value = |at| changes.value(SPEED, picos(at));
        let expected = [None, Some(2.0), Some(0.0), Some(0.0), Some(3.0), Some(3.0), Some(2.0), Some(3.0)];
        assert_eq!([9, 10, 20, 29, 30, 49, 50, 65].map(value), expected);
        assert_eq!(changes.positive_value(SPEED, picos(29)), Some(3.0));
        let mut cursor = ChangeCursor::new(&changes);
        let mut passed = |until| -> Vec<(u64, f64)> {
            let passed = cursor.pass(&platform, &changes, picos(until)).into_iter();
            passed.map(|change| (change.at.as_picos(), change.value)).collect()
        };
        assert_eq!(passed(30), [(10, 2.0), (20, 0.0), (25, 0.0), (30, 3.0)]);
        assert_eq!(passed(100), [(50, 2.0), (65, 3.0), (90, 2.0)]);
        assert_eq!(cursor.next(), Some(picos(105)));
        // At the boundaries of epochs of 20 ps.
        let changes = changes.at_boundaries(SimDuration::from_picos(20));
        assert_eq!(
            [39, 40, 59, 60].map(|at| changes.value(SPEED, picos(at))),
            [0.0, 3.0, 3.0, 2.0].map(Some)
        );
        let passed = ChangeCursor::new(&changes).pass(&platform, &changes, picos(80));
        assert_eq!(passed.iter().map(|change| change.at.as_picos()).collect::<Vec<_>>(), [20, 40, 60, 80]);
        for (points, period, expected) in [
            (&[][..], None, "found no point"),
            (&[(5, 1.0), (4, 1.0)], None, "point 2 is at 0.000000000004 s"),
            (&[(5, -1.0)], None, "point 1 has the value -1"),
            (&[(5, 1.0)], Some(4), "shorter than the points"),
        ] {
            let error = profile(points, period).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// A resource that is off for good has no later change, whatever recurs.
    #[test]
    fn what_is_off_for_good_does_not_change() {
        let mut changes = ResourceChanges::default();
        let points = |values: [f64; 2]| vec![(SimTime::ZERO, values[0]), (SimTime::from_picos(5), values[1])];
        let recurring = Profile::new(points([1.0, 2.0]), Some(SimDuration::from_picos(8))).unwrap();
        changes.set_values(SPEED, recurring);
        assert!(!changes.any_returns(SimTime::ZERO));
        changes.set_state(SPEED, Profile::new(points([1.0, 0.0]), None).unwrap());
        assert_eq!(changes.next_instant(SimTime::ZERO), Some(SimTime::from_picos(5)));
        assert_eq!(changes.next_instant(SimTime::from_picos(5)), None);
        assert_eq!(changes.off_for_good().count(), 1);
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
