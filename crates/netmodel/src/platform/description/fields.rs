//! Fields of a topology in TOML, before they are checked against its kind.

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use super::{
    AcceleratorsDescription, BackboneDescription, CableSharing, ClusterDescription, LoopbackDescription,
    Shape, TopologyDescription,
};
use crate::platform::builder::HOST_LIMIT;
use crate::platform::quantity::{Bandwidth, Speed, Time};
use crate::topology::checked_product;
use crate::topology::dragonfly::DragonflyShape;
use crate::topology::fat_tree::FatTreeLevel;
use crate::topology::switches::SwitchShape;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Listed hosts, links and routes.
    Graph,
    /// `hosts` on one switch, or on a backbone.
    Cluster,
    /// A torus with the sizes `dims`.
    Torus,
    /// A fat tree with `levels`.
    FatTree,
    /// A dragonfly of `groups` of `chassis` of `blades` of `nodes`.
    Dragonfly,
    /// A HyperX with the sizes `dims`.
    #[serde(rename = "hyperx")]
    HyperX,
    /// A Slim Fly of an `order`.
    SlimFly,
    /// A PolarFly of an `order`.
    #[serde(rename = "polarfly")]
    PolarFly,
    /// `switches` that are joined at random.
    Jellyfish,
    /// A dragonfly+ of `groups` of `leaves` and `spines`.
    DragonflyPlus,
    /// A rail-optimised fabric of `units` of `servers` of `rails`.
    RailOptimized,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Cluster => "cluster",
            Self::Torus => "torus",
            Self::FatTree => "fat_tree",
            Self::Dragonfly => "dragonfly",
            Self::HyperX => "hyperx",
            Self::SlimFly => "slim_fly",
            Self::PolarFly => "polarfly",
            Self::Jellyfish => "jellyfish",
            Self::DragonflyPlus => "dragonfly_plus",
            Self::RailOptimized => "rail_optimized",
        }
    }
}

/// Error in the combination of fields of a topology.
#[derive(Debug, Error)]
pub(crate) enum FieldError {
    #[error("a topology of kind {kind:?} lacks the field {field:?}")]
    Missing { kind: &'static str, field: &'static str },
    #[error("a topology of kind {kind:?} has no field {field:?}")]
    Inapplicable { kind: &'static str, field: &'static str },
    #[error("the topology has more than {limit} hosts")]
    TooLarge { limit: u64 },
}

/// All fields that a topology can have. One flat list instead of one per kind, so that the TOML reader points at the
/// line of a bad value.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TopologyFields {
    /// Kind of network, which determines the other fields.
    kind: Kind,
    /// Prefix of the names of links.
    #[schemars(extend("default" = "cluster"))]
    name: Option<String>,
    /// Prefix of the names of hosts; a number from 0 follows.
    #[schemars(extend("default" = "node-"))]
    prefix: Option<String>,
    /// Number of hosts; of a `cluster`.
    hosts: Option<u32>,
    /// Sizes of the dimensions, the first varying fastest; of a `torus`, and, of switches, of a `hyperx`.
    dims: Option<Vec<u32>>,
    /// Levels from the hosts up; of a `fat_tree`.
    levels: Option<Vec<FatTreeLevel>>,
    /// Number of groups; of a `dragonfly` or `dragonfly_plus`.
    groups: Option<u32>,
    /// Chassis in a group; of a `dragonfly`.
    chassis: Option<u32>,
    /// Blades, each with a router, in a chassis; of a `dragonfly`.
    blades: Option<u32>,
    /// Hosts on a blade of a `dragonfly`, a leaf of a `dragonfly_plus`, or a switch of a `hyperx`, `slim_fly`, `polarfly` or `jellyfish`.
    nodes: Option<u32>,
    /// Order of the finite field, a power of a prime; of a `slim_fly` or `polarfly`.
    order: Option<u32>,
    /// Number of switches; of a `jellyfish`.
    switches: Option<u32>,
    /// Number of switches with which each is joined; of a `jellyfish`.
    degree: Option<u32>,
    /// Seed of the random choice of cables; of a `jellyfish`.
    #[schemars(extend("default" = 1))]
    seed: Option<u64>,
    /// Lower switches of a group; of a `dragonfly_plus`.
    leaves: Option<u32>,
    /// Upper switches of a group of a `dragonfly_plus`, or of a `rail_optimized` fabric.
    spines: Option<u32>,
    /// Parallel cables between two switches of a `hyperx`, two groups of a `dragonfly_plus`, or a leaf and a spine of a `rail_optimized`
    /// fabric.
    #[schemars(extend("default" = 1))]
    cables: Option<u32>,
    /// Number of units of servers with leaves of their own; of a `rail_optimized` fabric.
    units: Option<u32>,
    /// Servers of a unit; of a `rail_optimized` fabric.
    servers: Option<u32>,
    /// Hosts of a server, each on a leaf of its own; of a `rail_optimized` fabric.
    rails: Option<u32>,
    /// Bandwidth of the cables inside a server, in multiples of `bandwidth`; of a `rail_optimized` fabric.
    #[schemars(extend("default" = 1))]
    local: Option<u32>,
    /// Bandwidth of the cables between groups, in multiples of `bandwidth`; of a `dragonfly`.
    #[schemars(extend("default" = 1))]
    blue: Option<u32>,
    /// Bandwidth of the cables between the chassis of a group, in multiples of `bandwidth`; of a `dragonfly`.
    #[schemars(extend("default" = 1))]
    black: Option<u32>,
    /// Bandwidth of the cables inside a chassis, in multiples of `bandwidth`; of a `dragonfly`.
    #[schemars(extend("default" = 1))]
    green: Option<u32>,
    /// Speed of one core of a host.
    speed: Option<Speed>,
    /// Number of cores of each host.
    #[schemars(extend("default" = 1))]
    cores: Option<u32>,
    /// Bandwidth of the memory of each host, which its cores share; by default unlimited.
    memory_bandwidth: Option<Bandwidth>,
    /// Bandwidth of a cable.
    bandwidth: Option<Bandwidth>,
    /// Latency of a cable.
    latency: Option<Time>,
    /// Sharing of a cable by its two directions; not `fat_pipe`.
    #[schemars(extend("default" = "split_duplex"))]
    sharing: Option<CableSharing>,
    /// Link that all messages between hosts cross; of a `cluster`.
    backbone: Option<BackboneDescription>,
    /// Link of each host for its messages to itself.
    loopback: Option<LoopbackDescription>,
    /// Total traffic of one host or switch, in both directions together.
    limiter: Option<Bandwidth>,
    /// Accelerators of each host: `count`, `name` (`"gpu"`), `speed`, `cores` (streams, 1), `memory_bandwidth` (unlimited), and `bandwidth` and
    /// `latency` (0) of the cable to the host.
    accelerators: Option<AcceleratorsDescription>,
}

