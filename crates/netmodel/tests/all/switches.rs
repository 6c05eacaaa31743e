//! Networks of switches with shortest routes: sizes from the literature, and routes.

use std::collections::BTreeMap;

use netmodel::measures::Measures;
use netmodel::{HostId, Layout, LinkId, NetworkGraph, NodeId, Platform, PlatformError, RoutingRule};

const RATES: &str = "speed = '1Gf', bandwidth = '1GBps', latency = '1us'";

fn platform(fields: &str) -> Platform {
    let text = format!("topology = {{ {fields}, {RATES} }}");
    Platform::from_toml(&text, "test").unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts the numbers of hosts, switches, cables between switches and links of the longest route.
fn assert_sizes(fields: &str, sizes: [usize; 4]) {
    let platform = platform(fields);
    let layout = Layout::of(&platform).unwrap();
    let hosts = layout.hosts();
    let between = layout.cables().unwrap().iter().filter(|cable| cable.lower >= hosts).count();
    let longest = Measures::of(&platform).diameter;
    assert_eq!([hosts as usize, layout.switches().len(), between, longest.links], sizes, "{fields}");
    assert_eq!((platform.hosts().len() as u64, longest.missing), (hosts, 0), "{fields}");
}

#[test]
fn sizes_are_those_of_the_literature() {
    // Sum of (S_i - 1)/2 cables a switch, one switch further for each dimension.
    assert_sizes("kind = 'hyperx', dims = [4, 3, 2], nodes = 2", [48, 24, 24 * (3 + 2 + 1) / 2, 2 + 3]);
    assert_sizes("kind = 'hyperx', dims = [4, 4], cables = 2, nodes = 1", [16, 16, 96, 4]);
    assert_sizes("kind = 'hyperx', dims = [5], nodes = 1", [5, 5, 10, 3]);
    // 2 q^2 switches with (3 q - d)/2 neighbours, and two cables between any two; q = 3 is one of SST's.
    for (order, neighbours) in [(3, 5), (4, 6), (5, 7), (7, 11), (8, 12), (9, 13)] {
        let switches = 2 * order * order;
        let fields = format!("kind = 'slim_fly', order = {order}, nodes = 1");
        assert_sizes(&fields, [switches, switches, switches * neighbours / 2, 4]);
    }
    // q^2 + q + 1 switches with q (q + 1)^2 / 2 cables, and two between any two; q = 2 is one of SST's.
    for order in [2, 3, 4, 5, 7, 8, 9] {
        let switches = order * order + order + 1;
        let fields = format!("kind = 'polarfly', order = {order}, nodes = 1");
        assert_sizes(&fields, [switches, switches, order * (order + 1) * (order + 1) / 2, 4]);
    }
    // In a group all leaves with all spines, and three cables between switches from one group to another.
    let plus = "kind = 'dragonfly_plus', groups = 5, leaves = 3, spines = 2, nodes = 2";
    assert_sizes(plus, [30, 25, 5 * 6 + 10, 5]);
    assert_sizes(&format!("{plus}, cables = 3"), [30, 25, 5 * 6 + 30, 5]);
    let rails = "kind = 'rail_optimized', units = 2, servers = 3, rails = 4, spines = 2";
    assert_sizes(rails, [24, 6 + 8 + 2, 16, 4]);
}

/// Every switch of a Slim Fly and a HyperX has as many neighbours; of a Jellyfish all but one, if their number and the degree are odd;
/// `q + 1` switches of a PolarFly have one fewer.
#[test]
fn switches_have_their_degree() {
    for (fields, degrees) in [
        ("kind = 'slim_fly', order = 5, nodes = 1", &[(7, 50)][..]),
        ("kind = 'polarfly', order = 4, nodes = 1", &[(4, 5), (5, 16)]),
        ("kind = 'hyperx', dims = [3, 4], nodes = 1", &[(5, 12)]),
        ("kind = 'jellyfish', switches = 40, degree = 5, nodes = 1", &[(5, 40)]),
        ("kind = 'jellyfish', switches = 21, degree = 3, nodes = 1", &[(2, 1), (3, 20)]),
        ("kind = 'jellyfish', switches = 6, degree = 5, nodes = 1", &[(5, 6)]),
    ] {
        let platform = platform(fields);
        let layout = Layout::of(&platform).unwrap();
        let mut neighbours: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for cable in layout.cables().unwrap().iter().filter(|cable| cable.lower >= layout.hosts()) {
            neighbours.entry(cable.lower).or_default().push(cable.upper);
            neighbours.entry(cable.upper).or_default().push(cable.lower);
        }
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        for (switch, mut others) in neighbours {
            let count = others.len();
            others.sort_unstable();
            others.dedup();
            assert!(
                others.len() == count && !others.contains(&switch),
                "{fields}: switch {switch} has {others:?}"
            );
            *found.entry(count).or_default() += 1;
        }
        assert_eq!(found.into_iter().collect::<Vec<_>>(), degrees, "{fields}");
        assert_eq!(Measures::of(&platform).diameter.missing, 0, "{fields}");
    }
}

/// Switches in servers have no cables to others, and do not count among those whose distances are in memory.
#[test]
fn fabrics_may_have_more_servers_than_switches_that_are_joined() {
    let platform = platform("kind = 'rail_optimized', units = 8, servers = 1250, rails = 8, spines = 8");
    let layout = Layout::of(&platform).unwrap();
    assert_eq!((layout.hosts(), layout.switches().len()), (80_000, 10_000 + 8 * 8 + 8));
    let links = |src: u32, dst: u32| {
        let mut links = Vec::new();
        platform.route(HostId::new(src), HostId::new(dst), &mut links).unwrap();
        links.len()
    };
    // Within a server, on a rail of a unit, to the same rail of another unit, and to another rail.
    assert_eq!([links(0, 7), links(0, 8), links(0, 79_992), links(0, 79_999)], [2, 2, 4, 4]);
}

#[test]
fn seeds_draw_different_networks() {
    let cables = |seed: u32| {
        let fields = format!("kind = 'jellyfish', switches = 20, degree = 4, nodes = 1, seed = {seed}");
        let layout = Layout::of(&platform(&fields)).unwrap();
        layout.cables().unwrap().iter().map(|cable| (cable.lower, cable.upper)).collect::<Vec<_>>()
    };
    assert_eq!(cables(1), cables(1));
    assert_ne!(cables(1), cables(2));
}

const ALL: [&str; 6] = [
    "kind = 'hyperx', dims = [3, 2, 2], cables = 2, nodes = 2",
    "kind = 'slim_fly', order = 3, nodes = 2",
    "kind = 'polarfly', order = 3, nodes = 2",
    "kind = 'jellyfish', switches = 12, degree = 3, nodes = 2",
    "kind = 'dragonfly_plus', groups = 4, leaves = 2, spines = 2, cables = 2, nodes = 2",
    "kind = 'rail_optimized', units = 2, servers = 2, rails = 3, spines = 2, cables = 2, local = 4",
];

/// Returns the links of the routes from each host to each other one.
fn routes(platform: &Platform) -> Vec<(HostId, HostId, Vec<LinkId>)> {
    let hosts = platform.hosts().len() as u32;
    let pairs =
        (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst);
    let route = |(src, dst)| {
        let (src, dst, mut links) = (HostId::new(src), HostId::new(dst), Vec::new());
        platform.route(src, dst, &mut links).unwrap();
        (src, dst, links)
    };
    pairs.map(route).collect()
}

/// Each link begins where the one before ends, and hosts do not forward.
#[test]
fn routes_are_paths_through_switches() {
    for fields in ALL {
        let mut platform = platform(fields);
        let mut lengths = Vec::new();
        for rule in [RoutingRule::Simgrid, RoutingRule::Random] {
            platform.set_routing_rule(rule);
            let graph = NetworkGraph::of(&platform).unwrap();
            let routes = routes(&platform);
            for (src, dst, links) in &routes {
                let mut node = NodeId::from(*src);
                for (place, &link) in links.iter().enumerate() {
                    let channel = graph.channel(graph.channel_of(link).unwrap());
                    assert_eq!(channel.from, node, "{fields}: {src} to {dst}");
                    assert!(place == 0 || node.index() >= graph.hosts() as usize, "{fields}: {src} to {dst}");
                    node = channel.to;
                }
                assert_eq!(node, NodeId::from(*dst), "{fields}");
            }
            lengths.push(routes.iter().map(|(_, _, links)| links.len()).collect::<Vec<_>>());
        }
        // All are shortest.
        assert_eq!(lengths[0], lengths[1], "{fields}");
    }
}

/// A HyperX routes in the order of its dimensions, and parallel cables have different destinations.
#[test]
fn a_hyperx_routes_dimension_by_dimension() {
    let platform = platform("kind = 'hyperx', dims = [3, 3], cables = 2, nodes = 2");
    let name = |link: LinkId| platform.link(link).name.clone();
    let route = |src, dst| {
        let mut links = Vec::new();
        platform.route(HostId::new(src), HostId::new(dst), &mut links).unwrap();
        links.into_iter().map(name).collect::<Vec<_>>()
    };
    // From switch 0 (station 18) over switch 2 to switch 8.
    let there = route(0, 16);
    let ends: Vec<&str> = there.iter().map(|link| link.split_once("_from_").unwrap().1).collect();
    assert_eq!(ends, ["0_to_18_UP", "18_to_20_UP", "20_to_26_UP", "16_to_26_DOWN"]);
    assert_ne!(there[1], route(0, 17)[1]);
}

/// Messages stay inside a server, on a rail, and else cross one of the spines, of which each host of a rail has another one.
#[test]
fn rails_keep_messages_of_their_hosts() {
    let platform =
        platform("kind = 'rail_optimized', units = 2, servers = 2, rails = 3, spines = 2, local = 4");
    let names = Layout::of(&platform).unwrap().names_of_links();
    let route = |src, dst| {
        let mut links = Vec::new();
        platform.route(HostId::new(src), HostId::new(dst), &mut links).unwrap();
        links.iter().map(|link| names[link].clone()).collect::<Vec<_>>()
    };
    assert_eq!(route(0, 2), ["host 0 to server 0", "server 0 to host 2"]);
    assert_eq!(route(1, 4), ["host 1 to leaf 0.1", "leaf 0.1 to host 4"]);
    let over = |spine: u32, dst: u32| {
        [
            "host 1 to leaf 0.1".to_owned(),
            format!("leaf 0.1 to spine {spine}"),
            format!("spine {spine} to leaf 1.1"),
            format!("leaf 1.1 to host {dst}"),
        ]
    };
    assert_eq!(route(1, 7), over(0, 7));
    assert_eq!(route(1, 10), over(1, 10));
    let bandwidth = |link: u32| platform.link(LinkId::new(link)).bandwidth;
    assert_eq!([bandwidth(0), bandwidth(2)], [4e9, 1e9]);
}

/// The halves of the smallest even dimension of a HyperX are joined by `(d/2)^2` cables for each of its lines.
#[test]
fn bisection_of_a_hyperx() {
    let bisection = |fields: &str| Measures::of(&platform(fields)).bisection;
    assert_eq!(
        bisection("kind = 'hyperx', dims = [4, 6], cables = 2, nodes = 1"),
        Some(4.0 * 6.0 * 2.0 * 1e9)
    );
    assert_eq!(bisection("kind = 'hyperx', dims = [4, 3], nodes = 1"), None);
}

#[test]
fn what_is_no_network_is_refused() {
    for (fields, message) in [
        ("kind = 'hyperx', dims = [4, 0], nodes = 1", "HyperX 4x0"),
        ("kind = 'slim_fly', order = 6, nodes = 1", "a power of a prime from 3 to 64"),
        ("kind = 'slim_fly', order = 2, nodes = 1", "a power of a prime from 3 to 64"),
        ("kind = 'polarfly', order = 100, nodes = 1", "a power of a prime from 2 to 89"),
        ("kind = 'jellyfish', switches = 4, degree = 4, nodes = 1", "a degree from 3 to one below"),
        ("kind = 'dragonfly_plus', groups = 4, leaves = 2, spines = 0, nodes = 2", "no zero"),
        (
            "kind = 'rail_optimized', units = 1025, servers = 1, rails = 8, spines = 1",
            "8192 leaves and spines",
        ),
        ("kind = 'polarfly', order = 3", "lacks the field \"nodes\""),
        ("kind = 'polarfly', order = 3, nodes = 1, seed = 3", "has no field \"seed\""),
    ] {
        let text = format!("topology = {{ {fields}, {RATES} }}");
        let error: PlatformError =
            Platform::from_toml(&text, "test").err().unwrap_or_else(|| panic!("{text}"));
        assert!(error.to_string().contains(message), "{error}");
    }
}
