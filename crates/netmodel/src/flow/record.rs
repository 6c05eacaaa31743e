//! What links carry while flows share them.
//!
//! No load is kept where rates are solved: what a flow has brought over its links is known when it ends, and is looked at before at
//! each end of a bin of time. That costs the number of links on its way for each flow and bin, whatever its rates.

use std::borrow::Cow;

use pdes_core::SimTime;

use super::way::Ways;
use crate::MaxMin;
use crate::link_load::bins::{Bins, scale_of};
use crate::link_load::{Account, LinkLoads};
use crate::maxmin::{FlowIndex, LinkIndex};
use crate::{LinkId, Platform};

/// What links have carried so far.
#[derive(Debug)]
pub(super) struct Record {
    /// The end of the present bin [ps].
    next: u64,
    /// The messages that flow, by the numbers of their flows.
    travelling: Vec<Option<Travelling>>,
    /// By the numbers of the links.
    links: Vec<LinkRecord>,
}

/// A message that flows.
#[derive(Clone, Copy, Debug)]
struct Travelling {
    way: u32,
    /// What is not accounted for: bytes of the rate, times the penalty of the way.
    left: f64,
}

/// What a link has carried.
#[derive(Clone, Debug, Default)]
struct LinkRecord {
    bytes: u64,
    /// How long it has held messages back [ps], and since when, if it does now.
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
    /// Takes in that the data of a message flow from now on.
    pub(super) fn begin(&mut self, flow: FlowIndex, (way, ways): (u32, &Ways<'_>), bytes: u64, left: f64) {
        if self.travelling.len() <= flow.index() {
            self.travelling.resize(flow.index() + 1, None);
        }
        self.travelling[flow.index()] = Some(Travelling { way, left });
        for usage in ways.usages(way) {
            if self.links.len() <= usage.link.index() {
                self.links.resize_with(usage.link.index() + 1, LinkRecord::default);
            }
            // Acknowledgements on the way back are a part of a crossing.
            self.links[usage.link.index()].bytes += bytes * usage.weight as u64;
        }
    }

    /// Takes in that a message has arrived, and has left its links.
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

    /// Takes in that time goes on to an instant with the rates as they are; what is left of a flow at an instant until then is
    /// known.
    #[inline]
    pub(super) fn go_on(&mut self, now: SimTime, ways: &Ways<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        // Nothing ends at the end of time.
        if now.as_picos() >= self.next && now < SimTime::MAX {
            self.end_bins(now.as_picos(), ways, left);
        }
    }

    #[cold]
    fn end_bins(&mut self, now: u64, ways: &Ways<'_>, left: impl Fn(FlowIndex, SimTime) -> f64) {
        let scale = scale_of(now);
        let end_of = |bin: u64| u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX);
        // Bins may have become longer.
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

    /// Notes which links hold messages back after a solve.
    pub(super) fn note_solve(&mut self, now: SimTime, sharing: &MaxMin) {
        sharing.changed_links().for_each(|link| self.note(now, link, sharing));
    }

    fn note(&mut self, now: SimTime, link: LinkIndex, sharing: &MaxMin) {
        let Some(record) = self.links.get_mut(link.index()) else { return };
        // A link has a level where it holds flows back.
        match (record.full_since, sharing.level_at(link).is_finite()) {
            (None, true) => record.full_since = Some(now),
            (Some(since), false) => {
                record.saturated += (now - since).as_picos();
                record.full_since = None;
            }
            _ => {}
        }
    }

    /// Returns what the links have carried up to an instant.
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
