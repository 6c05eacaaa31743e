//! Errors in platform descriptions, and of route lookups.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::profile::ProfileFileError;
use crate::unit::UnitError;

/// A place in a platform description: the file, and the line where it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, or another name of the text.
    pub origin: Arc<str>,
    /// The line, counted from one; `None` for a description that was not read from lines.
    pub line: Option<u32>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.origin),
            None => f.write_str(&self.origin),
        }
    }
}

/// Error in a platform description.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlatformError {
    /// The file cannot be read.
    #[error("cannot read the platform {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The text is not well-formed XML.
    #[error("{at}: not well-formed XML: {message}")]
    Xml {
        /// Position.
        at: Location,
        /// Message of the XML reader.
        message: String,
    },
    /// The text is not TOML, or not a platform in TOML.
    #[error("{origin}: {message}")]
    Toml {
        /// The file.
        origin: String,
        /// The position, the offending lines, what was found and what was expected.
        message: String,
    },
    /// A storage device is not valid.
    #[error("{at}: {message}")]
    Storage {
        /// Position.
        at: Location,
        /// The device, what was found and what was expected.
        message: String,
    },
    /// The root element's version is not one of 4.x.
    #[error("{at}: platform version {found:?}, expected 4, 4.0 or 4.1{}", update_hint(found))]
    Version {
        /// Position.
        at: Location,
        /// The version found.
        found: String,
    },
    /// An element that is not allowed at this place.
    #[error("{at}: element <{element}> is not allowed in <{parent}>")]
    UnknownElement {
        /// Position.
        at: Location,
        /// The element.
        element: String,
        /// The element that holds it.
        parent: String,
    },
    /// An attribute that the element does not have.
    #[error("{at}: <{element}> has no attribute {attribute:?}")]
    UnknownAttribute {
        /// Position.
        at: Location,
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
    },
    /// An attribute that the element must have.
    #[error("{at}: <{element}> lacks its attribute {attribute:?}")]
    MissingAttribute {
        /// Position.
        at: Location,
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// A text that is not a quantity with a unit.
    #[error("{at}: {attribute}={found:?} of <{element}> is not a quantity: {reason}")]
    Quantity {
        /// Position.
        at: Location,
        /// The element.
        element: Box<str>,
        /// The attribute.
        attribute: &'static str,
        /// The text found.
        found: Box<str>,
        /// Error in the text.
        reason: UnitError,
    },
    /// A value that its attribute or field does not accept.
    #[error("{at}: {field} of {owner} is {found:?}, expected {expected}")]
    Value {
        /// Position.
        at: Location,
        /// The host, link, cluster or element.
        owner: String,
        /// The attribute or field.
        field: &'static str,
        /// The value found.
        found: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// A feature of SimGrid's platform files that changes timing and that is not implemented.
    #[error("{at}: {feature} is not supported yet")]
    NotSupported {
        /// Position.
        at: Location,
        /// The feature, as the file writes it.
        feature: String,
    },
    /// A profile of a host or a link is wrong.
    #[error("{at}: {attribute}: {source}")]
    Profile {
        /// Position.
        at: Location,
        /// The attribute that names the file.
        attribute: &'static str,
        /// Cause.
        source: ProfileFileError,
    },
    /// An option of the simulator in a platform file.
    #[error("{at}: the option {option:?} is not read from a platform: {}", describe_counterpart(option))]
    Option {
        /// Position.
        at: Location,
        /// The option.
        option: String,
    },
    /// Two hosts, links or zones of one name.
    #[error("{at}: the {kind} {name:?} is declared twice")]
    Duplicate {
        /// Position of the second one.
        at: Location,
        /// "host", "link", "zone", "router", "backbone" or "cable of the host".
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A route that begins, passes or ends at something that is not declared before it in its zone.
    #[error(
        "{at}: the route from {src:?} to {dst:?} names {name:?}, which is no {kind} that is declared before it"
    )]
    UnknownInRoute {
        /// Position.
        at: Location,
        /// Begin of the route.
        src: String,
        /// End of the route.
        dst: String,
        /// Expected kind: a host or router, a zone, or a link, and its place.
        kind: &'static str,
        /// The name that is not declared.
        name: String,
    },
    /// A direction is missing on a split-duplex link, or present on a link that has none.
    #[error(
        "{at}: the route from {src:?} to {dst:?} crosses the link {link:?} in the wrong direction, expected {expected}"
    )]
    Direction {
        /// Position.
        at: Location,
        /// Begin of the route.
        src: String,
        /// End of the route.
        dst: String,
        /// The link.
        link: String,
        /// Expected direction.
        expected: &'static str,
    },
    /// A route that is declared twice; a symmetrical one declares both directions.
    #[error(
        "{at}: the route from {src:?} to {dst:?} is declared twice (routes are symmetrical unless they say otherwise)"
    )]
    DuplicateRoute {
        /// Position of the second one.
        at: Location,
        /// Begin of the route.
        src: String,
        /// End of the route.
        dst: String,
    },
    /// A gateway that is not a host or router inside the zone to which it should lead.
    #[error(
        "{at}: the route from {src:?} to {dst:?} has the gateway {gateway:?}, expected a host or router in the zone {zone:?} that is declared before it (clusters other than FLAT have no router)"
    )]
    Gateway {
        /// Position.
        at: Location,
        /// The zone that the route begins in.
        src: String,
        /// The zone that it ends in.
        dst: String,
        /// The gateway found.
        gateway: String,
        /// The zone that it should be in.
        zone: String,
    },
    /// An element that the routing of its zone cannot use.
    #[error("{at}: <{element}> in the zone {zone:?} of routing {routing}, expected {expected}")]
    Routing {
        /// Position.
        at: Location,
        /// The element.
        element: &'static str,
        /// The zone.
        zone: String,
        /// Its routing.
        routing: &'static str,
        /// Expected elements or routing.
        expected: &'static str,
    },
    /// A route without links.
    #[error("{at}: the route from {src:?} to {dst:?} has no links")]
    EmptyRoute {
        /// Position.
        at: Location,
        /// Begin of the route.
        src: String,
        /// End of the route.
        dst: String,
    },
    /// A cluster whose number of hosts is not that of its topology.
    #[error("{at}: the cluster {cluster:?} has {found} hosts, its topology ({topology}) needs {expected}")]
    HostCount {
        /// Position.
        at: Location,
        /// The cluster.
        cluster: String,
        /// The topology.
        topology: String,
        /// The number of hosts declared.
        found: u64,
        /// The number of places in the topology.
        expected: u64,
    },
    /// Topology parameters that describe no network.
    #[error("{at}: the topology of the cluster {cluster:?} is {found:?}, expected {expected}")]
    Topology {
        /// Position.
        at: Location,
        /// The cluster.
        cluster: String,
        /// The parameters found.
        found: String,
        /// Expected parameters.
        expected: &'static str,
    },
    /// A platform without hosts.
    #[error("{origin}: the platform has no hosts")]
    NoHosts {
        /// The file.
        origin: Arc<str>,
    },
    /// More hosts or links than the program can number.
    #[error("{at}: the platform has more than {limit} {kind}")]
    TooLarge {
        /// Position at which the limit is exceeded.
        at: Location,
        /// "hosts", "links", or the contents of a zone.
        kind: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Returns what to do about an old version.
fn update_hint(version: &str) -> &'static str {
    match version.trim().parse::<f64>() {
        Ok(version) if version < 4.0 => {
            "; SimGrid's program simgrid_update_xml converts older files: simgrid_update_xml FILE"
        }
        _ => "",
    }
}

