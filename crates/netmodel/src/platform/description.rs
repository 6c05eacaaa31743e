//! Platforms in TOML.
//!
//! Quantities are strings with the units of SimGrid's files (`"12.5GBps"`, `"100Mbps"`, `"1us"`, `"10Gf"`) or numbers
//! in SI units: B/s, s, flop/s. An unknown field, or one that the topology cannot use, is an error.
//!
//! A platform is a table `topology`, perhaps lists of devices `storage` and of file systems `file_system`, and, for a graph only, lists of hosts, links and routes. Fields of all topologies but
//! the graph:
//!
//! | field | meaning | default |
//! |---|---|---|
//! | `name` | prefix of the names of links | `"cluster"` |
//! | `prefix` | prefix of the names of hosts; a number from 0 follows | `"node-"` |
//! | `speed`, `cores` | of each host [flop/s] | required, 1 |
//! | `bandwidth`, `latency` | of each cable, in B/s and seconds | required |
//! | `sharing` | of each cable: `"split_duplex"` or `"shared"` by both directions | `"split_duplex"` |
//! | `loopback` | `{ bandwidth, latency }` of messages that a host, or an accelerator, sends to itself | none |
//! | `limiter` | total traffic of a host, or of a switch [B/s] | none |
//! | `accelerators` | of each host: `{ count, name, speed, cores, memory_bandwidth, bandwidth, latency }` | none |
//!
//! A flat cluster is `hosts` on one switch, or on a backbone:
//! ```toml
//! [topology]
//! kind = "cluster"
//! hosts = 128
//! speed = "1Gf"
//! bandwidth = "125MBps"
//! latency = "50us"
//! backbone = { bandwidth = "1.25GBps", latency = "100us", sharing = "shared" }   # or sharing = "fat_pipe"
//! ```
//! A torus has the sizes of its dimensions, the first one varying fastest over the hosts:
//! ```toml
//! topology = { kind = "torus", dims = [4, 4, 8], speed = "10Gf", bandwidth = "5GBps", latency = "500ns" }
//! ```
//! A fat tree has its levels from the hosts up, each with the number of children of a switch, the number of parents on this
//! level of a node below, and the number of parallel cables (default 1) to each parent:
//! ```toml
//! [topology]
//! kind = "fat_tree"
//! levels = [{ children = 16, parents = 1 }, { children = 8, parents = 8, cables = 1 }]
//! speed = "10Gf"
//! bandwidth = "12.5GBps"
//! latency = "1us"
//! loopback = { bandwidth = "25GBps", latency = "200ns" }
//! ```
//! A dragonfly has groups of chassis of blades (one router each) of nodes, and cables of three colours, whose
//! bandwidths are given in multiples of `bandwidth` (default 1): `green` inside a chassis, `black` between the chassis
//! of a group, `blue` between groups:
//! ```toml
//! [topology]
//! kind = "dragonfly"
//! groups = 3
//! chassis = 4
//! blades = 5
//! nodes = 2
//! blue = 4
//! black = 3
//! speed = "10Gf"
//! bandwidth = "12.5GBps"
//! latency = "300ns"
//! ```
//! A HyperX joins every two switches that differ in one coordinate by so many parallel cables (default 1):
//! ```toml
//! topology = { kind = "hyperx", dims = [4, 4], cables = 2, nodes = 8, speed = "10Gf", bandwidth = "4GBps", latency = "60ns" }
//! ```
//! A Slim Fly and a PolarFly are known by the order of their finite field, a power of a prime:
//! ```toml
//! topology = { kind = "slim_fly", order = 5, nodes = 4, speed = "10Gf", bandwidth = "25GBps", latency = "100ns" }
//! ```
//! ```toml
//! topology = { kind = "polarfly", order = 7, nodes = 4, speed = "10Gf", bandwidth = "25GBps", latency = "100ns" }
//! ```
//! A Jellyfish joins switches at random, by a seed (default 1):
//! ```toml
//! topology = { kind = "jellyfish", switches = 50, degree = 7, nodes = 4, seed = 2, speed = "10Gf", bandwidth = "25GBps", latency = "100ns" }
//! ```
//! A dragonfly+ has groups of leaves and spines; every two groups are joined by `cables` (default 1), which the spines have in
//! turn:
//! ```toml
//! [topology]
//! kind = "dragonfly_plus"
//! groups = 5
//! leaves = 4
//! spines = 4
//! nodes = 4
//! speed = "10Gf"
//! bandwidth = "25GBps"
//! latency = "300ns"
//! ```
//! A rail-optimised fabric has units of servers, whose hosts are accelerators: a switch in the server joins them with cables of
//! `local` times the bandwidth (default 1), and host `i` of each server has a cable to leaf `i` of the unit. All leaves have
//! `cables` (default 1) to each spine:
//! ```toml
//! [topology]
//! kind = "rail_optimized"
//! units = 2
//! servers = 8
//! rails = 8
//! spines = 8
//! local = 9
//! speed = "60Tf"
//! bandwidth = "50GBps"
//! latency = "500ns"
//! ```
//! A graph lists everything. A route is symmetrical by default; it crosses a split-duplex link in a direction, which the
//! reverse route reverses. A host without route to itself has a loopback link of 10 GB/s without latency:
//! ```toml
//! topology = { kind = "graph" }
//! host = [{ name = "a", speed = "1Gf" }, { name = "b", speed = "2Gf", cores = 4 }]
//! link = [
//!     { name = "up", bandwidth = "1GBps", latency = "1us", sharing = "split_duplex" },
//!     { name = "core", bandwidth = "10GBps", sharing = "fat_pipe" },
//! ]
//! route = [{ src = "a", dst = "b", links = [{ up = "up" }, "core"], symmetrical = true }]
//! ```

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::builder::PlatformBuilder;
use super::quantity::{Bandwidth, Speed, Time, plain, plain_if_any};
use super::zone_builder::{RoutingKind, ZoneBuilder};
use super::{Platform, cluster};
use crate::storage::{FileSystemDescription, StorageDescription};
use crate::topology::dragonfly::DragonflyShape;
use crate::topology::fat_tree::FatTreeLevel;
use crate::topology::switches::SwitchShape;
use crate::{PlatformError, Sharing};

