//! The devices of a machine, with the accesses in progress and to come.

use std::collections::BTreeSet;

use pdes_core::{EventQueue, IndexedEventHeap, SimTime, State, StateVisitor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Access, AccessId, Device};
use crate::DeviceId;

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
#[derive(Debug, Serialize, Deserialize, State)]
struct Accesses<T> {
    /// Tags by the numbers of accesses; `None` for a free number.
    tags: Vec<Option<T>>,
    /// Accesses to come, in the order of submission at one instant.
    upcoming: EventQueue<AccessId>,
    /// Accesses to come by their numbers, with their devices.
    #[state(plain)]
    requests: Vec<Option<(DeviceId, Access)>>,
}

impl<T: Copy> Devices<T> {
    /// Creates a set of idle devices.
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        let mut next_ends = IndexedEventHeap::default();
        next_ends.grow(devices.len());
        let (tags, requests) = (Vec::new(), Vec::new());
        let accesses = Accesses { tags, upcoming: EventQueue::default(), requests };
        Self { devices, next_ends, accesses, ended: Vec::new() }
    }

    /// Submits an access that begins at an instant.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn submit(&mut self, at: SimTime, device: DeviceId, access: Access, tag: T) {
        assert!(device.index() < self.devices.len(), "device {device} of {}", self.devices.len());
        let Accesses { tags, upcoming, requests } = &mut self.accesses;
        let id = tags.iter().position(Option::is_none).unwrap_or(tags.len());
        if id == tags.len() {
            tags.push(None);
            requests.push(None);
        }
        (tags[id], requests[id]) = (Some(tag), Some((device, access)));
        upcoming.add(at, id as AccessId);
    }

    /// Returns the time of the next begin or end of an access.
    pub fn next_event(&mut self) -> Option<SimTime> {
        [self.accesses.upcoming.next(), self.next_ends.next()].into_iter().flatten().min()
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
        while let Some(id) = self.accesses.upcoming.pop_due(now) {
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
}

impl<T> Accesses<T> {
    /// Returns whether each access to come is one of so many devices, and comes once.
    fn fits(&self, devices: usize) -> bool {
        let Self { tags, upcoming, requests } = self;
        let is_known = |&id: &AccessId| {
            let request = requests.get(id as usize).copied().flatten();
            request.is_some_and(|(device, _)| device.index() < devices)
        };
        let ids: BTreeSet<AccessId> = upcoming.iter().copied().collect();
        requests.len() == tags.len() && ids.len() == upcoming.iter().count() && ids.iter().all(is_known)
    }
}

impl<T: State + Serialize + DeserializeOwned> State for Devices<T> {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        let Self { devices, next_ends, accesses, ended: _ } = self;
        let mut parts: Vec<&mut dyn Device> = devices.iter_mut().map(|device| &mut **device).collect();
        visitor.parts(parts.iter_mut());
        accesses.visit(visitor);
        if visitor.is_loading() && !accesses.fits(devices.len()) {
            visitor.refuse();
        }
        if visitor.is_loading() || visitor.is_repeating() {
            for (number, device) in (0..).zip(devices) {
                next_ends.set(number, device.next_event());
            }
        }
    }
}
