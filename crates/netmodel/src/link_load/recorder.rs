//! Recorder of loads: an observer that sums up what links carry and hosts compute, in bins of time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::LinkTotals;
use super::bandwidths::AmountsByBandwidth;
use super::bins::{Bins, scale_of};
use super::watched_period::WatchedPeriod;
use crate::host_load::{HostRecorder, HostTotals};
use crate::observer::{NetworkObserver, ObservedLink};
use crate::{HostId, LinkId, Platform, Resource, ResourceChange};

/// Recorder of the loads of links and hosts, as far as it is enabled: a kilobyte for each link that carries anything, two for each host
/// that computes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LoadRecorder {
    links: Option<Box<LinkRecording>>,
    hosts: Option<Box<HostRecorder>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LinkRecording {
    /// End of the present bin [ps].
    bin_end: u64,
    /// Loads by link.
    links: Vec<RecordedLoad>,
    /// Bandwidths of links that are not those of the platform any more [B/ps].
    bandwidths: BTreeMap<LinkId, f64>,
    /// Interval that may be repeated.
    #[serde(skip)]
    watch: Option<WatchedPeriod>,
}

/// Load of a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RecordedLoad {
    pub(crate) bytes: u64,
    /// Time during which the link was a bottleneck [ps], and since when, if it is one now.
    saturated: u64,
    full_since: Option<SimTime>,
    /// Sum of all bins.
    pub(crate) volume: f64,
    pub(crate) bins: Bins,
    pub(crate) by_bandwidth: AmountsByBandwidth,
}

impl RecordedLoad {
    /// Returns the time during which the link was a bottleneck until now [ps].
    pub(crate) fn saturated_until(&self, now: SimTime) -> u64 {
        let since = self.full_since.and_then(|since| now.checked_since(since));
        self.saturated + since.map_or(0, |time| time.as_picos())
    }

    /// Sets the time during which the link was a bottleneck until now [ps].
    pub(crate) fn set_saturated_until(&mut self, now: SimTime, saturated: u64) {
        self.saturated = saturated;
        self.full_since = self.full_since.map(|_| now);
    }
}

impl Default for LinkRecording {
    fn default() -> Self {
        Self { bin_end: 1, links: Vec::new(), bandwidths: BTreeMap::new(), watch: None }
    }
}

impl LinkRecording {
    fn link(&mut self, link: ObservedLink) -> &mut RecordedLoad {
        let place = link.slot as usize;
        if self.links.len() <= place {
            self.links.resize_with(place + 1, RecordedLoad::default);
        }
        &mut self.links[place]
    }

    /// Adds what a link has carried at its present bandwidth, where that has changed.
    #[cold]
    fn carried_at_bandwidth(&mut self, observed: ObservedLink, bytes: f64) {
        let changed = self.bandwidths.get(&observed.link).copied();
        let link = self.link(observed);
        if let Some(bandwidth) = changed {
            link.by_bandwidth.set(bandwidth);
        }
        link.by_bandwidth.add(bytes);
    }

    #[inline]
    fn carried(&mut self, observed: ObservedLink, time: Range<SimTime>, bytes: f64) {
        if !self.bandwidths.is_empty() {
            self.carried_at_bandwidth(observed, bytes);
        }
        let link = self.link(observed);
        link.volume += bytes;
        // No interval goes beyond the end of a bin.
        link.bins.add(time.start.as_picos(), bytes);
    }
}

impl NetworkObserver for LoadRecorder {
    #[inline]
    fn is_observing(&self) -> bool {
        self.links.is_some() || self.hosts.is_some()
    }

    fn next_sample(&mut self, now: SimTime) -> SimTime {
        let Some(recording) = &mut self.links else { return SimTime::MAX };
        let LinkRecording { bin_end, watch, .. } = &mut **recording;
        let scale = scale_of(now.as_picos());
        // Bins may have been merged.
        *bin_end = end_of_bin((*bin_end - 1) >> scale, scale);
        let watched = watch.as_ref().and_then(WatchedPeriod::next_sample);
        SimTime::from_picos(watched.map_or(*bin_end, |at| at.min(*bin_end)))
    }

