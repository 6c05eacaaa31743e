//! The element `<zone>` and its children.

use super::element::Element;
use super::{cluster, host, link, read_property, route, star};
use crate::PlatformError;
use crate::platform::builder::PlatformBuilder;
use crate::platform::zone_builder::{RoutingKind, ZoneBuilder};

/// Elements of zones that hold hosts.
const HOST_ELEMENTS: [&str; 4] = ["host", "router", "cabinet", "host_link"];
/// Elements of zones that hold zones.
const ZONE_ELEMENTS: [&str; 3] = ["zone", "AS", "cluster"];

/// Reads a zone and its children: hosts, links and routes among them, or other zones and clusters and routes between
/// those.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(builder, &["id", "routing"])?;
    let name = element.required(builder, "id")?;
    let kind = routing(builder, element)?;
    refuse_mixture(builder, element)?;
    let zone = builder.open_zone(name, Some(element.line))?;
    let mut zone_builder = ZoneBuilder::new(zone, kind);
    for child in &element.children {
        read_child(builder, &mut zone_builder, child)?;
    }
    for child in element.children.iter().filter(|child| child.name == "host_link") {
        star::read_host_link(builder, &mut zone_builder, zone, child)?;
    }
    zone_builder.finish(builder, Some(element.line))
}

fn read_child(
    builder: &mut PlatformBuilder,
    zone_builder: &mut ZoneBuilder,
    child: &Element,
) -> Result<(), PlatformError> {
    let line = Some(child.line);
    match child.name.as_str() {
        "prop" => read_property(builder, child),
        "host" => host::read(builder, child),
        "router" => host::read_router(builder, child),
        "link" => link::read(builder, child),
        "route" => zone_builder.add_route(builder, &route::read(builder, child)?, line),
        "zoneRoute" | "ASroute" => {
            let (route, gateways) = route::read_between_zones(builder, child)?;
            zone_builder.add_zone_route(builder, &route, &gateways, line)
        }
        "bypassRoute" => zone_builder.add_bypass(builder, &route::read(builder, child)?, None, line),
        "bypassZoneRoute" | "bypassASroute" => {
            let (route, gateways) = route::read_between_zones(builder, child)?;
            zone_builder.add_bypass(builder, &route, Some(&gateways), line)
        }
        "zone" | "AS" => read(builder, child),
        "cluster" => cluster::read(builder, child),
        "backbone" => star::read_backbone(builder, zone_builder, child),
        "cabinet" => star::read_cabinet(builder, zone_builder, child),
        // Read at the end of the zone, because it may name links that are declared after it.
        "host_link" => Ok(()),
        "peer" | "trace" | "trace_connect" | "include" | "storage" | "storage_type" | "mount" => {
            Err(child.not_supported(builder))
        }
        _ => Err(child.misplaced(builder, "zone")),
    }
}

fn routing(builder: &PlatformBuilder, element: &Element) -> Result<RoutingKind, PlatformError> {
    let routing = element.required(builder, "routing")?;
    match routing.to_ascii_lowercase().as_str() {
        "full" => Ok(RoutingKind::Full),
        "floyd" => Ok(RoutingKind::Floyd),
        "dijkstra" | "dijkstracache" => Ok(RoutingKind::Dijkstra),
        "cluster" | "star" => Ok(RoutingKind::Star),
        "none" => Ok(RoutingKind::None),
        "vivaldi" | "wifi" => {
            let feature = format!("routing={routing:?}");
            Err(PlatformError::NotSupported { at: builder.at(Some(element.line)), feature })
        }
        _ => {
            let expected = "Full, Floyd, Dijkstra, DijkstraCache, Cluster or None";
            Err(element.value_error(builder, "routing", routing, expected))
        }
    }
}

/// Refuses a zone that holds hosts as well as zones: SimGrid's format allows one or the other.
fn refuse_mixture(builder: &PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    let has = |names: &[&str]| element.children.iter().find(|child| names.contains(&child.name.as_str()));
    match (has(&HOST_ELEMENTS), has(&ZONE_ELEMENTS)) {
        (Some(_), Some(inner)) => Err(inner.misplaced(builder, "zone with hosts")),
        _ => Ok(()),
    }
}