pub(crate) mod fields;

use fields::TopologyFields;

/// A platform as described in TOML, in a file of its own or in a table of another one.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlatformDescription {
    /// The network between the hosts.
    pub topology: TopologyDescription,
    /// The hosts of a graph.
    #[serde(default)]
    pub host: Vec<HostDescription>,
    /// The links of a graph.
    #[serde(default)]
    pub link: Vec<LinkDescription>,
    /// The routes of a graph.
    #[serde(default)]
    pub route: Vec<RouteDescription>,
    /// The storage devices.
    #[serde(default)]
    pub storage: Vec<StorageDescription>,
    /// The parallel file systems.
    #[serde(default)]
    pub file_system: Vec<FileSystemDescription>,
}

/// The network between the hosts of a platform.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TopologyFields")]
pub enum TopologyDescription {
    /// Listed routes.
    Graph,
    /// A regular network.
    Cluster(Box<ClusterDescription>),
}

impl JsonSchema for TopologyDescription {
    fn schema_name() -> Cow<'static, str> {
        "TopologyDescription".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        TopologyFields::json_schema(generator)
    }
}

/// Many equal hosts on a regular network.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterDescription {
    /// Prefix of the names of links.
    pub name: String,
    /// Prefix of the names of hosts.
    pub prefix: String,
    /// Suffix of the names of hosts.
    pub suffix: String,
    /// Numbers in the names of hosts, one per host.
    pub numbers: Vec<u32>,
    /// Speed of one core [flop/s].
    pub speed: f64,
    /// Number of cores of each host.
    pub cores: u32,
    /// Bandwidth of the memory of each host, which its cores share [B/s]; without it, the memory limits nothing.
    pub memory_bandwidth: Option<f64>,
    /// The network.
    pub shape: Shape,
    /// Bandwidth of a cable [B/s].
    pub bandwidth: f64,
    /// Latency of a cable.
    pub latency: f64,
    /// Sharing of a cable by its flows; not [`CableSharing::FatPipe`].
    pub sharing: CableSharing,
    /// Link that all messages between hosts cross; flat clusters only.
    pub backbone: Option<BackboneDescription>,
    /// Link of each host for its messages to itself. Each flow has its whole capacity.
    pub loopback: Option<LoopbackDescription>,
    /// Total traffic of one host or switch, in both directions together [B/s].
    pub limiter: Option<f64>,
    /// Accelerators of each host.
    pub accelerators: Option<AcceleratorsDescription>,
    /// Name of the router in the middle, through which routes between zones lead; flat clusters only. By default
    /// `prefix`, `name`, `"_router"` and `suffix`, concatenated.
    pub router: Option<String>,
}

/// The network of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Each host has a cable to one switch or backbone.
    Flat,
    /// A torus with these sizes; the first dimension varies fastest.
    Torus(Vec<u32>),
    /// A fat tree with these levels, from the hosts up.
    FatTree(Vec<FatTreeLevel>),
    /// A dragonfly.
    Dragonfly(DragonflyShape),
    /// Switches with shortest routes.
    Switches(SwitchShape),
}

/// Sharing of a link by its flows and its two directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CableSharing {
    /// All flows of both directions divide the bandwidth.
    #[default]
    Shared,
    /// Each direction has the bandwidth, divided among its flows.
    SplitDuplex,
    /// Each flow has the bandwidth.
    FatPipe,
}

