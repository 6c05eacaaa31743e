//! Recorder of link loads: an observer that sums up what links carry, in bins of time.

use std::borrow::Cow;
use std::ops::Range;

use pdes_core::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

use super::LinkTotals;
use super::bins::{Bins, scale_of};
use super::watched_period::WatchedPeriod;
use crate::Platform;
use crate::observer::{NetworkObserver, ObservedLink};

/// Recorder of link loads, if it is enabled: a kilobyte for each link that carries anything.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LinkLoadRecorder(Option<Box<Recording>>);

#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    /// End of the present bin [ps].
    bin_end: u64,
    /// Loads by link.
    links: Vec<RecordedLoad>,
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

impl Default for Recording {
    fn default() -> Self {
        Self { bin_end: 1, links: Vec::new(), watch: None }
    }
}

impl Recording {
    fn link(&mut self, link: ObservedLink) -> &mut RecordedLoad {
        let place = link.slot as usize;
        if self.links.len() <= place {
            self.links.resize_with(place + 1, RecordedLoad::default);
        }
        &mut self.links[place]
    }
}

impl LinkLoadRecorder {
    /// Returns the recording, which is told of something.
    #[inline]
    fn recording(&mut self) -> &mut Recording {
        self.0.as_mut().expect("only a recorder that is enabled is told")
    }
}

impl NetworkObserver for LinkLoadRecorder {
    #[inline]
    fn is_observing(&self) -> bool {
        self.0.is_some()
    }

    fn next_sample(&mut self, now: SimTime) -> SimTime {
        let Recording { bin_end, watch, .. } = self.recording();
        let scale = scale_of(now.as_picos());
        // Bins may have been merged.
        *bin_end = end_of_bin((*bin_end - 1) >> scale, scale);
        let watched = watch.as_ref().and_then(WatchedPeriod::next_sample);
        SimTime::from_picos(watched.map_or(*bin_end, |at| at.min(*bin_end)))
    }

    fn sampled(&mut self, at: SimTime, now: SimTime) {
        let Recording { bin_end, links, watch } = self.recording();
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
        self.recording().link(link).bytes += bytes;
    }

    #[inline]
    fn carried(&mut self, link: ObservedLink, time: Range<SimTime>, bytes: f64) {
        let link = self.recording().link(link);
        link.volume += bytes;
        // No interval goes beyond the end of a bin.
        link.bins.add(time.start.as_picos(), bytes);
    }

    fn limits(&mut self, link: ObservedLink, from: SimTime, is_bottleneck: bool) {
        let Some(record) = self.recording().links.get_mut(link.slot as usize) else { return };
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
        let there = to.recording().link(there);
        if let Some(record) = self.recording().links.get_mut(link.slot as usize)
            && record.full_since.is_some()
        {
            record.saturated = record.saturated_until(now);
            record.full_since = None;
            there.full_since = Some(now);
        }
    }

    /// Samples the loads of the interval as they are needed to repeat it.
    fn watch_period(&mut self, now: SimTime, period: SimDuration, repetitions: u64) {
        let Recording { links, watch, .. } = self.recording();
        *watch = Some(WatchedPeriod::new(now, period, repetitions, links));
    }

    fn repeat_period(&mut self, now: SimTime) {
        let Recording { bin_end, links, watch } = self.recording();
        let watch = watch.take().expect("the interval was announced");
        watch.repeat(now, links);
        let end = watch.end().as_picos();
        let scale = scale_of(end);
        *bin_end = end_of_bin(end >> scale, scale);
    }

    fn record_link_loads(&mut self) {
        self.0 = Some(Box::default());
    }

    fn link_totals<'a>(
        &'a self,
        platform: &'a Platform,
        links: impl Iterator<Item = ObservedLink> + 'a,
        end: SimTime,
    ) -> Option<impl Iterator<Item = LinkTotals<'a>>> {
        let recording = self.0.as_ref()?;
        Some(links.filter_map(move |ObservedLink { link, slot }| {
            let record = recording.links.get(slot as usize)?;
            Some(LinkTotals {
                link,
                bytes: record.bytes,
                saturated: record.saturated_until(end),
                capacity: platform.link(link).bandwidth / 1e12,
                bins: Cow::Borrowed(&record.bins),
            })
        }))
    }
}

/// Returns the end of a bin of `2^scale` picoseconds.
fn end_of_bin(bin: u64, scale: u32) -> u64 {
    u64::try_from(u128::from(bin + 1) << scale).unwrap_or(u64::MAX)
}
