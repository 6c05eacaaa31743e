//! Routes of clusters: hand-derived examples, and the properties that every route has.

use crate::support::{cluster, route, xml};
use proptest::prelude::*;

use netmodel::{HostId, Platform, RouteError, RoutingRule};

#[test]
fn a_flat_cluster_goes_up_and_down() {
    let plain = cluster(4, "");
    assert_eq!(route(&plain, 1, 3), ["c_link_1_UP", "c_link_3_DOWN"]);
    assert_eq!(route(&plain, 2, 2), ["c_link_2_UP", "c_link_2_DOWN"]);
    let shared = cluster(4, "sharing_policy=\"SHARED\"");
    assert_eq!(route(&shared, 1, 3), ["c_link_1", "c_link_3"]);
    assert_eq!(route(&shared, 2, 2), ["c_link_2"]);
}

#[test]
fn backbone_and_limiters_are_crossed_once_per_end() {
    let full = cluster(4, "bb_bw=\"2GBps\" bb_lat=\"3us\" limiter_link=\"1.5GBps\"");
    let there = ["c_link_1_limiter", "c_link_1_UP", "c_backbone", "c_link_3_DOWN", "c_link_3_limiter"];
    assert_eq!(route(&full, 1, 3), there);
    assert_eq!(route(&full, 1, 1), ["c_link_1_limiter", "c_link_1_UP", "c_backbone", "c_link_1_DOWN"]);
    let looped = cluster(4, "bb_bw=\"2GBps\" loopback_bw=\"5GBps\"");
    assert_eq!(route(&looped, 1, 1), ["c_link_1_loopback"]);
}

#[test]
fn hosts_and_links_take_their_numbers_from_the_radical() {
    let text = xml(
        "<cluster id=\"c\" prefix=\"n\" suffix=\".x\" radical=\"7,1-2\" speed=\"1Gf\" bw=\"1GBps\" lat=\"0\" limiter_link=\"1GBps\"/>",
    );
    let platform = Platform::from_xml(&text, "test.xml").unwrap();
    let names: Vec<&str> = platform.hosts().iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["n7.x", "n1.x", "n2.x"]);
    assert_eq!(platform.host_by_name("n1.x"), Some(HostId::new(1)));
    assert_eq!(
        route(&platform, 0, 2),
        ["c_link_7_limiter", "c_link_7_UP", "c_link_2_DOWN", "c_link_2_limiter"]
    );
}

#[test]
fn a_torus_completes_one_dimension_after_the_other() {
    // 4x4: host 5 is (1, 1), host 15 is (3, 3). 1 to 3 of 4 is a tie, which goes up because 3 > 1.
    let torus = cluster(16, "topology=\"TORUS\" topo_parameters=\"4,4\"");
    let links = [
        "c_link_from_5_to_6_UP",
        "c_link_from_6_to_7_UP",
        "c_link_from_7_to_11_UP",
        "c_link_from_11_to_15_UP",
    ];
    assert_eq!(route(&torus, 5, 15), links);
    // 0 to 3 goes down around the edge, over the cable that host 3 owns.
    assert_eq!(route(&torus, 0, 3), ["c_link_from_3_to_0_DOWN"]);
    assert_eq!(route(&torus, 3, 0), ["c_link_from_3_to_0_UP"]);
}

#[test]
fn a_torus_limits_every_station_that_it_passes() {
    let torus =
        cluster(3, "topology=\"TORUS\" topo_parameters=\"3\" limiter_link=\"1GBps\" loopback_bw=\"1GBps\"");
    assert_eq!(route(&torus, 0, 1), ["c_link_0_limiter", "c_link_from_0_to_1_UP", "c_link_1_limiter"]);
    assert_eq!(route(&torus, 1, 1), ["c_link_1_loopback"]);
}

#[test]
fn a_pair_in_a_torus_uses_one_of_its_two_cables() {
    let pair = cluster(2, "topology=\"TORUS\" topo_parameters=\"2\"");
    assert_eq!(route(&pair, 0, 1), ["c_link_from_0_to_1_UP"]);
    assert_eq!(route(&pair, 1, 0), ["c_link_from_0_to_1_DOWN"]);
}

