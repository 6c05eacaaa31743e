//! Reader of SimGrid's platform files.

use crate::platform::builder::PlatformBuilder;
use crate::{Platform, PlatformError};

mod cluster;
mod element;
mod host;
mod link;
mod radical;
mod route;
mod star;
mod zone;

use element::Element;

/// Prefixes of the options that change simulated times.
const TIMING_OPTIONS: [&str; 9] =
    ["network/", "smpi/", "cpu/", "surf/", "host/", "maxmin/", "bmf/", "precision/", "disk/"];

/// Reads a platform file.
pub(crate) fn read(text: &str, origin: &str) -> Result<Platform, PlatformError> {
    let mut builder = PlatformBuilder::new(origin);
    let root = element::parse(text, &builder)?;
    if root.name != "platform" {
        return Err(root.misplaced(&builder, "the file"));
    }
    root.check_attributes(&builder, &["version"])?;
    check_version(&builder, &root)?;
    for child in &root.children {
        match child.name.as_str() {
            "config" => read_config(&builder, child)?,
            "random" => {}
            // SimGrid finds no route between two outermost zones, and none of the links of the second.
            "zone" | "AS" | "cluster" if builder.has_zones() => {
                return Err(child.misplaced(&builder, "a platform that has an outermost zone already"));
            }
            "zone" | "AS" => zone::read(&mut builder, child)?,
            "cluster" => cluster::read(&mut builder, child)?,
            "include" | "cabinet" | "peer" | "trace" | "trace_connect" | "actor" | "process" => {
                return Err(child.not_supported(&builder));
            }
            _ => return Err(child.misplaced(&builder, "platform")),
        }
    }
    builder.finish()
}

fn check_version(builder: &PlatformBuilder, root: &Element) -> Result<(), PlatformError> {
    let version = root.required(builder, "version")?;
    match version {
        "4" | "4.0" | "4.1" => Ok(()),
        _ => Err(PlatformError::Version { at: builder.at(Some(root.line)), found: version.to_owned() }),
    }
}

fn read_config(builder: &PlatformBuilder, config: &Element) -> Result<(), PlatformError> {
    config.check_attributes(builder, &["id"])?;
    for child in &config.children {
        match child.name.as_str() {
            "prop" => read_property(builder, child)?,
            _ => return Err(child.misplaced(builder, "config")),
        }
    }
    Ok(())
}

/// Accepts a property, unless it is an option that changes simulated times: SimGrid applies those of `<config>`, and
/// some `smpi/` ones of hosts.
fn read_property(builder: &PlatformBuilder, property: &Element) -> Result<(), PlatformError> {
    property.check_attributes(builder, &["id", "value"])?;
    let option = property.required(builder, "id")?;
    property.required(builder, "value")?;
    property.expect_no_children(builder)?;
    if TIMING_OPTIONS.iter().any(|prefix| option.starts_with(prefix)) {
        return Err(PlatformError::Option { at: builder.at(Some(property.line)), option: option.to_owned() });
    }
    Ok(())
}
