//! Construction of clusters: many equal hosts on a regular network.

use super::builder::PlatformBuilder;
use super::description::{
    AcceleratorsDescription, BackboneDescription, CableSharing, ClusterDescription, HostDescription,
    LoopbackDescription, Shape,
};
use super::routing::Routing;
use super::routing::table::RouteTable;
use crate::topology::accelerators::WithAccelerators;
use crate::topology::dragonfly::{Dragonfly, DragonflyShape};
use crate::topology::fat_tree::{FatTree, FatTreeLevel, FatTreeOffsets};
use crate::topology::star::Star;
use crate::topology::switches::SwitchGraph;
use crate::topology::torus::Torus;
use crate::topology::{RoutingRule, Topology, Wiring};
use crate::{Link, LinkId, PlatformError, Sharing};

/// Adds a cluster: its hosts, its links, and the zone that routes among them.
pub(crate) fn add(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    line: Option<u32>,
) -> Result<(), PlatformError> {
    let topology = shape(builder, cluster, line)?;
    check(builder, cluster, topology.as_ref(), line)?;
    let topology = match &cluster.accelerators {
        Some(accelerators) => with_accelerators(builder, cluster, accelerators, topology)?,
        None => topology,
    };
    builder.open_zone(&cluster.name, line)?;
    for number in &cluster.numbers {
        let name = format!("{}{number}{}", cluster.prefix, cluster.suffix);
        let ClusterDescription { speed, cores, memory_bandwidth, .. } = *cluster;
        builder.add_host(HostDescription { name, speed, cores, memory_bandwidth }, line)?;
    }
    if let Some(accelerators) = &cluster.accelerators {
        add_accelerators(builder, cluster, accelerators)?;
    }
    let wiring = wire(builder, cluster, topology.as_ref(), line)?;
    if cluster.shape == Shape::Flat {
        builder.add_router(&router_name(cluster), line)?;
    }
    builder.close_zone(Routing::Cluster(topology, wiring), RouteTable::default());
    Ok(())
}

/// Gives the hosts of the network of a cluster accelerators.
fn with_accelerators(
    builder: &PlatformBuilder,
    cluster: &ClusterDescription,
    accelerators: &AcceleratorsDescription,
    network: Box<dyn Topology>,
) -> Result<Box<dyn Topology>, PlatformError> {
    let owner = format!("the cluster {:?}", cluster.name);
    if let Some(limiter) = cluster.limiter {
        let expected = "none with accelerators: it is not known what of their traffic it limits";
        return Err(builder.value_error(None, &owner, "limiter", limiter, expected));
    }
    let owner = format!("the accelerators of {owner}");
    if accelerators.count == 0 {
        let expected = "1 or more; leave accelerators out if hosts have none";
        return Err(builder.value_error(None, &owner, "count", 0, expected));
    }
    builder.check_positive(None, &owner, "bandwidth", accelerators.bandwidth)?;
    builder.check_not_negative(None, &owner, "latency", accelerators.latency)?;
    let number = network.hosts() * u64::from(accelerators.count);
    // Each has two links and perhaps a loopback.
    builder.check_limits(None, Some(network.hosts() + number), Some(3 * number))?;
    Ok(Box::new(WithAccelerators::new(network, accelerators.count)))
}

fn add_accelerators(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    accelerators: &AcceleratorsDescription,
) -> Result<(), PlatformError> {
    let AcceleratorsDescription { count, name: kind, speed, cores, memory_bandwidth, .. } = accelerators;
    for host in &cluster.numbers {
        for number in 0..*count {
            let name = format!("{}{host}{}-{kind}-{number}", cluster.prefix, cluster.suffix);
            let (speed, cores, memory_bandwidth) = (*speed, *cores, *memory_bandwidth);
            builder.add_host(HostDescription { name, speed, cores, memory_bandwidth }, None)?;
        }
    }
    Ok(())
}

/// Returns the name of the router of a flat cluster. It is the vertex after the hosts, in the middle of the star.
fn router_name(cluster: &ClusterDescription) -> String {
    let ClusterDescription { name, prefix, suffix, .. } = cluster;
    cluster.router.clone().unwrap_or_else(|| format!("{prefix}{name}_router{suffix}"))
}