impl TryFrom<TopologyFields> for TopologyDescription {
    type Error = FieldError;

    fn try_from(fields: TopologyFields) -> Result<Self, FieldError> {
        if let Some(field) = fields.inapplicable() {
            return Err(FieldError::Inapplicable { kind: fields.kind.name(), field });
        }
        match fields.kind {
            Kind::Graph => Ok(Self::Graph),
            _ => fields.cluster().map(|cluster| Self::Cluster(Box::new(cluster))),
        }
    }
}

impl TopologyFields {
    /// Returns a field that is present but has no meaning in this kind of topology.
    fn inapplicable(&self) -> Option<&'static str> {
        let cluster = self.kind != Kind::Graph;
        let flat = self.kind == Kind::Cluster;
        let dragonfly = self.kind == Kind::Dragonfly;
        let is = |kinds: &[Kind]| kinds.contains(&self.kind);
        let algebraic = is(&[Kind::SlimFly, Kind::PolarFly]);
        let jellyfish = self.kind == Kind::Jellyfish;
        let dragonfly_plus = self.kind == Kind::DragonflyPlus;
        let rails = self.kind == Kind::RailOptimized;
        let hyperx = self.kind == Kind::HyperX;
        let fields = [
            ("name", self.name.is_some(), cluster),
            ("prefix", self.prefix.is_some(), cluster),
            ("hosts", self.hosts.is_some(), flat),
            ("dims", self.dims.is_some(), is(&[Kind::Torus, Kind::HyperX])),
            ("levels", self.levels.is_some(), self.kind == Kind::FatTree),
            ("groups", self.groups.is_some(), dragonfly || dragonfly_plus),
            ("chassis", self.chassis.is_some(), dragonfly),
            ("blades", self.blades.is_some(), dragonfly),
            ("nodes", self.nodes.is_some(), dragonfly || dragonfly_plus || hyperx || algebraic || jellyfish),
            ("order", self.order.is_some(), algebraic),
            ("switches", self.switches.is_some(), jellyfish),
            ("degree", self.degree.is_some(), jellyfish),
            ("seed", self.seed.is_some(), jellyfish),
            ("leaves", self.leaves.is_some(), dragonfly_plus),
            ("spines", self.spines.is_some(), dragonfly_plus || rails),
            ("cables", self.cables.is_some(), dragonfly_plus || rails || hyperx),
            ("units", self.units.is_some(), rails),
            ("servers", self.servers.is_some(), rails),
            ("rails", self.rails.is_some(), rails),
            ("local", self.local.is_some(), rails),
            ("blue", self.blue.is_some(), dragonfly),
            ("black", self.black.is_some(), dragonfly),
            ("green", self.green.is_some(), dragonfly),
            ("speed", self.speed.is_some(), cluster),
            ("cores", self.cores.is_some(), cluster),
            ("memory_bandwidth", self.memory_bandwidth.is_some(), cluster),
            ("bandwidth", self.bandwidth.is_some(), cluster),
            ("latency", self.latency.is_some(), cluster),
            ("sharing", self.sharing.is_some(), cluster),
            ("backbone", self.backbone.is_some(), flat),
            ("loopback", self.loopback.is_some(), cluster),
            ("limiter", self.limiter.is_some(), cluster),
            ("accelerators", self.accelerators.is_some(), cluster),
        ];
        fields.into_iter().find(|&(_, present, useful)| present && !useful).map(|(field, ..)| field)
    }

    fn required<T>(&self, field: &'static str, value: Option<T>) -> Result<T, FieldError> {
        value.ok_or(FieldError::Missing { kind: self.kind.name(), field })
    }

    fn cluster(mut self) -> Result<ClusterDescription, FieldError> {
        let (shape, hosts) = self.shape()?;
        let hosts = hosts.filter(|&hosts| hosts <= HOST_LIMIT);
        let hosts = hosts.ok_or(FieldError::TooLarge { limit: HOST_LIMIT })?;
        Ok(ClusterDescription {
            name: self.name.take().unwrap_or_else(|| "cluster".to_owned()),
            prefix: self.prefix.take().unwrap_or_else(|| "node-".to_owned()),
            suffix: String::new(),
            numbers: (0..hosts as u32).collect(),
            speed: self.required("speed", self.speed)?.0,
            cores: self.cores.unwrap_or(1),
            memory_bandwidth: self.memory_bandwidth.map(|bandwidth| bandwidth.0),
            shape,
            bandwidth: self.required("bandwidth", self.bandwidth)?.0,
            latency: self.required("latency", self.latency)?.0,
            sharing: self.sharing.unwrap_or(CableSharing::SplitDuplex),
            backbone: self.backbone,
            loopback: self.loopback,
            limiter: self.limiter.map(|limiter| limiter.0),
            accelerators: self.accelerators,
            router: None,
        })
    }

    /// Returns the network and its number of hosts, the latter `None` if it exceeds 64 bits.
    fn shape(&self) -> Result<(Shape, Option<u64>), FieldError> {
        let nodes = || self.required("nodes", self.nodes);
        let order = || self.required("order", self.order);
        let spines = || self.required("spines", self.spines);
        let cables = self.cables.unwrap_or(1);
        let switches = |shape: SwitchShape| {
            let hosts = shape.hosts();
            Ok((Shape::Switches(shape), hosts))
        };
        match self.kind {
            Kind::Graph | Kind::Cluster => {
                Ok((Shape::Flat, Some(self.required("hosts", self.hosts)?.into())))
            }
            Kind::Torus => {
                let dims = self.required("dims", self.dims.clone())?;
                let hosts = checked_product(dims.iter().copied());
                Ok((Shape::Torus(dims), hosts))
            }
            Kind::FatTree => {
                let levels = self.required("levels", self.levels.clone())?;
                let hosts = checked_product(levels.iter().map(|level| level.children));
                Ok((Shape::FatTree(levels), hosts))
            }
            Kind::Dragonfly => {
                let shape = self.dragonfly()?;
                let hosts = checked_product([shape.groups, shape.chassis, shape.blades, shape.nodes]);
                Ok((Shape::Dragonfly(shape), hosts))
            }
            Kind::HyperX => switches(SwitchShape::HyperX {
                dims: self.required("dims", self.dims.clone())?,
                cables,
                nodes: nodes()?,
            }),
            Kind::SlimFly => switches(SwitchShape::SlimFly { order: order()?, nodes: nodes()? }),
            Kind::PolarFly => switches(SwitchShape::PolarFly { order: order()?, nodes: nodes()? }),
            Kind::Jellyfish => switches(SwitchShape::Jellyfish {
                switches: self.required("switches", self.switches)?,
                degree: self.required("degree", self.degree)?,
                nodes: nodes()?,
                seed: self.seed.unwrap_or(1),
            }),
            Kind::DragonflyPlus => switches(SwitchShape::DragonflyPlus {
                groups: self.required("groups", self.groups)?,
                leaves: self.required("leaves", self.leaves)?,
                spines: spines()?,
                cables,
                nodes: nodes()?,
            }),
            Kind::RailOptimized => switches(SwitchShape::RailOptimized {
                units: self.required("units", self.units)?,
                servers: self.required("servers", self.servers)?,
                rails: self.required("rails", self.rails)?,
                spines: spines()?,
                cables,
                local: self.local.unwrap_or(1),
            }),
        }
    }

    fn dragonfly(&self) -> Result<DragonflyShape, FieldError> {
        Ok(DragonflyShape {
            groups: self.required("groups", self.groups)?,
            blue: self.blue.unwrap_or(1),
            chassis: self.required("chassis", self.chassis)?,
            black: self.black.unwrap_or(1),
            blades: self.required("blades", self.blades)?,
            green: self.green.unwrap_or(1),
            nodes: self.required("nodes", self.nodes)?,
        })
    }
}