#[test]
fn a_torus_without_loopback_has_no_way_from_a_host_to_itself() {
    let torus = cluster(4, "topology=\"TORUS\" topo_parameters=\"4\"");
    let mut links = Vec::new();
    let error = torus.route(HostId::new(2), HostId::new(2), &mut links).unwrap_err();
    assert!(matches!(error, RouteError::NoLoopback { host, zone, .. } if host == "n2" && zone == "c"));
}

/// The numbers of this example: hosts 0-15; switches from 31 down, 8 of level 1 (31-24), 8 of level 2 (23-16), 4 of
/// level 3 (15-12). 4 cables leave each host, 6 each switch of level 1 (from cable 64 on), 2 each of level 2 (from 112).
#[test]
fn a_fat_tree_climbs_by_destination_and_descends_by_source() {
    let tree = cluster(16, "topology=\"FAT_TREE\" topo_parameters=\"3;4,2,2;2,2,1;2,3,2\"");
    let expected = [
        // Ports 15 mod 4 = 3, 15/2 mod 6 = 1 and 15/4 mod 2 = 1.
        "link_from_0_30_3_UP",
        "link_from_30_20_73_UP",
        "link_from_20_12_119_UP",
        // Port 1 of the top; then the search goes on from port 2, which finds 3 (not 1), and from 4, which finds 7.
        "link_from_16_12_126_DOWN",
        "link_from_24_16_110_DOWN",
        "link_from_15_24_63_DOWN",
    ];
    assert_eq!(route(&tree, 0, 15), expected);
}

#[test]
fn a_fat_tree_without_loopback_turns_round_at_the_first_switch() {
    let tree = cluster(4, "topology=\"FAT_TREE\" topo_parameters=\"1;4;1;1\"");
    assert_eq!(route(&tree, 2, 2), ["link_from_2_7_2_UP", "link_from_2_7_2_DOWN"]);
}

#[test]
fn the_second_fat_tree_of_a_platform_begins_where_the_first_ended() {
    let tree = |id, prefix, hosts: u32, parameters| {
        format!(
            "<cluster id=\"{id}\" prefix=\"{prefix}\" suffix=\"\" radical=\"0-{}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"1us\" \
             topology=\"FAT_TREE\" topo_parameters=\"{parameters}\"/>",
            hosts - 1
        )
    };
    let trees = tree("c", "a", 3, "1;3;1;1") + &tree("d", "b", 4, "1;4;2;1");
    let platform = Platform::from_xml(&xml(&trees), "test.xml").unwrap();
    // Host 1 of the second tree has position 4: from 0, it takes parent 4 mod 2 = 0 (a first tree would take 1).
    // The first tree has cables 0-2; 4 hosts: switches 7 and 6.
    assert_eq!(route(&platform, 3, 4), ["link_from_0_7_3_UP", "link_from_1_7_5_DOWN"]);
}

/// 36 hosts with cables 0-35; green from 36, six per chassis; black from 90, four per pair of chassis.
#[test]
fn a_dragonfly_returns_to_chassis_0_after_a_green_hop() {
    let dragonfly = cluster(36, "topology=\"DRAGONFLY\" topo_parameters=\"3,4;3,2;4,1;1\"");
    // Both in chassis 1, blades 0 and 1.
    let same_chassis = [
        "local_link_from_router_4_to_node_0_4_UP",
        "green_link_in_chassis_1_between_routers_0_and_1_42_UP",
        "black_link_in_group_0_between_chassis_0_and_1_blade_1_91_UP",
        "local_link_from_router_5_to_node_0_5_DOWN",
    ];
    assert_eq!(route(&dragonfly, 4, 5), same_chassis);
    // From chassis 1 to chassis 0: no black hop.
    let to_first_chassis = [
        "local_link_from_router_4_to_node_0_4_UP",
        "green_link_in_chassis_1_between_routers_0_and_1_42_UP",
        "local_link_from_router_1_to_node_0_1_DOWN",
    ];
    assert_eq!(route(&dragonfly, 4, 1), to_first_chassis);
}

