//! Recording of link loads in the flow model.
//!
//! Nothing is recorded when rates are solved: the amount that a flow has brought over its links is known when it ends, and
//! is sampled before at each end of a bin of time. This costs the length of the route for each flow and bin, regardless of
//! the number of rate changes.

use std::borrow::Cow;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::route::RouteCache;
use super::watched_period::WatchedPeriod;
use crate::MaxMin;
use crate::link_load::LinkTotals;
use crate::link_load::bins::{Bins, scale_of};
use crate::maxmin::{Component, FlowIndex, LinkIndex, Relocation};
use crate::{LinkId, Platform};

/// Recorder of link loads.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LoadRecorder {
    /// End of the present bin [ps].
    bin_end: u64,
    /// Earliest instant at which all flows are to be sampled [ps].
    next_sample: u64,
    /// Active flows, by their numbers.
    flows: Vec<Option<ActiveFlow>>,
    /// Loads by link.
    links: Vec<RecordedLoad>,
    /// Interval that may be repeated.
    #[serde(skip)]
    watch: Option<WatchedPeriod>,
}

/// An active flow.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ActiveFlow {
    route: u32,
    /// Bytes times the penalty of the route.
    length: f64,
    /// Length not yet recorded.
    left: f64,
}

/// Load of a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct RecordedLoad {
    pub(super) bytes: u64,
    /// Time during which the link was a bottleneck [ps], and since when, if it is one now.
    saturated: u64,
    full_since: Option<SimTime>,
    /// Sum of all bins.
    pub(super) volume: f64,
    pub(super) bins: Bins,
}

/// Volumes are counted in units of a 1024th of a byte: their sums are exact up to 8 TB, whatever their order, so that a bin has the
/// same sum however often its flows were sampled.
const UNITS_PER_BYTE: f64 = 1024.0;

impl RecordedLoad {
    /// Returns the time during which the link was a bottleneck until now [ps].
    pub(super) fn saturated_until(&self, now: SimTime) -> u64 {
        let since = self.full_since.and_then(|since| now.checked_since(since));
        self.saturated + since.map_or(0, |time| time.as_picos())
    }

    /// Sets the time during which the link was a bottleneck until now [ps].
    pub(super) fn set_saturated_until(&mut self, now: SimTime, saturated: u64) {
        self.saturated = saturated;
        self.full_since = self.full_since.map(|_| now);
    }
}

impl Default for LoadRecorder {
    fn default() -> Self {
        Self { bin_end: 1, next_sample: 1, flows: Vec::new(), links: Vec::new(), watch: None }
    }
}

