//! Files of ranks on the storage of a platform.

mod file_rules;
mod resources;
mod shared_pointers;

use mpi_model::{FileAccess, FileOperation, FilePlace, StorageKind};
use netmodel::storage::Client;
use netmodel::{
    Access, DeviceId, Direction, FileRequest, FileSystemId, HostId, Platform, RouteError, StoragePlace,
};

pub(crate) use file_rules::FileRules;
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

/// Returns an operation on a file of a file system as its clients and servers see it.
fn file_request(access: &FileAccess, client: Client) -> FileRequest {
    let operation = match access.operation {
        FileOperation::Read => netmodel::FileOperation::Read,
        FileOperation::Write => netmodel::FileOperation::Write,
        FileOperation::ReadExisting => netmodel::FileOperation::ReadExisting,
        FileOperation::Open => netmodel::FileOperation::Open,
        FileOperation::Sync => netmodel::FileOperation::Sync,
    };
    let &FileAccess { number, file, offset, bytes, .. } = access;
    FileRequest { system: FileSystemId::new(number), client, file, operation, offset, bytes }
}
