//! Routes through zones: hand-derived examples of every kind of routing and of how zones are joined.

use crate::support::{repository, route_by_name as route, zone};
use netmodel::measures::Measures;
use netmodel::{HostId, MissingRoute, Platform, RouteError};

fn read(elements: &str) -> Platform {
    Platform::from_xml(&format!("<platform version=\"4.1\">{elements}</platform>"), "p.xml")
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Declares hosts, and routers where the name begins with `r`.
fn nodes(names: &str) -> String {
    let node = |name: &str| match name.starts_with('r') {
        true => format!("<router id=\"{name}\"/>"),
        false => format!("<host id=\"{name}\" speed=\"1Gf\"/>"),
    };
    names.split(' ').map(node).collect()
}

fn links(names: &str) -> String {
    let link = |name| format!("<link id=\"{name}\" bandwidth=\"1GBps\" latency=\"1us\"/>");
    names.split(' ').map(link).collect()
}

fn hops(links: &str) -> String {
    links.split(' ').map(|link| format!("<link_ctn id=\"{link}\"/>")).collect()
}

/// Declares a route "a b", or "A B" with the gateways "c d" where these are given.
fn join(element: &str, ends: &str, gateways: &str, links: &str) -> String {
    let (src, dst) = ends.split_once(' ').unwrap();
    let gateways = gateways
        .split_once(' ')
        .map_or(String::new(), |(src, dst)| format!(" gw_src=\"{src}\" gw_dst=\"{dst}\""));
    format!("<{element} src=\"{src}\" dst=\"{dst}\"{gateways}>{}</{element}>", hops(links))
}

fn simple(ends: &str, links: &str) -> String {
    join("route", ends, "", links)
}

fn missing(platform: &Platform, src: &str, dst: &str) -> MissingRoute {
    let [from, to] = [src, dst].map(|name| platform.host_by_name(name).unwrap());
    match platform.route(from, to, &mut Vec::new()) {
        Err(RouteError::Missing(missing)) => *missing,
        other => panic!("{src} to {dst}: {other:?}"),
    }
}

/// Two paths of two links from a to d: over c, which is declared first and whose route is named last, and over b.
fn diamond(routing: &str) -> Platform {
    let routes = [("a b", "ab"), ("b d", "bd"), ("a c", "ac"), ("c d", "cd")];
    let routes: String = routes.iter().map(|(ends, link)| simple(ends, link)).collect();
    read(&zone("w", routing, &(nodes("a c b d") + &links("ab bd ac cd") + &routes)))
}

#[test]
fn floyd_prefers_vertices_declared_first() {
    let platform = diamond("Floyd");
    assert_eq!(route(&platform, "a", "d"), ["ac", "cd"]);
    assert_eq!(route(&platform, "d", "a"), ["cd", "ac"]);
    assert_eq!(route(&platform, "a", "a"), ["__loopback__"]);
}

#[test]
fn dijkstra_prefers_vertices_named_first() {
    for routing in ["Dijkstra", "DijkstraCache", "dijkstracache"] {
        let platform = diamond(routing);
        assert_eq!(route(&platform, "a", "d"), ["ab", "bd"]);
        assert_eq!(route(&platform, "d", "a"), ["bd", "ab"]);
        assert_eq!(route(&platform, "d", "d"), ["__loopback__"]);
    }
}

/// The direct route has three links, the path over b two.
#[test]
fn the_length_of_a_path_is_its_number_of_links() {
    for (routing, there) in [("Full", "x y z"), ("Floyd", "ab bd"), ("Dijkstra", "ab bd")] {
        let routes = simple("a d", "x y z") + &simple("a b", "ab") + &simple("b d", "bd");
        let platform = read(&zone("w", routing, &(nodes("a b d") + &links("ab bd x y z") + &routes)));
        assert_eq!(route(&platform, "a", "d").join(" "), there, "{routing}");
    }
}

/// A listed route of a host to itself of three links is longer than the path there and back.
#[test]
fn floyd_finds_shorter_ways_from_a_host_to_itself() {
    let itself = "<route src=\"a\" dst=\"a\" symmetrical=\"NO\"><link_ctn id=\"l\"/><link_ctn id=\"l\"/><link_ctn id=\"l\"/></route>";
    let elements = nodes("a b") + &links("l m") + &simple("a b", "m") + itself;
    assert_eq!(route(&read(&zone("w", "Floyd", &elements)), "a", "a"), ["m", "m"]);
    assert_eq!(route(&read(&zone("w", "Dijkstra", &elements)), "a", "a"), ["l", "l", "l"]);
}

/// SimGrid aborts on "a to b" in this zone: it takes c, which a cannot reach, for near.
#[test]
fn dijkstra_sees_past_what_it_cannot_reach() {
    let one_way = "<route src=\"c\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"l\"/></route>";
    let elements = nodes("a b c e") + &links("l m") + &simple("a b", "m") + one_way;
    let platform = read(&zone("w", "Dijkstra", &elements));
    assert_eq!(route(&platform, "a", "b"), ["m"]);
    assert_eq!(missing(&platform, "a", "c").to, "c");
    // No route names e, so that it has no loopback link either.
    assert_eq!(missing(&platform, "e", "e").from, "e");
}

#[test]
fn a_star_joins_what_its_host_links_tie_to_the_backbone() {
    let elements = nodes("a b c")
        + &links("up down both loop")
        + "<host_link id=\"a\" up=\"up\" down=\"down\"/><host_link id=\"b\" up=\"both\" down=\"both\"/>
           <backbone id=\"bb\" bandwidth=\"1GBps\" latency=\"1us\"/>
           <cabinet id=\"x\" prefix=\"k\" suffix=\".x\" radical=\"4\" speed=\"2Gf\" bw=\"1GBps\" lat=\"1us\"/>"
        + &simple("a a", "loop");
    let platform = read(&zone("w", "Cluster", &elements));
    assert_eq!(route(&platform, "a", "b"), ["up", "bb", "both"]);
    assert_eq!(route(&platform, "b", "b"), ["both", "bb"]);
    assert_eq!(route(&platform, "a", "a"), ["loop"]);
    assert_eq!(route(&platform, "k4.x", "a"), ["link_k4.x_UP", "bb", "down"]);
    // A host without cable sits in the middle.
    assert_eq!(route(&platform, "c", "a"), ["bb", "down"]);
    let c = platform.host_by_name("c").unwrap();
    let empty = platform.route(c, c, &mut Vec::new());
    assert!(matches!(empty, Err(RouteError::NoLoopback { host, zone, .. }) if host == "c" && zone == "w"));
}

#[test]
fn a_route_between_hosts_crosses_a_link() {
    let platform = read(&zone("w", "Cluster", &nodes("a b")));
    let empty = platform.route(HostId::new(0), HostId::new(1), &mut Vec::new());
    assert!(matches!(empty, Err(RouteError::Empty { src, dst, .. }) if src == "a" && dst == "b"));
}

fn pair_of_zones(routing: &str, routes: &str) -> Platform {
    let left = zone(
        "L",
        "Full",
        &(nodes("a b r1") + &links("a1 b1") + &simple("a r1", "a1") + &simple("b r1", "b1")),
    );
    let right = "<cluster id=\"C\" prefix=\"c\" suffix=\"\" radical=\"0-1\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" bb_bw=\"1GBps\"/>";
    read(&zone("w", routing, &(left + right + &links("x y") + routes)))
}

#[test]
fn zones_are_joined_through_gateways() {
    for routing in ["Full", "Floyd", "Dijkstra"] {
        let platform = pair_of_zones(routing, &join("zoneRoute", "L C", "r1 cC_router", "x"));
        assert_eq!(route(&platform, "a", "c1"), ["a1", "x", "C_backbone", "C_link_1_DOWN"]);
        assert_eq!(route(&platform, "c1", "b"), ["C_link_1_UP", "C_backbone", "x", "b1"]);
        // A router joins no hosts of its zone: that needs a path.
        assert_eq!(missing(&platform, "a", "b").zone, "L");
    }
}

#[test]
fn the_way_back_may_differ() {
    let one_way = |ends: &str, gateways: &str, links: &str| {
        join("zoneRoute", ends, gateways, links).replacen(" src=", " symmetrical=\"NO\" src=", 1)
    };
    let there = one_way("L C", "r1 cC_router", "x");
    let platform = pair_of_zones("Full", &(there.clone() + &one_way("C L", "c0 b", "y x")));
    assert_eq!(route(&platform, "a", "c0"), ["a1", "x", "C_backbone", "C_link_0_DOWN"]);
    assert_eq!(route(&platform, "c0", "b"), ["y", "x"]);
    let missing = missing(&pair_of_zones("Full", &there), "c0", "b");
    assert_eq!((missing.zone, missing.from, missing.to), ("w".into(), "C".into(), "L".into()));
}

/// The middle zone is entered at m1 and left at m3. SimGrid's Dijkstra zones fail at that.
#[test]
fn a_zone_on_the_way_is_crossed_from_gateway_to_gateway() {
    let leaf = |id, hosts| zone(id, "Full", &nodes(hosts));
    let middle = zone(
        "M",
        "Floyd",
        &(nodes("m1 m2 m3") + &links("m12 m23") + &simple("m1 m2", "m12") + &simple("m2 m3", "m23")),
    );
    let routes = join("zoneRoute", "A M", "a m1", "x") + &join("zoneRoute", "M B", "m3 b", "y");
    for routing in ["Floyd", "Dijkstra"] {
        let platform = read(&zone(
            "w",
            routing,
            &(leaf("A", "a") + &middle + &leaf("B", "b") + &links("x y") + &routes),
        ));
        assert_eq!(route(&platform, "a", "b"), ["x", "m12", "m23", "y"], "{routing}");
        assert_eq!(route(&platform, "b", "a"), ["y", "m23", "m12", "x"], "{routing}");
        assert_eq!(route(&platform, "a", "m2"), ["x", "m12"], "{routing}");
    }
}

/// A gateway deep inside: X holds X1 and X2, and the only way out is at the host of X2.
#[test]
fn gateways_may_be_in_zones_of_zones() {
    let leaf = |id, host| zone(id, "Full", &nodes(host));
    let inner = leaf("X1", "p") + &leaf("X2", "q") + &links("pq") + &join("zoneRoute", "X1 X2", "p q", "pq");
    let outer =
        zone("X", "Full", &inner) + &leaf("Y", "y") + &links("out") + &join("zoneRoute", "X Y", "q y", "out");
    let platform = read(&zone("w", "Full", &outer));
    assert_eq!(route(&platform, "p", "y"), ["pq", "out"]);
    assert_eq!(route(&platform, "y", "p"), ["out", "pq"]);
}

/// Candidates for p (in X1 in X) to y (in Y1 in Y), innermost first: X1-Y1, then X1-Y and X-Y1, then X-Y.
#[test]
fn the_innermost_bypass_is_taken() {
    let leaf = |id, host| zone(id, "Full", &nodes(host));
    let base = zone("X", "Full", &leaf("X1", "p")) + &zone("Y", "Full", &leaf("Y1", "y"));
    let bypass = |ends, link| join("bypassZoneRoute", ends, "p y", link);
    let all = [("X Y", "c"), ("X Y1", "b2"), ("X1 Y", "b1"), ("X1 Y1", "a")];
    for known in 1..=all.len() {
        let bypasses: String = all[..known].iter().map(|(ends, link)| bypass(ends, link)).collect();
        let platform = read(&zone("w", "None", &(base.clone() + &links("a b1 b2 c") + &bypasses)));
        // The gateways are the hosts themselves: a bypass passes their loopback links.
        let expected = ["__loopback__", all[known - 1].1, "__loopback__"];
        assert_eq!(route(&platform, "p", "y"), expected);
        assert_eq!(missing(&platform, "y", "p").zone, "w");
    }
}

#[test]
fn bypasses_of_hosts_come_before_routes_and_lead_one_way() {
    for routing in ["Full", "Floyd", "Dijkstra"] {
        let routes = simple("a b", "ab") + &join("bypassRoute", "a b", "", "x y");
        let platform = read(&zone("w", routing, &(nodes("a b") + &links("ab x y") + &routes)));
        assert_eq!(route(&platform, "a", "b"), ["x", "y"]);
        assert_eq!(route(&platform, "b", "a"), ["ab"]);
    }
    let bypass = join("bypassRoute", "a b", "", "x");
    let platform = read(&zone("w", "None", &(nodes("a b") + &links("x") + &bypass)));
    assert_eq!(route(&platform, "a", "b"), ["x"]);
    assert_eq!(missing(&platform, "a", "a").zone, "w");
}

/// The two pairs inside L have no route. The longest routes are those to L's hosts and back.
#[test]
fn measures_follow_routes_between_zones() {
    let routes = join("zoneRoute", "L C", "r1 cC_router", "x y");
    let platform = pair_of_zones("Full", &routes);
    let measures = Measures::of(&platform);
    assert_eq!((measures.hosts, measures.diameter.missing, measures.bisection), (4, 2, None));
    // a1, x, y, backbone, down.
    assert_eq!(measures.diameter.links, 5);
    let expected = "w: 2 zones, 4 hosts, 2 routes [L: graph of 2 hosts, 4 routes; C: flat cluster of 2 on a backbone, 2 hosts]";
    assert_eq!(platform.topology(), expected);
}

#[test]
fn the_documented_example_is_a_platform() {
    let page = std::fs::read_to_string(repository("docs/platforms.md")).unwrap();
    let example = page.split("```xml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let platform = Platform::from_xml(example, "platforms.md").unwrap();
    assert!(platform.warnings().is_empty());
    assert_eq!(route(&platform, "login", "n7"), ["campus", "trunk_UP", "new_link_7_DOWN"]);
}

/// 20 rows of 20 clusters of 256 hosts: routes between any two are computed from three zones.
#[test]
fn many_clusters_of_clusters_are_one_platform() {
    let cluster = |row: u32, column: u32| {
        format!(
            "<cluster id=\"c{row}.{column}\" prefix=\"n{row}.{column}.\" suffix=\"\" radical=\"0-255\" speed=\"1Gf\" \
             bw=\"1GBps\" lat=\"1us\" router_id=\"s{row}.{column}\"/>"
        )
    };
    let row = |row: u32| {
        let joined = |column: u32| {
            let (link, next) = (format!("l{row}.{column}"), column + 1);
            let ends = format!("c{row}.{column} c{row}.{next}");
            links(&link) + &join("zoneRoute", &ends, &format!("s{row}.{column} s{row}.{next}"), &link)
        };
        let inside: String = (0..20).map(|column| cluster(row, column)).chain((0..19).map(joined)).collect();
        zone(&format!("row{row}"), "Floyd", &inside)
    };
    let joined = |row: u32| {
        let (link, next) = (format!("l{row}"), row + 1);
        let ends = format!("row{row} row{next}");
        links(&link) + &join("zoneRoute", &ends, &format!("s{row}.0 s{next}.0"), &link)
    };
    let inside: String = (0..20).map(row).chain((0..19).map(joined)).collect();
    let platform = read(&zone("w", "Dijkstra", &inside));
    assert_eq!(platform.hosts().len(), 102_400);
    assert_eq!(platform.host_by_name("n1.0.3"), Some(HostId::new(20 * 256 + 3)));
    let expected = ["c0.2_link_7_UP", "l0.1", "l0.0", "l0", "l1", "l2.0", "c2.1_link_255_DOWN"];
    assert_eq!(route(&platform, "n0.2.7", "n2.1.255"), expected);
    let rows = ["w: 20 zones with shortest paths (Dijkstra), 102400 hosts, 38 routes [", "row0: 20 zones "];
    let topology = platform.topology();
    assert!(topology.starts_with(&rows.concat()), "{topology}");
    assert!(
        topology.ends_with("c0.7: flat cluster of 256, 256 hosts; and 12 more]; and 19 more]"),
        "{topology}"
    );
}
