//! The devices of a machine, with the accesses in progress and to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pdes_core::{SimTime, StateWriter};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Access, AccessId, Device, read_state};
use crate::flow::event_queue::IndexedEventHeap;
use crate::{DeviceId, ForeignState};

/// Devices with their accesses; `T` is the tag that the caller attaches to an access, and gets back on its end.
///
/// ```
/// use netmodel::{Access, DeviceId, Direction, Platform};
/// use pdes_core::SimTime;
///
/// let text = "topology = { kind = 'cluster', hosts = 1, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }\n\
///             storage = [{ directory = '/scratch', read = '200MBps', write = '100MBps' }]";
/// let platform = Platform::from_toml(text, "disk.toml")?;
/// let mut devices = platform.storage().idle();
/// let access = Access { file: 0, direction: Direction::Write, offset: 0, bytes: 50_000_000 };
/// devices.submit(SimTime::ZERO, DeviceId::new(0), access, "checkpoint");
/// let mut ended = Vec::new();
/// // The access begins, and ends half a second later.
/// devices.advance(SimTime::ZERO, &mut ended);
/// let half_a_second = SimTime::from_picos(500_000_000_000);
/// assert_eq!(devices.next_event(), Some(half_a_second));
/// devices.advance(half_a_second, &mut ended);
/// assert_eq!(ended, ["checkpoint"]);
/// # Ok::<(), netmodel::PlatformError>(())
/// ```
#[derive(Debug)]
pub struct Devices<T> {
    devices: Vec<Box<dyn Device>>,
    next_ends: IndexedEventHeap,
    accesses: Accesses<T>,
    ended: Vec<AccessId>,
}

/// The accesses in progress and to come.
#[derive(Debug, Serialize, Deserialize)]
struct Accesses<T> {
    /// Tags by the numbers of accesses; `None` for a free number.
    tags: Vec<Option<T>>,
    /// Accesses to come, in the order of submission at one instant.
    upcoming: BinaryHeap<Reverse<(SimTime, u64, AccessId)>>,
    /// Accesses to come by their numbers, with their devices.
    requests: Vec<Option<(DeviceId, Access)>>,
    submitted: u64,
}

impl<T: Copy> Devices<T> {
    /// Creates a set of idle devices.
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        let mut next_ends = IndexedEventHeap::default();
        next_ends.grow(devices.len());
        let (tags, requests) = (Vec::new(), Vec::new());
        let accesses = Accesses { tags, upcoming: BinaryHeap::new(), requests, submitted: 0 };
        Self { devices, next_ends, accesses, ended: Vec::new() }
    }

    /// Submits an access that begins at an instant.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn submit(&mut self, at: SimTime, device: DeviceId, access: Access, tag: T) {
        assert!(device.index() < self.devices.len(), "device {device} of {}", self.devices.len());
        let Accesses { tags, upcoming, requests, submitted } = &mut self.accesses;
        let id = tags.iter().position(Option::is_none).unwrap_or(tags.len());
        if id == tags.len() {
            tags.push(None);
            requests.push(None);
        }
        (tags[id], requests[id]) = (Some(tag), Some((device, access)));
        upcoming.push(Reverse((at, *submitted, id as AccessId)));
        *submitted += 1;
    }

    /// Returns the time of the next begin or end of an access.
    pub fn next_event(&mut self) -> Option<SimTime> {
        let begin = self.accesses.upcoming.peek().map(|Reverse((at, ..))| *at);
        [begin, self.next_ends.next()].into_iter().flatten().min()
    }

    /// Advances to the next event, and appends the tags of the accesses that end then.
    pub fn advance(&mut self, now: SimTime, ended: &mut Vec<T>) {
        let end = now.saturating_add(pdes_core::SimDuration::from_picos(1));
        while let Some(number) = self.next_ends.pop_before(end) {
            let device = &mut self.devices[number as usize];
            device.advance(now, &mut self.ended);
            self.next_ends.set(number, device.next_event());
            let tags = &mut self.accesses.tags;
            // A forged state may have accesses that nobody has submitted.
            ended.extend(self.ended.drain(..).filter_map(|id| tags.get_mut(id as usize)?.take()));
        }
        while let Some(Reverse((at, _, id))) = self.accesses.upcoming.peek().copied()
            && at <= now
        {
            self.accesses.upcoming.pop();
            let request = self.accesses.requests[id as usize].take();
            let (device, access) = request.expect("an access to come has its request");
            let number = device.get();
            let device = &mut self.devices[device.index()];
            device.begin(now, &access, id);
            self.next_ends.set(number, device.next_event());
        }
    }

    /// Returns the tags of all accesses that have not ended.
    pub fn unfinished(&self) -> impl Iterator<Item = T> + '_ {
        self.accesses.tags.iter().filter_map(|tag| *tag)
    }

    /// Writes everything on which the future of the devices depends; `write_tag` writes a tag.
    pub fn write_state(&self, state: &mut StateWriter, mut write_tag: impl FnMut(T, &mut StateWriter)) {
        let Accesses { tags, upcoming, requests, .. } = &self.accesses;
        let mut upcoming: Vec<_> = upcoming.iter().map(|Reverse(access)| *access).collect();
        upcoming.sort_unstable();
        state.value(&upcoming.len());
        for (at, _, id) in upcoming {
            state.time(at);
            state.value(&(id, requests[id as usize]));
        }
        for (id, tag) in (0_u32..).zip(tags) {
            let Some(tag) = tag else { continue };
            state.value(&id);
            write_tag(*tag, state);
        }
        self.devices.iter().for_each(|device| device.write_state(state));
    }

    /// Returns the state of the devices and of all accesses.
    pub fn save(&self) -> Vec<u8>
    where
        T: Serialize,
    {
        let devices: Vec<Vec<u8>> = self.devices.iter().map(|device| device.save()).collect();
        postcard::to_allocvec(&(devices, &self.accesses)).expect("memory takes all")
    }

    /// Continues from a state of the same devices.
    ///
    /// # Errors
    /// If the bytes are no such state.
    pub fn restore(&mut self, state: &[u8]) -> Result<(), ForeignState>
    where
        T: DeserializeOwned,
    {
        let (devices, accesses): (Vec<Vec<u8>>, Accesses<T>) = read_state(state)?;
        let are_known = accesses.requests.len() == accesses.tags.len()
            && accesses.upcoming.iter().all(|Reverse((.., id))| {
                let request = accesses.requests.get(*id as usize).copied().flatten();
                request.is_some_and(|(device, _)| device.index() < self.devices.len())
            });
        if devices.len() != self.devices.len() || !are_known {
            return Err(ForeignState);
        }
        for (number, (device, state)) in (0..).zip(self.devices.iter_mut().zip(&devices)) {
            device.restore(state)?;
            self.next_ends.set(number, device.next_event());
        }
        self.accesses = accesses;
        Ok(())
    }
}
