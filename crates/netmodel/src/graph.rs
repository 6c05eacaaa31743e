//! The network of a platform as a graph: hosts, switches, and the directed channels between their ports.

mod inference;

use thiserror::Error;

use crate::{HostId, LinkId, Platform, Sharing};
use inference::Inference;

/// Largest number of hosts of a platform without a regular network for which all routes are followed.
const INFERRED_HOSTS: usize = 1024;

/// A node of a [`NetworkGraph`]: hosts come first, by their [`HostId`]; switches follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Makes the identifier with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<HostId> for NodeId {
    fn from(host: HostId) -> Self {
        Self(host.get())
    }
}

/// One direction of a cable: from an output port of one node to an input port of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The link whose capacity and latency it has; no other channel has this link.
    pub link: LinkId,
    /// The node that sends.
    pub from: NodeId,
    /// The node that receives.
    pub to: NodeId,
}

/// Hosts and switches, and the channels between them. A port of a node is the position of a channel among those that leave it, or
/// among those that enter it, in the order of links.
///
/// The graph of a cluster follows from its topology. For other platforms it is inferred from the routes: where one link of a route
/// ends, the next one begins.
///
/// ```
/// use netmodel::{HostId, NetworkGraph, Platform};
///
/// let text = "topology = { kind = 'cluster', hosts = 3, speed = '1Gf', bandwidth = '1GBps', latency = '1us' }";
/// let graph = NetworkGraph::of(&Platform::from_toml(text, "flat.toml")?)?;
/// assert_eq!((graph.hosts(), graph.nodes(), graph.channels().len()), (3, 4, 6));
/// let switch = graph.channel(graph.outputs(HostId::new(1).into())[0]).to;
/// assert_eq!(graph.outputs(switch).len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetworkGraph {
    hosts: u32,
    channels: Vec<Channel>,
    outputs: Adjacency,
    inputs: Adjacency,
}

/// The reason why a platform is no graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// Both directions of a cable have one capacity.
    #[error(
        "the link {link:?} carries both directions of a cable: a packet needs one for each (sharing = \"split_duplex\", in XML \
         SPLITDUPLEX)"
    )]
    HalfDuplex {
        /// The link.
        link: String,
    },
    /// The link has no queue.
    #[error(
        "the link {link:?} between two nodes is a fat pipe, which has no queue of packets: make it a shared one"
    )]
    FatPipe {
        /// The link.
        link: String,
    },
    /// Every message of a node crosses the link, in either direction.
    #[error("the link {link:?} limits a node and leads nowhere: leave limiters out (limiter, limiter_link)")]
    Limiter {
        /// The link.
        link: String,
    },
    /// Routes cross the link between different nodes.
    #[error(
        "routes cross the link {link:?} between different nodes, for instance that from {src:?} to {dst:?}: give each cable a link of \
         its own"
    )]
    SeveralEnds {
        /// The link.
        link: String,
        /// The host that sends.
        src: String,
        /// The host that receives.
        dst: String,
    },
    /// There are too many routes to follow.
    #[error(
        "the graph of {found} hosts would be inferred from all routes, expected at most {INFERRED_HOSTS}, or one cluster (a flat one, a \
         torus, a fat tree, a dragonfly or another network of switches) without backbone"
    )]
    TooManyHosts {
        /// The number of hosts.
        found: usize,
    },
}

/// The channels of each node.
#[derive(Clone, Debug)]
struct Adjacency {
    channels: Vec<u32>,
    /// Position of the first channel of each node, and the number of all.
    first: Vec<u32>,
}

impl Adjacency {
    fn new(nodes: u32, ends: impl Iterator<Item = NodeId> + Clone) -> Self {
        let mut first = vec![0; nodes as usize + 1];
        ends.clone().for_each(|node| first[node.index() + 1] += 1);
        (1..first.len()).for_each(|node| first[node] += first[node - 1]);
        let mut next = first.clone();
        let mut channels = vec![0; first[nodes as usize] as usize];
        for (channel, node) in (0..).zip(ends) {
            channels[next[node.index()] as usize] = channel;
            next[node.index()] += 1;
        }
        Self { channels, first }
    }

    fn of(&self, node: NodeId) -> &[u32] {
        &self.channels[self.first[node.index()] as usize..self.first[node.index() + 1] as usize]
    }
}

