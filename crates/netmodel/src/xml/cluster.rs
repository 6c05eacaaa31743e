//! The element `<cluster>`.

use super::element::Element;
use super::{radical, read_property};
use crate::platform::builder::PlatformBuilder;
use crate::platform::cluster;
use crate::platform::description::{
    BackboneDescription, CableSharing, ClusterDescription, LoopbackDescription, Shape,
};
use crate::topology::dragonfly::DragonflyShape;
use crate::topology::fat_tree::FatTreeLevel;
use crate::unit::Dimension;
use crate::{HostId, PlatformError, Sharing};

const ATTRIBUTES: [&str; 18] = [
    "id",
    "prefix",
    "suffix",
    "radical",
    "speed",
    "core",
    "bw",
    "lat",
    "sharing_policy",
    "topology",
    "topo_parameters",
    "bb_bw",
    "bb_lat",
    "bb_sharing_policy",
    "router_id",
    "limiter_link",
    "loopback_bw",
    "loopback_lat",
];

/// Reads a cluster and adds it to the platform.
pub(super) fn read(builder: &mut PlatformBuilder, element: &Element) -> Result<(), PlatformError> {
    element.check_attributes(builder, &ATTRIBUTES)?;
    for child in &element.children {
        match child.name.as_str() {
            "prop" => read_property(builder, child)?,
            _ => return Err(child.misplaced(builder, "cluster")),
        }
    }
    let numbers = radical::read(builder, element)?;
    let shape = shape(builder, element)?;
    let backbone = backbone(builder, element, &shape)?;
    let loopback = optional_link(builder, element, "loopback_bw", "loopback_lat")?;
    let limiter = element.optional_quantity(builder, "limiter_link", Dimension::Bandwidth)?;
    let description = ClusterDescription {
        name: element.required(builder, "id")?.to_owned(),
        prefix: element.required(builder, "prefix")?.to_owned(),
        suffix: element.required(builder, "suffix")?.to_owned(),
        numbers,
        speed: element.speed(builder)?,
        cores: element.cores(builder)?,
        memory_bandwidth: element.memory_bandwidth(builder)?,
        shape,
        bandwidth: element.required_quantity(builder, "bw", Dimension::Bandwidth)?,
        latency: element.required_quantity(builder, "lat", Dimension::Time)?,
        sharing: sharing(builder, element)?,
        backbone,
        loopback: loopback.map(|(bandwidth, latency)| LoopbackDescription { bandwidth, latency }),
        limiter: (limiter != 0.0).then_some(limiter),
        accelerators: None,
        router: element.optional("router_id").map(str::to_owned),
    };
    let (first, power) = (builder.next_host(), element.host_power(builder)?);
    cluster::add(builder, &description, Some(element.line))?;
    let hosts = (first..builder.next_host()).map(HostId::new);
    builder.power.hosts.extend(hosts.filter_map(|host| Some((host, power?))));
    Ok(())
}

fn sharing(builder: &mut PlatformBuilder, element: &Element) -> Result<CableSharing, PlatformError> {
    match element.optional("sharing_policy").unwrap_or("SPLITDUPLEX") {
        "SPLITDUPLEX" | "FULLDUPLEX" => Ok(CableSharing::SplitDuplex),
        "SHARED" => Ok(CableSharing::Shared),
        "FATPIPE" => {
            let warning = "sharing_policy=\"FATPIPE\" of a <cluster> means SHARED, as in SimGrid";
            builder.warn(Some(element.line), warning);
            Ok(CableSharing::Shared)
        }
        other => {
            let expected = "SHARED, SPLITDUPLEX, FULLDUPLEX or FATPIPE";
            Err(element.value_error(builder, "sharing_policy", other, expected))
        }
    }
}

