//! The element `<zone>` and its children.

use super::element::Element;
use super::{cluster, host, link, read_property, route, star};
use crate::PlatformError;
use crate::platform::assembly::Assembly;
use crate::platform::draft::{RoutingKind, ZoneDraft};

/// Elements of zones that hold hosts.
const OF_HOSTS: [&str; 4] = ["host", "router", "cabinet", "host_link"];
/// Elements of zones that hold zones.
const OF_ZONES: [&str; 3] = ["zone", "AS", "cluster"];

/// Reads a zone and its children: hosts, links and routes among them, or other zones and clusters and routes between
/// those.
pub(super) fn read(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(assembly, &["id", "routing"])?;
    let name = element.required(assembly, "id")?;
    let kind = routing(assembly, element)?;
    refuse_mixture(assembly, element)?;
    let zone = assembly.open_zone(name, Some(element.line))?;
    let mut draft = ZoneDraft::new(zone, kind);
    for child in &element.children {
        read_child(assembly, &mut draft, child)?;
    }
    for child in element.children.iter().filter(|child| child.name == "host_link") {
        star::read_host_link(assembly, &mut draft, zone, child)?;
    }
    draft.finish(assembly, Some(element.line))
}

fn read_child(assembly: &mut Assembly, draft: &mut ZoneDraft, child: &Element) -> Result<(), PlatformError> {
    let line = Some(child.line);
    match child.name.as_str() {
        "prop" => read_property(assembly, child),
        "host" => host::read(assembly, child),
        "router" => host::read_router(assembly, child),
        "link" => link::read(assembly, child),
        "route" => draft.add_route(assembly, &route::read(assembly, child)?, line),
        "zoneRoute" | "ASroute" => {
            let (route, gateways) = route::read_between_zones(assembly, child)?;
            draft.add_zone_route(assembly, &route, &gateways, line)
        }
        "bypassRoute" => draft.add_bypass(assembly, &route::read(assembly, child)?, None, line),
        "bypassZoneRoute" | "bypassASroute" => {
            let (route, gateways) = route::read_between_zones(assembly, child)?;
            draft.add_bypass(assembly, &route, Some(&gateways), line)
        }
        "zone" | "AS" => read(assembly, child),
        "cluster" => cluster::read(assembly, child),
        "backbone" => star::read_backbone(assembly, draft, child),
        "cabinet" => star::read_cabinet(assembly, draft, child),
        // Read at the end of the zone, because it may name links that are declared after it.
        "host_link" => Ok(()),
        "peer" | "trace" | "trace_connect" | "include" | "storage" | "storage_type" | "mount" => {
            Err(child.not_supported(assembly))
        }
        _ => Err(child.misplaced(assembly, "zone")),
    }
}

fn routing(assembly: &Assembly, element: &Element) -> Result<RoutingKind, PlatformError> {
    let routing = element.required(assembly, "routing")?;
    match routing.to_ascii_lowercase().as_str() {
        "full" => Ok(RoutingKind::Full),
        "floyd" => Ok(RoutingKind::Floyd),
        "dijkstra" | "dijkstracache" => Ok(RoutingKind::Dijkstra),
        "cluster" | "star" => Ok(RoutingKind::Star),
        "none" => Ok(RoutingKind::None),
        "vivaldi" | "wifi" => {
            let feature = format!("routing={routing:?}");
            Err(PlatformError::NotSupported { at: assembly.at(Some(element.line)), feature })
        }
        _ => {
            let expected = "Full, Floyd, Dijkstra, DijkstraCache, Cluster or None";
            Err(element.value_error(assembly, "routing", routing, expected))
        }
    }
}

/// Refuses a zone that holds hosts as well as zones: SimGrid's format allows one or the other.
fn refuse_mixture(assembly: &Assembly, element: &Element) -> Result<(), PlatformError> {
    let has = |names: &[&str]| element.children.iter().find(|child| names.contains(&child.name.as_str()));
    match (has(&OF_HOSTS), has(&OF_ZONES)) {
        (Some(_), Some(inner)) => Err(inner.misplaced(assembly, "zone with hosts")),
        _ => Ok(()),
    }
}
