//! Recording of link loads in the flow model.
//!
//! Nothing is recorded when rates are solved: the amount that a flow has brought over its links is known when it ends, and
//! is sampled before at each end of a bin of time. This costs the length of the route for each flow and bin, regardless of
//! the number of rate changes.

use std::borrow::Cow;

use pdes_core::SimTime;

use super::way::Ways;
use crate::MaxMin;
use crate::link_load::bins::{Bins, scale_of};
use crate::link_load::{Account, LinkLoads};
use crate::maxmin::{FlowIndex, LinkIndex};
use crate::{LinkId, Platform};

/// Recorder of link loads.
#[derive(Debug)]
pub(super) struct Record {
    /// End of the present bin [ps].
    next: u64,
    /// Active flows, by their numbers.
    travelling: Vec<Option<Travelling>>,
    /// Loads by link.
    links: Vec<LinkRecord>,
}

/// An active flow.
#[derive(Clone, Copy, Debug)]
struct Travelling {
    way: u32,
    /// Length not yet recorded: bytes times the penalty of the route.
    left: f64,
}

/// Load of a link.
#[derive(Clone, Debug, Default)]
struct LinkRecord {
    bytes: u64,
    /// Time during which the link was a bottleneck [ps], and since when, if it is one now.
    saturated: u64,
    full_since: Option<SimTime>,
    bins: Bins,
}

impl Default for Record {
    fn default() -> Self {
        Self { next: 1, travelling: Vec::new(), links: Vec::new() }
    }
}

impl Record {
    /// Records the start of a flow.
    pub(super) fn begin(&mut self, flow: FlowIndex, (way, ways): (u32, &Ways<'_>), bytes: u64, left: f64) {
        if self.travelling.len() <= flow.index() {
            self.travelling.resize(flow.index() + 1, None);
        }
        self.travelling[flow.index()] = Some(Travelling { way, left });
        for usage in ways.usages(way) {
            if self.links.len() <= usage.link.index() {
                self.links.resize_with(usage.link.index() + 1, LinkRecord::default);
            }
            // The weight is truncated to whole crossings: acknowledgements on the reverse route do not count as bytes
            // of messages.
            self.links[usage.link.index()].bytes += bytes * usage.weight as u64;
        }
    }

    /// Records the end of a flow, which has left its links.
    pub(super) fn end(&mut self, now: SimTime, flow: FlowIndex, (ways, sharing): (&Ways<'_>, &MaxMin)) {
        if let Some(Travelling { way, left }) = self.travelling[flow.index()].take() {
            self.bring(now.as_picos(), way, left, ways);
            ways.usages(way).iter().for_each(|usage| self.note(now, usage.link, sharing));
        }
    }

    fn bring(&mut self, at: u64, way: u32, length: f64, ways: &Ways<'_>) {
        let volume = length / ways.penalty(way);
        for usage in ways.usages(way) {
            self.links[usage.link.index()].bins.put(at, volume * usage.weight);
        }
    }

    /// Advances to an instant with constant rates; `left` returns the length left of a flow at an instant until then.
    #[inline]
    pub(super) fn go_on(&mut self, now: SimTime, ways: &Ways<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        // No event ends at the end of time.
        if now.as_picos() >= self.next && now < SimTime::MAX {
            self.end_bins(now.as_picos(), ways, left);
        }
    }

    #[cold]
    fn end_bins(&mut self, now: u64, ways: &Ways<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        let scale = scale_of(now);
        let end_of = |bin: u64| u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX);
        // Bins may have been merged.
        self.next = end_of((self.next - 1) >> scale);
        while self.next <= now {
            for flow in 0..self.travelling.len() {
                let Some(Travelling { way, left: before }) = self.travelling[flow] else { continue };
                let now =
                    left(FlowIndex::new(flow as u32), SimTime::from_picos(self.next)).clamp(0.0, before);
                self.travelling[flow] = Some(Travelling { way, left: now });
                self.bring(self.next - 1, way, before - now, ways);
            }
            self.next = end_of(self.next >> scale);
        }
    }

    /// Records which links are bottlenecks after a solve.
    pub(super) fn note_solve(&mut self, now: SimTime, sharing: &MaxMin) {
        sharing.changed_links().for_each(|link| self.note(now, link, sharing));
    }

    fn note(&mut self, now: SimTime, link: LinkIndex, sharing: &MaxMin) {
        let Some(record) = self.links.get_mut(link.index()) else { return };
        // A link has a finite level if it is a bottleneck.
        match (record.full_since, sharing.level_at(link).is_finite()) {
            (None, true) => record.full_since = Some(now),
            (Some(since), false) => {
                record.saturated += (now - since).as_picos();
                record.full_since = None;
            }
            _ => {}
        }
    }

    /// Returns the link loads up to an instant.
    pub(super) fn loads(&self, platform: &Platform, ways: &Ways<'_>, end: SimTime) -> LinkLoads {
        let accounts = ways.links().filter_map(|(id, link): (LinkId, LinkIndex)| {
            let record = self.links.get(link.index())?;
            let since = record.full_since.and_then(|since| end.checked_since(since));
            Some(Account {
                link: id,
                bytes: record.bytes,
                saturated: record.saturated + since.map_or(0, |time| time.as_picos()),
                capacity: platform.link(id).bandwidth / 1e12,
                bins: Cow::Borrowed(&record.bins),
            })
        });
        LinkLoads::new(platform, end, accounts)
    }
}
