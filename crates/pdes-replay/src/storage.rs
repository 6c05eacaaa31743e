//! Files of ranks on the storage devices of a platform.

use mpi_model::{DeviceAccess, FilePlace};
use netmodel::{Access, DeviceId, Direction, HostId, Platform, RouteError};
use trace_mmap::FileDirection;

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
    let (device, owner) = platform.find_file(host, file)?;
    let remote = if owner == host { None } else { Some((route(host, owner)?, route(owner, host)?)) };
    Ok(Some(FilePlace { device: device.get(), remote }))
}

/// Returns the device of an access, and the access as the device sees it.
pub(crate) fn addressed(access: &DeviceAccess) -> (DeviceId, Access) {
    let &DeviceAccess { device, file, direction, offset, bytes } = access;
    let direction = match direction {
        FileDirection::Read => Direction::Read,
        FileDirection::Write => Direction::Write,
    };
    (DeviceId::new(device), Access { file, direction, offset, bytes })
}
