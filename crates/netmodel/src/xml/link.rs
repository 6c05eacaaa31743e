//! The element `<link>`.

use super::element::Element;
use super::read_property;
use crate::PlatformError;
use crate::platform::assembly::Assembly;
use crate::platform::description::{CableSharing, LinkDescription};
use crate::unit::Dimension;

/// Reads a link and adds it to the platform.
pub(super) fn read(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    const PROFILES: [&str; 3] = ["bandwidth_file", "latency_file", "state_file"];
    let known = ["id", "bandwidth", "latency", "sharing_policy"];
    element.check_attributes(assembly, &[&known[..], &PROFILES].concat())?;
    element.refuse_attributes(assembly, &PROFILES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(assembly, child)?,
            _ => return Err(child.misplaced(assembly, "link")),
        }
    }
    let link = LinkDescription {
        name: element.required(assembly, "id")?.to_owned(),
        bandwidth: element.required_quantity(assembly, "bandwidth", Dimension::Bandwidth)?,
        latency: element.optional_quantity(assembly, "latency", Dimension::Time)?,
        sharing: sharing(assembly, element)?,
    };
    assembly.add_link(link, Some(element.line))
}

fn sharing(assembly: &Assembly, element: &Element) -> Result<CableSharing, PlatformError> {
    match element.optional("sharing_policy").unwrap_or("SHARED") {
        "SHARED" => Ok(CableSharing::Shared),
        "SPLITDUPLEX" | "FULLDUPLEX" => Ok(CableSharing::SplitDuplex),
        "FATPIPE" => Ok(CableSharing::FatPipe),
        "WIFI" => {
            let feature = "sharing_policy=\"WIFI\" of <link>".to_owned();
            Err(PlatformError::NotSupported { at: assembly.at(Some(element.line)), feature })
        }
        other => {
            let expected = "SHARED, SPLITDUPLEX, FULLDUPLEX or FATPIPE";
            Err(element.value_error(assembly, "sharing_policy", other, expected))
        }
    }
}
