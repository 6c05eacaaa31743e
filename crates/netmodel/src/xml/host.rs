//! The elements `<host>` and `<router>`.

use super::element::Element;
use super::read_property;
use crate::PlatformError;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::HostDescription;

/// Reads a host and adds it to the open zone. Its disks and properties affect no message and no computation.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    const PROFILES: [&str; 3] = ["speed_file", "state_file", "availability_file"];
    let known = ["id", "speed", "core", "coordinates", "pstate"];
    element.check_attributes(builder, &[&known[..], &PROFILES].concat())?;
    element.refuse_attributes(builder, &PROFILES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(builder, child)?,
            "disk" => {}
            "mount" => return Err(child.not_supported(builder)),
            _ => return Err(child.misplaced(builder, "host")),
        }
    }
    let name = element.required(builder, "id")?.to_owned();
    let host = HostDescription { name, speed: element.speed(builder)?, cores: element.cores(builder)? };
    builder.add_host(host, Some(element.line)).map(drop)
}

/// Reads a router and adds it to the open zone. Its coordinates matter to Vivaldi zones only.
pub(super) fn read_router(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(builder, &["id", "coordinates"])?;
    element.expect_no_children(builder)?;
    builder.add_router(element.required(builder, "id")?, Some(element.line))
}
