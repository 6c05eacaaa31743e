//! The elements of zones of routing "Cluster": `<host_link>`, `<cabinet>` and `<backbone>`.

use super::element::Element;
use super::radical;
use crate::identifier::ZoneId;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::HostDescription;
use crate::platform::zone_builder::ZoneBuilder;
use crate::unit::Dimension;
use crate::{Link, LinkId, PlatformError, Sharing};

/// Reads the links between a host of the zone and the middle of its star.
pub(super) fn read_host_link(
    builder: &PlatformBuilder,
    zone_builder: &mut ZoneBuilder,
    zone: ZoneId,
    element: &Element,
) -> Result<(), PlatformError> {
    element.check_attributes(builder, &["id", "up", "down"])?;
    element.expect_no_children(builder)?;
    zone_builder.check_star(builder, "host_link", Some(element.line))?;
    let host = element.required(builder, "id")?;
    let vertex = builder.host_in_zone(host, zone).ok_or_else(|| {
        element.value_error(builder, "id", host, "a host that is declared in the same zone")
    })?;
    let link = |attribute| {
        let name = element.required(builder, attribute)?;
        builder.single_link(name).ok_or_else(|| {
            let expected = "a declared link; of a split-duplex link one half, such as \"l_UP\"";
            element.value_error(builder, attribute, name, expected)
        })
    };
    let cable = (link("up")?, link("down")?);
    zone_builder.add_cable(builder, vertex, cable, host, Some(element.line))
}

/// Reads the shared link at which all cables of the zone end.
pub(super) fn read_backbone(
    builder: &mut PlatformBuilder,
    zone_builder: &mut ZoneBuilder,
    element: &Element,
) -> Result<(), PlatformError> {
    element.check_attributes(builder, &["id", "bandwidth", "latency"])?;
    element.expect_no_children(builder)?;
    zone_builder.check_star(builder, "backbone", Some(element.line))?;
    let name = element.required(builder, "id")?;
    let bandwidth = element.required_quantity(builder, "bandwidth", Dimension::Bandwidth)?;
    let latency = element.required_quantity(builder, "latency", Dimension::Time)?;
    let link = add_link(builder, name.to_owned(), bandwidth, latency, element.line)?;
    zone_builder.set_backbone(builder, link, name, Some(element.line))
}

/// Reads a row of equal hosts, each with a link up and a link down.
pub(super) fn read_cabinet(
    builder: &mut PlatformBuilder,
    zone_builder: &mut ZoneBuilder,
    element: &Element,
) -> Result<(), PlatformError> {
    let line = Some(element.line);
    element.check_attributes(builder, &["id", "prefix", "suffix", "radical", "speed", "bw", "lat"])?;
    element.expect_no_children(builder)?;
    element.required(builder, "id")?;
    zone_builder.check_star(builder, "cabinet", line)?;
    let (prefix, suffix) = (element.required(builder, "prefix")?, element.required(builder, "suffix")?);
    let numbers = radical::read(builder, element)?;
    let speed = element.required_quantity(builder, "speed", Dimension::Speed)?;
    let bandwidth = element.required_quantity(builder, "bw", Dimension::Bandwidth)?;
    let latency = element.required_quantity(builder, "lat", Dimension::Time)?;
    let count = numbers.len() as u64;
    builder.check_limits(line, Some(count), Some(2 * count))?;
    for number in numbers {
        let name = format!("{prefix}{number}{suffix}");
        let place = builder.add_host(
            HostDescription { name: name.clone(), speed, cores: 1, memory_bandwidth: None },
            line,
        )?;
        let up = add_link(builder, format!("link_{name}_UP"), bandwidth, latency, element.line)?;
        let down = add_link(builder, format!("link_{name}_DOWN"), bandwidth, latency, element.line)?;
        zone_builder.add_cable(builder, place.vertex, (up, down), &name, line)?;
    }
    Ok(())
}

fn add_link(
    builder: &mut PlatformBuilder,
    name: String,
    bandwidth: f64,
    latency: f64,
    line: u32,
) -> Result<LinkId, PlatformError> {
    let owner = format!("the link {name:?}");
    builder.check_limits(Some(line), Some(0), Some(1))?;
    builder.check_positive(Some(line), &owner, "bandwidth", bandwidth)?;
    builder.check_not_negative(Some(line), &owner, "latency", latency)?;
    builder.add_plain_link(Link { name, bandwidth, latency, sharing: Sharing::Shared }, Some(line))
}
