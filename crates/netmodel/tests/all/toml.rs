//! The TOML format: the same machines as in SimGrid's XML, and refused input.

use crate::support::{cluster, route, xml};
use netmodel::measures::{Coverage, Measures};
use netmodel::{HostId, Platform, PlatformDescription, PlatformError, Sharing};

fn read(text: &str) -> Platform {
    Platform::from_toml(text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> PlatformError {
    Platform::from_toml(text, "p.toml").err().unwrap_or_else(|| panic!("{text} is accepted"))
}

/// Asserts that two platforms have the same hosts, links and routes.
fn assert_same(one: &Platform, other: &Platform) {
    assert_eq!(one.hosts(), other.hosts());
    assert_eq!(one.links(), other.links());
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for src in (0..one.hosts().len() as u32).map(HostId::new) {
        for dst in (0..one.hosts().len() as u32).map(HostId::new) {
            assert_eq!(one.route(src, dst, &mut here).is_ok(), other.route(src, dst, &mut there).is_ok());
            assert_eq!(here, there);
        }
    }
}

const COMMON: &str = "name = \"c\", prefix = \"n\", speed = \"1Gf\", bandwidth = \"1GBps\", latency = 1e-6";

#[test]
fn clusters_are_those_of_the_xml() {
    let cases = [
        (
            "kind = \"cluster\", hosts = 5, backbone = { bandwidth = \"2GBps\", latency = \"3us\" }",
            5,
            "bb_bw=\"2GBps\" bb_lat=\"3us\"",
        ),
        (
            "kind = \"cluster\", hosts = 5, limiter = \"1GBps\", sharing = \"shared\"",
            5,
            "limiter_link=\"1GBps\" sharing_policy=\"SHARED\"",
        ),
        (
            "kind = \"torus\", dims = [3, 2, 2], loopback = { bandwidth = \"8Gbps\", latency = \"1ns\" }, cores = 1",
            12,
            "topology=\"TORUS\" topo_parameters=\"3,2,2\" loopback_bw=\"8Gbps\" loopback_lat=\"1ns\"",
        ),
        (
            "kind = \"fat_tree\", levels = [{ children = 4, parents = 1 }, { children = 4, parents = 2, cables = 2 }]",
            16,
            "topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2;1,2\"",
        ),
        (
            "kind = \"dragonfly\", groups = 3, blue = 4, chassis = 3, black = 2, blades = 4, nodes = 1",
            36,
            "topology=\"DRAGONFLY\" topo_parameters=\"3,4;3,2;4,1;1\"",
        ),
    ];
    for (fields, hosts, attributes) in cases {
        assert_same(&read(&format!("topology = {{ {fields}, {COMMON} }}")), &cluster(hosts, attributes));
    }
}

const GRAPH: &str = r#"
    topology = { kind = "graph" }
    host = [{ name = "a", speed = "1Gf" }, { name = "b", speed = 2e9, cores = 4 }]
    route = [{ src = "a", dst = "b", links = [{ up = "l" }, "core"] }]
    [[link]]
    name = "l"
    bandwidth = "1GBps"
    latency = "1us"
    sharing = "split_duplex"
    [[link]]
    name = "core"
    bandwidth = "10GBps"
    sharing = "fat_pipe"
"#;

#[test]
fn graphs_are_those_of_the_xml() {
    let elements = "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"2Gf\" core=\"4\"/>
        <link id=\"l\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"SPLITDUPLEX\"/>
        <link id=\"core\" bandwidth=\"10GBps\" sharing_policy=\"FATPIPE\"/>
        <route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/><link_ctn id=\"core\"/></route>";
    assert_same(&read(GRAPH), &Platform::from_xml(&xml(elements), "p.xml").unwrap());
}

#[test]
fn a_description_can_stand_inside_another_file() {
    #[derive(serde::Deserialize)]
    struct Config {
        platform: PlatformDescription,
    }
    let text = format!("[platform]\ntopology = {{ kind = \"cluster\", hosts = 2, {COMMON} }}");
    let config: Config = toml::from_str(&text).unwrap();
    let platform = Platform::from_description(config.platform).unwrap();
    assert_eq!(route(&platform, 0, 1), ["c_link_0_UP", "c_link_1_DOWN"]);
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let platform = read(
        "topology = { kind = \"cluster\", hosts = 2, speed = \"5f\", bandwidth = \"7Bps\", latency = \"1us\" }",
    );
    assert_eq!((platform.hosts()[1].name.as_str(), platform.hosts()[1].cores), ("node-1", 1));
    assert_eq!(platform.links()[0].name, "cluster_link_0_UP");
    assert_eq!((platform.links()[0].bandwidth, platform.links()[0].sharing), (7.0, Sharing::Shared));
    assert_eq!(platform.topology(), "cluster: flat cluster of 2, 2 hosts");
}

#[test]
fn errors_name_the_line_and_the_field() {
    let cases = [
        ("topology = { kind = \"graph\" }\nhosts = 3", "line 2", "unknown field `hosts`"),
        ("[topology]\nkind = \"star\"", "line 2", "unknown variant `star`"),
        ("[topology]\nkind = \"torus\"\ndims = [2]\nspeed = \"1Gb\"", "line 4", "unknown unit \"Gb\""),
        ("[topology]\nkind = \"torus\"\ndims = [2]\nlatency = \"1\"", "line 4", "it has no unit"),
        ("[topology]\nkind = \"torus\"\ndimensions = [2]", "line 3", "unknown field `dimensions`"),
        ("[topology]\nkind = \"torus\"", "line 1", "lacks the field \"dims\""),
        ("[topology]\nkind = \"torus\"\nhosts = 3", "line 1", "has no field \"hosts\""),
        ("[topology]\nkind = \"graph\"\nspeed = \"1f\"", "line 1", "has no field \"speed\""),
        ("[topology]\nkind = \"cluster\"\nhosts = 99999999", "line 1", "more than 16777216 hosts"),
        ("topology = ", "line 1", ""),
    ];
    for (text, line, message) in cases {
        let error = refused(text).to_string();
        assert!(
            error.starts_with("p.toml: ") && error.contains(line) && error.contains(message),
            "{text}\n{error}"
        );
    }
}

#[test]
fn impossible_machines_are_refused() {
    assert!(matches!(refused("topology = { kind = \"graph\" }"), PlatformError::NoHosts { .. }));
    let lists = format!(
        "topology = {{ kind = \"cluster\", hosts = 2, {COMMON} }}\n[[host]]\nname = \"a\"\nspeed = \"1f\""
    );
    assert!(matches!(refused(&lists), PlatformError::Value { field: "host", .. }));
    let zero = format!("topology = {{ kind = \"torus\", dims = [4, 0], {COMMON} }}");
    assert!(matches!(refused(&zero), PlatformError::Topology { .. }));
    let pipe = format!("topology = {{ kind = \"cluster\", hosts = 2, sharing = \"fat_pipe\", {COMMON} }}");
    assert!(matches!(refused(&pipe), PlatformError::Value { field: "sharing", .. }));
    let unknown = GRAPH.replace("\"core\"] }", "\"cure\"] }");
    assert!(matches!(refused(&unknown), PlatformError::UnknownInRoute { name, .. } if name == "cure"));
}

#[test]
fn measures_follow_their_formulas() {
    let measure = |fields: &str| Measures::of(&read(&format!("topology = {{ {fields}, {COMMON} }}")));
    let flat =
        measure("kind = \"cluster\", hosts = 9, backbone = { bandwidth = \"3GBps\", latency = \"3us\" }");
    assert_eq!((flat.hosts, flat.links, flat.diameter.links), (9, 19, 3));
    assert!((flat.diameter.latency - 5e-6).abs() < 1e-12);
    assert_eq!((flat.diameter.coverage, flat.bisection), (Coverage::AllPairs, Some(3e9)));
    // Two cables on each of the 16 rings of 8 hosts.
    let torus = measure("kind = \"torus\", dims = [4, 4, 8]");
    assert_eq!((torus.diameter.links, torus.bisection), (8, Some(32e9)));
    assert_eq!(measure("kind = \"torus\", dims = [4, 5]").bisection, None);
    // 8 leaf switches with 8 cables up: 64, of which half leave one half.
    let tree = measure(
        "kind = \"fat_tree\", levels = [{ children = 16, parents = 1 }, { children = 8, parents = 8 }]",
    );
    assert_eq!((tree.diameter.links, tree.bisection), (4, Some(32e9)));
    // Two groups face two groups with one cable of four-fold bandwidth per pair.
    let dragonfly = measure("kind = \"dragonfly\", groups = 4, chassis = 2, blades = 4, nodes = 1, blue = 4");
    assert_eq!((dragonfly.diameter.links, dragonfly.bisection), (7, Some(16e9)));
    let large = measure("kind = \"torus\", dims = [16, 16, 16]");
    assert_eq!(large.diameter.coverage, Coverage::Sources { sources: 64 });
    assert_eq!(large.diameter.links, 24);
    assert_eq!(Measures::of(&read(GRAPH)).bisection, None);
}

/// A quantity says its unit where its number alone is implausible, and is one that a machine can have.
#[test]
fn implausible_quantities_are_refused() {
    let cluster = |fields: &str| {
        let text = format!("topology = {{ kind = 'cluster', hosts = 2, {fields} }}");
        Platform::from_toml(&text, "p.toml").map_err(|error| error.to_string())
    };
    let good = ["speed = '1Gf'", "bandwidth = '1GBps'", "latency = '1us'"];
    for (place, field, message) in [
        (0, "speed = 10", "found 10, which is 10 flop/s: write the unit, as in \"10Gf\" or \"10f\""),
        (0, "speed = 2.5", "write the unit, as in \"2.5Gf\""),
        (
            1,
            "bandwidth = 400",
            "found 400, which is 400 B/s: write the unit, as in \"400MBps\" or \"400Bps\"",
        ),
        (1, "bandwidth = 1e40", "no machine has that, expected 1 to 1e18 B/s"),
        (1, "bandwidth = '1e40GBps'", "found \"1e40GBps\", which is"),
        (1, "bandwidth = '1e-9Bps'", "no machine has that"),
        (1, "bandwidth = inf", "found inf, expected a finite number"),
        (0, "speed = '1e30Gf'", "no machine has that, expected 1 to 1e24 flop/s"),
        (2, "latency = 500", "found 500, which is 500 s: write the unit, as in \"500us\" or \"500s\""),
        (2, "latency = inf", "found inf, expected a finite number"),
        (2, "latency = nan", "expected a finite number"),
        (2, "latency = '1e30s'", "no machine has that"),
        (2, "latency = '1us', limiter = 5", "found 5, which is 5 B/s"),
        (2, "latency = '1us', memory_bandwidth = 40", "found 40, which is 40 B/s"),
        (2, "latency = '1us', loopback = { bandwidth = 9, latency = '1us' }", "found 9, which is 9 B/s"),
        (2, "latency = '1us', backbone = { bandwidth = 9, latency = '1us' }", "found 9, which is 9 B/s"),
    ] {
        let mut fields = good;
        fields[place] = field;
        let error = cluster(&fields.join(", ")).unwrap_err();
        assert!(error.contains(message), "{field}: {error}");
        assert!(!error.contains("infus") && !error.contains("nanus"), "{error}");
    }
    for (place, field) in [
        (0, "speed = 1e9"),
        (1, "bandwidth = 12_500_000_000"),
        (1, "bandwidth = '400Bps'"),
        (2, "latency = 0"),
        (2, "latency = 1e-6"),
        (2, "latency = '1µs'"),
        (2, "latency = '1μs'"),
    ] {
        let mut fields = good;
        fields[place] = field;
        assert!(cluster(&fields.join(", ")).is_ok(), "{field}");
    }
}

/// A group faces the others with its routers in turn, where it has fewer blades than there are groups.
#[test]
fn a_dragonfly_may_have_more_groups_than_blades() {
    let shape = |groups: u32, chassis: u32, blades: u32| {
        read(&format!(
            "topology = {{ kind = \"dragonfly\", groups = {groups}, chassis = {chassis}, blades = {blades}, nodes = 2, {COMMON} }}"
        ))
    };
    for (groups, chassis, blades) in [(40, 1, 4), (9, 2, 2), (5, 3, 1), (3, 1, 1)] {
        let dragonfly = shape(groups, chassis, blades);
        let hosts = dragonfly.hosts().len() as u32;
        assert_eq!(hosts, groups * chassis * blades * 2);
        let blue = |links: &[String]| links.iter().filter(|link| link.contains("blue_link")).count();
        let mut most = 0;
        for (src, dst) in (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))) {
            let links = route(&dragonfly, src, dst);
            let per_group = chassis * blades * 2;
            assert_eq!(blue(&links), usize::from(src / per_group != dst / per_group));
            most = most.max(links.len());
            let there = ["_UP", "_DOWN"].map(|end| links.first().is_some_and(|link| link.ends_with(end)));
            assert_eq!(there, [true, false], "{links:?}");
        }
        assert!(most <= 7, "{most} links");
        // The blue cables of a group are spread evenly over its routers.
        let mut cables = std::collections::BTreeMap::new();
        for link in
            dragonfly.links().iter().filter(|link| link.name.contains("blue_link_between_group_0_and"))
        {
            let router: u32 =
                link.name.split("routers_").nth(1).unwrap().split('_').next().unwrap().parse().unwrap();
            *cables.entry(router).or_insert(0) += 1;
        }
        let (least, most) = (cables.values().min().unwrap(), cables.values().max().unwrap());
        assert!(most - least <= 2 && cables.len() as u32 == (chassis * blades).min(groups - 1), "{cables:?}");
    }
}

