//! The element `<zone>` with full routing, and what it holds.

use super::element::Element;
use super::{cluster, read_property};
use crate::PlatformError;
use crate::platform::Routing;
use crate::platform::assembly::Assembly;
use crate::platform::description::{CableSharing, Hop, HostDescription, LinkDescription, RouteDescription};
use crate::platform::table::RouteTable;
use crate::unit::Dimension;

/// Reads a zone and what it holds: hosts, links and routes among them, or other zones and clusters.
pub(super) fn read(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(assembly, &["id", "routing"])?;
    let name = element.required(assembly, "id")?;
    let routing = element.required(assembly, "routing")?;
    if !routing.eq_ignore_ascii_case("Full") {
        return Err(refuse_routing(assembly, element, routing));
    }
    assembly.open_zone(name, Some(element.line))?;
    refuse_mixture(assembly, element)?;
    let first_host = assembly.next_host();
    let mut table = RouteTable::default();
    for child in &element.children {
        read_child(assembly, &mut table, first_host, child)?;
    }
    if element.children.iter().any(|child| child.name == "host") {
        let hosts = first_host..assembly.next_host();
        assembly.add_default_loopback(&mut table, hosts, Some(element.line))?;
        assembly.close_zone(name, Some(element.line), first_host, Routing::Table(table));
    }
    Ok(())
}

fn read_child(
    assembly: &mut Assembly,
    table: &mut RouteTable,
    first_host: u32,
    child: &Element,
) -> Result<(), PlatformError> {
    match child.name.as_str() {
        "prop" => read_property(assembly, child),
        "host" => read_host(assembly, child),
        "link" => read_link(assembly, child),
        "route" => {
            let route = read_route(assembly, child)?;
            assembly.add_route(table, first_host..assembly.next_host(), &route, Some(child.line))
        }
        "zone" | "AS" => read(assembly, child),
        "cluster" => cluster::read(assembly, child),
        "router" | "cabinet" | "peer" | "backbone" | "host_link" | "zoneRoute" | "ASroute"
        | "bypassRoute" | "bypassZoneRoute" | "bypassASroute" | "trace" | "trace_connect" | "include"
        | "storage" | "storage_type" | "mount" => Err(child.not_supported(assembly)),
        _ => Err(child.misplaced(assembly, "zone")),
    }
}

fn refuse_routing(assembly: &Assembly, element: &Element, routing: &str) -> PlatformError {
    const OTHERS: [&str; 8] =
        ["Floyd", "Dijkstra", "DijkstraCache", "Cluster", "Star", "None", "Vivaldi", "Wifi"];
    if OTHERS.iter().any(|other| routing.eq_ignore_ascii_case(other)) {
        let feature = format!("routing={routing:?}");
        return PlatformError::NotSupported { at: assembly.at(Some(element.line)), feature };
    }
    element.value_error(assembly, "routing", routing, "Full")
}

/// Refuses a zone that holds hosts as well as zones: SimGrid's format allows one or the other.
fn refuse_mixture(assembly: &Assembly, element: &Element) -> Result<(), PlatformError> {
    let has = |names: &[&str]| element.children.iter().find(|child| names.contains(&child.name.as_str()));
    match (has(&["host"]), has(&["zone", "AS", "cluster"])) {
        (Some(_), Some(inner)) => Err(inner.misplaced(assembly, "zone with hosts")),
        _ => Ok(()),
    }
}

fn read_host(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
    const PROFILES: [&str; 3] = ["speed_file", "state_file", "availability_file"];
    let known = ["id", "speed", "core", "coordinates", "pstate"];
    element.check_attributes(assembly, &[&known[..], &PROFILES].concat())?;
    element.refuse_attributes(assembly, &PROFILES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(assembly, child)?,
            "disk" => {}
            "mount" => return Err(child.not_supported(assembly)),
            _ => return Err(child.misplaced(assembly, "host")),
        }
    }
    let name = element.required(assembly, "id")?.to_owned();
    let host = HostDescription { name, speed: element.speed(assembly)?, cores: element.cores(assembly)? };
    assembly.add_host(host, Some(element.line))
}

fn read_link(assembly: &mut Assembly, element: &Element) -> Result<(), PlatformError> {
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
        sharing: link_sharing(assembly, element)?,
    };
    assembly.add_link(link, Some(element.line))
}

fn link_sharing(assembly: &Assembly, element: &Element) -> Result<CableSharing, PlatformError> {
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

fn read_route(assembly: &Assembly, element: &Element) -> Result<RouteDescription, PlatformError> {
    element.check_attributes(assembly, &["src", "dst", "symmetrical"])?;
    let symmetrical = match element.optional("symmetrical").unwrap_or("YES") {
        "YES" | "yes" => true,
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
