//! Devices of hosts that the ranks on them alone access, in a region of a machine.

use std::collections::BTreeMap;

use mpi_model::{Completion, FileAccess};
use netmodel::{DeviceId, Devices, ForeignState, HostId, NetworkRegion};
use pdes_core::SimTime;

use super::addressed;

/// The devices of the hosts of a region. The region has a timer for each of their events.
#[derive(Debug)]
pub(crate) struct OwnDevices {
    devices: Devices<Completion>,
    /// Numbers in the set by those in the platform.
    numbers: BTreeMap<u32, DeviceId>,
    /// Instant of the earliest timer.
    timer: Option<SimTime>,
}

/// Number of the message that stands for a timer.
const TIMER: u32 = 0;

impl OwnDevices {
    /// Creates the idle devices of the hosts that belong to the region.
    pub(crate) fn new(storage: &netmodel::Storage, is_own: impl Fn(HostId) -> bool) -> Self {
        let all = (0..).map(DeviceId::new).zip(storage.idle_devices());
        let own = all.filter(|(number, _)| is_own(storage.host(*number)));
        let (numbers, devices): (Vec<DeviceId>, Vec<_>) = own.unzip();
        let numbers = numbers.iter().map(|number| number.get()).zip((0..).map(DeviceId::new)).collect();
        Self { devices: Devices::new(devices), numbers, timer: None }
    }

    /// Returns the state of the devices.
    pub(crate) fn save(&self) -> (Vec<u8>, Option<SimTime>) {
        (self.devices.save(), self.timer)
    }

    /// Continues from a state of the same devices.
    pub(crate) fn restore(&mut self, state: &(Vec<u8>, Option<SimTime>)) -> Result<(), ForeignState> {
        self.timer = state.1;
        self.devices.restore(&state.0)
    }

    /// Submits an access that begins at an instant.
    ///
    /// # Panics
    /// If the device does not belong to the region.
    pub(crate) fn submit<N: NetworkRegion<Completion>>(
        &mut self,
        region: &mut N,
        at: SimTime,
        access: &FileAccess,
        tag: Completion,
    ) {
        let (device, access) = addressed(access);
        self.devices.submit(at, self.numbers[&device.get()], access, tag);
        self.set_timer(region, tag);
    }

    /// Takes a timer of the region out of its completions, and appends the accesses that end now.
    pub(crate) fn advance<N: NetworkRegion<Completion>>(
        &mut self,
        region: &mut N,
        completions: &mut Vec<Completion>,
    ) {
        let timer = completions.iter().position(|completion| completion.storage_message().is_some());
        let Some(timer) = timer.map(|place| completions[place]) else { return };
        completions.retain(|completion| completion.storage_message().is_none());
        let now = region.now();
        self.timer = self.timer.filter(|at| *at > now);
        while self.devices.next_event().is_some_and(|at| at <= now) {
            self.devices.advance(now, completions);
        }
        self.set_timer(region, timer);
    }

    /// Sets a timer for the next event, unless there is one; `tag` is of a rank of the region.
    fn set_timer<N: NetworkRegion<Completion>>(&mut self, region: &mut N, tag: Completion) {
        let Some(next) = self.devices.next_event() else { return };
        if self.timer.is_none_or(|at| next < at) {
            self.timer = Some(next);
            region.schedule(next, tag.of_storage(TIMER));
        }
    }
}
