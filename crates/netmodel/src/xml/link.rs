//! The element `<link>`.

use super::element::Element;
use super::read_property;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::{CableSharing, LinkDescription};
use crate::unit::Dimension;
use crate::{LinkId, PlatformError, Resource};

/// Reads a link and adds it to the platform.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    let profiles = ["bandwidth_file", "latency_file", "state_file"];
    let known = ["id", "bandwidth", "latency", "sharing_policy"];
    element.check_attributes(builder, &[&known[..], &profiles].concat())?;
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
    // Both directions of a cable have its profiles and its power.
    let (first, power) = (builder.next_link(), element.link_power(builder)?);
    builder.add_link(link, Some(element.line))?;
    for link in (first..builder.next_link()).map(LinkId::new) {
        builder.power.links.extend(power.map(|power| (link, power)));
        if let Some(profile) = element.profile(builder, "bandwidth_file")? {
            builder.changes.set_values(Resource::Bandwidth(link), profile);
        }
        if let Some(profile) = element.profile(builder, "latency_file")? {
            builder.changes.set_values(Resource::Latency(link), profile);
        }
        if let Some(profile) = element.profile(builder, "state_file")? {
            builder.changes.set_state(Resource::Bandwidth(link), profile);
        }
    }
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
