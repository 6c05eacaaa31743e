//! The elements of zones of routing "Cluster": `<host_link>`, `<cabinet>` and `<backbone>`.

use super::element::Element;
use super::radical;
use crate::identifier::ZoneId;
use crate::platform::assembly::Assembly;
use crate::platform::description::HostDescription;
use crate::platform::draft::ZoneDraft;
use crate::unit::Dimension;
use crate::{Link, LinkId, PlatformError, Sharing};

/// Reads the links between a host of the zone and the middle of its star.
pub(super) fn read_host_link(
    assembly: &Assembly,
    draft: &mut ZoneDraft,
    zone: ZoneId,
    element: &Element,
) -> Result<(), PlatformError> {
    element.check_attributes(assembly, &["id", "up", "down"])?;
    element.expect_no_children(assembly)?;
    draft.check_star(assembly, "host_link", Some(element.line))?;
    let host = element.required(assembly, "id")?;
    let vertex = assembly.host_in_zone(host, zone).ok_or_else(|| {
        element.value_error(assembly, "id", host, "a host that is declared in the same zone")
    })?;
    let link = |attribute| {
        let name = element.required(assembly, attribute)?;
        assembly.single_link(name).ok_or_else(|| {
            let expected = "a declared link; of a split-duplex link one half, such as \"l_UP\"";
            element.value_error(assembly, attribute, name, expected)
        })
    };
    let cable = (link("up")?, link("down")?);
    draft.add_cable(assembly, vertex, cable, host, Some(element.line))
}

/// Reads the shared link at which all cables of the zone end.
pub(super) fn read_backbone(
    assembly: &mut Assembly,
    draft: &mut ZoneDraft,
    element: &Element,
) -> Result<(), PlatformError> {
    element.check_attributes(assembly, &["id", "bandwidth", "latency"])?;
    element.expect_no_children(assembly)?;
    draft.check_star(assembly, "backbone", Some(element.line))?;
    let name = element.required(assembly, "id")?;
    let bandwidth = element.required_quantity(assembly, "bandwidth", Dimension::Bandwidth)?;
    let latency = element.required_quantity(assembly, "latency", Dimension::Time)?;
    let link = add_link(assembly, name.to_owned(), bandwidth, latency, element.line)?;
    draft.set_backbone(assembly, link, name, Some(element.line))
}

/// Reads a row of equal hosts, each with a link up and a link down.
pub(super) fn read_cabinet(
    assembly: &mut Assembly,
    draft: &mut ZoneDraft,
    element: &Element,
) -> Result<(), PlatformError> {
    let line = Some(element.line);
    element.check_attributes(assembly, &["id", "prefix", "suffix", "radical", "speed", "bw", "lat"])?;
    element.expect_no_children(assembly)?;
    element.required(assembly, "id")?;
    draft.check_star(assembly, "cabinet", line)?;
    let (prefix, suffix) = (element.required(assembly, "prefix")?, element.required(assembly, "suffix")?);
    let numbers = radical::read(assembly, element)?;
    let speed = element.required_quantity(assembly, "speed", Dimension::Speed)?;
    let bandwidth = element.required_quantity(assembly, "bw", Dimension::Bandwidth)?;
    let latency = element.required_quantity(assembly, "lat", Dimension::Time)?;
    let count = numbers.len() as u64;
    assembly.check_room(line, Some(count), Some(2 * count))?;
    for number in numbers {
        let name = format!("{prefix}{number}{suffix}");
        let place = assembly.add_host(HostDescription { name: name.clone(), speed, cores: 1 }, line)?;
        let up = add_link(assembly, format!("link_{name}_UP"), bandwidth, latency, element.line)?;
        let down = add_link(assembly, format!("link_{name}_DOWN"), bandwidth, latency, element.line)?;
        draft.add_cable(assembly, place.vertex, (up, down), &name, line)?;
    }
    Ok(())
}

fn add_link(
    assembly: &mut Assembly,
    name: String,
    bandwidth: f64,
    latency: f64,
    line: u32,
) -> Result<LinkId, PlatformError> {
    let owner = format!("the link {name:?}");
    assembly.check_room(Some(line), Some(0), Some(1))?;
    assembly.check_positive(Some(line), &owner, "bandwidth", bandwidth)?;
    assembly.check_not_negative(Some(line), &owner, "latency", latency)?;
    assembly.add_plain_link(Link { name, bandwidth, latency, sharing: Sharing::Shared }, Some(line))
}