/// Options of SimGrid, and the keys of the configuration that take their place.
const COUNTERPARTS: [(&str, &str); 23] = [
    ("network/model", "network.preset or network.model"),
    ("network/latency-factor", "network.latency_factor"),
    ("network/bandwidth-factor", "network.bandwidth_factor"),
    ("network/weight-S", "network.weight_s"),
    ("network/TCP-gamma", "network.tcp_gamma"),
    ("network/crosstraffic", "network.cross_traffic"),
    ("network/loopback-bw", "network.loopback_bandwidth"),
    ("network/loopback-lat", "network.loopback_latency_s"),
    ("network/optim", "network.solve_scope"),
    ("network/maxmin-selective-update", "network.solve_scope"),
    ("surf/precision", "network.precision_s"),
    ("precision/timing", "network.precision_s"),
    ("smpi/lat-factor", "network.latency_factor"),
    ("smpi/bw-factor", "network.bandwidth_factor"),
    ("smpi/coll-selector", "mpi.collectives"),
    ("smpi/async-small-thresh", "mpi.eager_below_bytes"),
    ("smpi/send-is-detached-thresh", "mpi.detached_below_bytes"),
    ("smpi/os", "mpi.send_overhead"),
    ("smpi/ois", "mpi.isend_overhead"),
    ("smpi/or", "mpi.receive_overhead"),
    ("smpi/test", "mpi.test_s"),
    ("smpi/iprobe", "mpi.iprobe_s"),
    ("smpi/grow-injected-times", "mpi.test_grows"),
];