    fn sampled(&mut self, at: SimTime, now: SimTime) {
        let Some(recording) = &mut self.links else { return };
        let LinkRecording { bin_end, links, watch, .. } = &mut **recording;
        let (at, scale) = (at.as_picos(), scale_of(now.as_picos()));
        if at == *bin_end {
            *bin_end = end_of_bin(at >> scale, scale);
        }
        if let Some(watch) = watch
            && watch.next_sample() == Some(at)
        {
            watch.add_sample(links);
        }
    }

    fn message_began(&mut self, link: ObservedLink, bytes: u64) {
        if let Some(recording) = &mut self.links {
            recording.link(link).bytes += bytes;
        }
    }

    #[inline]
    fn carried(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        if let Some(recording) = &mut self.links {
            recording.carried(link, time, bytes);
        }
    }

    fn peaked(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        self.carried(link, time, bytes);
    }

    fn computed(&mut self, host: HostId, time: Range<SimTime>, cores: f64, speed: f64) {
        if let Some(hosts) = &mut self.hosts {
            hosts.computed(host, time, cores, speed);
        }
    }

    fn changed(&mut self, change: &ResourceChange) {
        if let (Some(recording), Resource::Bandwidth(link)) = (&mut self.links, change.resource) {
            recording.bandwidths.insert(link, change.value / 1e12);
        }
    }

    fn limits(&mut self, link: ObservedLink, from: SimTime, is_bottleneck: bool) {
        let Some(recording) = &mut self.links else { return };
        let Some(record) = recording.links.get_mut(link.slot as usize) else { return };
        match (record.full_since, is_bottleneck) {
            (None, true) => record.full_since = Some(from),
            (Some(since), false) => {
                record.saturated += (from - since).as_picos();
                record.full_since = None;
            }
            _ => {}
        }
    }

    fn move_link(&mut self, link: ObservedLink, now: SimTime, (to, there): (&mut Self, ObservedLink)) {
        if let (Some(here), Some(to)) = (&mut self.links, &mut to.links)
            && let Some(record) = here.links.get_mut(link.slot as usize)
            && record.full_since.is_some()
        {
            record.saturated = record.saturated_until(now);
            record.full_since = None;
            to.link(there).full_since = Some(now);
        }
    }

    /// Samples the loads of the interval as they are needed to repeat it.
    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        if let Some(hosts) = &mut self.hosts {
            hosts.watch_period(now, period, repetitions);
        }
        if let Some(LinkRecording { links, watch, .. }) = self.links.as_deref_mut() {
            *watch = Some(WatchedPeriod::new(now, period, repetitions, links));
        }
    }

    fn repeat_period(&mut self, now: SimTime) {
        if let Some(hosts) = &mut self.hosts {
            hosts.repeat_period(now);
        }
        let Some(recording) = &mut self.links else { return };
        let LinkRecording { bin_end, links, watch, .. } = &mut **recording;
        let watch = watch.take().expect("the interval was announced");
        watch.repeat(now, links);
        let end = watch.end().as_picos();
        let scale = scale_of(end);
        *bin_end = end_of_bin(end >> scale, scale);
    }

    fn record_link_loads(&mut self) {
        self.links = Some(Box::default());
    }

    fn record_host_loads(&mut self) {
        self.hosts = Some(Box::default());
    }

    fn host_totals(&self) -> Vec<HostTotals> {
        self.hosts.iter().flat_map(|hosts| hosts.totals()).collect()
    }

    fn link_totals<'a>(
        &'a self,
        platform: &'a Platform,
        links: impl Iterator<Item = ObservedLink> + 'a,
        end: SimTime,
    ) -> Option<impl Iterator<Item = LinkTotals<'a>>> {
        let recording = self.links.as_ref()?;
        Some(links.filter_map(move |ObservedLink { link, slot }| {
            let record = recording.links.get(slot as usize)?;
            Some(LinkTotals {
                link,
                bytes: record.bytes,
                saturated: record.saturated_until(end),
                capacity: platform.link(link).bandwidth / 1e12,
                bins: Cow::Borrowed(&record.bins),
                by_bandwidth: Cow::Borrowed(&record.by_bandwidth),
            })
        }))
    }
}

/// Returns the end of a bin of `2^scale` picoseconds.
fn end_of_bin(bin: u64, scale: u32) -> u64 {
    u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX)
}
