//! A solid-state disk: channels that work at the same time, each with a latency, and a write cache.

use pdes_core::{EventQueue, SimDuration, SimTime, State, StateVisitor};
use serde::{Deserialize, Serialize};

use super::{Access, AccessHistory, AccessId, Device, Direction, read_parameters};
use crate::flow::{PICOS, later};
use crate::quantity::{Bandwidth, Size, Time};

/// Parameters of a solid-state disk in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SsdParameters {
    read: Bandwidth,
    write: Bandwidth,
    #[serde(default = "default_latency")]
    latency: Time,
    #[serde(default = "default_channels")]
    channels: u32,
    #[serde(default = "default_page")]
    page: Size,
    #[serde(default = "default_write_cache")]
    write_cache: Size,
}

fn default_latency() -> Time {
    Time(100e-6)
}

fn default_channels() -> u32 {
    8
}

fn default_page() -> Size {
    Size(16384.0)
}

fn default_write_cache() -> Size {
    Size(0.0)
}

/// Largest number of channels.
const MAX_CHANNELS: u32 = 1024;

/// A solid-state disk. An access takes as many of the channels as it has pages, those that are free first; each of them needs the
/// latency, and its share of the data at its share of the rate. A write that finds room in the write cache takes the latency alone. The
/// cache empties through the channels while they have no access, each at its share of the rate of writing: all data go through the
/// channels, so that their rate bounds that of any sequence of writes that is larger than the cache.
#[derive(Clone, Debug)]
struct Ssd {
    /// Rates of all channels together [B/ps].
    read: f64,
    write: f64,
    /// Latency \[ps\].
    latency: f64,
    page: u64,
    write_cache: u64,
    state: SsdState,
}

#[derive(Clone, Debug, Serialize, Deserialize, State)]
struct SsdState {
    /// Instant from which each channel is free.
    free_from: Vec<SimTime>,
    /// Ends of accesses in progress, in the order of their begin at one instant.
    ends: EventQueue<AccessId>,
    /// Amount in the write cache at an instant \[B\].
    cached: f64,
    cached_at: SimTime,
}

/// Makes a solid-state disk of its parameters.
pub(super) fn build(parameters: toml::Table) -> Result<Box<dyn Device>, String> {
    let SsdParameters { read, write, latency, channels, page, write_cache } = read_parameters(parameters)?;
    if let Some(found) = [read.0, write.0].into_iter().find(|rate| !(rate.is_finite() && *rate > 0.0)) {
        return Err(format!("a bandwidth of {found} B/s, expected more than zero"));
    }
    if !(1..=MAX_CHANNELS).contains(&channels) {
        return Err(format!("{channels} channels, expected 1 to {MAX_CHANNELS}"));
    }
    if page.0 < 1.0 {
        return Err("a page of 0 B, expected more than zero".to_owned());
    }
    let state = SsdState {
        free_from: vec![SimTime::ZERO; channels as usize],
        ends: EventQueue::default(),
        cached: 0.0,
        cached_at: SimTime::ZERO,
    };
    let [read, write] = [read.0 / PICOS, write.0 / PICOS];
    let (page, write_cache) = (page.0 as u64, write_cache.0 as u64);
    Ok(Box::new(Ssd { read, write, latency: latency.0 * PICOS, page, write_cache, state }))
}

impl Ssd {
    fn channels(&self) -> usize {
        self.state.free_from.len()
    }

    /// Returns the number of channels that an access takes.
    fn channels_of(&self, access: &Access) -> usize {
        (access.bytes.div_ceil(self.page)).clamp(1, self.channels() as u64) as usize
    }

    /// Returns the time of a channel for its part of an access [ps].
    fn duration(&self, access: &Access) -> f64 {
        let rate = if access.direction == Direction::Read { self.read } else { self.write };
        let share = access.bytes as f64 / self.channels_of(access) as f64;
        self.latency + share / (rate / self.channels() as f64)
    }

