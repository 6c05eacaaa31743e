//! Reader of SimGrid's platform files.

use crate::platform::assembly::Assembly;
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
    let mut assembly = Assembly::new(origin);
    let root = element::parse(text, &assembly)?;
    if root.name != "platform" {
        return Err(root.misplaced(&assembly, "the file"));
    }
    root.check_attributes(&assembly, &["version"])?;
    check_version(&assembly, &root)?;
    for child in &root.children {
        match child.name.as_str() {
            "config" => read_config(&assembly, child)?,
            "random" => {}
            // SimGrid finds no route between two outermost zones, and none of the links of the second.
            "zone" | "AS" | "cluster" if assembly.has_zones() => {
                return Err(child.misplaced(&assembly, "a platform that has an outermost zone already"));
            }
            "zone" | "AS" => zone::read(&mut assembly, child)?,
            "cluster" => cluster::read(&mut assembly, child)?,
            "include" | "cabinet" | "peer" | "trace" | "trace_connect" | "actor" | "process" => {
                return Err(child.not_supported(&assembly));
            }
            _ => return Err(child.misplaced(&assembly, "platform")),
        }
    }
    assembly.finish()
}

fn check_version(assembly: &Assembly, root: &Element) -> Result<(), PlatformError> {
    let version = root.required(assembly, "version")?;
    match version {
        "4" | "4.0" | "4.1" => Ok(()),
        _ => Err(PlatformError::Version { at: assembly.at(Some(root.line)), found: version.to_owned() }),
    }
}

fn read_config(assembly: &Assembly, config: &Element) -> Result<(), PlatformError> {
    config.check_attributes(assembly, &["id"])?;
    for child in &config.children {
        match child.name.as_str() {
            "prop" => read_property(assembly, child)?,
            _ => return Err(child.misplaced(assembly, "config")),
        }
    }
    Ok(())
}

/// Accepts a property, unless it is an option that changes simulated times: SimGrid applies those of `<config>`, and
/// some `smpi/` ones of hosts.
fn read_property(assembly: &Assembly, property: &Element) -> Result<(), PlatformError> {
    property.check_attributes(assembly, &["id", "value"])?;
    let option = property.required(assembly, "id")?;
    property.required(assembly, "value")?;
    property.expect_no_children(assembly)?;
    if TIMING_OPTIONS.iter().any(|prefix| option.starts_with(prefix)) {
        return Err(PlatformError::Option {
            at: assembly.at(Some(property.line)),
            option: option.to_owned(),
        });
    }
    Ok(())
}