fn shape(
    builder: &PlatformBuilder,
    cluster: &ClusterDescription,
    line: Option<u32>,
) -> Result<Box<dyn Topology>, PlatformError> {
    let problem = |found: String, expected| {
        let cluster = cluster.name.clone();
        PlatformError::Topology { at: builder.at(line), cluster, found, expected }
    };
    Ok(match &cluster.shape {
        Shape::Flat => Box::new(Star::new(cluster.numbers.clone())),
        Shape::Torus(sizes) => Box::new(Torus::try_new(sizes).ok_or_else(|| {
            problem(format!("torus {}", joined(sizes)), "one dimension or more, each of one host or more")
        })?),
        Shape::FatTree(levels) => {
            let expected = "one level or more, with one child, parent and cable or more each";
            let tree = FatTree::try_new(levels, builder.fat_tree_origin);
            Box::new(tree.ok_or_else(|| problem(fat_tree_text(levels), expected))?)
        }
        Shape::Dragonfly(shape) => {
            // SimGrid's XML, which has lines, describes networks that SimGrid has.
            let is_simgrids = line.is_some();
            let expected = if is_simgrids {
                "no zero, and at least as many blades per chassis as groups (a dragonfly in TOML may have fewer)"
            } else {
                "no zero"
            };
            let dragonfly = Dragonfly::try_new(*shape, builder.dragonfly_cables)
                .filter(|_| !is_simgrids || shape.is_in_simgrid());
            Box::new(dragonfly.ok_or_else(|| problem(dragonfly_text(*shape), expected))?)
        }
        Shape::Switches(shape) => {
            let graph = SwitchGraph::try_new(shape);
            Box::new(graph.ok_or_else(|| problem(shape.to_string(), shape.expected()))?)
        }
    })
}