/// Link of a flat cluster that all messages between its hosts cross.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackboneDescription {
    /// Capacity [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
    /// Sharing by the flows.
    #[serde(default)]
    pub sharing: Sharing,
}

/// Link of each host of a cluster for its messages to itself; each flow has its whole capacity.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopbackDescription {
    /// Capacity [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
}

/// Accelerators of each host of a cluster. They are hosts, numbered after all others; messages to them cross their hosts.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorsDescription {
    /// Number of accelerators of a host.
    pub count: u32,
    /// Name of the accelerators between the name of their host and their number: `node-3-gpu-0`.
    #[serde(default = "gpu")]
    pub name: String,
    /// Speed of one core, a stream [flop/s].
    #[serde(deserialize_with = "plain::<_, Speed>")]
    #[schemars(with = "Speed")]
    pub speed: f64,
    /// Number of cores: streams that compute at the same time.
    #[serde(default = "one")]
    pub cores: u32,
    /// Bandwidth of the memory, which the cores share [B/s]; by default unlimited.
    #[serde(default, deserialize_with = "plain_if_any::<_, Bandwidth>")]
    #[schemars(with = "Option<Bandwidth>")]
    pub memory_bandwidth: Option<f64>,
    /// Bandwidth of the cable to the host [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency of the cable.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
}

fn gpu() -> String {
    "gpu".to_owned()
}

/// A host of a graph.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostDescription {
    /// The name.
    pub name: String,
    /// Speed of one core [flop/s].
    #[serde(deserialize_with = "plain::<_, Speed>")]
    #[schemars(with = "Speed")]
    pub speed: f64,
    /// Number of cores.
    #[serde(default = "one")]
    pub cores: u32,
    /// Bandwidth of the memory, which the cores share [B/s]; by default unlimited.
    #[serde(default, deserialize_with = "plain_if_any::<_, Bandwidth>")]
    #[schemars(with = "Option<Bandwidth>")]
    pub memory_bandwidth: Option<f64>,
}

fn one() -> u32 {
    1
}

/// A link of a graph.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// The name.
    pub name: String,
    /// Capacity [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
    /// Sharing by the flows and directions.
    #[serde(default)]
    pub sharing: CableSharing,
}

/// A route of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteDescription {
    /// Sending host.
    pub src: String,
    /// Receiving host.
    pub dst: String,
    /// Links that a message crosses, in order.
    pub links: Vec<Hop>,
    /// The reverse route crosses the same links in reverse order.
    #[serde(default = "yes")]
    pub symmetrical: bool,
}

fn yes() -> bool {
    true
}

/// One link of a route.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "the name of a link, { up = \"..\" } or { down = \"..\" }"
)]
pub enum Hop {
    /// A link that is not split-duplex.
    Either(String),
    /// A split-duplex link in its upward direction.
    Up {
        /// The link.
        up: String,
    },
    /// A split-duplex link in its downward direction.
    Down {
        /// The link.
        down: String,
    },
}

impl Hop {
    /// Returns the name of the link.
    pub fn link(&self) -> &str {
        match self {
            Self::Either(link) | Self::Up { up: link } | Self::Down { down: link } => link,
        }
    }
}

impl PlatformDescription {
    /// Makes the platform; `origin` is the name of the text in messages.
    pub(crate) fn assemble(mut self, origin: &str) -> Result<Platform, PlatformError> {
        let mut builder = PlatformBuilder::new(origin);
        let storage = std::mem::take(&mut self.storage);
        let file_systems = std::mem::take(&mut self.file_system);
        match &self.topology {
            TopologyDescription::Graph => self.assemble_graph(&mut builder)?,
            TopologyDescription::Cluster(description) => {
                let lists =
                    [("host", self.host.len()), ("link", self.link.len()), ("route", self.route.len())];
                if let Some((field, count)) = lists.into_iter().find(|(_, count)| *count > 0) {
                    let expected = "none: only topology.kind = \"graph\" lists hosts, links and routes";
                    return Err(builder.value_error(None, "the platform", field, count, expected));
                }
                cluster::add(&mut builder, description, None)?;
            }
        }
        storage.into_iter().try_for_each(|device| device.add_to(&mut builder))?;
        file_systems.into_iter().try_for_each(|system| system.add_to(&mut builder))?;
        builder.finish()
    }

    fn assemble_graph(self, builder: &mut PlatformBuilder) -> Result<(), PlatformError> {
        let zone = builder.open_zone("graph", None)?;
        for host in self.host {
            builder.add_host(host, None)?;
        }
        for link in self.link {
            builder.add_link(link, None)?;
        }
        let mut zone_builder = ZoneBuilder::new(zone, RoutingKind::Full);
        for route in &self.route {
            zone_builder.add_route(builder, route, None)?;
        }
        zone_builder.finish(builder, None)
    }
}
