//! The elements `<host>` and `<router>`.

use super::element::Element;
use super::read_property;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::HostDescription;
use crate::storage::Disk;
use crate::unit::Dimension;
use crate::{HostId, PlatformError, Resource};

/// Property of a disk: the directory at which its host sees it.
const MOUNT: &str = "mount";

/// Property of a host: a directory, a disk and its host, separated by colons.
const REMOTE_DISK: &str = "remote_disk";

/// Reads a host and adds it to the open zone, with the disks that it sees at directories. Other disks and properties affect no
/// message, no computation and no file.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    const FORMER: [&str; 1] = ["availability_file"];
    let known = ["id", "speed", "core", "coordinates", "pstate", "speed_file", "state_file"];
    element.check_attributes(builder, &[&known[..], &FORMER].concat())?;
    element.refuse_attributes(builder, &FORMER)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(builder, child)?,
            "disk" => {}
            "mount" => return Err(child.not_supported(builder)),
            _ => return Err(child.misplaced(builder, "host")),
        }
    }
    let name = element.required(builder, "id")?.to_owned();
    let host = HostDescription {
        name,
        speed: element.speed(builder)?,
        cores: element.cores(builder)?,
        memory_bandwidth: element.memory_bandwidth(builder)?,
    };
    let (id, speed) = (HostId::new(builder.next_host()), host.speed);
    if let Some(profile) = element.profile(builder, "speed_file")? {
        builder.changes.set_values(Resource::Speed(id), profile.map_values(|factor| factor * speed));
    }
    if let Some(profile) = element.profile(builder, "state_file")? {
        builder.changes.set_state(Resource::Speed(id), profile);
    }
    builder.add_host(host, Some(element.line))?;
    if let Some(power) = element.host_power(builder)? {
        builder.power.hosts.insert(id, power);
    }
    let children = |name| element.children.iter().filter(move |child| child.name == name);
    for disk in children("disk") {
        if let Some(directory) = disk.property(MOUNT) {
            add_disk(builder, disk, (id, directory))?;
        }
    }
    if let Some(remote) = element.property(REMOTE_DISK) {
        builder.see_remote_disk(id, remote, element.line);
    }
    Ok(())
}

/// Adds a disk to a host, which sees it at a directory.
fn add_disk(
    builder: &mut PlatformBuilder,
    disk: &Element,
    (host, directory): (HostId, &str),
) -> Result<(), PlatformError> {
    let read = disk.required_quantity(builder, "read_bw", Dimension::Bandwidth)?;
    let write = disk.required_quantity(builder, "write_bw", Dimension::Bandwidth)?;
    let name = disk.required(builder, "id")?;
    let device = Disk::new(read, write, None)
        .map_err(|message| builder.storage_error(Some(disk.line), format!("the disk {name:?}: {message}")))?;
    let device = builder.storage.add(name.to_owned(), host, Box::new(device));
    builder.storage.mount(directory.to_owned(), Some(host), device);
    Ok(())
}

/// Reads a router and adds it to the open zone. Its coordinates matter to Vivaldi zones only.
pub(super) fn read_router(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(builder, &["id", "coordinates"])?;
    element.expect_no_children(builder)?;
    builder.add_router(element.required(builder, "id")?, Some(element.line))
}