impl NetworkGraph {
    /// Finds the graph of a platform. `O(links)` for a cluster, the lengths of all routes otherwise.
    ///
    /// # Errors
    /// If the links form no graph, or it would take too many routes to find out.
    pub fn of(platform: &Platform) -> Result<Self, GraphError> {
        let name = |link: LinkId| platform.link(link).name.clone();
        let hosts = platform.hosts().len();
        let channels = match platform.whole_cluster() {
            Some((topology, wiring)) if wiring.backbone.is_none() => {
                if let Some(link) = wiring.limiter {
                    return Err(GraphError::Limiter { link: name(LinkId::new(link)) });
                }
                let ends = (0..).zip(topology.cable_ends());
                let both = ends.flat_map(|(cable, (lower, upper))| {
                    let [lower, upper] = [lower, upper].map(|station| NodeId(station as u32));
                    let up = Channel { link: wiring.up(cable), from: lower, to: upper };
                    [up, Channel { link: wiring.down(cable), from: upper, to: lower }]
                });
                both.collect()
            }
            _ if hosts <= INFERRED_HOSTS => Inference::new(platform).channels()?,
            _ => return Err(GraphError::TooManyHosts { found: hosts }),
        };
        Self::new(hosts as u32, channels, platform)
    }

    fn new(hosts: u32, mut channels: Vec<Channel>, platform: &Platform) -> Result<Self, GraphError> {
        let name = |link: LinkId| platform.link(link).name.clone();
        channels.sort_unstable_by_key(|channel| channel.link);
        if let Some(pair) = channels.windows(2).find(|pair| pair[0].link == pair[1].link) {
            return Err(GraphError::HalfDuplex { link: name(pair[0].link) });
        }
        let is_fat = |channel: &&Channel| platform.link(channel.link).sharing == Sharing::FatPipe;
        if let Some(channel) = channels.iter().find(is_fat) {
            return Err(GraphError::FatPipe { link: name(channel.link) });
        }
        let ends = channels.iter().flat_map(|channel| [channel.from.0, channel.to.0]);
        let nodes = ends.max().map_or(hosts, |last| hosts.max(last + 1));
        let outputs = Adjacency::new(nodes, channels.iter().map(|channel| channel.from));
        let inputs = Adjacency::new(nodes, channels.iter().map(|channel| channel.to));
        Ok(Self { hosts, channels, outputs, inputs })
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of hosts and switches.
    pub fn nodes(&self) -> u32 {
        self.outputs.first.len() as u32 - 1
    }

    /// Returns the channels in the order of their links.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Returns a channel.
    ///
    /// # Panics
    /// If there is none with this number.
    pub fn channel(&self, channel: u32) -> Channel {
        self.channels[channel as usize]
    }

    /// Returns the channel of a link, if the link joins two nodes. `O(log channels)`.
    pub fn channel_of(&self, link: LinkId) -> Option<u32> {
        self.channels.binary_search_by_key(&link, |channel| channel.link).ok().map(|channel| channel as u32)
    }

    /// Returns the numbers of the channels that leave a node, by its output ports.
    pub fn outputs(&self, node: NodeId) -> &[u32] {
        self.outputs.of(node)
    }

    /// Returns the numbers of the channels that enter a node, by its input ports.
    pub fn inputs(&self, node: NodeId) -> &[u32] {
        self.inputs.of(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RoutingRule;

    fn platform(topology: &str) -> Platform {
        let rates = "speed = '1Gf', bandwidth = '1GBps', latency = '1us'";
        Platform::from_toml(&format!("topology = {{ {topology}, {rates} }}"), "test").unwrap()
    }

    fn xml(zone: &str) -> Platform {
        Platform::from_xml(&format!("<platform version=\"4.1\">{zone}</platform>"), "test").unwrap()
    }

    /// Every route is a path: each channel begins where the one before ends, from host to host.
    fn assert_routes_are_paths(platform: &Platform, graph: &NetworkGraph) {
        let hosts = (0..graph.hosts()).map(HostId::new);
        let mut route = Vec::new();
        for (src, dst) in hosts.clone().flat_map(|src| hosts.clone().map(move |dst| (src, dst))) {
            if src != dst {
                platform.route(src, dst, &mut route).unwrap();
                let channels = route.iter().map(|&link| graph.channel(graph.channel_of(link).unwrap()));
                let end = channels.fold(NodeId::from(src), |node, channel| {
                    assert_eq!(channel.from, node, "{src} to {dst}");
                    channel.to
                });
                assert_eq!(end, dst.into());
            }
        }
    }

    #[test]
    fn routes_of_clusters_are_paths_of_their_graphs() {
        let tree = "kind = 'fat_tree', levels = [{ children = 4, parents = 2 }, { children = 3, parents = 2, cables = 2 }]";
        let dragonfly = "kind = 'dragonfly', groups = 3, blue = 1, chassis = 2, black = 2, blades = 4, green = 1, nodes = 2";
        let accelerators = "accelerators = { count = 2, speed = '1Tf', bandwidth = '2GBps' }";
        for (topology, nodes, channels) in [
            ("kind = 'cluster', hosts = 5", 6, 10),
            ("kind = 'torus', dims = [4, 3]", 12, 48),
            // 12 hosts, 2 x 3 switches with 4 cables each to the 4 on top, each cable in two directions.
            (tree, 12 + 6 + 4, 2 * (12 * 2 + 6 * 4)),
            (dragonfly, 48 + 24, 2 * (48 + 3 * (2 * 6 + 4) + 3)),
            (&format!("{tree}, {accelerators}"), 12 * 3 + 6 + 4, 2 * (12 * 2 + 6 * 4 + 24)),
            (&format!("{dragonfly}, {accelerators}"), 48 * 3 + 24, 2 * (48 * 3 + 3 * (2 * 6 + 4) + 3)),
            (&format!("kind = 'torus', dims = [4, 3], {accelerators}"), 36, 48 + 48),
            (&format!("kind = 'cluster', hosts = 5, {accelerators}"), 16, 10 + 20),
        ] {
            let mut platform = platform(topology);
            // SimGrid's routes in dragonflies jump from one chassis to another.
            platform.set_routing_rule(RoutingRule::Textbook);
            let graph = NetworkGraph::of(&platform).unwrap();
            assert_eq!((graph.nodes(), graph.channels().len()), (nodes, channels), "{topology}");
            assert_routes_are_paths(&platform, &graph);
        }
    }

    #[test]
    fn graphs_are_inferred_from_routes() {
        let clusters = r#"<zone id="all" routing="Full">
            <cluster id="a" prefix="a-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us" router_id="left"/>
            <cluster id="b" prefix="b-" suffix="" radical="0-2" speed="1Gf" bw="1GBps" lat="1us" router_id="right"/>
            <link id="between" bandwidth="1GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>
            <zoneRoute src="a" dst="b" gw_src="left" gw_dst="right"><link_ctn id="between" direction="UP"/></zoneRoute>
            </zone>"#;
        let platform = xml(clusters);
        let graph = NetworkGraph::of(&platform).unwrap();
        assert_eq!((graph.hosts(), graph.nodes(), graph.channels().len()), (7, 9, 16));
        assert_routes_are_paths(&platform, &graph);
        // A backbone is a channel from where all cables end to where all begin.
        let backbone = r#"<cluster id="a" prefix="a-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us" bb_bw="1GBps" bb_lat="1us"/>"#;
        let platform = xml(backbone);
        let graph = NetworkGraph::of(&platform).unwrap();
        assert_eq!((graph.nodes(), graph.channels().len()), (6, 9));
        assert_routes_are_paths(&platform, &graph);
    }

    #[test]
    fn what_is_no_graph_is_refused_by_name() {
        let refusal = |platform: &Platform| NetworkGraph::of(platform).unwrap_err();
        let link = |link: &str| link.to_owned();
        let shared = platform("kind = 'cluster', hosts = 3, sharing = 'shared'");
        let name = shared.link(LinkId::new(0)).name.clone();
        assert_eq!(refusal(&shared), GraphError::HalfDuplex { link: name });
        let limited = xml(
            r#"<cluster id="a" prefix="a-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="1us" limiter_link="1GBps"/>"#,
        );
        assert_eq!(refusal(&limited), GraphError::Limiter { link: link("a_link_0_limiter") });
        let hosts = |links: &str| {
            let hosts: String =
                ["a", "b", "c"].map(|id| format!("<host id=\"{id}\" speed=\"1Gf\"/>")).concat();
            xml(&format!("<zone id=\"z\" routing=\"Full\">{hosts}{links}</zone>"))
        };
        // One link from a to both others would end at two hosts.
        let fork = hosts(
            r#"<link id="l" bandwidth="1GBps" latency="1us"/>
            <route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>
            <route src="a" dst="c" symmetrical="NO"><link_ctn id="l"/></route>"#,
        );
        let [src, dst] = ["a", "c"].map(str::to_owned);
        assert_eq!(refusal(&fork), GraphError::SeveralEnds { link: link("l"), src, dst });
        let both_ways = hosts(
            r#"<link id="l" bandwidth="1GBps" latency="1us"/><route src="a" dst="b"><link_ctn id="l"/></route>"#,
        );
        assert_eq!(refusal(&both_ways), GraphError::HalfDuplex { link: link("l") });
        let pipe = hosts(
            r#"<link id="l" bandwidth="1GBps" latency="1us" sharing_policy="FATPIPE"/>
            <route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route>"#,
        );
        assert_eq!(refusal(&pipe), GraphError::FatPipe { link: link("l") });
    }
}