/// Reads bandwidth and latency of an optional link, which exists if one of them is not zero.
fn optional_link(
    builder: &mut PlatformBuilder,
    element: &Element,
    bandwidth: &'static str,
    latency: &'static str,
) -> Result<Option<(f64, f64)>, PlatformError> {
    let bandwidth = element.optional_quantity(builder, bandwidth, Dimension::Bandwidth)?;
    let latency = element.optional_quantity(builder, latency, Dimension::Time)?;
    let exists = bandwidth != 0.0 || latency != 0.0;
    Ok(exists.then_some((bandwidth, latency)))
}

/// Reads the backbone. SimGrid ignores one that is not on a flat cluster; this reader warns.
fn backbone(
    builder: &mut PlatformBuilder,
    element: &Element,
    shape: &Shape,
) -> Result<Option<BackboneDescription>, PlatformError> {
    let sharing = match element.optional("bb_sharing_policy").unwrap_or("SHARED") {
        "SHARED" => Sharing::Shared,
        "FATPIPE" => Sharing::FatPipe,
        other => return Err(element.value_error(builder, "bb_sharing_policy", other, "SHARED or FATPIPE")),
    };
    let backbone = optional_link(builder, element, "bb_bw", "bb_lat")?;
    if backbone.is_some() && *shape != Shape::Flat {
        builder.warn(
            Some(element.line),
            "only a cluster of topology FLAT has a backbone: bb_bw and bb_lat do nothing",
        );
        return Ok(None);
    }
    Ok(backbone.map(|(bandwidth, latency)| BackboneDescription { bandwidth, latency, sharing }))
}

fn shape(builder: &PlatformBuilder, element: &Element) -> Result<Shape, PlatformError> {
    let parameters = element.optional("topo_parameters").unwrap_or("");
    let (shape, expected) = match element.optional("topology").unwrap_or("FLAT") {
        "FLAT" => (Some(Shape::Flat), ""),
        "TORUS" => (list(parameters).map(Shape::Torus), "the sizes of a torus, such as \"4,4,8\""),
        "FAT_TREE" => (fat_tree(parameters), "the parameters of a fat tree, such as \"2;16,8;1,8;1,1\""),
        "DRAGONFLY" => (dragonfly(parameters), "the parameters of a dragonfly, such as \"3,4;4,3;5,1;2\""),
        other => {
            let expected = "FLAT, TORUS, FAT_TREE or DRAGONFLY";
            return Err(element.value_error(builder, "topology", other, expected));
        }
    };
    shape.ok_or_else(|| element.value_error(builder, "topo_parameters", parameters, expected))
}

fn list(text: &str) -> Option<Vec<u32>> {
    text.split(',').map(|number| number.trim().parse().ok()).collect()
}

/// Reads "levels;children;parents;cables", the last three with one number per level.
fn fat_tree(parameters: &str) -> Option<Shape> {
    let lists: Vec<Vec<u32>> = parameters.split(';').map(list).collect::<Option<_>>()?;
    let [levels, children, parents, cables] = lists.try_into().ok()?;
    let [count] = levels[..] else { return None };
    if [&children, &parents, &cables].iter().any(|list| list.len() as u64 != u64::from(count)) {
        return None;
    }
    let level =
        |index| FatTreeLevel { children: children[index], parents: parents[index], cables: cables[index] };
    Some(Shape::FatTree((0..children.len()).map(level).collect()))
}

/// Reads "groups,blue;chassis,black;blades,green;nodes".
fn dragonfly(parameters: &str) -> Option<Shape> {
    let lists: Vec<Vec<u32>> = parameters.split(';').map(list).collect::<Option<_>>()?;
    let [blue, black, green, nodes] = lists.try_into().ok()?;
    let ([groups, blue], [chassis, black]) = (blue[..].try_into().ok()?, black[..].try_into().ok()?);
    let ([blades, green], [nodes]) = (green[..].try_into().ok()?, nodes[..].try_into().ok()?);
    Some(Shape::Dragonfly(DragonflyShape { groups, blue, chassis, black, blades, green, nodes }))
}
