//! Parameters of the model.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the model `packets`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-page" = "packets.md"))]
pub struct PacketParameters {
    /// Where packets wait.
    pub queues: Queues,
    /// With `credits`: buffer of each virtual channel at each input.
    #[schemars(extend("x-unit" = "B"))]
    pub buffer_bytes: u32,
    /// With `credits`: virtual channels of a link.
    #[schemars(extend("x-default" = "as many as the routing needs"))]
    pub virtual_channels: Option<u32>,
    /// With `credits`: which of the packets that wait for an output goes first.
    pub arbitration: Arbitration,
    /// With `credits`: how many packets leave a buffer at once.
    pub crossbar: Crossbar,
    /// Payload of a packet; the last one of a message has what is left.
    #[schemars(extend("x-unit" = "B"))]
    pub packet_bytes: u32,
    /// Header of each packet, beside its payload.
    #[schemars(extend("x-unit" = "B"))]
    pub header_bytes: u32,
    /// When a switch sends a packet on.
    pub switching: Switching,
    /// How a packet finds its way.
    pub routing: PacketRouting,
    /// With `flowlets`: longest pause between two packets of a flowlet at a node.
    #[schemars(extend("x-unit" = "s"))]
    pub flowlet_gap: f64,
    /// How much of a message may be on its way.
    #[schemars(extend("x-default" = "`loop` with `fifo`, `unlimited` with `credits`"))]
    pub in_flight: Option<InFlight>,
    /// Reaction of a message when queues grow.
    pub congestion: Congestion,
    /// With `dctcp`, `dcqcn` and `reps`: a packet that finds more than this before an output is marked.
    #[schemars(extend("x-unit" = "B"))]
    pub mark_bytes: u32,
    /// Seed of the hashes by which packets choose their ways.
    pub seed: u64,
    /// Links that have failed or are slow from the start.
    pub degraded: Vec<DegradedLink>,
    /// Shares in which `ecmp`, `spray` and `reps` choose among outputs.
    pub weights: Weights,
    /// Ways of `ecmp`, `spray` and `adaptive` to some hosts, in place of all shortest ones.
    pub table: Vec<TableEntry>,
    /// File with lines of that table: host, link, weight.
    #[schemars(extend("x-default" = "none"))]
    pub table_file: Option<PathBuf>,
    /// File with lines of routes of `minimal`: two hosts, and the links between.
    #[schemars(extend("x-default" = "none"))]
    pub route_file: Option<PathBuf>,
}

impl Default for PacketParameters {
    fn default() -> Self {
        Self {
            queues: Queues::Fifo,
            buffer_bytes: 131_072,
            virtual_channels: None,
            arbitration: Arbitration::RoundRobin,
            crossbar: Crossbar::Ideal,
            packet_bytes: 4096,
            header_bytes: 0,
            switching: Switching::StoreAndForward,
            routing: PacketRouting::Minimal,
            flowlet_gap: 10e-6,
            in_flight: None,
            congestion: Congestion::None,
            mark_bytes: 65_536,
            seed: 1,
            degraded: Vec::new(),
            weights: Weights::Equal,
            table: Vec::new(),
            table_file: None,
            route_file: None,
        }
    }
}

/// Reaction of a message when queues grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Nothing.
    None,
    /// Its window, at first and at most that of the loop, shrinks by half the share of its packets that are marked, as an average, or grows
    /// by a packet, once per window (Alizadeh et al., "Data Center TCP (DCTCP)", 2010).
    Dctcp,
    /// Its rate, at first that of its port, is cut when a mark comes back, at most once in 50 us, by half an estimate of the congestion, which
    /// notifications raise and 55 us without one lower. Every 55 us and 10 MB it rises halfway to the rate before the cut, after five such
    /// steps beyond it by a thousandth of the port's; the limit of the loop stays (Zhu et al., "Congestion Control for Large-Scale RDMA
    /// Deployments", 2015).
    Dcqcn,
    /// Packets beyond the limit of the loop wait for credits of the receiver, which hands them out in turn among its messages, as many as
    /// its links can carry (as RCCC of Ultra Ethernet, 2025).
    ReceiverCredits,
}

impl Congestion {
    /// Returns the name in configurations.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dctcp => "dctcp",
            Self::Dcqcn => "dcqcn",
            Self::ReceiverCredits => "receiver-credits",
        }
    }
}

/// A link that has failed or is slow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DegradedLink {
    /// Name of the link, or of a cable, whose directions are two links.
    pub link: String,
    /// Share of its bandwidth that is left, from 0, failed, to 1.
    pub rate: f64,
}

/// Links on the way to a host. The nodes where they begin send packets for that host to them, each node to one of its links. Cables of hosts
/// that have one need no entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// Name of the host.
    pub to: String,
    /// Names of the links.
    pub links: Vec<String>,
    /// Weight of each link, above 0, with which `ecmp`, `spray` and `reps` choose it.
    #[serde(default)]
    #[schemars(extend("x-default" = "all alike"))]
    pub weights: Vec<f64>,
}

/// Shares in which packets choose among outputs on shortest ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All outputs alike, as switches do that do not know what lies beyond.
    Equal,
    /// By what each output can carry toward the destination, through all links on shortest ways.
    Capacity,
}

/// Queues of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// At each output, first come first served, without a limit: nothing is dropped.
    Fifo,
    /// At each input, in buffers of virtual channels. A packet is sent when the buffer at the other end has room for it, which credits
    /// tell that come back (Dally and Towles, "Principles and Practices of Interconnection Networks", 2004).
    Credits,
}

/// Which of the packets that wait for an output goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The next one in turn, by input port and virtual channel; an output that is idle and wanted by none begins anew.
    RoundRobin,
    /// The one that left its host first: no input is at a disadvantage, however many join on the way.
    Age,
}

