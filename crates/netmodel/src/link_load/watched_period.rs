//! Link loads of an interval that may be repeated.

use pdes_core::{SimDuration, SimTime};

use super::bins::scale_of;
use super::recorder::RecordedLoad;

/// The loads of an interval, sampled at the instants whose repetitions are ends of bins.
///
/// Bins end at multiples of a power of two, not of the interval, so that each repetition is cut elsewhere. The number of
/// repetitions tells where before the interval is simulated: at one instant for each bin, at most.
#[derive(Debug)]
pub(crate) struct WatchedPeriod {
    begin: SimTime,
    period: SimDuration,
    repetitions: u64,
    /// Totals of each link at the begin.
    before: Vec<Totals>,
    /// Offsets at which the loads are sampled, in ascending order [ps].
    offsets: Vec<u64>,
    /// Volumes of all links at these, as far as they have come.
    samples: Vec<Vec<f64>>,
}

/// Totals of a link at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    bytes: u64,
    saturated: u64,
    volume: f64,
}

impl Totals {
    fn of(link: &RecordedLoad, now: SimTime) -> Self {
        Self { bytes: link.bytes, saturated: link.saturated_until(now), volume: link.volume }
    }
}

impl WatchedPeriod {
    /// Watches an interval that begins now. All flows are recorded up to now.
    pub(crate) fn new(now: SimTime, period: SimDuration, repetitions: u64, links: &[RecordedLoad]) -> Self {
        let before = links.iter().map(|link| Totals::of(link, now)).collect();
        let mut watch =
            Self { begin: now, period, repetitions, before, offsets: Vec::new(), samples: Vec::new() };
        let mut offsets: Vec<u64> =
            watch.ends_of_bins().map(|end| watch.repetition_and_offset(end).1).collect();
        offsets.sort_unstable();
        offsets.dedup();
        watch.offsets = offsets;
        watch
    }

    /// Returns the end of the interval itself.
    fn first_end(&self) -> SimTime {
        self.begin.saturating_add(self.period)
    }

    /// Returns the end of the last repetition.
    pub(crate) fn end(&self) -> SimTime {
        self.period
            .checked_mul(self.repetitions)
            .map_or(SimTime::MAX, |time| self.first_end().saturating_add(time))
    }

    /// Returns the ends of bins within the repetitions [ps].
    fn ends_of_bins(&self) -> impl Iterator<Item = u64> + use<> {
        let (from, end) = (self.first_end().as_picos(), self.end().as_picos());
        let scale = scale_of(end);
        ((from >> scale) + 1..=end >> scale).map(move |bin| bin << scale)
    }

    /// Returns the repetition in which an instant lies, from 0, and the time from its begin, which is not zero [ps].
    fn repetition_and_offset(&self, at: u64) -> (u64, u64) {
        let (since, period) = (at - self.first_end().as_picos() - 1, self.period.as_picos());
        (since / period, since % period + 1)
    }

    /// Returns the instant of the next sample [ps].
    pub(crate) fn next_sample(&self) -> Option<u64> {
        Some(self.begin.as_picos() + self.offsets.get(self.samples.len())?)
    }

    pub(crate) fn add_sample(&mut self, links: &[RecordedLoad]) {
        self.samples.push(links.iter().map(|link| link.volume).collect());
    }

    /// Adds the repetitions to the loads of links, at the end of the interval itself.
    pub(crate) fn repeat(&self, now: SimTime, links: &mut [RecordedLoad]) {
        let end = self.end();
        for (index, link) in links.iter_mut().enumerate() {
            let before = self.before.get(index).copied().unwrap_or_default();
            let totals = Totals::of(link, now);
            link.bytes += (totals.bytes - before.bytes) * self.repetitions;
            let saturated = (totals.saturated - before.saturated) * self.repetitions;
            link.set_saturated_until(end, totals.saturated + saturated);
            let each = totals.volume - before.volume;
            if each == 0.0 {
                continue;
            }
            let mut added = 0.0;
            for at in self.ends_of_bins() {
                let (repetition, offset) = self.repetition_and_offset(at);
                let sample = self.offsets.binary_search(&offset).expect("the loads are sampled there");
                let volume = self.samples[sample].get(index).map_or(0.0, |volume| volume - before.volume);
                let until = repetition as f64 * each + volume;
                link.bins.add(at - 1, until - added);
                added = until;
            }
            let all = self.repetitions as f64 * each;
            link.bins.add(end.as_picos(), all - added);
            link.by_bandwidth.add(all);
            link.volume += all;
        }
    }
}
