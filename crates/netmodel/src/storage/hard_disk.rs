//! A hard disk as in PIOsimHD (Kuhn, Kunkel and Ludwig; `RefinedDisk`): one access after the other, each with the movement of its arm.

use std::collections::VecDeque;

use pdes_core::{SimDuration, SimTime, State};
use serde::{Deserialize, Serialize};

use super::{Access, AccessHistory, AccessId, Device, read_parameters};
use crate::flow::{PICOS, later};
use crate::quantity::{Bandwidth, Time};

/// Seconds in half a minute, the time of half a rotation at one rotation per minute.
const HALF_A_MINUTE: f64 = 30.0;

/// Parameters of a hard disk in TOML.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HardDiskParameters {
    bandwidth: Bandwidth,
    average_seek: Time,
    track_seek: Time,
    rotations_per_minute: f64,
    #[serde(default = "default_nearness")]
    near_bytes: u64,
}

fn default_nearness() -> u64 {
    5 << 20
}

/// A hard disk that serves its accesses in the order of their begin. An access that begins where the last one ended takes the time of
/// its data; one near to it in the same file, half a rotation and a seek to a neighbouring track more; any other one, half a rotation
/// and an average seek more.
#[derive(Clone, Debug, State)]
#[state(in_place)]
struct HardDisk {
    /// Rate [B/s].
    #[state(skip = "a parameter")]
    bandwidth: f64,
    /// Times to reach another place, near or not \[s\].
    #[state(skip = "a parameter")]
    near_seek: f64,
    #[state(skip = "a parameter")]
    far_seek: f64,
    #[state(skip = "a parameter")]
    near_bytes: u64,
    state: HardDiskState,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, State)]
struct HardDiskState {
    /// Accesses in progress, the one that is served first, with their ends.
    queue: VecDeque<(AccessId, SimTime)>,
    /// File and position at which the last access in the queue ends.
    last: Option<(u32, u64)>,
}

/// Makes a hard disk of its parameters.
pub(super) fn build(parameters: toml::Table) -> Result<Box<dyn Device>, String> {
    let HardDiskParameters { bandwidth, average_seek, track_seek, rotations_per_minute, near_bytes } =
        read_parameters(parameters)?;
    if !(rotations_per_minute.is_finite() && rotations_per_minute > 0.0) {
        return Err(format!("{rotations_per_minute} rotations_per_minute, expected more than zero"));
    }
    if !(bandwidth.0.is_finite() && bandwidth.0 > 0.0) {
        return Err(format!("a bandwidth of {} B/s, expected more than zero", bandwidth.0));
    }
    let [near_seek, far_seek] =
        [track_seek.0, average_seek.0].map(|seek| seek + HALF_A_MINUTE / rotations_per_minute);
    let state = HardDiskState::default();
    Ok(Box::new(HardDisk { bandwidth: bandwidth.0, near_seek, far_seek, near_bytes, state }))
}

impl HardDisk {
    /// Returns the duration of an access after one that ended at a place \[s\].
    fn duration(&self, last: Option<(u32, u64)>, access: &Access) -> f64 {
        let seek = match last {
            Some((file, end)) if file == access.file && end == access.offset => 0.0,
            Some((file, end)) if file == access.file && end.abs_diff(access.offset) < self.near_bytes => {
                self.near_seek
            }
            _ => self.far_seek,
        };
        seek + access.bytes as f64 / self.bandwidth
    }
}

impl Device for HardDisk {
    fn idle(&self) -> Box<dyn Device> {
        Box::new(Self { state: HardDiskState::default(), ..self.clone() })
    }

    fn duration_alone(&self, access: &Access) -> Option<SimDuration> {
        SimDuration::try_from_secs_f64(self.duration(None, access))
    }

    fn duration_after(
        &self,
        history: &mut AccessHistory,
        _begin: SimTime,
        access: &Access,
    ) -> Option<SimDuration> {
        let duration = self.duration(history.last, access);
        history.last = Some((access.file, access.end()));
        SimDuration::try_from_secs_f64(duration)
    }

    fn begin(&mut self, now: SimTime, access: &Access, id: AccessId) {
        let begin = self.state.queue.back().map_or(now, |(_, end)| *end);
        let duration = self.duration(self.state.last, access);
        self.state.queue.push_back((id, later(begin, duration * PICOS)));
        self.state.last = Some((access.file, access.end()));
    }

    fn next_event(&self) -> Option<SimTime> {
        self.state.queue.front().map(|(_, end)| *end)
    }

    fn advance(&mut self, now: SimTime, ended: &mut Vec<AccessId>) {
        while let Some((id, end)) = self.state.queue.front().copied()
            && end <= now
        {
            self.state.queue.pop_front();
            ended.push(id);
        }
    }
}
