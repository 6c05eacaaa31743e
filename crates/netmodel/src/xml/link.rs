//! The element `<link>`.

use super::element::Element;
use super::read_property;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::{CableSharing, LinkDescription};
use crate::unit::Dimension;
use crate::{LinkId, PlatformError};

/// Reads a link and adds it to the platform.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    const PROFILES: [&str; 3] = ["bandwidth_file", "latency_file", "state_file"];
    let known = ["id", "bandwidth", "latency", "sharing_policy"];
    element.check_attributes(builder, &[&known[..], &PROFILES].concat())?;
    element.refuse_attributes(builder, &PROFILES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(builder, child)?,
            _ => return Err(child.misplaced(builder, "link")),
        }
    }
    let link = LinkDescription {
        name: element.required(builder, "id")?.to_owned(),
        bandwidth: element.required_quantity(builder, "bandwidth", Dimension::Bandwidth)?,
        latency: element.optional_quantity(builder, "latency", Dimension::Time)?,
        sharing: sharing(builder, element)?,
    };
    let (first, power) = (builder.next_link(), element.link_power(builder)?);
    builder.add_link(link, Some(element.line))?;
    let links = (first..builder.next_link()).map(LinkId::new);
    builder.power.links.extend(links.filter_map(|link| Some((link, power?))));
    Ok(())
}

fn sharing(builder: &PlatformBuilder, element: &Element) -> Result<CableSharing, PlatformError> {
    match element.optional("sharing_policy").unwrap_or("SHARED") {
        "SHARED" => Ok(CableSharing::Shared),
        "SPLITDUPLEX" | "FULLDUPLEX" => Ok(CableSharing::SplitDuplex),
        "FATPIPE" => Ok(CableSharing::FatPipe),
        "WIFI" => {
            let feature = "sharing_policy=\"WIFI\" of <link>".to_owned();
            Err(PlatformError::NotSupported { at: builder.at(Some(element.line)), feature })
        }
        other => {
            let expected = "SHARED, SPLITDUPLEX, FULLDUPLEX or FATPIPE";
            Err(element.value_error(builder, "sharing_policy", other, expected))
        }
    }
}
