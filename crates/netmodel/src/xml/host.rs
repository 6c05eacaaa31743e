//! The elements `<host>` and `<router>`.

use super::element::Element;
use super::read_property;
use crate::PlatformError;
use crate::platform::assembly::Assembly;
use crate::platform::description::HostDescription;

/// Reads a host and adds it to the open zone. Its disks and properties affect no message and no computation.
pub(super) fn read(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    const PROFILES: [&str; 3] = ["speed_file", "state_file", "availability_file"];
    let known = ["id", "speed", "core", "coordinates", "pstate"];
    element.check_attributes(assembly, &[&known[..], &PROFILES].concat())?;
    element.refuse_attributes(assembly, &PROFILES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(assembly, child)?,
            "disk" => {}
            "mount" => return Err(child.not_supported(assembly)),
            _ => return Err(child.misplaced(assembly, "host")),
        }
    }
    let name = element.required(assembly, "id")?.to_owned();
    let host = HostDescription { name, speed: element.speed(assembly)?, cores: element.cores(assembly)? };
    assembly.add_host(host, Some(element.line)).map(drop)
}

/// Reads a router and adds it to the open zone. Its coordinates matter to Vivaldi zones only.
pub(super) fn read_router(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(assembly, &["id", "coordinates"])?;
    element.expect_no_children(assembly)?;
    assembly.add_router(element.required(assembly, "id")?, Some(element.line))
}
