//! Errors of the model.

use netmodel::{GraphError, RouteError};
use thiserror::Error;

use crate::TablePlace;

/// The reason why the model cannot simulate a platform.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketError {
    /// Links form no graph.
    #[error("model packets: {0}")]
    Graph(#[from] GraphError),
    /// A link has no latency, which is the lookahead.
    #[error(
        "model packets: the link {link:?} has no latency, within which the node behind it is independent: give it some picoseconds or more"
    )]
    NoLatency {
        /// The link.
        link: String,
    },
    /// A route of the platform is no path.
    #[error("model packets: {0}")]
    Route(#[from] RouteError),
    /// A packet carries nothing.
    #[error("packets.packet_bytes is 0, expected the payload of a packet, such as 4096")]
    EmptyPackets,
    /// A header and a payload are too long.
    #[error(
        "packets.packet_bytes and packets.header_bytes are {found} bytes together, expected at most {}",
        u32::MAX
    )]
    LongPackets {
        /// Their sum.
        found: u64,
    },
    /// A pause is no time.
    #[error("packets.flowlet_gap is {found}, expected seconds, 0 or more, such as 10e-6")]
    BadGap {
        /// The number, as text.
        found: String,
    },
    /// No node has a choice.
    #[error(
        "packets.routing = {routing:?} chooses among shortest ways, and this platform has one between any two hosts: set \"minimal\""
    )]
    NoChoice {
        /// The routing.
        routing: String,
    },
    /// The table of outputs would take too much memory.
    #[error(
        "packets.routing = {routing:?} needs a table of {entries} outputs, expected at most {most}: set \"minimal\", which needs none"
    )]
    LargeTable {
        /// The routing.
        routing: String,
        /// Entries that the table would have.
        entries: u64,
        /// Most entries.
        most: u64,
    },
    /// No link has the name of a degraded one.
    #[error(
        "packets.degraded names the link {link:?}, which the platform does not have between two nodes: \"platform show\" with --route \
         lists the links of a route"
    )]
    UnknownLink {
        /// The name.
        link: String,
    },
    /// What is left of a link's bandwidth is no share.
    #[error(
        "packets.degraded has {found} as the rate of the link {link:?}, expected a number from 0, failed, to 1"
    )]
    BadRate {
        /// The link.
        link: String,
        /// The rate, as text.
        found: String,
    },
    /// Two entries are of one link.
    #[error(
        "packets.degraded names the link {link:?} twice, as itself or as a direction of a cable: leave one of the entries out"
    )]
    RepeatedLink {
        /// The link.
        link: String,
    },
    /// Packets on a degraded link take longer than simulated time is meant for.
    #[error(
        "packets.degraded leaves {found} of the bandwidth of the link {link:?}, on which a packet would take over an hour: set 0, failed, or a \
         larger share"
    )]
    SlowLink {
        /// The link.
        link: String,
        /// The rate, as text.
        found: String,
    },
    /// Routes cannot avoid a failed link.
    #[error(
        "the link {link:?} has failed (packets.degraded), and packets.routing = {routing:?} does not avoid it: set \"ecmp\", \"spray\" or \
         \"adaptive\""
    )]
    UnavoidableLink {
        /// The link.
        link: String,
        /// The routing.
        routing: String,
    },
    /// Failed links leave no way.
    #[error("without the failed links of packets.degraded there is no way from {src:?} to {dst:?}")]
    Disconnected {
        /// The host that sends.
        src: String,
        /// The host that receives, or one behind the same switch.
        dst: String,
    },
    /// All cables of a host have failed.
    #[error(
        "packets.degraded cuts off the host {host:?}: {link:?}, and any other link in that direction, has failed: leave one of them out"
    )]
    CutOff {
        /// The host.
        host: String,
        /// The first of its links that have failed.
        link: String,
    },
    /// The routing takes no table.
    #[error(
        "packets.table gives ways to packets, and packets.routing = {routing:?} takes others: set \"ecmp\", \"spray\" or \"adaptive\", or \
         leave the table out"
    )]
    UnusedTable {
        /// The routing.
        routing: String,
    },
    /// The platform has no host or link of a name.
    #[error(
        "{place}: the platform has no host, or no link between two nodes, of the name {name:?}: \"platform show\" with \
         --route lists the links of a route"
    )]
    UnknownInTable {
        /// The entry.
        place: TablePlace,
        /// The name.
        name: String,
    },
    /// Weights and links do not fit.
    #[error(
        "{place}: found {found} weights for {links} links, expected one above 0 for each, or none at all"
    )]
    BadWeights {
        /// The entry.
        place: TablePlace,
        /// Number of weights.
        found: usize,
        /// Number of links.
        links: usize,
    },
    /// The table uses a link that has failed.
    #[error("{place}: the link {link:?} has failed (packets.degraded): leave it out of the table")]
    FailedInTable {
        /// The entry.
        place: TablePlace,
        /// The link.
        link: String,
    },
    /// A file cannot be read.
    #[error("packets.table_file or packets.route_file: {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A line is no entry of a table.
    #[error(
        "{place}: found {found:?}, expected a host, a link and, if it has one, a weight above 0: \"node-5,up-1,3\""
    )]
    BadTableLine {
        /// The line.
        place: TablePlace,
        /// Its words.
        found: String,
    },
    /// A line is no route.
    #[error(
        "{place}: found {found:?}, expected two hosts and the links between them: \"node-0,node-5,up-1,down-2\""
    )]
    BadRouteLine {
        /// The line.
        place: TablePlace,
        /// Its words.
        found: String,
    },
    /// A link of a route does not begin where the one before ends.
    #[error(
        "{place}: the link {link:?} does not begin where the way before it ends, at the host that sends or the link before"
    )]
    GapInRoute {
        /// The line.
        place: TablePlace,
        /// The link.
        link: String,
    },
    /// A route does not end at its destination.
    #[error(
        "{place}: the links are no way from {src:?} to {dst:?}, another host: add the links that are missing"
    )]
    UnfinishedRoute {
        /// The line.
        place: TablePlace,
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
    },
    /// Two routes are of the same hosts.
    #[error("{place}: a line before has a route from {src:?} to {dst:?}: leave one of them out")]
    RepeatedRoute {
        /// The line.
        place: TablePlace,
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
    },
    /// The routing takes no routes.
    #[error(
        "packets.route_file gives routes, which packets.routing = \"minimal\" takes, and {routing:?} does not: set \"minimal\", or \
         packets.table_file"
    )]
    UnusedRoutes {
        /// The routing.
        routing: String,
    },
    /// A way of the table ends before its destination.
    #[error(
        "packets.table: a packet for {to:?} gets no further behind {at:?}, a link or the host that sends: add an entry with a link that begins \
         there"
    )]
    HoleInTable {
        /// The destination.
        to: String,
        /// The link behind which the way ends, or the host where it would begin.
        at: String,
    },
    /// A way of the table comes back.
    #[error(
        "packets.table: packets for {to:?} go in a circle over {links:?}: leave one of these links out of its entries"
    )]
    LoopInTable {
        /// The destination.
        to: String,
        /// The links of the circle.
        links: Vec<String>,
    },
    /// A link has different latencies over time.
    #[error(
        "model packets: the latency of the link {link:?} changes, and packets keep their order on a link: let its bandwidth change, or take \
         network.model = \"flow\""
    )]
    ChangingLatency {
        /// The link.
        link: String,
    },
    /// A switch cannot tell when the last byte of a packet will be there.
    #[error(
        "model packets: the bandwidth of the link {link:?} changes, and with packets.switching = \"cut-through\" a switch sends bytes on \
         before it has all of them: set \"store-and-forward\""
    )]
    ChangingCutThrough {
        /// The link.
        link: String,
    },
    /// Ways change while packets wait for each other.
    #[error(
        "model packets: the link {link:?} is off at some time, and packets.routing = {routing:?} goes around it then: packets that wait for \
         credits on old and new ways could wait for each other in a circle: set packets.queues = \"fifo\" or packets.routing = \"minimal\""
    )]
    ChangingWays {
        /// The link.
        link: String,
        /// The routing.
        routing: String,
    },
    /// Ways change too often.
    #[error(
        "model packets: links such as {link:?} fail and return at more than {most} instants, each of which needs a table of ways: set \
         packets.routing = \"minimal\", with which packets wait for the repair, or let them fail less often"
    )]
    ManyOutages {
        /// One of the links.
        link: String,
        /// Most instants.
        most: usize,
    },
    /// There is no third group.
    #[error(
        "packets.routing = {routing:?} sends packets over a third group or switch, and this platform has none that fits. \"par\" needs a dragonfly. \
         \"ugal-l\" and \"ugal-g\" also take a dragonfly+, HyperX, Slim Fly, PolarFly or Jellyfish. \"valiant\" also takes a torus. Set \"minimal\", \
         or on a torus or a fat tree \"ecmp\", \"spray\" or \"adaptive\""
    )]
    NoGroups {
        /// The routing.
        routing: String,
    },
    /// No switch is above all hosts of a communicator.
    #[error(
        "\"in_network\" needs a switch above all hosts of each communicator, and none is above {first:?} and the {others} other hosts of one \
         over links that work: choose an algorithm of the ranks"
    )]
    NoSwitchAbove {
        /// The first host.
        first: String,
        /// Number of the other ones.
        others: usize,
    },
    /// The nodes of the network are not those of a regular one.
    #[error(
        "packets.routing = {routing:?} goes over a third group or switch of a regular network, and hosts with accelerators are none: leave \
         topology.accelerators out, or set \"minimal\" or \"adaptive\""
    )]
    Accelerators {
        /// The routing.
        routing: String,
    },
    /// Routers of a group are in different regions.
    #[error(
        "packets.routing = \"ugal-g\" needs all routers of a group in one region, and the group {group} is divided: set network.regions to \
         the number of groups or less, or packets.routing = \"ugal-l\""
    )]
    DividedGroup {
        /// The group.
        group: u32,
    },
    /// Switches that know each other's queues are in different regions.
    #[error(
        "packets.routing = \"ugal-g\" compares the queues on whole ways, for which on this platform all switches must be in one region: set \
         network.regions = 1, or packets.routing = \"ugal-l\""
    )]
    DividedSwitches,
    /// The routing compares queues that tell nothing.
    #[error(
        "packets.routing = {routing:?} compares queues, and with packets.queues = \"fifo\" a queue behind the next switch is never felt: set \
         packets.queues = \"credits\""
    )]
    BlindRouting {
        /// The routing.
        routing: String,
    },
    /// Nothing is marked, or no acknowledgements tell of it.
    #[error(
        "packets.congestion = {congestion:?} sets windows or rates by marks of output queues: set packets.queues = \"fifo\" and packets.in_flight = \
         \"loop\", or packets.congestion = \"none\""
    )]
    NoMarks {
        /// The reaction to marks.
        congestion: &'static str,
    },
    /// No acknowledgements tell of marks.
    #[error(
        "packets.routing = \"reps\" learns from acknowledgements which packets met long output queues: set packets.queues = \"fifo\", \
         packets.in_flight = \"loop\" and packets.congestion = \"none\", \"dctcp\" or \"dcqcn\", or packets.routing = \"spray\""
    )]
    NoFeedback,
    /// Nothing bounds what a message sends before its receiver knows of it.
    #[error(
        "packets.congestion = \"receiver-credits\" lets a message send the limit of the loop before credits come: set packets.in_flight = \
         \"loop\", or packets.congestion = \"none\""
    )]
    NoFirstWindow,
    /// A buffer cannot hold a packet.
    #[error(
        "packets.buffer_bytes is {found}, and a packet with its header has {packet} bytes, which a buffer has to hold: set {packet} or more"
    )]
    SmallBuffers {
        /// Bytes of a buffer.
        found: u32,
        /// Bytes of a packet.
        packet: u32,
    },
    /// Buffers could wait for each other in a circle.
    #[error(
        "packets.virtual_channels is {found}, and with {needed} packets cannot wait for each other in a circle under packets.routing = \
         {routing:?} on this platform: set {needed} or more, or leave it out"
    )]
    FewChannels {
        /// The routing.
        routing: String,
        /// Channels that it needs.
        needed: u32,
        /// Channels that there are.
        found: u32,
    },
    /// The configuration has too many virtual channels.
    #[error("packets.virtual_channels is {found}, expected at most {most}: set fewer, or leave it out")]
    BadChannels {
        /// Channels of a link.
        found: u32,
        /// Most channels.
        most: u32,
    },
    /// The routing needs too many virtual channels.
    #[error(
        "packets.routing = {routing:?} needs {found} virtual channels on this platform, expected at most {most}: set packets.queues = \"fifo\", \
         or a routing that needs fewer, such as \"minimal\" in a torus or a fat tree"
    )]
    ManyChannels {
        /// The routing.
        routing: String,
        /// Channels of a link.
        found: u32,
        /// Most channels.
        most: u32,
    },
}
