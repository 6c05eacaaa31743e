//! The elements `<route>`, `<zoneRoute>`, `<bypassRoute>` and `<bypassZoneRoute>`.

use super::element::Element;
use crate::PlatformError;
use crate::platform::builder::PlatformBuilder;
use crate::platform::description::{Hop, RouteDescription};

/// Reads a route between hosts and routers.
pub(super) fn read(builder: &PlatformBuilder, element: &Element) -> Result<RouteDescription, PlatformError> {
    read_with(builder, element, &["src", "dst"])
}

/// Reads a route between zones, and the names of its gateways.
pub(super) fn read_between_zones(
    builder: &PlatformBuilder,
    element: &Element,
) -> Result<(RouteDescription, (String, String)), PlatformError> {
    let route = read_with(builder, element, &["src", "dst", "gw_src", "gw_dst"])?;
    let gateway = |attribute| element.required(builder, attribute).map(str::to_owned);
    Ok((route, (gateway("gw_src")?, gateway("gw_dst")?)))
}

/// Reads the ends and the links of a route. A bypass has no attribute `symmetrical` and leads in one direction only.
fn read_with(
    builder: &PlatformBuilder,
    element: &Element,
    ends: &[&str],
) -> Result<RouteDescription, PlatformError> {
    let bypass = element.name.starts_with("bypass");
    let known = if bypass { ends.to_vec() } else { [ends, &["symmetrical"]].concat() };
    element.check_attributes(builder, &known)?;
    let symmetrical = match element.optional("symmetrical").unwrap_or("YES") {
        "YES" | "yes" => !bypass,
        "NO" | "no" => false,
        other => return Err(element.value_error(builder, "symmetrical", other, "YES or NO")),
    };
    let src = element.required(builder, "src")?.to_owned();
    let dst = element.required(builder, "dst")?.to_owned();
    let links = element.children.iter().map(|child| read_hop(builder, child)).collect::<Result<_, _>>()?;
    Ok(RouteDescription { src, dst, links, symmetrical })
}

fn read_hop(builder: &PlatformBuilder, element: &Element) -> Result<Hop, PlatformError> {
    if element.name != "link_ctn" {
        return Err(element.misplaced(builder, "route"));
    }
    element.check_attributes(builder, &["id", "direction"])?;
    element.expect_no_children(builder)?;
    let link = element.required(builder, "id")?.to_owned();
    match element.optional("direction").unwrap_or("NONE") {
        "NONE" => Ok(Hop::Either(link)),
        "UP" => Ok(Hop::Up { up: link }),
        "DOWN" => Ok(Hop::Down { down: link }),
        other => Err(element.value_error(builder, "direction", other, "UP, DOWN or NONE")),
    }
}
