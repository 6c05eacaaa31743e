//! Models of machines for simulators of distributed programs: platforms, routing, and the time that messages and
//! computations take, without and with contention.
//!
//! # Where to start
//! | type | purpose |
//! |---|---|
//! | [`Platform`] | hosts, links and the route between any two hosts, read from SimGrid's XML or from TOML |
//! | [`NetworkParameters`] | latency and bandwidth factors, TCP window, cross traffic; [`Preset`] has SimGrid's sets |
//! | [`ContentionFree`] | transfer time of a message that shares its route with no other |
//! | [`NetworkModel`] | interface of models with contention, whole or in regions: submit work with a tag, advance, get the tag back |
//! | [`FlowNetwork`] | contention: flows share links ([`MaxMin`]) and computations share cores; rates change at every event |
//! | [`EpochNetwork`] | the same with rates that change at epoch boundaries only, one thread |
//! | [`epoch::EpochMachine`] | the same, region by region, for parallel engines |
//! | [`WindowMachine`] | [`FlowNetwork`] region by region, for parallel engines |
//! | [`MaxMin`] | the max-min fair sharing solver alone |
//!
//! ```
//! use netmodel::{ContentionFree, NetworkParameters, Platform, Preset};
//! use pdes_core::Bytes;
//!
//! let text = r#"
//!     [topology]
//!     kind = "torus"
//!     dims = [4, 4, 8]
//!     speed = "10Gf"
//!     bandwidth = "5GBps"
//!     latency = "500ns"
//! "#;
//! let platform = Platform::from_toml(text, "torus.toml")?;
//! let (src, dst) = (platform.host_by_name("node-0").unwrap(), platform.host_by_name("node-6").unwrap());
//!
//! let mut route = Vec::new();
//! platform.route(src, dst, &mut route)?;
//! let names: Vec<&str> = route.iter().map(|&link| platform.link(link).name.as_str()).collect();
//! assert_eq!(
//!     names,
//!     ["cluster_link_from_0_to_1_UP", "cluster_link_from_1_to_2_UP", "cluster_link_from_2_to_6_UP"]
//! );
//!
//! let model = ContentionFree::new(&NetworkParameters::preset(Preset::Raw));
//! let path = model.path_cost(&platform, src, dst)?;
//! assert_eq!(model.duration(path, Bytes::new(5000)).as_picos(), 3 * 500_000 + 1_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # SimGrid's XML
//! The reader accepts the part of SimGrid's platform format (version 4.x) that makes sense for MPI programs, with
//! SimGrid's units, link names, and routes, link by link:
//! - `<zone>` of routing `Full`, `Floyd`, `Dijkstra`, `DijkstraCache`, `Cluster` and `None`, with hosts, routers, links
//!   (`SHARED`, `SPLITDUPLEX`, `FULLDUPLEX`, `FATPIPE`) and routes; a host of the first four without a route to itself
//!   gets the link `__loopback__` (a fat pipe of 1e10 B/s without latency);
//! - in zones of routing `Cluster` the elements `<host_link>`, `<cabinet>` and `<backbone>`;
//! - `<cluster>` of the topologies `FLAT` (with or without backbone), `TORUS`, `FAT_TREE` and `DRAGONFLY`, with limiters
//!   and loopback links; a flat one has a router;
//! - zones in zones, to any depth, joined by `<zoneRoute>` through gateways; `<bypassRoute>` and `<bypassZoneRoute>`.
//!
//! Disks with a property `mount`, and the disks of other hosts that the property `remote_disk` of a host names, are [`storage`].
//! The properties `wattage_per_state`, `wattage_off` and `wattage_range` are [`Power`].
//! The reader ignores other disks, coordinates and properties, because they do not change simulated times, and refuses options
//! of the simulator in `<config>`, because they do. It refuses everything else by name and line: routing `Vivaldi` and
//! `Wifi`, peers, included files and storage. Nothing is skipped silently.
//!
//! Every route that SimGrid 3.32 accepts is the same here. When SimGrid aborts, this crate names the line, or finds the
//! intended route: a Dijkstra zone around zones crosses a zone from one gateway to another, and ignores hosts that the
//! source cannot reach.
//!
//! # TOML
//! [`description`] documents a shorter format for the same platforms.
//!
//! # Determinism
//! Routes and costs depend on the platform and the parameters only. Costs are computed by additions, multiplications,
//! divisions and comparisons of doubles in a fixed order and rounded once, to picoseconds.
#![forbid(unsafe_code)]

mod change;
pub mod contention_free;
pub mod epoch;
mod error;
mod factor;
pub mod flow;
mod graph;
mod host_load;
mod identifier;
mod layout;
mod link_load;
pub mod maxmin;
pub mod measures;
mod network_model;
mod observer;
mod parameters;
mod platform;
mod power;
mod profile;
pub mod region;
mod resource;
mod route_cost;
pub mod storage;
mod topology;
mod uncontended_network;
mod unit;
mod xml;

pub use change::{ChangeError, Resource, ResourceChange, ResourceChanges};
pub use contention_free::{ContentionFree, PathCost, UncontendedRoute};
pub use epoch::EpochNetwork;
pub use error::{Location, MissingRoute, NoStorage, PlatformError, RouteError};
pub use factor::{FactorError, FactorTable};
pub use flow::FlowNetwork;
pub use flow::windows::{WindowMachine, WindowMessage, WindowRegion};
pub use graph::{Channel, GraphError, NetworkGraph, NodeId};
pub use host_load::{HostLoad, HostLoads, HostTotals};
pub use identifier::{DeviceId, FileSystemId, HostId, LinkId};
pub use layout::{CableEnds, Layout, NetworkLevel, NetworkShape};
pub use link_load::recorder::LoadRecorder;
pub use link_load::{LinkLoad, LinkLoads, LinkTotals};
pub use maxmin::{MaxMin, Usage};
pub use network_model::{Capabilities, Message, NetworkModel, SwitchOperation, SwitchOperationKind};
pub use observer::{NetworkObserver, ObservedLink};
pub use parameters::{FatPipes, MessageRouting, NetworkParameters, Preset};
pub use pdes_core::ForeignState;
pub use platform::Platform;
pub use platform::description::{self, PlatformDescription};
pub use platform::link_class::LinkClass;
pub use platform::quantity;
pub use power::{HostPower, LinkPower, Power};
pub use profile::{
    Profile, ProfileError, ProfileFileError, ProfileSpec, ProfiledQuantity, matches as name_matches,
};
pub use region::{RegionError, RegionId, Regions};
pub use resource::{Host, Link, Sharing};
pub use storage::{
    Access, AccessHistory, Device, Devices, Direction, FileOperation, FileRequest, FileServers, Storage,
    StoragePlace, Striping,
};
pub use topology::RoutingRule;
pub use topology::dragonfly::DragonflyShape;
pub use topology::fat_tree::FatTreeLevel;
pub use topology::switches::SwitchShape;
pub use uncontended_network::{ArrivalMessage, UncontendedNetwork};
pub use unit::UnitError;
