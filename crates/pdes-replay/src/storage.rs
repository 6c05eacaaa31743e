//! Files of ranks on the storage of a platform.

mod own_devices;
mod resources;
mod shared_pointers;

use mpi_model::{FileAccess, FileOperation, FilePlace, StorageKind};
use netmodel::{Access, DeviceId, Direction, HostId, Platform, RouteError, StoragePlace};

pub(crate) use own_devices::OwnDevices;
pub(crate) use resources::StorageResources;

/// Returns the place of a file as a host sees it; `None` if the platform has no storage. `route` returns the route between two hosts.
pub(crate) fn find_file<Route>(
    platform: &Platform,
    host: HostId,
    file: &str,
    route: impl Fn(HostId, HostId) -> Result<Route, RouteError>,
) -> Result<Option<FilePlace<Route>>, RouteError> {
    if platform.storage().is_empty() {
        return Ok(None);
    }
    Ok(Some(match platform.find_file(host, file)? {
        StoragePlace::Device(device) => {
            let owner = platform.storage().host(device);
            let remote = if owner == host { None } else { Some((route(host, owner)?, route(owner, host)?)) };
            FilePlace { storage: StorageKind::Device, number: device.get(), remote }
        }
        StoragePlace::FileSystem(system) => {
            FilePlace { storage: StorageKind::FileSystem, number: system.get(), remote: None }
        }
    }))
}

/// Returns the device of an access, and the access as the device sees it.
pub(crate) fn addressed(access: &FileAccess) -> (DeviceId, Access) {
    let &FileAccess { number, file, operation, offset, bytes, .. } = access;
    let direction = match operation {
        FileOperation::Write => Direction::Write,
        FileOperation::Read | FileOperation::ReadExisting | FileOperation::Open | FileOperation::Sync => {
            Direction::Read
        }
    };
    (DeviceId::new(number), Access { file, direction, offset, bytes })
}
