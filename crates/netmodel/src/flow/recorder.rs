//! Recording of link loads in the flow model.
//!
//! Nothing is recorded when rates are solved: the amount that a flow has brought over its links is known when it ends, and
//! is sampled before at each end of a bin of time. This costs the length of the route for each flow and bin, regardless of
//! the number of rate changes.

use std::borrow::Cow;

use pdes_core::SimTime;

use super::route::RouteCache;
use crate::MaxMin;
use crate::link_load::bins::{Bins, scale_of};
use crate::link_load::{LinkLoads, LinkTotals};
use crate::maxmin::{FlowIndex, LinkIndex};
use crate::{LinkId, Platform};

/// Recorder of link loads.
#[derive(Debug)]
pub(super) struct LoadRecorder {
    /// End of the present bin [ps].
    bin_end: u64,
    /// Active flows, by their numbers.
    flows: Vec<Option<ActiveFlow>>,
    /// Loads by link.
    links: Vec<RecordedLoad>,
}

/// An active flow.
#[derive(Clone, Copy, Debug)]
struct ActiveFlow {
    route: u32,
    /// Length not yet recorded: bytes times the penalty of the route.
    left: f64,
}

/// Load of a link.
#[derive(Clone, Debug, Default)]
struct RecordedLoad {
    bytes: u64,
    /// Time during which the link was a bottleneck [ps], and since when, if it is one now.
    saturated: u64,
    full_since: Option<SimTime>,
    bins: Bins,
}

impl Default for LoadRecorder {
    fn default() -> Self {
        Self { bin_end: 1, flows: Vec::new(), links: Vec::new() }
    }
}

impl LoadRecorder {
    /// Records the start of a flow.
    pub(super) fn begin(
        &mut self,
        flow: FlowIndex,
        (route, routes): (u32, &RouteCache<'_>),
        bytes: u64,
        left: f64,
    ) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, None);
        }
        self.flows[flow.index()] = Some(ActiveFlow { route, left });
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
        if let Some(ActiveFlow { route, left }) = self.flows[flow.index()].take() {
            self.add_volume(now.as_picos(), route, left, routes);
            routes.usages(route).iter().for_each(|usage| self.record_saturation(now, usage.link, sharing));
        }
    }

    fn add_volume(&mut self, at: u64, route: u32, length: f64, routes: &RouteCache<'_>) {
        let volume = length / routes.penalty(route);
        for usage in routes.usages(route) {
            self.links[usage.link.index()].bins.add(at, volume * usage.weight);
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
        if now.as_picos() >= self.bin_end && now < SimTime::MAX {
            self.close_bins(now.as_picos(), routes, left);
        }
    }

    #[cold]
    fn close_bins(&mut self, now: u64, routes: &RouteCache<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        let scale = scale_of(now);
        let end_of = |bin: u64| u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX);
        // Bins may have been merged.
        self.bin_end = end_of((self.bin_end - 1) >> scale);
        while self.bin_end <= now {
            for flow in 0..self.flows.len() {
                let Some(ActiveFlow { route, left: before }) = self.flows[flow] else { continue };
                let now =
                    left(FlowIndex::new(flow as u32), SimTime::from_picos(self.bin_end)).clamp(0.0, before);
                self.flows[flow] = Some(ActiveFlow { route, left: now });
                self.add_volume(self.bin_end - 1, route, before - now, routes);
            }
            self.bin_end = end_of(self.bin_end >> scale);
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

    /// Returns the link loads up to an instant.
    pub(super) fn loads(&self, platform: &Platform, routes: &RouteCache<'_>, end: SimTime) -> LinkLoads {
        let link_totals = routes.links().filter_map(|(id, link): (LinkId, LinkIndex)| {
            let record = self.links.get(link.index())?;
            let since = record.full_since.and_then(|since| end.checked_since(since));
            Some(LinkTotals {
                link: id,
                bytes: record.bytes,
                saturated: record.saturated + since.map_or(0, |time| time.as_picos()),
                capacity: platform.link(id).bandwidth / 1e12,
                bins: Cow::Borrowed(&record.bins),
            })
        });
        LinkLoads::new(platform, end, link_totals)
    }
}
