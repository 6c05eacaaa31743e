//! Platforms in TOML.
//!
//! Quantities are strings with the units of SimGrid's files (`"12.5GBps"`, `"100Mbps"`, `"1us"`, `"10Gf"`) or numbers
//! in SI units: B/s, s, flop/s. An unknown field, or one that the topology has no use for, is an error.
//!
//! A platform is a table `topology` and, for a graph only, lists of hosts, links and routes. What all topologies but
//! the graph take:
//!
//! | field | meaning | default |
//! |---|---|---|
//! | `name` | begins the names of links | `"cluster"` |
//! | `prefix` | begins the names of hosts; a number from 0 follows | `"node-"` |
//! | `speed`, `cores` | of each host [flop/s] | required, 1 |
//! | `bandwidth`, `latency` | of each cable, in B/s and seconds | required |
//! | `sharing` | of each cable: `"split_duplex"` or `"shared"` by both directions | `"split_duplex"` |
//! | `loopback` | `{ bandwidth, latency }` of messages that a host sends to itself | none |
//! | `limiter` | what a host, or a switch, carries in all [B/s] | none |
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
//! A fat tree has its levels from the hosts up: how many children a switch has, how many parents on this level a node
//! below has, and how many parallel cables (default 1) lead to each:
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
//! A graph lists everything. A route is symmetrical unless it says otherwise; it crosses a split-duplex link in a
//! direction, which its way back turns round. A host without route to itself has a loopback of 10 GB/s without
//! latency:
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

use super::assembly::Assembly;
use super::draft::{RoutingKind, ZoneDraft};
use super::quantity::{Bandwidth, Speed, Time, plain};
use super::{Platform, cluster};
use crate::topology::dragonfly::DragonflyShape;
use crate::topology::fat_tree::FatTreeLevel;
use crate::{PlatformError, Sharing};

pub(crate) mod fields;

use fields::TopologyFields;

/// A platform as a TOML file describes it; a table of another file can hold one too.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlatformDescription {
    /// What routes messages.
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
}

/// What routes messages between the hosts of a platform.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TopologyFields")]
pub enum TopologyDescription {
    /// Routes that the platform lists.
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
    /// The name that begins the names of links.
    pub name: String,
    /// What begins the names of hosts.
    pub prefix: String,
    /// What ends the names of hosts.
    pub suffix: String,
    /// The numbers in the names of hosts, one per host.
    pub numbers: Vec<u32>,
    /// What one core computes [flop/s].
    pub speed: f64,
    /// The cores of each host.
    pub cores: u32,
    /// The network.
    pub shape: Shape,
    /// The bandwidth of a cable [B/s].
    pub bandwidth: f64,
    /// The latency of a cable in seconds.
    pub latency: f64,
    /// How the flows on a cable share it; not [`CableSharing::FatPipe`].
    pub sharing: CableSharing,
    /// A link that all messages between hosts cross; flat clusters only.
    pub backbone: Option<BackboneDescription>,
    /// The link of each host that its messages to itself cross. Each flow has the whole of it.
    pub loopback: Option<LoopbackDescription>,
    /// What one host or switch carries in both directions together [B/s].
    pub limiter: Option<f64>,
    /// The name of the router in the middle, through which routes between zones lead; flat clusters only. By default
    /// `prefix`, `name`, `"_router"` and `suffix`, one after the other.
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
}

/// How the flows on a link, and its two directions, share it.
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

/// The link of a flat cluster that all messages between its hosts cross.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackboneDescription {
    /// Capacity [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency in seconds.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
    /// How flows share it.
    #[serde(default)]
    pub sharing: Sharing,
}

/// The link of each host of a cluster that its messages to itself cross; each flow has the whole of it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopbackDescription {
    /// Capacity [B/s].
    #[serde(deserialize_with = "plain::<_, Bandwidth>")]
    #[schemars(with = "Bandwidth")]
    pub bandwidth: f64,
    /// Latency in seconds.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
}

/// A host of a graph.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostDescription {
    /// The name.
    pub name: String,
    /// What one core computes [flop/s].
    #[serde(deserialize_with = "plain::<_, Speed>")]
    #[schemars(with = "Speed")]
    pub speed: f64,
    /// The number of cores.
    #[serde(default = "one")]
    pub cores: u32,
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
    /// Latency in seconds.
    #[serde(default, deserialize_with = "plain::<_, Time>")]
    #[schemars(with = "Time")]
    pub latency: f64,
    /// How flows and directions share it.
    #[serde(default)]
    pub sharing: CableSharing,
}

/// A route of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteDescription {
    /// The host that sends.
    pub src: String,
    /// The host that receives.
    pub dst: String,
    /// What a message crosses, in order.
    pub links: Vec<Hop>,
    /// Whether the way back crosses the same links in reverse order.
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
    /// A link that is one link.
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
    pub(crate) fn assemble(self, origin: &str) -> Result<Platform, PlatformError> {
        let mut assembly = Assembly::new(origin);
        match &self.topology {
            TopologyDescription::Graph => self.assemble_graph(&mut assembly)?,
            TopologyDescription::Cluster(description) => {
                let lists =
                    [("host", self.host.len()), ("link", self.link.len()), ("route", self.route.len())];
                if let Some((field, count)) = lists.into_iter().find(|(_, count)| *count > 0) {
                    let expected = "none: only topology.kind = \"graph\" lists hosts, links and routes";
                    return Err(assembly.value_error(None, "the platform", field, count, expected));
                }
                cluster::add(&mut assembly, description, None)?;
            }
        }
        assembly.finish()
    }

    fn assemble_graph(self, assembly: &mut Assembly) -> Result<(), PlatformError> {
        let zone = assembly.open_zone("graph", None)?;
        for host in self.host {
            assembly.add_host(host, None)?;
        }
        for link in self.link {
            assembly.add_link(link, None)?;
        }
        let mut draft = ZoneDraft::new(zone, RoutingKind::Full);
        for route in &self.route {
            draft.add_route(assembly, route, None)?;
        }
        draft.finish(assembly, None)
    }
}