#[test]
fn a_dragonfly_changes_groups_over_the_blade_that_faces_the_other() {
    let dragonfly = cluster(36, "topology=\"DRAGONFLY\" topo_parameters=\"3,4;3,2;4,1;1\"");
    // Host 4 (group 0, chassis 1, blade 0) to host 35 (group 2, chassis 2, blade 3). Green cables 36-89, black 90-125
    // (12 per group), blue 126-128.
    let expected = [
        "local_link_from_router_4_to_node_0_4_UP",
        "green_link_in_chassis_1_between_routers_0_and_2_43_UP",
        "black_link_in_group_0_between_chassis_0_and_1_blade_2_92_DOWN",
        "blue_link_between_group_0_and_2_routers_2_and_24_127_UP",
        "green_link_in_chassis_0_between_routers_0_and_3_74_UP",
        "black_link_in_group_2_between_chassis_0_and_2_blade_3_121_UP",
        "local_link_from_router_35_to_node_0_35_DOWN",
    ];
    assert_eq!(route(&dragonfly, 4, 35), expected);
    let bandwidth = |name: &str| {
        let link = dragonfly.links().iter().find(|link| link.name == name);
        link.unwrap_or_else(|| panic!("no link {name}")).bandwidth
    };
    assert_eq!(bandwidth(expected[1]), 1e9);
    assert_eq!(bandwidth(expected[2]), 2e9);
    assert_eq!(bandwidth(expected[3]), 4e9);
}

/// Reads "c_link_from_A_to_B_UP" or "_DOWN" as a step.
fn torus_step(link: &str) -> (u32, u32) {
    let words: Vec<&str> = link.split('_').collect();
    let (from, to) = (words[3].parse().unwrap(), words[5].parse().unwrap());
    if words[6] == "UP" { (from, to) } else { (to, from) }
}

proptest! {
    #[test]
    fn torus_routes_are_connected_and_minimal(
        sizes in prop::collection::vec(2_u32..6, 1..4),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let hosts: u32 = sizes.iter().product();
        let text: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let attributes = format!("topology=\"TORUS\" topo_parameters=\"{}\" loopback_bw=\"1GBps\"", text.join(","));
        let torus = cluster(hosts, &attributes);
        let (src, dst) = (ends.0.index(hosts as usize) as u32, ends.1.index(hosts as usize) as u32);
        prop_assume!(src != dst);
        let links = route(&torus, src, dst);
        let mut current = src;
        for link in &links {
            let (from, to) = torus_step(link);
            prop_assert_eq!(from, current);
            current = to;
        }
        prop_assert_eq!(current, dst);
        let (mut distance, mut stride) = (0, 1);
        for size in &sizes {
            let apart = (src / stride % size).abs_diff(dst / stride % size);
            distance += apart.min(size - apart);
            stride *= size;
        }
        prop_assert_eq!(links.len() as u32, distance);
    }

    #[test]
    fn fat_tree_routes_climb_then_descend_along_cables(
        levels in prop::collection::vec((2_u32..4, 1_u32..4, 1_u32..4), 1..4),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        rule in prop::sample::select(vec![RoutingRule::Simgrid, RoutingRule::Textbook, RoutingRule::Random]),
    ) {
        let hosts: u32 = levels.iter().map(|level| level.0).product();
        let join = |field: fn(&(u32, u32, u32)) -> u32| {
            levels.iter().map(|level| field(level).to_string()).collect::<Vec<_>>().join(",")
        };
        let lists = [join(|level| level.0), join(|level| level.1), join(|level| level.2)].join(";");
        let mut tree = cluster(hosts, &format!("topology=\"FAT_TREE\" topo_parameters=\"{};{lists}\"", levels.len()));
        tree.set_routing_rule(rule);
        let (src, dst) = (ends.0.index(hosts as usize) as u32, ends.1.index(hosts as usize) as u32);
        let links = route(&tree, src, dst);
        let mut current = i64::from(src);
        for (position, link) in links.iter().enumerate() {
            let words: Vec<&str> = link.split('_').collect();
            let (child, parent): (i64, i64) = (words[2].parse().unwrap(), words[3].parse().unwrap());
            let up = position < links.len() / 2;
            prop_assert_eq!(words[5], if up { "UP" } else { "DOWN" });
            prop_assert_eq!(current, if up { child } else { parent });
            current = if up { parent } else { child };
        }
        prop_assert_eq!(current, i64::from(dst));
        // The lowest level at which the labels of both ends agree from there on.
        let climb = (1..=levels.len()).find(|&level| {
            let block: u32 = levels[..level].iter().map(|level| level.0).product();
            src / block == dst / block
        });
        prop_assert_eq!(Some(links.len() / 2), climb);
    }

    #[test]
    fn dragonfly_routes_begin_and_end_at_their_hosts(
        sizes in (1_u32..4, 1_u32..4, 3_u32..5, 1_u32..3),
        ends in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let (groups, chassis, blades, nodes) = sizes;
        let hosts = groups * chassis * blades * nodes;
        let parameters = format!("{groups},1;{chassis},1;{blades},1;{nodes}");
        let dragonfly = cluster(hosts, &format!("topology=\"DRAGONFLY\" topo_parameters=\"{parameters}\""));
        let (src, dst) = (ends.0.index(hosts as usize) as u32, ends.1.index(hosts as usize) as u32);
        let links = route(&dragonfly, src, dst);
        let local = |host: u32, way: &str| {
            format!("local_link_from_router_{}_to_node_{}_{host}_{way}", host / nodes, host % nodes)
        };
        prop_assert_eq!(links.first(), Some(&local(src, "UP")));
        prop_assert_eq!(links.last(), Some(&local(dst, "DOWN")));
        let group = chassis * blades * nodes;
        let blue = links.iter().filter(|link| link.starts_with("blue")).count();
        prop_assert_eq!(blue, usize::from(src / group != dst / group));
        prop_assert!(links.len() <= 7);
    }
}