/// Collective operations of which SimGrid and the configuration choose the algorithm by name.
const COLLECTIVES: [&str; 11] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "barrier",
    "bcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
];

/// Returns what takes the place of an option of SimGrid.
fn describe_counterpart(option: &str) -> String {
    let known = COUNTERPARTS.iter().find(|(name, _)| *name == option).map(|(_, key)| (*key).to_owned());
    let algorithm = || {
        let operation = option.strip_prefix("smpi/").map(|name| name.replace('-', "_"))?;
        COLLECTIVES.contains(&operation.as_str()).then(|| format!("mpi.{operation}"))
    };
    match known.or_else(algorithm) {
        Some(key) => format!("set {key} in the configuration"),
        None => "it has no counterpart in the configuration; remove it if the platform may do without it"
            .to_owned(),
    }
}

/// Error of a route lookup.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A zone along the route lists no route, or none of its paths leads there.
    #[error("{0}")]
    Missing(Box<MissingRoute>),
    /// The route between two hosts crosses no link, so that it determines no transfer time.
    #[error(
        "the route from {src:?} to {dst:?} crosses no link: tie the hosts of the zone {zone:?} to links ({zone_at})"
    )]
    Empty {
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
        /// The zone of the one that sends.
        zone: String,
        /// Position of the declaration of the zone.
        zone_at: Location,
    },
    /// A host sees no device with a file.
    #[error(transparent)]
    NoStorage(Box<NoStorage>),
    /// A host that sends to itself has no loopback link and no other link to use.
    #[error(
        "the host {host:?} of {zone:?} cannot send to itself: it needs a loopback link for that ({zone_at})"
    )]
    NoLoopback {
        /// The host.
        host: String,
        /// Its zone.
        zone: String,
        /// Position of the declaration of the zone.
        zone_at: Location,
    },
    /// The route between two hosts is no path, which a model of packets needs.
    #[error(
        "on the route from {src:?} to {dst:?} the link {link:?} does not begin where the one before ends, as on SimGrid's routes in some \
         dragonflies: set platform.routing = \"textbook\""
    )]
    Broken {
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
        /// The link.
        link: String,
    },
}

/// A host sees no device with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the host {host:?} has no storage for the file {file:?}: it sees {}", seen(directories))]
pub struct NoStorage {
    /// The host.
    pub host: String,
    /// The file.
    pub file: String,
    /// The directories that the host sees.
    pub directories: Vec<String>,
}

fn seen(directories: &[String]) -> String {
    if directories.is_empty() { "no directory".to_owned() } else { directories.join(", ") }
}

/// Two hosts without a route between them, and the place where it breaks off.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{zone_at}: no route from {src:?} to {dst:?}: the zone {zone:?} declares none from {from:?} to {to:?}"
)]
pub struct MissingRoute {
    /// The host that sends.
    pub src: String,
    /// The host that receives.
    pub dst: String,
    /// The zone that has no route.
    pub zone: String,
    /// Position of the declaration of the zone.
    pub zone_at: Location,
    /// The host, router or zone inside it where the route breaks off.
    pub from: String,
    /// The one that it should lead to.
    pub to: String,
}