impl LoadRecorder {
    /// Records the start of a flow.
    pub(super) fn begin(
        &mut self,
        flow: FlowIndex,
        (route, routes): (u32, &RouteCache<'_>),
        bytes: u64,
        length: f64,
    ) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, None);
        }
        self.flows[flow.index()] = Some(ActiveFlow { route, length, left: length });
        for usage in routes.usages(route) {
            if self.links.len() <= usage.link.index() {
                self.links.resize_with(usage.link.index() + 1, RecordedLoad::default);
            }
            // The weight is truncated to whole crossings: acknowledgements on the reverse route do not count as bytes
            // of messages.
            self.links[usage.link.index()].bytes += bytes * usage.weight as u64;
        }
    }

    /// Records the end of a flow, which has left its links.
    pub(super) fn end(
        &mut self,
        now: SimTime,
        flow: FlowIndex,
        (routes, sharing): (&RouteCache<'_>, &MaxMin),
    ) {
        if let Some(active) = self.flows[flow.index()].take() {
            self.add_volume(now.as_picos(), active, 0.0, routes);
            let usages = routes.usages(active.route).iter();
            usages.for_each(|usage| self.record_saturation(now, usage.link, sharing));
        }
    }

    /// Adds the volume that a flow has brought over its links since it was recorded last.
    fn add_volume(&mut self, at: u64, flow: ActiveFlow, left: f64, routes: &RouteCache<'_>) {
        let penalty = routes.penalty(flow.route);
        let [sent, sent_before] =
            [left, flow.left].map(|left| (flow.length - left) / penalty * UNITS_PER_BYTE);
        // Nearly all links of a route have the same weight, so its volume is computed once.
        let (mut weight, mut volume) = (0.0, 0.0);
        for usage in routes.usages(flow.route) {
            if usage.weight != weight {
                weight = usage.weight;
                // Casts round down, without the call that `floor` is where the processor may be old.
                let units = |sent: f64| (sent * weight) as i64;
                volume = (units(sent) - units(sent_before)) as f64 / UNITS_PER_BYTE;
            }
            let link = &mut self.links[usage.link.index()];
            link.volume += volume;
            link.bins.add(at, volume);
        }
    }

    /// Advances to an instant with constant rates; `left` returns the length left of a flow at an instant until then.
    #[inline]
    pub(super) fn advance(
        &mut self,
        now: SimTime,
        routes: &RouteCache<'_>,
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        // No event ends at the end of time.
        if now.as_picos() >= self.next_sample && now < SimTime::MAX {
            self.sample_until(now.as_picos(), routes, left);
        }
    }

    #[cold]
    fn sample_until(&mut self, now: u64, routes: &RouteCache<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        let scale = scale_of(now);
        // Bins may have been merged.
        self.bin_end = end_of_bin((self.bin_end - 1) >> scale, scale);
        loop {
            let watched = self.watch.as_ref().and_then(WatchedPeriod::next_sample);
            self.next_sample = watched.map_or(self.bin_end, |at| at.min(self.bin_end));
            let at = self.next_sample;
            if at > now {
                return;
            }
            self.sample(at, routes, &left);
            if at == self.bin_end {
                self.bin_end = end_of_bin(at >> scale, scale);
            }
            if let Some(watch) = self.watch.as_mut().filter(|_| watched == Some(at)) {
                watch.add_sample(&self.links);
            }
        }
    }

    /// Records the volumes of all flows up to an instant.
    fn sample(&mut self, at: u64, routes: &RouteCache<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        for flow in 0..self.flows.len() {
            let Some(active) = self.flows[flow] else { continue };
            let left = left(FlowIndex::new(flow as u32), SimTime::from_picos(at)).clamp(0.0, active.left);
            self.flows[flow] = Some(ActiveFlow { left, ..active });
            self.add_volume(at.saturating_sub(1), active, left, routes);
        }
    }

    /// Samples the loads of an interval that begins now as they are needed to repeat it.
    pub(super) fn watch(
        &mut self,
        now: SimTime,
        (period, repetitions): (SimDuration, u64),
        routes: &RouteCache<'_>,
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        self.advance(now, routes, &left);
        self.sample(now.as_picos(), routes, left);
        self.watch = Some(WatchedPeriod::new(now, period, repetitions, &self.links));
        self.next_sample = 0;
    }

    /// Repeats the interval that was [watched](LoadRecorder::watch), and ends now.
    pub(super) fn repeat(
        &mut self,
        now: SimTime,
        routes: &RouteCache<'_>,
        left: impl Fn(FlowIndex, SimTime) -> f64,
    ) {
        self.advance(now, routes, &left);
        self.sample(now.as_picos(), routes, left);
        let watch = self.watch.take().expect("the interval was watched");
        watch.repeat(now, &mut self.links);
        let end = watch.end().as_picos();
        let scale = scale_of(end);
        self.bin_end = end_of_bin(end >> scale, scale);
        self.next_sample = self.bin_end;
    }

    /// Moves the flows of a component to the recorder of another network; `routes` gives their routes there. Both recorders have
    /// [advanced](LoadRecorder::advance) to `now`.
    pub(super) fn move_component(
        &mut self,
        now: SimTime,
        (component, relocation): (&Component, &Relocation),
        to: &mut Self,
        route_there: impl Fn(FlowIndex) -> u32,
    ) {
        for &flow in &component.flows {
            let there = relocation.flows[&flow].index();
            if to.flows.len() <= there {
                to.flows.resize(there + 1, None);
            }
            let active = self.flows[flow.index()].take();
            to.flows[there] = active.map(|active| ActiveFlow { route: route_there(flow), ..active });
        }
        for &link in &component.links {
            let there = relocation.links[&link].index();
            if to.links.len() <= there {
                to.links.resize_with(there + 1, RecordedLoad::default);
            }
            if let Some(record) = self.links.get_mut(link.index())
                && record.full_since.is_some()
            {
                record.saturated = record.saturated_until(now);
                record.full_since = None;
                to.links[there].full_since = Some(now);
            }
        }
    }

    /// Records which links are bottlenecks after a solve.
    pub(super) fn record_solve(&mut self, now: SimTime, sharing: &MaxMin) {
        let links = sharing.changed_links().chain(sharing.freed_links());
        links.for_each(|link| self.record_saturation(now, link, sharing));
    }

    fn record_saturation(&mut self, now: SimTime, link: LinkIndex, sharing: &MaxMin) {
        let Some(record) = self.links.get_mut(link.index()) else { return };
        // A link has a finite level if it is a bottleneck.
        match (record.full_since, sharing.link_level(link).is_finite()) {
            (None, true) => record.full_since = Some(now),
            (Some(since), false) => {
                record.saturated += (now - since).as_picos();
                record.full_since = None;
            }
            _ => {}
        }
    }

    /// Returns the totals of links up to an instant.
    pub(super) fn totals<'a>(
        &'a self,
        platform: &'a Platform,
        routes: &'a RouteCache<'_>,
        end: SimTime,
    ) -> impl Iterator<Item = LinkTotals<'a>> {
        routes.links().filter_map(move |(id, link): (LinkId, LinkIndex)| {
            let record = self.links.get(link.index())?;
            Some(LinkTotals {
                link: id,
                bytes: record.bytes,
                saturated: record.saturated_until(end),
                capacity: platform.link(id).bandwidth / 1e12,
                bins: Cow::Borrowed(&record.bins),
            })
        })
    }
}

/// Returns the end of a bin of `2^scale` picoseconds.
fn end_of_bin(bin: u64, scale: u32) -> u64 {
    u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX)
}
