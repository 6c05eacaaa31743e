//! The elements `<route>`, `<zoneRoute>`, `<bypassRoute>` and `<bypassZoneRoute>`.

use super::element::Element;
use crate::PlatformError;
use crate::platform::assembly::Assembly;
use crate::platform::description::{Hop, RouteDescription};

/// Reads a route between hosts and routers.
pub(super) fn read(assembly: &Assembly, element: &Element) -> Result<RouteDescription, PlatformError> {
    read_with(assembly, element, &["src", "dst"])
}

/// Reads a route between zones, and the names of its gateways.
pub(super) fn read_between_zones(
    assembly: &Assembly,
    element: &Element,
) -> Result<(RouteDescription, (String, String)), PlatformError> {
    let route = read_with(assembly, element, &["src", "dst", "gw_src", "gw_dst"])?;
    let gateway = |attribute| element.required(assembly, attribute).map(str::to_owned);
    Ok((route, (gateway("gw_src")?, gateway("gw_dst")?)))
}

/// Reads the ends and the links of a route. A bypass has no attribute `symmetrical` and leads in one direction only.
fn read_with(
    assembly: &Assembly,
    element: &Element,
    ends: &[&str],
) -> Result<RouteDescription, PlatformError> {
    let bypass = element.name.starts_with("bypass");
    let known = if bypass { ends.to_vec() } else { [ends, &["symmetrical"]].concat() };
    element.check_attributes(assembly, &known)?;
    let symmetrical = match element.optional("symmetrical").unwrap_or("YES") {
        "YES" | "yes" => !bypass,
        "NO" | "no" => false,
        other => return Err(element.value_error(assembly, "symmetrical", other, "YES or NO")),
    };
    let src = element.required(assembly, "src")?.to_owned();
    let dst = element.required(assembly, "dst")?.to_owned();
    let links = element.children.iter().map(|child| read_hop(assembly, child)).collect::<Result<_, _>>()?;
    Ok(RouteDescription { src, dst, links, symmetrical })
}

fn read_hop(assembly: &Assembly, element: &Element) -> Result<Hop, PlatformError> {
    if element.name != "link_ctn" {
        return Err(element.misplaced(assembly, "route"));
    }
    element.check_attributes(assembly, &["id", "direction"])?;
    element.expect_no_children(assembly)?;
    let link = element.required(assembly, "id")?.to_owned();
    match element.optional("direction").unwrap_or("NONE") {
        "NONE" => Ok(Hop::Either(link)),
        "UP" => Ok(Hop::Up { up: link }),
        "DOWN" => Ok(Hop::Down { down: link }),
        other => Err(element.value_error(assembly, "direction", other, "UP, DOWN or NONE")),
    }
}
