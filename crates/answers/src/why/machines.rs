//! Machines between two: the hosts, links and routes of one platform with speeds, latencies and bandwidths of the other.

use std::sync::Arc;

use netmodel::{Host, Link, LinkClass, Platform};
use replay::{PlatformChange, RunSpec};

use super::factor::Factor;
use crate::link_group::LinkGroup;

/// Side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The first run.
    One,
    /// The second run.
    Other,
}

/// The platforms of two runs, and the values of each that the other one can have.
pub(super) struct Machines {
    pub(super) platforms: [Platform; 2],
    /// Latencies, bandwidths, and values of hosts, by the side of the topology and the side of the values; `None` where the other side has
    /// no values for some link or host.
    latencies: [[Option<Arc<[f64]>>; 2]; 2],
    bandwidths: [[Option<Arc<[f64]>>; 2]; 2],
    hosts: [[Option<Arc<[HostValues]>>; 2]; 2],
}

/// Values of a host that decide how long it computes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct HostValues {
    speed: f64,
    memory_bandwidth: Option<f64>,
}

impl HostValues {
    fn of(&Host { speed, memory_bandwidth, .. }: &Host) -> Self {
        Self { speed, memory_bandwidth }
    }
}

/// Values that take the place of those of a platform.
#[derive(Debug)]
struct Values {
    latencies: Arc<[f64]>,
    bandwidths: Arc<[f64]>,
    hosts: Arc<[HostValues]>,
}

impl PlatformChange for Values {
    fn apply(&self, platform: &mut Platform) {
        platform.change_links(|id, link| {
            (link.latency, link.bandwidth) = (self.latencies[id.index()], self.bandwidths[id.index()]);
        });
        platform.change_hosts(|id, host| {
            let HostValues { speed, memory_bandwidth } = self.hosts[id.index()];
            (host.speed, host.memory_bandwidth) = (speed, memory_bandwidth);
        });
    }
}

impl Machines {
    pub(super) fn new(platforms: [Platform; 2]) -> Self {
        let sides = [0, 1];
        let links = |value: fn(&Link) -> f64| {
            sides.map(|shape| sides.map(|source| link_values(&platforms[shape], &platforms[source], value)))
        };
        let hosts = sides.map(|shape| sides.map(|source| host_values(&platforms[shape], &platforms[source])));
        let (latencies, bandwidths) = (links(|link| link.latency), links(|link| link.bandwidth));
        Self { platforms, latencies, bandwidths, hosts }
    }

    /// Returns whether hosts and links have other names, cores or ways of sharing.
    pub(super) fn have_other_shapes(&self) -> bool {
        let [one, other] = &self.platforms;
        let same_hosts = one
            .hosts()
            .iter()
            .map(|host| (&host.name, host.cores))
            .eq(other.hosts().iter().map(|host| (&host.name, host.cores)));
        let same_links = one
            .links()
            .iter()
            .map(|link| (&link.name, link.sharing))
            .eq(other.links().iter().map(|link| (&link.name, link.sharing)));
        !(same_hosts && same_links)
    }

    /// Returns whether hosts have other names.
    pub(super) fn have_other_hosts(&self) -> bool {
        let [one, other] = &self.platforms;
        !one.hosts().iter().map(|host| &host.name).eq(other.hosts().iter().map(|host| &host.name))
    }

    /// Returns whether the values of a factor differ between the sides; `None` if one side cannot have those of the other.
    pub(super) fn differs(&self, factor: Factor) -> Option<bool> {
        fn differ<T: PartialEq + ?Sized>(values: &[[Option<Arc<T>>; 2]; 2]) -> Option<bool> {
            let [[Some(own), Some(other)], [Some(back), Some(there)]] = values else { return None };
            Some(own != other || back != there)
        }
        match factor {
            Factor::Latency => differ(&self.latencies),
            Factor::Bandwidth => differ(&self.bandwidths),
            Factor::Computation => differ(&self.hosts),
            _ => Some(false),
        }
    }

    /// Gives a run with the topology of one side the values of the sides that `side` names; of its own side where the other has none.
    pub(super) fn mix(&self, spec: &mut RunSpec, side: impl Fn(Factor) -> Side) {
        let shape = side(Factor::Topology) as usize;
        fn pick<T: ?Sized>(values: &[Option<Arc<T>>; 2], source: usize, own: usize) -> Arc<T> {
            let values = values[source].as_ref().or(values[own].as_ref());
            Arc::clone(values.expect("a platform has its own values"))
        }
        spec.platform_changes.push(Arc::new(Values {
            latencies: pick(&self.latencies[shape], side(Factor::Latency) as usize, shape),
            bandwidths: pick(&self.bandwidths[shape], side(Factor::Bandwidth) as usize, shape),
            hosts: pick(&self.hosts[shape], side(Factor::Computation) as usize, shape),
        }));
    }
}

/// Returns the values of the links of one platform as another has them: link by link, where the links have the same names; else by groups,
/// where all links of a group have one value; else the value that all links outside of hosts have.
fn link_values(shape: &Platform, source: &Platform, value: fn(&Link) -> f64) -> Option<Arc<[f64]>> {
    let names =
        |platform: &Platform| platform.links().iter().map(|link| link.name.clone()).collect::<Vec<_>>();
    if names(shape) == names(source) {
        return Some(source.links().iter().map(value).collect());
    }
    let inside = LinkClass::InsideHost.name();
    let groups: Vec<LinkGroup> = LinkGroup::groups(source);
    let known: Vec<(&str, Option<f64>)> =
        groups.iter().map(|group| (group.name.as_str(), group.value(source, value))).collect();
    let mut outside = known.iter().filter(|(name, _)| *name != inside).map(|(_, value)| *value);
    let first = outside.next().flatten();
    let everywhere = first.filter(|_| outside.all(|value| value == first));
    let mut values = vec![0.0; shape.links().len()];
    for group in LinkGroup::groups(shape) {
        let found = known.iter().find(|(name, _)| *name == group.name).map(|(_, value)| *value);
        let found = match found {
            Some(found) => found?,
            None if group.name == inside => return None,
            None => everywhere?,
        };
        group.links.iter().flat_map(|links| links.iter()).for_each(|link| values[link.index()] = found);
    }
    Some(values.into())
}

/// Returns the values of the hosts of one platform as another has them: host by host, where there are equally many; else the values that
/// all hosts have.
fn host_values(shape: &Platform, source: &Platform) -> Option<Arc<[HostValues]>> {
    let values: Vec<HostValues> = source.hosts().iter().map(HostValues::of).collect();
    if shape.hosts().len() == values.len() {
        return Some(values.into());
    }
    let first = *values.first()?;
    values.iter().all(|values| *values == first).then(|| vec![first; shape.hosts().len()].into())
}
