//! Observers of a network: what its links carry and its hosts compute, over time.

use std::fmt::Debug;
use std::ops::Range;

use pdes_core::{SimDuration, SimTime};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host_load::HostTotals;
use crate::link_load::LinkTotals;
use crate::{HostId, LinkId, Platform, ResourceChange};

/// Observer of a network and of the hosts on it, which is told of an interval when it is over.
///
/// A model is generic over its observer, so that `()`, which observes nothing, costs nothing.
///
/// # Laws
/// 1. An observer changes nothing in the network.
/// 2. Intervals of one link and one message, and those of one host, follow each other; in between nothing was carried or computed.
/// 3. What is told does not depend on the number of threads and processes, but for the order of links and hosts.
pub trait NetworkObserver: Default + Debug + Send + Serialize + DeserializeOwned {
    /// Returns whether anything is observed at all; if not, the observer need not be told.
    #[inline]
    fn is_observing(&self) -> bool {
        true
    }

    /// Returns the next instant until which the observer is to know what links have carried: intervals end there, too. The network has
    /// come to `now`. By default intervals end with messages and changes only.
    fn next_sample(&mut self, now: SimTime) -> SimTime {
        let _ = now;
        SimTime::MAX
    }

    /// Everything until such an instant has been told.
    fn sampled(&mut self, at: SimTime, now: SimTime) {
        let _ = (at, now);
    }

    /// A message, or a part of one that takes several routes, begins to flow over a link: `bytes` on the wire for each time that its route crosses the link.
    fn message_began(&mut self, link: ObservedLink, bytes: u64) {
        let _ = (link, bytes);
    }

    /// A message, or its acknowledgements, has brought `bytes` over a link in an interval.
    fn carried(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        let _ = (link, time, bytes);
    }

    /// A link limits the rate of a message from an instant on, or none any more.
    fn limits(&mut self, link: ObservedLink, from: SimTime, is_bottleneck: bool) {
        let _ = (link, from, is_bottleneck);
    }

    /// The most demanding message of a fat pipe whose power [depends on its load](crate::Power) has brought `bytes` over it in an interval.
    /// The observer is not told of its other messages.
    fn peaked(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        let _ = (link, time, bytes);
    }

    /// Computations have kept so many cores of a host busy in an interval, each at this speed [flop/s].
    fn computed(&mut self, host: HostId, time: Range<SimTime>, cores: f64, speed: f64) {
        let _ = (host, time, cores, speed);
    }

    /// A resource has changed. What it carried or computed before has been told.
    fn changed(&mut self, change: &ResourceChange) {
        let _ = change;
    }

    /// The messages of a link move to the network of another observer, which knows the link by another number.
    fn move_link(&mut self, link: ObservedLink, now: SimTime, to: (&mut Self, ObservedLink)) {
        let _ = (link, now, to);
    }

    /// The interval of length `period` which begins now may be repeated so many times. All has been told until now.
    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let _ = (now, period, repetitions);
    }

    /// The interval that was announced ends now, and is repeated. All has been told until now.
    fn repeat_period(&mut self, now: SimTime) {
        let _ = now;
    }

    /// Enables the recording of [link loads](crate::LinkLoads), if the observer records them.
    fn record_link_loads(&mut self) {}

    /// Enables the recording of [host loads](crate::HostLoads), if the observer records them.
    fn record_host_loads(&mut self) {}

    /// Returns the loads of hosts, as far as they are recorded.
    fn host_totals(&self) -> Vec<HostTotals> {
        Vec::new()
    }

    /// Returns the loads of some links until an instant; `None` unless they are recorded.
    fn link_totals<'a>(
        &'a self,
        platform: &'a Platform,
        links: impl Iterator<Item = ObservedLink> + 'a,
        end: SimTime,
    ) -> Option<impl Iterator<Item = LinkTotals<'a>>> {
        let _ = (platform, links, end);
        None::<std::iter::Empty<_>>
    }
}

/// A link that an observer is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedLink {
    /// The link.
    pub link: LinkId,
    /// Its number among the links that have been in use, from 0.
    pub slot: u32,
}

/// Observes nothing.
impl NetworkObserver for () {
    #[inline]
    fn is_observing(&self) -> bool {
        false
    }
}