/// Joins numbers as platforms in XML do.
fn joined(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn fat_tree_text(levels: &[FatTreeLevel]) -> String {
    let level = |level: &FatTreeLevel| {
        format!("{} children, {} parents, {} cables", level.children, level.parents, level.cables)
    };
    let levels: Vec<String> = levels.iter().map(level).collect();
    if levels.is_empty() {
        "fat tree without levels".to_owned()
    } else {
        format!("fat tree of {}", levels.join("; "))
    }
}

fn dragonfly_text(shape: DragonflyShape) -> String {
    let DragonflyShape { groups, blue, chassis, black, blades, green, nodes } = shape;
    format!(
        "dragonfly of {groups} groups ({blue} cables), {chassis} chassis ({black}), {blades} blades ({green}), {nodes} nodes"
    )
}

fn check(
    builder: &PlatformBuilder,
    cluster: &ClusterDescription,
    topology: &dyn Topology,
    line: Option<u32>,
) -> Result<(), PlatformError> {
    let owner = format!("the cluster {:?}", cluster.name);
    builder.check_positive(line, &owner, "bandwidth", cluster.bandwidth)?;
    builder.check_not_negative(line, &owner, "latency", cluster.latency)?;
    if cluster.sharing == CableSharing::FatPipe {
        let expected = "shared or split duplex: the cables of a cluster divide their bandwidth";
        return Err(builder.value_error(line, &owner, "sharing", "fat pipe", expected));
    }
    let backbone = cluster.backbone.map(|link| ("backbone", link.bandwidth, link.latency));
    let loopback = cluster.loopback.map(|link| ("loopback", link.bandwidth, link.latency));
    for (kind, bandwidth, latency) in backbone.into_iter().chain(loopback) {
        let owner = format!("the {kind} of the cluster {:?}", cluster.name);
        builder.check_positive(line, &owner, "bandwidth", bandwidth)?;
        builder.check_not_negative(line, &owner, "latency", latency)?;
    }
    if let Some(limiter) = cluster.limiter {
        builder.check_positive(line, &owner, "limiter", limiter)?;
    }
    if cluster.backbone.is_some() && !matches!(cluster.shape, Shape::Flat) {
        let expected = "none: only a flat cluster has one";
        return Err(builder.value_error(line, &owner, "backbone", topology, expected));
    }
    check_size(builder, cluster, topology, line)
}

fn check_size(
    builder: &PlatformBuilder,
    cluster: &ClusterDescription,
    topology: &dyn Topology,
    line: Option<u32>,
) -> Result<(), PlatformError> {
    let (found, expected) = (cluster.numbers.len() as u64, topology.hosts());
    if found != expected {
        let (at, cluster, topology) = (builder.at(line), cluster.name.clone(), topology.to_string());
        return Err(PlatformError::HostCount { at, cluster, topology, found, expected });
    }
    // Two links per cable, one loopback per host and one limiter per host and per switch; switches have cables.
    let links = topology.cable_count().and_then(|cables| cables.checked_mul(3));
    let links = links.and_then(|links| links.checked_add(2 * found)).and_then(|links| links.checked_add(1));
    builder.check_limits(line, Some(found), links)
}

/// Adds the links of a cluster in the order that [`Wiring`] relies on.
fn wire(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    topology: &dyn Topology,
    line: Option<u32>,
) -> Result<Wiring, PlatformError> {
    let cables = builder.next_link();
    let duplex = cluster.sharing == CableSharing::SplitDuplex;
    let cables_to_add = topology.cables(&cluster.name);
    advance_numbers(builder, cluster, cables_to_add.len() as u64);
    // The two halves of a split-duplex link have names of their own.
    let (links, names) = if duplex { (2, 3) } else { (1, 1) };
    builder.reserve_links(links * cables_to_add.len(), names * cables_to_add.len());
    for cable in cables_to_add {
        let (bandwidth, latency) = match (cable.bandwidth_multiple, &cluster.accelerators) {
            (None, Some(accelerators)) => (accelerators.bandwidth, accelerators.latency),
            (multiple, _) => (cluster.bandwidth * f64::from(multiple.unwrap_or(1)), cluster.latency),
        };
        let link = Link { name: cable.name, bandwidth, latency, sharing: Sharing::Shared };
        if duplex {
            builder.add_split_link(link, line)?;
        } else {
            builder.add_plain_link(link, line)?;
        }
    }
    let backbone = add_backbone(builder, cluster, line)?;
    let loopback = add_loopbacks(builder, cluster, line)?;
    let limiter = add_limiters(builder, cluster, topology, line)?;
    Ok(Wiring { cables, duplex, loopback, limiter, rule: RoutingRule::default(), backbone })
}

/// Advances the numbers that SimGrid counts over all fat trees, and those over all dragonflies, of a platform.
fn advance_numbers(builder: &mut PlatformBuilder, cluster: &ClusterDescription, cables: u64) {
    match cluster.shape {
        Shape::Flat | Shape::Torus(_) | Shape::Switches(_) => {}
        Shape::FatTree(_) => {
            let FatTreeOffsets { position, cable } = builder.fat_tree_origin;
            let position = position + cluster.numbers.len() as u64;
            builder.fat_tree_origin = FatTreeOffsets { position, cable: cable + cables };
        }
        Shape::Dragonfly(_) => builder.dragonfly_cables += cables,
    }
}

fn add_backbone(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    line: Option<u32>,
) -> Result<Option<LinkId>, PlatformError> {
    let Some(BackboneDescription { bandwidth, latency, sharing }) = cluster.backbone else { return Ok(None) };
    let name = format!("{}_backbone", cluster.name);
    builder.add_plain_link(Link { name, bandwidth, latency, sharing }, line).map(Some)
}

fn add_loopbacks(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    line: Option<u32>,
) -> Result<Option<u32>, PlatformError> {
    let Some(LoopbackDescription { bandwidth, latency }) = cluster.loopback else { return Ok(None) };
    let first = builder.next_link();
    for number in &cluster.numbers {
        let name = format!("{}_link_{number}_loopback", cluster.name);
        builder.add_plain_link(Link { name, bandwidth, latency, sharing: Sharing::FatPipe }, line)?;
    }
    let each = cluster.accelerators.as_ref().map_or(0, |accelerators| accelerators.count);
    for (host, number) in
        (0..cluster.numbers.len()).flat_map(|host| (0..each).map(move |number| (host, number)))
    {
        let name = format!("{}_accelerator_link_{host}_{number}_loopback", cluster.name);
        builder.add_plain_link(Link { name, bandwidth, latency, sharing: Sharing::FatPipe }, line)?;
    }
    Ok(Some(first))
}

/// Adds the limiters of hosts and switches. SimGrid names those of hosts by the number in the host's name in flat
/// clusters, by its position in the others.
fn add_limiters(
    builder: &mut PlatformBuilder,
    cluster: &ClusterDescription,
    topology: &dyn Topology,
    line: Option<u32>,
) -> Result<Option<u32>, PlatformError> {
    let Some(bandwidth) = cluster.limiter else { return Ok(None) };
    let first = builder.next_link();
    let host_number = |(position, &number): (usize, &u32)| match cluster.shape {
        Shape::Flat => i64::from(number),
        _ => position as i64,
    };
    let hosts = cluster.numbers.iter().enumerate().map(host_number);
    for number in hosts.chain(topology.switch_numbers()) {
        let name = format!("{}_link_{number}_limiter", cluster.name);
        builder.add_plain_link(Link { name, bandwidth, latency: 0.0, sharing: Sharing::Shared }, line)?;
    }
    Ok(Some(first))
}