/// How many packets leave a buffer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Crossbar {
    /// As many as there are outputs: each begins when those before it have.
    Ideal,
    /// One: each begins when the one before it has left.
    Serial,
}

impl PacketParameters {
    /// Keys of files that the model reads.
    pub const FILES: &[&str] = &["table_file", "route_file"];

    /// Returns keys that have no effect beside the other ones, each with the setting that they are for.
    pub fn unused_keys(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (routing, congestion) = (self.routing, self.congestion);
        // Detours through networks of switches are weighted, too.
        let is_weighted =
            !routing.chooses_by_load() && !matches!(routing, PacketRouting::Minimal | PacketRouting::Par);
        let marks =
            matches!(congestion, Congestion::Dctcp | Congestion::Dcqcn) || routing == PacketRouting::Reps;
        let credits = (
            self.queues == Queues::Credits,
            "queues = \"credits\"",
            &["buffer_bytes", "virtual_channels", "arbitration", "crossbar"][..],
        );
        let rows = [
            credits,
            (routing == PacketRouting::Flowlets, "routing = \"flowlets\"", &["flowlet_gap"]),
            (marks, "congestion = \"dctcp\" or \"dcqcn\", or routing = \"reps\"", &["mark_bytes"]),
            (is_weighted, "routing = \"ecmp\", \"spray\" or \"reps\"", &["weights"]),
        ];
        let unused = rows.into_iter().filter(|(has_effect, ..)| !has_effect);
        unused.flat_map(|(_, setting, keys)| keys.iter().map(move |key| (*key, setting)))
    }

    /// Returns whether the configuration gives ways to hosts.
    pub(crate) fn has_table(&self) -> bool {
        !self.table.is_empty() || self.table_file.is_some()
    }

    /// Returns how much of a message may be on its way.
    pub(crate) fn in_flight(&self) -> InFlight {
        self.in_flight.unwrap_or(match self.queues {
            Queues::Fifo => InFlight::Loop,
            Queues::Credits => InFlight::Unlimited,
        })
    }
}

/// When a switch sends a packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switching {
    /// When all of it is there.
    StoreAndForward,
    /// When its header is there; if the output is faster than the input, later, so that the last byte is there in time (virtual
    /// cut-through: Kermani and Kleinrock, 1979).
    CutThrough,
}

/// How a packet finds its way. Those of `ecmp` to `reps` are shortest in number of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketRouting {
    /// On the route of the platform, as with the model `flow`: by the destination in a fat tree, by dimension in a torus.
    Minimal,
    /// Each switch chooses by a hash of both hosts: the packets of a flow stay together.
    Ecmp,
    /// Each switch chooses by a hash of both hosts and the packet's number in its message.
    Spray,
    /// Each switch chooses the output that is free first, with credits the one with the least bytes before it; among equal ones by the
    /// hash of `spray`.
    Adaptive,
    /// Each switch chooses as with `adaptive` for the first packet of two hosts after a pause; those behind it stay together (Vanini et
    /// al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", 2017).
    Flowlets,
    /// Each switch chooses by a hash of both hosts and a number that the sender gives the packet: one that comes back by an acknowledgement
    /// without a mark, or else a new one. So packets leave routes on which queues grow, such as those over slow links (Bonato et al., "REPS:
    /// Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation", 2024).
    Reps,
    /// In a dragonfly over a third group, in a torus over a third host, in other networks of switches over a third switch, which a hash of the packet chooses (Valiant, "A Scheme for Fast Parallel Communication", 1982).
    Valiant,
    /// The first router chooses between the way of `minimal` and that of `valiant`: bytes before its own outputs times
    /// links (Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", 2008).
    UgalL,
    /// As `ugal-l`, by bytes before the cables to other groups, which the routers of a group publish once in the least latency of a link; in
    /// other networks of switches by those on whole ways.
    UgalG,
    /// As `ugal-l` in a dragonfly, and each router of the source's group on the way of `minimal` may still choose the other (Jiang, Kim and Dally,
    /// "Indirect Adaptive Routing on Large Scale Interconnection Networks", 2009).
    Par,
}

impl PacketRouting {
    /// All routings.
    pub const ALL: [Self; 10] = [
        Self::Minimal,
        Self::Ecmp,
        Self::Spray,
        Self::Adaptive,
        Self::Flowlets,
        Self::Reps,
        Self::Valiant,
        Self::UgalL,
        Self::UgalG,
        Self::Par,
    ];

    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Ecmp => "ecmp",
            Self::Spray => "spray",
            Self::Adaptive => "adaptive",
            Self::Flowlets => "flowlets",
            Self::Reps => "reps",
            Self::Valiant => "valiant",
            Self::UgalL => "ugal-l",
            Self::UgalG => "ugal-g",
            Self::Par => "par",
        }
    }

    /// Returns whether packets take any shortest ways, which avoid links that have failed.
    pub fn avoids_links(self) -> bool {
        matches!(self, Self::Ecmp | Self::Spray | Self::Adaptive | Self::Flowlets | Self::Reps)
    }

    /// Returns whether nodes choose among shortest ways by what waits for them.
    pub(crate) fn chooses_by_load(self) -> bool {
        matches!(self, Self::Adaptive | Self::Flowlets)
    }

    /// Returns whether packets of a message arrive in their order.
    pub(crate) fn keeps_order(self) -> bool {
        matches!(self, Self::Minimal | Self::Ecmp)
    }
}

/// How much of a message may be on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// Any number of packets.
    Unlimited,
    /// As many packets as the narrowest link of the platform's route sends until an acknowledgement is back: bandwidth times delay, of the
    /// longest detour that the routing may choose between the two hosts.
    Loop,
}