/// Groups 3, chassis 3, blades 4, one host each: hosts 4 and 5 are in chassis 1, host 1 is in chassis 0.
#[test]
fn a_dragonfly_stays_in_its_chassis_by_the_textbook() {
    let mut dragonfly = cluster(36, "topology=\"DRAGONFLY\" topo_parameters=\"3,4;3,2;4,1;1\"");
    assert_eq!(route(&dragonfly, 4, 5).len(), 4, "SimGrid goes green and black");
    assert_eq!(route(&dragonfly, 4, 1).len(), 3, "SimGrid leaves out the black hop");
    dragonfly.set_routing_rule(RoutingRule::Textbook);
    let inside = route(&dragonfly, 4, 5);
    assert_eq!(inside.len(), 3);
    assert!(inside[1].contains("green"), "{inside:?}");
    let across = route(&dragonfly, 4, 1);
    assert_eq!(across.len(), 4);
    assert!(across[1].contains("green") && across[2].contains("black"), "{across:?}");
}

/// Two hosts per leaf switch, two cables to each parent: by the textbook every switch on the way down takes the cable
/// of the source's number.
#[test]
fn a_fat_tree_chooses_each_cable_anew_by_the_textbook() {
    let mut tree = cluster(16, "topology=\"FAT_TREE\" topo_parameters=\"3;4,2,2;2,2,1;2,3,2\"");
    let all = |tree: &Platform| -> Vec<Vec<String>> {
        let pairs = (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst)));
        pairs.map(|(src, dst)| route(tree, src, dst).iter().map(ToString::to_string).collect()).collect()
    };
    let theirs = all(&tree);
    tree.set_routing_rule(RoutingRule::Textbook);
    let textbook = all(&tree);
    let different = theirs.iter().zip(&textbook).filter(|(one, other)| one != other).count();
    // The count that the literal loop and one that is left differ by, measured with SimGrid 3.32.
    assert_eq!(different, 135);
    assert!(theirs.iter().zip(&textbook).all(|(one, other)| one.len() == other.len()));
}

/// 16 leaves of 16 hosts, with 16 uplinks each: by D-mod-k all messages of a leaf to the first hosts of others take one uplink.
#[test]
fn random_paths_spread_over_the_uplinks() {
    let mut tree = cluster(256, "topology=\"FAT_TREE\" topo_parameters=\"2;16,16;1,16;1,1\"");
    let uplinks = |tree: &Platform| -> Vec<String> {
        (1..16).map(|leaf| route(tree, leaf, 16 * leaf)[1].to_string()).collect()
    };
    let different = |links: &[String]| links.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(different(&uplinks(&tree)), 1);
    tree.set_routing_rule(RoutingRule::Random);
    let random = uplinks(&tree);
    // Of 15 random choices among 16, 9.9 are different in the mean, with a standard deviation of 1.3.
    assert!((6..=14).contains(&different(&random)), "{random:?}");
    assert_eq!(uplinks(&tree), random, "a pair of hosts has the same path always");
}