/// The examples in the documentation of the format are platforms.
#[test]
fn documented_examples_are_platforms() {
    let source = include_str!("../../src/platform/description.rs");
    let documentation: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let documentation = documentation.join("\n");
    let examples: Vec<&str> =
        documentation.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let topologies: Vec<String> = examples.iter().map(|example| read(example).topology()).collect();
    let expected = [
        "cluster: flat cluster of 128 on a backbone, 128 hosts",
        "cluster: torus 4x4x8, 128 hosts",
        "cluster: fat tree 2;16,8;1,8;1,1, 128 hosts",
        "cluster: dragonfly 3,4;4,3;5,1;2, 120 hosts",
        "cluster: HyperX 4x4, 2 cables, 8 hosts per switch, 128 hosts",
        "cluster: Slim Fly of order 5, 4 hosts per switch, 200 hosts",
        "cluster: PolarFly of order 7, 4 hosts per switch, 228 hosts",
        "cluster: Jellyfish of 50 switches of degree 7, seed 2, 4 hosts per switch, 200 hosts",
        "cluster: dragonfly+ of 5 groups of 4 leaves and 4 spines, 1 cables, 4 hosts per leaf, 80 hosts",
        "cluster: rail-optimised fabric of 2 units of 8 servers of 8 hosts, 8 spines, 1 cables, 9-fold inside servers, 128 hosts",
        "graph: graph of 2 hosts, 2 routes",
    ];
    assert_eq!(topologies, expected);
}
