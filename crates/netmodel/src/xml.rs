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

/// Options of SimGrid that concern programs which it executes, its own solvers, or its output.
const UNUSED_OPTIONS: [&str; 30] = [
    "cpu/maxmin-selective-update",
    "cpu/optim",
    "cpu/solver",
    "disk/solver",
    "host/solver",
    "maxmin/precision",
    "maxmin/solver",
    "network/solver",
    "precision/work-amount",
    "smpi/auto-shared-malloc-thresh",
    "smpi/cpu-threshold",
    "smpi/display-allocs",
    "smpi/display-timing",
    "smpi/errors-are-fatal",
    "smpi/host-speed",
    "smpi/keep-temps",
    "smpi/list-leaks",
    "smpi/papi-events",
    "smpi/pedantic",
    "smpi/plugin",
    "smpi/privatization",
    "smpi/privatize-libs",
    "smpi/running-power",
    "smpi/shared-malloc",
    "smpi/shared-malloc-blocksize",
    "smpi/shared-malloc-hugepage",
    "smpi/tmpdir",
    "smpi/trace-call-location",
    "smpi/trace-call-use-absolute-path",
    "smpi/wtime",
];

/// Reads a platform file.
pub(crate) fn read(text: &str, origin: &str) -> Result<Platform, PlatformError> {
    let mut builder = PlatformBuilder::new(origin);
    let root = element::parse(text, &builder)?;
    // The root of the first versions.
    if root.name == "platform_description" {
        let found = root.optional("version").unwrap_or("1").to_owned();
        return Err(PlatformError::Version { at: builder.at(Some(root.line)), found });
    }
    if root.name != "platform" {
        return Err(root.misplaced(&builder, "the file"));
    }
    root.check_attributes(&builder, &["version"])?;
    check_version(&builder, &root)?;
    for child in &root.children {
        match child.name.as_str() {
            "config" => read_config(&mut builder, child)?,
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

fn read_config(builder: &mut PlatformBuilder, config: &Element) -> Result<(), PlatformError> {
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
/// some `smpi/` ones of hosts. Options that change no replay are ignored with a warning.
fn read_property(builder: &mut PlatformBuilder, property: &Element) -> Result<(), PlatformError> {
    property.check_attributes(builder, &["id", "value"])?;
    let option = property.required(builder, "id")?;
    let value = property.required(builder, "value")?;
    property.expect_no_children(builder)?;
    let computes = option == "smpi/simulate-computation"
        && ["yes", "on", "true", "1"].contains(&value.to_ascii_lowercase().as_str());
    if computes || UNUSED_OPTIONS.contains(&option) {
        let warning = format!("the option {option:?} is ignored: it changes no replay of a trace");
        builder.warn(Some(property.line), &warning);
        return Ok(());
    }
    if TIMING_OPTIONS.iter().any(|prefix| option.starts_with(prefix)) {
        return Err(PlatformError::Option { at: builder.at(Some(property.line)), option: option.to_owned() });
    }
    Ok(())
}