    /// Returns the amount in the write cache at an instant, up to which no access begins \[B\].
    fn cached_at(&self, now: SimTime) -> f64 {
        let SsdState { free_from, cached, cached_at, .. } = &self.state;
        let idle = |free: &SimTime| {
            now.checked_since((*free).max(*cached_at)).map_or(0, |time| u128::from(time.as_picos()))
        };
        let idle: u128 = free_from.iter().map(idle).sum();
        (cached - idle as f64 * (self.write / self.channels() as f64)).max(0.0)
    }

    /// Returns whether an access finds room in the write cache, which has this amount \[B\].
    fn fits(&self, cached: f64, access: &Access) -> bool {
        access.direction == Direction::Write && cached + access.bytes as f64 <= self.write_cache as f64
    }

    /// Puts a write into the write cache, if there is room.
    fn cache(&mut self, now: SimTime, access: &Access) -> bool {
        let cached = self.cached_at(now);
        let fits = self.fits(cached, access);
        self.state.cached = if fits { cached + access.bytes as f64 } else { cached };
        self.state.cached_at = now;
        fits
    }

    /// Gives one form to states with one future: which channel is free does not matter, nor since when, but for what the cache has
    /// given to it.
    fn settle(&mut self, now: SimTime) {
        let now = now.max(self.state.cached_at);
        if self.cached_at(now) == 0.0 {
            (self.state.cached, self.state.cached_at) = (0.0, now);
        }
        let since = self.state.cached_at;
        self.state.free_from.iter_mut().for_each(|free| *free = since.max(*free));
        self.state.free_from.sort_unstable();
    }
}

impl Device for Ssd {
    fn idle(&self) -> Box<dyn Device> {
        let free_from = vec![SimTime::ZERO; self.channels()];
        let state =
            SsdState { free_from, ends: EventQueue::default(), cached: 0.0, cached_at: SimTime::ZERO };
        Box::new(Self { state, ..self.clone() })
    }

    fn duration_alone(&self, access: &Access) -> Option<SimDuration> {
        let is_cached = access.direction == Direction::Write && access.bytes <= self.write_cache;
        SimDuration::try_from_picos_f64(if is_cached { self.latency } else { self.duration(access) })
    }

    fn duration_after(
        &self,
        history: &mut AccessHistory,
        begin: SimTime,
        access: &Access,
    ) -> Option<SimDuration> {
        let left = history.cache_empty_at.checked_since(begin);
        let cached = left.map_or(0.0, |left| left.as_picos() as f64 * self.write);
        if self.fits(cached, access) {
            let emptied_from = history.cache_empty_at.max(begin);
            history.cache_empty_at = later(emptied_from, access.bytes as f64 / self.write);
            return SimDuration::try_from_picos_f64(self.latency);
        }
        let duration = SimDuration::try_from_picos_f64(self.duration(access))?;
        // Meanwhile the other channels empty the cache.
        let idle = 1.0 - self.channels_of(access) as f64 / self.channels() as f64;
        let left = cached / self.write - duration.as_picos() as f64 * idle;
        history.cache_empty_at = later(begin.saturating_add(duration), left.max(0.0));
        Some(duration)
    }

    fn begin(&mut self, now: SimTime, access: &Access, id: AccessId) {
        let end = if self.cache(now, access) {
            later(now, self.latency)
        } else {
            let duration = self.duration(access);
            let count = self.channels_of(access);
            let free_from = &mut self.state.free_from;
            free_from.sort_unstable();
            let taken = free_from.iter_mut().take(count);
            let ends = taken.map(|free| {
                *free = later(now.max(*free), duration);
                *free
            });
            ends.max().unwrap_or(now)
        };
        self.state.ends.add(end, id);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.state.ends.next()
    }

    fn advance(&mut self, now: SimTime, ended: &mut Vec<AccessId>) {
        ended.extend(std::iter::from_fn(|| self.state.ends.pop_due(now)));
    }

    fn has_positions(&self) -> bool {
        false
    }

    fn concurrency(&self) -> u32 {
        self.channels() as u32
    }
}

impl State for Ssd {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let channels = self.channels();
        if visitor.is_observing() {
            self.settle(visitor.now());
        }
        let Self { read: _, write: _, latency: _, page: _, write_cache: _, state } = self;
        state.visit(visitor);
        if visitor.is_loading() && !(state.free_from.len() == channels && state.cached >= 0.0) {
            visitor.refuse();
        }
    }
}
