//! What can be wrong with a platform, and with a route that is asked of it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

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

/// Why a platform description is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlatformError {
    /// The file cannot be read.
    #[error("cannot read the platform {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The text is not well-formed XML.
    #[error("{at}: not well-formed XML: {message}")]
    Xml {
        /// Where.
        at: Location,
        /// What the XML reader said.
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
    /// The root element's version is not one of 4.x.
    #[error("{at}: platform version {found:?}, expected 4, 4.0 or 4.1")]
    Version {
        /// Where.
        at: Location,
        /// The version found.
        found: String,
    },
    /// An element that has no place here.
    #[error("{at}: element <{element}> has no place in <{parent}>")]
    UnknownElement {
        /// Where.
        at: Location,
        /// The element.
        element: String,
        /// The element that holds it.
        parent: String,
    },
    /// An attribute that the element does not have.
    #[error("{at}: <{element}> has no attribute {attribute:?}")]
    UnknownAttribute {
        /// Where.
        at: Location,
        /// The element.
        element: String,
        /// The attribute.
        attribute: String,
    },
    /// An attribute that the element must have.
    #[error("{at}: <{element}> lacks its attribute {attribute:?}")]
    MissingAttribute {
        /// Where.
        at: Location,
        /// The element.
        element: String,
        /// The attribute.
        attribute: &'static str,
    },
    /// A text that is not a quantity with a unit.
    #[error("{at}: {attribute}={found:?} of <{element}> is not a quantity: {reason}")]
    Quantity {
        /// Where.
        at: Location,
        /// The element.
        element: Box<str>,
        /// The attribute.
        attribute: &'static str,
        /// The text found.
        found: Box<str>,
        /// What is wrong with it.
        reason: UnitError,
    },
    /// A value that its attribute or field does not take.
    #[error("{at}: {field} of {owner} is {found:?}, expected {expected}")]
    Value {
        /// Where.
        at: Location,
        /// The host, link, cluster or element.
        owner: String,
        /// The attribute or field.
        field: &'static str,
        /// The value found.
        found: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A feature of SimGrid's platform files that changes timing and that is not implemented.
    #[error("{at}: {feature} is not supported yet")]
    NotSupported {
        /// Where.
        at: Location,
        /// The feature, as the file writes it.
        feature: String,
    },
    /// An option of the simulator in a platform file.
    #[error(
        "{at}: the option {option:?} is not read from a platform: set it in the [network] or [mpi] section of the configuration"
    )]
    Option {
        /// Where.
        at: Location,
        /// The option.
        option: String,
    },
    /// Two hosts, links or zones of one name.
    #[error("{at}: the {kind} {name:?} is declared twice")]
    Duplicate {
        /// Where the second one is.
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
        /// Where.
        at: Location,
        /// Where the route begins.
        src: String,
        /// Where it ends.
        dst: String,
        /// What it should be: a host or router, a zone, or a link, and where it should be.
        kind: &'static str,
        /// The name that is not declared.
        name: String,
    },
    /// A direction is missing on a split-duplex link, or present on a link that has none.
    #[error(
        "{at}: the route from {src:?} to {dst:?} crosses the link {link:?} in the wrong way, expected {expected}"
    )]
    Direction {
        /// Where.
        at: Location,
        /// Where the route begins.
        src: String,
        /// Where it ends.
        dst: String,
        /// The link.
        link: String,
        /// What the link needs.
        expected: &'static str,
    },
    /// A route that is declared twice; a symmetrical one declares both directions.
    #[error(
        "{at}: the route from {src:?} to {dst:?} is declared twice (routes are symmetrical unless they say otherwise)"
    )]
    DuplicateRoute {
        /// Where the second one is.
        at: Location,
        /// Where the route begins.
        src: String,
        /// Where it ends.
        dst: String,
    },
    /// A gateway that is not a host or router inside the zone that it should lead into.
    #[error(
        "{at}: the route from {src:?} to {dst:?} has the gateway {gateway:?}, expected a host or router in the zone {zone:?} that is declared before it (clusters other than FLAT have no router)"
    )]
    Gateway {
        /// Where.
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
    /// An element that the routing of its zone has no use for.
    #[error("{at}: <{element}> in the zone {zone:?} of routing {routing}, expected {expected}")]
    Routing {
        /// Where.
        at: Location,
        /// The element.
        element: &'static str,
        /// The zone.
        zone: String,
        /// Its routing.
        routing: &'static str,
        /// What would fit.
        expected: &'static str,
    },
    /// A route without links.
    #[error("{at}: the route from {src:?} to {dst:?} has no links")]
    EmptyRoute {
        /// Where.
        at: Location,
        /// Where the route begins.
        src: String,
        /// Where it ends.
        dst: String,
    },
    /// A cluster whose number of hosts is not the one that its topology asks for.
    #[error("{at}: the cluster {cluster:?} has {found} hosts, its topology ({topology}) needs {expected}")]
    HostCount {
        /// Where.
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
        /// Where.
        at: Location,
        /// The cluster.
        cluster: String,
        /// The parameters found.
        found: String,
        /// What they must be.
        expected: &'static str,
    },
    /// A platform without hosts.
    #[error("{origin}: the platform has no hosts")]
    NoHosts {
        /// The file.
        origin: Arc<str>,
    },
    /// More hosts or links than this program numbers.
    #[error("{at}: the platform has more than {limit} {kind}")]
    TooLarge {
        /// Where the limit is passed.
        at: Location,
        /// "hosts", "links", or what a zone holds.
        kind: &'static str,
        /// The limit.
        limit: u64,
    },
}

/// Why there is no route between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A zone on the way lists no route, or none of its paths leads there.
    #[error("{0}")]
    Missing(Box<MissingRoute>),
    /// The route between two hosts crosses no link, so that it says nothing about the time of a message.
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
        /// Where the zone is declared.
        zone_at: Location,
    },
    /// A host that sends to itself has no loopback link and no other link to use.
    #[error(
        "the host {host:?} of {zone:?} cannot send to itself: it needs a loopback link for that ({zone_at})"
    )]
    NoLoopback {
        /// The host.
        host: String,
        /// Its zone.
        zone: String,
        /// Where the zone is declared.
        zone_at: Location,
    },
}

/// Two hosts without a route between them, and where on the way it breaks off.
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
    /// Where the zone is declared.
    pub zone_at: Location,
    /// The host, router or zone inside it where the route breaks off.
    pub from: String,
    /// The one that it should lead to.
    pub to: String,
}
